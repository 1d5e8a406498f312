"""Isolation trees as flat arrays: built once, scored on CPU or GPU, easy to save."""

from denspu.detectors.forest.arrays import Forest, average_path_length
from denspu.detectors.forest.build import build_forest
from denspu.detectors.forest.score import available_engines, forest_scores

__all__ = [
    "Forest",
    "available_engines",
    "average_path_length",
    "build_forest",
    "forest_scores",
]
