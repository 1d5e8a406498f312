"""Bags of unlike learners, joined by the geometric mean of their ranks.

Each bag sets four fifths of P against draws from U, so that every row is also scored by
bags that have not seen it. Those scores judge all labelled positives, and they place a
new row among U whatever rows come with it. Two looks are taken. The first draws from
all of U alike; the second seldom draws rows that the first takes for positive, so that
hidden positives do less harm as negatives. In each look, members that rank the
positives clearly worse than the best one are left out; the others count alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit, logit
from scipy.stats import mannwhitneyu
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from denspu._folds import deal_even_folds
from denspu._machine import in_threads, n_threads
from denspu._parameters import About, OneOf, Whole, check_parameters, setting
from denspu._random import Randomness
from denspu._registry import registry
from denspu._share import HiddenPositive, cut_at, known_cut
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu._validation import validate_embedding
from denspu.base import Refiner, RefinerInput, forget
from denspu.exceptions import (
    DegenerateFitWarning,
    FewRowsWarning,
    InvalidInputError,
)
from denspu.priors.estimate import AUTO
from denspu.priors.experience import by_experience
from denspu.refinement.posterior import posterior

FOLDS = 5
"""Parts of P; every bag leaves one out."""

LEAST_DRAW = 0.02
"""No row of U is drawn less often than this in the second look, by its weight."""

KEPT_SCORES = 4_096
"""Scores of U by which a member places new rows, half of them from the top."""

BAGS_AT_ONCE = 20
SCORED_AT_ONCE = 20_000

SURE = 1e-6
"""Probabilities are kept inside (SURE, 1 - SURE) before they become log-odds."""

SLOPE = 1e-3
"""Log-odds rise at least so much with the margin: rows of one probability stay in
order."""

JUST = 1e-3
"""Log-odds of a row that must be called, though no more than that is known of it."""

KNOTS = 513
"""Margins at which log-odds are kept."""


@dataclass(frozen=True)
class Member:
    """One kind of learner, and how its bags are drawn."""

    name: str
    bags: int
    per_positive: int
    """Rows drawn from U for each positive in the bag."""
    most: int
    """Positives in a bag at most."""
    learner: Callable[[int], Any]
    """Makes a learner from a seed."""
    stays: bool = False
    """Is it kept whatever the evidence? Forty positives say little of which is best."""
    wide: bool = False
    """Does it read the sparse form of the rows?"""


MEMBERS = (
    Member(
        "trees",
        bags=200,
        per_positive=1,
        most=1_000,
        learner=lambda seed: DecisionTreeClassifier(
            max_features="sqrt", random_state=seed
        ),
        stays=True,
    ),
    Member(
        "random trees",
        bags=300,
        per_positive=1,
        most=1_000,
        learner=lambda seed: ExtraTreeClassifier(random_state=seed),
        stays=True,
    ),
    Member(
        "kernel",
        bags=25,
        per_positive=3,
        most=200,  # its time grows with the square of the rows
        learner=lambda seed: SVC(C=3.0, random_state=0),  # draws nothing
    ),
    Member(
        "linear",
        bags=25,
        per_positive=5,
        most=1_000,
        learner=lambda seed: LogisticRegression(C=0.3, max_iter=300),
    ),
)


WORDS = Member(
    "words",
    bags=25,
    per_positive=5,
    most=1_000,
    learner=lambda seed: LogisticRegression(C=10.0, solver="liblinear"),
    stays=True,
    wide=True,
)
"""Takes the place of the linear member where rows have a sparse form, and of the trees
as the one that stays: few directions hold less than all words."""


TREES = ("trees", "random trees")


class MembersRefiner(Refiner):
    """Bagged trees, random trees, kernel machines and linear models, joined by rank.

    Attributes
    ----------
    labels_ : array
        P(y = 1) of every training row: 1 for P, 0 for known negatives.
    unseen_scores_ : array
        Log-odds of every training row by bags that have not seen it; only where rows
        could be left out.
    prior_ : PriorEstimate
        The share of positives inside U with its interval.
    estimated_ : PriorEstimate
        What the scores say of it, also where it is known.
    evidence_ : list of dict
        For each look and member: the mean share of U that a labelled positive leaves
        below it, scored by bags without it, and whether the member was kept.
    lead_ : dict
        How much higher labelled positives stand among U than they do by the trees
        alone and by the boundary, in the mean, with its standard error.
    luck_ : float
        How often labels strewn at random over P and U would rank held-out positives so
        high; only where rows could be left out.
    """

    about = About(key="members", uses_known_negatives=True)

    looks: int = setting(
        2, Whole(1, 2), doc="1: rows of U are drawn alike, whatever they seem to be."
    )
    weights: Literal["evidence", "equal"] = setting(
        "evidence",
        OneOf("evidence", "equal"),
        doc='``"evidence"`` leaves out members that rank held-out positives more than\n'
        'one standard error worse than the best; ``"equal"`` keeps all.',
    )
    max_unlabeled: int = setting(
        50_000, Whole(2), doc="Rows of U that are learned from; a sample of more."
    )
    n_jobs: int | None = setting(
        None,
        OneOf(None),
        Whole(1),
        Whole(high=-1),
        doc="Threads; None is all cores.",
    )
    random_state: RandomState = setting(None)

    # --- learning --------------------------------------------------------------------

    def refine(self, start: RefinerInput) -> Self:
        """Learn from P and U; the boundary's guess gives way to the bags' own."""
        check_parameters(self)
        Z = validate_embedding(self, start.Z, reset=True)
        randomness = Randomness(self.random_state)
        self.mean_ = Z.mean(axis=0)
        self.spread_ = max(float(np.sqrt(Z.var(axis=0).mean())), 1e-12)
        if not np.ptp(Z, axis=0).any():
            warnings.warn(
                "All rows are the same to the model: no column varies, and nothing "
                "tells positives from the rest. Add columns that differ.",
                DegenerateFitWarning,
                stacklevel=2,
            )
        # Of a large U a sample is learned from; the others are new rows to the bags.
        free, kept = np.flatnonzero(start.free), np.arange(len(Z))
        if len(free) > self.max_unlabeled:
            rng = randomness.numpy("sample")
            drawn = rng.choice(free, self.max_unlabeled, replace=False)
            kept = np.sort(np.append(np.flatnonzero(~start.free), drawn))
        rows = Rows.of(self._scaled(Z), start, kept, randomness.numpy("folds"))
        self.takes_wide_ = rows.wide is not None
        if not rows.cross_fitted:
            warnings.warn(
                "Too few positives or groups to leave any out: nothing can be said of "
                "the quality of the ranking, and the share of positives stays as the "
                "boundary estimated it.",
                FewRowsWarning,
                stacklevel=2,
            )
        self.looks_: list[Look] = []
        self.evidence_: list[dict[str, Any]] = []
        taken: list[tuple[Look, list[Scored]]] = []
        chance = None
        for i in range(self.looks):
            if taken and start.deadline.left() <= 0:
                break
            rng = randomness.numpy(f"look {i}")
            scored = [self._score(one, rows, chance, rng) for one in rows.members]
            look, facts = take_look(scored, rows, keep_all=self.weights == "equal")
            taken.append((look, scored))
            self.looks_.append(look)
            self.evidence_.append(facts)
            margin = fair_margins(taken, rows)
            if i + 1 < self.looks and rows.free.any():
                chance = chances(look, scored, margin, rows, start, rng)
        votes = np.mean([one.own() for one in scored if one.name in TREES], axis=0)
        self._place_cut(margin, votes, rows, randomness.numpy("prior"), start)
        others = np.setdiff1d(np.arange(len(Z)), kept, assume_unique=True)
        scores = np.empty(len(Z))
        scores[kept] = self.curve_(margin)
        if len(others):
            wide = None if start.wide is None else start.wide[others]
            scores[others] = self._decided(Z[others], wide)
        if start.prior_known and start.free.any():
            ahead = known_cut(scores, start)
            self.curve_.shift -= ahead
            scores -= ahead
        self.labels_ = start.pinned(expit(scores))
        if rows.cross_fitted:
            self.unseen_scores_ = scores
        self._compare(margin, start.scores[kept], taken[0][1], rows)
        return self

    def _scaled(self, Z: FloatArray) -> FloatArray:
        """Return rows of mean square about 1, for learners that measure distances."""
        return np.asarray((Z - self.mean_) / self.spread_)

    def _score(
        self,
        member: Member,
        rows: Rows,
        chance: FloatArray | None,
        rng: np.random.Generator,
    ) -> Scored:
        """Fit a member's bags, and score each row by those that have not seen it."""
        found = Scored.empty(member.name, len(rows.Z))
        for at in range(0, member.bags, BAGS_AT_ONCE):
            numbers = range(at, min(at + BAGS_AT_ONCE, member.bags))
            bags = [rows.draw(member, i % FOLDS, chance, rng) for i in numbers]
            learned = in_threads(
                lambda bag: bag.learned(member, rows), bags, n_threads(self.n_jobs)
            )
            for bag, (learner, judged, scores) in zip(bags, learned, strict=True):
                found.learners.append(learner)
                found.total[bag.left_out, judged] += scores
                found.count[bag.left_out, judged] += 1
        if isinstance(found.learners[0], LogisticRegression):
            found.learners[:] = [Line.mean_of(found.learners)]
        return found

    # --- the cut ---------------------------------------------------------------------

    def _place_cut(
        self,
        margin: FloatArray,
        votes: FloatArray,
        rows: Rows,
        rng: np.random.Generator,
        start: RefinerInput,
    ) -> None:
        """Settle the share, and turn margins into log-odds of being positive."""
        positive, unlabeled = margin[rows.positive], margin[rows.free]
        for name in (
            "estimated_",
            "unseen_scores_",
            "prior_",
            "estimates_",
            "share_seen_",
        ):
            forget(self, name)
        share, likely = start.prior_in_unlabeled, None
        if rows.cross_fitted and len(unlabeled):
            self.estimates_ = {
                key: registry()
                .get(key, "prior")
                .build()
                .estimate(positive, unlabeled, rng)
                for key in AUTO
            }
            of = votes[rows.positive], votes[rows.free]
            found = by_experience(positive, unlabeled, self.estimates_, of)
            self.share_seen_ = found.seen
            self.estimated_ = self.prior_ = found.estimate
            if start.prior_known:
                self.prior_ = found.estimate.with_share(start.prior_in_unlabeled)
            else:
                share, likely = found.estimate.prior_in_unlabeled, found.likely
        self.curve_ = Curve.through(positive, unlabeled, share, likely)

    def _compare(
        self,
        margin: FloatArray,
        boundary: FloatArray,
        scored: list[Scored],
        rows: Rows,
    ) -> None:
        """Compare the ranking of P with that by simpler scores, and with luck."""
        for name in ("lead_", "luck_"):
            forget(self, name)
        if not (rows.cross_fitted and rows.free.any()):
            return

        def places(scores: FloatArray) -> FloatArray:
            return Places.among(scores[rows.free])(scores[rows.positive])

        rivals = {"boundary": places(boundary)}
        trees = (one for one in scored if one.name == "trees")
        rivals |= {one.name: places_of(one, rows) for one in trees}
        ours = places(margin)
        self.lead_ = {name: lead(ours - other) for name, other in rivals.items()}
        self.luck_ = luck(margin, rows)

    # --- answers ---------------------------------------------------------------------

    def decision_function(self, X: Any, wide: Any = None) -> FloatArray:
        """Return the log-odds of embeddings; above 0 is positive.

        ``wide`` is the sparse form of the rows, where the fit was given one.
        """
        if not hasattr(self, "curve_"):
            raise NotFittedError("MembersRefiner has not refined yet: call refine.")
        if self.takes_wide_ and wide is None:
            raise InvalidInputError(
                "These members also learned from the sparse form of the rows: pass it "
                "as wide, or call decision_function of the whole model."
            )
        return self._decided(validate_embedding(self, X, reset=False), wide)

    def _decided(self, Z: FloatArray, wide: Any) -> FloatArray:
        found = []
        for at in range(0, len(Z), SCORED_AT_ONCE):
            some = slice(at, at + SCORED_AT_ONCE)
            rows = self._scaled(Z[some]), None if wide is None else wide[some]
            looks = [look.margin(look.scores(*rows)) for look in self.looks_]
            found.append(self.curve_(np.mean(looks, axis=0)))
        return np.concatenate(found)

    def facts(self) -> dict[str, Any]:
        """Return who ranks, how well each ranks held-out positives, and the share."""
        last = self.evidence_[-1]
        return {
            "rounds": len(self.looks_),
            "members": [name for name, fact in last.items() if fact["kept"]],
            "places": {name: fact["place"] for name, fact in last.items()},
        }


