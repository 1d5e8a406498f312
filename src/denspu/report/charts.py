"""Pictures of a fit: the map of embeddings, distributions, rows of thumbnails.

A ``draw_...`` draws into a figure or a part of one; its public twin makes the figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from numpy.typing import NDArray

from denspu._typing import FloatArray
from denspu._validation import check_embedding, check_images, validate_labels
from denspu.exceptions import InvalidInputError, InvalidParameterError, did_you_mean
from denspu.report.drawings import bin_edges
from denspu.report.style import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    ROLES,
    bare,
    legend_below,
    new_figure,
    parts,
    styled,
)
from denspu.report.text import cut_in_the_middle
from denspu.runs.findings import project

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
LAMBDA_BINS = 50
COLUMNS = 8
"""Thumbnails in a row."""
THUMB, GAP = 0.85, 0.12
"""Inches that a thumbnail and its gap take up, and the gap alone."""
CAPTION_LENGTH = 14
TINY = 24
"""Side in pixels below which images are smoothed."""


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

    Examples
    --------
    >>> Z = [[0, 1], [1, 0], [5, 5]]
    >>> figure = latent_map(Z, ["positive", "inlier", "negative"])
    >>> [len(layer.get_offsets()) for layer in figure.axes[0].collections]
    [1, 1, 1]
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


def score_histogram(
    scores_positive: Any,
    scores_unlabeled: Any,
    threshold: float,
    *,
    title: str = "How normal is each row?",
    positive_label: str = "labelled positives",
) -> Figure:
    """Draw the normality of positives and of unlabelled rows, and the threshold.

    Parameters
    ----------
    scores_positive : array
        Normality of labelled positives, higher = more normal. Scores of rows that the
        boundary was fitted on look better than they are: prefer held-out ones.
    scores_unlabeled : array
        Normality of the unlabelled rows.
    threshold : float
        Rows below it lie outside the boundary.
    title, positive_label : str
        Heading of the picture, and what the legend calls the positives.
    """
    figure = new_figure(4.6, 3.4)
    scores = scores_positive, scores_unlabeled
    with styled():
        draw_score_histogram(figure, *scores, threshold, title, positive_label)
    return figure


def draw_score_histogram(
    figure: FigureBase,
    scores_positive: Any,
    scores_unlabeled: Any,
    threshold: float,
    title: str,
    positive_label: str,
) -> None:
    """Draw the two distributions and how many of U lie on either side."""
    positive = _numbers(scores_positive, "scores_positive")
    unlabeled = _numbers(scores_unlabeled, "scores_unlabeled")
    axes: Axes = figure.subplots()
    axes.set_title(title)
    edges = bin_edges([positive, unlabeled], threshold)
    draw_density(axes, unlabeled, edges, GREY, f"unlabelled ({len(unlabeled):,})")
    draw_density(axes, positive, edges, BLUE, f"{positive_label} ({len(positive):,})")
    axes.axvline(threshold, color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.set(xlim=(edges[0], edges[-1]), yticks=[])
    axes.set_xlabel("normality (higher = more like positives)")
    axes.spines["left"].set_visible(False)
    axes.margins(y=0.3)
    outside = int((unlabeled < threshold).sum())
    for side, shift, text in (
        ("right", -4, f"outside\n{outside:,} of U"),
        ("left", 4, f"inside\n{len(unlabeled) - outside:,} of U"),
    ):
        axes.annotate(
            text,
            (threshold, 1),
            xytext=(shift, -1),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha=side,
            va="top",
            color=INK,
            fontsize=7.5,
        )
    legend_below(axes, 36, handlelength=1.2)


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

    Examples
    --------
    >>> figure = lambda_distributions({"Two weights": {"k = 0.2": [0.45, 0.55]}})
    >>> len(figure.axes)
    1
    """
    if not panels or not all(panels.values()):
        raise InvalidInputError("Pass at least one panel, each with samples of λ.")
    figure = new_figure(4 * len(panels), 3.2)
    edges = np.linspace(0, 1, LAMBDA_BINS + 1)
    with styled():
        row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (title, series) in zip(row, panels.items(), strict=True):
            for i, (label, values) in enumerate(series.items()):
                weights, color = _numbers(values, label), CYCLE[i % len(CYCLE)]
                draw_density(axes, weights, edges, color, label, fill=0.12)
            axes.set_title(title)
            axes.set(xlim=(0, 1), xlabel="λ")
            axes.tick_params(labelleft=True)
            legend_below(axes, 36, handlelength=1.2)
        row[0].set_ylabel("density")
    return figure


def _numbers(values: Any, argument: str) -> FloatArray:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
        raise InvalidInputError(
            f"{argument} must be a list of finite numbers and hold at least one; it "
            f"has shape {numbers.shape}."
        )
    return numbers


