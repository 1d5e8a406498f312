"""Figures without negatives: closed forms, twins, truth over draws, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from denspu.exceptions import (
    FewRowsWarning,
    InvalidInputError,
    InvalidParameterError,
)
from denspu.metrics import oracle_metrics, prior_sensitivity, pu_metrics
from denspu.metrics._mass import Cells, Mass, ranking_auc

P = np.array([3.0, 2.0, 1.0, 0.5, -1.0])
U = np.array([4.0, 2.5, 1.5, -0.5, -1.5, -2.0, -2.5, -3.0, -4.0, -5.0])
FAST = {"n_resamples": 100, "random_state": 0}


def values(report):
    return {figure.name: figure.value for figure in report}


def test_a_small_case_by_hand():
    """Recall 4/5, three of ten called, prior 0.3: 2.4 hits, 0.6 false alarms."""
    found = values(pu_metrics(P, U, prior_in_unlabeled=0.3, **FAST))
    assert found["recall"] == pytest.approx(0.8)
    assert found["precision"] == pytest.approx(2.4 / 3)
    assert found["f1"] == pytest.approx(2 * 2.4 / (3 + 3))
    assert found["accuracy"] == pytest.approx((2.4 + 7 - 0.6) / 10)
    assert found["balanced_accuracy"] == pytest.approx((0.8 + 1 - 0.6 / 7) / 2)
    assert found["lift"] == pytest.approx(0.8 / 0.3)


def test_the_population_of_one_sample_is_both_together():
    """Ten labelled positives in all, 8 called; in U 3 called, 2.4 of them hits."""
    report = pu_metrics(
        P, U, prior_in_unlabeled=0.3, population="population", n_labeled=10, **FAST
    )
    found = values(report)
    assert report.prior == pytest.approx(13 / 20)
    assert found["precision"] == pytest.approx(10.4 / 11)
    assert found["recall"] == pytest.approx(0.8)
    assert found["accuracy"] == pytest.approx((10.4 + 7 - 0.6) / 20)
    two = pu_metrics(
        P,
        U,
        prior_in_unlabeled=0.3,
        population="population",
        scenario="two-sample",
        **FAST,
    )
    assert two.prior == 0.3
    assert values(two) == values(pu_metrics(P, U, prior_in_unlabeled=0.3, **FAST))


scores = st.integers(-4, 4).map(float)


@settings(max_examples=25, deadline=None)
@given(
    positive=st.lists(scores, min_size=5, max_size=12),
    unlabeled=st.lists(scores, min_size=1, max_size=20),
    prior=st.floats(0, 1),
    rows=st.sampled_from(["these", "new"]),
    population=st.sampled_from(["unlabeled", "population"]),
    error=st.sampled_from([None, 0.1]),
)
def test_every_figure_lies_in_its_interval_and_in_range(
    positive, unlabeled, prior, rows, population, error
):
    report = pu_metrics(
        positive,
        unlabeled,
        prior_in_unlabeled=prior,
        prior_error=error,
        rows=rows,
        population=population,
        k=1,
        **FAST,
    )
    for figure in report:
        assert 0 <= figure.low <= figure.value <= figure.high, figure
        if figure.name != "lift":
            assert figure.high <= 1
        assert np.isfinite([figure.low, figure.value]).all()


@settings(max_examples=25, deadline=None)
@given(
    hidden=st.lists(scores, min_size=5, max_size=12),
    negative=st.lists(scores, min_size=1, max_size=12),
)
def test_exact_when_held_out_positives_score_as_the_hidden_ones(hidden, negative):
    """If P is U's positives over again, the estimate is the truth on U."""
    rows = np.r_[hidden, negative]
    y = np.r_[np.ones(len(hidden)), np.zeros(len(negative))]
    found = values(pu_metrics(hidden, rows, prior_in_unlabeled=y.mean(), **FAST))
    true = oracle_metrics(y, rows)
    for name in ("recall", "precision", "f1", "accuracy"):
        if name != "precision" or (rows > 0).any():
            assert found[name] == pytest.approx(true[name]), name
    assert found["balanced_accuracy"] == pytest.approx(true["balanced_accuracy"])
    assert plain_auc(hidden, rows, y.mean()) == pytest.approx(true["roc_auc"])


