"""Figures from true labels, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

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