# --- thumbnails ---------------------------------------------------------------------


def gallery(
    images: Any,
    title: str,
    captions: Sequence[Any] | None = None,
    *,
    columns: int = COLUMNS,
) -> Figure:
    """Draw images in rows, in the order given.

    Parameters
    ----------
    images : array N×H×W or N×H×W×C
        Bytes, or floats of any range; all share one scale from dark to light.
    title : str
        Heading of the picture.
    captions : sequence, optional
        One text below each image. It is shown as it is (no formulas), shortened in
        the middle where it is long.
    columns : int, default=8
        Images in a row.
    """
    if columns < 1:
        raise InvalidParameterError(f"columns={columns!r} must be at least 1.")
    pixels = _pixels(images)
    columns = min(columns, len(pixels))
    figure = _sized(pixels, columns, math.ceil(len(pixels) / columns), titles=1)
    with styled():
        _draw_gallery(figure, pixels, title, captions, columns)
    return figure


def most_and_least_normal(
    images: Any,
    scores: Any,
    n: int = COLUMNS,
    *,
    captions: Sequence[Any] | None = None,
) -> Figure:
    """Draw the ``n`` most normal images above the ``n`` least normal ones.

    In reading order normality falls: the first image is the most normal of all, the
    last the least.

    Parameters
    ----------
    images : array N×H×W or N×H×W×C
    scores : array of shape (N,)
        Normality, higher = more normal.
    n : int, default=8
        Images in a row; at most half of them.
    captions : sequence, optional
        One text an image; its score by default.
    """
    pixels = _pixels(images)
    figure = _sized(pixels, min(n, max(1, len(pixels) // 2)), rows=2, titles=2)
    with styled():
        draw_most_and_least_normal(figure, images, scores, n, captions)
    return figure


def draw_most_and_least_normal(
    figure: FigureBase,
    images: Any,
    scores: Any,
    n: int,
    captions: Sequence[Any] | None = None,
    *,
    columns: int | None = None,
) -> None:
    """Draw the two halves, one above the other."""
    pixels = _pixels(images)
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (len(pixels),) or np.isnan(scores).any():
        raise InvalidInputError(
            f"scores has shape {scores.shape}; one number an image is needed, shape "
            f"({len(pixels)},), without NaN."
        )
    if n < 1:
        raise InvalidParameterError(f"n={n!r} must be at least 1.")
    words = [f"{s:.2f}" for s in scores] if captions is None else list(captions)
    order = np.argsort(-scores, kind="stable")
    n = min(n, max(1, len(order) // 2))
    upper, lower = parts(figure, 2, 1)
    for half, chosen, title in (
        (upper, order[:n], "Most normal"),
        (lower, order[-n:], "Least normal"),
    ):
        shown = [words[i] for i in chosen]
        _draw_gallery(half, pixels[chosen], title, shown, min(n, columns or n))


def _draw_gallery(
    figure: FigureBase,
    pixels: NDArray[Any],
    title: str,
    captions: Sequence[Any] | None,
    columns: int,
) -> None:
    if captions is not None and len(captions) != len(pixels):
        raise InvalidInputError(
            f"There are {len(pixels)} images and {len(captions)} captions."
        )
    # tiny images are easier to read smoothed
    smoothing = "bicubic" if max(pixels.shape[1:3]) < TINY else "auto"
    figure.suptitle(title, x=0.01, ha="left")
    rows = math.ceil(len(pixels) / columns)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for i, axes in enumerate(grid):
        bare(axes)
        if i >= len(pixels):
            continue
        axes.imshow(pixels[i], vmin=0, vmax=1, interpolation=smoothing)
        if captions is not None:
            caption = cut_in_the_middle(str(captions[i]), CAPTION_LENGTH)
            axes.set_xlabel(caption, labelpad=2, fontsize=7)


def _sized(pixels: NDArray[Any], columns: int, rows: int, titles: int) -> Figure:
    """Return a figure that fits thumbnails of these proportions."""
    height, width = pixels.shape[1:3]
    row = (THUMB - GAP) * height / width + 0.27
    return new_figure(max(2.4, THUMB * columns), row * rows + 0.17 * titles)


def _pixels(images: Any) -> NDArray[Any]:
    """Return images as floats from 0 to 1 on one common scale."""
    checked = np.asarray(check_images(images))
    pixels = checked.astype(np.float64)
    if checked.dtype == np.uint8:
        pixels /= 255
    else:
        low, high = pixels.min(), pixels.max()
        pixels = (pixels - low) / ((high - low) or 1)
    return pixels if pixels.shape[-1] > 2 else pixels.mean(axis=-1)
