"""Where to cut, lists with a promise, and what speaks against a model.

Of a list is said what is bounded, and on which assumption:

======================  ==========================  ===================================
list                    compared with               bounded
======================  ==========================  ===================================
declared negatives      held-out positives          positives among the declared
                                                    negatives, or positives lost
declared positives      unlabelled rows as a        negatives among the declared
                        conservative null           positives, or negatives let in
======================  ==========================  ===================================
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

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
from denspu._parameters import Number, OneOf, Whole, check
from denspu._progress import does, many
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray, RandomState
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.metrics._mass import groups_of, scores_of
from denspu.metrics._pu import PUReport, pu_metrics

Rule: TypeAlias = Literal["prior", "recall", "precision", "top"]
Control: TypeAlias = Literal["list", "row"]
Tail: TypeAlias = Literal["low", "high"]


# --- a threshold --------------------------------------------------------------------


@dataclass(frozen=True)
class ThresholdChoice:
    """A threshold and what to expect of it."""

    threshold: float
    """Rows that score above it are called positive."""
    rule: Rule
    target: float | None
    reached: bool
    """Whether the target was met, by the estimate."""
    n_called: int
    """Rows of U above the threshold."""
    sentence: str
    report: PUReport | None
    """Expected figures; none without ``prior_in_unlabeled``."""

    def __str__(self) -> str:
        return self.sentence + (f"\n{self.report}" if self.report else "")


def choose_threshold(
    positive_scores: Any,
    unlabeled_scores: Any,
    *,
    prior_in_unlabeled: float | None = None,
    rule: Rule = "prior",
    target: float | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> ThresholdChoice:
    """Choose a threshold; no negative and no refit is needed.

    Parameters
    ----------
    positive_scores, unlabeled_scores, prior_in_unlabeled
        As for :func:`pu_metrics`. Rules ``"prior"`` and ``"precision"`` need the share;
        with it, expected figures come back for the others too.
    rule : {"prior", "recall", "precision", "top"}, default="prior"
        ``"prior"``: call as many rows of U positive as the prior says there are.
        ``"recall"``: the highest cut that a new positive passes with a chance of at
        least ``target`` (exact for any number of held-out positives under SCAR).
        ``"precision"``: the lowest cut with an estimated precision of at least
        ``target``. ``"top"``: the ``target`` highest rows, a review budget.
    target : float or int
        For all rules but ``"prior"``.
    random_state, **options
        Further arguments of :func:`pu_metrics`, for the expected figures.

    Notes
    -----
    Rows of one score are never split. Where ties make a difference the sentence says
    so; fewer rows than asked for are called, never more, unless none would be left.
    The figures are made on the rows that chose the cut: with ``"precision"`` they lean
    to the good side a little, since the cut was picked where the estimate is high.

    Examples
    --------
    >>> from denspu.metrics import choose_threshold
    >>> U = [5.0, 4.0, 3.0, 2.0, 1.0]
    >>> choice = choose_threshold([4.5, 3.5], U, rule="top", target=2)
    >>> choice.threshold, choice.n_called
    (3.5, 2)
    """
    P = scores_of("positive_scores", positive_scores)
    U = scores_of("unlabeled_scores", unlabeled_scores)
    check("rule", rule, OneOf("prior", "recall", "precision", "top"))
    check("prior_in_unlabeled", prior_in_unlabeled, OneOf(None), Number(0, 1))
    if prior_in_unlabeled is None and rule in ("prior", "precision"):
        raise InvalidParameterError(
            f"rule={rule!r} needs prior_in_unlabeled, the share of positives inside U. "
            "Estimate it with denspu.priors.estimate_prior, or take rule='recall' or "
            "rule='top'."
        )
    if rule == "prior" and target is not None:
        raise InvalidParameterError(
            f"rule='prior' takes no target. Got target={target!r}; leave it out, or "
            "choose another rule."
        )
    if rule != "prior":
        whole = rule == "top"
        check("target", target, Whole(1, len(U)) if whole else Number(0, 1, "right"))
    share, aim = float(prior_in_unlabeled or 0), float(target or 0)
    ways = {
        "prior": lambda: _top(U, round(share * len(U))),
        "top": lambda: _top(U, int(aim)),
        "recall": lambda: _recall(P, U, aim),
        "precision": lambda: _precision(P, U, share, aim),
    }
    threshold, reached, sentence = ways[rule]()
    report = None
    if prior_in_unlabeled is not None:
        report = pu_metrics(
            P,
            U,
            prior_in_unlabeled=prior_in_unlabeled,
            threshold=threshold,
            random_state=random_state,
            **options,
        )
    return ThresholdChoice(
        threshold=threshold,
        rule=rule,
        target=None if target is None else float(target),
        reached=reached,
        n_called=int((threshold < U).sum()),
        sentence=sentence,
        report=report,
    )


def between(scores: FloatArray, count: int) -> float:
    """Return a cut below the ``count`` highest scores; these are not tied beyond it."""
    ordered = np.sort(scores)[::-1]
    if count <= 0:
        return float(ordered[0])
    if count >= len(ordered):
        return float(np.nextafter(ordered[-1], -np.inf))
    upper, lower = float(ordered[count - 1]), float(ordered[count])
    middle = lower + (upper - lower) / 2 if np.isfinite([upper, lower]).all() else lower
    return middle if lower <= middle < upper else lower


def _top(U: FloatArray, wanted: int) -> tuple[float, bool, str]:
    ordered = np.sort(U)[::-1]
    count = wanted
    which = does(wanted, "highest", f"{wanted:,} highest")
    be = does(wanted, "is", "are")
    told = f"The {which} of {many(len(U), 'unlabelled row')} {be} called positive."
    if 0 < wanted < len(U) and ordered[wanted - 1] == ordered[wanted]:
        tie = ordered[wanted - 1]
        above = int((tie < U).sum())
        count = above or int((tie <= U).sum())
        what = "fewer" if above else "more: no cut could call fewer but none"
        told = (
            f"{count:,} of {len(U):,} unlabelled rows {does(count, 'is', 'are')} "
            f"called positive, not the {wanted:,} asked for; "
            f"{int((tie == U).sum()):,} rows share the score at the cut ({what})."
        )
    return between(U, count), count == wanted, told


def _recall(P: FloatArray, U: FloatArray, target: float) -> tuple[float, bool, str]:
    n = len(P)
    # A new positive is as likely to take any of the n + 1 places among the others.
    lost = int(np.floor((n + 1) * (1 - target) + 1e-9))
    if lost == 0:
        lowest = min(P.min(), U.min())
        most = n / (n + 1)
        told = (
            f"Every row is called positive: with {many(n, 'held-out positive')} no cut "
            f"can promise a recall above {most:.3f}, and {target:g} was asked for."
        )
        return float(np.nextafter(lowest, -np.inf)), False, told
    threshold = float(np.nextafter(np.sort(P)[min(lost, n) - 1], -np.inf))
    told = f"A positive passes the cut with a chance of at least {target:g}."
    return threshold, True, told


def _precision(
    P: FloatArray, U: FloatArray, prior: float, target: float
) -> tuple[float, bool, str]:
    ordered = np.sort(U)[::-1]
    ends = np.append(np.flatnonzero(ordered[1:] < ordered[:-1]), len(U) - 1)
    recall = 1 - np.searchsorted(np.sort(P), ordered[ends], side="left") / len(P)
    precision = np.minimum(1.0, prior * len(U) * recall / (ends + 1))
    enough = np.flatnonzero(precision >= target - 1e-12)
    if len(enough):
        count = int(ends[enough[-1]]) + 1
        told = f"The lowest cut with an estimated precision of at least {target:g}."
        return between(U, count), True, told
    best = len(precision) - 1 - int(np.argmax(precision[::-1]))
    told = (
        f"No cut has an estimated precision of {target:g}; the best one, "
        f"{precision[best]:.3f}, was taken."
    )
    return between(U, int(ends[best]) + 1), False, told


# --- lists with a promise -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DeclaredRows:
    """A list of rows and what is promised about it."""

    declared: BoolArray
    """True for the rows on the list."""
    p_values: FloatArray
    level: float
    control: Control
    promise: str
    """What is bounded, on which list, under which assumption."""

    @property
    def n(self) -> int:
        """Rows on the list."""
        return int(self.declared.sum())

    def __str__(self) -> str:
        return f"{self.n:,} of {len(self.declared):,} rows. {self.promise}"


def conformal_p_values(
    reference_scores: Any, scores: Any, *, tail: Tail = "low"
) -> FloatArray:
    """Return how unusual each score is among reference scores.

    (1 + number of reference scores at least as extreme) / (1 + number of them). If a
    row is drawn like the reference rows, and the model has seen neither, its p-value is
    at most t with a chance of at most t, for every t and any model.

    Parameters
    ----------
    reference_scores : array
        With held-out *positives* and ``tail="low"``, a small p-value speaks against
        the row being **positive**; it says nothing on how sure a positive is.
    scores : array
        Rows to judge.
    tail : {"low", "high"}, default="low"
        Which scores are extreme.

    Examples
    --------
    >>> from denspu.metrics import conformal_p_values
    >>> conformal_p_values([1, 2, 3, 4], [0.5, 2.5, 9]).tolist()
    [0.2, 0.6, 1.0]
    """
    reference = np.sort(scores_of("reference_scores", reference_scores))
    rows = scores_of("scores", scores)
    check("tail", tail, OneOf("low", "high"))
    if tail == "low":
        extreme = np.searchsorted(reference, rows, side="right")
    else:
        extreme = len(reference) - np.searchsorted(reference, rows, side="left")
    return (1.0 + extreme) / (1.0 + len(reference))


def benjamini_hochberg(p_values: Any, level: float) -> BoolArray:
    """Return the rows that Benjamini and Hochberg's step-up rule rejects."""
    p = scores_of("p_values", p_values)
    check("level", level, Number(0, 1, "neither"))
    ordered = np.sort(p)
    fits = np.flatnonzero(ordered <= level * np.arange(1, len(p) + 1) / len(p) + 1e-12)
    if len(fits) == 0:
        return np.zeros(len(p), dtype=np.bool_)
    return np.asarray(p <= ordered[fits[-1]])


