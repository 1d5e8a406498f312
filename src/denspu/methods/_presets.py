"""Which parts Dens-PU is made of: the paper's, or those that suit the data."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.svm import SVC

from denspu._registry import settings_of
from denspu._validation import PUInput, is_frame
from denspu.classifiers import VGG16Classifier
from denspu.density import Midpoint, NoDensity
from denspu.detectors import DensityRatio, IsolationForest
from denspu.encoders import (
    CAEEncoder,
    ContrastiveEncoder,
    IdentityEncoder,
    TabularEncoder,
    TextEncoder,
)
from denspu.exceptions import UnusedInputWarning
from denspu.methods._boundary import FOLDS
from denspu.methods._labelling import FirstLabels
from denspu.refinement import EmbeddingRefiner, NetworkRefiner, RankingRefiner
from denspu.selection import ByScore

if TYPE_CHECKING:
    from denspu.methods.dens_pu import DensPU

SMALL_IMAGE = 16 * 16
"""Pixels up to which an image is its own embedding."""

SMALL_GREY_ON_CPU = 32 * 32

CPU_SIZE = 64
"""Side to which larger pictures are shrunk on a CPU."""

CHECKED_ROWS = 5_000
"""Rows up to which the boundary is drawn five times over to judge it."""

ENDING = ("selector", "classifier", "classify_on")
"""What the paper's ending is made of."""

KERNEL_ROWS = 10_000
"""Training rows up to which a kernel machine is used."""

GPU_REFERENCE = 200_000
"""Unlabelled rows against which a GPU compares every row."""

MANY_ROWS = 200_000
"""Rows from which a smaller sample stands for U: scoring them all takes the time."""


def choose_parts(
    model: DensPU, data: PUInput, device: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parts, and the settings of boundary and checks.

    Whatever the user set explicitly wins over the preset. A selector or classifier
    that is given asks for the paper's ending: chosen negatives, then one classifier.
    """
    preset = paper() if model.preset == "paper" else sensible(data, device)
    parts = {
        name: part if _given(model, name) is None else _given(model, name)
        for name, part in preset.items()
        if name not in ("contamination", "checks")
    }
    if takes_papers_ending(model):
        parts["refiner"] = None
    settings = {
        name: preset[name] if getattr(model, name) == "auto" else getattr(model, name)
        for name in ("contamination", "checks")
    }
    return parts, settings


def takes_papers_ending(model: DensPU) -> bool:
    """Tell whether a model ends as in the paper: chosen negatives, then a classifier.

    Not with a refiner that is given.
    """
    if not (isinstance(model.refiner, str) and model.refiner == "auto"):
        return model.refiner is None
    given = any(_given(model, name) is not None for name in ("selector", "classifier"))
    return model.preset == "paper" or given


def warn_if_ending_unused(model: DensPU, parts: dict[str, Any]) -> None:
    """Warn when parts of the paper's ending are given beside a refiner."""
    names = [n for n in ENDING if _given(model, n) is not None]
    if parts["refiner"] is None or not names:
        return
    given = ", ".join(f"{n}={getattr(model, n)!r}" for n in names)
    warnings.warn(
        f"{given} {'is' if len(names) == 1 else 'are'} not used: a refiner takes the "
        "place of the paper's ending. Pass refiner=None to have it.",
        UnusedInputWarning,
        stacklevel=4,
    )


def warn_if_prior_unused(model: DensPU) -> None:
    """Warn when a class prior is given to the paper's ending, which takes none."""
    if isinstance(model.prior, str) or not takes_papers_ending(model):
        return
    warnings.warn(
        f"prior={float(model.prior):.4g} plays no part in learning: the paper's ending "
        "takes no class prior. Where positives are held out (holdout=) it counts in "
        "the estimate of quality and in the threshold that goes by the prior.",
        UnusedInputWarning,
        stacklevel=4,
    )


def warn_if_untimed(model: DensPU) -> None:
    """Warn when parts that train for long cannot keep to ``max_seconds``."""
    if model.max_seconds is None:
        return
    names = [
        name
        for name in ("encoder", "classifier")
        if "epochs" in (known := settings_of(getattr(model, f"{name}_", None)))
        and "max_seconds" not in known
    ]
    if names:
        warnings.warn(
            f"max_seconds={model.max_seconds!r} does not shorten the "
            f"{' and the '.join(names)}: {'they have' if names[1:] else 'it has'} no "
            "limit of time. Give fewer epochs instead.",
            UnusedInputWarning,
            stacklevel=4,
        )


def choose_refiner(data: PUInput, first: FirstLabels, encoder: Any, device: str) -> Any:
    """Return the refiner for ``"auto"``, which depends on what the boundary found.

    A network is trained on where the encoder has one (see :class:`NetworkRefiner`).
    """
    has_network = data.kind == "image" and hasattr(encoder, "packed")
    if has_network and device.startswith("cuda"):
        return NetworkRefiner()
    return RankingRefiner() if first.rare else EmbeddingRefiner()


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
        "refiner": None,
        "contamination": "ratio",
        "checks": 1,
    }


