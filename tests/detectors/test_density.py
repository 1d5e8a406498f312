"""Density detectors against closed forms and slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ive

from denspu.detectors import DensityRatio, KNNDistance, Mahalanobis, SphereDensity
from denspu.detectors.sphere_density import log_kernel_constant
from denspu.exceptions import InvalidInputError, LabelError


@pytest.fixture
def Z():
    return np.random.default_rng(0).normal(size=(80, 4))


@pytest.fixture
def Q():
    return np.random.default_rng(1).normal(size=(30, 4)) * 2


def distances(Q, Z):
    return np.sort(np.sqrt(((Q[:, None] - Z[None]) ** 2).sum(-1)), axis=1)


# --- nearest rows ---


def test_knn_is_minus_the_mean_or_the_farthest_distance(Z, Q):
    near = distances(Q, Z)[:, :6]
    mean = KNNDistance(n_neighbors=6, device="cpu").fit(Z).score_samples(Q)
    kth = KNNDistance(n_neighbors=6, statistic="kth", device="cpu").fit(Z)
    np.testing.assert_allclose(mean, -near.mean(1), atol=1e-12)
    np.testing.assert_allclose(kth.score_samples(Q), -near[:, -1], atol=1e-12)


def test_knn_threshold_judges_each_row_by_the_others(Z):
    detector = KNNDistance(n_neighbors=1, device="cpu").fit(Z)
    nearest_other = distances(Z, Z)[:, 1]
    expected = np.quantile(-nearest_other, 0.05)
    assert detector.threshold_ == pytest.approx(expected, abs=1e-12)


def test_knn_needs_two_rows():
    with pytest.raises(InvalidInputError, match="at least 2 rows"):
        KNNDistance().fit(np.zeros((1, 3)))


# --- density ratio ---


def ratio_by_hand(Q, P, U, k):
    both = np.concatenate([P, U])
    order = np.argsort(((Q[:, None] - both[None]) ** 2).sum(-1), axis=1)[:, :k]
    return (order < len(P)).mean(1)


def test_density_ratio_is_the_share_of_positives_among_the_nearest(Z, Q):
    y = (np.arange(80) < 20).astype(int)
    detector = DensityRatio(around="rows", n_neighbors=9, device="cpu").fit(Z, y)
    expected = ratio_by_hand(Q, Z[:20], Z[20:], 9)
    np.testing.assert_allclose(detector.score_samples(Q), expected)


def test_positives_lie_higher_than_negatives():
    rng = np.random.default_rng(0)
    Z = np.concatenate([rng.normal(size=(200, 3)), rng.normal(size=(400, 3)) + 4])
    y = (np.arange(600) < 50).astype(int)
    scores = DensityRatio(device="cpu").fit(Z, y).score_samples(Z)
    assert scores[50:200].min() > scores[200:].max() - 0.25
    assert scores[50:200].mean() > 10 * scores[200:].mean()


def test_a_sampled_row_counts_for_those_it_represents():
    """All rows in one place: the share is the true one, whatever the sample."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(4_000, 2))
    y = (np.arange(4_000) < 400).astype(int)
    whole = DensityRatio(
        around="rows", n_neighbors=3_999, max_unlabeled=None, device="cpu"
    ).fit(Z, y)
    assert whole.score_samples(Z[:1])[0] == pytest.approx(0.1, abs=0.001)
    part = DensityRatio(
        around="rows",
        n_neighbors=1_299,
        max_unlabeled=900,
        device="cpu",
        random_state=0,
    ).fit(Z, y)  # fmt: skip
    assert len(part.unlabeled_) == 900
    assert part.represents_ == pytest.approx(4.0)
    assert part.score_samples(Z[:1])[0] == pytest.approx(0.1, abs=0.002)


def test_the_threshold_does_not_let_a_positive_vouch_for_itself():
    lone = np.array([[0.0], [1_000.0], [1_001.0], [1_002.0]])
    alone = DensityRatio(around="rows", n_neighbors=1, device="cpu")
    alone.fit(np.concatenate([lone, lone[:1] + 1]), [1, 1, 0, 0, 0])
    assert alone.training_scores_.tolist() == [0.0, 0.0]


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
    detector = DensityRatio(around="positives", n_positives=4, device="cpu").fit(Z, y)
    for rows in (Q, Z[20:]):  # a row of U is no neighbour of itself
        expected = ball_by_hand(rows.astype("f8"), Z[:20], Z[20:], 4)
        np.testing.assert_allclose(detector.score_samples(rows), expected)


