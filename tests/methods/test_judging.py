"""Evidence of real methods: scores, groups, and where their prior is from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from tests.small import small

from denspu import make, make_pu

pytestmark = pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")

GAP = 3.0


def sample(n_labeled=60, n_hidden=90, n_negative=210, seed=0):
    """Return rows, PU labels and truth; two Gaussians along the first column."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_labeled + n_hidden + n_negative) < n_labeled + n_hidden
    X = rng.normal(size=(len(truth), 2))
    X[truth, 0] += GAP
    return X, (np.arange(len(truth)) < n_labeled).astype(int), truth


X, Y, TRUTH = sample()
INSIDE, OVERALL = 90 / 300, 150 / 360


def nearly(a, b):
    return a == pytest.approx(b, abs=1e-9)


SEVERAL = ("dens_pu", "nnpu", "ncpu", "elkan_noto", "one_class", "kldce", "spy")


@pytest.mark.parametrize("key", SEVERAL)
def test_every_method_gives_evidence(key):
    data = make_pu(X, TRUTH, n_labeled=60, random_state=0)
    model = small(key, random_state=0).fit(data.X, data.y, holdout=0.25)
    evidence = model.evidence_
    assert (len(evidence.positive), len(evidence.unlabeled)) == (15, 300)
    assert (data.y[evidence.held_out] == 1).all()
    assert evidence.unlabeled_index.tolist() == np.flatnonzero(data.y == 0).tolist()
    scores = getattr(model, "unseen_scores_", model.decision_function(data.X))
    assert np.allclose(evidence.positive, scores[evidence.held_out])
    assert np.allclose(evidence.unlabeled, scores[data.y == 0])
    low, high = evidence.prior_interval
    assert 0 <= low <= evidence.prior_in_unlabeled <= high <= 1
    assert model.evaluate().threshold == 0.0
    called = (evidence.unlabeled > model.set_threshold(prior=True).threshold_).mean()
    assert called <= evidence.prior_in_unlabeled + 0.01
    proba = model.calibrate().posterior_(evidence.unlabeled)
    assert proba.mean() == pytest.approx(evidence.prior_in_unlabeled, abs=0.01)


def test_a_cut_of_dens_pu_carries_over_to_new_rows():
    """Its learners know the rows of the fit by heart; the evidence must not."""
    rows, labels, truth = sample(100, 150, 350, seed=1)
    new, _, true = sample(0, 400, 400, seed=2)
    model = make("dens_pu", refiner="embedding", random_state=0)
    evidence = model.fit(rows, labels, holdout=0.3).evidence_
    hidden = evidence.unlabeled[truth[evidence.unlabeled_index]]
    known_by_heart = model.decision_function(rows[truth & (labels == 0)])
    fresh = model.decision_function(new[true])
    middle = [np.quantile(s, 0.3) for s in (known_by_heart, hidden, fresh)]
    assert abs(middle[1] - middle[2]) < 0.5 * abs(middle[0] - middle[2])
    model.set_threshold(recall=0.7)
    assert np.mean(fresh > model.threshold_) == pytest.approx(0.7, abs=0.15)


# --- the share of positives -----------------------------------------------------------


@pytest.mark.parametrize("key", ["elkan_noto", "nnpu"])
def test_a_given_prior_of_all_rows_is_turned_into_that_of_u(key):
    model = small(key, prior=OVERALL, random_state=0).fit(X, Y, holdout=0.5)
    evidence = model.evidence_
    assert nearly(evidence.prior_in_unlabeled, INSIDE)
    assert evidence.prior_interval == (evidence.prior_in_unlabeled,) * 2
    assert (evidence.prior_from, evidence.prior_estimates) == ("given", {})
    assert evidence.n_labeled == 60
    own = getattr(model, "prior_in_unlabeled_", INSIDE)
    assert nearly(own, INSIDE)


