"""PUSB: a ranking by nnPU, cut where as many rows are positive as there should be.

Kato, Teshima and Honda, "Learning from Positive and Unlabeled Data with a Selection
Bias", ICLR 2019.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from denspu._parameters import About
from denspu._typing import FloatArray
from denspu.losses import logistic_loss, risk_parts
from denspu.methods._deep import Task
from denspu.methods.nnpu import NNPU


class PUSB(NNPU):
    """A ranking by nnPU, cut at the class prior.

    Learn a score with nnPU's logistic risk, then choose the threshold by the prior.

    Some positives may be likelier to be labelled than others, as long as the likelier
    ones are also the surer ones. The score is then biased and its order is not.
    """

    about = About(
        key="pusb",
        paper="Kato et al. 2019, PUSB",
        reference_licence="MIT",
        assumption="SAR",
    )

    _stream = "pusb"

    def _parts(
        self, positive: Tensor, pool: Tensor, prior: float
    ) -> tuple[Tensor, Tensor]:
        return risk_parts(positive, pool, prior, logistic_loss)

    def _learn(self, task: Task) -> None:
        super()._learn(task)
        # P is left out: rows learned by heart would say nothing about new ones.
        scores = task.logits(self.module_, task.unlabeled)
        self.cut_ = share_cut(scores, task.prior_in_unlabeled)


def share_cut(scores: FloatArray, share: float) -> float:
    """Return the score above which, strictly, the given share of the rows lies.

    It is the score with ⌊N (1 - share)⌋ rows below it, as in the paper's code.
    """
    rank = min(len(scores) - 1, int(len(scores) * (1 - share)))
    return float(np.partition(scores, rank)[rank])
