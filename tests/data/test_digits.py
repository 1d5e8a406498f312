from __future__ import annotations

import numpy as np
import pytest

from denspu.data import load_dataset
from denspu.exceptions import InvalidParameterError


def test_shapes_values_and_positives():
    digits = load_dataset("digits")
    assert digits.X_train.shape == (1257, 8, 8)
    assert digits.X_test.shape == (540, 8, 8)
    assert (digits.X_train.min(), digits.X_train.max()) == (0, 16)
    assert digits.positive == (0, 2, 4, 6, 8)


def test_the_split_is_stratified_by_digit():
    digits = load_dataset("digits")
    train, test = np.bincount(digits.y_train), np.bincount(digits.y_test)
    assert np.abs(test / (train + test) - 0.3).max() < 0.005


def test_no_row_is_on_both_sides():
    from sklearn.datasets import load_digits

    digits = load_dataset("digits")
    rows = np.concatenate([digits.X_train, digits.X_test]).reshape(-1, 64)
    everything = load_digits().data
    assert (rows[np.lexsort(rows.T)] == everything[np.lexsort(everything.T)]).all()


def test_the_seed_decides_the_split_and_zero_is_the_default():
    default, zero, one = (
        load_dataset("digits", split_seed=seed).y_test for seed in (None, 0, 1)
    )
    assert (default == zero).all()
    assert (zero != one).any()


@pytest.mark.parametrize("seed", [-1, 0.5, True, "0"])
def test_bad_seeds_are_named(seed):
    with pytest.raises(InvalidParameterError, match="split_seed="):
        load_dataset("digits", split_seed=seed)
