"""Isolation Forest (Liu et al. 2008), the paper's detector, and its extended form."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from denspu._machine import resolve_device
from denspu._parameters import OneOf, Whole
from denspu._random import Randomness
from denspu._typing import FloatArray, RandomState
from denspu.base import CONTAMINATION_RULE, Detector, Rules
from denspu.detectors.forest import ENGINES, Forest, forest_scores
from denspu.detectors.forest_growth import build_forest


class IsolationForest(Detector):
    """Score rows by how many random splits isolate them.

    The trees are scikit-learn's in meaning: at each node a feature that varies there
    and a threshold uniform in its range, down to ceil(log2(max_samples)) levels.

    Parameters
    ----------
    n_estimators : int, default=1000
        Trees. On 512-dimensional embeddings 100 trees rank poorly.
    max_samples : int, default=256
        Rows a tree sees (all, where there are fewer).
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training rows beyond the threshold; ``"auto"`` puts the threshold
        at the original paper's score of -0.5.
    random_state : int, generator or None
    n_jobs : int or None, default=None
        Threads; None takes all cores. Trees and scores do not depend on it.
    engine : {"auto", "numba", "torch"}, default="auto"
        What walks the trees, see :mod:`denspu.detectors.forest`.
    device : str, default="auto"
        Where arrays are scored; tensors are scored where they are.

    Attributes
    ----------
    forest_ : Forest
        The trees as plain arrays.
    """

    takes_tensors: ClassVar[bool] = True
    _rules: ClassVar[Rules] = {
        "n_estimators": (Whole(1),),
        "max_samples": (Whole(1, 2**16),),
        "contamination": CONTAMINATION_RULE,
        "n_jobs": (OneOf(None), Whole()),
        "engine": (OneOf(*ENGINES),),
    }

    def __init__(
        self,
        *,
        n_estimators: int = 1000,
        max_samples: int = 256,
        contamination: float | Literal["auto"] = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        engine: Literal["auto", "numba", "torch"] = "auto",
        device: str = "auto",
    ) -> None:
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.contamination = contamination
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.engine = engine
        self.device = device

    @classmethod
    def from_sklearn(cls, forest: Any) -> Self:
        """Return a detector with the trees of a fitted scikit-learn forest.

        Its scores equal ``forest.score_samples`` to rounding, its threshold is
        ``forest.offset_``.
        """
        detector = cls(
            n_estimators=len(forest.estimators_),
            max_samples=int(forest._max_samples),
            contamination=forest.contamination,
        )
        detector.forest_ = Forest.from_sklearn(forest)
        detector.n_features_in_ = forest.n_features_in_
        detector.threshold_ = float(forest.offset_)
        return detector

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        self.forest_ = build_forest(
            Z,
            n_trees=self.n_estimators,
            max_samples=self.max_samples,
            rng=randomness.numpy("forest"),
            n_jobs=self.n_jobs,
            **self._shape(),
        )

    def _shape(self) -> dict[str, int]:
        """Return what makes the trees differ from plain ones."""
        return {}

    def _score(self, Z: FloatArray) -> FloatArray:
        return forest_scores(
            self.forest_,
            Z,
            engine=self.engine,
            device=resolve_device(self.device),
            n_jobs=self.n_jobs,
        )

    def _natural_threshold(self) -> float | None:
        return -0.5


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
