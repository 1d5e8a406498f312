"""aPU: risks for positives that have shifted between training and use.

Hammoudeh and Lowd, "Learning from Positive and Unlabeled Data with Arbitrary Positive
Shift", NeurIPS 2020.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from denspu._parameters import Number, OneOf
from denspu._typing import IntArray, RandomState
from denspu.base import Rules
from denspu.losses import absolute, risk_parts
from denspu.losses.arbitrary_positive import recursive_risk, weighted_risk
from denspu.methods._deep import Auto, DeepPU, Task
from denspu.methods._prior import Scenario
from denspu.methods._sets import SetsLoss, SetsRisk, three_sets
from denspu.training import History


class APU(DeepPU):
    """Learn negatives from one half of U, and positives from the other less those.

    P only helps to find negatives in the first half; what a positive looks like is
    learned from the second. ``fit`` is given one U, so both halves are drawn from it.

    Parameters
    ----------
    variant : {"purr", "wuu", "apnu"}, default="purr"
        ``"purr"``: one step. ``"wuu"``: a first network weighs the rows of the first
        half. ``"apnu"``: the same, and P counts as positive too.
    rho : float, default=0.5
        ``"apnu"`` only: how much the second half counts against P; 1 is ``"wuu"``.
    prior, scenario, encoder, network, epochs, batch_size, lr, weight_decay
        As in :class:`denspu.methods._deep.DeepPU`; ``epochs`` of each network.
    max_seconds, random_state, device, verbose
        As everywhere.

    Attributes
    ----------
    first_history_ : History or None
        Of the network that weighs rows, where the variant has one.
    """

    _rules: ClassVar[Rules] = {
        **DeepPU._rules,
        "variant": (OneOf("purr", "wuu", "apnu"),),
        "rho": (Number(0, 1),),
    }

    def __init__(
        self,
        *,
        variant: Literal["purr", "wuu", "apnu"] = "purr",
        rho: float = 0.5,
        prior: float | Literal["estimate"] = "estimate",
        scenario: Scenario = "one-sample",
        encoder: Any = None,
        network: Any = "auto",
        epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        lr: float | Auto = "auto",
        weight_decay: float = 5e-3,
        max_seconds: float | None = None,
        random_state: RandomState = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        super().__init__(
            prior=prior,
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
        self.variant = variant
        self.rho = rho

    def _learn(self, task: Task) -> None:
        first, second = halves(task)
        self.first_history_: History | None = None
        risk = self._recursive if self.variant == "purr" else self._weighted
        loss = SetsLoss(task.as_float, risk(task, first))
        size = max(1, task.batch_size // 2)
        self.module_ = task.network()
        self.history_ = task.train(
            self.module_,
            loss,
            "apu",
            batches=three_sets(task, first, size, second),
        )

    def _recursive(self, task: Task, first: IntArray) -> SetsRisk:
        def risk(p: Tensor, second: Tensor, first: Tensor, *numbers: Tensor) -> Tensor:
            return recursive_risk(p, first, second, task.prior, task.prior)

        return risk

    def _weighted(self, task: Task, first: IntArray) -> SetsRisk:
        negative = self._negative_share(task, first)
        rho = self.rho if self.variant == "apnu" else 1.0

        def risk(p: Tensor, second: Tensor, first: Tensor, *numbers: Tensor) -> Tensor:
            weight = negative[numbers[-1]]
            return weighted_risk(p, first, second, weight, task.prior, task.prior, rho)

        return risk

    def _negative_share(self, task: Task, first: IntArray) -> Tensor:
        """Return how likely each row is negative, by a network on P and one half."""

        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            return absolute(*risk_parts(positive, pool, task.prior, "logistic"))

        module = task.network("first weights")
        self.first_history_ = task.train(
            module,
            task.loss(risk),
            "first",
            batches=task.batches(pool=first),
            share=0.5,
        )
        found = task.logits(module, np.arange(len(task.rows)))
        return torch.from_numpy(expit(-found).astype(np.float32)).to(task.device)


def halves(task: Task) -> tuple[IntArray, IntArray]:
    """Return two random halves of the pool; both are learned from."""
    order = task.randomness.numpy("halves").permutation(task.pool)
    if len(order) < 2:
        return order, order
    return order[: len(order) // 2], order[len(order) // 2 :]
