"""One-class learning: detectors, and the cut."""

from __future__ import annotations

import numpy as np
import pytest

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
