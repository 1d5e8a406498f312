"""Every detector: direction, threshold, and scikit-learn's own scores."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.neighbors
import sklearn.svm
import torch
from scipy.stats import spearmanr

from denspu._registry import registry
from denspu.detectors import IsolationForest, LocalOutlierFactor, OneClassSVM
from denspu.exceptions import InvalidInputError, InvalidParameterError

ENTRIES = registry().of_kind("detector")
KEYS = sorted(ENTRIES)
DIRECTIONS = {"sphere_density"}
FEW_TREES = {"n_estimators": 30, "random_state": 0}
SMALL = {"isolation_forest": FEW_TREES, "extended_isolation_forest": FEW_TREES}


def build(key, **settings):
    return registry().get(key, "detector").build(**SMALL.get(key, {}), **settings)


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


@pytest.mark.parametrize("key", sorted(set(KEYS) - DIRECTIONS))
def test_outliers_score_lower(key, cloud):
    detector = fit(build(key), cloud)
    near, far = np.zeros((1, 3)), np.full((1, 3), 8.0)
    scores = detector.score_samples(np.r_[near, far, -far])
    assert scores[0] > scores[1]
    assert scores[0] > scores[2]
    assert detector.predict(np.r_[near, far, -far]).tolist() == [1, -1, -1]
    outside, inside = (detector.decision_function(row)[0] for row in (far, near))
    assert outside < 0 <= inside


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_contamination_is_the_share_of_training_rows_outside(key, share, cloud):
    detector = fit(build(key, contamination=share), cloud)
    scores = detector.score_samples(cloud)
    assert detector.threshold_ == np.quantile(scores, share)
    if key != "density_ratio":  # shares of a few neighbours tie
        assert np.mean(detector.predict(cloud) == -1) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("key", KEYS)
def test_scores_do_not_depend_on_the_batch(key, cloud):
    detector = fit(build(key), cloud)
    whole = detector.score_samples(cloud)
    one_by_one = np.concatenate([detector.score_samples(row[None]) for row in cloud])
    assert np.allclose(one_by_one, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_refused(key, bad, cloud):
    broken = cloud.copy()
    broken[3, 1] = bad
    with pytest.raises(InvalidInputError, match=r"NaN|infinity"):
        fit(build(key), broken)
    with pytest.raises(InvalidInputError, match=r"NaN|infinity"):
        fit(build(key), cloud).score_samples(broken)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "rows",
    [np.ones((30, 2)), np.repeat([[0.0, 1.0], [2.0, 0.0]], 15, axis=0), np.eye(2)],
    ids=["constant", "duplicates", "two rows"],
)
def test_degenerate_rows_give_finite_scores(key, rows):
    detector = fit(build(key), rows)
    assert np.isfinite(detector.score_samples(rows)).all()
    assert set(detector.predict(rows)) <= {1, -1}


@pytest.mark.parametrize(
    "key", sorted(set(KEYS) - {"local_outlier_factor", "knn", "density_ratio"})
)
def test_one_row(key):
    assert np.isfinite(build(key).fit([[1.0, 2.0]]).score_samples([[0.0, 0.0]])).all()


def test_one_row_has_no_neighbours():
    with pytest.raises(InvalidInputError, match="at least 2 rows"):
        LocalOutlierFactor().fit([[1.0, 2.0]])


# --- scikit-learn is the reference ----------------------------------------------------


@pytest.mark.parametrize("contamination", ["auto", 0.1])
def test_a_forest_from_scikit_learn_answers_like_it(cloud, contamination):
    theirs = sklearn.ensemble.IsolationForest(
        n_estimators=20, contamination=contamination, random_state=3
    ).fit(cloud)
    ours = IsolationForest.from_sklearn(theirs)
    assert np.allclose(ours.score_samples(cloud), theirs.score_samples(cloud), 0, 1e-12)
    assert ours.threshold_ == theirs.offset_
    assert np.array_equal(ours.predict(cloud), theirs.predict(cloud))


def test_our_trees_rank_like_scikit_learns(cloud):
    """As well as scikit-learn's trees agree with themselves under another seed."""

    def theirs(seed):
        model = sklearn.ensemble.IsolationForest(n_estimators=200, random_state=seed)
        return model.fit(cloud).score_samples(cloud)

    ours = IsolationForest(n_estimators=200, random_state=0).fit(cloud)
    own = spearmanr(theirs(0), theirs(1))[0]
    assert spearmanr(ours.score_samples(cloud), theirs(0))[0] > own - 0.01


def test_local_outlier_factor_equals_scikit_learn(cloud):
    ours = LocalOutlierFactor(n_neighbors=7).fit(cloud)
    theirs = sklearn.neighbors.LocalOutlierFactor(n_neighbors=7, novelty=True)
    theirs.fit(cloud)
    assert np.array_equal(ours.score_samples(cloud), theirs.score_samples(cloud))
    assert ours.threshold_ == theirs.offset_ == -1.5


def test_one_class_svm_equals_scikit_learn(cloud):
    ours = OneClassSVM(nu=0.1, gamma=0.3).fit(cloud)
    theirs = sklearn.svm.OneClassSVM(nu=0.1, gamma=0.3).fit(cloud)
    assert np.array_equal(ours.score_samples(cloud), theirs.score_samples(cloud))
    assert ours.threshold_ == pytest.approx(theirs.offset_[0])
    assert np.array_equal(ours.predict(cloud), theirs.predict(cloud))


# --- limits that follow the data ------------------------------------------------------


def test_a_tree_sees_all_rows_where_there_are_fewer():
    forest = IsolationForest(n_estimators=3, random_state=0).fit(np.eye(5))
    assert forest.forest_.n_samples == 5


def test_neighbours_are_all_others_where_there_are_fewer():
    assert LocalOutlierFactor().fit(np.eye(5)).model_.n_neighbors_ == 4


def test_the_seed_decides_the_forest(cloud):
    def scores(seed):
        forest = IsolationForest(n_estimators=5, random_state=seed)
        return forest.fit(cloud).score_samples(cloud)

    assert np.array_equal(scores(0), scores(0))
    assert not np.array_equal(scores(0), scores(1))


def test_the_papers_numbers_are_the_defaults():
    forest = IsolationForest()
    assert (forest.n_estimators, forest.max_samples) == (1000, 256)


@pytest.mark.parametrize(
    "detector",
    [
        IsolationForest(n_estimators=0), IsolationForest(max_samples=0.5),
        IsolationForest(contamination=0.7), LocalOutlierFactor(n_neighbors=0),
        OneClassSVM(nu=0), OneClassSVM(gamma="scal"), OneClassSVM(contamination=0),
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters(detector, cloud):
    with pytest.raises(InvalidParameterError, match="must be"):
        detector.fit(cloud)


def test_an_earlier_fit_leaves_no_scores_behind(cloud):
    forest = IsolationForest(n_estimators=5, contamination=0.1, random_state=0)
    forest.fit(cloud).set_params(contamination="auto").fit(cloud[:50])
    with pytest.raises(InvalidParameterError, match="pass them as Z"):
        forest.set_threshold("contamination", 0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_tensors_are_taken(cloud, dtype):
    Z = torch.from_numpy(cloud).to(dtype).requires_grad_()
    forest = IsolationForest(n_estimators=5, random_state=0).fit(Z)
    assert forest.score_samples(Z).shape == (120,)
