"""``estimate_prior``: both priors, folds and groups, intervals, warnings, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

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
from denspu.priors import PriorReport, estimate_prior
from denspu.priors import _report as report_module
from denspu.priors import _scores as scores_module
from denspu.priors import estimate as estimate_module
from denspu.priors._scores import cross_fit, sample


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(scores_module, "TREES", 10)


def rows(seed=0, n=400, prior=0.5, labelled=0.3, apart=4.0, d=3):
    """Return X, PU labels and the share of positives inside U."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < prior
    X = rng.normal(size=(n, d)) + apart * positive[:, None] / np.sqrt(d)
    y = positive & (rng.random(n) < labelled)
    return X, y.astype(int), positive[y == 0].mean()


def report(**changes):
    facts = {
        "prior_in_unlabeled": 0.2,
        "low": 0.1,
        "high": 0.3,
        "level": 0.9,
        "method": "auto",
        "scenario": "one-sample",
        "estimates": {"a": 0.19, "b": 0.21},
        "n_positive": 50,
        "n_unlabeled": 150,
    }
    return PriorReport(**{**facts, **changes})


# --- the answer ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_share_and_its_interval(seed):
    X, y, truth = rows(seed)
    found = estimate_prior(X, y, random_state=seed)
    assert found.prior_in_unlabeled == pytest.approx(truth, abs=0.08)
    assert found.low < truth < found.high
    assert 0.02 < found.high - found.low < 0.4
    assert set(found.estimates) == set(estimate_module.AUTO)
    middle = np.median(list(found.estimates.values()))
    assert found.prior_in_unlabeled == middle


@pytest.mark.filterwarnings("ignore::denspu.exceptions.PriorDisagreementWarning")
def test_a_rare_class():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(6_000, 5))
    X[:60] += 2.5
    y = np.arange(6_000) < 30
    found = estimate_prior(X, y, random_state=0, n_resamples=10)
    assert 0.5 < found.prior_in_unlabeled / (30 / 5_970) < 2
    assert 0.5 < found.prior / 0.01 < 2


def test_both_scenarios_name_both_priors():
    one, two = report(), report(scenario="two-sample")
    assert one.prior == pytest.approx((50 + 30) / 200)
    assert one.prior_interval == pytest.approx((65 / 200, 95 / 200))
    assert two.prior == 0.2
    assert two.prior_interval == two.interval == (0.1, 0.3)
    assert one.label_frequency == pytest.approx(50 / 80)


def test_scenario_reaches_the_report():
    X, y, _ = rows()
    found = [
        estimate_prior(X, y, scenario=s, random_state=0, n_resamples=0)
        for s in ("one-sample", "two-sample")
    ]
    assert found[0].prior > found[1].prior == found[1].prior_in_unlabeled


def test_same_seed_same_report():
    X, y, _ = rows(apart=3.0)
    found = [estimate_prior(X, y, random_state=s, n_resamples=5) for s in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


def test_one_key_or_several():
    X, y, _ = rows()
    one = estimate_prior(X, y, method="bbe", random_state=0, n_resamples=5)
    assert list(one.estimates) == ["bbe"]
    assert one.disagreement == 0
    three = estimate_prior(
        X, y, method=["bbe", "tice", "pen_l1"], random_state=0, n_resamples=2
    )
    assert list(three.estimates) == ["bbe", "tice", "pen_l1"]
    assert three.estimates["bbe"] == one.prior_in_unlabeled
    assert three.prior_in_unlabeled == np.median(list(three.estimates.values()))


def test_features_alone_need_no_folds(monkeypatch):
    monkeypatch.setattr(estimate_module, "cross_fit", None)
    X, y, truth = rows()
    found = estimate_prior(X, y, method="pen_l1", random_state=0, n_resamples=0)
    assert found.prior_in_unlabeled == pytest.approx(truth, abs=0.12)
    assert found.interval == (0.0, 1.0)


def test_feature_estimators_are_resampled_less(monkeypatch):
    monkeypatch.setattr(estimate_module, "FEATURE_RESAMPLES", 2)
    drawn = []
    original = estimate_module.draw
    monkeypatch.setattr(
        estimate_module, "draw", lambda *a: drawn.append(1) or original(*a)
    )
    X, y, _ = rows(n=120)
    estimate_prior(X, y, method="tice", random_state=0, n_resamples=9)
    assert len(drawn) == 4  # P and U, twice
    estimate_prior(X, y, method="bbe", random_state=0, n_resamples=9)
    assert len(drawn) == 4 + 18


# --- inputs -------------------------------------------------------------------------


def test_frames_with_gaps_and_categories():
    import pandas as pd

    X, y, truth = rows()
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.loc[5, "a"] = np.nan
    frame["word"] = np.where(np.arange(len(X)) % 2, "odd", "even")
    found = estimate_prior(frame, y, random_state=0, n_resamples=2)
    assert found.prior_in_unlabeled == pytest.approx(truth, abs=0.1)


def test_small_grey_images_are_pixels(monkeypatch):
    from denspu.priors import _embed

    monkeypatch.setattr(_embed, "ContrastiveEncoder", None)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, (200, 8, 8), dtype=np.uint8)
    X[:100] += 100
    y = np.arange(200) < 40
    found = estimate_prior(X, y, random_state=0, n_resamples=2)
    assert found.prior_in_unlabeled == pytest.approx(60 / 160, abs=0.08)


