"""Groups from paths and columns, times, and which positives are held out."""

from __future__ import annotations

import numpy as np
import pytest

from denspu.data import Items
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.runs.splitting import _told, groups_of, hold_out, path_pattern, times_of


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
        ("{group}/*", "anna/1.png", "anna"),
        ("{group}/*", "anna/left/1.png", "anna"),
        ("*/{group}/*", "2024/anna/left/1.png", "anna"),
        ("scan_{group}_*", "scan_7_a.png", "7"),
        (r"patient(\d+)", "x/patient07_2.png", "07"),
        (r"(?P<side>l|r)-(?P<group>\w+)", "l-anna", "anna"),
    ],
)
def test_patterns_find_the_group_in_a_path(pattern, path, group):
    found, told = groups_of([items(1, [path])], pattern)
    assert found[0].tolist() == [f"group {group}"]
    assert told == ""


@pytest.mark.parametrize("pattern", ["[", "abc", "{group}/{group}"])
def test_patterns_that_name_no_group_are_refused(pattern):
    with pytest.raises(InvalidParameterError, match=r"\{group\}"):
        path_pattern(pattern)


def test_items_without_a_group_are_alone_and_counted():
    pair = [items(2, ["a/1", "b"]), items(2, ["a/2", "b"])]
    (p, u), told = groups_of(pair, "{group}/*")
    assert p[0] == u[0]
    assert p[1] != u[1]
    assert "2 of 4 items" in told


def test_a_pattern_that_fits_nothing_is_an_error():
    with pytest.raises(InvalidInputError, match="names no item a group"):
        groups_of([items(2, ["a", "b"])], "{group}/*")


def test_groups_from_a_column_and_missing_ones():
    (found,), told = groups_of([items(3, g=["x", "x", None])], "g")
    assert found[0] == found[1] != found[2]
    assert "1 of 3" in told


@pytest.mark.parametrize(
    "values",
    [
        ["1", "20", "3"],
        [1.0, 20.0, 3.0],
        ["2024-01-01", "2024-03-01T10:00:00", "2024-02-01"],
        ["31.12.2023", "1.3.2024", "15.2.2024"],
    ],
    ids=["texts", "numbers", "iso", "points"],
)
def test_times_are_ordered(values):
    assert np.argsort(times_of(items(3, t=values), "t")).tolist() == [0, 2, 1]


def test_times_that_are_none_are_refused_by_value():
    with pytest.raises(InvalidInputError, match="'soon'"):
        times_of(items(2, t=["2024-01-01", "soon"]), "t")


def test_the_share_is_held_out_and_repeats():
    P = items(50)
    held, told = hold_out(P, 0.2, seed=3)
    assert held.sum() == 10
    assert "10 of 50" in told
    assert np.array_equal(held, hold_out(P, 0.2, seed=3)[0])
    assert not np.array_equal(held, hold_out(P, 0.2, seed=4)[0])


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


@pytest.mark.parametrize("n", [2, 9])
def test_few_positives_are_all_kept(n):
    held, told = hold_out(items(n), 0.2)
    assert not held.any()
    assert f"With {n} labelled positives" in told


def test_one_group_cannot_be_held_out():
    held, told = hold_out(items(20), 0.2, groups=np.zeros(20))
    assert not held.any()
    assert "one group" in told


@pytest.mark.parametrize(
    ("lonely", "told"), [(1, "1 of 4 items has no group"), (2, "2 of 4 items have no")]
)
def test_a_number_agrees_with_its_verb(lonely, told):
    names = [None] * lonely + ["a"] * (4 - lonely)
    assert groups_of([items(4, who=names)], "who")[1].startswith(told)


@pytest.mark.parametrize(
    ("twins", "told"), [(1, "1 stays in the fit, as a copy"), (2, "2 stay in the fit")]
)
def test_copies_that_stay_are_counted(twins, told):
    held = np.arange(12) < 3
    back = np.arange(12) >= 12 - twins
    assert told in _told(held, back, None, None)
    assert "3 of 12 labelled positives are held out" in _told(held, back, None, None)