def plain_auc(positive, unlabeled, prior):
    cells = Cells.of(np.asarray(positive), np.asarray(unlabeled), 0.0)
    shares = cells.positive.counts / len(positive)
    u = cells.unlabeled.counts[None]
    return ranking_auc(Mass(u, 0 * u, shares[None], np.array([prior])))[0]


def test_the_auc_by_pairs():
    """A = share of pairs of P and U that P wins; (A - prior / 2) / (1 - prior)."""
    above = np.mean(P[:, None] > U)
    assert plain_auc(P, U, 0.3) == pytest.approx((above - 0.15) / 0.7)
    rng = np.random.default_rng(0)
    p, u = rng.normal(0.3, 1, 50), rng.normal(0, 1, 200)
    above = np.mean(p[:, None] > u)
    found = pu_metrics(p, u, prior_in_unlabeled=0.2, **FAST)["roc_auc"].value
    assert found == pytest.approx((above - 0.1) / 0.8)


def test_average_precision_of_a_perfect_and_of_a_useless_ranking():
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(9, 1, 300), rng.normal(0, 1, 300)
    rows = np.r_[rng.normal(9, 1, 300), negative]
    perfect = pu_metrics(positive, rows, prior_in_unlabeled=0.5, k=100, **FAST)
    assert perfect["average_precision"].value > 0.97
    assert perfect["precision_at_100"].value > 0.97
    flat = rng.normal(size=600)
    useless = pu_metrics(rng.normal(size=300), flat, prior_in_unlabeled=0.3, **FAST)
    assert abs(useless["average_precision"].value - 0.3) < 0.06
    tied = pu_metrics(np.zeros(20), np.zeros(50), prior_in_unlabeled=0.3, k=7, **FAST)
    assert tied["average_precision"].value == pytest.approx(0.3)
    assert tied["precision_at_7"].value == pytest.approx(0.3)
    assert tied["roc_auc"].value == pytest.approx(0.5)


