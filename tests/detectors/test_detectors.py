"""Every detector: direction, threshold, batches, hard rows, and a reference."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.neighbors
import sklearn.svm
import torch
from scipy.special import ive
from scipy.stats import spearmanr
from sklearn.covariance import LedoitWolf

from denspu._registry import registry
from denspu.detectors import (
    DensityRatio,
    IsolationForest,
    KNNDistance,
    LocalOutlierFactor,
    Mahalanobis,
    OneClassSVM,
    SphereDensity,
)
from denspu.detectors.neighbours import count_at_least, log_kernel_constant
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError

KEYS = sorted(registry().of_kind("detector"))
OF_NEIGHBOURS = {"local_outlier_factor", "knn", "density_ratio"}


def build(key, **settings):
    few = {"n_estimators": 30, "random_state": 0} if "forest" in key else {}
    return registry().get(key, "detector").build(**few, **settings)


def fit(detector, Z):
    """Fit; a detector that compares P with U gets far rows as U."""
    if not hasattr(detector, "needs_unlabeled"):
        return detector.fit(Z)
    Z = np.asarray(Z, dtype=float)
    far = np.random.default_rng(9).normal(size=(2 * len(Z), Z.shape[1])) + 8.0
    far[::2] -= 16.0
    y = np.arange(3 * len(Z)) < len(Z)
    return detector.fit(np.concatenate([Z, far]), y.astype(int))


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).normal(size=(120, 3))


@pytest.fixture(scope="module")
def Z():
    return np.random.default_rng(0).normal(size=(80, 4))


@pytest.fixture(scope="module")
def Q():
    return np.random.default_rng(1).normal(size=(30, 4)) * 2


# --- all of them ----------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
def test_the_contract(key, cloud):
    detector = fit(build(key), cloud)
    scores = detector.score_samples(cloud)
    if key != "sphere_density":  # which knows directions only
        near, far = np.zeros((1, 3)), np.full((1, 3), 8.0)
        assert detector.predict(np.r_[near, far, -far]).tolist() == [1, -1, -1]
        outside, inside = (detector.decision_function(row)[0] for row in (far, near))
        assert outside < 0 <= inside
    one_by_one = np.concatenate([detector.score_samples(row[None]) for row in cloud])
    assert np.allclose(one_by_one, scores, rtol=1e-12, atol=1e-12)
    stated = fit(build(key, contamination=0.3), cloud)
    assert stated.threshold_ == np.quantile(stated.score_samples(cloud), 0.3)
    if key != "density_ratio":  # shares of a few neighbours tie
        assert np.mean(stated.predict(cloud) == -1) == pytest.approx(0.3, abs=0.01)
    broken = cloud.copy()
    for broken[3, 1] in (np.nan, np.inf):
        with pytest.raises(InvalidInputError, match=r"NaN|infinity"):
            fit(build(key), broken)
        with pytest.raises(InvalidInputError, match=r"NaN|infinity"):
            detector.score_samples(broken)


@pytest.mark.parametrize("key", KEYS)
def test_degenerate_rows_give_finite_scores(key):
    duplicates = np.repeat([[0.0, 1.0], [2.0, 0.0]], 15, axis=0)
    for rows in (np.ones((30, 2)), duplicates, np.eye(2)):
        detector = fit(build(key), rows)
        assert np.isfinite(detector.score_samples(rows)).all()
        assert set(detector.predict(rows)) <= {1, -1}
    if key not in OF_NEIGHBOURS:
        alone = build(key).fit([[1.0, 2.0]]).score_samples([[0.0, 0.0]])
        assert np.isfinite(alone).all()
    elif key != "density_ratio":
        with pytest.raises(InvalidInputError, match="at least 2 rows"):
            build(key).fit([[1.0, 2.0]])


@pytest.mark.parametrize(
    "detector",
    [IsolationForest(contamination=0.7), OneClassSVM(gamma="scal")],
    ids=str,
)
def test_bad_parameters(detector, cloud):
    with pytest.raises(InvalidParameterError, match="must be"):
        detector.fit(cloud)


# --- scikit-learn is the reference ----------------------------------------------------


def test_a_forest_from_scikit_learn_answers_like_it(cloud):
    for contamination in ("auto", 0.1):
        theirs = sklearn.ensemble.IsolationForest(
            n_estimators=20, contamination=contamination, random_state=3
        ).fit(cloud)
        ours = IsolationForest.from_sklearn(theirs)
        scores = theirs.score_samples(cloud)
        assert np.allclose(ours.score_samples(cloud), scores, 0, 1e-12)
        assert ours.threshold_ == theirs.offset_
        assert np.array_equal(ours.predict(cloud), theirs.predict(cloud))


def test_our_trees_rank_like_scikit_learns(cloud):
    """As well as scikit-learn's trees agree with themselves under another seed."""

    def theirs(seed):
        model = sklearn.ensemble.IsolationForest(n_estimators=100, random_state=seed)
        return model.fit(cloud).score_samples(cloud)

    ours = IsolationForest(n_estimators=100, random_state=0).fit(cloud)
    again = IsolationForest(n_estimators=100, random_state=0).fit(cloud)
    other = IsolationForest(n_estimators=100, random_state=1).fit(cloud)
    scores, first = ours.score_samples(cloud), theirs(0)
    assert spearmanr(scores, first)[0] > spearmanr(first, theirs(1))[0] - 0.01
    assert np.array_equal(scores, again.score_samples(cloud))
    assert not np.array_equal(scores, other.score_samples(cloud))
    assert (IsolationForest().n_estimators, IsolationForest().max_samples) == (
        1000,
        256,
    )


