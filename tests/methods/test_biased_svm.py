"""Biased SVM: two costs, chosen by a criterion that needs no negative label."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from denspu import make_pu
from denspu.methods import biased_svm
from denspu.methods.biased_svm import BiasedSVM, Costs, criterion


@pytest.fixture(scope="module")
def pu():
    rng = np.random.default_rng(10)
    truth = (np.arange(300) % 2 == 0).astype(int)
    X = rng.normal(size=(300, 4)) + 1.2 * (2 * truth - 1)[:, None]
    return make_pu(X, truth, n_labeled=0.2, random_state=10)


def fit(pu, **given):
    model = BiasedSVM(random_state=10, device="cpu")
    return model.fit(pu.X, pu.y, **given)


def test_it_learns_what_a_plain_classifier_of_p_against_u_does_not(pu):
    hidden = pu.y == 0
    truth = pu.oracle.labels[hidden]
    model = fit(pu)
    plain = SVC().fit(pu.X, pu.y)
    assert np.mean(model.predict(pu.X[hidden]) == truth) > 0.93
    assert np.mean(plain.predict(pu.X[hidden]) == truth) < 0.7


@pytest.mark.parametrize(
    ("called", "labelled", "wanted"),
    [
        ([1, 1, 0, 0], [1, 1, 0, 0], 2.0),  # r = 1, half called
        ([1, 1, 1, 1], [1, 1, 0, 0], 1.0),  # r = 1, all called
        ([1, 0, 0, 0], [1, 1, 0, 0], 1.0),  # r = 1/2, a quarter called
        ([0, 0, 0, 0], [1, 1, 0, 0], 0.0),
    ],
)
def test_the_criterion_by_hand(called, labelled, wanted):
    assert criterion(np.array(called, bool), np.array(labelled, bool)) == wanted


def test_the_costs_with_the_largest_criterion_are_taken(pu, monkeypatch):
    seen = []

    def watched(task, fold, cost, ratio):
        found = Costs(cost, cost * ratio, float(cost == 0.1 and ratio == 5))
        seen.append((cost, ratio))
        return found

    monkeypatch.setattr(biased_svm, "judge", watched)
    model = fit(pu)
    assert model.costs_ == Costs(0.1, 0.5, 1.0)
    assert len(seen) == len(biased_svm.COSTS) * len(biased_svm.RATIOS)
    weight = np.where(pu.y == 1, 0.5, 0.1)
    rows = model.scale_(model._embed(pu.X))
    wanted = SVC(C=1.0).fit(rows, pu.y, sample_weight=weight)
    assert model.decision_function(pu.X) == pytest.approx(
        wanted.decision_function(rows), abs=1e-6
    )


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_no_row_is_judged_by_a_classifier_that_saw_it(pu, monkeypatch):
    pairs = []
    plain = biased_svm.fitted

    def watched(task, index, costs, name):
        model = plain(task, index, costs, name)
        model.seen = set(index)
        return model

    def scores(task, model, index):
        pairs.append(model.seen & set(index))
        return np.ones(len(index))

    monkeypatch.setattr(biased_svm, "fitted", watched)
    monkeypatch.setattr(biased_svm.EstimatorTask, "scores", scores)
    fit(pu)
    assert pairs
    assert not any(pairs)


def test_known_negatives_cost_as_much_as_p(pu):
    known = np.zeros(len(pu.y), dtype=bool)
    known[np.flatnonzero(pu.oracle.labels == 0)[:60]] = True
    without, told = fit(pu), fit(pu, known_negative=known)
    assert told.decision_function(pu.X[known]).mean() < (
        without.decision_function(pu.X[known]).mean()
    )
