"""Rows of each kind, and the comparison of a model with its twin."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from denspu import make_pu
from denspu.persistence.onnx.answers import answers_twin
from denspu.persistence.onnx.inputs import as_rows, drawn_rows, input_spec

QUIET = [
    pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
"""Marks: warnings about short fits are no faults here."""

NEAR = 1e-5


@cache
def table():
    rng = np.random.default_rng(0)
    y = (np.arange(160) % 2 == 0).astype(int)
    X = rng.normal(size=(160, 6)) * [1, 2, 3, 50, 1, 1] + 4
    X[:, :3] += 1.5 * (2 * y - 1)[:, None]
    return make_pu(X, y, n_labeled=0.4, random_state=0)


@cache
def embeddings():
    rows = table().X - table().X.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return replace(table(), X=rows.astype(np.float32))


@cache
def images():
    found, digit = load_digits(return_X_y=True)
    found = (15 * found[:100].reshape(-1, 8, 8)).astype(np.uint8)
    return make_pu(found, digit[:100] % 2 == 0, n_labeled=0.4, random_state=0)


SETS = {"table": table, "images": images, "embeddings": embeddings}


def twin_answers(model, rows, spec):
    with torch.no_grad():
        found = answers_twin(model, spec.dtype)(torch.from_numpy(rows))
    return [part.numpy() for part in found]


def assert_twin(model, X):
    """Compare a model with its twin on its own rows and on drawn ones."""
    for sample in (X, None):
        spec = input_spec(model, sample)
        rows = drawn_rows(model, spec, 20) if sample is None else as_rows(X, spec)
        score, probability, decision = twin_answers(model, rows, spec)
        given = spec.for_model(rows)
        expected = model.decision_function(given)
        np.testing.assert_allclose(score, expected, rtol=NEAR, atol=NEAR)
        wanted = model.predict_proba(given)[:, 1]
        np.testing.assert_allclose(probability, wanted, atol=NEAR)
        sure = np.abs(expected - model.threshold_) > NEAR
        assert (decision == model.predict(given))[sure].all()


def colours():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (40, 12, 12, 3), dtype=np.uint8)
    X[:20] //= 3
    return X, np.arange(40) < 10
