"""The training loop: the only place in the project that calls ``backward``.

``train`` runs epochs; each batch goes through one or more :class:`Step` s (a loss and
the parameters it moves), and :class:`Hook` s may look in or stop it. A new method is a
loss function and perhaps a hook, never another loop.

Batches come from tensors that already lie on the device. A source has a length (steps
an epoch) and ``epoch(generator)``, which yields tuples of tensors. Rows keep their
order in the tensors, so a pseudo-label always finds its sample.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from denspu._machine import Deadline, on_device
from denspu._progress import progress
from denspu._random import Randomness
from denspu._typing import FloatArray
from denspu.exceptions import CompileWarning, DensPUError
from denspu.training.hooks import (
    Checkpoint,
    EmaWeights,
    History,
    Hook,
    PlateauStop,
    TrainingConfig,
    TrainState,
)

# --- batches --------------------------------------------------------------------------

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


# --- the loop -------------------------------------------------------------------------

WARM_UP = 5
"""Steps taken as usual before one is captured: libraries choose their kernels."""

Loss = Callable[[nn.Module, Batch], Tensor | Mapping[str, Tensor]]
"""Returns the value to descend on, or a mapping with ``"loss"`` and terms to log."""


@dataclass(frozen=True)
class Step:
    """A loss and the parameters that descend on it (all of them by default)."""

    loss: Loss
    parameters: Callable[[nn.Module], Iterable[nn.Parameter]] | None = None


def train(
    module: nn.Module,
    batches: Batches,
    steps: Loss | Sequence[Step],
    config: TrainingConfig,
    *,
    device: torch.device,
    generator: torch.Generator,
    hooks: Sequence[Hook] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
    name: str = "training",
) -> History:
    """Train ``module`` in place and return what happened.

    It moves to ``device`` for training and back to the CPU afterwards. ``steps`` is the
    loss, or several losses with their own parameters, taken in turn. ``generator``
    shuffles the batches. Training found in ``checkpoint`` goes on.
    """
    module.to(device).train()
    plan = [Step(steps)] if callable(steps) else list(steps)
    state = TrainState(module, config)
    average = EmaWeights(config.ema_decay) if config.ema_decay is not None else None
    plateau = [PlateauStop(config.plateau)] if config.plateau is not None else []
    hooks = [*hooks, *plateau, *([average] if average else [])]
    if getattr(batches, "streams", False):  # another thread would disturb a capture
        config = replace(config, capture=False)
    runner = Runner(module, plan, config, device, len(batches), average)
    _call(hooks, "on_train_start", state)
    with (
        on_device(device),
        torch.backends.cudnn.flags(
            enabled=True,
            benchmark=not config.deterministic,
            deterministic=config.deterministic,
            allow_tf32=True,
        ),
        progress(name, config.epochs, verbose) as advance,
    ):
        for _ in range(_resumed(checkpoint, runner, state, generator)):
            advance("done before")
        for epoch in range(len(state.history), config.epochs):
            state.epoch = epoch
            _call(hooks, "on_epoch_start", state)
            state.history.add(**_run_epoch(runner, batches, generator, hooks, state))
            _call(hooks, "on_epoch_end", state)
            advance(f"loss {state.history.last['loss']:.4f}")
            _keep(checkpoint, runner, state, generator)
            if state.stop:
                state.history.stopped = state.stop
                break
    _call(hooks, "on_train_end", state)
    if checkpoint is not None:
        checkpoint.discard()
    module.eval().cpu()
    return state.history


def _resumed(
    checkpoint: Checkpoint | None,
    runner: Runner,
    state: TrainState,
    generator: torch.Generator,
) -> int:
    """Restore what a checkpoint holds; return the epochs that are done."""
    if checkpoint is None:
        return 0
    done, rows = checkpoint.load(state.module, *runner.memory(generator), state.config)
    for row in rows:
        state.history.add(**row)
    state.step = done * runner.steps_per_epoch
    return done


def _keep(
    checkpoint: Checkpoint | None,
    runner: Runner,
    state: TrainState,
    generator: torch.Generator,
) -> None:
    if checkpoint is not None and len(state.history) % checkpoint.every == 0:
        checkpoint.save(
            len(state.history),
            state.module,
            *runner.memory(generator),
            state.history.rows,
            state.config,
        )


def _call(hooks: Sequence[Hook], moment: str, state: TrainState) -> None:
    for hook in hooks:
        getattr(hook, moment)(state)


def _run_epoch(
    runner: Runner,
    batches: Batches,
    generator: torch.Generator,
    hooks: Sequence[Hook],
    state: TrainState,
) -> dict[str, float]:
    """Run one epoch; logged terms are summed on the device and read once."""
    start = time.perf_counter()
    sums: dict[str, Tensor] = {}
    state.module.train()
    lr = 0.0
    count = 0
    for batch in batches.epoch(generator):
        lr = runner.set_lr(state.step)
        for term, value in runner.train_step(batch).items():
            sums[term] = sums[term] + value if term in sums else value
        state.step += 1
        count += 1
        _call(hooks, "on_step_end", state)
    means = {term: float(total) / count for term, total in sums.items()}
    if means["loss"] != means["loss"]:
        raise DensPUError(
            f"The training loss became NaN in epoch {state.epoch + 1}. Lower the "
            "learning rate or check the scale of the input."
        )
    seconds = time.perf_counter() - start
    return {"epoch": state.epoch + 1, **means, "lr": lr, "seconds": seconds}


class Runner:
    """Optimisers and precision of one training run.

    On a GPU a step can be captured once and replayed: the few steps before are taken
    as usual, and one launch then stands for the hundreds of a step.
    """

    def __init__(
        self,
        module: nn.Module,
        plan: Sequence[Step],
        config: TrainingConfig,
        device: torch.device,
        steps_per_epoch: int,
        average: EmaWeights | None = None,
    ) -> None:
        self.module = self.plain = module
        if config.compile:
            self.module = cast(nn.Module, torch.compile(module, dynamic=False))
        self.config = config
        self.average = average
        self.bf16 = config.precision == "bf16" or (
            config.precision == "auto" and device.type == "cuda"
        )
        self.device = device
        self.steps_per_epoch = steps_per_epoch
        self.lr_factor = config.lr_factor(steps_per_epoch)
        self.capture = config.capture and device.type == "cuda"
        self.taken = 0
        self.captured: _CapturedStep | None = None
        self.plan = []
        for step in plan:
            chosen = list((step.parameters or nn.Module.parameters)(module))
            optimizer = config.build_optimizer(chosen, fused=device.type == "cuda")
            if self.capture:
                for group in optimizer.param_groups:
                    group["lr"] = torch.tensor(config.lr, device=device)
            self.plan.append((step.loss, chosen, optimizer))

    def memory(
        self, shuffle: torch.Generator
    ) -> tuple[list[torch.optim.Optimizer], list[Tensor], dict[str, torch.Generator]]:
        """Return what besides the network decides how training goes on."""
        generators = {"shuffle": shuffle, "cpu": torch.default_generator}
        if self.device.type == "cuda":
            index = self.device.index or 0
            generators["cuda"] = torch.cuda.default_generators[index]
        average = self.average.average if self.average is not None else []
        return [optimizer for _, _, optimizer in self.plan], average, generators

    def set_lr(self, step: int) -> float:
        """Set the learning rate of a step, and return it."""
        lr = self.config.lr * self.lr_factor(step)
        for _, _, optimizer in self.plan:
            for group in optimizer.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(lr)
                else:
                    group["lr"] = lr
        return lr

    def _autocast(self) -> AbstractContextManager[object]:
        if not self.bf16:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def train_step(self, batch: Batch) -> dict[str, Tensor]:
        """Take one step: as usual, or by replaying the captured one."""
        self.taken += 1
        if not self.capture or self.taken <= WARM_UP:
            return self._step(batch)
        if self.captured is None:
            self.captured = _CapturedStep(self._step, batch)
        if not self.captured.fits(batch):
            return self._step(batch)
        return self.captured.replay(batch)

    def _step(self, batch: Batch) -> dict[str, Tensor]:
        logged: dict[str, Tensor] = {}
        for loss_of, parameters, optimizer in self.plan:
            terms = self._descend(loss_of, optimizer, batch)
            if self.config.clip_norm is not None:
                nn.utils.clip_grad_norm_(parameters, self.config.clip_norm)
            optimizer.step()
            for term, value in terms.items():
                value = value.detach().float()
                logged[term] = logged[term] + value if term in logged else value
        if self.average is not None:
            self.average.update()
        return logged

    def _descend(
        self, loss_of: Loss, optimizer: torch.optim.Optimizer, batch: Batch
    ) -> dict[str, Tensor]:
        """Compute loss and gradients, with less memory if it does not suffice."""
        while True:
            optimizer.zero_grad(set_to_none=True)
            try:
                with self._autocast():
                    result = loss_of(self.module, batch)
                terms = {"loss": result} if isinstance(result, Tensor) else dict(result)
                terms["loss"].backward()
                return terms
            except torch.OutOfMemoryError:
                result = terms = None  # type: ignore[assignment]
                less = getattr(loss_of, "use_less_memory", None)  # at the price of time
                if less is None or not less():
                    raise
            except RuntimeError as error:
                if self.module is self.plain:
                    raise
                from torch._dynamo.exc import TorchDynamoException

                if not isinstance(error, TorchDynamoException):
                    raise
                self._stop_compiling(error)
                continue
            self.capture = False  # recomputing draws random numbers out of turn
            torch.cuda.empty_cache()

    def _stop_compiling(self, error: RuntimeError) -> None:
        """Go on with the network as it is where torch cannot compile it."""
        self.module = self.plain
        told = next(iter(str(error).splitlines()), type(error).__name__)
        warnings.warn(
            f"torch could not compile the network ({told}), so training goes on "
            "without: the same answers, more slowly. Compiling needs a C compiler and, "
            "on a GPU, Triton; an encoder's compile=False does not try.",
            CompileWarning,
            stacklevel=2,
        )


class _CapturedStep:
    """One training step as a CUDA graph."""

    def __init__(
        self, step: Callable[[Batch], dict[str, Tensor]], batch: Batch
    ) -> None:
        self.batch = tuple(tensor.clone() for tensor in batch)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.logged = step(self.batch)

    def fits(self, batch: Batch) -> bool:
        """Tell whether the batch has the captured shapes."""
        pairs = zip(batch, self.batch, strict=True)
        return all(new.shape == held.shape for new, held in pairs)

    def replay(self, batch: Batch) -> dict[str, Tensor]:
        """Take the step on another batch."""
        for held, new in zip(self.batch, batch, strict=True):
            held.copy_(new, non_blocking=True)
        self.graph.replay()
        return {term: value.clone() for term, value in self.logged.items()}


# --- as many epochs as there is time for ----------------------------------------------

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
