"""The weights of the best epoch come back, whatever came after it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from denspu.training import KeepBest, Plateau, TensorBatches, TrainingConfig, train


def run(measures, epochs=None, patience=None):
    """Train under given measures; return module, weights by epoch, history."""
    module = nn.Linear(1, 1)
    seen, told = [], iter(measures)

    def measure(network):
        seen.append(network.weight.detach().clone())
        return next(told)

    rows = torch.linspace(0, 1, 4).unsqueeze(1)
    history = train(
        module,
        TensorBatches(rows, batch_size=2),
        lambda network, batch: (network(batch[0]) - 7).square().mean(),
        TrainingConfig(
            epochs=epochs or len(measures),
            lr=0.1,
            plateau=KeepBest.patience(patience),
        ),
        device=torch.device("cpu"),
        generator=torch.Generator().manual_seed(0),
        hooks=[KeepBest(measure)],
    )
    return module, seen, history


@pytest.mark.parametrize(
    ("measures", "best"),
    [
        ([3.0, 1.0, 2.0], 1),
        ([1.0, 2.0, 3.0], 0),
        ([3.0, 2.0, 1.0], 2),
        ([2.0, 1.0, 1.0], 1),  # of equals the first
        ([float("nan"), 2.0, 3.0], 1),
        ([float("inf"), float("inf"), float("inf")], 0),
    ],
    ids=str,
)
def test_the_best_weights_come_back(measures, best):
    module, seen, history = run(measures)
    assert torch.equal(module.weight, seen[best])
    assert not torch.equal(seen[0], seen[2])
    np.testing.assert_array_equal(history.column("held_out"), measures)


def test_patience_counts_epochs_without_a_better_one():
    module, seen, history = run([3.0, 1.0, 2.0, 2.0, 0.0], patience=2)
    assert len(history) == 4
    assert torch.equal(module.weight, seen[1])
    assert KeepBest.patience(None) is None
    assert KeepBest.patience(4) == Plateau(4, 0.0, "held_out")
