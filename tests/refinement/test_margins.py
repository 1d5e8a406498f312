"""Scores are cut so that a share lies above, in single precision and with ties."""

from __future__ import annotations

import numpy as np
import pytest

from denspu._machine import Deadline
from denspu.base import RefinerInput
from denspu.refinement.margins import cut_at, known_cut


def start(n, share, *, n_positive=2, held=0):
    """Return what a walk hands over: positives first, held-out ones after them."""
    rows = np.arange(n + n_positive)
    return RefinerInput(
        X=None,
        Z=np.zeros((len(rows), 1)),
        positive=rows < n_positive,
        known_negative=np.zeros(len(rows), dtype=bool),
        groups=None,
        scores=np.zeros(len(rows)),
        labels=np.zeros(len(rows)),
        prior_in_unlabeled=share,
        prior_interval=(0.0, 1.0),
        encoder=None,
        deadline=Deadline(None),
        prior_known=True,
        held_out=(rows >= n_positive) & (rows < n_positive + held) if held else None,
    )


def called(scores, given):
    """Return how many of the user's rows lie above the cut."""
    mine = given.free if given.held_out is None else given.free & ~given.held_out
    return int((scores[mine] > known_cut(scores, given)).sum())


@pytest.mark.parametrize("count", [1, 3, 9, 10])
def test_a_share_of_rows_lies_above_the_cut(count):
    given = start(10, count / 10)
    assert called(np.arange(12.0), given) == count


@pytest.mark.parametrize(
    ("known", "expected"),
    [(1, 4), (2, 4), (4, 4), (5, 4), (6, 4), (8, 10), (10, 10)],
)
def test_equal_rows_lie_on_the_side_that_is_nearer(known, expected):
    """Four of ten rows tie at the top, six below: never is nobody called."""
    scores = np.r_[9.0, 9.0, np.repeat([2.0, 1.0], [4, 6])]
    assert called(scores, start(10, known / 10)) == expected


def test_rows_that_are_all_alike_are_all_called():
    assert called(np.ones(12), start(10, 0.1)) == 10


@pytest.mark.parametrize("where", ["top", "bottom"])
def test_held_out_positives_are_not_counted(where):
    scores = np.arange(12.0)
    scores[2:5] += 100 if where == "top" else -100
    given = start(10, (2 + 3) / 10, held=3)  # two of the seven others
    assert called(scores, given) == 2


def test_less_than_a_row_is_one_row():
    assert called(np.arange(12.0), start(10, 0.05)) == 1


def test_neighbours_in_single_precision_are_told_apart():
    low = np.float32(0.1)
    scores = np.array([low, np.nextafter(low, np.float32(1))])
    cut = cut_at(scores, 0.5)
    assert (scores.astype(np.float64) > cut).tolist() == [False, True]
    largest = np.finfo(np.float32).max
    assert np.isfinite(cut_at(np.array([largest / 2, largest], np.float32), 0.5))
