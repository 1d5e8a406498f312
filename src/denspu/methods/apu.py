"""aPU: risks for positives that have shifted between training and use.

Hammoudeh and Lowd, "Learning from Positive and Unlabeled Data with Arbitrary Positive
Shift", NeurIPS 2020.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from denspu._parameters import About, Number, OneOf, setting
from denspu.losses import (
    absolute,
    logistic_loss,
    recursive_risk,
    reweighted_risk,
    risk_parts,
)
from denspu.methods._deep import DeepPriorPU, Sets, Task
from denspu.methods._evidence import validation_setting
from denspu.training import History


class APU(DeepPriorPU):
    """Two halves of U and corrected risks, for shifted positives.

    Learn negatives from one half of U, and positives from the other less those.

    P only helps to find negatives in the first half; what a positive looks like is
    learned from the second. ``fit`` is given one U, so both halves are drawn from it.

    Attributes
    ----------
    first_history_ : History or None
        Of the network that weighs rows, where the variant has one.
    """

    about = About(
        key="apu",
        paper="Hammoudeh and Lowd 2020, aPU",
        reference_licence="MIT",
        assumption="SAR",
        uses_known_negatives=False,
    )

    variant: Literal["purr", "wuu", "apnu"] = setting(
        "purr",
        OneOf("purr", "wuu", "apnu"),
        doc='``"purr"``: one step. ``"wuu"``: a first network weighs the first half. '
        '``"apnu"``: the same, and P counts as positive too.',
    )
    rho: float = setting(
        0.5,
        Number(0, 1),
        doc='How much the second half counts against P in ``"apnu"``.',
    )
    validation: float = validation_setting()

    def _learn(self, task: Task) -> None:
        learned, held = task.split_off(self.validation, "apu")
        learned, held = halved(task, learned), halved(task, held)
        positive, first, second = learned
        self.first_history_: History | None = None
        weights, prior = None, task.prior
        if self.variant != "purr":
            weights = self._negative_share(task, learned[:2], held[:2])
        rho = self.rho if self.variant == "apnu" else 1.0

        def risk(p: Tensor, second: Tensor, first: Tensor, *numbers: Tensor) -> Tensor:
            if weights is None:
                return recursive_risk(p, first, second, prior, prior)
            weight = weights[numbers[-1]]
            return reweighted_risk(p, first, second, weight, prior, prior, rho)

        in_order = held[:1] + held[:0:-1]  # P, the second half, the first
        numbers = [task.index(rows).to(task.device) for rows in in_order]
        self.module_ = task.network()
        self.history_ = task.train(
            self.module_,
            task.loss(risk, numbered=True),
            "apu",
            batches=task.batches(
                positive, second, first, batch_size=max(1, task.batch_size // 2)
            ),
            hooks=task.keep_best(in_order, lambda *found: risk(*found, *numbers)),
        )

    def _negative_share(self, task: Task, learned: Sets, held: Sets) -> Tensor:
        """Return how likely each row is negative, by a network on P and one half."""

        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            return absolute(*risk_parts(positive, pool, task.prior, logistic_loss))

        module = task.network("first weights")
        self.first_history_ = task.train(
            module,
            task.loss(risk),
            "first",
            batches=task.batches(*learned),
            share=0.5,
            hooks=task.keep_best(held, risk),
        )
        found = task.logits(module, np.arange(len(task.rows)))
        return torch.from_numpy(expit(-found).astype(np.float32)).to(task.device)


def halved(task: Task, sets: Sets) -> Sets:
    """Return P and two random halves of the pool; a single row is in both halves."""
    if not sets:
        return sets
    order = task.randomness.numpy("halves").permutation(sets[1])
    if len(order) < 2:
        return sets[0], order, order
    return sets[0], order[: len(order) // 2], order[len(order) // 2 :]
