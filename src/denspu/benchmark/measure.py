"""Fit a method on a PU data set and measure it with true labels; measure memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from denspu._scores import prior_cut
from denspu._validation import take_rows
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
    labels: Any = None,
    known_negative: Any = None,
    share_called: float | None = None,
) -> Record:
    """Fit ``model`` on ``pu`` and return the record of its test figures.

    The model sees ``pu.X`` and ``pu.y`` alone; the oracle is opened afterwards. A
    supervised comparison gives its own ``labels`` and ``known_negative``. With
    ``share_called`` the cut is moved so that this share of U is called positive.
    """
    given = {} if known_negative is None else {"known_negative": known_negative}
    start = time.perf_counter()
    model.fit(pu.X, pu.y if labels is None else labels, **given)
    fit_seconds = time.perf_counter() - start
    cut = 0.0
    if share_called is not None:
        of_unlabeled = model.decision_function(take_rows(pu.X, np.asarray(pu.y) == 0))
        cut = prior_cut(of_unlabeled, share_called)
    y_test = np.isin(benchmark.y_test, benchmark.positive).astype(np.int64)
    stages = getattr(model, "stages_", None)
    facts = {stage.name: stage.facts for stage in stages or ()}
    return Record(
        dataset=benchmark.name,
        method=method,
        variant=variant,
        n_labeled=pu.n_labeled,
        seed=seed,
        metrics=oracle_metrics(y_test, model.decision_function(benchmark.X_test) - cut),
        estimates=_label_free(facts),
        seconds={**(stages.seconds if stages else {}), "total": fit_seconds},
        device=device_name(getattr(model, "device_", "cpu")),
        extra={"stages": facts, "oracle": oracle_of_walk(model, pu)},
    )


def oracle_of_walk(model: Any, pu: PUDataset) -> dict[str, float]:
    """Return what true labels say of a Dens-PU walk on its own rows.

    AUC of the boundary, purity of Ñ where there is one, and the share of U whose
    refined label is right.
    """
    if not hasattr(model, "unlabeled_index_"):
        return {}
    true = pu.oracle.labels
    unlabeled = true[model.unlabeled_index_]
    found = {
        "boundary_auc": float(roc_auc_score(unlabeled, model.unlabeled_scores_)),
        "negative_share_of_unlabeled": float(np.mean(unlabeled == 0)),
    }
    if hasattr(model, "negative_index_"):
        found["purity"] = float(np.mean(true[model.negative_index_] == 0))
    if hasattr(model, "labels_"):
        called = model.labels_[model.unlabeled_index_] > 0.5
        found["unlabeled_right"] = float(np.mean(called == unlabeled))
    return found


BOUNDARY_FACTS = ("auc_held_out_vs_unlabeled", "held_out_inlier_share", "expected_loss")
REFINER_FACTS = (
    "called_positive",
    "prior_in_unlabeled",
    "prior_interval",
    "held_out_recall",
    "held_out_called",
)


def _label_free(facts: dict[str, Any]) -> dict[str, Any]:
    found = {
        name: facts[stage][name]
        for stage, names in (("boundary", BOUNDARY_FACTS), ("refine", REFINER_FACTS))
        for name in names
        if name in facts.get(stage, {})
    }
    return {**found, **_quality_of_labels(found)}


def _quality_of_labels(found: dict[str, Any]) -> dict[str, float]:
    """Return estimated precision, F1 and accuracy on U of what judged held-out rows.

    With recall r on held-out positives, share q of U called positive and share π of
    positives in U: r·π are rightly called, q - r·π wrongly, (1 - r)·π missed.
    """
    if "held_out_recall" not in found:
        return {}
    recall, called = found["held_out_recall"], found["held_out_called"]
    prior = found["prior_in_unlabeled"]
    right = min(recall * prior, called)
    return {
        "estimated_precision": right / called if called else 0.0,
        "estimated_f1": 2 * right / (called + prior) if called + prior else 0.0,
        "estimated_accuracy": 1 - (called - right) - (prior - right),
    }


def device_name(device: str) -> str:
    """Return the GPU's model name, or the processor's kind with its threads."""
    import torch

    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


@contextmanager
def peak_memory(out: dict[str, float]) -> Iterator[None]:
    """Write into ``out["peak_mb"]`` the memory the block added at its peak.

    Anonymous memory counts, pages of mapped files do not: they can be dropped at any
    time. Works on Linux; elsewhere the figure is 0.
    """
    done = threading.Event()
    base = peak = anonymous_mb()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.004):
            peak = max(peak, anonymous_mb())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        out["peak_mb"] = max(peak, anonymous_mb()) - base


def anonymous_mb() -> float:
    """Return this process's anonymous memory in MB."""
    status = Path("/proc/self/status")
    if not status.exists():  # pragma: no cover - other systems
        return 0.0
    for line in status.read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return 0.0  # pragma: no cover - very old kernels
