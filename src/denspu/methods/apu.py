"""aPU: risks for positives that have shifted between training and use.

Hammoudeh and Lowd, "Learning from Positive and Unlabeled Data with Arbitrary Positive
Shift", NeurIPS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from denspu._parameters import About, Number, OneOf, setting
from denspu._typing import IntArray
from denspu.losses import absolute, recursive_risk, reweighted_risk, risk_parts
from denspu.methods._deep import DeepPriorPU
from denspu.methods._evidence import validation_setting
from denspu.methods._task import Task
from denspu.training import History, Hook


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
        split = task.split_off(self.validation, "apu")
        learned = _Halves.of(task, task.positive, task.pool)
        held = None
        if split is not None and len(split.held_pool) > 1:
            learned = _Halves.of(task, split.positive, split.pool)
            held = _Halves.of(task, split.held_positive, split.held_pool)
        self.first_history_: History | None = None
        weights, prior = None, task.prior
        if self.variant != "purr":
            weights = self._negative_share(task, learned, held)
        rho = self.rho if self.variant == "apnu" else 1.0

        def risk(p: Tensor, second: Tensor, first: Tensor, *numbers: Tensor) -> Tensor:
            if weights is None:
                return recursive_risk(p, first, second, prior, prior)
            weight = weights[numbers[-1]]
            return reweighted_risk(p, first, second, weight, prior, prior, rho)

        hooks: list[Hook] = []
        if held is not None:
            sets = (held.positive, held.second, held.first)
            numbers = [task.index(rows).to(task.device) for rows in sets]
            hooks = [task.keep_best(sets, lambda *found: risk(*found, *numbers))]
        self.module_ = task.network()
        self.history_ = task.train(
            self.module_,
            task.loss(risk, numbered=True),
            "apu",
            batches=task.batches_beside(
                learned.first,
                max(1, task.batch_size // 2),
                positive=learned.positive,
                pool=learned.second,
            ),
            hooks=hooks,
        )

    def _negative_share(
        self, task: Task, learned: _Halves, held: _Halves | None
    ) -> Tensor:
        """Return how likely each row is negative, by a network on P and one half."""

        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            return absolute(*risk_parts(positive, pool, task.prior, "logistic"))

        hooks = []
        if held is not None:
            hooks = [task.keep_best((held.positive, held.first), risk)]
        module = task.network("first weights")
        self.first_history_ = task.train(
            module,
            task.loss(risk),
            "first",
            batches=task.batches(positive=learned.positive, pool=learned.first),
            share=0.5,
            hooks=hooks,
        )
        found = task.logits(module, np.arange(len(task.rows)))
        return torch.from_numpy(expit(-found).astype(np.float32)).to(task.device)


@dataclass(frozen=True, eq=False)
class _Halves:
    """P and two random halves of the pool."""

    positive: IntArray
    first: IntArray
    second: IntArray

    @classmethod
    def of(cls, task: Task, positive: IntArray, pool: IntArray) -> _Halves:
        """Divide a pool; a single row is in both halves."""
        order = task.randomness.numpy("halves").permutation(pool)
        if len(order) < 2:
            return cls(positive, order, order)
        return cls(positive, order[: len(order) // 2], order[len(order) // 2 :])
