"""Dist-PU: answers whose mean agrees with the label distribution.

Zhao, Xu, Jiang, Wen and Huang, "Dist-PU: Positive-Unlabeled Learning from a Label
Distribution Perspective", CVPR 2022.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from denspu._parameters import About, Number, OneOf, setting
from denspu.losses import (
    CLAMP,
    beta_share,
    entropy,
    label_distribution,
    mixed,
    mixup_loss,
    random_order,
)
from denspu.methods._deep import Auto, DeepPriorPU
from denspu.methods._evidence import POSITIVE
from denspu.methods._task import Task
from denspu.training import Hook, TrainState
from denspu.training.batches import Batch, InParts, in_parts

LR_FLOOR = 0.7
"""Share of its learning rate at which the main phase ends."""


@dataclass
class MainLoss(InParts):
    """Label distribution, entropy, and mixup of pseudo-labels kept in a bank."""

    as_float: Callable[[Tensor], Tensor]
    prior: float
    bank: Tensor
    """The last answer for each row."""
    entropy_weight: Tensor
    """Grows with the epochs; a tensor, so that a recorded step sees it grow."""
    mixup_weight: float
    mixup_entropy: float
    alpha: float
    parts: int = 1

    def __call__(self, module: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the loss, and put the new answers for rows of U into the bank."""
        positive, pool, _, numbers = batch
        n = len(positive)
        x = self.as_float(torch.cat([positive, pool]))
        label = torch.cat([self.bank.new_ones(n), self.bank[numbers]])
        share = beta_share(self.alpha, x.device)
        order = random_order(len(x), x.device)
        between = self._logits(module, mixed(x, x[order], share))
        clean = self._logits(module, x)
        apart = label_distribution(clean[:n], clean[n:], self.prior)
        loss = (
            apart
            + self.entropy_weight * entropy(clean[n:])
            + self.mixup_entropy * entropy(between)
            + self.mixup_weight * mixup_loss(between, label, label[order], share)
        )
        self.bank.index_copy_(0, numbers, torch.sigmoid(clean[n:]).detach())
        return {"loss": loss, "distribution": apart}

    def _logits(self, module: nn.Module, x: Tensor) -> Tensor:
        return in_parts(module, x, self.parts).float().clamp(-CLAMP, CLAMP)


@dataclass(eq=False)
class MainPhase(Hook):
    """Fill the bank from the warmed-up network; raise the weight of the entropy."""

    task: Task
    loss: MainLoss
    most: float

    def on_train_start(self, state: TrainState) -> None:
        """Write the first pseudo-labels."""
        found = self.task.look(state.module, self.task.pool, state.module)
        numbers = self.task.index(self.task.pool).to(self.loss.bank.device)
        self.loss.bank[numbers] = torch.sigmoid(found)

    def on_epoch_start(self, state: TrainState) -> None:
        """Set the weight of the entropy: from 0 to ``most``, slowly at first."""
        done = state.epoch / state.config.epochs
        self.loss.entropy_weight.fill_(self.most * (1 - math.cos(math.pi / 2 * done)))


class DistPU(DeepPriorPU):
    """Mean answers that agree with the label distribution.

    Make the mean answer 1 on P and the class prior on U, and each answer sure.

    A warm-up on the label distribution; then, with a new optimiser, mixup of the
    network's own answers beside it.

    Attributes
    ----------
    warm_up_history_ : History
        Of the warm-up; ``history_`` is that of the main phase.
    """

    about = About(
        key="dist_pu", paper="Zhao et al. 2022, Dist-PU", uses_known_negatives=False
    )

    warm_up: float = setting(
        0.5, Number(0, 1, "neither"), doc="Share of the epochs spent on the warm-up."
    )
    main_lr: float | Auto = setting(
        "auto", OneOf("auto"), POSITIVE, doc="Of the main phase; a tenth of ``lr``."
    )
    main_weight_decay: float = setting(1e-3, Number(0), doc="Of the main phase.")
    warm_up_entropy: float = setting(
        0.002, Number(0), doc="Weight of the entropy on U in the warm-up."
    )
    entropy_weight: float = setting(
        0.004, Number(0), doc="The same at the end of the main phase, from 0 on."
    )
    mixup_weight: float = setting(5.0, Number(0), doc="Of mixed rows' cross-entropy.")
    mixup_entropy: float = setting(0.04, Number(0), doc="Of mixed rows' entropy.")
    mixup_alpha: float = setting(6.0, POSITIVE, doc="Shares come from Beta(α, α).")
    lr: float | Auto = setting(1e-4, OneOf("auto"), POSITIVE, doc="Of the warm-up.")

    def _learn(self, task: Task) -> None:
        in_all = task.plan.epochs
        first = min(max(1, round(self.warm_up * in_all)), max(1, in_all - 1))
        self.module_ = task.network()

        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            apart = label_distribution(positive, pool, task.prior)
            return apart + self.warm_up_entropy * entropy(pool)

        self.warm_up_history_ = task.train(
            self.module_, task.loss(risk), "warm-up", share=0.5, epochs=first
        )
        loss = MainLoss(
            task.as_float,
            task.prior,
            bank=torch.zeros(len(task.rows), device=task.device),
            entropy_weight=torch.zeros((), device=task.device),
            mixup_weight=self.mixup_weight,
            mixup_entropy=self.mixup_entropy,
            alpha=self.mixup_alpha,
        )
        self.history_ = task.train(
            self.module_,
            loss,
            "main",
            hooks=[MainPhase(task, loss, self.entropy_weight)],
            epochs=max(1, in_all - first),
            lr=task.plan.lr / 10 if self.main_lr == "auto" else self.main_lr,
            weight_decay=self.main_weight_decay,
            lr_floor=LR_FLOOR,
        )
