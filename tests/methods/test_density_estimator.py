"""Density estimators: which rows of U become negatives, and by which density."""

from __future__ import annotations

import numpy as np
import pytest

from denspu.detectors import Mahalanobis
from denspu.exceptions import FewRowsWarning
from denspu.methods.density_estimator import (
    DensityEstimator,
    few_columns,
    kernel_density,
    mixture,
)


@pytest.fixture
def data(make_blobs):
    return make_blobs(seed=10, n_labeled=60, n_hidden=60, n_negative=120, far=3.0)


@pytest.mark.parametrize("density", ["kernel", "mixture", "knn", Mahalanobis()])
def test_the_least_dense_rows_are_negatives(data, density):
    model = DensityEstimator(density=density, prior=0.5, random_state=10)
    model.fit(data.X, data.y)
    assert not data.y[model.negative_index_].any()
    assert np.mean(data.truth[model.negative_index_] == 0) > 0.95
    hidden = data.y == 0
    assert np.mean(model.predict(data.X[hidden]) == data.truth[hidden]) > 0.9


def test_how_many_follows_prior_and_share(data):
    """Of 180 rows of U two thirds are negative at prior 0.5."""
    for prior, share, count in ((0.5, 0.8, 96), (0.5, 0.25, 30), (0.75, 1.0, 60)):
        model = DensityEstimator(negatives=share, prior=prior, random_state=10)
        model.fit(data.X, data.y)
        assert len(model.negative_index_) == pytest.approx(count, abs=1)
    assert model.prior_ == 0.75


def test_known_negatives_join(data):
    known = (data.y == 0) & (data.truth == 1) & (data.X[:, 0] > 1)
    model = DensityEstimator(prior=0.5, random_state=10)
    model.fit(data.X, data.y, known_negative=known)
    assert known[model.negative_index_].sum() == known.sum()


def test_groups_are_held_out_together():
    """Copies of a row in a group: one by one they would ask for the least width."""
    rng = np.random.default_rng(10)
    P = np.repeat(rng.normal(size=(30, 2)), 4, axis=0)
    groups = np.repeat(np.arange(30), 4)
    alone = kernel_density(P, None, rng)
    together = kernel_density(P, groups, rng)
    assert alone.bandwidth < together.bandwidth


def test_the_number_of_gaussians_follows_the_data():
    rng = np.random.default_rng(10)
    one = rng.normal(size=(150, 2))
    three = np.concatenate([one, one + 20, one - [20, -20]])
    assert mixture(one, 0).n_components == 1
    assert mixture(three, 0).n_components == 3


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DegenerateFitWarning")
@pytest.mark.filterwarnings("ignore::denspu.exceptions.SelectionWarning")
def test_copies_of_few_rows_are_told_in_our_words(data):
    """Any warning of scikit-learn or NumPy would be an error here."""
    model = DensityEstimator(density="mixture", prior=0.5, random_state=10)
    X = data.X.copy()
    X[data.y == 1] = np.repeat(X[:3], 20, axis=0)
    with pytest.warns(FewRowsWarning, match="60 labelled positives are copies of 3"):
        model.fit(X, data.y)
    with pytest.warns(FewRowsWarning, match="density='mixture' learns little"):
        model.fit(np.ones_like(X), data.y)
    for density in ("kernel", "knn"):
        model.set_params(density=density, max_dims=1).fit(np.ones_like(X), data.y)


def test_columns_are_few_and_of_variance_one():
    rng = np.random.default_rng(10)
    Z = rng.normal(size=(50, 8)) * 5
    few = few_columns(Z, 3, 0)
    assert few.shape == (50, 3)
    assert few.var(axis=0).mean() == pytest.approx(1)
    assert few_columns(Z, 8, 0).shape == (50, 8)
    assert few_columns(np.ones((4, 2)), 8, 0).shape == (4, 2)
