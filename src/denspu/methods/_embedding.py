"""What PU methods on an embedding share: the encoder, and the way rows go through it.

A method is a subclass with ``_learn(Z, data, randomness)`` and ``_score(Z)``; what it
sees are numbers, whatever the user's rows are.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from denspu._machine import resolve_device
from denspu._parameters import OneOf, Part, Whole
from denspu._random import Randomness
from denspu._registry import prepare_part, refuse_kind, resolve_part
from denspu._typing import FloatArray
from denspu._validation import PUInput, allows_nan, check_embedding
from denspu.base import Rules, in_fixed_rows
from denspu.methods._base import PUClassifier
from denspu.methods._presets import default_encoder
from denspu.methods._prior import doubtful_share


class EmbeddingPU(PUClassifier):
    """A PU method on the embedding of an encoder.

    ``encoder="auto"`` standardises tables, takes small images as they are, and learns a
    contrastive embedding of others.
    """

    _rules: ClassVar[Rules] = {
        "encoder": (OneOf("auto"), Part("encoder")),
        "verbose": (Whole(0),),
    }

    encoder: Any
    device: str
    verbose: int

    def _fit(self, data: PUInput, randomness: Randomness) -> None:
        self.device_ = str(resolve_device(self.device))
        chosen = self.encoder
        if isinstance(chosen, str) and chosen == "auto":
            chosen = default_encoder(data, self.device_)
        self.encoder_ = prepare_part(
            resolve_part(chosen, "encoder", argument="encoder"),
            randomness,
            "encoder",
            device=self.device_,
            verbose=self.verbose,
        )
        refuse_kind(self.encoder_, data.kind, "encoder")
        self.encoder_.fit(data.X, data.positive.astype(np.int64))
        self._learn(self._embed(data.X), data, randomness)

    @abstractmethod
    def _learn(self, Z: FloatArray, data: PUInput, randomness: Randomness) -> None:
        """Learn from embeddings; ``data`` says who is who."""

    @abstractmethod
    def _score(self, Z: FloatArray) -> FloatArray:
        """Return log-odds or a margin around 0 for embeddings."""

    def _embed(self, X: Any) -> FloatArray:
        Z = check_embedding(self.encoder_.transform(X), argument="the encoder's output")
        return np.asarray(Z, dtype=np.float64)

    def _decide(self, X: Any) -> FloatArray:
        return in_fixed_rows(self._score, self._embed(X))

    def _expected_share(self, data: PUInput, called: float) -> float | None:
        known = super()._expected_share(data, called)
        if known is not None or not hasattr(self, "encoder_"):
            return known
        return doubtful_share(called, data, self._embed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        encoder = self.encoder
        tags.input_tags.allow_nan = encoder in ("auto", "tabular", "contrastive") or (
            not isinstance(encoder, str | type) and allows_nan(encoder)
        )
        return tags