# --- rows and bags -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bag:
    """Some of P against draws from U; one part of P is left out."""

    left_out: int
    positive: IntArray
    other: IntArray
    seed: int
    judged: IntArray
    """Rows that the bag may judge: it has seen neither them nor their group."""

    def learned(self, member: Member, rows: Rows) -> tuple[Any, IntArray, FloatArray]:
        """Return a learner of this bag, and its scores of the rows it may judge."""
        index = np.concatenate([self.positive, self.other])
        y = np.arange(len(index)) < len(self.positive)
        X = rows.wide if member.wide else rows.Z
        learner = member.learner(self.seed).fit(X[index], y)
        parts = [
            scores_of(learner, X[self.judged[at : at + SCORED_AT_ONCE]])
            for at in range(0, len(self.judged), SCORED_AT_ONCE)
        ]
        return learner, self.judged, np.concatenate(parts) if parts else np.empty(0)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a fit."""

    Z: FloatArray
    wide: Any
    """Their sparse form, or None."""
    positive: BoolArray
    free: BoolArray
    known_negative: BoolArray
    fold: IntArray
    grouped: bool

    @classmethod
    def of(
        cls,
        Z: FloatArray,
        start: RefinerInput,
        kept: IntArray,
        rng: np.random.Generator,
    ) -> Self:
        """Deal some of the rows into parts; no group is split."""
        positive, groups = start.positive[kept], start.groups
        groups = None if groups is None else groups[kept]
        fold = deal_even_folds(positive, groups, FOLDS, rng)
        wide = None if start.wide is None else start.wide[kept]
        known = positive, start.free[kept], start.known_negative[kept]
        return cls(Z[kept], wide, *known, fold, groups is not None)

    @property
    def members(self) -> tuple[Member, ...]:
        """Return who learns from such rows."""
        if self.wide is None:
            return MEMBERS
        return WORDS, *(replace(one, stays=False) for one in MEMBERS[:-1])

    @property
    def judged(self) -> BoolArray:
        """Return the rows among which others are placed: U, or what there is of it."""
        return self.free if self.free.any() else ~self.positive

    @property
    def folds(self) -> int:
        """Return into how many parts the rows were dealt; 1 if none can be left out."""
        return int(self.fold.max()) + 1

    @property
    def cross_fitted(self) -> bool:
        """Tell whether positives can be left out."""
        return self.folds > 1

    def draw(
        self,
        member: Member,
        turn: int,
        chance: FloatArray | None,
        rng: np.random.Generator,
    ) -> Bag:
        """Draw a bag; ``chance`` says how often each row is drawn, by part left out."""
        left_out = turn % self.folds
        inside = (self.fold != left_out) | (not self.cross_fitted)
        kept = np.flatnonzero(self.positive & inside)
        if len(kept) > member.most:
            kept = rng.choice(kept, member.most, replace=False)
        within = inside if self.grouped else np.ones_like(inside)
        told = np.flatnonzero(self.known_negative & within)
        pool = np.flatnonzero(self.free & within)
        size = member.per_positive * len(kept)
        told = rng.permutation(told)[: max(size // 2, size - len(pool))]
        # Never more than half of U: the others are to be judged.
        size = min(size - len(told), max(len(pool) // 2, 1), len(pool))
        weight = None
        if chance is not None:
            weight = chance[left_out, pool] / chance[left_out, pool].sum()
        other = np.append(told, rng.choice(pool, size, replace=False, p=weight))
        judged = (self.fold == left_out) & self.cross_fitted
        if not self.grouped:
            judged |= ~self.positive
            judged[other] = False
        return Bag(left_out, kept, other, _seed(rng), np.flatnonzero(judged))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31 - 1))


@dataclass(frozen=True, eq=False)
class Line:
    """The mean of linear models is one."""

    weights: FloatArray
    intercept: float

    @classmethod
    def mean_of(cls, models: list[LogisticRegression]) -> Self:
        """Return the model whose margin is the mean of theirs."""
        weights = np.mean([model.coef_[0] for model in models], axis=0)
        return cls(weights, float(np.mean([model.intercept_[0] for model in models])))

    def decision_function(self, X: Any) -> FloatArray:
        """Return the margin, summed row by row.

        A product of matrices depends in its last bits on how many rows it has.
        """
        if issparse(X):
            return np.asarray(X @ self.weights + self.intercept)
        return np.asarray((X * self.weights).sum(axis=1) + self.intercept)


def scores_of(learner: Any, X: Any) -> FloatArray:
    """Return the margin of a learner, or its share of votes."""
    if isinstance(learner, LogisticRegression):
        learner = Line.mean_of([learner])
    if hasattr(learner, "decision_function"):
        return np.asarray(learner.decision_function(X))
    return np.asarray(learner.predict_proba(X)[:, 1])


@dataclass(frozen=True, eq=False)
class Scored:
    """A member's learners, and what they say of rows they have not seen."""

    name: str
    learners: list[Any]
    total: FloatArray
    """Sums of scores, by part left out and row."""
    count: FloatArray

    @classmethod
    def empty(cls, name: str, n: int) -> Self:
        """Return a member without a bag."""
        return cls(name, [], np.zeros((FOLDS, n)), np.zeros((FOLDS, n)))

    def own(self, left_out: int | slice = slice(None)) -> FloatArray:
        """Return the mean score of each row, by all bags or those without one part.

        Rows that no such bag may judge get the mean of all.
        """
        total, count = (
            np.atleast_2d(a[left_out]).sum(0) for a in (self.total, self.count)
        )
        mean = total / np.maximum(count, 1)
        none = count == 0
        if none.any():
            everything = self.total.sum(0) / np.maximum(self.count.sum(0), 1)
            mean[none] = everything[none]
        return mean


