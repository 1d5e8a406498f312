"""Where to cut scores, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspu._scores import otsu_cut, prior_cut, quantile_cut

SCORES = st.lists(st.integers(-20, 20), min_size=2, max_size=25).map(
    lambda values: np.array(values, dtype=float)
)


def test_quantile_cut():
    scores = np.arange(11.0)
    assert quantile_cut(scores, 0.3) == 3.0
    assert quantile_cut(scores, 0.0) == 0.0


@given(scores=SCORES, prior=st.floats(0, 1))
def test_prior_cut_is_reached_by_that_share(scores, prior):
    cut = prior_cut(scores, prior)
    count = max(1, round(prior * len(scores)))
    assert np.sum(scores >= cut) >= count
    assert np.sum(scores > cut) < count


@given(scores=SCORES)
def test_otsu_cut_is_the_best_of_all_cuts(scores):
    """Otsu's criterion: the least sum of squares within the two groups."""

    def within(cut):
        low, high = scores[scores < cut], scores[scores >= cut]
        return sum(np.sum((g - g.mean()) ** 2) for g in (low, high) if len(g))

    values = np.unique(scores)
    cuts = (values[1:] + values[:-1]) / 2
    best = min((within(cut) for cut in cuts), default=0.0)
    assert within(otsu_cut(scores)) == pytest.approx(best, abs=1e-9)


def test_otsu_cut_lies_halfway():
    assert otsu_cut(np.array([0.0, 1.0, 9.0, 10.0])) == 5.0
    assert otsu_cut(np.array([3.0, 3.0])) == 3.0
