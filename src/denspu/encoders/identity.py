"""The encoder that changes nothing: for embeddings the user already has."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from denspu._parameters import OneOf, check_parameters
from denspu._typing import FloatArray
from denspu._validation import is_frame, validate_X
from denspu.base import Encoder, Rules
from denspu.exceptions import InvalidInputError
from denspu.networks.pixels import PixelScale


class IdentityEncoder(Encoder):
    """Use the input as its own embedding.

    Tables pass through, images are scaled to [0, 1] and flattened.

    Parameters
    ----------
    normalize : bool, default=False
        Divide each embedding by its length, so that it lies on the unit sphere.

    Examples
    --------
    >>> IdentityEncoder(normalize=True).fit_transform([[3.0, 4.0], [0.0, 2.0]])
    array([[0.6, 0.8],
           [0. , 1. ]])
    """

    inputs: ClassVar[tuple[str, ...]] = ("table", "image")
    _rules: ClassVar[Rules] = {"normalize": (OneOf(True, False),)}

    def __init__(self, *, normalize: bool = False) -> None:
        self.normalize = normalize

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the shape of ``X`` and the range of its pixels."""
        check_parameters(self)
        X = validate_X(self, X, reset=True)
        if self.input_kind_ == "image":
            self.scale_ = PixelScale.of(X)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the rows of ``X`` as vectors."""
        check_is_fitted(self)
        X = validate_X(self, X, reset=False)
        if self.input_kind_ == "image":
            Z = self.scale_.apply(X).reshape(len(X), -1)
        else:
            Z = _numbers(X) if is_frame(X) else X
        if self.normalize:
            length = np.linalg.norm(Z, axis=1, keepdims=True)
            Z = Z / np.maximum(length, np.finfo(Z.dtype).tiny)
        return Z


def _numbers(frame: Any) -> FloatArray:
    words = [
        str(name) for name in frame.columns if frame[name].dtype.kind not in "biuf"
    ]
    if words:
        raise InvalidInputError(
            f"Column(s) {', '.join(words[:8])} do not hold numbers, and the identity "
            "encoder changes nothing. Use encoder='tabular'."
        )
    return frame.to_numpy(dtype=np.float64)
