"""Random views of rows: noise, and values of other rows in the same column."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu._random import Randomness
from denspu.augment import RowAugment

CPU = torch.device("cpu")


def views(rows, augment, seed=0):
    with Randomness(seed).torch_scope("views", CPU):
        return augment(rows)


def columns(n=500, d=3):
    """Return rows whose columns share no value: column j lies in [10 j, 10 j + 1]."""
    rows = torch.rand(n, d, generator=torch.Generator())
    return rows + 10 * torch.arange(d)


def test_off_is_the_identity():
    rows = columns()
    assert torch.equal(views(rows, RowAugment(noise=0, mask=0)), rows)


def test_noise_has_its_deviation():
    rows = columns(2000)
    difference = views(rows, RowAugment(noise=0.3, mask=0)) - rows
    assert difference.std().item() == pytest.approx(0.3, rel=0.05)
    assert difference.mean().item() == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("mask", [0.1, 0.3, 0.9])
def test_the_stated_share_of_values_is_exchanged(mask):
    rows = columns(2000)
    seen = views(rows, RowAugment(noise=0, mask=mask))
    assert (seen != rows).float().mean().item() == pytest.approx(mask, abs=0.03)


def test_values_come_from_the_same_column():
    rows = columns()
    seen = views(rows, RowAugment(noise=0, mask=0.999))
    for j in range(rows.shape[1]):
        assert np.isin(seen[:, j], rows[:, j]).all()


def test_marginals_are_kept():
    rows = columns(4000)
    seen = views(rows, RowAugment(noise=0, mask=0.999))
    for part in (0.1, 0.5, 0.9):
        found, wanted = seen.quantile(part, dim=0), rows.quantile(part, dim=0)
        assert torch.allclose(found, wanted, atol=0.05)


def test_columns_are_exchanged_on_their_own():
    """Two equal columns come apart: values are drawn cell by cell."""
    rows = columns(500, 1).repeat(1, 2)
    seen = views(rows, RowAugment(noise=0, mask=0.999))
    assert abs(np.corrcoef(seen.T.numpy())[0, 1]) < 0.2


def test_same_seed_same_views():
    rows, augment = columns(), RowAugment()
    assert torch.equal(views(rows, augment, 1), views(rows, augment, 1))
    assert not torch.equal(views(rows, augment, 1), views(rows, augment, 2))


def test_rows_given_are_left_alone():
    rows = columns()
    before = rows.clone()
    views(rows, RowAugment())
    assert torch.equal(rows, before)
