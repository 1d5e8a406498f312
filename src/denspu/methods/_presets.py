"""Which parts Dens-PU is made of: the paper's, or those that suit the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.svm import SVC

from denspu._validation import PUInput
from denspu.classifiers import VGG16Classifier
from denspu.density import Midpoint, NoDensity
from denspu.detectors import IsolationForest, LocalOutlierFactor
from denspu.encoders import CAEEncoder, IdentityEncoder, TabularEncoder
from denspu.methods._boundary import FOLDS
from denspu.selection import ByScore

if TYPE_CHECKING:
    from denspu.methods.dens_pu import DensPU

SMALL_IMAGE = 16 * 16
"""Pixels up to which an image is its own embedding."""

NEIGHBOUR_ROWS = 50_000
"""Unlabelled rows up to which neighbours are searched exactly."""

KERNEL_ROWS = 10_000
"""Training rows up to which a kernel machine is used."""

SMALL_PAIRS = 500
"""Segments drawn by default; the paper's 16,000 only slow the neighbour search."""


def choose_parts(model: DensPU, data: PUInput) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the five parts, and the settings of boundary and checks.

    Whatever the user set explicitly wins over the preset.
    """
    preset = paper() if model.preset == "paper" else sensible(data)
    parts = {
        name: part if _given(model, name) is None else _given(model, name)
        for name, part in preset.items()
        if name not in ("contamination", "checks")
    }
    settings = {
        name: preset[name] if getattr(model, name) == "auto" else getattr(model, name)
        for name in ("contamination", "checks")
    }
    return parts, settings


def _given(model: DensPU, name: str) -> Any:
    value = getattr(model, name)
    return None if isinstance(value, str) and value == "auto" else value


def paper() -> dict[str, Any]:
    """Return the configuration of section 4.1, every number as printed."""
    return {
        "encoder": CAEEncoder(
            fit_on="positive", epochs=50, batch_size=64, lr=1e-4, weight_decay=1e-3
        ),
        "densifier": Midpoint(k=0.2, s=11, n_pairs="cochran"),
        "detector": IsolationForest(n_estimators=1000, max_samples=256, n_jobs=-1),
        "selector": ByScore(size="positives"),
        "classifier": VGG16Classifier(
            epochs=200, batch_size=32, lr=1e-4, weight_decay=1e-3
        ),
        "contamination": "ratio",
        "checks": 1,
    }


def sensible(data: PUInput) -> dict[str, Any]:
    """Return parts for small data on a CPU.

    A local boundary (neighbours among densified positives) follows several clusters of
    positives at once, where random splits see one cloud.
    """
    local = data.unlabeled.sum() <= NEIGHBOUR_ROWS
    return {
        "encoder": _encoder(data),
        "densifier": Midpoint(n_pairs=SMALL_PAIRS) if local else NoDensity(),
        "detector": LocalOutlierFactor() if local else IsolationForest(),
        "selector": ByScore(size=0.7),
        "classifier": _classifier(len(data.positive)),
        "contamination": "heldout",
        "checks": FOLDS,
    }


def _encoder(data: PUInput) -> Any:
    if data.kind == "table":
        return TabularEncoder()
    height, width = data.X.shape[1:3]
    if height * width <= SMALL_IMAGE:
        return IdentityEncoder()
    return CAEEncoder(fit_on="all")


def _classifier(n_rows: int) -> Any:
    if n_rows <= KERNEL_ROWS:
        return SVC(C=10, class_weight="balanced")
    return "gradient_boosting"
