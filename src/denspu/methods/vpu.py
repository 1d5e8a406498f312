"""VPU: a variational loss that needs no class prior.

Chen, Liu, Wang, Zhao and Wu, "A Variational Approach for Learning from Positive and
Unlabeled Data", NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from scipy.special import expit, log_expit
from torch import Tensor, nn

from denspu._parameters import About, Number, OneOf, Whole, setting
from denspu._typing import FloatArray, Scenario
from denspu.losses import beta_share, consistency, log_phi, mixed, variational
from denspu.methods._deep import Auto, DeepPU, Task
from denspu.methods._evidence import POSITIVE, scenario_setting, validation_setting
from denspu.training import KeepBest
from denspu.training.loop import Batch, InParts, in_parts

SURE = 0.99
"""Above this share of the largest Φ, log-odds go on in a straight line."""


@dataclass
class VPULoss(InParts):
    """The variational loss, and consistency on rows mixed from P and U."""

    as_float: Callable[[Tensor], Tensor]
    weight: float
    alpha: float

    def __call__(self, module: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the loss; one pass, so that all rows share their statistics."""
        positive, pool = (self.as_float(rows) for rows in batch[:2])
        share = beta_share(self.alpha, pool.device)
        x = torch.cat([positive, pool, mixed(pool, positive, share)])
        logs = log_phi(in_parts(module, x, self.parts).float())
        of_positive, of_pool, between = logs.chunk(3)
        apart = variational(of_positive, of_pool)
        smooth = consistency(of_pool, between, share)
        return {"loss": apart + self.weight * smooth, "variational": apart}


class VPU(DeepPU):
    """A variational loss that needs no class prior.

    Learn Φ, proportional to P(y = 1 | x), from P and U alone.

    Some rows must be surely positive: their Φ is taken as 1, and rows above half of it
    are positive.

    Attributes
    ----------
    top_ : float
        The log Φ that counts as certainty.
    """

    about = About(
        key="vpu",
        paper="Chen et al. 2020, VPU",
        reference_licence="MIT",
        uses_known_negatives=False,
    )

    mixup_weight: float = setting(3.0, Number(0), doc="λ: weight of mixed rows.")
    mixup_alpha: float = setting(0.3, POSITIVE, doc="Shares come from Beta(α, α).")
    top: Literal["positives", "max"] = setting(
        "positives",
        OneOf("positives", "max"),
        doc="What counts as Φ = 1: the mean on held-out positives, or the largest on "
        "U, as in the paper, where one odd row decides.",
    )
    validation: float = validation_setting(0.2)
    patience: int | None = setting(
        20, OneOf(None), Whole(1), doc="Epochs without a better one that end training."
    )
    epoch_steps: int | None = setting(
        None,
        OneOf(None),
        Whole(1),
        doc="Steps of an epoch; ``None``: a pass over U, too long for many rows.",
    )
    scenario: Scenario = scenario_setting()
    lr: float | Auto = setting(1e-4)
    weight_decay: float = setting(0.0)

    def _learn(self, task: Task) -> None:
        (positive, pool), held = task.split_off(self.validation, "vpu")
        size = min(task.batch_size, len(pool))
        self.module_ = task.network()
        self.history_ = task.train(
            self.module_,
            VPULoss(task.as_float, self.mixup_weight, self.mixup_alpha),
            "vpu",
            batches=task.batches(
                positive, pool, batch_size=size, n_positive=size, steps=self.epoch_steps
            ),
            hooks=task.keep_best(held, held_out_loss),
            betas=(0.5, 0.99),
            plateau=KeepBest.patience(self.patience) if held else None,
        )
        if self.top == "positives" and held:
            phi = expit(task.logits(self.module_, held[0]))
            self.top_ = float(np.log(max(phi.mean(), np.finfo(float).tiny)))
        else:
            self.top_ = float(
                log_expit(task.logits(self.module_, task.unlabeled)).max()
            )

    def _decide(self, X: Any) -> FloatArray:
        return log_odds(log_expit(self._logits(X)) - self.top_)


def held_out_loss(positive: Tensor, pool: Tensor) -> Tensor:
    """Return the variational loss of logits."""
    return variational(log_phi(positive), log_phi(pool))


def log_odds(log_ratio: FloatArray) -> FloatArray:
    """Return the log-odds of the probability r = Φ / max Φ, given log r.

    New rows may lie above the maximum; from r = 0.99 on the log-odds therefore go on in
    a straight line, so that no two rows are tied.
    """
    low = np.minimum(log_ratio, math.log(SURE))
    odds = low - np.log1p(-np.exp(low))
    beyond = (log_ratio - low) / (1 - SURE)
    return np.asarray(odds + beyond, dtype=np.float64)
