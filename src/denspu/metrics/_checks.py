"""Doubts: does P look like the positives in U, and is the model trivial?

``oracle_metrics`` needs true labels: for benchmarks and demonstrations, never for fit.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import ks_2samp, norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from denspu._folds import deal_even_folds
from denspu._parameters import Number, OneOf, check
from denspu._progress import many
from denspu._random import Randomness
from denspu._typing import FloatArray, RandomState
from denspu.exceptions import InvalidInputError
from denspu.metrics._mass import groups_of, scores_of

LEAST = 10
"""Rows of P and of U that a test needs."""

FOLDS = 5


@dataclass(frozen=True)
class ScarTest:
    """One test of P against the top of U."""

    name: str
    statistic: float
    p_value: float
    sentence: str


@dataclass(frozen=True)
class ScarCheck:
    """Whether labelled positives look like the rows at the top of U."""

    tests: tuple[ScarTest, ...]
    n_positive: int
    """Held-out positives above the cut."""
    n_unlabeled: int
    """Rows of U above the cut."""
    cut: float
    level: float

    @property
    def doubtful(self) -> bool:
        """Whether a test finds a difference, their number taken into account."""
        return any(t.p_value < self.level / len(self.tests) for t in self.tests)

    @property
    def sentence(self) -> str:
        """What was found, in plain words."""
        if not self.tests:
            return (
                f"Too few to compare ({many(self.n_positive, 'positive')} and "
                f"{self.n_unlabeled:,} unlabelled at the top; {LEAST} of "
                "each are needed)."
            )
        if self.doubtful:
            return (
                "Labelled positives differ from the unlabelled that score highest. "
                "Either labels were not given at random among the positives, or there "
                "are negatives among the highest. Look at both before trusting "
                "precision, AUC and the prior."
            )
        return (
            "No difference was found between labelled positives and the unlabelled "
            "that score highest. That does not show that labels were given at random: "
            "positives that score low are out of sight."
        )

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(t.sentence for t in self.tests)])


def scar_check(
    positive_scores: Any,
    unlabeled_scores: Any,
    *,
    prior_in_unlabeled: float,
    positive_features: Any = None,
    unlabeled_features: Any = None,
    positive_groups: Any = None,
    unlabeled_groups: Any = None,
    level: float = 0.05,
    random_state: RandomState = None,
) -> ScarCheck:
    """Compare held-out positives with the rows of U that are most surely positive.

    The cut is set above half of the positives that the prior expects in U; rows of P
    and of U above it are compared. Where the top of U is pure, both are positives, and
    if labels were given at random they are alike.

    Parameters
    ----------
    positive_scores, unlabeled_scores, prior_in_unlabeled
        As for :func:`pu_metrics`.
    positive_features, unlabeled_features : arrays of numbers, optional
        One row a score. A classifier is then set to tell P from the top of U; out of
        fold, it should not be able to.
    positive_groups, unlabeled_groups : arrays, optional
        No group crosses a fold. The p-values count rows, and are too small where rows
        of a group resemble each other.
    level : float, default=0.05
        Of the doubt, over all tests together.
    random_state : int, generator or None, default=None
    """
    P = scores_of("positive_scores", positive_scores)
    U = scores_of("unlabeled_scores", unlabeled_scores)
    check("prior_in_unlabeled", prior_in_unlabeled, Number(0, 1))
    check("level", level, Number(0, 1, "neither"))
    count = min(len(U), max(1, round(float(prior_in_unlabeled) * len(U) / 2)))
    cut = float(np.sort(U)[len(U) - count])
    p, u = cut <= P, cut <= U
    tests: list[ScarTest] = []
    enough = min(p.sum(), u.sum()) >= LEAST
    given = (positive_features is not None, unlabeled_features is not None)
    if given[0] != given[1]:
        raise InvalidInputError(
            "positive_features and unlabeled_features belong together; give both or "
            "neither."
        )
    if enough:
        found = ks_2samp(P[p], U[u])
        told = (
            f"Along the score: largest gap {found.statistic:.3f} between the two "
            f"distributions (Kolmogorov-Smirnov, p = {found.pvalue:.3g})."
        )
        along = float(found.statistic), float(found.pvalue)
        tests.append(ScarTest("score", *along, told))
    if all(given):
        X = _features("positive_features", positive_features, len(P))
        Z = _features("unlabeled_features", unlabeled_features, len(U))
        if X.shape[1] != Z.shape[1]:
            raise InvalidInputError(
                f"positive_features has {X.shape[1]} columns and unlabeled_features "
                f"{Z.shape[1]}; they must be the same ones."
            )
        g = groups_of("positive_groups", positive_groups, len(P))
        h = groups_of("unlabeled_groups", unlabeled_groups, len(U))
        groups = None
        if g is not None and h is not None:
            names = np.r_[np.asarray(positive_groups), np.asarray(unlabeled_groups)]
            groups = np.unique(names, return_inverse=True)[1][np.r_[p, u]]
        if enough:
            rng = Randomness(random_state).numpy("scar_check")
            tests.append(_by_features(X[p], Z[u], groups, rng))
    return ScarCheck(tuple(tests), int(p.sum()), int(u.sum()), cut, float(level))


def _by_features(
    P: FloatArray, U: FloatArray, groups: Any, rng: np.random.Generator
) -> ScarTest:
    """Tell P from U out of fold; AUCs of the folds are added as rank sums are."""
    X = np.concatenate([P, U])
    positive = np.arange(len(X)) < len(P)
    fold = deal_even_folds(positive, groups, FOLDS, rng)
    wins, variance, mean = 0.0, 0.0, 0.0
    for number in range(int(fold.max()) + 1):
        test = fold == number
        if test.all():
            break
        model = make_pipeline(
            StandardScaler(), LogisticRegression(C=0.1, class_weight="balanced")
        )
        with warnings.catch_warnings():  # an unfinished fit is judged out of fold too
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[~test], positive[~test])
        a, b = int(positive[test].sum()), int((~positive[test]).sum())
        auc = roc_auc_score(positive[test], model.decision_function(X[test]))
        wins += auc * a * b
        mean += a * b / 2
        variance += a * b * (a + b + 1) / 12
    if variance == 0:
        told = "By features: too few groups to hold any out."
        return ScarTest("features", 0.5, 1.0, told)
    p_value = float(norm.sf((wins - mean) / np.sqrt(variance)))
    auc = float(wins / (2 * mean))
    told = (
        f"By features: a classifier tells them apart with an AUC of {auc:.3f} out of "
        f"fold (0.5 is chance; p = {p_value:.3g})."
    )
    return ScarTest("features", auc, p_value, told)


def _features(argument: str, values: Any, n_rows: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or len(array) != n_rows or not np.isfinite(array).all():
        raise InvalidInputError(
            f"{argument} must hold one row of finite numbers for each of the {n_rows} "
            f"scores. Got shape {array.shape}."
        )
    return array


@dataclass(frozen=True)
class TrivialCheck:
    """Whether a model that looks good does nothing at all."""

    kind: str | None
    """``"constant"``, ``"all positive"``, ``"all negative"``, ``"chance"`` or none."""
    sentence: str

    @property
    def trivial(self) -> bool:
        """Whether something was found."""
        return self.kind is not None


def trivial_check(
    positive_scores: Any,
    unlabeled_scores: Any,
    *,
    prior_in_unlabeled: float | None = None,
    threshold: float = 0.0,
    level: float = 0.05,
) -> TrivialCheck:
    """Find models whose figures look perfect for the wrong reason.

    Calling everything positive has a recall of 1; calling nothing positive is accurate
    where positives are rare. "Almost everything" is judged against the prior: fewer
    than a tenth of the negatives (or of the positives) it expects.

    Parameters
    ----------
    positive_scores, unlabeled_scores, prior_in_unlabeled, threshold
        As for :func:`pu_metrics`; without the share, only whole-sale answers are found.
    level : float, default=0.05
        A model at chance is one whose held-out positives do not score higher than U at
        this level (rank sum, one-sided).
    """
    P = scores_of("positive_scores", positive_scores)
    U = scores_of("unlabeled_scores", unlabeled_scores)
    check("prior_in_unlabeled", prior_in_unlabeled, OneOf(None), Number(0, 1))
    check("threshold", threshold, Number())
    check("level", level, Number(0, 1, "neither"))
    both = np.r_[P, U]
    if (both == both[0]).all():
        return TrivialCheck(
            "constant", "All rows have the same score: the model tells nothing apart."
        )
    called = float((threshold < U).mean())
    prior = 0.0 if prior_in_unlabeled is None else float(prior_in_unlabeled)
    left = 0.0 if prior_in_unlabeled is None else 1 - prior
    if 1 - called <= left / 10 and prior < 1:
        return TrivialCheck(
            "all positive",
            f"{called:.1%} of the unlabelled are called positive. A recall near 1 "
            "means nothing then; choose another threshold.",
        )
    if called <= prior / 10:
        return TrivialCheck(
            "all negative",
            f"{called:.1%} of the unlabelled are called positive. Few positives can "
            "be found, however high the accuracy; choose another threshold.",
        )
    ranks = np.unique(both, return_inverse=True)[1]  # finite where scores are not
    auc = roc_auc_score(np.r_[np.ones(len(P)), np.zeros(len(U))], ranks)
    error = np.sqrt((len(P) + len(U) + 1) / (12 * len(P) * len(U)))
    if norm.sf((auc - 0.5) / error) > level:
        return TrivialCheck(
            "chance",
            f"Held-out positives score no higher than the unlabelled (AUC {auc:.3f}): "
            "the model has learned nothing that can be seen, or there are too few "
            "positives to see it.",
        )
    return TrivialCheck(None, "The model is not trivial.")


# --- what true labels say -------------------------------------------------------------


def oracle_metrics(y_true: Any, decision: FloatArray) -> dict[str, float]:
    """Return the figures of a record, each between 0 and 1.

    Parameters
    ----------
    y_true : array of 0 and 1
        True classes.
    decision : array
        ``decision_function``; above 0 counts as positive.

    Notes
    -----
    The "AUC" printed for Dens-PU in the paper's Table 2 is ``balanced_accuracy``;
    ``roc_auc`` is the ranking AUC.
    """
    y_true = np.asarray(y_true)
    predicted = (decision > 0).astype(np.int64)
    found = {
        "accuracy": accuracy_score(y_true, predicted),
        "balanced_accuracy": balanced_accuracy_score(y_true, predicted),
        "precision": precision_score(y_true, predicted, zero_division=0),
        "recall": recall_score(y_true, predicted),
        "f1": f1_score(y_true, predicted),
        "roc_auc": roc_auc_score(y_true, decision),
        "average_precision": average_precision_score(y_true, decision),
    }
    return {name: float(value) for name, value in found.items()}
