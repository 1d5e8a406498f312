"""Counting above bounds: compiled and plain code agree with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu.detectors import density_ratio as counting


@pytest.mark.parametrize("compiled", [True, False])
def test_count_equals_numpy(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    values = np.random.default_rng(0).integers(0, 9, (100, 57)).astype("f4")
    low = np.linspace(0, 9, 100).astype("f4").round()
    high = low[::-1].copy()
    found = counting.count_at_least(*map(torch.from_numpy, (values, low, high)))
    for counts, bound in zip(found, (low, high), strict=True):
        assert counts.tolist() == (values >= bound[:, None]).sum(1).tolist()
