"""What PU methods that train a network share: rows, prior, batches, losses, answers.

A method is a subclass of :class:`DeepPU` with ``_learn(task)``: it asks the task for
networks, trains them on its loss, and leaves ``module_`` behind. Whether rows are
pixels, a table or the embedding of any encoder is settled here, so that a method runs
on all of them. Rows may be held out to keep the best epoch: what is measured on those
is a risk of P against U, no true label is looked at.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from denspu._folds import share_held
from denspu._machine import Deadline, resolve_device
from denspu._parameters import About, InstanceOf, Number, OneOf, Part, Whole, setting
from denspu._random import Randomness
from denspu._typing import FloatArray, IntArray, Scenario
from denspu._validation import PUInput
from denspu.base import forget
from denspu.data.kinds import kind_of
from denspu.exceptions import InvalidParameterError
from denspu.methods._base import EncoderPU
from denspu.methods._evidence import (
    POSITIVE,
    doubtful_share,
    prior_setting,
    resolve_prior,
    scenario_setting,
)
from denspu.networks.backbones import (
    BACKBONES,
    IMAGE_BACKBONES,
    SMALLEST,
    PixelScale,
    build_backbone,
    pack,
    suitable,
    unpack,
)
from denspu.training import (
    Batches,
    History,
    Hook,
    KeepBest,
    PUBatches,
    Step,
    TrainingConfig,
    in_fixed_batches,
    train,
)
from denspu.training.loop import (
    LOOK,
    Batch,
    InParts,
    Loss,
    fits,
    in_parts,
    looking,
    shuffled,
    within,
)

Auto = Literal["auto"]

WHOLE = 4096
"""Rows up to which a batch holds them all. Small samples need it: the mean over a few
positives is so noisy that the negative part of the risk crosses zero by chance."""

LARGE = {"epochs": 120, "batch_size": 256, "lr": 5e-4}
"""What ``"auto"`` means for larger samples: how the papers are compared."""

SMALL = {"epochs": 200, "batch_size": WHOLE, "lr": 1e-3}

ENCODER_SHARE, PRIOR_SHARE = 0.5, 0.3
"""Parts of the time left under ``max_seconds`` for an encoder and for the prior."""


class DeepPU(EncoderPU):
    """A PU method that trains a network of one logit, without a class prior.

    Attributes
    ----------
    module_ : nn.Module
    history_ : History
    epochs_ : dict
        Epochs of each training by its name.
    """

    about = About(deep=True, inputs=("table", "image", "text"))

    encoder: Any = setting(
        None,
        OneOf(None),
        Part("encoder"),
        doc="By key, or fitted and frozen; ``None`` learns from the rows themselves.",
    )
    network: Any = setting(
        "auto",
        OneOf("auto", *BACKBONES),
        InstanceOf(nn.Module),
        doc='``"auto"``: convolutions for colour images, a perceptron for the rest. A '
        "module of your own, one logit a row, is copied and started afresh.",
    )
    epochs: int | Auto = setting(
        "auto",
        OneOf("auto"),
        Whole(1),
        doc='Passes over U. ``"auto"``: 120, or 200 for up to 4,096 rows.',
    )
    batch_size: int | Auto = setting(
        "auto",
        OneOf("auto"),
        Whole(2),
        doc='``"auto"``: 256, or all of up to 4,096 rows.',
    )
    lr: float | Auto = setting(
        "auto",
        OneOf("auto"),
        POSITIVE,
        doc='Of Adam. ``"auto"``: 0.0005, or 0.001 for up to 4,096 rows.',
    )
    weight_decay: float = setting(5e-3, Number(0), doc="Of Adam.")
    max_seconds: float | None = setting(
        None,
        OneOf(None),
        POSITIVE,
        doc="Trains fewer epochs where time is short; ``epochs_`` says how many.",
    )

    # --- learning --------------------------------------------------------------------

    def _fit(self, data: PUInput, randomness: Randomness) -> None:
        deadline = Deadline(self.max_seconds)
        device = resolve_device(self.device)
        self.device_ = str(device)
        self.cut_ = 0.0
        for name in ("prior_", "prior_in_unlabeled_"):
            forget(self, name)
        seconds = deadline.part(ENCODER_SHARE).seconds
        rows = self._represent(data, randomness, seconds)
        one_sample = getattr(self, "scenario", "one-sample") == "one-sample"
        pool = np.ones(len(rows), dtype=bool) if one_sample else data.unlabeled
        usual = SMALL if int(pool.sum()) <= WHOLE else LARGE
        chosen = {
            name: default if getattr(self, name) == "auto" else getattr(self, name)
            for name, default in usual.items()
        }
        task = Task(
            rows=rows.to(device) if fits(rows, device) else rows,
            as_float=self._as_float,
            positive=np.flatnonzero(data.positive),
            unlabeled=np.flatnonzero(data.unlabeled),
            pool=np.flatnonzero(pool),
            known_negative=np.flatnonzero(data.known_negative),
            groups=data.groups,
            device=device,
            randomness=randomness,
            deadline=deadline,
            plan=TrainingConfig(
                epochs=int(chosen["epochs"]),
                lr=chosen["lr"],
                weight_decay=self.weight_decay,
                schedule="cosine",
                capture=device.type == "cuda",
            ),
            batch_size=int(chosen["batch_size"]),
            build=self._builder(tuple(rows.shape[1:])),
            verbose=self.verbose,
        )
        self._settle_prior(task, data)
        self._learn(task)
        self.epochs_ = dict(task.epochs)

    def _settle_prior(self, task: Task, data: PUInput) -> None:
        """Give the task its prior, where the method has one."""

    @abstractmethod
    def _learn(self, task: Task) -> None:
        """Train, and leave ``module_`` and ``history_`` behind."""

    def _builder(self, shape: tuple[int, ...]) -> Callable[[], nn.Module]:
        """Return what makes fresh networks for rows of a shape."""
        if isinstance(self.network, nn.Module):
            given = self.network
            return lambda: FlatLogit(fresh_copy(given))
        name = suitable(shape) if self.network == "auto" else self.network
        if name in IMAGE_BACKBONES and len(shape) == 1:
            what = "an embedding" if self.encoder is not None else "a table"
            raise InvalidParameterError(
                f"network={name!r} takes images, and would be given {what} of "
                f"{shape[0]} columns. Pass network='mlp', 'linear' or 'auto'."
            )
        if len(shape) == 3 and min(shape[1:]) < SMALLEST.get(name, 1):
            raise InvalidParameterError(
                f"network={name!r} takes images of at least {SMALLEST[name]} pixels a "
                f"side, not {shape[1]}×{shape[2]}. Pass network='auto' or 'cnn'."
            )
        return lambda: build_backbone(name, shape)

    # --- rows ------------------------------------------------------------------------

    def _represent(
        self, data: PUInput, randomness: Randomness, seconds: float | None
    ) -> Tensor:
        """Learn how rows become tensors, and return them packed."""
        if self.encoder is not None:
            self._learn_encoder(self.encoder, data, randomness, seconds)
            Z = self._embed(data.X).astype(np.float32)
            self.centre_ = Z.mean(axis=0)
            self.spread_ = Z.std(axis=0) + 1e-6
            return torch.from_numpy((Z - self.centre_) / self.spread_)
        encoder = kind_of(data.kind).plain_encoder(randomness.seed("text"))
        if encoder is None:
            self.scale_ = PixelScale.of(data.X)
        else:
            self.table_ = encoder.fit(data.X)
        return self._packed(data.X)

    def _sees_pixels(self) -> bool:
        plain = kind_of(self.input_kind_).plain_encoder
        return self.encoder is None and plain() is None

    def _packed(self, X: Any) -> Tensor:
        if self.encoder is not None:
            Z = self._embed(X).astype(np.float32)
            return torch.from_numpy((Z - self.centre_) / self.spread_)
        if self._sees_pixels():
            return pack(X, self.scale_)
        return torch.from_numpy(np.asarray(self.table_.transform(X), np.float32))

    def _as_float(self, rows: Tensor) -> Tensor:
        return rows if rows.is_floating_point() else unpack(rows)

    # --- answers ---------------------------------------------------------------------

    def _logits(self, X: Any) -> FloatArray:
        """Return the network's answers for checked rows."""
        return in_fixed_batches(
            self.module_,
            self._packed(X),
            self._as_float,
            device=resolve_device(self.device),
        ).astype(np.float64)

    def _decide(self, X: Any) -> FloatArray:
        return self._logits(X) - self.cut_

    def _expected_share(self, data: PUInput, called: float) -> float | None:
        known = super()._expected_share(data, called)
        if known is not None or self._sees_pixels():
            return known  # pixels tell little, and take long to tell it
        return doubtful_share(called, data, self._as_vectors)

    def _as_vectors(self, X: Any) -> FloatArray:
        return self._as_float(self._packed(X)).flatten(1).numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


