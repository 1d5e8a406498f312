"""``estimate_prior``: both priors, folds and groups, intervals, warnings, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from denspu import make_pu
from denspu._random import Randomness
from denspu.encoders import IdentityEncoder, TabularEncoder
from denspu.exceptions import (
    DensPUWarning,
    FewRowsWarning,
    InvalidInputError,
    InvalidParameterError,
    LabelError,
    PriorDisagreementWarning,
)
from denspu.priors import PriorReport, estimate_prior, prior_from_scores
from denspu.priors import estimate as estimate_module
from denspu.priors.estimate import cross_fit, learners, sample


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(estimate_module, "TREES", 10)


def rows(seed=0, n=300, prior=0.5, labelled=0.3, apart=4.0, d=3):
    """Return X, PU labels and the share of positives inside U."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < prior
    X = rng.normal(size=(n, d)) + apart * positive[:, None] / np.sqrt(d)
    y = positive & (rng.random(n) < labelled)
    return X, y.astype(int), positive[y == 0].mean()


def report(**changes):
    facts = {"prior_in_unlabeled": 0.2, "low": 0.1, "high": 0.3, "level": 0.9}
    facts |= {"method": "auto", "scenario": "one-sample"}
    facts |= {"estimates": {"a": 0.19, "b": 0.21}, "n_positive": 50}
    return PriorReport(**{**facts, "n_unlabeled": 150, **changes})


FAST = {"random_state": 0, "n_resamples": 0}


# --- the answer -----------------------------------------------------------------------


def test_the_share_and_its_interval():
    X, y, truth = rows()
    found = estimate_prior(X, y, random_state=0, n_resamples=20)
    assert found.prior_in_unlabeled == pytest.approx(truth, abs=0.08)
    assert found.low < truth < found.high
    assert 0.02 < found.high - found.low < 0.4
    assert list(found.estimates) == ["density_ratio", "dedpul", "mixture"]
    assert found.prior_in_unlabeled == np.median(list(found.estimates.values()))
    again = estimate_prior(X, y, random_state=0, n_resamples=20)
    other = estimate_prior(X, y, random_state=1, n_resamples=20)
    assert found == again != other
    wide = estimate_prior(X, y, random_state=0, n_resamples=20, level=0.99)
    assert wide.low < found.low < found.high < wide.high
    two = estimate_prior(X, y, scenario="two-sample", **FAST)
    assert two.prior == two.prior_in_unlabeled < found.prior


@pytest.mark.filterwarnings("ignore::denspu.exceptions.PriorDisagreementWarning")
def test_a_rare_class():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(4_000, 5))
    X[:60] += 2.5
    found = estimate_prior(X, np.arange(4_000) < 30, **FAST)
    assert 0.5 < found.prior_in_unlabeled / (30 / 3_970) < 2
    assert 0.5 < found.prior / 0.015 < 2


def test_both_scenarios_name_both_priors():
    one, two = report(), report(scenario="two-sample")
    assert one.prior == pytest.approx((50 + 30) / 200)
    assert one.prior_interval == pytest.approx((65 / 200, 95 / 200))
    assert two.prior == 0.2
    assert two.prior_interval == two.interval == (0.1, 0.3)
    assert one.label_frequency == pytest.approx(50 / 80)


def test_one_key_or_several(monkeypatch):
    X, y, truth = rows()
    keys = ["bbe", "tice", "pen_l1"]
    three = estimate_prior(X, y, method=keys, random_state=0, n_resamples=2)
    assert list(three.estimates) == keys
    assert three.prior_in_unlabeled == np.median(list(three.estimates.values()))
    one = estimate_prior(X, y, method="bbe", **FAST)
    assert one.estimates == {"bbe": three.estimates["bbe"]}
    assert (one.disagreement, one.interval) == (0, (0.0, 1.0))
    monkeypatch.setattr(estimate_module, "cross_fit", None)
    features = estimate_prior(X, y, method="pen_l1", **FAST)  # needs no folds
    assert features.prior_in_unlabeled == pytest.approx(truth, abs=0.12)