@pytest.mark.parametrize("shape", [(30, 8, 8, 3), (30, 40, 40)])
def test_other_images_get_a_network_that_sees_no_labels(monkeypatch, shape):
    from denspu.priors import _embed

    built = []

    class Stub(IdentityEncoder):
        def __init__(self, *, normalize=False, positive_weight=None, max_seconds=None):
            super().__init__(normalize=normalize)
            self.positive_weight = positive_weight
            self.max_seconds = max_seconds

        def fit(self, X, y=None):
            built.append((self.positive_weight, self.max_seconds, y))
            return super().fit(X)

    monkeypatch.setattr(_embed, "ContrastiveEncoder", Stub)
    X = np.random.default_rng(0).random(shape)
    X[:20] += 3
    y = np.arange(30) < 10
    settings = {"method": "bbe", "random_state": 0, "n_resamples": 0}
    estimate_prior(X, y, max_seconds=5.0, **settings)
    assert built == [(0, 5.0, None)]


def test_an_encoder_by_key_or_as_an_object():
    X, y, _ = rows()
    by_key, given = (
        estimate_prior(X, y, encoder=e, random_state=0, n_resamples=0)
        for e in ("tabular", TabularEncoder())
    )
    assert by_key == given
    with pytest.raises(InvalidParameterError, match="takes image input"):
        estimate_prior(X, y, encoder="cae")
    with pytest.raises(InvalidParameterError, match="no encoder called 'tabullar'"):
        estimate_prior(X, y, encoder="tabullar")


def test_an_encoder_must_keep_the_rows():
    class Half(IdentityEncoder):
        def transform(self, X):
            return X[::2]

    X, y, _ = rows()
    with pytest.raises(InvalidInputError, match="returned 200 rows for 400"):
        estimate_prior(X, y, encoder=Half())


# --- out-of-fold scores -------------------------------------------------------------


def test_no_row_scores_itself():
    """Labels that mean nothing: a row that scored itself would give itself away."""
    rng = np.random.default_rng(2)
    X, positive = rng.normal(size=(300, 5)), np.arange(300) < 100
    found = cross_fit(X, positive, None, Randomness(0))
    reach = found.scores[positive][:, None] > found.scores[~positive]
    assert 0.35 < reach.mean() < 0.65


