"""The contracts, on the smallest parts that keep them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import NotFittedError

from denspu._parameters import Number, setting
from denspu._random import Randomness
from denspu.base import (
    CONTAMINATION_RULE,
    FIXED_ROWS,
    Detector,
    in_fixed_rows,
)
from denspu.exceptions import (
    DegenerateFitWarning,
    InvalidInputError,
    InvalidParameterError,
    did_you_mean,
    with_article,
)
from denspu.methods._base import DEGENERACY_SAMPLE, PUClassifier


class First(PUClassifier):
    """Log-odds are the first column, shifted."""

    shift: float = setting(0.0, Number(-100, 100))
    random_state: Any = setting(None)

    def _fit(self, data, randomness):
        self.seen_ = data
        self.seed_ = randomness.seed("x")

    def _decide(self, X):
        return X[:, 0] + self.shift


class Column(Detector):
    """Normality is the first column."""

    contamination: Any = setting("auto", *CONTAMINATION_RULE)

    def _fit(self, Z, randomness):
        self.rows_ = len(Z)

    def _score(self, Z):
        return Z[:, 0]

    def _natural_threshold(self):
        return 2.5


X = np.array([[-3.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [2.0, 0.0], [30.0, 0.0]])
Y = np.array([0, 0, 0, 1, 1])


# --- PU classifiers -------------------------------------------------------------------


def test_answers_follow_the_log_odds():
    model = First(shift=0.5).fit(X, Y)
    odds = X[:, 0] + 0.5
    assert np.array_equal(model.decision_function(X), odds)
    assert model.predict(X).tolist() == [0, 0, 1, 1, 1]
    assert model.predict(X).dtype == np.int64
    assert np.allclose(model.predict_proba(X)[:, 1], expit(odds))
    assert np.array_equal(model.predict_proba(X).sum(axis=1), np.ones(5))
    assert model.classes_.tolist() == [0, 1]


def test_zero_log_odds_is_negative():
    assert First(shift=0.5).fit(X, Y).predict([[-0.5, 0.0]]).tolist() == [0]


def test_fit_checks_parameters_before_data():
    with pytest.raises(InvalidParameterError, match="'shift' parameter of First"):
        First(shift=1000).fit("nonsense", None)


def test_fit_hands_checked_data_and_one_seed_on():
    model = First(random_state=5, shift=0.5)
    model.fit(X.tolist(), Y, known_negative=np.arange(5) == 0, groups=list("abcde"))
    assert model.seen_.positive.tolist() == [False, False, False, True, True]
    assert model.seen_.known_negative.tolist() == [True] + [False] * 4
    assert model.seen_.groups.tolist() == [0, 1, 2, 3, 4]
    assert model.seed_ == Randomness(5).seed("x")


@pytest.mark.parametrize("answer", ["decision_function", "predict", "predict_proba"])
def test_before_fit(answer):
    with pytest.raises(NotFittedError):
        getattr(First(), answer)(X)


def test_known_negative_and_groups_are_by_name_only():
    with pytest.raises(TypeError):
        First().fit(X, Y, np.zeros(5, bool))


@pytest.mark.parametrize(("shift", "verdict"), [(50.0, "positive"), (-50, "negative")])
def test_one_answer_for_all_of_u_warns(shift, verdict):
    with pytest.warns(DegenerateFitWarning, match=f"every unlabelled row {verdict}"):
        First(shift=shift).fit(X, Y)


def test_two_answers_do_not_warn():
    First(shift=2.0).fit(X, Y)


def test_the_positives_do_not_hide_a_degenerate_fit():
    with pytest.warns(DegenerateFitWarning, match="negative"):
        First().fit(X, Y)


def test_degeneracy_is_judged_on_a_sample_spread_over_u():
    n = 3 * DEGENERACY_SAMPLE
    table = np.ones((n + 2, 1))
    table[: n // 2] = -1.0
    y = np.r_[np.zeros(n), 1, 1]
    looked_at = []

    class Counting(First):
        def _decide(self, X):
            looked_at.append(len(X))
            return super()._decide(X)

    Counting().fit(table, y)
    assert looked_at == [DEGENERACY_SAMPLE]


def test_fit_sees_held_out_positives_as_unlabelled():
    table = np.r_[X, [[3.0, 0.0], [4.0, 0.0]]]
    y = np.r_[Y, 1, 1]
    mask = np.arange(7) == 6
    model = First(shift=2.0, random_state=5).fit(table, y, holdout=mask)
    assert np.flatnonzero(model.seen_.positive).tolist() == [3, 4, 5]
    assert np.flatnonzero(model.seen_.held_out).tolist() == [6]
    assert model.evidence_.held_out.tolist() == [6]
    assert model.evidence_.positive.tolist() == [6.0]
    assert model.evidence_.unlabeled.tolist() == [-1.0, 1.0, 2.0]
    assert model.evidence_.n_labeled == 4
    assert model.seed_ == Randomness(5).seed("x")  # a hold-out takes no number away


def test_without_holdout_there_is_no_evidence():
    model = First(shift=2.0).fit(X, Y)
    assert model.seen_.held_out is None
    assert not hasattr(model, "evidence_")


def test_a_failed_hold_out_leaves_the_last_fit():
    model = First(shift=2.0).fit(X, Y).set_threshold(1.0)
    with pytest.raises(InvalidInputError, match="leaves 1 of 2"):
        model.fit(X, Y, holdout=0.5)
    assert model.threshold_ == 1.0


def test_the_degenerate_warning_looks_at_the_fits_own_cut():
    model = First(shift=2.0).fit(X, Y).set_threshold(1000.0)
    assert model.predict(X).tolist() == [0] * 5
    model.fit(X, Y)  # warns of nothing: the cut is 0 again
    assert model.predict(X).tolist() == [0, 1, 1, 1, 1]


# --- detectors ------------------------------------------------------------------------


def test_natural_threshold_with_auto():
    detector = Column().fit(X)
    assert detector.threshold_ == detector.offset_ == 2.5
    assert detector.predict([[2.4, 0], [2.5, 0], [9, 0]]).tolist() == [-1, 1, 1]
    assert detector.decision_function([[3.0, 0]]).tolist() == [0.5]


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_contamination_leaves_that_share_outside(share):
    Z = np.random.default_rng(0).normal(size=(200, 2))
    detector = Column(contamination=share).fit(Z)
    assert np.mean(detector.predict(Z) == -1) == pytest.approx(share)
    assert detector.threshold_ == np.quantile(Z[:, 0], share)


def test_threshold_can_be_moved_after_fit():
    detector = Column().fit(X)
    detector.threshold_ = -2.0
    assert detector.predict(X).tolist() == [-1, 1, 1, 1, 1]
    assert detector.offset_ == -2.0


class Unmarked(Column):
    """Has no threshold of its own."""

    def _natural_threshold(self):
        return None


def test_without_a_natural_threshold_a_twentieth_lies_outside():
    Z = np.random.default_rng(0).normal(size=(200, 2))
    assert Unmarked().fit(Z).threshold_ == np.quantile(Z[:, 0], 0.05)


RULES = [
    ("value", 1.25, None, 1.25),
    ("value", 0.0, None, 0.0),
    ("held_out", 0.25, [[0.0, 0], [1, 0], [2, 0], [3, 0], [4, 0]], 1.0),
    ("prior", 0.4, [[0.0, 0], [1, 0], [2, 0], [3, 0], [4, 0]], 3.0),
    ("otsu", None, [[0.0, 0], [1, 0], [9, 0], [10, 0]], 5.0),
    ("contamination", 0.5, X, 0.0),
]


@pytest.mark.parametrize(("rule", "amount", "Z", "cut"), RULES)
def test_threshold_by_rule(rule, amount, Z, cut):
    detector = Column().fit(X)
    assert detector.set_threshold(rule, amount, Z) is detector
    assert detector.threshold_ == cut


def test_contamination_rule_remembers_the_training_scores():
    Z = np.random.default_rng(0).normal(size=(200, 2))
    detector = Column(contamination=0.1).fit(Z).set_threshold("contamination", 0.3)
    assert detector.threshold_ == np.quantile(Z[:, 0], 0.3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("ottsu",), "Did you mean 'otsu'"),
        (("value",), "needs amount to be a number"),
        (("prior", 1.5, X), r"a number in \[0, 1\]. Got 1.5"),
        (("otsu",), "pass them as Z"),
        (("held_out", 0.1), "pass them as Z"),
        (("contamination", 0.1), "pass them as Z"),
    ],
)
def test_threshold_rules_refuse_what_is_missing(call, words):
    with pytest.raises(InvalidParameterError, match=words):
        Column().fit(X).set_threshold(*call)


@pytest.mark.parametrize("bad", [0, 0.6, "some", None])
def test_contamination_out_of_range(bad):
    with pytest.raises(
        InvalidParameterError, match=r"'auto' or a number in \(0, 0.5\]"
    ):
        Column(contamination=bad).fit(X)


def test_detector_before_fit_and_with_other_columns():
    with pytest.raises(NotFittedError):
        Column().score_samples(X)
    with pytest.raises(InvalidInputError, match="expecting 2 features"):
        Column().fit(X).score_samples(np.ones((3, 3)))


# --- words ----------------------------------------------------------------------------


def test_did_you_mean():
    assert did_you_mean("midpont", ["midpoint", "mixup"]) == " Did you mean 'midpoint'?"
    assert did_you_mean("zzz", ["midpoint", "mixup"]) == ""


def test_with_article():
    assert with_article("encoder") == "an encoder"
    assert with_article("method") == "a method"


def test_rows_are_scored_in_blocks_of_one_size():
    seen = []

    def score(rows):
        seen.append(len(rows))
        return rows[:, 0]

    Z = np.arange(2.0 * FIXED_ROWS + 6)[:, None]
    assert np.array_equal(in_fixed_rows(score, Z), Z[:, 0])
    assert np.array_equal(in_fixed_rows(score, Z[:1]), Z[:1, 0])
    assert set(seen) == {FIXED_ROWS}