# --- members joined ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Places:
    """Where a score stands among those of U."""

    scores: FloatArray
    """Some scores of U in rising order, with the lowest and the highest."""
    ranks: FloatArray
    """How many rows of U lie below each of them."""
    n: int

    @classmethod
    def among(cls, unlabeled: FloatArray) -> Self:
        """Keep enough of the scores to place others, the top more closely."""
        ordered, n = np.sort(unlabeled), len(unlabeled)
        ranks = np.arange(n)
        if n > KEPT_SCORES:
            half = KEPT_SCORES // 2
            below = np.linspace(0, n - half - 1, half).astype(np.int64)
            ranks = np.concatenate([below, np.arange(n - half, n)])
        return cls(ordered[ranks], ranks.astype(np.float64), n)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the share of U below each score; of equal rows half count."""
        left = np.searchsorted(self.scores, scores, "left")
        right = np.searchsorted(self.scores, scores, "right")
        ends = np.append(self.ranks, self.n)
        return np.asarray((ends[left] + ends[right]) / (2 * self.n))


@dataclass(frozen=True, eq=False)
class Look:
    """The members that were kept, and the places of their scores."""

    learners: dict[str, list[Any]]
    places: dict[str, Places]

    def scores(self, Z: FloatArray, wide: Any) -> dict[str, FloatArray]:
        """Return the mean score of each member's learners."""
        found: dict[str, FloatArray] = {}
        for name, learners in self.learners.items():
            X = wide if name == WORDS.name else Z
            total = np.zeros(len(Z))
            for learner in learners:
                total += scores_of(learner, X)
            found[name] = total / len(learners)
        return found

    def margin(
        self, scores: dict[str, FloatArray], among: dict[str, Places] | None = None
    ) -> FloatArray:
        """Return -log of the geometric mean of the shares of U above a row.

        ``among`` replaces the places, where scores are those of some bags alone.
        """
        places = {name: (among or self.places)[name] for name in self.places}
        above = [1 - place(scores[name]) for name, place in places.items()]
        least = 0.5 / next(iter(places.values())).n
        return -np.log(np.stack(above) + least).mean(axis=0)


