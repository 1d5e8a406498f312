"""Extended Isolation Forest (Hariri et al. 2019): random planes instead of axes."""

from __future__ import annotations

from typing import ClassVar, Literal

from denspu._parameters import Whole
from denspu._typing import RandomState
from denspu.base import Rules
from denspu.detectors.isolation_forest import IsolationForest


class ExtendedIsolationForest(IsolationForest):
    """Isolate rows by random planes, without the axis-parallel ghosts.

    Parameters
    ----------
    n_directions : int, default=8
        Features in a plane (all, where there are fewer). 1 would be a plain forest;
        the paper's "extension level" is one less. Cost grows with it.
    n_estimators, max_samples, contamination, random_state, n_jobs, engine, device
        See :class:`IsolationForest`.
    """

    _rules: ClassVar[Rules] = {"n_directions": (Whole(2),), **IsolationForest._rules}

    def __init__(
        self,
        *,
        n_directions: int = 8,
        n_estimators: int = 1000,
        max_samples: int = 256,
        contamination: float | Literal["auto"] = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        engine: Literal["auto", "numba", "torch"] = "auto",
        device: str = "auto",
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            max_samples=max_samples,
            contamination=contamination,
            random_state=random_state,
            n_jobs=n_jobs,
            engine=engine,
            device=device,
        )
        self.n_directions = n_directions

    def _shape(self) -> dict[str, int]:
        return {"n_directions": self.n_directions}