def drawn(rng, n, m, prior, groups=False):
    """Return P, U and U's true classes; with groups, five rows share their score."""
    y = (np.arange(m) < round(prior * m)).astype(int)
    size = 5 if groups else 1
    u = np.repeat(rng.normal(size=m // size), size) + 2.0 * y - 1
    return np.repeat(rng.normal(1, 1, n // size), size), u, y


def simulated(times, prior=0.3, n=60, m=200, groups=False, **options):
    """Return errors and hits of intervals by figure, over fresh rows."""
    rng = np.random.default_rng(11)
    found = {}
    for seed in range(times):
        p, u, y = drawn(rng, n, m, prior, groups)
        if groups:
            options["positive_groups"] = np.arange(n) // 5
            options["unlabeled_groups"] = np.arange(m) // 5
        report = pu_metrics(
            p, u, prior_in_unlabeled=y.mean(), n_resamples=100, random_state=seed,
            k=60, **options,
        )  # fmt: skip
        true = oracle_metrics(y, u)
        true["lift"] = true["precision"] / y.mean()
        true["precision_at_60"] = y[np.argsort(-u, kind="stable")[:60]].mean()
        for name, value in true.items():
            f = report[name]
            pair = (f.value - value, f.low - 1e-9 <= value <= f.high + 1e-9)
            found.setdefault(name, []).append(pair)
    return {name: np.array(each, float).T for name, each in found.items()}


def test_right_on_average_and_covering():
    """60 draws: means within 0.01 and 3 errors; 90 % intervals hold 80 to 99 %."""
    for name, (error, held) in simulated(60).items():
        scale = 3.3 if name == "lift" else 1.0
        noise = 3 * error.std() / np.sqrt(len(error))
        if name == "average_precision":  # 60 positives a side: the curve leans up
            scale = 4.0
        assert abs(error.mean()) < 0.01 * scale + noise, name
        assert 0.8 <= held.mean() <= 0.99, name


def test_groups_are_resampled():
    """Rows of a group score alike: without groups the intervals are far too narrow."""
    with_groups = simulated(30, groups=True)
    for name in ("recall", "precision", "roc_auc"):
        assert with_groups[name][1].mean() >= 0.78, name
    p, u, _ = drawn(np.random.default_rng(0), 60, 200, 0.3, groups=True)
    plain = pu_metrics(p, u, prior_in_unlabeled=0.3, **FAST)
    groups = {"positive_groups": np.arange(60) // 5}
    groups["unlabeled_groups"] = np.arange(200) // 5
    grouped = pu_metrics(p, u, prior_in_unlabeled=0.3, **groups, **FAST)
    new = pu_metrics(p, u, prior_in_unlabeled=0.3, rows="new", **groups, **FAST)
    widths = [r["precision"].high - r["precision"].low for r in (new, grouped)]
    assert widths[0] > widths[1]
    for name in ("recall", "precision", "roc_auc", "average_precision"):
        wide, narrow = (r[name].high - r[name].low for r in (grouped, plain))
        assert wide > 1.4 * narrow, name


def test_new_rows_cover_the_source():
    """Precision at 0 of the source: 0.3 F(1) / (0.3 F(1) + 0.7 F(-1))."""
    rng = np.random.default_rng(12)
    hit = 0.3 * 0.8413
    true = {
        "recall": 0.8413,
        "precision": hit / (hit + 0.7 * 0.1587),
        "roc_auc": 0.9214,
    }
    held = dict.fromkeys(true, 0)
    for seed in range(60):
        y = rng.random(200) < 0.3
        report = pu_metrics(
            rng.normal(1, 1, 60), rng.normal(size=200) + 2 * y - 1, rows="new",
            prior_in_unlabeled=0.3, n_resamples=100, random_state=seed,
        )  # fmt: skip
        for name, value in true.items():
            held[name] += report[name].low <= value <= report[name].high
    assert all(0.8 <= count / 60 <= 0.99 for count in held.values()), held


def test_what_makes_intervals_wider():
    p = np.tile(P, 20)
    u = np.tile(U, 20)

    def wide(name, **options):
        f = pu_metrics(p, u, prior_in_unlabeled=0.3, random_state=0, **options)[name]
        return f.high - f.low

    for name in ("precision", "accuracy", "roc_auc", "average_precision"):
        assert wide(name, prior_interval=(0.15, 0.45)) > 1.1 * wide(name), name
        assert wide(name, level=0.99) > wide(name), name
    assert wide("recall", prior_interval=(0.1, 0.5)) < 1.2 * wide("recall")
    assert wide("precision", rows="new") > wide("precision")
    error = 0.15 / 1.6449
    assert wide("precision", prior_error=error) == pytest.approx(
        wide("precision", prior_interval=(0.15, 0.45)), abs=1e-4
    )


def test_all_positives_above_the_threshold_is_not_certainty():
    """Five of five: Jeffreys' lower end is 0.69 where hidden positives are many."""
    many = np.tile(U, 300)
    found = pu_metrics(P + 9, many, prior_in_unlabeled=0.3, random_state=0)["recall"]
    assert found.value == found.high == 1
    assert found.low == pytest.approx(beta.ppf(0.05, 5.5, 0.5), abs=0.04)


def test_few_positives_warn_and_answer_widely():
    with pytest.warns(FewRowsWarning, match="^2 held-out positives:"):
        found = pu_metrics([1.0, 2.0], U, prior_in_unlabeled=0.3, **FAST)
    assert found["recall"].low < 0.5
    with pytest.warns(FewRowsWarning, match="^1 group of held-out positives:"):
        pu_metrics(P, U, prior_in_unlabeled=0.3, positive_groups=[7] * 5, **FAST)


def test_no_positive_no_negative_and_nothing_called():
    none = values(pu_metrics(P, U, prior_in_unlabeled=0, **FAST))
    assert none["precision"] == none["f1"] == none["average_precision"] == 0
    assert none["accuracy"] == pytest.approx(0.7)
    assert none["lift"] == pytest.approx(0.8 / 0.3)
    every = pu_metrics(P, U, prior_in_unlabeled=1, **FAST)
    assert every["precision"].value == 1
    assert (every["roc_auc"].low, every["roc_auc"].high) == (0, 1)
    assert "no negative" in every["roc_auc"].note
    silent = pu_metrics(P, U, prior_in_unlabeled=0.3, threshold=99.0, **FAST)
    assert (silent["precision"].low, silent["precision"].high) == (0, 1)
    assert silent["recall"].value == 0
    assert "no unlabelled row" in str(silent["precision"])


def test_order_scale_and_infinite_scores_do_not_matter():
    plain = pu_metrics(P, U, prior_in_unlabeled=0.3, k=3, **FAST)
    turned = pu_metrics(10 * P[::-1], 10 * U[::-1], prior_in_unlabeled=0.3, k=3, **FAST)
    assert values(plain) == pytest.approx(values(turned))
    endless = np.where(U == 4, np.inf, np.where(U == -5, -np.inf, U))
    same = pu_metrics(P, endless, prior_in_unlabeled=0.3, k=3, **FAST)
    assert values(plain) == values(same)


def test_same_seed_same_answer_and_plain_output():
    import json

    once, again, other = (
        pu_metrics(P, U, prior_in_unlabeled=0.3, random_state=s, n_resamples=100)
        for s in (1, 1, 2)
    )
    assert once == again != other
    assert json.loads(json.dumps(once.to_dict()))["figures"]["recall"]["value"] == 0.8
    assert "3 of 10 unlabelled rows called positive" in str(once)


def test_sensitivity_bands():
    found = prior_sensitivity(P, U, priors=[0.1, 0.2, 0.3], **FAST)
    assert found.values("precision") == pytest.approx([0.8 / 3, 1.6 / 3, 0.8])
    assert found.values("recall") == (0.8, 0.8, 0.8)
    low, high = found.band("precision")
    assert low == found.reports[0]["precision"].low
    assert high == found.reports[2]["precision"].high
    assert len(str(found).splitlines()) == 4
    with pytest.raises(InvalidParameterError, match="priors is empty"):
        prior_sensitivity(P, U, priors=[])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"prior_in_unlabeled": 1.2}, "prior_in_unlabeled must be"),
        ({"scenario": "case-control"}, "scenario must be"),
        ({"population": "all", "rows": "old"}, "population must be"),
        ({"rows": "old"}, "rows must be"),
        ({"level": 1}, "level must be"),
        ({"n_resamples": 10}, "n_resamples must be"),
        ({"n_labeled": 4}, "n_labeled must be"),
        ({"threshold": np.nan}, "threshold must be"),
        ({"k": [11]}, "from 1 to 10"),
        ({"prior_interval": (0.4, 0.5)}, "not of the overall prior"),
        ({"prior_interval": 0.3}, "two numbers"),
        ({"prior_interval": (0.2, 0.4), "prior_level": 2}, "prior_level must be"),
        ({"prior_interval": (0.2, 0.4), "prior_error": 0.1}, "one of them"),
        ({"prior_error": -1}, "prior_error must be"),
    ],
)
def test_bad_options(changes, told):
    with pytest.raises(InvalidParameterError, match=told):
        pu_metrics(P, U, **{"prior_in_unlabeled": 0.3, **changes})


def test_bad_scores():
    for p, u, told in (
        ([], U, "positive_scores is empty"),
        (P, [[1.0]], "one number a row"),
        ([np.nan, 1], U, "1 NaN"),
        (["a"], U, "must be numbers"),
    ):
        with pytest.raises(InvalidInputError, match=told):
            pu_metrics(p, u, prior_in_unlabeled=0.3)
    with pytest.raises(InvalidInputError, match="one group for each"):
        pu_metrics(P, U, prior_in_unlabeled=0.3, positive_groups=[1])
