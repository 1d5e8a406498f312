"""Means over neighbours on the sphere, against loops."""

from __future__ import annotations

import numpy as np
import pytest

from denspu.refinement.smoothing import TEMPERATURE, Smoother


def sphere(n=30, d=3, seed=0):
    Z = np.random.default_rng(seed).normal(size=(n, d))
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def twin(Z, values, k):
    """Return the same means by a loop over rows."""
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    out = np.empty(len(Z))
    for i in range(len(Z)):
        cosine = Z @ Z[i]
        cosine[i] = -np.inf
        near = np.argsort(-cosine)[:k]
        out[i] = np.average(values[near], weights=np.exp(cosine[near] / TEMPERATURE))
    return out


@pytest.mark.parametrize("k", [1, 5, 29])
def test_equals_its_twin(k):
    Z, values = sphere(), np.random.default_rng(1).random(30)
    assert np.allclose(Smoother(Z, k)(values), twin(Z, values, k), atol=1e-6)


def test_length_of_rows_does_not_matter():
    Z, values = sphere(), np.random.default_rng(1).random(30)
    longer = Z * np.arange(1, 31)[:, None]
    assert np.allclose(Smoother(longer, 5)(values), Smoother(Z, 5)(values))


def test_more_neighbours_than_rows_are_all_other_rows():
    Z, values = sphere(6), np.arange(6.0)
    assert np.allclose(Smoother(Z, 100)(values), twin(Z, values, 5), atol=1e-6)


def test_a_row_does_not_vouch_for_itself():
    values = np.zeros(30)
    values[3] = 1.0
    assert Smoother(sphere(), 5)(values)[3] == 0


def test_constants_stay():
    assert np.allclose(Smoother(sphere(), 5)(np.full(30, 0.7)), 0.7)


def test_rounds_repeat_and_pins_are_put_back_each_time():
    Z, values = sphere(), np.random.default_rng(1).random(30)

    def pin(v):
        return np.where(np.arange(30) < 10, 1.0, v)

    expected = values
    for _ in range(2):
        expected = pin(twin(Z, expected, 4))
    assert np.allclose(Smoother(Z, 4)(values, 2, pin), expected, atol=1e-6)
    once_at_the_end = pin(twin(Z, twin(Z, values, 4), 4))
    assert not np.allclose(expected, once_at_the_end, atol=1e-3)


def test_values_given_are_left_alone():
    values = np.random.default_rng(1).random(30)
    before = values.copy()
    Smoother(sphere(), 5)(values, 2)
    assert np.array_equal(values, before)
