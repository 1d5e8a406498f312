"""Figures from true labels, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspu.metrics import oracle_metrics

NAMES = {
    "accuracy",
    "balanced_accuracy",
    "precision",
    "recall",
    "f1",
    "roc_auc",
    "average_precision",
}


def test_a_small_case_by_hand():
    """Ranked 0.9+ 0.5- 0.1+ | -0.2- -0.8-: TP 2, FP 1, TN 2, FN 0."""
    y = np.array([1, 0, 1, 0, 0])
    found = oracle_metrics(y, np.array([0.9, 0.5, 0.1, -0.2, -0.8]))
    assert found == pytest.approx(
        {
            "accuracy": 4 / 5,
            "balanced_accuracy": (1 + 2 / 3) / 2,
            "precision": 2 / 3,
            "recall": 1.0,
            "f1": 4 / 5,
            "roc_auc": 5 / 6,
            "average_precision": (1 / 1 + 2 / 3) / 2,
        }
    )


@given(
    data=st.lists(
        st.tuples(st.integers(0, 1), st.integers(-5, 5)), min_size=4, max_size=30
    )
)
def test_twins(data):
    y = np.array([label for label, _ in data] + [0, 1])
    decision = np.array([score for _, score in data] + [-1, 1], dtype=float)
    found = oracle_metrics(y, decision)
    tp = np.sum((decision > 0) & (y == 1))
    fp = np.sum((decision > 0) & (y == 0))
    n1, n0 = np.sum(y == 1), np.sum(y == 0)
    assert found["recall"] == pytest.approx(tp / n1)
    assert found["precision"] == pytest.approx(tp / (tp + fp))
    assert found["accuracy"] == pytest.approx((tp + n0 - fp) / len(y))
    assert found["balanced_accuracy"] == pytest.approx((tp / n1 + 1 - fp / n0) / 2)
    assert found["f1"] == pytest.approx(2 * tp / (2 * tp + fp + n1 - tp))
    wins = decision[y == 1][:, None] - decision[y == 0]
    auc = np.mean((wins > 0) + 0.5 * (wins == 0))
    assert found["roc_auc"] == pytest.approx(auc)


def test_zero_counts_as_negative_and_no_positive_answer_is_no_error():
    found = oracle_metrics([0, 1], np.array([-1.0, 0.0]))
    assert found["recall"] == found["precision"] == found["f1"] == 0.0
    assert found["roc_auc"] == 1.0


def test_plain_floats_between_0_and_1():
    found = oracle_metrics([0, 1, 1], np.array([0.3, -0.1, 2.0], dtype=np.float32))
    assert set(found) == NAMES
    assert all(type(value) is float and 0 <= value <= 1 for value in found.values())
