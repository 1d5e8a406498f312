"""What a fitted model tells of itself: on the smallest model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from denspu import load
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.metrics import PUReport, pu_metrics
from tests.test_base import First

pytestmark = pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")


class Given(First):
    """Knows the prior."""

    def __init__(self, *, prior=0.4, scenario="one-sample", random_state=0):
        self.prior = prior
        self.scenario = scenario
        self.random_state = random_state
        self.shift = 0.0


def sample(n_labeled=40, n_hidden=60, n_negative=140, seed=0):
    """Return rows and PU labels; the first column tells the classes apart."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_labeled + n_hidden + n_negative) < n_labeled + n_hidden
    X = rng.normal(2 * truth - 1, 1, (2, len(truth))).T
    return X, (np.arange(len(truth)) < n_labeled).astype(int)


X, Y = sample()
OVERALL = 100 / 240
INSIDE = 60 / 200


def fitted(**settings):
    return Given(prior=OVERALL, **settings).fit(X, Y, holdout=0.25)


# --- the threshold --------------------------------------------------------------------


def test_predict_cuts_at_the_threshold():
    model = First().fit(X, Y)
    assert model.threshold_ == 0.0
    assert model.set_threshold(0.5) is model
    assert np.array_equal(model.predict(X), (X[:, 0] > 0.5).astype(int))
    assert model.set_threshold(value=-1).threshold_ == -1.0


@pytest.mark.parametrize(
    "rule",
    [{"recall": 0.8}, {"precision": 0.8}, {"top": 25}, {"prior": True}],
    ids=["recall", "precision", "top", "prior"],
)
def test_thresholds_by_rule(rule):
    model = fitted().set_threshold(**rule)
    choice = model.threshold_choice_
    assert model.threshold_ == choice.threshold
    assert [choice.rule] == list(rule)
    called = model.predict(X)[Y == 0].sum()
    assert called == choice.n_called == choice.report.n_called
    if "top" in rule:
        assert called == 25
    if "prior" in rule:
        assert called == 60
    if "recall" in rule:
        assert np.mean(model.evidence_.positive > model.threshold_) >= 0.8
    if "precision" in rule:
        assert choice.report["precision"].value >= 0.8
        assert choice.report.prior_in_unlabeled == pytest.approx(INSIDE)


def test_a_share_known_from_elsewhere_moves_the_cut():
    model = fitted()
    for share, called in ((0.1, 20), (0.45, 90)):
        model.set_threshold(prior_in_unlabeled=share)
        assert model.predict(X)[Y == 0].sum() == called
        assert model.threshold_choice_.rule == "prior"
        told = model.threshold_choice_.report
        assert told.prior_in_unlabeled == pytest.approx(share)
        assert told["recall"] == model.evaluate(prior_in_unlabeled=share)["recall"]
    assert model.evidence_.prior_in_unlabeled == pytest.approx(INSIDE)  # as it was


def test_a_value_forgets_the_choice():
    model = fitted().set_threshold(top=10).set_threshold(0.0)
    assert not hasattr(model, "threshold_choice_")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({}, "exactly one of .* Got none"),
        ({"recall": 0.9, "top": 3}, r"Got recall=0.9, top=3"),
        ({"value": 1.0, "prior": True}, r"Got value=1.0, prior=True"),
        ({"recall": 1.2}, r"recall must be a number in \(0, 1\]. Got 1.2"),
        ({"precision": 0}, r"precision must be a number in \(0, 1\]. Got 0 "),
        ({"top": 2.5}, r"top must be an integer in \[1, inf\)?. Got 2.5"),
        ({"top": 201}, r"top=201 must be an integer in \[1, 200\]"),
        ({"prior": False}, "prior must be True. Got False"),
        (
            {"prior_in_unlabeled": 1.4},
            r"prior_in_unlabeled must be .*\[0, 1\]. Got 1.4",
        ),
        ({"value": "high"}, "value must be a number .* Got 'high'"),
        ({"value": np.nan}, "value must be a number .* Got nan"),
    ],
    ids=lambda v: ",".join(v) if isinstance(v, dict) else "",
)
def test_thresholds_refuse(call, words):
    model = fitted()
    with pytest.raises(InvalidParameterError, match=words):
        model.set_threshold(**call)
    assert model.threshold_ == 0.0


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.set_threshold(recall=0.9),
        lambda m: m.calibrate(),
        lambda m: m.evaluate(),
        lambda m: m.evaluate(X[:20]),
        lambda m: m.evaluate(None, X[:20]),
    ],
    ids=["threshold", "calibrate", "evaluate", "one", "other"],
)
def test_without_evidence_the_error_says_what_to_do(ask):
    with pytest.raises(InvalidInputError, match=r"Fit with fit\(X, y, holdout=0.2\)"):
        ask(First().fit(X, Y))


