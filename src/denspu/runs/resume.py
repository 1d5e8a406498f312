"""A run that was cut off goes on: what an encoder has learned is kept beside it.

The longest part of a fit on images is the training of a contrastive encoder. Its
checkpoints, and in the end the encoder itself, lie in ``RUN.part/`` until the run
folder is there. They belong to one set of rows and settings; any other run starts anew.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError

from denspu._frame import Frame
from denspu._machine import resolve_device
from denspu._validation import PUInput
from denspu._version import __version__
from denspu.encoders import ContrastiveEncoder
from denspu.exceptions import ModelFileError, RunFolderError
from denspu.methods._presets import default_encoder
from denspu.persistence import load, save

KEY, TRAINING, ENCODER = "key.json", "training", "encoder"
INSIDE = {KEY, TRAINING, ENCODER}


class KeptEncoder(ContrastiveEncoder):
    """A contrastive encoder that is trained once, however often the run is cut off.

    ``checkpoint`` is the folder; see :func:`kept_encoder`.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn, or take what an earlier try has learned."""
        place = Path(str(self.checkpoint)).parent / ENCODER
        if place.exists():
            try:
                earlier = load(place)
            except ModelFileError:
                shutil.rmtree(place)  # damaged: learned again
            else:
                self.__dict__.update(_learned(earlier))
                return self
        try:
            super().fit(X, y)
        except (OSError, SafetensorError) as error:
            for half in place.parent.rglob("*.part"):
                half.unlink(missing_ok=True)
            raise RunFolderError(
                f"{place.parent} could not be written while the encoder was trained: "
                f"{error}. Make room, or choose another --out."
            ) from error
        plain = ContrastiveEncoder(**{**self.get_params(), "checkpoint": None})
        plain.__dict__.update(_learned(self))
        with suppress(ModelFileError):  # no room: a second try would train again
            save(plain, place)
        return self


KeptEncoder.__name__ = ContrastiveEncoder.__name__  # so that stages_ call it


def _learned(encoder: ContrastiveEncoder) -> dict[str, Any]:
    settings = encoder.get_params(deep=False)
    return {name: v for name, v in vars(encoder).items() if name not in settings}


class WorkFolder:
    """``RUN.part/``, where a run keeps what a second try can use."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f"{target.name}.part")
        self._made = [p for p in self.path.parents if not p.exists()]

    def reserve(self) -> None:
        """Make the folder, to see at once whether there is a place for the run."""
        self._refuse_strange()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(
                f"{self.path} cannot be made ({error.strerror or error}), and the run "
                "is written beside it. Choose another --out."
            ) from error

    def begin(self, key: str) -> str:
        """Open the folder; return ``"new"``, ``"resumed"`` or ``"other"``.

        What another run left is deleted, if it is surely that.
        """
        state = "new"
        if self.path.exists():
            if self._key() == key and self._holds_work():
                return "resumed"
            state = "other" if self._holds_work() else "new"
            shutil.rmtree(self.path)
        self.reserve()
        (self.path / KEY).write_text(json.dumps({"key": key}), encoding="utf-8")
        return state

    def _refuse_strange(self) -> None:
        if not self.path.exists():
            return
        held = {p.name for p in self.path.iterdir()} if self.path.is_dir() else {""}
        strange = {name for name in held - INSIDE if not name.startswith(".")}
        if strange or (held and KEY not in held):
            raise RunFolderError(
                f"{self.path} is needed for work in progress, and holds something "
                "else. Move it away, or choose another --out."
            )

    def _key(self) -> str | None:
        try:
            found = json.loads((self.path / KEY).read_text(encoding="utf-8"))
            return str(found["key"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _holds_work(self) -> bool:
        folders = (self.path / TRAINING, self.path / ENCODER)
        return any(path.is_file() for top in folders for path in top.rglob("*"))

    @property
    def useful(self) -> bool:
        """Tell whether a second try would go on from here."""
        return self.path.is_dir() and self._holds_work()

    def leave(self) -> None:
        """Delete the folder if it holds nothing that a second try could use."""
        if self.path.is_dir() and not self._holds_work():
            self.end()
            for parent in self._made:
                with suppress(OSError):
                    parent.rmdir()

    def end(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)


@contextmanager
def kept_encoder(model: Any, X: Any, kind: str, work: WorkFolder) -> Iterator[None]:
    """Let the encoder that a method trains in the block keep what it learns.

    Afterwards model and encoder are as if they had been fitted without this.
    """
    before = getattr(model, "encoder", None)
    chosen = _contrastive(model, before, X) if kind == "image" else None
    if chosen is None:
        yield
        return
    settings = {**chosen.get_params(), "checkpoint": str(work.path / TRAINING)}
    model.set_params(encoder=KeptEncoder(**settings))
    try:
        yield
    finally:
        model.set_params(encoder=before)
    model.encoder_.__class__ = ContrastiveEncoder  # whoever holds it sees the change
    model.encoder_.checkpoint = None


def _contrastive(model: Any, encoder: Any, X: Any) -> ContrastiveEncoder | None:
    """Return the contrastive encoder that a method would train, if it would."""
    if encoder == "contrastive":
        encoder = ContrastiveEncoder()
    elif encoder == "auto" and getattr(model, "preset", None) is None:
        device = str(resolve_device(getattr(model, "device", "auto")))
        nobody = np.zeros(len(X), dtype=bool)
        encoder = default_encoder(PUInput(X, "image", nobody, nobody, None), device)
    own = type(encoder) is ContrastiveEncoder and encoder.checkpoint is None
    return encoder if own else None


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