def test_one_class_svm_and_local_outlier_factor_are_scikit_learns(cloud):
    ours = OneClassSVM(nu=0.1, gamma=0.3).fit(cloud)
    theirs = sklearn.svm.OneClassSVM(nu=0.1, gamma=0.3).fit(cloud)
    assert np.array_equal(ours.score_samples(cloud), theirs.score_samples(cloud))
    assert ours.threshold_ == pytest.approx(theirs.offset_[0])
    assert np.array_equal(ours.predict(cloud), theirs.predict(cloud))
    ours = LocalOutlierFactor(n_neighbors=7).fit(cloud)
    theirs = sklearn.neighbors.LocalOutlierFactor(n_neighbors=7, novelty=True)
    theirs.fit(cloud)
    assert np.array_equal(ours.score_samples(cloud), theirs.score_samples(cloud))
    assert ours.threshold_ == theirs.offset_ == -1.5
    assert LocalOutlierFactor().fit(np.eye(5)).model_.n_neighbors_ == 4


def test_mahalanobis(Z, Q):
    detector = Mahalanobis().fit(Z)
    expected = -np.sqrt(LedoitWolf().fit(Z).mahalanobis(Q))
    np.testing.assert_allclose(detector.score_samples(Q), expected, rtol=1e-6)
    assert 0 < detector.shrinkage_ < 1
    few = np.random.default_rng(0).normal(size=(5, 40))
    scores = Mahalanobis().fit(few).score_samples(np.concatenate([few, few + 50]))
    assert scores[:5].min() > scores[5:].max()
    same = Mahalanobis().fit(np.ones((10, 2)))
    assert same.score_samples([[1.0, 1.0], [4.0, 1.0]]).tolist() == [0.0, -3.0]


def test_an_earlier_fit_leaves_no_scores_behind(cloud):
    forest = IsolationForest(n_estimators=5, contamination=0.1, random_state=0)
    forest.fit(cloud).set_params(contamination="auto").fit(cloud[:50])
    with pytest.raises(InvalidParameterError, match="pass them as Z"):
        forest.set_threshold("contamination", 0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_tensors_are_taken(cloud, dtype):
    rows = torch.from_numpy(cloud).to(dtype).requires_grad_()
    forest = IsolationForest(n_estimators=5, random_state=0).fit(rows)
    assert forest.score_samples(rows).shape == (120,)


# --- nearest rows ---------------------------------------------------------------------


def distances(Q, Z):
    return np.sort(np.sqrt(((Q[:, None] - Z[None]) ** 2).sum(-1)), axis=1)


def test_knn_is_minus_the_mean_or_the_farthest_distance(Z, Q):
    near = distances(Q, Z)[:, :6]
    mean = KNNDistance(n_neighbors=6, device="cpu").fit(Z).score_samples(Q)
    kth = KNNDistance(n_neighbors=6, statistic="kth", device="cpu").fit(Z)
    np.testing.assert_allclose(mean, -near.mean(1), atol=1e-12)
    np.testing.assert_allclose(kth.score_samples(Q), -near[:, -1], atol=1e-12)
    alone = KNNDistance(n_neighbors=1, device="cpu").fit(Z)  # no row vouches for itself
    expected = np.quantile(-distances(Z, Z)[:, 1], 0.05)
    assert alone.threshold_ == pytest.approx(expected, abs=1e-12)


# --- density ratio --------------------------------------------------------------------


def ratio(**settings):
    return DensityRatio(device="cpu", random_state=0, **settings)


def test_the_share_of_positives_among_the_nearest(Z, Q):
    y = (np.arange(80) < 20).astype(int)
    detector = ratio(around="rows", n_neighbors=9).fit(Z, y)
    order = np.argsort(((Q[:, None] - Z[None]) ** 2).sum(-1), axis=1)[:, :9]
    np.testing.assert_allclose(detector.score_samples(Q), (order < 20).mean(1))


def test_a_sampled_row_counts_for_those_it_represents():
    """All rows in one place: the share is the true one, whatever the sample."""
    rows = np.random.default_rng(0).normal(size=(2_000, 2))
    y = (np.arange(2_000) < 200).astype(int)
    part = ratio(around="rows", n_neighbors=649, max_unlabeled=450).fit(rows, y)
    assert len(part.unlabeled_) == 450
    assert part.represents_ == pytest.approx(4.0)
    assert part.score_samples(rows[:1])[0] == pytest.approx(0.1, abs=0.002)


def test_sampled_and_other_rows_of_u_are_treated_alike():
    rows = np.random.default_rng(0).normal(size=(2_000, 2))
    detector = ratio(max_unlabeled=400).fit(rows, np.arange(2_000) < 40)
    assert detector.around_ == "positives"
    sampled = (rows[40:, None] == detector.unlabeled_[None]).all(-1).any(1)
    scores = detector.score_samples(rows[40:])
    assert sampled.sum() == 400
    assert scores[sampled].mean() == pytest.approx(scores[~sampled].mean(), rel=0.15)


def ball_by_hand(Q, P, U, j):
    """Return j / (j + #U) in the ball of the j-th nearest positive, less the query."""
    to_p, to_u = (np.sqrt(((Q[:, None] - R[None]) ** 2).sum(-1)) for R in (P, U))
    radius = np.sort(to_p, axis=1)[:, j - 1 : j]
    inside = (to_u <= radius).sum(1) - (to_u == 0).any(1)
    return j / (j + inside)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_around_positives_equals_a_count_in_the_ball(Z, Q, dtype):
    Z, Q = Z.astype(dtype), Q.astype(dtype)
    y = (np.arange(80) < 20).astype(int)
    detector = ratio(around="positives", n_positives=4).fit(Z, y)
    for rows in (Q, Z[20:]):  # a row of U is no neighbour of itself
        expected = ball_by_hand(rows.astype("f8"), Z[:20], Z[20:], 4)
        np.testing.assert_allclose(detector.score_samples(rows), expected)
    detector = ratio(around="positives", n_positives=4, metric="cosine").fit(Z, y)
    q, z = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (Q, Z))
    expected = ball_by_hand(q, z[:20], z[20:], 4)
    np.testing.assert_allclose(detector.score_samples(Q * 3), expected)


