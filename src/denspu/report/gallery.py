"""Rows of thumbnails to glance over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure, FigureBase
from numpy.typing import NDArray

from denspu._validation import check_images
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.report.style import bare, new_figure, parts, styled

COLUMNS = 8
THUMB, GAP = 0.85, 0.12
"""Inches that a thumbnail and its gap take up, and the gap alone."""
CAPTION_LENGTH = 14
TINY = 24
"""Side in pixels below which images are smoothed."""


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
        draw_gallery(figure, pixels, title, captions, columns)
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
    """Draw the two halves into a figure or a part of one."""
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
        draw_gallery(half, pixels[chosen], title, shown, min(n, columns or n))


def draw_gallery(
    figure: FigureBase,
    pixels: NDArray[Any],
    title: str,
    captions: Sequence[Any] | None,
    columns: int,
) -> None:
    """Draw prepared pixels into a figure or a part of one."""
    if captions is not None and len(captions) != len(pixels):
        raise InvalidInputError(
            f"There are {len(pixels)} images and {len(captions)} captions."
        )
    rows = math.ceil(len(pixels) / columns)
    figure.suptitle(title, x=0.01, ha="left")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for i, axes in enumerate(grid):
        bare(axes)
        if i >= len(pixels):
            continue
        axes.imshow(pixels[i], vmin=0, vmax=1, interpolation=_smoothing(pixels))
        if captions is not None:
            axes.set_xlabel(shorten(str(captions[i])), labelpad=2, fontsize=7)


def shorten(text: str, length: int = CAPTION_LENGTH) -> str:
    """Return one line of at most ``length`` characters, cut in the middle.

    Examples
    --------
    >>> shorten("scan-2023-11-04-left.png")
    'scan-20…ft.png'
    """
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head]}…{text[len(text) - (length - head - 1) :]}"


def _sized(pixels: NDArray[Any], columns: int, rows: int, titles: int) -> Figure:
    """Return a figure that fits thumbnails of these proportions."""
    height, width = pixels.shape[1:3]
    row = (THUMB - GAP) * height / width + 0.27
    return new_figure(max(2.4, THUMB * columns), row * rows + 0.17 * titles)


def _smoothing(pixels: NDArray[Any]) -> str:
    """Return how pixels are drawn: tiny images are easier to read smoothed."""
    return "bicubic" if max(pixels.shape[1:3]) < TINY else "auto"


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
