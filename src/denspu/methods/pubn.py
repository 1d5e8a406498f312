"""PUbN: rows weighted by how likely they are of a labelled kind.

Hsieh, Niu and Sugiyama, "Classification from Positive, Unlabeled and Biased Negative
Data", ICML 2019.
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
from denspu.exceptions import InvalidParameterError
from denspu.losses import (
    non_negative,
    partly_trusting_risk,
    risk_parts,
    seen_parts,
    squared_error,
    unbiased,
)
from denspu.methods._deep import DeepPriorPU
from denspu.methods._evidence import validation_setting
from denspu.methods._task import Risk, Task
from denspu.training import Batches, History, Hook


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
        self.rho_ = self._share_of_known(task)
        sets = _Sets.of(task, self.validation)
        seen, self.first_history_ = self._seen(task, sets)
        self.module_ = task.network()
        self.history_ = self._classify(task, sets, seen)

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

    def _seen(self, task: Task, sets: _Sets) -> tuple[Tensor, History]:
        """Learn σ, and return it for all rows."""

        def risk(positive: Tensor, pool: Tensor, *others: Tensor) -> Tensor:
            known = others[0] if len(task.known_negative) else None
            parts = seen_parts(positive, pool, task.prior, known, self.rho_)
            return non_negative(*parts)

        def error(positive: Tensor, pool: Tensor, *others: Tensor) -> Tensor:
            known = others[0] if others else None
            return squared_error(positive, pool, task.prior, known, self.rho_)

        module = task.network("first weights")
        history = task.train(
            module,
            task.loss(risk),
            "first",
            batches=sets.batches(task),
            share=0.5,
            hooks=sets.hooks(task, error),
        )
        every = np.arange(len(task.rows))
        seen = expit(task.logits(module, every)).astype(np.float32)
        tau = self.tau if self.tau is not None else (0.7 if self.rho_ else 0.9)
        share = tau * (1 - task.prior - self.rho_)
        self.eta_ = float(np.quantile(seen[task.pool], share))
        return torch.from_numpy(seen).to(task.device), history

    def _classify(self, task: Task, sets: _Sets, seen: Tensor) -> History:
        eta, prior = self.eta_, task.prior

        def without(p: Tensor, u: Tensor, of_p: Tensor, of_u: Tensor) -> Tensor:
            return partly_trusting_risk((p, seen[of_p]), (u, seen[of_u]), prior, eta)

        def beside(
            p: Tensor, u: Tensor, n: Tensor, of_p: Tensor, of_u: Tensor, of_n: Tensor
        ) -> Tensor:
            return partly_trusting_risk(
                (p, seen[of_p]), (u, seen[of_u]), prior, eta, (n, seen[of_n]), self.rho_
            )

        def error(positive: Tensor, pool: Tensor, *others: Tensor) -> Tensor:
            return unbiased(*risk_parts(positive, pool, prior, "sigmoid"))

        chosen = beside if len(task.known_negative) else without
        return task.train(
            self.module_,
            task.loss(chosen, numbered=True),
            "second",
            batches=sets.batches(task),
            hooks=sets.hooks(task, error),
        )


@dataclass(frozen=True, eq=False)
class _Sets:
    """P, the pool and the known negatives, less what is held out of them."""

    positive: IntArray
    pool: IntArray
    known: IntArray
    held: tuple[IntArray, ...] = ()

    @classmethod
    def of(cls, task: Task, share: float) -> _Sets:
        """Divide the rows; where too few are left on a side, hold out none."""
        whole = cls(task.positive, task.pool, task.known_negative)
        split = task.split_off(share, "pubn")
        if split is None:
            return whole
        held = (split.held_positive, split.held_pool)
        known, held_known = split.part(task.known_negative)
        if not len(task.known_negative):
            return cls(split.positive, split.pool, known, held)
        if not len(known) or not len(held_known):
            return whole
        return cls(split.positive, split.pool, known, (*held, held_known))

    def batches(self, task: Task) -> Batches:
        """Return batches of what is learned from."""
        if not len(self.known):
            return task.batches(positive=self.positive, pool=self.pool)
        return task.batches_beside(
            self.known, task.batch_size, positive=self.positive, pool=self.pool
        )

    def hooks(self, task: Task, measure: Risk) -> list[Hook]:
        """Return what keeps the best weights, if anything is held out."""
        return [task.keep_best(self.held, measure)] if self.held else []
