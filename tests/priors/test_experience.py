"""The share by experience: what tables that look alike have taught."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit

from denspu.priors import experience
from denspu.priors.experience import Experience, by_experience, evidence_of, learned

ESTIMATES = {"a": 0.2, "b": 0.3, "c": 0.25}


def scores(share=0.25, gap=4.0, n=60, m=400, seed=0):
    rng = np.random.default_rng(seed)
    hidden = np.arange(m) < share * m
    return rng.normal(gap, 1, n), rng.normal(size=m) + gap * hidden


def read(P, U, estimates=ESTIMATES):
    return by_experience(P, U, estimates, (P, U))


def test_evidence_is_what_it_says():
    P, U = scores()
    seen = evidence_of(P, U, ESTIMATES, (P, U))
    assert seen["centre"] == pytest.approx(logit(0.25))
    assert seen["area"] == pytest.approx(2 * np.mean(P[:, None] < U), abs=1e-9)
    apart = evidence_of(*scores(gap=8.0), ESTIMATES, scores(gap=8.0))
    assert apart["between"] < seen["between"]
    assert abs(apart["above"]) < 0.1  # a quarter of U, as the middle estimate says


def test_classes_that_overlap_leave_more_open():
    apart, overlapping = read(*scores(gap=6.0)), read(*scores(gap=1.0))
    assert apart.estimate.low < 0.25 < apart.estimate.high
    widths = [e.estimate.high - e.estimate.low for e in (apart, overlapping)]
    assert widths[0] < widths[1]


def test_likely_shares_lie_in_the_interval_and_rise():
    found = read(*scores(gap=2.0))
    assert (np.diff(found.likely) >= 0).all()
    assert found.estimate.low <= found.likely[0] <= found.likely[-1]
    assert found.likely[-1] <= found.estimate.high


def test_where_positives_rank_no_higher_any_share_can_be():
    P, U = scores(gap=0.0)
    found = read(P - 0.5, U)
    assert (found.estimate.low, found.estimate.high) == (0.0, 1.0)


def test_one_labelling_alone_is_no_experience():
    rng = np.random.default_rng(0)
    seen = np.vstack([rng.normal(size=(50, 3)), [[40, 40, 40]]])
    off = np.append(rng.normal(size=50), 9.0)
    known = Experience(seen, off, np.ones(51))
    low, high = known.quantiles(np.full(3, 41.0), np.array([0.05, 0.95]))
    assert low < 0 < high


def test_a_source_counts_once():
    seen, off = np.zeros((10, 3)) + np.arange(10)[:, None] / 100, np.r_[0, np.ones(9)]
    weight = np.r_[1, np.full(9, 1 / 9)]
    known = Experience(seen, off, weight)
    assert known.quantiles(seen[0], np.array([0.6]))[0] > 0.1
    assert known.quantiles(seen[0], np.array([0.3]))[0] < 0.5


def test_the_development_tables_are_many():
    known = learned()
    assert known.seen.shape == (len(known.off), len(experience.FEATURES))
    assert known.weight.sum() == pytest.approx(70, abs=0.5)
    assert np.median(known.off) < 0  # estimators name one of the largest shares
