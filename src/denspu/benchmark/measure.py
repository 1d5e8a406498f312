"""Fit one method on one PU data set and measure it with the true labels."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from denspu.benchmark.record import Record
from denspu.data import Benchmark, PUDataset
from denspu.metrics import oracle_metrics


def measure(
    model: Any,
    pu: PUDataset,
    benchmark: Benchmark,
    *,
    method: str,
    variant: str,
    seed: int,
) -> Record:
    """Fit ``model`` on ``pu`` and return the record of its test figures.

    The model sees ``pu.X`` and ``pu.y`` alone; the oracle is opened afterwards.
    """
    start = time.perf_counter()
    model.fit(pu.X, pu.y)
    fit_seconds = time.perf_counter() - start
    y_test = np.isin(benchmark.y_test, benchmark.positive).astype(np.int64)
    stages = getattr(model, "stages_", None)
    return Record(
        dataset=benchmark.name,
        method=method,
        variant=variant,
        n_labeled=pu.n_labeled,
        seed=seed,
        metrics=oracle_metrics(y_test, model.decision_function(benchmark.X_test)),
        estimates=_label_free(stages),
        seconds={**(stages.seconds if stages else {}), "total": fit_seconds},
        device=device_name(getattr(model, "device_", "cpu")),
        extra={"stages": _facts(stages), "oracle": oracle_of_walk(model, pu)},
    )


def oracle_of_walk(model: Any, pu: PUDataset) -> dict[str, float]:
    """Return what true labels say of a Dens-PU walk: boundary AUC, purity of Ñ."""
    if not hasattr(model, "negative_index_"):
        return {}
    true = pu.oracle.labels
    unlabeled = true[model.unlabeled_index_]
    return {
        "boundary_auc": float(roc_auc_score(unlabeled, model.unlabeled_scores_)),
        "purity": float(np.mean(true[model.negative_index_] == 0)),
        "negative_share_of_unlabeled": float(np.mean(unlabeled == 0)),
    }


def _facts(stages: Any) -> dict[str, Any]:
    return {stage.name: stage.facts for stage in stages or ()}


def _label_free(stages: Any) -> dict[str, Any]:
    facts = _facts(stages).get("boundary", {})
    wanted = ("auc_held_out_vs_unlabeled", "held_out_inlier_share", "expected_loss")
    return {name: facts[name] for name in wanted if name in facts}


def device_name(device: str) -> str:
    """Return the GPU's model name, or the processor's kind with its threads."""
    import torch

    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"
