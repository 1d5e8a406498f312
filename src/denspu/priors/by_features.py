"""Estimators that look at the rows themselves, as numbers: TIcE, KM2, penalised L1."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from denspu._folds import deal_even_folds
from denspu._parameters import About, Whole, setting
from denspu._share import Counts, Share
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.exceptions import InvalidInputError
from denspu.priors.estimate import PriorEstimator

# --- tree induction ------------------------------------------------------------------

CUTS = np.array([0.25, 0.5, 0.75])
"""Where the range of a feature inside a part may be cut."""


class TIcE(PriorEstimator):
    """Purest part of the feature space that a tree finds.

    In any part S of the feature space the share of labelled rows is at most the label
    frequency c, and near c where S holds positives alone. A tree looks for such parts
    on one share of the rows; on the other rows each part of T rows, L of them labelled,
    gives a lower bound (one-sided Chebyshev, failing with chance δ)

        c  ≥  L/T - √( c(1-c)(1-δ) / (δT) )

    and the largest is the estimate. c under the root is that of the pass before.
    """

    sees = "features"
    about = About(
        key="tice", paper="Bekker and Davis 2018, TIcE", inputs=("embedding",)
    )

    folds: int = setting(
        5, Whole(2, 100), doc="Each fold once grows the tree; the others are judged."
    )
    max_splits: int = setting(500, Whole(1), doc="Splits of one tree.")
    min_rows: int = setting(
        10, Whole(2), doc="Parts with fewer rows are not looked at."
    )
    max_rows: int = setting(
        20_000, Whole(100), doc="Rows drawn from P and U together where there are more."
    )

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        keep = min(1.0, self.max_rows / (len(P) + len(U)))
        if keep < 1:
            P = P[rng.permutation(len(P))[: max(2, round(keep * len(P)))]]
            U = U[rng.permutation(len(U))[: max(2, round(keep * len(U)))]]
        X = np.concatenate([P, U])
        low, span = X.min(axis=0), np.ptp(X, axis=0)
        X = (X - low) / np.where(span > 0, span, 1.0)  # constant columns become 0
        labelled = np.arange(len(X)) < len(P)
        fold = deal_even_folds(labelled, None, self.folds, rng)
        c = 0.5
        for _ in range(2):
            found = [self._of_tree(X, labelled, fold == k, c) for k in np.unique(fold)]
            c = float(np.mean(found))
        return Share.of_label_frequency(c, Counts(len(P), len(U))).value

    def _of_tree(
        self, X: FloatArray, labelled: BoolArray, grow: BoolArray, c: float
    ) -> float:
        """Return the largest lower bound that one tree finds."""
        risk = max(0.025, 1 / (1 + 0.004 * float((~grow).sum())))
        slack = np.sqrt(c * (1 - c) * (1 - risk) / risk)
        best = float(labelled.mean())
        rows, judged = np.flatnonzero(grow), np.flatnonzero(~grow)
        whole = Box(0.0, 0, rows, judged, np.zeros(X.shape[1]), np.ones(X.shape[1]))
        heap, count = [whole], 0
        for _ in range(self.max_splits):
            if not heap:
                break
            box = heapq.heappop(heap)
            split = best_split(
                X[box.rows], labelled[box.rows], box.low, box.high, self.min_rows
            )
            if split is None:
                continue
            feature, cut = split
            for above in (False, True):
                rows = box.rows[(X[box.rows, feature] > cut) == above]
                judged = box.judged[(X[box.judged, feature] > cut) == above]
                if len(judged) < self.min_rows or not len(rows):
                    continue
                bound = labelled[judged].mean() - slack / np.sqrt(len(judged))
                best = max(best, bound)
                count += 1
                if len(rows) < self.min_rows:
                    continue
                low, high = box.low.copy(), box.high.copy()
                (low if above else high)[feature] = cut
                purity = float(labelled[rows].mean())
                heapq.heappush(heap, Box(-purity, count, rows, judged, low, high))
        return best


class Box(NamedTuple):
    """A part of the feature space; the purest comes first, then the oldest."""

    impurity: float
    number: int
    rows: IntArray
    """Those that the tree grows on."""
    judged: IntArray
    low: FloatArray
    high: FloatArray


def best_split(
    X: FloatArray, labelled: BoolArray, low: FloatArray, high: FloatArray, least: int
) -> tuple[int, float] | None:
    """Return the feature and cut with the purest side of at least ``least`` rows."""
    best, found = -1.0, None
    for where in CUTS:
        cuts = low + where * (high - low)
        above = cuts < X
        n_above = above.sum(axis=0)
        l_above = labelled.astype(np.float64) @ above
        for n, hits in (
            (n_above, l_above),
            (len(X) - n_above, labelled.sum() - l_above),
        ):
            both = (n >= least) & (n < len(X))
            share = np.where(both, hits / np.maximum(n, 1), -1.0)
            k = int(np.argmax(share))
            if share[k] > best:
                best, found = float(share[k]), (k, float(cuts[k]))
    return found


# --- kernel mean embedding -----------------------------------------------------------

KERNEL_WIDTHS = (0.25, 0.5, 1.0, 2.0)
"""Widths tried, in median distances; that with the largest ‖φ(P)-φ(U)‖ wins."""

LARGEST = 0.99
"""Shares above this are not told apart."""

ALIKE = 2.0
"""P and U are told apart when ‖φ(P)-φ(U)‖² is this many times what samples of one
distribution would show, (1/n_P + 1/n_U)(1 - mean K)."""

HALVINGS = 10


class KM2(PriorEstimator):
    """How much of P a kernel mean of U can give up.

    φ(P) and φ(U) are the means of P and U in the space of a Gaussian kernel. Taking P
    out of U moves to λ φ(U) + (1-λ) φ(P), λ ≥ 1, and stays among the distributions as
    long as 1 - 1/λ is at most the share of P inside U. The distance to the nearest
    distribution

        d(λ) = min over w on the simplex of ‖ λ φ(U) + (1-λ) φ(P) - Σ w_i φ(x_i) ‖

    is convex and flat up to there. λ is where its slope passes ν = 1/√min(n_P, n_U).
    """

    sees = "features"
    about = About(
        key="km2",
        paper="Ramaswamy et al. 2016, Mixture proportion estimation via kernels",
        inputs=("embedding",),
    )

    max_rows: int = setting(
        300,
        Whole(10),
        doc="Rows of P, and of U, for one kernel; memory grows with its square.",
    )
    n_draws: int = setting(
        3, Whole(1), doc="Draws that are averaged where there are more rows."
    )

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        draws = self.n_draws if max(len(P), len(U)) > self.max_rows else 1

        def drawn(X: FloatArray) -> FloatArray:
            if len(X) <= self.max_rows:
                return X
            return X[rng.choice(len(X), self.max_rows, replace=False)]

        found = [_share_of_kernel(drawn(P), drawn(U)) for _ in range(draws)]
        return float(np.mean(found))


def _share_of_kernel(P: FloatArray, U: FloatArray) -> float:
    """Return the share of P inside U from one kernel matrix."""
    n_p, n_u = len(P), len(U)
    difference = np.r_[np.full(n_u, 1 / n_u), np.full(n_p, -1 / n_p)]
    K, gap = _best_kernel(np.concatenate([U, P]), difference)
    noise = (1 / n_p + 1 / n_u) * (1 - float(K.mean()))
    if gap**2 <= ALIKE * noise:
        return LARGEST
    slope = min(min(n_p, n_u) ** -0.5, 0.9 * gap)
    mean_p = np.r_[np.zeros(n_u), np.full(n_p, 1 / n_p)]
    low, high = 1.0, 1 / (1 - LARGEST)
    w = np.r_[np.full(n_u, 1 / n_u), np.zeros(n_p)]
    step = 1 / float(np.linalg.eigvalsh(K)[-1])
    for _ in range(HALVINGS):
        # halve on the scale of shares, where the answer is wanted
        share = 1 - (1 / low + 1 / high) / 2
        middle = 1 / (1 - share)
        target = mean_p + middle * difference
        w = nearest_distribution(K, target, w, step)
        rest = target - w
        distance = np.sqrt(max(float(rest @ K @ rest), 0.0))
        steep = distance > 0 and float(difference @ K @ rest) / distance > slope
        low, high = (low, middle) if steep else (middle, high)
    return 1 - (1 / low + 1 / high) / 2


def _best_kernel(X: FloatArray, difference: FloatArray) -> tuple[FloatArray, float]:
    """Return the Gaussian kernel that tells P from U best, and ‖φ(P)-φ(U)‖ under it."""
    squared = cdist(X, X, "sqeuclidean")
    scale = float(np.median(squared)) or 1.0
    best, kernel = -1.0, squared
    for width in KERNEL_WIDTHS:
        K = np.exp(squared / (-2 * width**2 * scale))
        gap = float(np.sqrt(max(difference @ K @ difference, 0.0)))
        if gap > best:
            best, kernel = gap, K
    return kernel, best


def nearest_distribution(
    K: FloatArray, target: FloatArray, start: FloatArray, step: float
) -> FloatArray:
    """Return the w on the simplex that minimises (target-w)' K (target-w).

    Accelerated projected gradient (Beck and Teboulle 2009) from ``start``.
    """
    w = ahead = start
    momentum = 1.0
    for _ in range(300):
        last = w
        w = on_simplex(ahead - step * (K @ (ahead - target)))
        if float((ahead - w) @ (w - last)) > 0:  # overshot: start the momentum anew
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = w + (momentum - 1) / following * (w - last)
        momentum = following
        if np.abs(w - last).max() < 1e-7:
            break
    return w


def on_simplex(v: FloatArray) -> FloatArray:
    """Return the nearest point with entries of at least 0 that sum to 1."""
    falling = np.sort(v)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(v) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(v - excess[last], 0.0)


# --- penalised L1 distance -----------------------------------------------------------

WIDTHS = np.geomspace(0.1, 2.0, 6)
"""Kernel widths tried, in median distances."""

RIDGES = np.geomspace(1e-3, 1e1, 7)
GRID = np.linspace(0.0, 1.0, 201)
"""Shares tried."""

BLOCK = 10_000
"""Rows whose kernels are held in memory at once."""


class PenL1(PriorEstimator):
    """Least penalised L1 distance between a part of P and U.

    θ p(x | y=1) must lie below p_U(x) everywhere for θ up to the share π. The L1
    distance of the two, made infinite where it does not, falls until θ = π and rises
    after. With r(x) = Σ α_l φ_l(x) - 1, Gaussian φ_l, α_l ≥ 0 and a ridge (λ/2)‖α‖² its
    dual has the solution

        α_l = max(0, β_l) / λ,   β_l = θ mean_P φ_l - mean_U φ_l
        penL1(θ) = Σ α_l β_l - θ + 1

    and π is the θ with the least value. The width of φ and λ are chosen for each θ by
    the value on held-out rows.
    """

    sees = "features"
    about = About(
        key="pen_l1",
        paper="du Plessis et al. 2017, Class-prior estimation from PU data",
        inputs=("embedding",),
    )

    n_centers: int = setting(
        200, Whole(1), doc="Kernels, centred on rows drawn from P and U."
    )
    folds: int = setting(
        5, Whole(2, 100), doc="For width and ridge; each sample must have two rows."
    )

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        folds = min(self.folds, len(P), len(U))
        if folds < 2:
            raise InvalidInputError(
                f"positive has {len(P)} row(s), unlabeled {len(U)}; 'pen_l1' chooses "
                "its kernels by rows held out and needs at least 2 of each. Give more "
                "rows, or take an estimator that looks at scores, 'density_ratio', say."
            )
        everything = np.concatenate([P, U])
        few = rng.permutation(len(everything))[: self.n_centers]
        centers = everything[few]
        fold_p, fold_u = (rng.permutation(len(X)) % folds for X in (P, U))
        scale = float(np.median(cdist(centers, centers))) or 1.0
        held_out, value = [], []
        for width in WIDTHS * scale:
            p = fold_means(P, centers, width, fold_p, folds)
            u = fold_means(U, centers, width, fold_u, folds)
            found = [_both_values(p, u, ridge, fold_p, fold_u) for ridge in RIDGES]
            held_out += [h for h, _ in found]
            value += [v for _, v in found]
        best = np.argmax(held_out, axis=0)
        curve = np.array(value)[best, np.arange(len(GRID))]
        return float(GRID[np.argmin(curve)])


def fold_means(
    X: FloatArray, centers: FloatArray, width: float, fold: IntArray, folds: int
) -> FloatArray:
    """Return the mean of each kernel over each fold."""
    total = np.zeros((folds, len(centers)))
    for start in range(0, len(X), BLOCK):
        some = slice(start, start + BLOCK)
        K = np.exp(cdist(X[some], centers, "sqeuclidean") / (-2 * width**2))
        for k in range(folds):
            total[k] += K[fold[some] == k].sum(axis=0)
    return total / np.bincount(fold, minlength=folds)[:, None]


def _both_values(
    p: FloatArray, u: FloatArray, ridge: float, fold_p: IntArray, fold_u: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return Σ α_l β_l on held-out rows, and penL1 on all rows, for each θ."""
    n_p, n_u = np.bincount(fold_p)[:, None], np.bincount(fold_u)[:, None]
    all_p, all_u = (p * n_p).sum(0) / n_p.sum(), (u * n_u).sum(0) / n_u.sum()
    held = np.zeros(len(GRID))
    for k in range(len(p)):
        rest_p = (all_p * n_p.sum() - p[k] * n_p[k]) / (n_p.sum() - n_p[k])
        rest_u = (all_u * n_u.sum() - u[k] * n_u[k]) / (n_u.sum() - n_u[k])
        alpha = np.maximum(_beta(rest_p, rest_u), 0) / ridge
        held += (alpha * _beta(p[k], u[k])).sum(axis=1)
    return held, penalised(all_p, all_u, ridge)


def _beta(p: FloatArray, u: FloatArray) -> FloatArray:
    """Return θ p - u, one row for each θ of the grid."""
    return GRID[:, None] * p - u


def penalised(p: FloatArray, u: FloatArray, ridge: float) -> FloatArray:
    """Return penL1(θ) for each θ of the grid."""
    return (np.maximum(_beta(p, u), 0) ** 2).sum(axis=1) / ridge - GRID + 1
