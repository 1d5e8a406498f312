"""Step 5 of the walk, normality → Ñ: which leftovers become negatives, how many."""

from denspu.selection.selectors import (
    ByDistance,
    ByScore,
    RandomLeftover,
    RandomUnlabeled,
)

__all__ = ["ByDistance", "ByScore", "RandomLeftover", "RandomUnlabeled"]
