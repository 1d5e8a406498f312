"""ImbPU: nnPU for the balanced accuracy, where positives are few.

Su, Chen and Xu, "Positive-Unlabeled Learning from Imbalanced Data", IJCAI 2021.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor

from denspu._parameters import Number
from denspu._typing import RandomState
from denspu.base import Rules
from denspu.losses import balanced_parts, non_negative
from denspu.methods._deep import Auto, DeepPU
from denspu.methods._prior import Scenario
from denspu.methods._task import Task


class ImbPU(DeepPU):
    """Descend on nnPU's risk as if the population held another share of positives.

    Parameters
    ----------
    balanced_prior : float, default=0.5
        The share the risk is computed for: 0.5 weighs both classes the same, and the
        class prior itself gives nnPU back.
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
        "balanced_prior": (Number(0, 1, "neither"),),
        "beta": (Number(0),),
        "gamma": (Number(0),),
    }

    def __init__(
        self,
        *,
        balanced_prior: float = 0.5,
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
        self.balanced_prior = balanced_prior
        self.beta = beta
        self.gamma = gamma

    def _learn(self, task: Task) -> None:
        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            parts = balanced_parts(positive, pool, task.prior, self.balanced_prior)
            return non_negative(*parts, self.beta, self.gamma)

        self.module_ = task.network()
        self.history_ = task.train(self.module_, task.loss(risk), "imb_pu")
