"""What fits: epochs into the time there is, rows and steps into a device's memory."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from denspu._machine import Deadline, on_device
from denspu._random import Randomness
from denspu.training.batches import Batches
from denspu.training.hooks import TrainingConfig
from denspu.training.loop import WARM_UP, Loss, Runner, Step

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
    """Return the time of a step on a copy of the network, which is thrown away."""
    warm, timed_steps = WARM_STEPS[device.type == "cuda"], TIMED_STEPS
    module = copy.deepcopy(module).to(device).train()
    runner = Runner(module, [Step(loss)], config, device, 1)
    took: list[float] = []
    generator = Randomness(0).generator("trial")
    while len(took) < warm + timed_steps:
        for batch in batches.epoch(generator):
            start = time.perf_counter()
            with on_device(device):
                runner.train_step(batch)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            took.append(time.perf_counter() - start)
            if len(took) == warm + timed_steps:
                break
    timed = sorted(took[warm:])
    return timed[len(timed) // 2]


HOLD = 0.4
"""Share of a GPU's free memory that a data set may take."""

USE = 0.8
"""Share of a GPU's free memory that a training step may take."""


def free_bytes(device: torch.device) -> float:
    """Return the memory this process may still take; infinite off a GPU."""
    if device.type != "cuda":
        return float("inf")
    free, total = torch.cuda.mem_get_info(device)
    ask = getattr(torch.cuda, "get_per_process_memory_fraction", None)
    share = float(ask(device)) if ask is not None else 1.0  # what it was limited to
    reserved = torch.cuda.memory_reserved(device)
    unused = reserved - torch.cuda.memory_allocated(device)
    return float(min(free, share * total - reserved) + unused)


def fits(tensor: torch.Tensor, device: torch.device) -> bool:
    """Tell whether a data set may lie on the device for good."""
    return tensor.numel() * tensor.element_size() <= HOLD * free_bytes(device)


def in_parts(module: nn.Module, x: Tensor, parts: int) -> Tensor:
    """Apply a network to a batch, in parts whose insides are computed twice.

    Memory holds the insides of one part, and the gradient is that of the whole batch
    (but for batch statistics, which are then those of a part).
    """
    if parts == 1:
        return cast(Tensor, module(x))
    done = [checkpoint(module, part, use_reentrant=False) for part in x.chunk(parts)]
    return torch.cat(done)


class InParts:
    """A loss that can be computed in more parts, for less memory."""

    parts: int

    def use_less_memory(self) -> bool:
        """Take twice as many parts."""
        if self.parts >= 64:
            return False
        self.parts *= 2
        return True
