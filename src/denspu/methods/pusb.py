"""PUSB: a ranking by nnPU, cut where as many rows are positive as there should be.

Kato, Teshima and Honda, "Learning from Positive and Unlabeled Data with a Selection
Bias", ICLR 2019.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from denspu._parameters import Number
from denspu._typing import FloatArray, RandomState
from denspu.base import Rules
from denspu.losses import non_negative, risk_parts
from denspu.methods._deep import Auto, DeepPU
from denspu.methods._prior import Scenario
from denspu.methods._task import Task


class PUSB(DeepPU):
    """Learn a score with nnPU's logistic risk, then choose the threshold by the prior.

    Some positives may be likelier to be labelled than others, as long as the likelier
    ones are also the surer ones. The score is then biased and its order is not.

    Parameters
    ----------
    beta : float, default=0.0
        How far below zero the negative part may fall before a step is taken back.
    gamma : float, default=1.0
        How large a step back is.
    prior, scenario, encoder, network, epochs, batch_size, lr, weight_decay
        As in :class:`denspu.methods._deep.DeepPU`.
    max_seconds, random_state, device, verbose
        As everywhere.
    """

    uses_known_negatives: ClassVar[bool] = False
    _rules: ClassVar[Rules] = {
        **DeepPU._rules,
        "beta": (Number(0),),
        "gamma": (Number(0),),
    }

    def __init__(
        self,
        *,
        beta: float = 0.0,
        gamma: float = 1.0,
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
        self.beta = beta
        self.gamma = gamma

    def _learn(self, task: Task) -> None:
        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            parts = risk_parts(positive, pool, task.prior, "logistic")
            return non_negative(*parts, self.beta, self.gamma)

        self.module_ = task.network()
        self.history_ = task.train(self.module_, task.loss(risk), "pusb")
        # P is left out: rows learned by heart would say nothing about new ones.
        scores = task.logits(self.module_, task.unlabeled)
        self.cut_ = share_cut(scores, task.prior_in_unlabeled)


def share_cut(scores: FloatArray, share: float) -> float:
    """Return the score above which, strictly, the given share of the rows lies.

    It is the score with ⌊N (1 - share)⌋ rows below it, as in the paper's code.
    """
    rank = min(len(scores) - 1, int(len(scores) * (1 - share)))
    return float(np.partition(scores, rank)[rank])
