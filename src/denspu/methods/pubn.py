"""PUbN: rows weighted by how likely they are of a labelled kind.

Hsieh, Niu and Sugiyama, "Classification from Positive, Unlabeled and Biased Negative
Data", ICML 2019.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from denspu._parameters import About, Number, OneOf, setting
from denspu.exceptions import InvalidParameterError
from denspu.losses import (
    non_negative,
    partly_trusting_risk,
    risk_parts,
    seen_parts,
    squared_error,
    unbiased,
)
from denspu.methods._deep import DeepPriorPU, Task
from denspu.methods._evidence import validation_setting


class PUbN(DeepPriorPU):
    r"""Rows weighted by how likely they are labelled; takes known negatives.

    Learn which rows are of a labelled kind, then which are positive.

    Known negatives may be of some kinds only (bN). Without any the method is the
    paper's PUbN\N: rows of U that look least like P serve as negatives.

    Attributes
    ----------
    rho_ : float
        What was given or estimated; 0 without known negatives.
    eta_ : float
        Rows of U below this probability of being of a labelled kind are negatives.
    first_history_ : History
        Of the first network.
    """

    about = About(key="pubn", paper="Hsieh et al. 2019, PUbN")

    rho: float | Literal["estimate"] = setting(
        "estimate",
        OneOf("estimate"),
        Number(0, 1, "neither"),
        doc="Share of the population that is negative as the known negatives are. "
        '``"estimate"``: π |bN| / |P|, at most 1 - π.',
    )
    tau: float | None = setting(
        None,
        OneOf(None),
        Number(0, 1, "right"),
        doc="Share of unseen negatives that serve. ``None``: 0.9, or 0.7 beside bN.",
    )
    validation: float = validation_setting()

    def _learn(self, task: Task) -> None:
        self.rho_ = rho = self._share_of_known(task)
        known = [task.known_negative] if len(task.known_negative) else []
        learned, held = task.split_off(self.validation, "pubn", *known)
        prior = task.prior

        def seen_risk(p: Tensor, u: Tensor, n: Tensor | None = None) -> Tensor:
            return non_negative(*seen_parts(p, u, prior, n, rho))

        def seen_error(p: Tensor, u: Tensor, n: Tensor | None = None) -> Tensor:
            return squared_error(p, u, prior, n, rho)

        first = task.network("first weights")
        self.first_history_ = task.train(
            first,
            task.loss(seen_risk),
            "first",
            batches=task.batches(*learned),
            share=0.5,
            hooks=task.keep_best(held, seen_error),
        )
        every = expit(task.logits(first, np.arange(len(task.rows)))).astype(np.float32)
        tau = self.tau if self.tau is not None else (0.7 if rho else 0.9)
        self.eta_ = float(np.quantile(every[task.pool], tau * (1 - prior - rho)))
        seen = torch.from_numpy(every).to(task.device)

        def risk(*found: Tensor) -> Tensor:
            half = len(found) // 2  # logits of each set, then its row numbers
            in_pairs = zip(found[:half], found[half:], strict=True)
            p, u, *n = [(logits, seen[numbers]) for logits, numbers in in_pairs]
            bn = n[0] if n else None
            return partly_trusting_risk(p, u, prior, self.eta_, bn, rho)

        def error(p: Tensor, u: Tensor, *_: Tensor) -> Tensor:
            return unbiased(*risk_parts(p, u, prior))

        self.module_ = task.network()
        self.history_ = task.train(
            self.module_,
            task.loss(risk, numbered=True),
            "second",
            batches=task.batches(*learned),
            hooks=task.keep_best(held, error),
        )

    def _share_of_known(self, task: Task) -> float:
        """Return ρ."""
        if not len(task.known_negative):
            return 0.0
        if isinstance(self.rho, str):
            rate = len(task.known_negative) / len(task.positive)
            return min(task.prior * rate, 1 - task.prior)
        if self.rho > 1 - task.prior:
            raise InvalidParameterError(
                f"rho={self.rho!r} is the share of some negatives in the population, "
                f"and with prior {task.prior:.4g} all of them make up "
                f"{1 - task.prior:.4g}. Pass less, or rho='estimate'."
            )
        return float(self.rho)
