"""A share of positives, and what it means for other rows: all by counting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from denspu._share import Counts, Share, known_share
from denspu._validation import PUInput
from denspu.exceptions import InvalidParameterError


def data(n=200, n_positive=20, n_known=0, n_held=0):
    """Return rows with labels first and known negatives last."""
    row = np.arange(n)
    held = row < n_held
    return PUInput(
        X=np.zeros((n, 1)),
        kind="table",
        positive=(row < n_positive) & ~held,
        known_negative=row >= n - n_known,
        groups=None,
        held_out=held if n_held else None,
    )


@pytest.mark.parametrize("seed", range(2))
def test_every_conversion_counts_the_same_positives(seed):
    """True classes are drawn, and every share is counted from them."""
    rng = np.random.default_rng(seed)
    n, n_known, n_held = 300, rng.integers(50), rng.integers(15)
    rows = data(n, 40, n_known, n_held)
    truth = rng.random(n) < 0.4
    truth[:40], truth[n - n_known :] = True, False
    seen, given = Counts.seen(rows), Counts.given(rows)
    user_u = rows.unlabeled & (np.arange(n) >= n_held)
    open_rows = ~rows.known_negative
    shares = [
        Share.exactly(truth.mean(), "all", seen),
        Share.exactly(truth[rows.unlabeled].mean(), "unlabeled", seen),
        Share.exactly(truth[rows.unlabeled & open_rows].mean(), "open", seen),
        Share.exactly(truth[user_u].mean(), "unlabeled", given),
        Share.exactly(truth[user_u & open_rows].mean(), "open", given),
    ]
    for share in shares:
        assert share.positives == pytest.approx(truth.sum() - share.counts.labeled)
        assert share.label_frequency == pytest.approx(
            share.counts.labeled / truth.sum()
        )
        for other in shares:
            found = share.to(other.of, other.counts)
            assert found.value == pytest.approx(other.value)
            assert found.interval == (found.value, found.value)


def test_copies_of_positives_are_positive_and_not_open():
    """100 rows of U: 10 copies, 30 known negatives, 15 of the others positive."""
    counts = Counts(50, 100, known_negative=30, known_positive=10)
    share = Share(15 / 60, 6 / 60, 30 / 60, "open", counts)
    assert share.positives == pytest.approx(25)
    inside = share.to("unlabeled")
    assert (inside.value, *inside.interval) == pytest.approx((0.25, 0.16, 0.4))
    assert inside.to("open").value == pytest.approx(15 / 60)
    assert share.to("all").value == pytest.approx(75 / 150)


def test_ends_stay_within_zero_and_one():
    """6 of 30 rows of U cannot be 9 of the fit's 33, less 3 held out, and so on."""
    rows = data(40, 10, n_held=3)
    low = Share.exactly(0.01, "unlabeled", Counts.seen(rows))
    assert low.to("unlabeled", Counts.given(rows)).value == 0.0
    rows = data(40, 10, n_known=10)
    assert Share.exactly(0.9, "unlabeled", Counts.seen(rows)).to("open").value == 1.0


def test_the_scenario_says_what_the_population_is():
    share = Share.exactly(0.25, "unlabeled", Counts(20, 180))
    assert share.population("two-sample").value == 0.25
    assert share.population("one-sample").value == pytest.approx(65 / 200)
    back = Share.of_prior(65 / 200, Counts(20, 180), "one-sample")
    assert back.value == pytest.approx(0.25)
    assert Share.of_prior(0.05, Counts(20, 180), "two-sample").value == 0.05


def test_a_label_frequency_is_a_share():
    counts = Counts(20, 180)
    share = Share.of_label_frequency(0.25, counts)  # 20 of 80 positives are labelled
    assert share.value == pytest.approx(60 / 180)
    assert share.label_frequency == pytest.approx(0.25)
    assert Share.of_label_frequency(0.01, counts).value == 1.0
    assert Share.of_label_frequency(0.0, counts).value == 1.0


def test_only_a_method_that_asks_for_the_scenario_is_told_to_change_it():
    counts = Counts(20, 180)
    with pytest.raises(InvalidParameterError, match="scenario='two-sample'"):
        Share.of_prior(0.1, counts, "one-sample")
    with pytest.raises(InvalidParameterError, match=r"or prior='estimate'\.$"):
        Share.of_prior(0.1, counts, "one-sample", asks=False)


# --- the share that a user knows ------------------------------------------------------


def test_the_share_of_the_rows_whose_label_is_open():
    """200 rows, 20 of them labelled: 0.3 leaves 40 positives for 180 rows of U."""
    assert known_share(0.3, data()) == pytest.approx(40 / 180)
    assert known_share(0.3, data(n_known=100)) == pytest.approx(40 / 80)
    with pytest.raises(InvalidParameterError, match="carry a label already"):
        known_share(0.1, data())


def test_held_out_positives_count_in_the_fit_and_not_in_what_is_said():
    """Of 20 labelled rows 5 are held out: the fit's U has 185 rows, 45 positive."""
    rows = data(n_held=5)
    assert known_share(0.3, rows) == pytest.approx(45 / 185)
    with pytest.raises(InvalidParameterError, match=r"20 of them \(0\.1\) carry"):
        known_share(0.08, rows)
    with pytest.raises(InvalidParameterError, match="among the 180 rows of U"):
        known_share(0.999, rows)


@pytest.mark.parametrize(
    ("prior", "n_known", "words"),
    [
        (0.3, 140, "means 40 positives among the 40 rows .* 0.1025 and 0.2975"),
        (0.101, 0, "means 0.2 positives among the 180 rows .* 0.1025 and 0.9975"),
        (0.999, 0, "means 179.8 positives among the 180 rows"),
    ],
)
def test_a_share_that_speaks_of_no_row_is_refused(prior, n_known, words):
    rows = data(n_known=n_known)
    with pytest.raises(InvalidParameterError, match=words):
        known_share(prior, rows)
    for end in (0.1025 + 1e-9, 0.1 + (180 - n_known - 0.5) / 200 - 1e-9):
        assert 0 < known_share(end, rows) < 1


def test_one_open_row_allows_one_share():
    with pytest.raises(InvalidParameterError, match=r"Pass 0\.1025, or"):
        known_share(0.3, replace(data(), known_negative=np.arange(200) > 20))
