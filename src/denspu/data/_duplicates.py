"""Copies of labelled positives inside U: exact ones, and near ones.

A copy of a positive is a positive, so it should not be learned from as unlabelled, and
an estimate that counts it as a discovery flatters itself.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._frame import Frame
from denspu._typing import BoolArray, FloatArray
from denspu.data._items import Items
from denspu.exceptions import InvalidInputError

THUMB = 16
"""Side of the thumbnails that are compared."""

CLOSEST = 0.01
"""Near copies: one minus their correlation is at most this, in all pixels, ..."""

FAR_CLOSER = 0.1
"""... and in thumbnails this part of what two different positives usually have."""

CHUNK = 4096
MAX_PAIRS = 100_000
REPEATED = 0.01
"""In a table where more of the rows of U repeat each other, equal rows say nothing."""


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Pairs of a row of P and a row of U that show the same thing."""

    exact: list[tuple[int, int]]
    """Same content, as rows of P and of U."""
    near: list[tuple[int, int]]
    """Almost the same: a picture saved again, a text with other spacing."""
    n_unlabeled: int
    noun: str = "items"
    notes: tuple[str, ...] = ()

    @property
    def copies(self) -> BoolArray:
        """True for the rows of U that are copies of a positive, so positive."""
        found = np.zeros(self.n_unlabeled, dtype=bool)
        found[[u for _, u in (*self.exact, *self.near)]] = True
        return found

    def sentences(self) -> list[str]:
        """Return what was found, in words."""
        said = list(self.notes)
        exact = len({u for _, u in self.exact})
        near = int(self.copies.sum()) - exact
        for n, how in ((exact, "exact"), (near, "near")):
            if n:
                verb = "is a copy" if n == 1 else "are copies"
                said.append(
                    f"{n:,} unlabelled {self.noun} {verb} of labelled positives "
                    f"({how}): count them as positives."
                )
        return said


def find_duplicates(P: Items, U: Items) -> Duplicates:
    """Find copies of the items of P among those of U.

    Exact copies are found by a hash of the decoded content. Near copies of images have
    thumbnails that agree far better than those of two different positives usually do,
    whatever the brightness; near copies of texts differ in case, spacing and
    punctuation only. Time grows with len(P) × len(U) for images (a second for 1,000 ×
    60,000), memory does not.

    Parameters
    ----------
    P, U : Items
        Of the same kind and form, as from ``read_pair``.
    """
    if P.kind != U.kind:
        raise InvalidInputError(
            f"P holds {P.kind} items and U {U.kind} items. Compare items of one kind."
        )
    exact = _matches(list(_digests(P)), list(_digests(U)))
    near: list[tuple[int, int]] = []
    notes = []
    if P.kind == "image" and P.X.shape[1:] != U.X.shape[1:]:
        notes.append("P and U differ in size or colour: read them with read_pair.")
    elif P.kind == "image":
        near, full = _near_images(P.X, U.X)
        if full:
            notes.append(
                f"More than {MAX_PAIRS:,} near copies: the rest is not listed."
            )
    elif P.kind == "text":
        near = _matches([_plain(t) for t in P.X], [_plain(t) for t in U.X])
    elif P.kind == "table" and exact and _repeats(list(_digests(U))) > REPEATED:
        notes.append(
            f"{len({u for _, u in exact}):,} unlabelled rows equal a labelled one, but "
            "rows of U often equal each other too: not taken for copies."
        )
        exact = []
    same = set(exact)
    return Duplicates(
        exact=exact,
        near=[pair for pair in near if pair not in same],
        n_unlabeled=len(U),
        noun={"image": "images", "text": "texts", "table": "rows"}.get(P.kind, "items"),
        notes=tuple(notes),
    )


# --- exact --------------------------------------------------------------------------


