"""Thresholds, lists with a promise, doubts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.metrics import (
    _decisions,
    benjamini_hochberg,
    choose_threshold,
    conformal_p_values,
    declared_negatives,
    declared_positives,
    oracle_metrics,
    scar_check,
    trivial_check,
)

U = np.array([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
P = np.array([8.5, 7.5, 6.5, 5.5, 1.5])
rows = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=25)


def test_top_and_prior_call_as_many_as_asked():
    top = choose_threshold(P, U, rule="top", target=4)
    assert (top.threshold, top.n_called, top.reached, top.report) == (
        5.5,
        4,
        True,
        None,
    )
    prior = choose_threshold(P, U, prior_in_unlabeled=0.4, random_state=0)
    assert prior.threshold == top.threshold
    assert prior.report.n_called == 4
    assert prior.report["precision"].value == pytest.approx(4 * 0.6 / 4, abs=0.21)


@given(scores=rows, k=st.integers(1, 25))
def test_never_more_than_k_unless_ties_leave_nothing_else(scores, k):
    k = min(k, len(scores))
    found = choose_threshold([1.0], scores, rule="top", target=k)
    called = np.sum(np.array(scores) > found.threshold)
    assert called == found.n_called >= 1
    top = np.sum(np.array(scores) == max(scores))
    assert called <= k or called == top
    assert found.reached == (called == k)
    assert ("share the score" in found.sentence) == (called != k)


def test_ties_are_told():
    tied = choose_threshold(P, [3.0, 2.0, 2.0], rule="top", target=2)
    assert tied.n_called == 1
    assert "2 rows share the score at the cut (fewer)" in str(tied)
    top = choose_threshold(P, [2.0, 2.0, 1.0], rule="top", target=1)
    assert top.n_called == 2


def test_prior_0_and_1():
    assert choose_threshold(P, U, prior_in_unlabeled=0).n_called == 0
    assert choose_threshold(P, U, prior_in_unlabeled=1).n_called == 10


def test_recall_is_promised_to_a_new_positive():
    """Over draws, the chance to pass is at least the target, and not far above."""
    rng = np.random.default_rng(0)
    passed = [
        np.mean(rng.normal(size=500) > choose_threshold(
            rng.normal(size=20), U, rule="recall", target=0.9).threshold)
        for _ in range(200)
    ]  # fmt: skip
    assert 0.89 <= np.mean(passed) <= 0.92  # 19 of 21 places: 0.905
    few = choose_threshold(P, U, rule="recall", target=0.9)
    assert not few.reached
    assert few.n_called == 10
    assert "0.833" in few.sentence


def test_precision_takes_the_lowest_cut_that_is_good_enough():
    """Prior 0.4, 10 rows: hits 4 r(k); r = 0 .2 .4 .6 .8 .8 .8 .8 1 1 by rank."""
    hits = 4 * np.array([0, 0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.8, 1, 1])
    precision = hits / np.arange(1, 11)
    k = np.flatnonzero(precision >= 0.5)[-1] + 1
    found = choose_threshold(
        P, U, prior_in_unlabeled=0.4, rule="precision", target=0.5, random_state=0
    )
    assert (found.n_called, found.reached) == (k, True)
    assert found.report["precision"].value == pytest.approx(precision[k - 1])
    none = choose_threshold(
        P, U, prior_in_unlabeled=0.4, rule="precision", target=0.99, random_state=0
    )
    assert not none.reached
    assert none.n_called == np.argmax(precision) + 1
    assert "No cut" in none.sentence


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "needs prior_in_unlabeled"),
        ({"rule": "precision", "target": 0.9}, "needs prior_in_unlabeled"),
        ({"prior_in_unlabeled": 0.4, "target": 3}, "takes no target"),
        ({"rule": "f1"}, "rule must be"),
        ({"rule": "top", "target": 11}, "target must be"),
        ({"rule": "recall", "target": 0}, "target must be"),
        ({"prior_in_unlabeled": 2}, "prior_in_unlabeled must be"),
    ],
)
def test_bad_rules(options, told):
    with pytest.raises(InvalidParameterError, match=told):
        choose_threshold(P, U, **options)


@settings(deadline=None)
@given(reference=rows, scores=rows)
def test_p_values_count(reference, scores):
    low = conformal_p_values(reference, scores)
    high = conformal_p_values(reference, scores, tail="high")
    r, s = np.array(reference), np.array(scores)
    n = len(r)
    assert low == pytest.approx([(1 + np.sum(r <= x)) / (n + 1) for x in s])
    assert high == pytest.approx([(1 + np.sum(r >= x)) / (n + 1) for x in s])


@given(p=st.lists(st.integers(1, 40).map(lambda i: i / 40), min_size=1, max_size=30))
def test_step_up_by_its_definition(p):
    found = benjamini_hochberg(p, 0.25)
    ordered = sorted(p)
    small = [x <= 0.25 * (i + 1) / len(p) + 1e-12 for i, x in enumerate(ordered)]
    k = max((i + 1 for i, fits in enumerate(small) if fits), default=0)
    cut = ordered[k - 1] if k else -1
    assert found.tolist() == [x <= cut for x in p]


def world(rng, n=100, m=300, share=0.3):
    y = rng.random(m) < share
    return rng.normal(1.5, 1, n), rng.normal(size=m) + 3 * y - 1.5, y


def test_declared_negatives_hold_few_positives():
    """False discoveries at most 0.1 × the share of positives; power beyond chance."""
    rng = np.random.default_rng(0)
    wrong, lost, n = [], [], []
    for _ in range(60):
        p, u, y = world(rng)
        found = declared_negatives(p, u, level=0.1)
        wrong.append(y[found.declared].mean() if found.n else 0)
        n.append(found.n)
        by_row = declared_negatives(p, u, level=0.1, control="row")
        lost.append(by_row.declared[y].mean())
    assert np.mean(wrong) <= 0.1
    assert np.mean(n) > 100
    assert 0.07 <= np.mean(lost) <= 0.115
    assert "declared negatives" in found.promise
    assert "no promise" in found.promise


def test_declared_positives_with_u_as_null():
    rng = np.random.default_rng(1)
    wrong, let_in, n = [], [], []
    for _ in range(60):
        _, u, y = world(rng, share=0.1)
        by_row = declared_positives(u, level=0.1)
        let_in.append(by_row.declared[~y].mean())
        _, c, z = world(rng, share=0.8)
        found = declared_positives(u, c, level=0.2, control="list")
        wrong.append(1 - z[found.declared].mean() if found.n else 0)
        n.append(found.n)
    assert np.mean(let_in) <= 0.1
    assert np.mean(wrong) <= 0.2
    assert np.mean(n) > 30
    assert by_row.n == 30
    assert "declared positives" in str(found)


def test_lists_refuse():
    with pytest.raises(InvalidParameterError, match="rule='precision'"):
        declared_positives(U, control="list")
    with pytest.raises(InvalidParameterError, match="control must be"):
        declared_negatives(P, U, control="fdr")
    with pytest.raises(InvalidParameterError, match="level must be"):
        declared_positives(U, level=0)
    with pytest.raises(InvalidParameterError, match="tail must be"):
        conformal_p_values(P, U, tail="both")


def features(rng, bias):
    """Return scores and features; with bias, labels go to rows with a high feature."""
    x = rng.normal(size=(1000, 3))
    labelled = rng.random(1000) < (1 / (1 + np.exp(-bias * x[:, 1]))) * 0.4
    scores = rng.normal(5, 1, 1000)
    negative = rng.normal(size=(500, 3))
    s_u = np.r_[scores[~labelled], rng.normal(0, 1, 500)]
    return scores[labelled], s_u, x[labelled], np.r_[x[~labelled], negative]


def test_scar_check_sees_biased_labels_and_seldom_cries_wolf():
    rng = np.random.default_rng(0)
    alarms = 0
    for seed in range(20):
        p, u, X, Z = features(rng, 0.0)
        share = (1000 - len(p)) / len(u)
        fair = scar_check(
            p, u, prior_in_unlabeled=share, positive_features=X,
            unlabeled_features=Z, random_state=seed,
        )  # fmt: skip
        alarms += fair.doubtful
    assert alarms <= 4  # 5 % of 20 is 1
    assert len(fair.tests) == 2
    p, u, X, Z = features(rng, 3.0)
    biased = scar_check(
        p, u, prior_in_unlabeled=0.6, positive_features=X, unlabeled_features=Z
    )
    assert biased.doubtful
    assert biased.tests[1].statistic > 0.6
    assert "not given at random" in biased.sentence
    one_each = {"positive_groups": ["a"] * len(p), "unlabeled_groups": ["b"] * len(u)}
    apart = scar_check(
        p, u, prior_in_unlabeled=0.6, positive_features=X, unlabeled_features=Z,
        **one_each,
    )  # fmt: skip
    assert "too few groups" in str(apart)
    along = scar_check(p + 0.8, u, prior_in_unlabeled=0.6)
    assert along.doubtful
    assert [t.name for t in along.tests] == ["score"]


def test_scar_check_without_enough_rows_and_with_wrong_ones():
    few = scar_check(P, U, prior_in_unlabeled=0.4)
    assert not few.doubtful
    assert "Too few to compare" in str(few)
    alone = scar_check(P[:1], U[:1], prior_in_unlabeled=0.4)
    assert "(0 positives and 1 unlabelled at the top;" in alone.sentence
    with pytest.raises(InvalidInputError, match="belong together"):
        scar_check(P, U, prior_in_unlabeled=0.4, positive_features=P[:, None])
    with pytest.raises(InvalidInputError, match="one row of finite numbers"):
        scar_check(P, U, prior_in_unlabeled=0.4, positive_features=P[:, None],
                   unlabeled_features=U)  # fmt: skip
    with pytest.raises(InvalidInputError, match="same ones"):
        scar_check(P, U, prior_in_unlabeled=0.4, positive_features=P[:, None],
                   unlabeled_features=np.c_[U, U])  # fmt: skip


@pytest.mark.parametrize(
    ("p", "u", "options", "kind"),
    [
        (np.ones(9), np.ones(20), {}, "constant"),
        (P + 1, U + 1, {}, "all positive"),
        (P - 99, U - 99, {"prior_in_unlabeled": 0.4}, "all negative"),
        (U[:9], U, {"threshold": 4.5}, "chance"),
        (np.full(9, 8.6), U, {"threshold": 4.5}, None),
        (np.full(9, 9.5), np.arange(1000.0) / 100, {
            "threshold": 9.985, "prior_in_unlabeled": 0.001}, None),
        (np.full(9, 9.5), np.arange(1000.0) / 100, {
            "threshold": 9.985, "prior_in_unlabeled": 0.3}, "all negative"),
    ],
)  # fmt: skip
def test_trivial_models_are_found_out(p, u, options, kind):
    found = trivial_check(p, u, **options)
    assert found.kind == kind
    assert found.trivial == (kind is not None)
    assert found.sentence


def test_an_unfinished_classifier_of_the_scar_check_says_nothing(monkeypatch):
    """It need not converge: it is judged out of fold as it is."""
    short = partial(_decisions.LogisticRegression, max_iter=1)
    monkeypatch.setattr(_decisions, "LogisticRegression", short)
    rng = np.random.default_rng(0)
    scores, features = rng.normal(size=400), rng.normal(size=(400, 20))
    found = scar_check(
        scores[:120],
        scores[120:],
        prior_in_unlabeled=0.9,
        positive_features=features[:120],
        unlabeled_features=features[120:],
        random_state=0,
    )
    assert {test.name for test in found.tests} == {"score", "features"}


def test_figures_from_true_labels_by_hand():
    """Ranked 0.9+ 0.5- 0.1+ | -0.2- -0.8-: TP 2, FP 1, TN 2, FN 0."""
    y = np.array([1, 0, 1, 0, 0])
    found = oracle_metrics(y, np.array([0.9, 0.5, 0.1, -0.2, -0.8], dtype=np.float32))
    assert all(type(value) is float for value in found.values())
    assert found == pytest.approx(
        {
            "accuracy": 4 / 5,
            "balanced_accuracy": (1 + 2 / 3) / 2,
            "precision": 2 / 3,
            "recall": 1.0,
            "f1": 4 / 5,
            "roc_auc": 5 / 6,
            "average_precision": (1 / 1 + 2 / 3) / 2,
        }
    )
    # 0 counts as negative, and no positive answer is no error
    none = oracle_metrics([0, 1], np.array([-1.0, 0.0]))
    assert none["recall"] == none["precision"] == none["f1"] == 0.0
    assert none["roc_auc"] == 1.0
