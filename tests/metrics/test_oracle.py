"""Figures from true labels, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspu.metrics import oracle_metrics


def test_a_small_case_by_hand():
    """Ranked 0.9+ 0.5- 0.1+ | -0.2- -0.8-: TP 2, FP 1, TN 2, FN 0."""
    y = np.array([1, 0, 1, 0, 0])
    found = oracle_metrics(y, np.array([0.9, 0.5, 0.1, -0.2, -0.8], dtype=np.float32))
    assert all(type(value) is float for value in found.values())
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
    # 0 counts as negative, and no positive answer is no error
    none = oracle_metrics([0, 1], np.array([-1.0, 0.0]))
    assert none["recall"] == none["precision"] == none["f1"] == 0.0
    assert none["roc_auc"] == 1.0


@given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=4, max_size=30))
def test_twins(data):
    y = np.array([label for label, _ in data] + [0, 1]).astype(int)
    decision = np.array([score for _, score in data] + [-1, 1], dtype=float)
    found = oracle_metrics(y, decision)
    tp, fp = (np.sum((decision > 0) & (y == label)) for label in (1, 0))
    n1, n0 = np.sum(y == 1), np.sum(y == 0)
    assert found["recall"] == pytest.approx(tp / n1)
    assert found["precision"] == pytest.approx(tp / (tp + fp))
    assert found["accuracy"] == pytest.approx((tp + n0 - fp) / len(y))
    assert found["balanced_accuracy"] == pytest.approx((tp / n1 + 1 - fp / n0) / 2)
    assert found["f1"] == pytest.approx(2 * tp / (2 * tp + fp + n1 - tp))
    wins = decision[y == 1][:, None] - decision[y == 0]
    assert found["roc_auc"] == pytest.approx(np.mean((wins > 0) + 0.5 * (wins == 0)))