def _digests(items: Items) -> Iterator[bytes]:
    """Yield one hash of the content an item."""
    X = items.X
    if isinstance(X, Frame):
        columns = [X[name].tolist() for name in X.columns]
        for row in zip(*columns, strict=True):
            yield _digest(repr([None if v != v else v for v in row]).encode())
    elif items.kind == "text":
        for text in X:
            yield _digest(text.encode("utf-8", "surrogatepass"))
    else:
        for row in X:
            yield _digest(np.ascontiguousarray(row).tobytes())


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _matches(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the pairs with equal keys; each of the second with one of the first."""
    at: dict[Any, int] = {}
    for i, key in enumerate(first):
        at.setdefault(key, i)
    return [(at[key], j) for j, key in enumerate(second) if key in at]


def _repeats(digests: Sequence[bytes]) -> float:
    return 1 - len(set(digests)) / len(digests)


def _plain(text: str) -> bytes:
    """Return the hash of the words of a text, without case and punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(c if c.isalnum() else " " for c in folded).split()
    return _digest(" ".join(words or [text]).encode("utf-8", "surrogatepass"))


# --- near copies of images ----------------------------------------------------------


def _near_images(P: Any, U: Any) -> tuple[list[tuple[int, int]], bool]:
    """Return the pairs of almost equal images, and whether there were too many."""
    ours = _thumbnails(P)
    limit = CLOSEST
    if len(ours) > 2:
        limit = min(limit, FAR_CLOSER * _usual_distance(ours))
    best: dict[int, list[tuple[float, int]]] = defaultdict(list)
    n_found = 0
    for start in range(0, len(U), CHUNK):
        theirs = _thumbnails(U[start : start + CHUNK])
        alike = theirs @ ours.T
        rows, columns = np.nonzero(alike >= 1 - limit)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            best[start + row].append((float(alike[row, column]), column))
        n_found += len(rows)
        if n_found > MAX_PAIRS:
            break
    pairs = [(max(found)[1], u) for u, found in sorted(best.items())]
    return [(p, u) for p, u in pairs if _alike(P[p], U[u])], n_found > MAX_PAIRS


def _alike(one: Any, other: Any) -> bool:
    """Tell whether two images agree in all their pixels, not in thumbnails alone."""
    a, b = (
        _standard(image.astype(np.float64).reshape(1, -1)) for image in (one, other)
    )
    return bool(a @ b.T >= 1 - CLOSEST)


def _usual_distance(thumbs: FloatArray) -> float:
    """Return how far the nearest other positive is, at the median."""
    nearest = np.empty(len(thumbs))
    for start in range(0, len(thumbs), CHUNK):
        alike = thumbs[start : start + CHUNK] @ thumbs.T
        rows = np.arange(len(alike))
        alike[rows, start + rows] = -1.0
        nearest[start : start + CHUNK] = alike.max(axis=1)
    return float(1 - np.median(nearest))


def _thumbnails(images: Any) -> NDArray[np.float32]:
    """Return small versions with mean 0 and length 1; a flat image becomes zeros."""
    parts = [
        _small(images[i : i + CHUNK]).reshape(len(images[i : i + CHUNK]), -1)
        for i in range(0, len(images), CHUNK)
    ]
    return _standard(np.concatenate(parts))


def _standard(rows: NDArray[Any]) -> NDArray[Any]:
    """Give each row mean 0 and length 1, and zeros where it is flat."""
    rows -= rows.mean(axis=1, keepdims=True)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    flat = length[:, 0] < 1e-3 * np.sqrt(rows.shape[1])
    rows /= np.maximum(length, 1e-12)
    rows[flat] = 0
    return rows


def _small(images: Any) -> NDArray[np.float32]:
    """Return N×h×w×C means over blocks, values in 0 to 1."""
    top = np.iinfo(images.dtype).max if images.dtype.kind in "ui" else 1.0
    n, height, width, channels = images.shape
    rows, columns = _weights(height), _weights(width)
    values = images.astype(np.float32) / np.float32(top)
    values = np.einsum("nhwc,ah->nawc", values, rows, optimize=True)
    values = np.einsum("nawc,bw->nabc", values, columns, optimize=True)
    return np.ascontiguousarray(values, dtype=np.float32).reshape(n, -1, channels)


def _weights(side: int) -> NDArray[np.float32]:
    """Return how much each pixel gives to each of at most ``THUMB`` cells."""
    cells = min(THUMB, side)
    edges = np.linspace(0, side, cells + 1)
    low, high = edges[:-1, None], edges[1:, None]
    pixel = np.arange(side)[None, :]
    cover = np.minimum(high, pixel + 1) - np.maximum(low, pixel)
    return (np.clip(cover, 0, None) / (high - low)).astype(np.float32)
