"""VPU: a variational loss that needs no class prior.

Chen, Liu, Wang, Zhao and Wu, "A Variational Approach for Learning from Positive and
Unlabeled Data", NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from scipy.special import expit, log_expit
from torch import Tensor, nn

from denspu._parameters import Number, OneOf, Whole
from denspu._typing import FloatArray, RandomState
from denspu.base import Rules
from denspu.losses import beta_share, consistency, log_phi, mixed, variational
from denspu.methods._deep import COMMON_RULES, Auto, DeepPU
from denspu.methods._held_out import Split, keep_best, split_off
from denspu.methods._prior import SCENARIO_RULE, Scenario
from denspu.methods._task import Task
from denspu.training import KeepBest
from denspu.training.batches import Batch
from denspu.training.budget import InParts, in_parts

SURE = 0.99
"""Above this share of the largest Φ, log-odds go on in a straight line."""


@dataclass
class VPULoss(InParts):
    """The variational loss, and consistency on rows mixed from P and U."""

    as_float: Callable[[Tensor], Tensor]
    weight: float
    alpha: float
    parts: int = 1

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
    """Learn Φ, proportional to P(y = 1 | x), from P and U alone.

    Some rows must be surely positive: their Φ is taken as 1, and rows above half of it
    are positive.

    Parameters
    ----------
    mixup_weight : float, default=3.0
        λ: how much the answers on mixed rows count.
    mixup_alpha : float, default=0.3
        Rows are mixed in shares drawn from Beta(α, α).
    top : {"positives", "max"}, default="positives"
        What counts as Φ = 1. ``"positives"``: the mean on held-out positives (the
        maximum where none are held out), which is right where the classes do not
        overlap. ``"max"``: the largest on U, as in the paper; one odd row decides.
    validation : float, default=0.2
        Share of P and U held out; the weights with the least variational loss on it are
        kept. 0 keeps those of the last epoch.
    patience : int or None, default=20
        Epochs without a better one after which training ends.
    epoch_steps : int or None, default=None
        Steps of an epoch; ``None``: a pass over U. With many rows a network may know P
        by heart before the first pass ends, and the best weights are missed.
    scenario, encoder, network, epochs, batch_size, lr, weight_decay
        As in :class:`denspu.methods._deep.DeepPU`; ``batch_size`` rows of P come with
        as many of U.
    max_seconds, random_state, device, verbose
        As everywhere.

    Attributes
    ----------
    top_ : float
        The log Φ that counts as certainty.
    """

    needs_prior: ClassVar[bool] = False
    uses_known_negatives: ClassVar[bool] = False
    _rules: ClassVar[Rules] = {
        **COMMON_RULES,
        "scenario": SCENARIO_RULE,
        "mixup_weight": (Number(0),),
        "mixup_alpha": (Number(0, closed="neither"),),
        "top": (OneOf("positives", "max"),),
        "validation": (Number(0, 0.5),),
        "patience": (OneOf(None), Whole(1)),
        "epoch_steps": (OneOf(None), Whole(1)),
    }

    def __init__(
        self,
        *,
        mixup_weight: float = 3.0,
        mixup_alpha: float = 0.3,
        top: Literal["positives", "max"] = "positives",
        validation: float = 0.2,
        patience: int | None = 20,
        epoch_steps: int | None = None,
        scenario: Scenario = "one-sample",
        encoder: Any = None,
        network: Any = "auto",
        epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        lr: float | Auto = 1e-4,
        weight_decay: float = 0.0,
        max_seconds: float | None = None,
        random_state: RandomState = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        super().__init__(
            scenario=scenario,
            encoder=encoder,
            network=network,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            weight_decay=weight_decay,
            max_seconds=max_seconds,
            random_state=random_state,
            device=device,
            verbose=verbose,
        )
        del self.prior  # there is none
        self.mixup_weight = mixup_weight
        self.mixup_alpha = mixup_alpha
        self.top = top
        self.validation = validation
        self.patience = patience
        self.epoch_steps = epoch_steps

    def _learn(self, task: Task) -> None:
        split = split_off(task, self.validation, "vpu")
        changes: dict[str, Any] = {}
        hooks = []
        positive, pool = task.positive, task.pool
        if split is not None:
            positive, pool = split.positive, split.pool
            held = (split.held_positive, split.held_pool)
            hooks = [keep_best(task, held, held_out_loss)]
            changes["plateau"] = KeepBest.patience(self.patience)
        size = min(task.batch_size, len(pool))
        self.module_ = task.network()
        self.history_ = task.train(
            self.module_,
            VPULoss(task.as_float, self.mixup_weight, self.mixup_alpha),
            "vpu",
            batches=task.batches(
                positive=positive,
                pool=pool,
                batch_size=size,
                n_positive=size,
                steps=self.epoch_steps,
            ),
            hooks=hooks,
            betas=(0.5, 0.99),
            **changes,
        )
        self.top_ = self._top(task, split)

    def _top(self, task: Task, split: Split | None) -> float:
        """Return the log Φ that counts as certainty."""
        if self.top == "positives" and split is not None:
            phi = expit(task.logits(self.module_, split.held_positive))
            return float(np.log(max(phi.mean(), np.finfo(float).tiny)))
        return float(log_expit(task.logits(self.module_, task.unlabeled)).max())

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
