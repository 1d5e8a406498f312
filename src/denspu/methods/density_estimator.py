"""Density estimators: the rows of U where P is least dense are the negatives.

Basile, Di Mauro, Esposito, Ferilli and Vergari, "Density Estimators for
Positive-Unlabeled Learning", 2018 (New Frontiers in Mining Complex Patterns).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from denspu._folds import make_folds
from denspu._parameters import About, Number, OneOf, Part, Whole, setting
from denspu._registry import prepare_part, resolve_part
from denspu._share import cut_at
from denspu._typing import FloatArray, IntArray, Scenario
from denspu.methods._classical import EstimatorPU, EstimatorTask, copies_told
from denspu.methods._evidence import prior_setting, scenario_setting
from denspu.methods.one_class import fit_detector

BANDWIDTHS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)
"""Widths of the kernel density that are tried, of rows with variance 1 a column."""

COMPONENTS = (1, 2, 3, 5, 8)
"""Numbers of Gaussians that are tried."""


class DensityEstimator(EstimatorPU):
    """Rows of U where P is least dense against P.

    Fit a density to P, take the least dense rows of U as negatives, and classify.

    Attributes
    ----------
    density_ : object
    negative_index_ : array
        Numbers of the rows taken as negatives.
    prior_, prior_in_unlabeled_ : float
    """

    about = About(
        key="density_estimator",
        paper="Basile et al. 2018, Density estimators for PU learning",
        needs_prior=True,
    )

    density: Any = setting(
        "kernel",
        OneOf("mixture", "kernel"),
        Part("detector"),
        doc="Gaussians, their number by the Bayesian information criterion, a kernel "
        "density, its width by held-out likelihood, or a detector.",
    )
    negatives: float = setting(
        0.8,
        Number(0, 1, "right"),
        doc="Share of the expected negatives that is taken, of lowest density.",
    )
    max_dims: int = setting(20, Whole(1), doc="Principal components for densities.")
    prior: float | Literal["estimate"] = prior_setting()
    scenario: Scenario = scenario_setting()

    def _uses_embedding(self) -> bool:
        return True

    def _train(self, task: EstimatorTask) -> None:
        scores = self._densities(task)
        self.prior_, self.prior_in_unlabeled_, inside = task.prior(
            self.prior, self.scenario
        )
        free = scores[task.free]
        cut = cut_at(free, 1 - self.negatives * (1 - inside))
        self.negative_index_ = task.reliable(scores < cut, scores)
        self.estimator_ = task.positives_against(self.negative_index_, "final")

    def _densities(self, task: EstimatorTask) -> FloatArray:
        """Return how dense P is at every row."""
        given = self.density
        if isinstance(given, str) and given in ("mixture", "kernel"):
            rows = few_columns(task.Z, self.max_dims, task.randomness.seed("columns"))
            P = rows[task.positive]
            if given == "mixture":
                self.density_ = mixture(P, task.randomness.seed("density"))
            else:
                groups = task.data.groups
                of_positives = None if groups is None else groups[task.positive]
                rng = task.randomness.numpy("density")
                self.density_ = kernel_density(P, of_positives, rng)
            return np.asarray(self.density_.score_samples(rows))
        part = resolve_part(given, "detector", argument="density")
        part = prepare_part(part, task.randomness, "density", device=self.device_)
        self.density_ = fit_detector(part, task.Z, task.positive, task.free)
        return np.asarray(self.density_.score_samples(task.Z))


def few_columns(Z: FloatArray, most: int, seed: int) -> FloatArray:
    """Return at most so many principal components, of overall variance 1 a column."""
    if Z.shape[1] > most and Z.var(axis=0).any():
        most = min(most, len(Z))
        Z = PCA(most, random_state=seed).fit_transform(Z)
    spread = float(np.sqrt(Z.var(axis=0).mean()))
    return np.asarray(Z / (spread if spread > 0 else 1.0))


def mixture(P: FloatArray, seed: int) -> Any:
    """Return the mixture of Gaussians with the best information criterion (BIC)."""
    tried = [k for k in COMPONENTS if 2 * k <= len(P)]
    outcome = "density='mixture' learns little from them"
    with copies_told(P, "labelled positives", max(tried), outcome):
        found = [
            GaussianMixture(
                k, covariance_type="diag", reg_covar=1e-2, random_state=seed
            ).fit(P)
            for k in tried
        ]
    return min(found, key=lambda model: float(model.bic(P)))


def kernel_density(
    P: FloatArray, groups: IntArray | None, rng: np.random.Generator
) -> Any:
    """Return the kernel density whose width explains held-out positives best."""
    everyone = np.ones(len(P), dtype=bool)
    fold = make_folds(everyone, groups, min(5, len(P)), rng)

    def held_out(width: float) -> float:
        parts = [k for k in np.unique(fold) if (fold != k).any()]
        return sum(
            float(KernelDensity(bandwidth=width).fit(P[fold != k]).score(P[fold == k]))
            for k in parts
        )

    return KernelDensity(bandwidth=max(BANDWIDTHS, key=held_out)).fit(P)
