"""Data every test file may ask for, and the ``--runslow`` switch."""

from __future__ import annotations

import os

# Tiny arrays on a busy machine: threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile(
    "denspu", derandomize=True, deadline=None, database=None, max_examples=25
)
settings.load_profile("denspu")


def pytest_addoption(parser):
    parser.addoption(
        "--runslow", action="store_true", help="also run the tests marked slow"
    )


def pytest_collection_modifyitems(config, items):
    if config.getoption("--runslow"):
        return
    skip = pytest.mark.skip(reason="slow: run with --runslow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def few_trees():
    """Grow small forests in the default refiner: most tests ask what, not how well."""
    from denspu.refinement import embedding

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "TREES", 10)
        yield


class Blobs:
    """Two clouds of points: positives around 0, negatives around ``far``."""

    def __init__(self, seed=0, n_labeled=40, n_hidden=40, n_negative=60, far=6.0):
        rng = np.random.default_rng(seed)
        positive = rng.normal(size=(n_labeled + n_hidden, 3))
        negative = rng.normal(loc=far, size=(n_negative, 3))
        self.X = np.concatenate([positive, negative])
        self.truth = np.r_[np.ones(len(positive)), np.zeros(n_negative)].astype(int)
        self.y = np.r_[np.ones(n_labeled), np.zeros(n_hidden + n_negative)].astype(int)


@pytest.fixture
def blobs():
    return Blobs()


@pytest.fixture
def make_blobs():
    return Blobs


@pytest.fixture
def tiny_images():
    """Return 20 uint8 images of 8×8×3 and PU labels: bright ones are positive."""
    rng = np.random.default_rng(0)
    bright = rng.integers(170, 256, (12, 8, 8, 3), dtype=np.uint8)
    dark = rng.integers(0, 80, (8, 8, 8, 3), dtype=np.uint8)
    y = np.r_[np.ones(6), np.zeros(14)].astype(int)
    return np.concatenate([bright, dark]), y
