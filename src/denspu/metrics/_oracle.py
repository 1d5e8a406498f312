"""Figures that need true labels: for benchmarks and demonstrations, never for fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from denspu._typing import FloatArray


def oracle_metrics(y_true: Any, decision: FloatArray) -> dict[str, float]:
    """Return the figures of a record, each between 0 and 1.

    Parameters
    ----------
    y_true : array of 0 and 1
        True classes.
    decision : array
        ``decision_function``; above 0 counts as positive.

    Notes
    -----
    The "AUC" printed for Dens-PU in the paper's Table 2 is ``balanced_accuracy``;
    ``roc_auc`` is the ranking AUC.
    """
    y_true = np.asarray(y_true)
    predicted = (decision > 0).astype(np.int64)
    return {
        "accuracy": float(accuracy_score(y_true, predicted)),
        "balanced_accuracy": float(balanced_accuracy_score(y_true, predicted)),
        "precision": float(precision_score(y_true, predicted, zero_division=0)),
        "recall": float(recall_score(y_true, predicted)),
        "f1": float(f1_score(y_true, predicted)),
        "roc_auc": float(roc_auc_score(y_true, decision)),
        "average_precision": float(average_precision_score(y_true, decision)),
    }
