"""Copies of positives inside U."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from denspu.data import Items, find_duplicates, find_shortcuts, read_items
from denspu.data.kinds import image as module
from denspu.exceptions import InvalidInputError


def pictures(X, source="here"):
    height, width, channels = X.shape[1:]
    return Items(
        kind="image",
        X=X,
        ids=[str(i) for i in range(len(X))],
        source=source,
        plan={"kind": "image", "height": height, "width": width, "channels": channels},
    )


def random_pictures(n, seed, side=32, channels=3):
    """Smooth pictures, each different: a few soft spots on a ground."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:side, :side] / side
    out = np.zeros((n, side, side, channels))
    for _ in range(6):
        y, x = rng.random((2, n, 1, 1))
        spot = np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / 0.02)
        out += spot[..., None] * rng.random((n, 1, 1, channels))
    return (255 * out / out.max(axis=(1, 2, 3), keepdims=True)).astype(np.uint8)


def saved_again(image, quality=80):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


P = random_pictures(60, seed=10)
U = random_pictures(300, seed=11)


def test_exact_copies():
    mixed = U.copy()
    mixed[[5, 9]] = P[[3, 3]]
    found = find_duplicates(pictures(P), pictures(mixed))
    assert found.exact == [(3, 5), (3, 9)]
    assert found.near == []
    assert np.flatnonzero(found.copies).tolist() == [5, 9]
    assert found.sentences() == [
        "2 unlabelled images are copies of labelled positives (exact): count them as "
        "positives."
    ]


def test_near_copies():
    mixed = U.copy()
    mixed[5] = saved_again(P[3])
    mixed[6] = (P[4] * 0.8 + 12).astype(np.uint8)  # paler
    mixed[7] = P[5]
    found = find_duplicates(pictures(P), pictures(mixed))
    assert found.exact == [(5, 7)]
    assert found.near == [(3, 5), (4, 6)]
    assert np.flatnonzero(found.copies).tolist() == [5, 6, 7]
    assert "1 unlabelled images is a copy" in found.sentences()[0]


def test_pictures_that_all_look_alike_are_no_copies():
    """Scans of one kind of thing correlate highly without being the same."""
    rng = np.random.default_rng(10)
    base = random_pictures(1, seed=3)[0].astype(float)

    def scans(n):
        own = random_pictures(n, seed=rng.integers(1000)).astype(float)
        return np.clip(0.95 * base + 0.05 * own, 0, 255).astype(np.uint8)

    ours, theirs = scans(50), scans(300)
    close = 1 - module._thumbnails(ours) @ module._thumbnails(theirs).T
    assert np.median(close.min(axis=1)) < module.CLOSEST
    assert find_duplicates(pictures(ours), pictures(theirs)).near == []


def test_details_decide_not_thumbnails_alone():
    """The same thumbnail over another fine pattern is another picture."""
    fine = np.indices((32, 32)).sum(axis=0) % 2 * 120
    ours = np.clip(P // 2 + fine[None, ..., None], 0, 255).astype(np.uint8)
    other = np.clip(P // 2 + (120 - fine)[None, ..., None], 0, 255).astype(np.uint8)
    mixed = U.copy()
    mixed[0] = other[0]
    assert find_duplicates(pictures(ours), pictures(mixed)).near == []


def test_flat_pictures_are_equal_or_not_but_never_near():
    ours = np.stack([np.full((8, 8, 1), v, np.uint8) for v in (0, 0, 9)])
    theirs = np.stack([np.full((8, 8, 1), v, np.uint8) for v in (9, 200)])
    found = find_duplicates(pictures(ours), pictures(theirs))
    assert found.exact == [(2, 0)]
    assert found.near == []


def test_two_sizes_are_told():
    small = random_pictures(5, seed=1, side=16)
    found = find_duplicates(pictures(P), pictures(small))
    assert "read_pair" in found.sentences()[0]


def test_a_flood_of_near_copies_ends(monkeypatch):
    monkeypatch.setattr(module, "MAX_PAIRS", 10)
    monkeypatch.setattr(module, "CHUNK", 16)
    mixed = np.repeat((P[:1] * 0.9).astype(np.uint8), 100, axis=0)
    found = find_duplicates(pictures(P), pictures(mixed))
    assert "More than 10 near copies" in found.sentences()[0]
    assert len(found.near) < 100


# --- texts, rows, embeddings --------------------------------------------------------


def lines(tmp_path, name, texts):
    (tmp_path / name).write_text("\n".join(texts), "utf-8")
    return read_items(tmp_path / name)


def test_texts(tmp_path):
    ours = lines(tmp_path, "p.txt", ["The cat sat.", "A dog", "!!!"])
    theirs = lines(tmp_path, "u.txt", ["a  DOG!", "The cat sat.", "The cat sits", "??"])
    found = find_duplicates(ours, theirs)
    assert found.exact == [(0, 1)]
    assert found.near == [(1, 0)]


def rows(tmp_path, name, values):
    text = "a,b\n" + "".join(f"{a},{b}\n" for a, b in values)
    (tmp_path / name).write_text(text)
    return read_items(tmp_path / name)


def test_rows_with_gaps(tmp_path):
    ours = rows(tmp_path, "p.csv", [(1, "x"), ("", "y")])
    theirs = rows(tmp_path, "u.csv", [("", "y"), (2, "x"), (1, "y")])
    assert find_duplicates(ours, theirs).exact == [(1, 0)]


def test_equal_rows_say_nothing_where_rows_repeat(tmp_path):
    ours = rows(tmp_path, "p.csv", [(1, "x"), (2, "y")])
    theirs = rows(tmp_path, "u.csv", [(1, "x"), (1, "x"), (2, "x"), (2, "x")])
    found = find_duplicates(ours, theirs)
    assert found.exact == []
    assert "2 unlabelled rows equal a labelled one, but" in found.sentences()[0]


def test_embeddings(tmp_path):
    np.save(tmp_path / "p.npy", [[1.0, 2.0], [3.0, 4.0]])
    np.save(tmp_path / "u.npy", [[3.0, 4.0], [3.0, 4.1]])
    ours, theirs = read_items(tmp_path / "p.npy"), read_items(tmp_path / "u.npy")
    assert find_duplicates(ours, theirs).exact == [(1, 0)]
    for compare in (find_duplicates, find_shortcuts):
        with pytest.raises(InvalidInputError, match="Compare items of one kind"):
            compare(pictures(P), theirs)
