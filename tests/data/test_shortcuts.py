"""Facts that separate P from U without the content."""

from __future__ import annotations

import numpy as np
import pytest

from denspu._frame import Frame
from denspu.data import Items, find_shortcuts


def images(n, seed=0, **facts):
    rng = np.random.default_rng(seed)
    drawn = {
        "width": rng.integers(200, 800, n),
        "height": rng.integers(200, 800, n),
        "bits": np.full(n, 8),
        "bytes": rng.integers(10_000, 90_000, n),
        "mode": rng.choice(["RGB", "L"], n).astype(object),
        "format": rng.choice(["JPEG", "PNG"], n).astype(object),
    }
    drawn.update({k: np.asarray(v) for k, v in facts.items()})
    return Items("image", np.zeros((n, 1, 1, 1)), ["x"] * n, "s", {}, facts=drawn)


def table(**columns):
    frame = Frame(columns)
    gaps = sum(frame[name].isna().astype(int) for name in frame.columns)
    ids = ["x"] * len(frame)
    return Items("table", frame, ids, "s", {}, facts={"missing": gaps})


def test_size():
    P = images(100, width=np.full(100, 1024), height=np.full(100, 1024))
    U = images(1000, seed=1, width=np.full(1000, 512), height=np.full(1000, 512))
    said = find_shortcuts(P, U)
    assert len(said) == 2
    assert said[0].startswith(
        "The width in pixels alone tells labelled from unlabelled (AUC 1.00): the "
        "median is 1,024 among the labelled positives and 512 among the unlabelled."
    )


def test_aspect():
    P = images(100, width=np.full(100, 400), height=np.full(100, 400))
    widths = np.where(np.arange(500) % 2, 300, 500)
    U = images(500, seed=1, width=widths, height=widths // 2)
    assert any("ratio of width to height" in said for said in find_shortcuts(P, U))


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "words"),
    [
        ("format", "PNG", "JPEG", "The file format is PNG in 100% of"),
        ("mode", "L", "RGB", "The colour mode is L in 100% of"),
        ("bits", 16, 8, "The bits of a pixel is 16 in 100% of"),
    ],
)
def test_words(name, ours, theirs, words):
    P = images(60, **{name: np.array([ours] * 60)})
    U = images(600, seed=1, **{name: np.array([theirs] * 600)})
    (said,) = find_shortcuts(P, U)
    assert said.startswith(words)


def test_file_size_must_separate_more():
    """It follows the content: somewhat larger files are no shortcut."""
    rng = np.random.default_rng(10)
    U = images(2000, bytes=rng.normal(100, 10, 2000).astype(int) * 1000)
    P = images(300, seed=1, bytes=rng.normal(112, 10, 300).astype(int) * 1000)
    assert find_shortcuts(P, U) == []
    P = images(300, seed=1, bytes=rng.normal(150, 10, 300).astype(int) * 1000)
    assert "The file size in bytes alone" in find_shortcuts(P, U)[0]


def test_equal_medians_are_told_by_shares():
    P = images(100, width=np.full(100, 28))
    U = images(100, seed=1, width=np.r_[np.full(51, 28), np.full(49, 40)])
    (said,) = [s for s in find_shortcuts(P, U) if "width in" in s]
    assert (
        "it is 28 in 100% of the labelled positives and 51% of the unlabelled" in said
    )


def test_missing_cells():
    rng = np.random.default_rng(10)
    full, gaps = rng.normal(size=80), rng.normal(size=800)
    gaps[:600] = np.nan
    P = table(a=rng.normal(size=80), b=full)
    U = table(a=rng.normal(size=800), b=gaps)
    said = find_shortcuts(P, U)
    assert any(
        s.startswith("Column 'b' is missing in 0% of the labelled positives and 75% of")
        for s in said
    )
    assert any("number of missing values" in s for s in said)
    assert not any("'a'" in s for s in said)


def test_content_is_no_shortcut():
    rng = np.random.default_rng(10)
    P = table(a=rng.normal(5, 1, 80), b=np.full(80, "x", dtype=object))
    U = table(a=rng.normal(0, 1, 800), b=np.full(800, "y", dtype=object))
    assert find_shortcuts(P, U) == []


def test_false_alarms_are_rare():
    """P drawn as U is: at most 1 in 1,000 by design, none in 60 here."""
    alarms = 0
    for seed in range(60):
        P = images(3 + seed, seed=2 * seed)
        U = images(400, seed=2 * seed + 1)
        alarms += bool(find_shortcuts(P, U))
    assert alarms == 0


def test_a_few_items_do_not_cry_wolf_but_enough_do():
    U = images(500, width=np.full(500, 512))
    assert find_shortcuts(images(1, seed=1, width=[1024]), U) == []
    P = images(8, seed=1, width=np.full(8, 1024))
    assert any("width in pixels" in s for s in find_shortcuts(P, U))
