"""Isolation Forest (Liu et al. 2008), the paper's detector, and its extended form."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from denspu._machine import resolve_device
from denspu._parameters import About, OneOf, Whole, setting
from denspu._random import Randomness
from denspu._typing import FloatArray, RandomState
from denspu.base import Detector
from denspu.detectors.forest import Forest, forest_scores
from denspu.detectors.forest_growth import build_forest


class IsolationForest(Detector):
    """How many random splits isolate a row.

    The trees are scikit-learn's in meaning: at each node a feature that varies there
    and a threshold uniform in its range, down to ceil(log2(max_samples)) levels. With
    ``contamination="auto"`` the threshold is the original paper's score of -0.5.

    Attributes
    ----------
    forest_ : Forest
        The trees as plain arrays.
    """

    about = About(key="isolation_forest", paper="Liu et al. 2008, Isolation Forest")
    takes_tensors: ClassVar[bool] = True

    n_estimators: int = setting(
        1000,
        Whole(1),
        doc="Trees. On 512-dimensional embeddings 100 trees rank poorly.",
    )
    max_samples: int = setting(
        256, Whole(1, 2**16), doc="Rows a tree sees (all, where there are fewer)."
    )
    random_state: RandomState = setting(None)
    n_jobs: int | None = setting(
        None,
        OneOf(None),
        Whole(),
        doc="Threads; None takes all cores. Trees and scores do not depend on it.",
    )
    engine: Literal["auto", "numba", "torch"] = setting(
        "auto",
        OneOf("auto", "numba", "torch"),
        doc="What walks the trees, see :mod:`denspu.detectors.forest`.",
    )
    device: str = setting(
        "auto", doc="Where arrays are scored; tensors are scored where they are."
    )

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
            n_directions=getattr(self, "n_directions", 1),
        )

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
    """How many random planes isolate a row: without the axis-parallel ghosts."""

    about = About(
        key="extended_isolation_forest",
        paper="Hariri et al. 2019, Extended Isolation Forest",
    )

    n_directions: int = setting(
        8,
        Whole(2),
        doc="Features in a plane (all, where there are fewer); one less is the\n"
        "paper's extension level. Cost grows with it.",
    )
