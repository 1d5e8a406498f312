"""Pictures of a fit: the map of embeddings, and distributions.

A ``draw_...`` draws into a figure or a part of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from numpy.typing import NDArray

from denspu._typing import FloatArray
from denspu._validation import check_embedding, validate_labels
from denspu.exceptions import InvalidInputError, did_you_mean
from denspu.report.style import (
    CYCLE,
    ROLES,
    bare,
    legend_below,
    new_figure,
    styled,
)
from denspu.runs.fit import project

if TYPE_CHECKING:
    from denspu.methods.dens_pu import DensPU

Roles = Sequence[str] | NDArray[np.str_]

MAP_WIDTH, AROUND_MAP = 4.6, 1.1
"""Inches: width of a map, and height of the words above and below it."""
FLATTEST = 0.5
"""Shorter side of a map over its longer side, at least."""
CROWD = 1_500
"""Points from which they are drawn smaller, the more the smaller."""
RASTER_FROM = 2_000
"""Points from which an SVG holds the cloud as pixels, to stay small."""


# --- the map of the embeddings ------------------------------------------------------


def roles_of(model: DensPU, y: Any) -> NDArray[np.str_]:
    """Return what became of each row that a Dens-PU model was fitted on.

    Parameters
    ----------
    model : DensPU
        A fitted model.
    y : array of shape (n,)
        The PU labels it was fitted on.

    Returns
    -------
    array of str
        ``"positive"`` (labelled); where labels of U were refined ``"called"`` or
        ``"rejected"`` (called positive or negative), else ``"negative"`` (chosen for
        Ñ), ``"inlier"`` (inside the boundary) or ``"unlabeled"`` (the others).
    """
    positive = validate_labels(y)
    if not np.array_equal(np.flatnonzero(~positive), model.unlabeled_index_):
        raise InvalidInputError(
            f"y has {int((~positive).sum())} unlabelled rows and the model was fitted "
            f"on {len(model.unlabeled_index_)}, or they are others. Pass the y that "
            "was given to fit."
        )
    roles = np.where(positive, "positive", "unlabeled").astype("<U9")
    if hasattr(model, "labels_"):
        called = np.where(model.labels_ > 0.5, "called", "rejected")
        return np.where(positive, roles, called)
    roles[model.unlabeled_index_[model.unlabeled_inlier_]] = "inlier"
    roles[model.negative_index_] = "negative"
    return roles


def latent_map(Z: Any, roles: Roles, *, title: str = "Map of the data") -> Figure:
    """Draw embeddings on their two main directions, coloured by role.

    Parameters
    ----------
    Z : array of shape (n, d)
        Embeddings, such as ``model.encoder_.transform(X)``.
    roles : sequence of str
        One a row: ``"positive"``, ``"called"``, ``"rejected"``, ``"inlier"``,
        ``"negative"`` or ``"unlabeled"``; see :func:`roles_of`.
    title : str
        Heading of the picture.
    """
    figure = new_figure(MAP_WIDTH, MAP_WIDTH)
    with styled():
        axes = draw_latent_map(figure, Z, roles, title)
    flatness = float(np.ptp(axes.get_ylim()) / np.ptp(axes.get_xlim()))
    figure.set_size_inches(MAP_WIDTH, MAP_WIDTH * flatness + AROUND_MAP)
    return figure


def draw_latent_map(figure: FigureBase, Z: Any, roles: Roles, title: str) -> Axes:
    """Draw the map; roles that nobody has are left out."""
    Z = check_embedding(Z)
    roles = _check_roles(roles, len(Z))
    points, shares = project(Z)
    axes: Axes = figure.subplots()
    axes.set_title(title)
    for name, role in ROLES.items():
        chosen = points[roles == name]
        if not len(chosen):
            continue
        axes.scatter(
            chosen[:, 0],
            chosen[:, 1],
            s=role.size * min(1.0, (CROWD / len(Z)) ** 0.5),
            c=role.color,
            marker=role.marker,
            alpha=role.alpha,
            linewidths=0.9 if role.marker == "x" else 0,
            label=f"{role.label} ({len(chosen):,})",
            rasterized=len(Z) >= RASTER_FROM,
        )
    bare(axes)
    _frame(axes, points)
    axes.set_xlabel(
        f"2 main directions (PCA): {shares.sum():.0%} of variance", loc="left"
    )
    legend = legend_below(axes, 20, handles=axes.collections[::-1], handletextpad=0.3)
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)
            handle.set(sizes=[22])
    return axes


def _check_roles(roles: Roles, n_rows: int) -> NDArray[np.str_]:
    found = np.asarray(roles, dtype=np.str_)
    if found.shape != (n_rows,):
        raise InvalidInputError(
            f"Z has {n_rows} rows and roles has shape {found.shape}; pass one role a "
            "row."
        )
    for role in np.unique(found).tolist():
        if role not in ROLES:
            raise InvalidInputError(
                f"There is no role {role!r}.{did_you_mean(role, ROLES)} Known: "
                f"{', '.join(ROLES)}."
            )
    return found


def _frame(axes: Axes, points: FloatArray) -> None:
    """Show all points on one scale for both directions, in a box that is not flat."""
    low, high = points.min(axis=0), points.max(axis=0)
    half = 0.52 * (high - low)
    half = np.maximum(half, FLATTEST * half.max() or 1.0)
    center = (low + high) / 2
    axes.set_xlim(center[0] - half[0], center[0] + half[0])
    axes.set_ylim(center[1] - half[1], center[1] + half[1])
    axes.set_aspect("equal", anchor="NW")


# --- distributions ------------------------------------------------------------------


def draw_density(
    axes: Axes,
    values: FloatArray,
    edges: FloatArray,
    color: str,
    label: str,
    *,
    fill: float = 0.3,
) -> None:
    """Draw one histogram whose area is the share of the values in sight."""
    counts, _ = np.histogram(values, edges)
    heights = counts / (len(values) * np.diff(edges))
    axes.stairs(heights, edges, fill=True, color=color, alpha=fill)
    axes.stairs(heights, edges, color=color, linewidth=1.3, label=label)


def lambda_distributions(panels: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw how interpolation weights λ are distributed on (0, 1).

    Parameters
    ----------
    panels : mapping of title → {label: samples of λ}
        One panel a title, one distribution a label.
    """
    if not panels or not all(panels.values()):
        raise InvalidInputError("Pass at least one panel, each with samples of λ.")
    figure = new_figure(4 * len(panels), 3.2)
    edges = np.linspace(0, 1, 51)
    with styled():
        row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (title, series) in zip(row, panels.items(), strict=True):
            for color, (label, values) in zip(
                cycle(CYCLE), series.items(), strict=False
            ):
                draw_density(axes, np.asarray(values), edges, color, label, fill=0.12)
            axes.set_title(title)
            axes.set(xlim=(0, 1), xlabel="λ")
            axes.tick_params(labelleft=True)
            legend_below(axes, 36, handlelength=1.2)
        row[0].set_ylabel("density")
    return figure
