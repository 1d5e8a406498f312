"""What the walk hands to a refiner, for tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from denspu._machine import Deadline
from denspu.base import RefinerInput


def begin(Z, positive, *, share=0.3, scores=None, **changes):
    """Return rows with labels and a boundary that knows nothing more."""
    start = RefinerInput(
        X=Z,
        Z=Z,
        positive=positive,
        known_negative=np.zeros(len(Z), dtype=bool),
        groups=None,
        scores=np.zeros(len(Z)) if scores is None else scores,
        labels=positive.astype(float),
        prior_in_unlabeled=float(share),
        prior_interval=(0.0, 1.0),
        encoder=None,
        deadline=Deadline(None),
    )
    return replace(start, **changes)