class DeepPriorPU(DeepPU):
    """A PU method that trains a network on a risk with the class prior in it.

    Attributes
    ----------
    prior_, prior_in_unlabeled_ : float
        What was given or estimated.
    """

    about = About(needs_prior=True)

    prior: float | Literal["estimate"] = prior_setting()
    scenario: Scenario = scenario_setting()

    def _settle_prior(self, task: Task, data: PUInput) -> None:
        embedded = None if self.encoder is None else task.rows.cpu().numpy()
        task.prior, task.prior_in_unlabeled = resolve_prior(
            self.prior,
            data,
            self.scenario,
            task.randomness,
            rows=embedded,
            device=self.device_,
            max_seconds=task.deadline.part(PRIOR_SHARE).seconds,
        )
        self.prior_, self.prior_in_unlabeled_ = task.prior, task.prior_in_unlabeled


class FlatLogit(nn.Module):
    """A user's network, whose answers may come as a column."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a row, and refuse more."""
        found = self.module(x)
        if found.numel() != len(x):
            raise InvalidParameterError(
                f"network={type(self.module).__name__} returns answers of shape "
                f"{tuple(found.shape)} for {len(x)} rows; one logit a row is needed."
            )
        return found.reshape(len(x))


def fresh_copy(module: nn.Module) -> nn.Module:
    """Return a copy of a network with a random start of its own."""
    copied = copy.deepcopy(module)
    for layer in copied.modules():
        reset = getattr(layer, "reset_parameters", None)
        if callable(reset):
            reset()
    return copied


