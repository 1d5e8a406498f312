"""uPU: the unbiased PU risk.

Du Plessis, Niu and Sugiyama, "Analysis of Learning from Positive and Unlabeled Data",
NeurIPS 2014, and "Convex Formulation for Learning from Positive and Unlabeled Data",
ICML 2015.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.spatial.distance import pdist
from torch import Tensor, nn

from denspu._folds import make_folds
from denspu._parameters import About, InstanceOf, Number, OneOf, Whole, setting
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.base import forget
from denspu.losses import risk_parts, unbiased
from denspu.methods._deep import Auto, DeepPriorPU, Task
from denspu.methods._evidence import POSITIVE
from denspu.networks.backbones import BACKBONES, GaussianBasis, KernelModel
from denspu.training import Hook, TrainState

SMALL_IMAGE = 16
"""Images up to this many pixels a side are taken as vectors by ``network="auto"``."""


class UPU(DeepPriorPU):
    """The unbiased PU risk.

    Lower π E_P[l(f)] + E_U[l(-f)] - π E_P[l(-f)], which has no bias.

    Tables and embeddings take the convex form: the squared loss on Gaussian bumps, in
    closed form. Images take a network and the sigmoid loss. A flexible network drives
    the estimate far below zero by learning P by heart: training ends where that shows.
    nnPU mends it.

    Attributes
    ----------
    choice_ : Choice
        The width and the ridge of the kernel, and their risk on held-out rows.
    """

    about = About(
        key="upu",
        paper="du Plessis et al. 2014, 2015, uPU",
        reference_licence="MIT",
        uses_known_negatives=False,
    )

    n_centres: int = setting(
        500,
        Whole(1),
        doc="Bumps, around random rows; held-out rows choose their width and ridge.",
    )
    stop_below: float | None = setting(
        0.0,
        OneOf(None),
        Number(),
        doc="Training ends after an epoch of lower risk: no true risk is negative.",
    )
    network: Any = setting(
        "auto",
        OneOf("auto", "kernel", *BACKBONES),
        InstanceOf(nn.Module),
        doc='``"kernel"``: Gaussian bumps. ``"auto"``: these, but for images of more '
        "than 16 pixels a side.",
    )
    lr: float | Auto = setting(
        1e-4, OneOf("auto"), POSITIVE, doc="Low: P is to be understood before learned."
    )

    def _learn(self, task: Task) -> None:
        for name in ("choice_", "history_"):
            forget(self, name)
        if self._wants_kernel(task):
            kernel, self.choice_ = fit_kernel(task, self.n_centres)
            self.module_: nn.Module = kernel
            return

        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            return unbiased(*risk_parts(positive, pool, task.prior))

        self.module_ = task.network()
        hook = StopBelow(self.stop_below)
        self.history_ = task.train(self.module_, task.loss(risk), "upu", hooks=[hook])

    def _wants_kernel(self, task: Task) -> bool:
        if self.network != "auto":
            return isinstance(self.network, str) and self.network == "kernel"
        shape = task.rows.shape[1:]
        return len(shape) == 1 or max(shape[1:]) <= SMALL_IMAGE

    def _builder(self, shape: tuple[int, ...]) -> Callable[[], nn.Module]:
        if isinstance(self.network, str) and self.network == "kernel":
            return nn.Identity  # not asked for: the kernel is no network
        return super()._builder(shape)


class StopBelow(Hook):
    """End training once the mean risk of an epoch is below a limit."""

    def __init__(self, limit: float | None) -> None:
        self.limit = -math.inf if limit is None else limit

    def on_epoch_end(self, state: TrainState) -> None:
        """Compare the epoch that has ended."""
        risk = state.history.last["loss"]
        if risk < self.limit:
            state.stop = f"risk {risk:.3g} below {self.limit:g}"


# --- kernel ---


WIDTHS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Widths tried, in units of the median distance between rows."""

RIDGES = tuple(float(10.0**power) for power in range(-5, 2))
"""Values of λ tried."""

UNCHOSEN = (1.0, 0.1)
"""Width and λ where nothing can be held out."""

FOLDS = 5
CHOICE_ROWS = 4096
"""Rows of the pool, and of P, by which width and λ are chosen."""
MEDIAN_ROWS = 300
CHUNK = 8192