def take_look(
    scored: list[Scored], rows: Rows, *, keep_all: bool
) -> tuple[Look, dict[str, Any]]:
    """Judge the members by the places of P among U, and keep the good ones.

    The difference to the best is taken positive by positive, so that what makes a
    positive hard for all members does not count.
    """
    places = {one.name: Places.among(one.own()[rows.judged]) for one in scored}
    own = np.stack([places_of(one, rows) for one in scored])
    kept = np.ones(len(scored), dtype=bool)
    if rows.cross_fitted and not keep_all:
        behind = own[own.mean(axis=1).argmax()] - own
        error = behind.std(axis=1, ddof=1) / np.sqrt(own.shape[1])
        kept = behind.mean(axis=1) <= error
        kept |= [member.stays for member in rows.members]
    facts = {
        one.name: {"place": round(float(place), 4), "kept": bool(stays)}
        for one, place, stays in zip(scored, own.mean(axis=1), kept, strict=True)
    }
    chosen = [one for one, stays in zip(scored, kept, strict=True) if stays]
    learners = {one.name: one.learners for one in chosen}
    return Look(learners, {name: places[name] for name in learners}), facts


def places_of(one: Scored, rows: Rows) -> FloatArray:
    """Return where each positive stands among U by a member's bags without it."""
    place = np.empty(len(rows.positive))
    for part in range(rows.folds):
        scores = one.own(part)
        here = rows.positive & (rows.fold == part)
        place[here] = Places.among(scores[rows.judged])(scores[here])
    return place[rows.positive]


