"""One-class learning: detectors, and the two ways to cut."""

from __future__ import annotations

import numpy as np
import pytest

from denspu.detectors import IsolationForest
from denspu.methods.one_class import OneClass


@pytest.fixture
def data(make_blobs):
    return make_blobs(seed=10, n_labeled=60, n_hidden=60, n_negative=120, far=4.0)


@pytest.mark.parametrize("detector", ["knn", "sphere_density"])
def test_other_detectors_can_be_used(data, detector):
    model = OneClass(detector=detector, prior=0.5, random_state=10)
    model.fit(data.X, data.y)
    hidden = data.y == 0
    least = 0.75 if detector == "sphere_density" else 0.9  # it knows directions only
    assert np.mean(model.predict(data.X[hidden]) == data.truth[hidden]) > least


def test_the_prior_sets_the_cut(data):
    for prior, inside in ((0.5, 1 / 3), (0.4, 0.2)):
        model = OneClass(prior=prior, random_state=10).fit(data.X, data.y)
        share = model.predict(data.X[data.y == 0]).mean()
        assert share == pytest.approx(inside, abs=0.01)
    model.set_params(scenario="two-sample").fit(data.X, data.y)
    assert model.predict(data.X[data.y == 0]).mean() == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize(
    "detector", ["knn", IsolationForest(n_estimators=20), "density_ratio"]
)
def test_held_out_positives_set_the_cut(data, detector):
    """The share asked for lies outside, also of positives that nobody has seen."""
    hidden = (data.y == 0) & (data.truth == 1)
    for outside in (0.1, 0.4):
        model = OneClass(
            detector=detector, threshold="held_out", outside=outside, random_state=10
        ).fit(data.X, data.y)
        rejected = 1 - model.predict(data.X[hidden]).mean()
        assert rejected == pytest.approx(outside, abs=0.15)
        assert not hasattr(model, "prior_")


def test_held_out_groups_are_kept_apart(data):
    """Copies of a row vouch for each other unless their group is held out."""
    X = np.repeat(data.X, 6, axis=0)
    y = np.repeat(data.y, 6)
    groups = np.repeat(np.arange(len(data.y)), 6)
    model = OneClass(threshold="held_out", random_state=10)
    alone = model.fit(X, y).cut_
    together = model.fit(X, y, groups=groups).cut_
    assert together < alone