def sensible(data: PUInput, device: str) -> dict[str, Any]:
    """Return parts that suit the data and the machine."""
    on_gpu = device.startswith("cuda")
    parts: dict[str, Any]
    sphere = data.kind == "table" and on_sphere(data.X)
    if sphere or not _is_own_embedding(data, on_gpu):
        parts = {"densifier": NoDensity(), "detector": _ratio(data, on_gpu)}
    else:
        parts = _local_boundary(data)
    parts["encoder"] = default_encoder(data, device)
    n = len(data.positive)
    return {
        **parts,
        "refiner": "auto",
        "selector": ByScore(size=0.7),
        "classifier": _classifier(n),
        "contamination": "heldout",
        "checks": FOLDS if n <= CHECKED_ROWS else 1,
    }


def default_encoder(data: PUInput, device: str) -> Any:
    """Return the encoder that suits the data and the machine."""
    on_gpu = device.startswith("cuda")
    if data.kind == "table":
        return IdentityEncoder() if on_sphere(data.X) else TabularEncoder()
    if data.kind == "text":
        return TextEncoder()
    if _is_own_embedding(data, on_gpu):
        return IdentityEncoder()
    size = max(data.X.shape[1:3])
    return ContrastiveEncoder(
        image_size=None if on_gpu or size <= CPU_SIZE else CPU_SIZE
    )


def _is_own_embedding(data: PUInput, on_gpu: bool) -> bool:
    """Tell whether rows need no learned embedding: tables and small pictures.

    On a CPU the pixels of small grey pictures served better than a network trained as
    long as a CPU can.
    """
    if data.kind != "image":
        return data.kind == "table"
    height, width, channels = data.X.shape[1:]
    small = SMALL_IMAGE if on_gpu or channels > 2 else SMALL_GREY_ON_CPU
    return bool(height * width <= small)


def on_sphere(X: Any) -> bool:
    """Tell whether rows are embeddings of length 1 already."""
    if is_frame(X) or X.shape[1] < 2:
        return False
    length = np.linalg.norm(X[:: max(1, len(X) // 1000)], axis=1)
    return bool(np.all(np.abs(length - 1) < 1e-3))


def _ratio(data: PUInput, on_gpu: bool) -> DensityRatio:
    """Return the density ratio on the sphere, with about five positives in a ball."""
    n, n_positive = len(data.positive), int(data.positive.sum())
    return DensityRatio(
        metric="cosine",
        n_neighbors=int(np.clip(5 * n / n_positive, 10, min(500, max(10, n // 4)))),
        max_unlabeled=GPU_REFERENCE if on_gpu else DensityRatio().max_unlabeled,
    )


def _local_boundary(data: PUInput) -> dict[str, Any]:
    """Return the density ratio around each row's nearest positives."""
    return {
        "densifier": NoDensity(),
        "detector": DensityRatio(
            around="positives",
            n_positives=5,
            max_unlabeled=20_000 if len(data.positive) <= MANY_ROWS else 5_000,
        ),
    }


def _classifier(n_rows: int) -> Any:
    if n_rows <= KERNEL_ROWS:
        return SVC(C=10, class_weight="balanced")
    return "gradient_boosting"