# --- inputs ---------------------------------------------------------------------------


def test_frames_with_gaps_and_categories():
    X, y, truth = rows()
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.loc[5, "a"] = np.nan
    frame["word"] = np.where(np.arange(len(X)) % 2, "odd", "even")
    found = estimate_prior(frame, y, **FAST)
    assert found.prior_in_unlabeled == pytest.approx(truth, abs=0.1)


def test_small_grey_images_are_pixels_others_get_a_network_that_sees_no_labels(
    monkeypatch,
):
    built = []

    class Stub(IdentityEncoder):
        def __init__(self, *, normalize=False, positive_weight=None, max_seconds=None):
            self.normalize = normalize
            self.positive_weight = positive_weight
            self.max_seconds = max_seconds

        def fit(self, X, y=None):
            built.append((X.shape[1:], self.positive_weight, self.max_seconds, y))
            return super().fit(X)

    monkeypatch.setattr(estimate_module, "ContrastiveEncoder", Stub)
    rng = np.random.default_rng(0)
    for shape in ((8, 8), (8, 8, 3), (40, 40)):
        X = rng.integers(0, 100, (60, *shape), dtype=np.uint8)
        X[:30] += 100
        y = np.arange(60) < 12
        found = estimate_prior(X, y, method="bbe", max_seconds=5.0, **FAST)
        assert found.prior_in_unlabeled == pytest.approx(18 / 48, abs=0.08)
    assert [facts[1:] for facts in built] == [(0, 5.0, None)] * 2


def test_an_encoder_by_key_or_as_an_object():
    X, y, _ = rows()
    by_key, given = (
        estimate_prior(X, y, encoder=e, **FAST) for e in ("tabular", TabularEncoder())
    )
    assert by_key == given
    with pytest.raises(InvalidParameterError, match="takes image input"):
        estimate_prior(X, y, encoder="cae")

    class Half(IdentityEncoder):
        def transform(self, X):
            return X[::2]

    with pytest.raises(InvalidInputError, match="returned 150 rows for 300"):
        estimate_prior(X, y, encoder=Half())


# --- out-of-fold scores ---------------------------------------------------------------


