"""From seconds to epochs: decided once, before training, and recorded."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from denspu._deadline import Deadline
from denspu._random import Randomness
from denspu.training.batches import Batches
from denspu.training.config import TrainingConfig
from denspu.training.loop import WARM_UP, Loss, Trial

WARM_STEPS = {False: 1, True: WARM_UP + 2}
"""Steps that are not timed, on a GPU a captured step is recorded among them."""

TIMED_STEPS = 3


def within(
    deadline: Deadline,
    module: nn.Module,
    batches: Batches,
    loss: Loss,
    config: TrainingConfig,
    *,
    device: torch.device,
    share: float = 1.0,
    configure: Callable[[int], TrainingConfig] | None = None,
) -> TrainingConfig:
    """Return ``config`` with as many epochs as fit into the time, at least one.

    ``configure`` makes the settings for a number of epochs where others, such as the
    warm-up, follow from it.

    A copy of the network takes a few steps against the clock; the network itself and
    the random numbers that follow are untouched, so that a second run with the number
    of epochs found here gives the same result.
    """
    if deadline.left() == float("inf"):
        return config
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        seconds = _seconds_per_step(module, batches, loss, config, device)
    affordable = int(deadline.left() * share / max(seconds * len(batches), 1e-9))
    epochs = max(1, min(config.epochs, affordable))
    return configure(epochs) if configure else replace(config, epochs=epochs)


def _seconds_per_step(
    module: nn.Module,
    batches: Batches,
    loss: Loss,
    config: TrainingConfig,
    device: torch.device,
) -> float:
    warm, timed_steps = WARM_STEPS[device.type == "cuda"], TIMED_STEPS
    trial = Trial(copy.deepcopy(module), loss, config, device)
    took: list[float] = []
    generator = Randomness(0).generator("trial")
    while len(took) < warm + timed_steps:
        for batch in batches.epoch(generator):
            start = time.perf_counter()
            trial.step(batch)
            took.append(time.perf_counter() - start)
            if len(took) == warm + timed_steps:
                break
    timed = sorted(took[warm:])
    return timed[len(timed) // 2]
