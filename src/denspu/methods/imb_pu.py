"""ImbPU: nnPU for the balanced accuracy, where positives are few.

Su, Chen and Xu, "Positive-Unlabeled Learning from Imbalanced Data", IJCAI 2021.
"""

from __future__ import annotations

from torch import Tensor

from denspu._parameters import About, Number, setting
from denspu.losses import balanced_parts
from denspu.methods.nnpu import NNPU


class ImbPU(NNPU):
    """nnPU for the balanced accuracy, where positives are few.

    Descend on nnPU's risk as if the population held another share of positives.
    """

    about = About(
        key="imb_pu", paper="Su et al. 2021, ImbalancednnPU", reference_licence="MIT"
    )

    _stream = "imb_pu"

    balanced_prior: float = setting(
        0.5,
        Number(0, 1, "neither"),
        doc="The share the risk is computed for: 0.5 weighs both classes the same.",
    )

    def _parts(
        self, positive: Tensor, pool: Tensor, prior: float
    ) -> tuple[Tensor, Tensor]:
        return balanced_parts(positive, pool, prior, self.balanced_prior)
