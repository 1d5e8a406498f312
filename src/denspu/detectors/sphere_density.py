"""Kernel density on the unit sphere with the von Mises-Fisher kernel."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch

from denspu._machine import resolve_device
from denspu._parameters import Number, OneOf
from denspu._random import Randomness
from denspu._typing import FloatArray
from denspu.base import CONTAMINATION_RULE, Detector, Rules
from denspu.detectors.neighbours import Neighbours

CONCENTRATIONS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
"""Tried by ``concentration="auto"``."""

AUTO_ROWS = 2_000
"""Rows used to choose the concentration."""


class SphereDensity(Detector):
    """Score rows by the log of mean exp(κ cos) over the training rows.

    Rows are divided by their length first: only directions count. Up to the constant
    of the kernel this is the log density of a von Mises-Fisher mixture.

    Parameters
    ----------
    concentration : float or "auto", default="auto"
        κ, the kernel's sharpness. ``"auto"`` takes the one of a small grid under which
        training rows are likeliest, each judged by the others.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training rows beyond the threshold; ``"auto"`` leaves a twentieth
        outside when each row is judged by the others.
    device : str, default="auto"
    """

    _rules: ClassVar[Rules] = {
        "concentration": (OneOf("auto"), Number(0, closed="neither")),
        "contamination": CONTAMINATION_RULE,
    }

    def __init__(
        self,
        *,
        concentration: float | Literal["auto"] = "auto",
        contamination: float | Literal["auto"] = "auto",
        device: str = "auto",
    ) -> None:
        self.concentration = concentration
        self.contamination = contamination
        self.device = device

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        self.reference_ = Z
        self.concentration_ = self.concentration
        if self.concentration == "auto":
            sample = Z[:: max(1, len(Z) // AUTO_ROWS)]
            self.concentration_ = self._likeliest(sample)

    def _likeliest(self, Z: FloatArray) -> float:
        if len(Z) < 2:
            return CONCENTRATIONS[0]
        d = Z.shape[1]
        likelihood = [
            self._log_density(Z, Z, kappa, exclude_self=True).mean()
            + log_kernel_constant(kappa, d)
            for kappa in CONCENTRATIONS
        ]
        return CONCENTRATIONS[int(np.argmax(likelihood))]

    def _score(self, Z: FloatArray) -> FloatArray:
        return self._log_density(Z, self.reference_, float(self.concentration_))

    def _scores_by_others(self, Z: FloatArray) -> FloatArray:
        if len(Z) < 2:
            return self._score(Z)
        return self._log_density(Z, Z, float(self.concentration_), exclude_self=True)

    def _log_density(
        self,
        Z: FloatArray,
        reference: FloatArray,
        kappa: float,
        exclude_self: bool = False,
    ) -> FloatArray:
        neighbours = Neighbours(reference, "cosine", resolve_device(self.device))
        out = np.empty(len(Z))
        count = len(reference) - exclude_self
        for rows, block in neighbours.blocks(Z):
            cosine = neighbours.similarity(block)
            if exclude_self:
                own = torch.arange(rows.start, rows.stop, device=cosine.device)
                cosine.scatter_(1, own[:, None], -torch.inf)
            total = torch.logsumexp(kappa * cosine.double(), dim=1)
            out[rows] = total.cpu().numpy() - np.log(count)
        return out


def log_kernel_constant(kappa: float, d: int) -> float:
    """Return log of the von Mises-Fisher constant κ^(d/2-1) / ((2π)^(d/2) I(κ)).

    The Bessel function of large order is taken from its uniform expansion.
    """
    order = d / 2 - 1
    root = np.sqrt(order**2 + kappa**2)
    log_bessel = root + order * np.log(kappa / (order + root)) - 0.5 * np.log(
        2 * np.pi * root
    )  # fmt: skip
    return float(order * np.log(kappa) - d / 2 * np.log(2 * np.pi) - log_bessel)