@pytest.mark.parametrize("ask", ["set_threshold", "calibrate", "evaluate", "save"])
def test_before_fit(ask, tmp_path):
    words = {"set_threshold": [0.0], "save": [tmp_path / "m"]}.get(ask, [])
    with pytest.raises(NotFittedError):
        getattr(First(), ask)(*words)


# --- probabilities --------------------------------------------------------------------


def test_calibrate_changes_probabilities_and_nothing_else():
    model = fitted()
    before = model.predict(X)
    assert np.allclose(model.predict_proba(X)[:, 1], expit(X[:, 0]))
    assert model.calibrate() is model
    found = model.predict_proba(X)
    assert np.allclose(found.sum(axis=1), 1)
    assert found[Y == 0, 1].mean() == pytest.approx(INSIDE)
    order = np.argsort(X[:, 0])
    assert (np.diff(found[order, 1]) >= 0).all()
    assert np.array_equal(model.predict(X), before)
    assert np.array_equal(model.decision_function(X), X[:, 0])


# --- evaluation -----------------------------------------------------------------------


def test_evaluate_is_pu_metrics_of_the_evidence():
    model = fitted().set_threshold(0.3)
    evidence = model.evidence_
    report = model.evaluate(k=20, level=0.8)
    wanted = pu_metrics(
        evidence.positive,
        evidence.unlabeled,
        prior_in_unlabeled=INSIDE,
        threshold=0.3,
        k=20,
        level=0.8,
        random_state=0,
    )
    assert isinstance(report, PUReport)
    for figure in report:
        assert figure.value == pytest.approx(wanted[figure.name].value)
        assert figure.low == pytest.approx(wanted[figure.name].low)
    assert report["precision_at_20"].level == 0.8


def test_evaluate_on_the_population_counts_all_labelled_rows():
    report = fitted().evaluate(population="population")
    assert report.prior == pytest.approx(OVERALL)
    assert report.prior_in_unlabeled == pytest.approx(INSIDE)


def test_few_rows_have_a_smaller_k():
    assert "precision_at_200" in fitted().evaluate(k=1000).figures


def test_evaluate_on_rows_of_ones_own():
    model = First().fit(X, Y)
    more, y = sample(200, 300, 700, seed=1)
    P, U = more[y == 1], more[y == 0]
    found = model.evaluate(P, U)
    assert found["recall"].value == pytest.approx(np.mean(P[:, 0] > 0))
    assert found.prior_in_unlabeled == pytest.approx(0.3, abs=0.1)  # estimated
    known = model.evaluate(P, U, prior_in_unlabeled=0.3)
    assert known.prior_in_unlabeled == 0.3
    assert known["precision"].low > found["precision"].low  # no doubt of the prior


def test_rows_of_ones_own_take_the_place_of_the_evidence():
    model = fitted()
    P = X[:5] + 10.0
    assert model.evaluate(P)["recall"].value == 1.0
    assert model.evaluate(P).prior_in_unlabeled == pytest.approx(INSIDE)
    report = model.evaluate(X_unlabeled=X[Y == 0][::2])
    assert (report.n_positive, report.n_unlabeled) == (10, 100)
    assert model.evidence_.unlabeled.shape == (200,)


# --- fit again, save, doors -----------------------------------------------------------


def test_a_new_fit_forgets():
    model = fitted().set_threshold(recall=0.9).calibrate()
    model.fit(X, Y)
    assert model.threshold_ == 0.0
    for name in ("evidence_", "threshold_choice_", "posterior_"):
        assert not hasattr(model, name)
    assert np.allclose(model.predict_proba(X)[:, 1], expit(X[:, 0]))


def test_clone_is_unfitted():
    model = clone(fitted().set_threshold(1.0).calibrate())
    assert not [name for name in vars(model) if name.endswith("_")]


def test_save_is_the_front_doors_save(tmp_path):
    from denspu import make

    model = make("one_class", prior=0.45, random_state=0).fit(X, Y, holdout=0.3)
    folder = model.save(tmp_path / "model")
    assert np.array_equal(load(folder).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="overwrite"):
        model.save(folder)
    assert model.save(folder, overwrite=True) == folder
