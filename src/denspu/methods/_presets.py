"""Which parts Dens-PU is made of: the paper's, or those that suit the data."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.svm import SVC

from denspu._registry import settings_of
from denspu._validation import PUInput
from denspu.classifiers import VGG16Classifier
from denspu.data.kinds import kind_of
from denspu.data.kinds.table import on_sphere
from denspu.density import Midpoint, NoDensity
from denspu.detectors import DensityRatio, IsolationForest
from denspu.encoders import CAEEncoder
from denspu.exceptions import UnusedInputWarning
from denspu.methods._boundary import FOLDS
from denspu.methods._labels import FirstLabels
from denspu.refinement import EmbeddingRefiner, NetworkRefiner, RankingRefiner
from denspu.selection import ByScore

if TYPE_CHECKING:
    from denspu.methods.dens_pu import DensPU

CHECKED_ROWS = 5_000
"""Rows up to which the boundary is drawn five times over to judge it."""

ENDING = ("selector", "classifier", "classify_on")
"""What the paper's ending is made of."""

KERNEL_ROWS = 10_000
"""Training rows up to which a kernel machine is used."""

GPU_REFERENCE = 200_000
"""Unlabelled rows against which a GPU compares every row."""

MANY_ROWS = 200_000


def choose_parts(
    model: DensPU, data: PUInput, device: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parts, and the settings of boundary and checks.

    Whatever the user set explicitly wins over the preset. A selector or classifier
    that is given asks for the paper's ending: chosen negatives, then one classifier.
    """
    chosen = paper() if model.preset == "paper" else sensible(data, device)
    given = (name for name in chosen if _is_given(model, name))
    chosen |= {name: getattr(model, name) for name in given}
    if takes_papers_ending(model):
        chosen["refiner"] = None
    settings = {name: chosen.pop(name) for name in ("contamination", "checks")}
    return chosen, settings


def takes_papers_ending(model: DensPU) -> bool:
    """Tell whether a model ends as in the paper: chosen negatives, then a classifier.

    Not with a refiner that is given.
    """
    if _is_given(model, "refiner"):
        return model.refiner is None
    given = any(_is_given(model, name) for name in ("selector", "classifier"))
    return model.preset == "paper" or given


def choose_refiner(data: PUInput, first: FirstLabels, encoder: Any, device: str) -> Any:
    """Return the refiner for ``"auto"``, which depends on what the boundary found.

    A network is trained on where the encoder has one (see :class:`NetworkRefiner`).
    """
    has_network = data.kind == "image" and hasattr(encoder, "packed")
    if has_network and device.startswith("cuda"):
        return NetworkRefiner()
    return RankingRefiner() if first.rare else EmbeddingRefiner()


def _is_given(model: DensPU, name: str) -> bool:
    value = getattr(model, name)
    return not (isinstance(value, str) and value == "auto")


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
    on_gpu, kind = device.startswith("cuda"), kind_of(data.kind)
    n, n_positive = len(data.positive), int(data.positive.sum())
    sphere = data.kind == "table" and on_sphere(data.X)
    if kind.is_own_embedding(data.X, on_gpu) and not sphere:
        detector = DensityRatio(
            around="positives",
            n_positives=5,
            # A smaller sample stands for a large U: scoring all rows takes the time.
            max_unlabeled=20_000 if n <= MANY_ROWS else 5_000,
        )
    else:  # on the sphere, with about five positives in a ball
        detector = DensityRatio(
            metric="cosine",
            n_neighbors=int(np.clip(5 * n / n_positive, 10, min(500, max(10, n // 4)))),
            max_unlabeled=GPU_REFERENCE if on_gpu else DensityRatio().max_unlabeled,
        )
    kernel = SVC(C=10, class_weight="balanced")
    return {
        "encoder": kind.default_encoder(data.X, on_gpu),
        "densifier": NoDensity(),
        "detector": detector,
        "refiner": "auto",
        "selector": ByScore(size=0.7),
        "classifier": kernel if n <= KERNEL_ROWS else "gradient_boosting",
        "contamination": "heldout",
        "checks": FOLDS if n <= CHECKED_ROWS else 1,
    }


# --- what was given and plays no part ------------------------------------------------


def warn_if_ending_unused(model: DensPU, parts: dict[str, Any]) -> None:
    """Warn when parts of the paper's ending are given beside a refiner."""
    names = [name for name in ENDING if _is_given(model, name)]
    if parts["refiner"] is None or not names:
        return
    given = ", ".join(f"{name}={getattr(model, name)!r}" for name in names)
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
