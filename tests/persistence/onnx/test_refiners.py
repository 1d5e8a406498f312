"""Refiners answer alike as modules: screens and axes."""

from __future__ import annotations

import numpy as np
from tests.persistence.onnx.twins import QUIET, assert_twin, table
from tests.small import small

from denspu import DensPU
from denspu.refinement import RankingRefiner

pytestmark = QUIET


def test_rare_positives_are_screened_first():
    refiner = RankingRefiner(max_hard=30, max_iter=9, learner="both", n_trees=5)
    model = DensPU(refiner=refiner, random_state=0, device="cpu")
    model.fit(table().X, table().y)
    below = model.refiner_.decision_function(model._embed(table().X))
    assert 0 < (below < model.refiner_.floor_ - model.refiner_.cut_).mean() < 1
    assert_twin(model, table().X)


def test_a_wide_embedding_goes_through_its_axes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 200)) + np.where(np.arange(150) < 80, 1, 0)[:, None]
    model = small("dens_pu", random_state=0).fit(X, np.arange(150) < 40)
    assert model.refiner_.axes_.directions is not None
    assert_twin(model, X)