def test_around_positives_on_the_sphere(Z, Q):
    y = (np.arange(80) < 20).astype(int)
    detector = DensityRatio(
        around="positives", n_positives=4, metric="cosine", device="cpu"
    ).fit(Z, y)
    sphere = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in (Q, Z)]
    expected = ball_by_hand(sphere[0], sphere[1][:20], sphere[1][20:], 4)
    np.testing.assert_allclose(detector.score_samples(Q * 3), expected)


def test_sampled_and_other_rows_of_u_are_treated_alike():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(4_000, 2))
    y = (np.arange(4_000) < 40).astype(int)
    detector = DensityRatio(max_unlabeled=400, random_state=0, device="cpu").fit(Z, y)
    assert detector.around_ == "positives"
    sampled = (Z[40:, None] == detector.unlabeled_[None]).all(-1).any(1)
    scores = detector.score_samples(Z[40:])
    assert sampled.sum() == 400
    assert scores[sampled].mean() == pytest.approx(scores[~sampled].mean(), rel=0.15)


def test_copies_of_a_row_count_as_neighbours(Z):
    """Many equal negatives are dense, not lonely."""
    far = np.full((200, 4), 9.0)
    X = np.concatenate([Z, far])
    y = (np.arange(280) < 20).astype(int)
    detector = DensityRatio(around="positives", n_positives=4, device="cpu").fit(X, y)
    assert detector.score_samples(far[:1])[0] < 0.03


def test_a_positive_is_left_out_not_its_copy():
    P = np.arange(6.0)[:, None] * 10
    X = np.concatenate([P, P, P, P])
    y = (np.arange(24) < 6).astype(int)
    detector = DensityRatio(around="rows", n_neighbors=3, device="cpu").fit(X, y)
    assert detector.training_scores_.tolist() == [0.0] * 6


def test_rare_positives_choose_the_ball(Z):
    common = DensityRatio(n_neighbors=20, device="cpu").fit(Z, np.arange(80) < 40)
    rare = DensityRatio(n_neighbors=20, device="cpu").fit(Z, np.arange(80) < 5)
    assert (common.around_, rare.around_) == ("rows", "positives")
    assert rare.n_positives_ == 4


def test_density_ratio_needs_labels(Z):
    with pytest.raises(LabelError, match="requires y"):
        DensityRatio().fit(Z)


# --- one cloud ---


def test_mahalanobis_equals_the_formula(Z, Q):
    from sklearn.covariance import LedoitWolf

    detector = Mahalanobis().fit(Z)
    model = LedoitWolf().fit(Z)
    expected = -np.sqrt(model.mahalanobis(Q))
    np.testing.assert_allclose(detector.score_samples(Q), expected, rtol=1e-6)
    assert 0 < detector.shrinkage_ < 1


def test_mahalanobis_with_more_features_than_rows():
    Z = np.random.default_rng(0).normal(size=(5, 40))
    scores = Mahalanobis().fit(Z).score_samples(np.concatenate([Z, Z + 50]))
    assert scores[:5].min() > scores[5:].max()


def test_mahalanobis_of_constant_columns_and_equal_rows():
    Z = np.random.default_rng(0).normal(size=(30, 3))
    Z[:, 1] = 2.0
    assert np.isfinite(Mahalanobis().fit(Z).score_samples(Z)).all()
    same = Mahalanobis().fit(np.ones((10, 2)))
    assert same.score_samples([[1.0, 1.0], [4.0, 1.0]]).tolist() == [0.0, -3.0]


# --- the sphere ---


def test_sphere_density_is_the_log_mean_of_kernels(Z, Q):
    detector = SphereDensity(concentration=7.0, device="cpu").fit(Z)
    a, b = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (Q, Z))
    expected = np.log(np.exp(7.0 * a @ b.T).mean(1))
    np.testing.assert_allclose(detector.score_samples(Q), expected, atol=1e-9)


def test_only_the_direction_counts(Z, Q):
    detector = SphereDensity(concentration=5.0, device="cpu").fit(Z)
    found = detector.score_samples(Q * 17), detector.score_samples(Q)
    np.testing.assert_allclose(*found, atol=1e-9)


@pytest.mark.parametrize(("kappa", "d"), [(1.0, 30), (20.0, 64), (100.0, 512)])
def test_kernel_constant_equals_the_bessel_formula(kappa, d):
    order = d / 2 - 1
    bessel = np.log(ive(order, kappa)) + kappa
    if not np.isfinite(bessel):
        pytest.fail("choose a case that the reference can compute")
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
