"""What a fit says against itself: labels that say nothing, labels that are alike."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import denspu
from denspu import DensPU
from denspu.exceptions import (
    DegenerateFitWarning,
    DoubtfulLabelsWarning,
    WeakRankingWarning,
)
from denspu.methods._alarms import labels_tell, ranks_well


def overlapping(n=400, share=0.3, seed=0):
    """Return rows of two overlapping clouds, and who is positive."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) < share * n
    return rng.normal(size=(n, 4)) + 1.5 * y[:, None], y


def fit(X, labelled):
    """Return a model and the doubts it warned of."""
    y = np.zeros(len(X), dtype=np.int64)
    y[labelled] = 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DensPU(random_state=0).fit(X, y)
    kinds = (DoubtfulLabelsWarning, WeakRankingWarning)
    told = [str(one.message) for one in caught if issubclass(one.category, kinds)]
    return model, told


def states(model):
    return {check.name: check.ok for check in model.checks_}


def test_labels_strewn_over_all_rows_are_told_from_true_ones():
    """Most of them: one strewing in twenty looks like a finding."""
    X, y = overlapping()
    rng = np.random.default_rng(1)
    alarms = {"true": 0, "strewn": 0}
    for _ in range(4):
        for sort, among in (("true", np.flatnonzero(y)), ("strewn", np.arange(len(X)))):
            model, told = fit(X, rng.choice(among, 30, replace=False))
            failed = states(model)["labels tell something"] is False
            assert failed == any("look random" in sentence for sentence in told)
            alarms[sort] += failed
    assert alarms["true"] == 0
    assert alarms["strewn"] >= 3


def test_labelled_near_copies_are_seen():
    """Eight positives, each labelled five times with a little noise."""
    X, y = overlapping()
    rng = np.random.default_rng(2)
    positive = np.flatnonzero(y)
    model, told = fit(X, rng.choice(positive, 40, replace=False))
    assert states(model)["labels alike"] is True
    labelled = positive[:40]
    X[labelled] = np.repeat(X[positive[:8]], 5, axis=0)
    X[labelled] += rng.normal(scale=0.05, size=(40, 4))
    model, told = fit(X, labelled)
    assert states(model)["labels alike"] is False
    assert any("alike" in sentence for sentence in told)


def test_groups_are_compared_within_their_part():
    """A row of U is judged by bags that have not seen its group."""
    X, y = overlapping(300)
    label = np.zeros(300, dtype=np.int64)
    label[np.flatnonzero(y)[:40]] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DensPU(random_state=0).fit(X, label, groups=np.arange(300) // 2)
    assert states(model)["labels tell something"] is True


def test_a_column_that_gives_the_labels_away_is_told():
    X, y = overlapping()
    labelled = np.flatnonzero(y)[:40]
    _, told = fit(X, labelled)
    assert not any("gives the label away" in sentence for sentence in told)
    X[:, 3] = 0
    X[labelled, 3] = 1
    model, told = fit(X, labelled)
    assert states(model)["given away"] is False
    assert any("gives the label away" in sentence for sentence in told)


def test_rows_that_are_all_the_same_are_told():
    y = (np.arange(60) < 20).astype(int)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DensPU(random_state=0).fit(np.ones((60, 3)), y)
    told = [one for one in caught if one.category is DegenerateFitWarning]
    assert any("no column varies" in str(one.message) for one in told)


def test_few_labels_leave_it_open():
    assert labels_tell(0.2, 6).ok is None
    assert labels_tell(0.2, 10).ok is False
    assert labels_tell(0.01, 6).ok is True


def test_a_simpler_ranking_is_told_beyond_its_error():
    assert ranks_well({"trees": (-0.02, 0.03), "boundary": (0.1, 0.01)}).ok is True
    found = ranks_well({"trees": (-0.04, 0.03), "boundary": (0.1, 0.01)})
    assert found.ok is False
    assert "trees" in found.sentence


def test_checks_are_saved_and_forgotten(tmp_path):
    X, y = overlapping()
    model, _ = fit(X, np.flatnonzero(y)[:30])
    model.save(tmp_path / "model")
    assert denspu.load(tmp_path / "model").checks_ == model.checks_
    model.set_params(refiner="embedding")
    label = y.astype(np.int64) * (np.arange(len(X)) < 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, label)
    assert model.checks_ == ()
    with pytest.raises(AttributeError):
        _ = model.refiner_.luck_
