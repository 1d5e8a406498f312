"""Who gets a label: weighted choice without replacement, of rows or of groups.

The Gumbel top-k trick: adding Gumbel noise to the logarithm of each weight and
keeping the k largest is the same as drawing k times without replacement with
probabilities in proportion to the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from denspu._typing import FloatArray, IntArray
from denspu._validation import is_frame
from denspu.exceptions import InvalidInputError, InvalidParameterError

SAR_STRENGTH = 2.0


def choose_rows(weights: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Return ``count`` distinct positions, drawn by weight."""
    return _random_order(weights, rng)[:count]


def choose_groups(
    weights: FloatArray, groups: IntArray, count: int, rng: np.random.Generator
) -> IntArray:
    """Return all positions of groups drawn until they are at least ``count``.

    A group weighs as much as the mean weight of its rows.
    """
    codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)[1:]
    order = _random_order(np.bincount(codes, weights) / sizes, rng)
    needed = int(np.searchsorted(np.cumsum(sizes[order]), count)) + 1
    return np.flatnonzero(np.isin(codes, order[:needed]))


def _random_order(weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return all positions in the order a weighted draw would take them."""
    keys = np.log(weights) + rng.gumbel(size=len(weights))
    return np.argsort(-keys, kind="stable")


def propensities(
    propensity: Any | Callable[[Any], Any] | None,
    positives: Any,
    rows: IntArray,
    n_rows: int,
) -> FloatArray:
    """Return one labelling weight a positive.

    Parameters
    ----------
    propensity : array, callable or None
        One number a row of the whole set, a function of the positives, or the default.
    positives : array, DataFrame or list
        The positive rows.
    rows : array of int
        Their row numbers in the whole set.
    n_rows : int
        Size of the whole set.
    """
    if propensity is None:
        return _default_propensity(positives)
    if callable(propensity):
        weights = _as_numbers(propensity(positives), len(rows), "positive row")
    else:
        weights = _as_numbers(propensity, n_rows, "row")[rows]
    bad = ~(np.isfinite(weights) & (weights > 0))
    if bad.any():
        raise InvalidParameterError(
            f"propensity is {weights[bad][0]} for row {rows[bad][0]} and {bad.sum()} "
            "positive row(s) in all are not finite numbers above 0."
        )
    return weights


def _as_numbers(values: Any, length: int, what: str) -> FloatArray:
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"propensity is not numeric: {error}") from error
    if numbers.shape != (length,):
        raise InvalidParameterError(
            f"propensity has shape {numbers.shape}; one number a {what} is needed, "
            f"shape ({length},)."
        )
    return numbers


def _default_propensity(positives: Any) -> FloatArray:
    """exp(2·t), t the standardised projection on the first principal direction."""
    from sklearn.decomposition import PCA

    table = _as_table(positives)
    if len(table) < 2 or not np.ptp(table, axis=0).any():
        return np.ones(len(table))
    pca = PCA(n_components=1, svd_solver="randomized", random_state=0)
    projection = pca.fit_transform(table)[:, 0].astype(float)
    direction = pca.components_[0]
    projection *= np.sign(direction[np.abs(direction).argmax()])
    return np.exp(SAR_STRENGTH * projection / projection.std())


def _as_table(positives: Any) -> FloatArray:
    """Return the numbers of the positives, one flat row each."""
    if is_frame(positives):
        positives = positives.select_dtypes("number").to_numpy()
    try:
        table = np.asarray(positives)
        if table.dtype != np.float64:
            table = table.astype(np.float32)
        table = table.reshape(len(table), -1)
    except (TypeError, ValueError):
        table = np.empty((0, 0))
    if table.size == 0 or not np.isfinite(table).all():
        raise InvalidInputError(
            "The default propensity of mechanism='sar' needs numbers without NaN or "
            "infinity in X. Pass propensity=, an array or a function."
        )
    return table
