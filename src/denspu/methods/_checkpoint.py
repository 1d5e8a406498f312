"""What an encoder has learned stays in a folder: a fit that was cut off goes on.

Training a contrastive encoder is the longest part of a fit on images. A method's
``checkpoint=`` holds the state of that training, every few epochs, and in the end the
encoder itself.
"""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from denspu._frame import Frame
from denspu._parameters import InstanceOf, OneOf
from denspu._registry import settings_of
from denspu._validation import PUInput
from denspu._version import __version__
from denspu.exceptions import InvalidParameterError, ModelFileError, RunFolderError

CHECKPOINT_RULE = (OneOf(None), InstanceOf(str), InstanceOf(Path))
CHECKPOINT_DOC = (
    "Folder in which the encoder's training is kept, and in the end the encoder: a\n"
    "second fit on the same rows with the same settings goes on from there."
)

TRAINING, ENCODER = "training", "encoder"
BESIDE = ("checkpoint", "max_seconds", "verbose", "device")
"""Settings of an encoder that may differ when it goes on."""


def fit_encoder(encoder: Any, data: PUInput, checkpoint: str | Path | None) -> Any:
    """Fit an encoder, or return what an earlier fit on the same rows has learned.

    Encoders that keep no training, or have a folder of their own, are just fitted.
    """
    y = data.positive.astype(np.int64)
    settings = settings_of(encoder)
    if checkpoint is None or settings.get("checkpoint", "") is not None:
        encoder.fit(data.X, y)
        return encoder
    from denspu.persistence import load, load_extra, save

    same = {name: v for name, v in settings.items() if name not in BESIDE}
    key = key_of(data.X, type(encoder).__name__, y, sorted(same.items()))
    place = Path(checkpoint) / ENCODER
    if place.exists():
        try:
            earlier = load(place)
        except ModelFileError:
            shutil.rmtree(place)  # damaged: learned again
        else:
            learned_from = (load_extra(place) or {}).get("learned_from", key)
            if learned_from != key:
                raise InvalidParameterError(
                    f"checkpoint={str(checkpoint)!r} holds an encoder of other rows or "
                    "settings. Choose another folder, or delete it."
                )
            return earlier.set_params(**settings)
    encoder.set_params(checkpoint=str(Path(checkpoint) / TRAINING))
    try:
        encoder.fit(data.X, y)
    except (OSError, SafetensorError) as error:
        for half in Path(checkpoint).rglob("*.part"):
            half.unlink(missing_ok=True)
        raise RunFolderError(
            f"{checkpoint} could not be written while the encoder was trained: "
            f"{error}. Make room, or choose another place."
        ) from error
    finally:
        encoder.set_params(checkpoint=None)
    with suppress(ModelFileError):  # no room: a second try would train again
        save(encoder, place, extra={"input": {"learned_from": key}})
    return encoder


def key_of(X: Any, *others: Any) -> str:
    """Return a hash of rows and settings."""
    digest = hashlib.sha256(__version__.encode())
    if isinstance(X, Frame):
        for name in X.columns:
            digest.update(repr((name, X[name].tolist())).encode())
    elif isinstance(X, np.ndarray):
        digest.update(repr((X.shape, X.dtype.str)).encode())
        for row in X:
            digest.update(np.ascontiguousarray(row).data)
    else:
        digest.update(repr(list(X)).encode("utf-8", "surrogatepass"))
    for other in others:
        plain = other.tolist() if isinstance(other, np.ndarray) else other
        digest.update(repr(plain).encode())
    return digest.hexdigest()
