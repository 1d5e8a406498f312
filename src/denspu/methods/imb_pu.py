"""ImbPU: nnPU for the balanced accuracy, where positives are few.

Su, Chen and Xu, "Positive-Unlabeled Learning from Imbalanced Data", IJCAI 2021.
"""

from __future__ import annotations

from torch import Tensor

from denspu._parameters import About, Number, setting
from denspu.losses import balanced_parts, non_negative
from denspu.methods._deep import DeepPriorPU
from denspu.methods._task import Task


class ImbPU(DeepPriorPU):
    """nnPU for the balanced accuracy, where positives are few.

    Descend on nnPU's risk as if the population held another share of positives.
    """

    about = About(
        key="imb_pu",
        paper="Su et al. 2021, ImbalancednnPU",
        reference_licence="MIT",
        uses_known_negatives=False,
    )

    balanced_prior: float = setting(
        0.5,
        Number(0, 1, "neither"),
        doc="The share the risk is computed for: 0.5 weighs both classes the same, "
        "and the class prior itself gives nnPU back.",
    )
    beta: float = setting(
        0.0,
        Number(0),
        doc="How far below zero the negative part may fall before a step is taken "
        "back.",
    )
    gamma: float = setting(1.0, Number(0), doc="How large a step back is.")

    def _learn(self, task: Task) -> None:
        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            parts = balanced_parts(positive, pool, task.prior, self.balanced_prior)
            return non_negative(*parts, self.beta, self.gamma)

        self.module_ = task.network()
        self.history_ = task.train(self.module_, task.loss(risk), "imb_pu")