def declared_negatives(
    positive_scores: Any,
    unlabeled_scores: Any,
    *,
    level: float = 0.1,
    control: Control = "list",
) -> DeclaredRows:
    """Declare rows of U negative with few positives among them.

    This controls the list of declared **negatives**. It says nothing about the rows
    left over: they are not "declared positive".

    Parameters
    ----------
    positive_scores, unlabeled_scores
        As for :func:`pu_metrics`.
    level : float, default=0.1
    control : {"list", "row"}, default="list"
        ``"list"``: of the rows declared negative, at most the share ``level`` is
        positive on average (false discovery rate; Benjamini-Hochberg on conformal
        p-values, Bates et al. 2023). ``"row"``: of the positives in U, at most the
        share ``level`` is declared negative on average.

    Notes
    -----
    Assumes that held-out positives and those in U are drawn alike (SCAR), and that the
    model saw neither in ``fit``. Nothing is assumed about negatives or the prior.
    """
    check("level", level, Number(0, 1, "neither"))
    check("control", control, OneOf("list", "row"))
    what = {
        "list": "of the rows declared negative are positive",
        "row": "of the positives in U are declared negative",
    }[control]
    p = conformal_p_values(positive_scores, unlabeled_scores, tail="low")
    promise = (
        f"List of declared negatives: on average at most {level:.0%} {what}, if "
        "held-out positives are like those in U. The rows left over carry no promise."
    )
    return _declared(p, level, control, promise)