def fair_margins(taken: list[tuple[Look, list[Scored]]], rows: Rows) -> FloatArray:
    """Return the margin of each row by bags that have not seen it.

    A positive is judged by a fifth of the bags, whose mean is noisier than that of all
    bags, by which U is judged. So it is placed among the scores that those few bags
    give to U, and put at that place among the margins of U.
    """
    margin = np.mean(
        [
            look.margin({one.name: one.own() for one in scored})
            for look, scored in taken
        ],
        axis=0,
    )
    if not rows.cross_fitted:
        return margin
    ordered = np.sort(margin[rows.judged])
    for part in range(rows.folds):
        apart = []
        for look, scored in taken:
            scores = {one.name: one.own(part) for one in scored}
            among = {k: Places.among(v[rows.judged]) for k, v in scores.items()}
            apart.append(look.margin(scores, among))
        few = np.mean(apart, axis=0)
        here = rows.positive & (rows.fold == part)
        place = Places.among(few[rows.judged])(few[here])
        at = place * len(ordered) - 0.5
        margin[here] = np.interp(at, np.arange(len(ordered)), ordered)
    return margin


def lead(ahead: FloatArray) -> tuple[float, float]:
    """Return the mean of paired differences and its standard error."""
    return float(ahead.mean()), float(ahead.std(ddof=1) / np.sqrt(len(ahead)))