# --- what a method is given ---------------------------------------------------------

Risk = Callable[..., Tensor]
"""Takes the logits of each set of rows: P, the pool and perhaps another."""

Sets = tuple[IntArray, ...]
"""Row numbers of P, of the pool and perhaps of another set."""


@dataclass
class PULoss(InParts):
    """A risk of the logits of several sets of rows, as a loss for the training loop.

    The sets take one pass, so that they share their statistics. With ``numbered`` the
    risk is also given the row numbers of each set.
    """

    as_float: Callable[[Tensor], Tensor]
    risk: Risk
    numbered: bool = False

    def __call__(self, module: nn.Module, batch: Batch) -> Tensor:
        """Return the risk of one batch: sets of rows, then the numbers of each."""
        half = len(batch) // 2
        x = self.as_float(torch.cat(batch[:half]))
        logits = in_parts(module, x, self.parts).float()
        sets = logits.split([len(rows) for rows in batch[:half]])
        return self.risk(*sets, *(batch[half:] if self.numbered else ()))


@dataclass
class Task:
    """Rows on the device, who is who among them, and how networks are trained."""

    rows: Tensor
    """Packed: pixels as integers, else floats."""
    as_float: Callable[[Tensor], Tensor]
    positive: IntArray
    """Numbers of the labelled rows."""
    unlabeled: IntArray
    pool: IntArray
    """Numbers of the rows that stand for the population: U, and P too where it was
    taken out of the sample."""
    known_negative: IntArray
    groups: IntArray | None
    device: torch.device
    randomness: Randomness
    deadline: Deadline
    plan: TrainingConfig
    batch_size: int
    build: Callable[[], nn.Module]
    verbose: int = 0
    prior: float = float("nan")
    """Share of positives in the population."""
    prior_in_unlabeled: float = float("nan")
    epochs: dict[str, int] = field(default_factory=dict)
    """Epochs taken, by the name of the training."""

    def network(self, name: str = "weights") -> nn.Module:
        """Return a fresh network; the name chooses its random start."""
        with self.randomness.torch_scope(name, self.device):
            return self.build()

    def index(self, rows: IntArray) -> Tensor:
        """Return row numbers as a tensor beside the rows."""
        return torch.from_numpy(np.asarray(rows, dtype=np.int64)).to(self.rows.device)

    def batches(
        self,
        positive: IntArray | None = None,
        pool: IntArray | None = None,
        beside: IntArray | None = None,
        *,
        batch_size: int | None = None,
        n_positive: int | None = None,
        steps: int | None = None,
    ) -> Batches:
        """Return batches of P and the pool, or of other rows in their place.

        With ``beside`` they hold as large a part of that set too, taken in turn.
        """
        batches = PUBatches(
            self.rows,
            self.index(self.positive if positive is None else positive),
            self.index(self.pool if pool is None else pool),
            batch_size=batch_size or self.batch_size,
            n_positive=n_positive,
            steps=steps,
            device=self.device,
        )
        if beside is None:
            return batches
        count = round(batches.batch_size / len(batches.pool) * len(beside))
        return BesideBatches(batches, self.index(beside), max(2, count))

    def loss(self, risk: Risk, *, numbered: bool = False) -> PULoss:
        """Return a risk of logits as a loss on batches."""
        return PULoss(self.as_float, risk, numbered)

    def train(
        self,
        module: nn.Module,
        loss: Loss | Sequence[Step],
        name: str,
        *,
        batches: Batches | None = None,
        share: float = 1.0,
        hooks: Sequence[Hook] = (),
        **changes: Any,
    ) -> History:
        """Train a network; ``changes`` replace settings of the plan.

        ``share`` is the part of the time left that it may take under ``max_seconds``.
        A loss that is a hook too looks in.
        """
        batches = batches if batches is not None else self.batches()
        config = replace(self.plan, **changes)
        with self.randomness.torch_scope(f"{name}/training", self.device):
            if callable(loss):
                config = within(
                    self.deadline,
                    module,
                    batches,
                    loss,
                    config,
                    device=self.device,
                    share=share,
                )
            history = train(
                module,
                batches,
                loss,
                config,
                device=self.device,
                generator=self.randomness.generator(
                    f"{name}/batches", self.rows.device
                ),
                hooks=[*hooks, loss] if isinstance(loss, Hook) else hooks,
                verbose=self.verbose,
                name=name,
            )
        self.epochs[name] = len(history)
        return history

    def logits(self, module: nn.Module, rows: IntArray) -> FloatArray:
        """Return a network's answers for some rows, in evaluation mode."""
        return in_fixed_batches(
            module, self.rows[self.index(rows)], self.as_float, device=self.device
        ).astype(np.float64)

    def look(
        self, module: nn.Module, rows: IntArray, answer: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return answers for some rows in the middle of a training."""
        with looking(module):
            found = [
                answer(self.as_float(self.rows[part].to(self.device))).float()
                for part in self.index(rows).split(LOOK)
            ]
        return torch.cat(found)

    def split_off(
        self, share: float, name: str, *others: IntArray
    ) -> tuple[Sets, Sets]:
        """Divide P, the pool and other sets: to learn from, and about a share held out.

        No group is divided. Nothing is held out, and the second is empty, where too few
        rows or groups would be left on one of the sides.
        """
        sets = (self.positive, self.pool, *others)
        if share == 0:
            return sets, ()
        labelled = np.zeros(len(self.rows), dtype=bool)
        labelled[self.positive] = True
        rng = self.randomness.numpy(f"{name}/held out")
        out = share_held(labelled, self.groups, share, rng)
        learned = tuple(rows[~out[rows]] for rows in sets)
        held = tuple(rows[out[rows]] for rows in sets)
        if len(learned[1]) < 2 or not all(map(len, (*learned, *held))):
            return sets, ()
        return learned, held

    def keep_best(self, held: Sets, measure: Risk) -> list[Hook]:
        """Return the hook that keeps the weights with the least measure of some rows.

        ``measure`` takes the logits of each of the sets; without any there is no hook.
        """

        def of(module: nn.Module) -> float:
            return float(measure(*(self.look(module, rows, module) for rows in held)))

        return [KeepBest(of)] if held else []


class BesideBatches:
    """Batches of P and the pool, with rows of one more set taken in turn.

    Batches are ``(rows of P, pool, the set, their numbers in P, the pool, the set)``.
    """

    def __init__(self, batches: PUBatches, beside: Tensor, count: int) -> None:
        self.batches = batches
        self.beside = beside
        self.count = count

    @property
    def streams(self) -> bool:
        """Tell whether batches travel from the computer's memory to the device."""
        return self.batches.streams

    def __len__(self) -> int:
        return len(self.batches)

    def epoch(self, generator: torch.Generator) -> Iterator[Batch]:
        """Yield the batches of one epoch."""
        turns = -(-len(self) * self.count // len(self.beside))
        orders = [shuffled(self.beside, generator) for _ in range(turns)]
        in_turn = self.beside[torch.cat(orders)].split(self.count)
        for (p, u, of_p, of_u), chosen in zip(
            self.batches.epoch(generator), in_turn, strict=False
        ):
            rows, number = self.batches.rows[chosen], chosen
            if self.streams:
                rows, number = rows.to(p.device), number.to(p.device)
            yield p, u, rows, of_p, of_u, number


# --- a network that follows another ---------------------------------------------------


def frozen(module: nn.Module) -> nn.Module:
    """Return the network itself; no step moves it any more."""
    return module.requires_grad_(False)


def follow(average: nn.Module, source: nn.Module, decay: float) -> None:
    """Move the weights and statistics of an average towards those of its source."""
    with torch.no_grad():
        torch._foreach_lerp_(_numbers(average), _numbers(source), 1 - decay)


def _numbers(module: nn.Module) -> list[Tensor]:
    tensors = [*module.parameters(), *module.buffers()]
    return [tensor for tensor in tensors if tensor.is_floating_point()]
