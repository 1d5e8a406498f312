"""The training loop: the only place in the project that calls ``backward``.

``train`` runs epochs; each batch goes through one or more :class:`Step` s (a loss and
the parameters it moves), and :class:`Hook` s may look in or stop it. A new method is a
loss function and perhaps a hook, never another loop.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from denspu._machine import Deadline, on_device
from denspu._progress import progress
from denspu._random import Randomness
from denspu.exceptions import CompileWarning, DensPUError
from denspu.training.batches import Batch, Batches
from denspu.training.hooks import (
    Checkpoint,
    EmaWeights,
    History,
    Hook,
    PlateauStop,
    TrainingConfig,
    TrainState,
)

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
