"""Where mini-batches come from: tensors that already lie on the device.

A batch source has a length (steps an epoch) and ``epoch(generator)``, which yields
tuples of tensors. Rows keep their order in the tensors, so a pseudo-label always
finds its sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from denspu._typing import FloatArray

Batch = tuple[Tensor, ...]


class Batches(Protocol):
    """A source of mini-batches."""

    def __len__(self) -> int:
        """Return the number of steps in an epoch."""
        ...

    def epoch(self, generator: torch.Generator) -> Iterator[Batch]:
        """Yield the batches of one epoch in a fresh random order."""
        ...


class TensorBatches:
    """Shuffled mini-batches over aligned tensors, perhaps without an incomplete last.

    Batches go to ``device``, by default where the tensors lie. Tensors too large for
    it stay in the computer's memory, and the next batch is gathered while the device
    works on the last.
    """

    def __init__(
        self,
        *tensors: Tensor,
        batch_size: int,
        drop_last: bool = False,
        device: torch.device | None = None,
    ) -> None:
        self.tensors = tensors
        self.device = device
        self.batch_size = batch_size
        self.drop_last = drop_last and len(tensors[0]) >= batch_size

    @property
    def streams(self) -> bool:
        """Tell whether batches travel from the computer's memory to the device."""
        return self.device is not None and self.device != self.tensors[0].device

    def __len__(self) -> int:
        full, rest = divmod(len(self.tensors[0]), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def epoch(self, generator: torch.Generator) -> Iterator[Batch]:
        """Yield the batches of one epoch."""
        order = shuffled(self.tensors[0], generator)
        chosen = order.split(self.batch_size)[: len(self)]
        if not self.streams:
            yield from map(self._gather, chosen)
            return
        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(self._sent, chosen[0])
            for rows in chosen[1:]:
                batch, coming = coming.result(), ahead.submit(self._sent, rows)
                yield batch
            yield coming.result()

    def _gather(self, rows: Tensor) -> Batch:
        return tuple(tensor[rows] for tensor in self.tensors)

    def _sent(self, rows: Tensor) -> Batch:
        batch = self._gather(rows)
        if self.device is not None and self.device.type == "cuda":
            batch = tuple(tensor.pin_memory() for tensor in batch)
        return tuple(tensor.to(self.device, non_blocking=True) for tensor in batch)


class BalancedBatches:
    """Mini-batches with as many positives as negatives, at least one of each.

    Each epoch takes the smaller class whole and a fresh subset of the larger class of
    the same size, as in the paper's ablation studies.
    """

    def __init__(self, *tensors: Tensor, positive: Tensor, batch_size: int) -> None:
        self.tensors = tensors
        self.classes = (positive.nonzero().flatten(), (~positive).nonzero().flatten())
        self.smaller = min(len(rows) for rows in self.classes)
        self.half = max(1, batch_size // 2)

    def __len__(self) -> int:
        return -(-self.smaller // self.half)

    def epoch(self, generator: torch.Generator) -> Iterator[Batch]:
        """Yield the batches of one epoch."""
        subsets = [
            rows[shuffled(rows, generator)[: self.smaller]].split(self.half)
            for rows in self.classes
        ]
        for parts in zip(*subsets, strict=True):
            rows = torch.cat(parts)
            yield tuple(tensor[rows] for tensor in self.tensors)


class PUBatches:
    """Labelled positives beside rows of a pool that stands for U.

    Every batch holds the same number of each, so that no mean is ever empty. Positives
    come in turn, each as often as the others; an epoch is one pass over the pool, or
    its first steps.
    Batches are ``(rows of P, rows of the pool, their numbers in P, in the pool)``.

    ``positive`` and ``pool`` are row numbers; in the one-sample scenario the pool holds
    P too. A batch has ``batch_size`` rows of the pool and ``n_positive`` of P (by
    default their share of the pool, at least 2), an epoch ``steps`` batches.
    """

    def __init__(
        self,
        rows: Tensor,
        positive: Tensor,
        pool: Tensor,
        *,
        batch_size: int,
        n_positive: int | None = None,
        steps: int | None = None,
        device: torch.device | None = None,
    ) -> None:
        self.rows = rows
        self.positive = positive.to(rows.device)
        self.pool = pool.to(rows.device)
        self.batch_size = min(batch_size, len(pool))
        share = round(self.batch_size * len(positive) / len(pool))
        self.n_positive = n_positive or max(2, share)
        a_pass = len(pool) // self.batch_size
        self.steps = a_pass if steps is None else min(steps, a_pass)
        self.device = device

    @property
    def streams(self) -> bool:
        """Tell whether batches travel from the computer's memory to the device."""
        return self.device is not None and self.device != self.rows.device

    def __len__(self) -> int:
        return self.steps

    def epoch(self, generator: torch.Generator) -> Iterator[Batch]:
        """Yield the batches of one epoch."""
        pool = self.pool[shuffled(self.pool, generator)]
        turns = -(-len(self) * self.n_positive // len(self.positive))
        orders = [shuffled(self.positive, generator) for _ in range(turns)]
        positive = self.positive[torch.cat(orders)]
        for step in range(len(self)):
            p = positive[step * self.n_positive : (step + 1) * self.n_positive]
            u = pool[step * self.batch_size : (step + 1) * self.batch_size]
            batch: Batch = (self.rows[p], self.rows[u], p, u)
            if self.streams:
                batch = tuple(tensor.to(self.device) for tensor in batch)
            yield batch


def shuffled(rows: Tensor, generator: torch.Generator) -> Tensor:
    """Return a random order of the rows, on their device."""
    order = torch.randperm(len(rows), generator=generator, device=generator.device)
    return order.to(rows.device)


LOOK = 1024
"""Rows looked at in one go between two epochs."""


@contextmanager
def looking(module: nn.Module) -> Iterator[None]:
    """Look at a network in the middle of its training, in evaluation mode.

    It stays on its device: a captured step goes on to find its weights where they were.
    """
    was_training = module.training
    module.eval()
    with torch.no_grad():
        yield
    module.train(was_training)


def in_fixed_batches(
    module: nn.Module,
    X: Any,
    to_tensor: Callable[[Any], Tensor],
    *,
    device: torch.device,
    batch_size: int = 256,
) -> FloatArray:
    """Apply ``module`` in evaluation mode to slices of ``X`` made into its input.

    It is left on the CPU afterwards, as fitted state is kept there.
    """
    module.eval().to(device)
    outputs = []
    with torch.inference_mode():
        for start in range(0, len(X), batch_size):
            inputs = to_tensor(X[start : start + batch_size])
            rows = len(inputs)
            if rows < batch_size:
                padding = inputs.new_zeros((batch_size - rows, *inputs.shape[1:]))
                inputs = torch.cat([inputs, padding])
            outputs.append(module(inputs.to(device))[:rows].float().cpu().numpy())
    module.cpu()
    return np.concatenate(outputs)


# --- what fits into a device's memory -----------------------------------------------

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
        return module(x)
    done = [checkpoint(module, part, use_reentrant=False) for part in x.chunk(parts)]
    return torch.cat(done)


class InParts:
    """A loss that can be computed in more parts, for less memory."""

    parts = 1

    def use_less_memory(self) -> bool:
        """Take twice as many parts."""
        if self.parts >= 64:
            return False
        self.parts *= 2
        return True