def test_copies_count_as_neighbours_and_no_row_as_its_own(Z):
    far = np.full((200, 4), 9.0)  # many equal negatives are dense, not lonely
    X = np.concatenate([Z, far])
    detector = ratio(around="positives", n_positives=4).fit(X, np.arange(280) < 20)
    assert detector.score_samples(far[:1])[0] < 0.03
    P = np.arange(6.0)[:, None] * 10
    detector = ratio(around="rows", n_neighbors=3)
    detector.fit(np.concatenate([P, P, P, P]), np.arange(24) < 6)
    assert detector.training_scores_.tolist() == [0.0] * 6


def test_rare_positives_choose_the_ball(Z):
    common = ratio(n_neighbors=20).fit(Z, np.arange(80) < 40)
    rare = ratio(n_neighbors=20).fit(Z, np.arange(80) < 5)
    assert (common.around_, rare.around_) == ("rows", "positives")
    assert rare.n_positives_ == 4
    with pytest.raises(LabelError, match="requires y"):
        ratio().fit(Z)


@pytest.mark.parametrize("compiled", [True, False])
def test_counting_equals_numpy(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    values = np.random.default_rng(0).integers(0, 9, (100, 57)).astype("f4")
    low = np.linspace(0, 9, 100).astype("f4").round()
    high = low[::-1].copy()
    found = count_at_least(*map(torch.from_numpy, (values, low, high)))
    for counts, bound in zip(found, (low, high), strict=True):
        assert counts.tolist() == (values >= bound[:, None]).sum(1).tolist()


# --- the sphere -----------------------------------------------------------------------


def test_sphere_density_is_the_log_mean_of_kernels(Z, Q):
    detector = SphereDensity(concentration=7.0, device="cpu").fit(Z)
    a, b = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (Q, Z))
    expected = np.log(np.exp(7.0 * a @ b.T).mean(1))
    for rows in (Q, Q * 17):  # only the direction counts
        np.testing.assert_allclose(detector.score_samples(rows), expected, atol=1e-9)
    for kappa, d in ((1.0, 30), (20.0, 64), (100.0, 512)):
        order = d / 2 - 1
        bessel = np.log(ive(order, kappa)) + kappa
        exact = order * np.log(kappa) - d / 2 * np.log(2 * np.pi) - bessel
        assert log_kernel_constant(kappa, d) == pytest.approx(exact, rel=1e-3)


def test_auto_concentration_is_sharper_for_tighter_clusters():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(5, 20))
    tight, loose = (
        centres[rng.integers(5, size=300)] + spread * rng.normal(size=(300, 20))
        for spread in (0.1, 1.0)
    )
    found = [SphereDensity(device="cpu").fit(Z).concentration_ for Z in (tight, loose)]
    assert found[0] > found[1]
