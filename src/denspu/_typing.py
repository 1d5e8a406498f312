"""Names for the arrays that travel through denspu."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""Scores, embeddings, probabilities."""

BoolArray: TypeAlias = NDArray[np.bool_]
"""A mask over rows."""

IntArray: TypeAlias = NDArray[np.integer[Any]]
"""Row numbers or class labels."""

Scenario: TypeAlias = Literal["one-sample", "two-sample"]
"""Was P taken out of U's sample, or is U a sample of its own?"""

InputKind: TypeAlias = Literal["table", "image", "text"]
"""``table``: 2-D array or DataFrame; ``image``: N×H×W or N×H×W×C array; ``text``: a
list of strings."""

RandomState: TypeAlias = (
    int | np.integer[Any] | np.random.RandomState | np.random.Generator | None
)
"""Whatever a user may pass as ``random_state``."""
