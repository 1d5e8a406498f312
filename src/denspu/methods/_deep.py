"""What every PU method that trains a network shares: rows, prior, batches, answers.

A method is a subclass with ``_learn(task)``: it asks the task for networks, trains them
on its loss, and leaves ``module_`` behind. Whether rows are pixels, a table or the
embedding of any encoder is settled here, so that a method runs on all of them.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from denspu._machine import Deadline, resolve_device
from denspu._parameters import About, InstanceOf, Number, OneOf, Part, Whole, setting
from denspu._random import Randomness
from denspu._typing import FloatArray, Scenario
from denspu._validation import PUInput
from denspu.base import forget
from denspu.data.kinds import kind_of
from denspu.exceptions import InvalidParameterError
from denspu.methods._base import EncoderPU
from denspu.methods._evidence import (
    doubtful_share,
    prior_setting,
    resolve_prior,
    scenario_setting,
)
from denspu.methods._task import Task
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
from denspu.training import TrainingConfig, in_fixed_batches
from denspu.training.batches import fits

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
        Number(0, closed="neither"),
        doc='Of Adam. ``"auto"``: 0.0005, or 0.001 for up to 4,096 rows.',
    )
    weight_decay: float = setting(5e-3, Number(0), doc="Of Adam.")
    max_seconds: float | None = setting(
        None,
        OneOf(None),
        Number(0, closed="neither"),
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
        task = self._task(rows, data, randomness, device, deadline)
        self._settle_prior(task, data)
        self._learn(task)
        self.epochs_ = dict(task.epochs)

    def _settle_prior(self, task: Task, data: PUInput) -> None:
        """Give the task its prior, where the method has one."""

    @abstractmethod
    def _learn(self, task: Task) -> None:
        """Train, and leave ``module_`` and ``history_`` behind."""

    def _task(
        self,
        rows: Tensor,
        data: PUInput,
        randomness: Randomness,
        device: torch.device,
        deadline: Deadline,
    ) -> Task:
        one_sample = getattr(self, "scenario", "one-sample") == "one-sample"
        pool = np.ones(len(rows), dtype=bool) if one_sample else data.unlabeled
        usual = SMALL if int(pool.sum()) <= WHOLE else LARGE
        chosen = {
            name: default if getattr(self, name) == "auto" else getattr(self, name)
            for name, default in usual.items()
        }
        return Task(
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
                optimizer="adam",
                lr=chosen["lr"],
                weight_decay=self.weight_decay,
                schedule="cosine",
                capture=device.type == "cuda",
            ),
            batch_size=int(chosen["batch_size"]),
            build=self._builder(tuple(rows.shape[1:])),
            verbose=self.verbose,
        )

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
            return self._packed(data.X)
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
        return cast(Tensor, found.reshape(len(x)))


def fresh_copy(module: nn.Module) -> nn.Module:
    """Return a copy of a network with a random start of its own."""
    copied = copy.deepcopy(module)
    for layer in copied.modules():
        reset = getattr(layer, "reset_parameters", None)
        if callable(reset):
            reset()
    return copied