def test_no_model_scores_a_row_or_group_that_it_has_seen(monkeypatch):
    """Rows of a group are copies of each other, in P and in U: chance without folds."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(60), 4)
    X = rng.normal(size=(60, 5))[groups]
    positive = groups < 20

    def auc(X, positive, groups):
        s = cross_fit(X, positive, groups, Randomness(0))["scores"]
        return np.mean(s[positive][:, None] > s[~positive])

    assert auc(X, positive, groups) < 0.75 < 0.9 < auc(X, positive, None)
    assert 0.3 < auc(rng.normal(size=(240, 5)), positive, None) < 0.7
    seen = []
    original = estimate_module.cross_fit
    monkeypatch.setattr(
        estimate_module,
        "cross_fit",
        lambda Z, p, groups, r: seen.append(groups) or original(Z, p, groups, r),
    )
    X, y, _ = rows(n=120, apart=9.0)
    groups = np.repeat(np.arange(60), 2)
    estimate_prior(X, y, groups=groups, **FAST)
    assert (seen[0] == groups).all()
    with pytest.raises(InvalidInputError, match="P or U is a single row or group"):
        estimate_prior(X, y, groups=y)


def test_copies_do_not_pull_the_share_up():
    X, y, _ = rows(labelled=1.0, apart=2.0, d=6)
    pu = make_pu(X, y, n_labeled=0.4, scenario="two-sample", random_state=0)
    found = estimate_prior(pu.X, pu.y, scenario="two-sample", **FAST)
    assert found.prior == pytest.approx(pu.oracle.prior, abs=0.12)


def test_large_data_is_learned_from_samples_by_fewer_learners():
    positive = np.arange(1_000) < 300
    few = sample(positive, np.arange(1_000) != 5, 400, np.random.default_rng(0))
    assert len(few) == len(set(few)) == 400
    assert positive[few].sum() == 200
    assert 5 not in few
    rare = sample(np.arange(1_000) < 10, positive | True, 400, np.random.default_rng(0))
    assert set(range(10)) <= set(rare)
    small, middle, large = (learners(n) for n in (1_000, 10_000, 1_000_000))
    assert small == middle == ("linear", "kernel", "trees")
    assert large == ("linear", "trees")


# --- intervals ------------------------------------------------------------------------


def test_intervals_hold_the_truth_about_as_often_as_they_say(monkeypatch):
    """Fresh draws of P and U; the linear learner alone keeps this fast."""
    monkeypatch.setattr(estimate_module, "learners", lambda n: ("linear",))
    held = []
    for seed in range(25):
        X, y, truth = rows(seed + 100, apart=3.0, prior=0.4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DensPUWarning)
            found = estimate_prior(X, y, level=0.8, n_resamples=8, random_state=seed)
        held.append(found.low <= truth <= found.high)
    assert 0.68 <= np.mean(held) <= 0.98


def samples_of(n, m, groups=None):
    return estimate_module.Samples({}, {}, np.arange(n), np.arange(n, n + m), groups)


def test_the_interval_adds_up_its_parts():
    """Spread of the draws and of the estimates; a group counts as one row."""
    drawn, estimates = np.array([0.26, 0.34]), {"a": 0.25, "b": 0.3, "c": 0.35}
    found = estimate_module.interval(0.3, estimates, drawn, 0.9, samples_of(100, 400))
    half = student.ppf(0.95, 99) * np.sqrt(0.04**2 + 0.05**2)
    assert found == pytest.approx((0.3 - half, 0.3 + half))
    for groups, n, m in ((None, 100, 400), (np.arange(500) // 10, 10, 40)):
        samples = samples_of(100, 400, groups)
        assert samples.units == (n, m)
        found = estimate_module.interval(0.3, {"a": 0.3}, np.full(2, 0.3), 0.9, samples)
        counted = (0.3 * m + 1) / (m + 2)
        half = student.ppf(0.95, n - 1) * np.sqrt(counted * (1 - counted) / m)
        assert found == pytest.approx((0.3 - half, 0.3 + half))


@pytest.mark.filterwarnings("ignore::denspu.exceptions.FewRowsWarning")
def test_one_group_of_p_tells_nothing_about_a_spread():
    X, y, _ = rows(n=120)
    found = estimate_prior(X, y, groups=y, method="tice", n_resamples=3)
    assert found.interval == (0.0, 1.0)


def test_resamples_draw_whole_groups_and_fewer_of_features(monkeypatch):
    rows_, groups = np.arange(10, 22), np.repeat(np.arange(11), 2)
    drawn = estimate_module.draw(rows_, groups, np.random.default_rng(0))
    assert len(drawn) == 12
    assert all(drawn[i] + 1 == drawn[i + 1] for i in range(0, 12, 2))
    assert set(estimate_module.draw(rows_, None, np.random.default_rng(0))) <= set(
        rows_
    )
    monkeypatch.setattr(estimate_module, "FEATURE_RESAMPLES", 2)
    asked, original = [], estimate_module.draw
    monkeypatch.setattr(
        estimate_module, "draw", lambda *a: asked.append(1) or original(*a)
    )
    X, y, _ = rows(n=120)
    estimate_prior(X, y, method="tice", random_state=0, n_resamples=9)
    assert len(asked) == 4  # P and U, twice
    estimate_prior(X, y, method="bbe", random_state=0, n_resamples=9)
    assert len(asked) == 4 + 18


# --- from scores ----------------------------------------------------------------------


def scores(share=0.3):
    rng = np.random.default_rng(0)
    hidden = np.arange(1000) < share * 1000
    return rng.normal(4, 1, 100), rng.normal(4 * hidden, 1)


def test_several_opinions_on_two_lists_of_scores():
    for share in (0.1, 0.6):
        found = prior_from_scores(*scores(share), random_state=0)
        assert found.prior_in_unlabeled == np.median(list(found.estimates.values()))
        assert found.low < share < found.high
        assert (found.n_positive, found.n_unlabeled) == (100, 1000)
    groups = {"positive_groups": np.arange(100) // 20}
    groups["unlabeled_groups"] = 5 + np.arange(1000) // 20
    wide = prior_from_scores(*scores(share), random_state=0, **groups)
    assert wide.prior_in_unlabeled == found.prior_in_unlabeled
    assert wide.high - wide.low > 1.5 * (found.high - found.low)


def test_an_own_share_is_the_answer_and_widens_the_interval():
    plain = prior_from_scores(*scores(), random_state=0)
    own = prior_from_scores(*scores(), own=0.35, random_state=0)
    assert own.prior_in_unlabeled == own.estimates["model"] == 0.35
    assert own.high - own.low > plain.high - plain.low
    assert (own.low + own.high) / 2 == pytest.approx(0.35)
    with pytest.warns(PriorDisagreementWarning, match="model 0.900"):
        prior_from_scores(*scores(), own=0.9, random_state=0)


# --- words and refusals ---------------------------------------------------------------


def test_the_report_reads_like_a_table():
    text = str(report(estimates={"bbe": 0.19, "dedpul": 0.004}))
    lines = text.splitlines()
    assert "0.400  [0.325, 0.475]" in lines[1]
    assert "0.200  [0.100, 0.300]" in lines[2]
    assert any(line.split() == ["dedpul", "0.004"] for line in lines)
    assert "50 rows, 150 rows" in text


@pytest.mark.parametrize(
    ("a", "b", "disagree"),
    [
        (0.3, 0.44, False),
        (0.3, 0.46, True),
        (0.01, 0.029, False),
        (0.01, 0.031, True),
        (0.0, 0.0002, False),
        (0.0, 0.01, True),
    ],
)
def test_when_estimates_disagree(a, b, disagree):
    assert report(estimates={"a": a, "b": b}).disagrees is disagree


def test_few_labels_and_disagreement_are_told(monkeypatch):
    monkeypatch.setattr(estimate_module, "WIDE", 0.0)
    X, y, _ = rows(n=200)
    keys = ["bbe", "elkan_noto"]
    with pytest.warns(PriorDisagreementWarning, match=r"bbe 0\.\d+, elkan_noto 0\."):
        estimate_prior(X, y, method=keys, **FAST)
    y[np.flatnonzero(y)[6:]] = 0
    with pytest.warns(FewRowsWarning, match="6 rows are labelled"):
        estimate_prior(X, y, method="bbe", **FAST)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "dedpull"}, "'dedpull'. Did you mean 'dedpul'"),
        ({"method": []}, "at least one"),
        ({"method": ["bbe", "bbe"]}, "each only once"),
        ({"method": 3}, "no prior estimator called 3"),
        ({"scenario": "both"}, "scenario must be 'one-sample' or 'two-sample'"),
        ({"level": 1}, "level must be"),
        ({"n_resamples": -1}, "n_resamples must be"),
    ],
)
def test_odd_arguments_are_refused(options, words):
    X, y, _ = rows(n=60)
    with pytest.raises(InvalidParameterError, match=words):
        estimate_prior(X, y, **options)


def test_odd_data_is_refused():
    X, y, _ = rows(n=60)
    with pytest.raises(LabelError, match="0 labelled positive"):
        estimate_prior(X, np.zeros(60))
    with pytest.raises(InvalidInputError, match="inconsistent numbers"):
        estimate_prior(X, y[:-1])
