"""``prior_from_scores``: several opinions on two lists of scores."""

from __future__ import annotations

import numpy as np
import pytest

from denspu.exceptions import InvalidInputError, PriorDisagreementWarning
from denspu.priors import prior_from_scores


def scores(share=0.3, n=100, m=1000, seed=0):
    rng = np.random.default_rng(seed)
    hidden = np.arange(m) < share * m
    return rng.normal(4, 1, n), rng.normal(4 * hidden, 1)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_the_median_of_three(share):
    found = prior_from_scores(*scores(share), random_state=0)
    assert list(found.estimates) == ["density_ratio", "dedpul", "mixture"]
    assert found.prior_in_unlabeled == np.median(list(found.estimates.values()))
    assert found.low < share < found.high
    assert (found.n_positive, found.n_unlabeled) == (100, 1000)


def test_an_own_share_is_the_answer_and_widens_the_interval():
    plain = prior_from_scores(*scores(), random_state=0)
    own = prior_from_scores(*scores(), own=0.35, random_state=0)
    assert own.prior_in_unlabeled == own.estimates["model"] == 0.35
    assert own.high - own.low > plain.high - plain.low
    assert (own.low + own.high) / 2 == pytest.approx(0.35)


def test_an_own_share_far_off_is_told():
    with pytest.warns(PriorDisagreementWarning, match="model 0.900"):
        prior_from_scores(*scores(), own=0.9, random_state=0)


def test_groups_count_in_place_of_rows():
    P, U = scores()
    groups = {"positive_groups": np.arange(100) // 20}
    groups["unlabeled_groups"] = 5 + np.arange(1000) // 20
    wide = prior_from_scores(P, U, random_state=0, **groups)
    narrow = prior_from_scores(P, U, random_state=0)
    assert wide.prior_in_unlabeled == narrow.prior_in_unlabeled
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_scores_must_be_numbers():
    with pytest.raises(InvalidInputError, match="positive must be one finite score"):
        prior_from_scores([np.nan], [1.0, 2.0])