def luck(margin: FloatArray, rows: Rows) -> float:
    """Return how often labels that say nothing would rank held-out positives so high.

    Each part of P is compared with U by bags without it: a rank sum, exact whatever the
    bags have learned. The parts depend on each other, so Cauchy's rule joins them.
    """
    chances = []
    for part in range(rows.folds):
        here = margin[rows.positive & (rows.fold == part)]
        found = mannwhitneyu(here, margin[rows.free], alternative="greater")
        chances.append(np.clip(found.pvalue, SURE, 1 - SURE))
    joined = np.tan((0.5 - np.array(chances)) * np.pi).mean()
    return float(0.5 - np.arctan(joined) / np.pi)


def chances(
    look: Look,
    scored: list[Scored],
    margin: FloatArray,
    rows: Rows,
    start: RefinerInput,
    rng: np.random.Generator,
) -> FloatArray:
    """Return how often each row is to be drawn in the next look, by part left out.

    Bags without a part of P draw by what bags without it say, so that no positive is
    judged by a model that has seen it in a roundabout way.
    """
    open_rows = margin[rows.free]
    found = posterior(
        margin[rows.positive],
        open_rows,
        rng=rng,
        known=start.prior_in_unlabeled if start.prior_known else None,
    )
    order = np.argsort(open_rows, kind="stable")
    chance = np.ones((FOLDS, len(margin)))
    for part in range(rows.folds):
        apart = look.margin({one.name: one.own(part) for one in scored})
        probability = np.interp(apart, open_rows[order], found.unlabeled[order])
        chance[part] = np.clip(1 - probability, LEAST_DRAW, 1)
    return chance


