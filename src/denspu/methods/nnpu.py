"""nnPU: the PU risk that cannot go below zero.

Kiryo, Niu, du Plessis and Sugiyama, "Positive-Unlabeled Learning with Non-Negative Risk
Estimator", NeurIPS 2017.
"""

from __future__ import annotations

from torch import Tensor

from denspu._parameters import About, Number, setting
from denspu.losses import non_negative, risk_parts
from denspu.methods._deep import DeepPriorPU, Task


class NNPU(DeepPriorPU):
    """The PU risk kept from falling below zero.

    Descend on the unbiased risk; step back where its negative part falls below 0.
    """

    about = About(
        key="nnpu",
        paper="Kiryo et al. 2017, nnPU",
        reference_licence="MIT",
        uses_known_negatives=False,
    )

    _stream = "nnpu"  # the training's name, and that of its random numbers

    beta: float = setting(
        0.0, Number(0), doc="How far the negative part may fall below zero."
    )
    gamma: float = setting(1.0, Number(0), doc="How large a step back is.")

    def _parts(
        self, positive: Tensor, pool: Tensor, prior: float
    ) -> tuple[Tensor, Tensor]:
        """Return the positive and the negative part of the risk."""
        return risk_parts(positive, pool, prior)

    def _learn(self, task: Task) -> None:
        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            parts = self._parts(positive, pool, task.prior)
            return non_negative(*parts, self.beta, self.gamma)

        self.module_ = task.network()
        self.history_ = task.train(self.module_, task.loss(risk), self._stream)
