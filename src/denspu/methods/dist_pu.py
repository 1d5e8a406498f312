"""Dist-PU: answers whose mean agrees with the label distribution.

Zhao, Xu, Jiang, Wen and Huang, "Dist-PU: Positive-Unlabeled Learning from a Label
Distribution Perspective", CVPR 2022.
"""

from __future__ import annotations

import math

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
from denspu.methods._deep import Auto, DeepPriorPU, Task
from denspu.methods._evidence import POSITIVE
from denspu.training import Hook, TrainState
from denspu.training.loop import Batch, InParts, in_parts

LR_FLOOR = 0.7
"""Share of its learning rate at which the main phase ends."""


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
        self.history_ = task.train(
            self.module_,
            MainLoss(self, task),
            "main",
            epochs=max(1, in_all - first),
            lr=task.plan.lr / 10 if self.main_lr == "auto" else self.main_lr,
            weight_decay=self.main_weight_decay,
            lr_floor=LR_FLOOR,
        )


class MainLoss(InParts, Hook):
    """Label distribution, entropy, and mixup of pseudo-labels kept in a bank."""

    def __init__(self, method: DistPU, task: Task) -> None:
        self.method, self.task = method, task
        # Tensors, so that a recorded step sees them change.
        self.bank = torch.zeros(len(task.rows), device=task.device)
        self.entropy_weight = torch.zeros((), device=task.device)

    def on_train_start(self, state: TrainState) -> None:
        """Fill the bank, the last answer for each row, from the warmed-up network."""
        found = self.task.look(state.module, self.task.pool, state.module)
        numbers = self.task.index(self.task.pool).to(self.bank.device)
        self.bank[numbers] = torch.sigmoid(found)

    def on_epoch_start(self, state: TrainState) -> None:
        """Raise the weight of the entropy, from 0 on, slowly at first."""
        done = 1 - math.cos(math.pi / 2 * (state.epoch / state.config.epochs))
        self.entropy_weight.fill_(self.method.entropy_weight * done)

    def __call__(self, module: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the loss, and put the new answers for rows of U into the bank."""
        positive, pool, _, numbers = batch
        n, method = len(positive), self.method
        x = self.task.as_float(torch.cat([positive, pool]))
        label = torch.cat([self.bank.new_ones(n), self.bank[numbers]])
        share = beta_share(method.mixup_alpha, x.device)
        order = random_order(len(x), x.device)
        between = self._logits(module, mixed(x, x[order], share))
        clean = self._logits(module, x)
        apart = label_distribution(clean[:n], clean[n:], self.task.prior)
        loss = (
            apart
            + self.entropy_weight * entropy(clean[n:])
            + method.mixup_entropy * entropy(between)
            + method.mixup_weight * mixup_loss(between, label, label[order], share)
        )
        self.bank.index_copy_(0, numbers, torch.sigmoid(clean[n:]).detach())
        return {"loss": loss, "distribution": apart}

    def _logits(self, module: nn.Module, x: Tensor) -> Tensor:
        return in_parts(module, x, self.parts).float().clamp(-CLAMP, CLAMP)