def declared_positives(
    unlabeled_scores: Any,
    candidate_scores: Any = None,
    *,
    level: float = 0.1,
    control: Control = "row",
) -> DeclaredRows:
    """Declare rows positive with U standing in for the negatives.

    This controls the list of declared **positives**. U holds positives too, which score
    high, so a negative looks less unusual in U than among negatives: the p-values are
    too large rather than too small, and the bound is conservative.

    Parameters
    ----------
    unlabeled_scores : array
        Scores of unlabelled rows, the conservative null.
    candidate_scores : array, optional
        Other rows to judge. Default: the rows of U, each compared with all of them.
    level : float, default=0.1
    control : {"row", "list"}, default="row"
        ``"row"``: of the negatives, at most the share ``level`` is declared positive on
        average. ``"list"``: of the rows declared positive, at most the share ``level``
        is negative on average (Benjamini-Hochberg); needs ``candidate_scores``. Rows of
        U are never unusual among themselves, so no list could be drawn from U alone:
        there, use ``choose_threshold(rule="precision")``, which needs the prior.

    Notes
    -----
    Assumes that positives tend to score at least as high as negatives (at every cut,
    the share of positives above it is no smaller), that negatives among the candidates
    are drawn like those in U, and that the model saw neither in ``fit``. Neither SCAR
    nor the prior is needed.
    """
    check("level", level, Number(0, 1, "neither"))
    check("control", control, OneOf("row", "list"))
    U = scores_of("unlabeled_scores", unlabeled_scores)
    if candidate_scores is None:
        if control == "list":
            raise InvalidParameterError(
                "control='list' needs candidate_scores of rows outside U: rows of U "
                "are never unusual among themselves, so none would be declared. For a "
                "list from U take choose_threshold(rule='precision', target="
                f"{1 - level:g}, prior_in_unlabeled=...)."
            )
        # The row itself is one of the reference rows; it counts once.
        p = np.minimum(1.0, (len(U) - np.searchsorted(np.sort(U), U)) / len(U))
    else:
        p = conformal_p_values(U, candidate_scores, tail="high")
    what = {
        "list": "of the rows declared positive are negative",
        "row": "of the negatives are declared positive",
    }[control]
    return _declared(
        p,
        level,
        control,
        f"List of declared positives: on average at most {level:.0%} {what}, if "
        "positives tend to score higher than negatives; U is the conservative null.",
    )


def _declared(
    p: FloatArray, level: float, control: Control, promise: str
) -> DeclaredRows:
    listed = control == "list"
    rows = benjamini_hochberg(p, level) if listed else np.asarray(p <= level + 1e-12)
    return DeclaredRows(rows, p, float(level), control, promise)


# --- what speaks against it -----------------------------------------------------------

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
        told = (
            f"Held-out positives score no higher than the unlabelled (AUC {auc:.3f}): "
            "the model has learned nothing that can be seen."
        )
        luck = 0.5 + norm.isf(level) * error
        if auc > 0.5 + error:
            told = (
                f"{many(len(P), 'held-out positive')} {does(len(P), 'is', 'are')} too "
                "few to tell whether the model has learned anything: the AUC is "
                f"{auc:.3f}, and chance alone reaches {luck:.3f}. Label more positives."
            )
        return TrivialCheck("chance", told)
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
