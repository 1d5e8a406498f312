"""What a run reads: sources, groups, times, shares, and who is held out."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from tests.runs.test_fit_run import write_embeddings

from denspu._registry import registry
from denspu._share import Counts
from denspu.data import Items
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.runs import RunOptions
from denspu.runs.options import given_share
from denspu.runs.reading import groups_of, hold_out, path_pattern, read_run, times_of


def items(n, ids=None, **aside):
    rng = np.random.default_rng(0)
    return Items(
        kind="embedding",
        X=rng.normal(size=(n, 3)),
        ids=ids or [f"{i}" for i in range(n)],
        source="there",
        plan={"kind": "embedding", "width": 3},
        aside={name: np.array(v, dtype=object) for name, v in aside.items()},
    )


@pytest.mark.parametrize(
    ("pattern", "path", "group"),
    [
        ("{group}/*", "anna/left/1.png", "anna"),
        ("*/{group}/*", "2024/anna/left/1.png", "anna"),
        (r"patient(\d+)", "x/patient07_2.png", "07"),
        (r"(?P<side>l|r)-(?P<group>\w+)", "l-anna", "anna"),
    ],
)
def test_patterns_find_the_group_in_a_path(pattern, path, group):
    found, told = groups_of([items(1, [path])], pattern)
    assert found[0].tolist() == [f"group {group}"]
    assert told == ""


@pytest.mark.parametrize("pattern", ["[", "abc"])
def test_patterns_that_name_no_group_are_refused(pattern):
    with pytest.raises(InvalidParameterError, match=r"\{group\}"):
        path_pattern(pattern)


def test_items_without_a_group_are_alone_and_counted():
    pair = [items(2, ["a/1", "b"]), items(2, ["a/2", "b"])]
    (p, u), told = groups_of(pair, "{group}/*")
    assert p[0] == u[0]
    assert p[1] != u[1]
    assert "2 of 4 items" in told


def test_groups_from_a_column_and_missing_ones():
    (found,), told = groups_of([items(3, g=["x", "x", None])], "g")
    assert found[0] == found[1] != found[2]
    assert "1 of 3" in told


@pytest.mark.parametrize(
    "values",
    [
        ["1", "20", "3"],
        ["2024-01-01", "2024-03-01T10:00:00", "2024-02-01"],
        ["31.12.2023", "1.3.2024", "15.2.2024"],
    ],
    ids=["numbers", "iso", "points"],
)
def test_times_are_ordered(values):
    assert np.argsort(times_of(items(3, t=values), "t")).tolist() == [0, 2, 1]


def test_times_that_are_none_are_refused_by_value():
    with pytest.raises(InvalidInputError, match="'soon'"):
        times_of(items(2, t=["2024-01-01", "soon"]), "t")


def test_groups_are_held_out_whole():
    groups = np.repeat(np.arange(12), 4)
    held, _ = hold_out(items(48), 0.25, groups=groups)
    assert held.sum() == 12
    assert {held[groups == g].sum() for g in range(12)} == {0, 4}


def test_the_latest_are_held_out():
    times = np.random.default_rng(0).permutation(40).astype(float)
    held, told = hold_out(items(40), 0.25, times=times)
    assert sorted(times[held]) == list(range(30, 40))
    assert "latest" in told


def test_the_latest_groups_are_held_out_whole_with_their_gaps():
    groups = np.repeat(np.arange(10), 2)
    times = np.where(np.arange(20) % 2, np.nan, np.arange(20.0))
    held, _ = hold_out(items(20), 0.2, groups=groups, times=times)
    assert np.flatnonzero(held).tolist() == [16, 17, 18, 19]


def test_of_equally_late_ones_some_are_drawn():
    """The order of the file says nothing."""
    times = np.r_[np.zeros(10), np.ones(30)]
    held, _ = hold_out(items(40), 0.25, times=times)
    assert held.sum() == 10
    assert not held[:10].any()
    assert not np.array_equal(np.flatnonzero(held), np.arange(10, 20))


def test_a_positive_without_a_time_is_never_the_latest():
    times = np.where(np.arange(40) < 3, np.arange(40.0), np.nan)
    held, told = hold_out(items(40), 0.25, times=times)
    assert np.flatnonzero(held).tolist() == [0, 1, 2]
    assert told.startswith("The latest 3 of 40")


def test_a_copy_of_a_labelled_positive_is_never_held_out():
    """Its twin is known as positive, so it would be recognised."""
    P = items(40)
    P.X[20:] = P.X[:20]
    held, told = hold_out(P, 0.3)
    twin = (np.arange(40) + 20) % 40
    assert held.any()
    assert (held == held[twin]).all()
    assert "copies" in told


def test_too_few_positives_or_one_group_are_all_kept():
    held, told = hold_out(items(9), 0.2)
    assert not held.any()
    assert "With 9 labelled positives" in told
    held, told = hold_out(items(20), 0.2, groups=np.zeros(20))
    assert not held.any()
    assert "one group" in told


def write(folder, kind, n):
    folder.mkdir()
    for i in range(n):
        if kind == "image":
            pixels = np.full((4, 4), 10 * i + len(folder.name), np.uint8)
            Image.fromarray(pixels).save(folder / f"{i}.png")
        else:
            (folder / f"{i}.txt").write_text(f"{folder.name} {i}")
    return folder


@pytest.fixture
def sources(tmp_path, monkeypatch, request):
    for module in ("kinds.image", "kinds.text"):
        monkeypatch.setattr(f"denspu.data.{module}.MANY", 10)
    return {
        "positive": write(tmp_path / "known", request.param, 9),
        "unlabeled": write(tmp_path / "pile", request.param, 20),
        "out": tmp_path / "run",
    }


@pytest.mark.parametrize("sources", ["image", "text"], indirect=True)
def test_reading_many_files_is_shown(sources, capsys):
    read_run(RunOptions(verbose=1, **sources))
    words = [line.split()[:3] for line in capsys.readouterr().err.splitlines()]
    pile = str(sources["unlabeled"])
    assert words[-1] == ["reading", "20/20", pile]
    assert {where for *_, where in words} == {pile}, "few files need no progress"
    read_run(RunOptions(verbose=0, **sources))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("n", "told"),
    [
        (1, "1 item is a copy of labelled positives and known to be negative"),
        (2, "2 items are copies of labelled positives and known to be negative"),
    ],
)
def test_copies_that_are_known_negatives_are_told(tmp_path, n, told):
    given = write_embeddings(tmp_path, copies=3)
    (tmp_path / "no.txt").write_text("".join(f"{i + 1}\n" for i in range(n)))
    given["known_negatives"] = tmp_path / "no.txt"
    found = read_run(RunOptions(out=tmp_path / "run", **given))
    assert found.warnings[0].startswith(told)
    assert found.is_copy.sum() == 3 - n


def ask(n_positive=10, **given):
    counts = Counts(n_positive, 10, known_negative=1, known_positive=1)
    wanted = RunOptions(out="r", **given)
    return given_share(wanted, counts, registry().get("nnpu"))


@pytest.mark.parametrize(
    ("given", "shares", "allowed"),
    [
        (
            {"prior_in_unlabeled": (0.15, 0.85)},
            {"prior_in_unlabeled": (0.14, 0.86)},
            "between 0.15 and 0.85, or leave it out",
        ),
        ({"prior": (0.575, 0.925)}, {"prior": (0.57, 0.93)}, "0.575 and 0.925"),
        (
            {"prior": (0.15, 0.85), "scenario": "two-sample"},
            {"prior": (0.14, 0.86), "scenario": "two-sample"},
            "0.15 and 0.85",
        ),
    ],
    ids=["inside U", "of all", "two samples"],
)
def test_a_share_is_of_the_items_it_speaks_of(given, shares, allowed):
    """Half an open item at either end is the least that is allowed."""

    def each(of):
        (name, ends), rest = next(iter(of.items())), dict(list(of.items())[1:])
        return [{name: end, **rest} for end in ends]

    low, high = (ask(**one) for one in each(given))
    assert (low.of, low.value) == ("open", pytest.approx(0.5 / 8))
    assert high.value == pytest.approx(7.5 / 8)
    for one in each(shares):
        with pytest.raises(InvalidParameterError, match=allowed):
            ask(**one)
    assert ask() is None
