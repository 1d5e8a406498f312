"""What true labels would give: ordinary training, for comparison only.

The one estimator here is not registered: no user has these labels, and ``fit`` of a PU
method never sees them. It takes them through ``known_negative``.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from torch import Tensor
from torch.nn.functional import softplus

from denspu._typing import BoolArray, IntArray
from denspu._validation import PUInput
from denspu.data import PUDataset
from denspu.methods._deep import DeepPU
from denspu.methods._task import Task


class Supervised(DeepPU):
    """Logistic loss on P and known negatives, weighted to the given class prior."""

    needs_prior: ClassVar[bool] = False  # not estimated, and P may hold all positives

    def _check_prior(self, data: PUInput) -> None:
        """Refuse none: P may be as large as the prior says all positives are."""

    def _learn(self, task: Task) -> None:
        prior = float(self.prior)

        def risk(positive: Tensor, negative: Tensor) -> Tensor:
            of_positive = prior * softplus(-positive).mean()
            return of_positive + (1 - prior) * softplus(negative).mean()

        self.module_ = task.network()
        self.history_ = task.train(
            self.module_,
            task.loss(risk),
            "supervised",
            batches=task.batches(pool=task.known_negative),
        )


def true_labels(
    pu: PUDataset, everything: bool, seed: int
) -> tuple[IntArray, BoolArray]:
    """Return labels with true negatives marked, and which rows those are.

    ``everything``: all true labels but that of one negative, since the gate insists on
    a row to judge; else P and as many true negatives, drawn at random.
    """
    truth = pu.oracle.labels
    negatives = np.flatnonzero(truth == 0)
    if everything:
        known = truth == 0
        known[negatives[-1]] = False
        return truth.astype(np.int64), known
    count = min(pu.n_labeled, len(negatives))
    chosen = np.random.default_rng([seed, 6]).choice(negatives, count, replace=False)
    known = np.zeros(len(truth), dtype=bool)
    known[chosen] = True
    return np.asarray(pu.y, dtype=np.int64), known