# --- from margins to log-odds --------------------------------------------------------


@dataclass(eq=False)
class Curve:
    """Rising log-odds of being positive along a margin."""

    margins: FloatArray
    log_odds: FloatArray
    shift: float = 0.0

    @classmethod
    def through(
        cls,
        positive: FloatArray,
        unlabeled: FloatArray,
        share: float,
        likely: FloatArray | None = None,
    ) -> Self:
        """Learn P(y = 1) of rows of U by their margin, over shares that are likely.

        As many rows lie above 0 as the share says. Where fewer are likelier positive
        than not, the rows between get a half and no more.
        """
        likely = np.array([share]) if likely is None else likely
        if not len(unlabeled) or not 0 < share < 1:
            sure = logit(SURE if share <= 0 else 1 - SURE)
            return cls(np.array([0.0, 1.0]), np.array([sure, sure]))
        both = np.concatenate([positive, unlabeled])
        knots = np.unique(np.quantile(both, np.linspace(0, 1, KNOTS)))
        middle = HiddenPositive(positive, unlabeled, share)(knots)
        # P(y = 1) is the share times a ratio of densities that does not know it.
        chance = np.minimum(middle * likely[:, None] / share, 1).mean(axis=0)
        log_odds = logit(np.clip(np.maximum.accumulate(chance), SURE, 1 - SURE))
        cut = cut_at(unlabeled, share)
        log_odds = np.where(
            knots > cut, log_odds.clip(JUST), log_odds.clip(None, -JUST)
        )
        place = int(np.searchsorted(knots, cut, "right"))
        knots, log_odds = np.insert(knots, place, cut), np.insert(log_odds, place, 0.0)
        return cls(knots, log_odds)

    def __call__(self, margin: FloatArray) -> FloatArray:
        """Return the log-odds; they rise a little wherever the margin does."""
        along = np.interp(margin, self.margins, self.log_odds)
        zero = np.interp(0.0, self.log_odds, self.margins)
        return along + SLOPE * (margin - zero) + self.shift