@dataclass(frozen=True)
class Choice:
    """The chosen width (of the bumps, in the rows' own units), λ, and their risk."""

    width: float
    ridge: float
    risk: float
    """PU 0-1 risk on held-out rows; nan where nothing could be held out."""


def fit_kernel(task: Task, n_centres: int) -> tuple[KernelModel, Choice]:
    """Return the model with the least risk, and how its settings were chosen."""
    rng = task.randomness.numpy("centres")
    chosen = rng.permutation(task.pool)[:n_centres]
    rows = task.as_float(task.rows[task.index(chosen)])
    centres = rows.flatten(1).float().cpu().numpy()
    near = centres[:MEDIAN_ROWS]
    unit = float(np.median(pdist(near))) if len(near) > 1 else 1.0
    unit = unit if unit > 0 else 1.0
    bumps = torch.from_numpy(centres)
    choice = choose(task, bumps, unit)
    basis = GaussianBasis(bumps, choice.width)
    _, of_positive = moments(features(task, basis, task.positive))
    gram, of_pool = moments(features(task, basis, task.pool))
    weights = least_risk(gram, of_positive, of_pool, task.prior, choice.ridge)
    return KernelModel(basis, torch.from_numpy(weights.astype(np.float32))), choice


def choose(task: Task, centres: torch.Tensor, unit: float) -> Choice:
    """Return the width and λ with the least PU 0-1 risk on held-out rows."""
    rng = task.randomness.numpy("folds")
    labelled = np.zeros(len(task.rows), dtype=bool)
    labelled[task.positive] = True
    fold = make_folds(labelled, task.groups, FOLDS, rng)
    positive = rng.permutation(task.positive)[:CHOICE_ROWS]
    pool = rng.permutation(task.pool)[:CHOICE_ROWS]
    parts = [
        part
        for part in range(FOLDS)
        if all(0 < np.mean(fold[rows] == part) < 1 for rows in (positive, pool))
    ]
    if not parts:
        width, ridge = UNCHOSEN
        return Choice(width * unit, ridge, float("nan"))
    found = []
    for width in WIDTHS:
        basis = GaussianBasis(centres, width * unit)
        P, U = (task.logits(basis, rows) for rows in (positive, pool))
        risks = [
            held_out_risks(P, U, fold[positive] == k, fold[pool] == k, task.prior)
            for k in parts
        ]
        found += [
            Choice(width * unit, ridge, float(risk))
            for ridge, risk in zip(RIDGES, np.mean(risks, axis=0), strict=True)
        ]
    return min(found, key=lambda choice: (choice.risk, -choice.ridge))


def held_out_risks(
    P: FloatArray, U: FloatArray, out_p: BoolArray, out_u: BoolArray, prior: float
) -> list[float]:
    """Return the PU 0-1 risk on the rows left out, for each λ."""
    gram, of_pool = moments([U[~out_u]])
    values, turn = np.linalg.eigh(gram)
    aim = turn.T @ (2 * prior * P[~out_p].mean(axis=0) - of_pool)
    turned_p, turned_u = P[out_p] @ turn, U[out_u] @ turn
    risks = []
    for ridge in RIDGES:
        weights = aim / (np.maximum(values, 0) + ridge)
        missed = np.mean(turned_p @ weights <= 0)
        called = np.mean(turned_u @ weights > 0)
        risks.append(float(2 * prior * missed + called - prior))
    return risks


def least_risk(
    gram: FloatArray,
    of_positive: FloatArray,
    of_pool: FloatArray,
    prior: float,
    ridge: float,
) -> FloatArray:
    """Return the weights of the closed form."""
    left = gram + ridge * np.eye(len(gram))
    return np.asarray(
        np.linalg.solve(left, 2 * prior * of_positive - of_pool), dtype=np.float64
    )


def moments(chunks: Iterable[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return E[k kᵀ] and E[k] over all chunks of rows."""
    gram, total, n_rows = np.zeros(()), np.zeros(()), 0
    for K in chunks:
        gram, total, n_rows = gram + K.T @ K, total + K.sum(axis=0), n_rows + len(K)
    return gram / n_rows, total / n_rows


def features(task: Task, basis: GaussianBasis, rows: IntArray) -> Iterator[FloatArray]:
    """Yield the basis at some rows, a chunk at a time."""
    for start in range(0, len(rows), CHUNK):
        yield task.logits(basis, rows[start : start + CHUNK])