def test_no_model_sees_the_group_it_scores(monkeypatch):
    """Rows of a group are copies of each other, in P and in U: chance without folds."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(60), 4)
    X = rng.normal(size=(60, 5))[groups]
    positive = groups < 20
    kept = cross_fit(X, positive, groups, Randomness(0)).scores
    loose = cross_fit(X, positive, None, Randomness(0)).scores
    auc = [np.mean(s[positive][:, None] > s[~positive]) for s in (kept, loose)]
    assert auc[0] < 0.75 < 0.9 < auc[1]


def test_groups_reach_the_folds(monkeypatch):
    seen = []
    original = estimate_module.cross_fit

    def watched(Z, positive, groups, randomness):
        seen.append(groups)
        return original(Z, positive, groups, randomness)

    monkeypatch.setattr(estimate_module, "cross_fit", watched)
    X, y, _ = rows(n=120, apart=9.0)
    groups = np.repeat(np.arange(60), 2)
    estimate_prior(X, y, groups=groups, random_state=0, n_resamples=2)
    assert (seen[0] == groups).all()


def test_one_group_for_all_of_p_is_refused():
    X, y, _ = rows(n=120)
    with pytest.raises(InvalidInputError, match="P or U is a single row or group"):
        estimate_prior(X, y, groups=y)


def test_copies_do_not_pull_the_share_up():
    X, y, _ = rows(n=300, labelled=1.0, apart=2.0, d=6)
    pu = make_pu(X, y, n_labeled=0.4, scenario="two-sample", random_state=0)
    found = estimate_prior(
        pu.X, pu.y, scenario="two-sample", random_state=0, n_resamples=0
    )
    assert found.prior == pytest.approx(pu.oracle.prior, abs=0.12)


def test_large_data_is_learned_from_samples():
    positive = np.arange(1_000) < 300
    few = sample(positive, np.arange(1_000) != 5, 400, np.random.default_rng(0))
    assert len(few) == len(set(few)) == 400
    assert positive[few].sum() == 200
    assert 5 not in few
    rare = sample(np.arange(1_000) < 10, positive | True, 400, np.random.default_rng(0))
    assert set(range(10)) <= set(rare)
    assert len(rare) == 400


def test_learners_follow_the_number_of_rows():
    small, middle, large = (
        scores_module.learners(n) for n in (1_000, 10_000, 1_000_000)
    )
    assert list(small) == list(middle) == ["linear", "kernel", "trees"]
    assert list(large) == ["linear", "trees"]
    assert small["trees"] != middle["trees"] == large["trees"]


# --- intervals ----------------------------------------------------------------------


def test_intervals_hold_the_truth_about_as_often_as_they_say(monkeypatch):
    """Fresh draws of P and U; the linear learner alone keeps this fast."""
    few = {"linear": (scores_module._linear, 1_000)}
    monkeypatch.setattr(scores_module, "learners", lambda n: few)
    held = []
    for seed in range(25):
        X, y, truth = rows(seed + 100, n=300, apart=3.0, prior=0.4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DensPUWarning)
            found = estimate_prior(X, y, level=0.8, n_resamples=10, random_state=seed)
        held.append(found.low <= truth <= found.high)
    assert 0.68 <= np.mean(held) <= 0.98


def test_a_higher_level_gives_a_wider_interval():
    X, y, _ = rows(apart=2.5)
    narrow, wide = (
        estimate_prior(X, y, level=v, random_state=0, n_resamples=5)
        for v in (0.5, 0.95)
    )
    assert wide.low < narrow.low < narrow.high < wide.high
    assert wide.prior_in_unlabeled == narrow.prior_in_unlabeled


class Sizes:
    units = 100, 400


def test_the_interval_adds_up_its_parts():
    from scipy.stats import t

    drawn, estimates = np.array([0.26, 0.34]), {"a": 0.25, "b": 0.3, "c": 0.35}
    found = estimate_module.interval(0.3, estimates, drawn, 0.9, Sizes())
    half = t.ppf(0.95, 99) * np.sqrt(0.04**2 + 0.05**2)
    assert found == pytest.approx((0.3 - half, 0.3 + half))
    counted = (0.3 * 400 + 1) / 402
    half = t.ppf(0.95, 99) * np.sqrt(counted * (1 - counted) / 400)
    found = estimate_module.interval(0.3, {"a": 0.3}, np.full(2, 0.3), 0.9, Sizes())
    assert found == pytest.approx((0.3 - half, 0.3 + half))
    low, _ = estimate_module.interval(0.01, {"a": 0.01}, drawn, 0.9, Sizes())
    assert low == 0.0


def test_groups_count_as_one_each():
    """Ten rows a group: t has 9 degrees of freedom, and a count in U 40 draws."""
    from scipy.stats import t

    positive = np.arange(500) < 100
    rows_ = np.flatnonzero(positive), np.flatnonzero(~positive)
    groups = np.arange(500) // 10
    samples = estimate_module.Samples({}, {}, *rows_, groups)
    assert samples.units == (10, 40)
    assert (samples.n_positive, samples.n_unlabeled) == (100, 400)
    found = estimate_module.interval(0.3, {"a": 0.3}, np.full(2, 0.3), 0.9, samples)
    counted = (0.3 * 40 + 1) / 42
    half = t.ppf(0.95, 9) * np.sqrt(counted * (1 - counted) / 40)
    assert found == pytest.approx((0.3 - half, 0.3 + half))


@pytest.mark.filterwarnings("ignore::denspu.exceptions.FewRowsWarning")
def test_one_group_of_p_tells_nothing_about_a_spread():
    X, y, _ = rows(n=120)
    found = estimate_prior(X, y, groups=y, method="tice", n_resamples=3)
    assert found.interval == (0.0, 1.0)


def test_resamples_draw_whole_groups():
    rows_, groups = np.arange(10, 22), np.repeat(np.arange(11), 2)
    drawn = estimate_module.draw(rows_, groups, np.random.default_rng(0))
    assert len(drawn) == 12
    assert all(drawn[i] + 1 == drawn[i + 1] for i in range(0, 12, 2))
    alone = estimate_module.draw(rows_, None, np.random.default_rng(0))
    assert len(alone) == 12
    assert set(alone) <= set(rows_)


def test_the_warning_has_two_doors():
    from denspu import priors

    assert priors.PriorDisagreementWarning is PriorDisagreementWarning
    assert PriorDisagreementWarning.__module__ == "denspu.exceptions"


# --- words --------------------------------------------------------------------------


def test_the_report_reads_like_a_table():
    text = str(report(estimates={"bbe": 0.19, "dedpul": 0.004}))
    lines = text.splitlines()
    assert lines[0] == "Class prior (90% intervals)"
    assert "0.400  [0.325, 0.475]" in lines[1]
    assert "0.200  [0.100, 0.300]" in lines[2]
    assert any(line.split() == ["dedpul", "0.004"] for line in lines)
    assert "50 rows, 150 rows" in text


@pytest.mark.parametrize(
    ("estimates", "disagree"),
    [
        ({"a": 0.3, "b": 0.44}, False),
        ({"a": 0.3, "b": 0.46}, True),
        ({"a": 0.01, "b": 0.029}, False),
        ({"a": 0.01, "b": 0.031}, True),
        ({"a": 0.04, "b": 0.13}, False),
        ({"a": 0.0, "b": 0.0002}, False),
        ({"a": 0.0, "b": 0.01}, True),
    ],
)
def test_when_estimates_disagree(estimates, disagree):
    assert report(estimates=estimates).disagrees is disagree


def test_disagreement_is_told(monkeypatch):
    monkeypatch.setattr(report_module, "WIDE", 0.0)
    X, y, _ = rows(n=200)
    keys = ["bbe", "elkan_noto"]
    with pytest.warns(PriorDisagreementWarning, match=r"bbe 0\.\d+, elkan_noto 0\."):
        estimate_prior(X, y, method=keys, random_state=0, n_resamples=0)


def test_few_labels_are_told():
    X, y, _ = rows(n=100, apart=9.0)
    y[np.flatnonzero(y)[6:]] = 0
    with pytest.warns(FewRowsWarning, match="6 rows are labelled"):
        estimate_prior(X, y, method="bbe", random_state=0, n_resamples=0)


# --- refusals -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "dedpull"}, "'dedpull'. Did you mean 'dedpul'"),
        ({"method": ["bbe", "best"]}, "no prior estimator called 'best'"),
        ({"method": []}, "at least one"),
        ({"method": ["bbe", "bbe"]}, "each only once"),
        ({"method": 3}, "no prior estimator called 3"),
        ({"scenario": "both"}, "scenario must be 'one-sample' or 'two-sample'"),
        ({"level": 1}, "level must be"),
        ({"n_resamples": -1}, "n_resamples must be"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_odd_arguments_are_refused(options, words):
    X, y, _ = rows(n=60)
    with pytest.raises(InvalidParameterError, match=words):
        estimate_prior(X, y, **options)


def test_odd_data_is_refused():
    X, y, _ = rows(n=60)
    with pytest.raises(LabelError, match="no labelled positive"):
        estimate_prior(X, np.zeros(60))
    with pytest.raises(InvalidInputError, match="inconsistent numbers"):
        estimate_prior(X, y[:-1])
    with pytest.raises(InvalidInputError, match="one group a row"):
        estimate_prior(X, y, groups=[1, 2])