@pytest.mark.parametrize("key", ["elkan_noto", "nnpu"])
def test_a_given_prior_of_two_samples_is_that_of_u(key):
    model = small(key, prior=INSIDE, scenario="two-sample", random_state=0)
    model.fit(X, Y, holdout=0.5)
    assert model.evidence_.scenario == "two-sample"
    assert nearly(model.evidence_.prior_in_unlabeled, INSIDE)
    assert nearly(model.prior_, INSIDE)
    assert nearly(getattr(model, "prior_in_unlabeled_", INSIDE), INSIDE)


def test_dens_pu_tells_its_own_prior_of_the_users_u():
    """With half of P among them 120 of 330 rows are positive; of U it is 90 of 300."""
    model = small("dens_pu", random_state=0).fit(X, Y, holdout=0.5)
    evidence = model.evidence_
    seen = model.stages_["refine"].facts["prior_in_unlabeled"]
    assert nearly(model.prior_in_unlabeled_, (seen * 330 - 30) / 300)
    assert nearly(evidence.prior_in_unlabeled, model.prior_in_unlabeled_)
    assert evidence.prior_interval == model.prior_interval_
    assert evidence.prior_from == "model"
    assert next(iter(evidence.prior_estimates)) == "model"
    assert evidence.prior_in_unlabeled == pytest.approx(INSIDE, abs=0.08)
    hidden = 300 * model.prior_in_unlabeled_
    assert model.prior_ == pytest.approx((60 + hidden) / 360)


def test_a_method_without_a_prior_asks_the_scores():
    data = sample(200, 300, 700)
    model = make("elkan_noto", random_state=0).fit(data[0], data[1], holdout=0.5)
    evidence = model.evidence_
    estimates = evidence.prior_estimates
    assert evidence.prior_from == "scores"
    assert evidence.prior_in_unlabeled == np.median(list(estimates.values()))
    assert evidence.prior_in_unlabeled == pytest.approx(0.3, abs=0.06)
    low, high = evidence.prior_interval
    assert low < evidence.prior_in_unlabeled < high


def test_known_negatives_are_no_part_of_the_question():
    known = np.arange(len(Y)) >= len(Y) - 100
    model = small("nnpu", prior=OVERALL, random_state=0)
    model.fit(X, Y, known_negative=known, holdout=0.25)
    evidence = model.evidence_
    assert (
        evidence.unlabeled_index.tolist() == np.flatnonzero((Y == 0) & ~known).tolist()
    )
    assert nearly(evidence.prior_in_unlabeled, 90 / 200)


# --- groups ---------------------------------------------------------------------------


def test_groups_are_held_out_whole_and_kept():
    groups = np.arange(len(Y)) // 4
    names = np.array([f"patient {g}" for g in groups])
    model = small("elkan_noto", prior=OVERALL, random_state=0)
    model.fit(X, Y, groups=names, holdout=0.3)
    evidence = model.evidence_
    left = np.setdiff1d(np.flatnonzero(Y), evidence.held_out)
    assert not set(groups[evidence.held_out]) & set(groups[left])
    assert len(evidence.groups_positive) == len(evidence.positive)
    assert len(np.unique(evidence.groups_positive)) == len(evidence.positive) / 4
    assert len(evidence.groups_unlabeled) == 300
    by_group = model.evaluate()["recall"]
    rows = model.evaluate(X[evidence.held_out])["recall"]  # the same rows, no groups
    assert by_group.value == rows.value
    assert by_group.high - by_group.low > rows.high - rows.low


# --- probabilities --------------------------------------------------------------------


def test_a_kernel_machine_is_calibrated():
    """Against the true P(y = 1) of rows of U: a margin is no log-odds."""
    X, Y, _ = sample(400, 240, 560, seed=1)
    inside = 0.3 * norm.pdf(X[:, 0], GAP, 1)
    exact = inside / (inside + 0.7 * norm.pdf(X[:, 0], 0, 1))
    model = make("biased_svm", random_state=0).fit(X, Y, holdout=0.5)
    fresh = Y == 0
    before = np.abs(model.predict_proba(X)[fresh, 1] - exact[fresh]).mean()
    model.calibrate()
    after = np.abs(model.predict_proba(X)[fresh, 1] - exact[fresh]).mean()
    assert after < 0.06 < 2 * after + 0.06 < before
