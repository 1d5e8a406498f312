"""The paper's classifier: its settings, and one short training."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu._random import Randomness
from denspu.classifiers import VGG16Classifier
from denspu.exceptions import InvalidParameterError
from denspu.networks.backbones import VGG16


def test_configuration_is_the_papers():
    config = VGG16Classifier()._config()
    assert (config.optimizer, config.lr, config.weight_decay) == ("sgd", 1e-4, 1e-3)
    assert (config.epochs, config.momentum, config.nesterov) == (200, 0.0, False)
    assert (config.plateau.patience, config.plateau.min_improvement) == (10, 1e-3)
    assert config.plateau.monitor == "loss"
    assert config.precision == "float32"
    assert config.schedule == "constant"
    assert VGG16Classifier().batch_size == 32
    assert VGG16Classifier().balance == "batches"
    assert isinstance(VGG16Classifier()._build(), VGG16)


def test_other_settings_reach_the_configuration():
    model = VGG16Classifier(momentum=0.9, patience=None, precision="bf16", lr=0.1)
    config = model._config()
    assert (config.momentum, config.nesterov) == (0.9, True)
    assert config.plateau is None
    assert (config.precision, config.lr) == ("bf16", 0.1)


@pytest.mark.parametrize(
    "settings",
    [{"image_size": 16}, {"balance": "both"}, {"momentum": 1.0}, {"patience": 0}],
    ids=str,
)
def test_bad_parameters(settings):
    with pytest.raises(InvalidParameterError, match=next(iter(settings))):
        VGG16Classifier(**settings).fit(np.zeros((4, 8, 8)), [1, 1, 0, 0])


def test_a_short_training_moves_every_layer():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
    y = np.array([1, 1, 1, 1, 0, 0, 0, 0])
    model = VGG16Classifier(epochs=2, batch_size=4, random_state=0, device="cpu")
    model.fit(X, y)
    assert model.facts()["epochs"] == 2
    assert len(model.history_) == 2
    assert all(np.isfinite(model.history_.column("loss")))
    with Randomness(0).torch_scope("weights", torch.device("cpu")):
        start = VGG16()
    for before, after in zip(
        start.parameters(), model.module_.parameters(), strict=True
    ):
        assert not torch.equal(before, after)
        assert torch.allclose(before, after, atol=1e-2)
