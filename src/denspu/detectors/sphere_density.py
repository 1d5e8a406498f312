"""Kernel density on the unit sphere with the von Mises-Fisher kernel."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from denspu._machine import resolve_device
from denspu._parameters import About, Number, OneOf, setting
from denspu._random import Randomness
from denspu._typing import FloatArray
from denspu.base import Detector
from denspu.detectors.neighbours import Neighbours

CONCENTRATIONS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
AUTO_ROWS = 2_000
"""Rows used to choose the concentration."""


class SphereDensity(Detector):
    """Kernel density of directions (von Mises-Fisher).

    The log of mean exp(κ cos) over the training rows; rows are divided by their length
    first. Up to the constant of the kernel this is the log density of a von
    Mises-Fisher mixture.
    """

    about = About(
        key="sphere_density",
        paper="Hall et al. 1987, Kernel density estimation with spherical data",
    )

    concentration: float | Literal["auto"] = setting(
        "auto",
        OneOf("auto"),
        Number(0, closed="neither"),
        doc='κ, the kernel\'s sharpness. ``"auto"`` takes the one of a small grid\n'
        "under which training rows are likeliest, each judged by the others.",
    )
    device: str = setting("auto")

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        self.reference_ = Z
        self.concentration_ = self.concentration
        if self.concentration == "auto":
            sample = Z[:: max(1, len(Z) // AUTO_ROWS)]
            self.concentration_ = self._likeliest(sample)

    def _likeliest(self, Z: FloatArray) -> float:
        if len(Z) < 2:
            return CONCENTRATIONS[0]
        likelihood = [
            self._log_density(Z, Z, kappa, exclude_self=True).mean()
            + log_kernel_constant(kappa, Z.shape[1])
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
