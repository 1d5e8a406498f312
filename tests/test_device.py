"""The word ``device`` is resolved in one place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu import DensPU
from denspu._machine import available_devices, resolve_device
from denspu.encoders import CAEEncoder
from denspu.exceptions import DeviceError, InvalidParameterError


@pytest.fixture
def gpus(monkeypatch):
    """Pretend that a number of CUDA devices exist."""

    def pretend(count, mps=False):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return pretend


def test_cpu_always_exists(gpus):
    gpus(0)
    assert available_devices() == ["cpu"]
    assert resolve_device("cpu") == torch.device("cpu")


def test_auto(gpus):
    gpus(0)
    assert resolve_device("auto") == torch.device("cpu")
    gpus(2)
    assert resolve_device("auto") == torch.device("cuda:0")
    gpus(0, mps=True)
    assert resolve_device("auto") == torch.device("cpu")
    assert resolve_device("mps") == torch.device("mps")


def test_cuda_words(gpus):
    gpus(2)
    assert available_devices() == ["cuda:0", "cuda:1", "cpu"]
    assert resolve_device("cuda") == torch.device("cuda:0")
    assert resolve_device("cuda:1") == torch.device("cuda:1")
    assert resolve_device(torch.device("cuda:1")) == torch.device("cuda:1")


@pytest.mark.parametrize("word", ["cuda", "cuda:7", "gpu", torch.device("cuda")])
def test_absent_device_names_what_exists(gpus, word):
    gpus(0)
    with pytest.raises(DeviceError, match=r"not available here\. Available: cpu\."):
        resolve_device(word)


def test_absent_second_gpu(gpus):
    gpus(1)
    with pytest.raises(DeviceError, match="Available: cuda:0, cpu"):
        resolve_device("cuda:1")


@pytest.mark.parametrize("word", [0, None, ["cpu"]])
def test_not_a_device_name(word):
    with pytest.raises(InvalidParameterError, match="not a device name"):
        resolve_device(word)


def test_methods_and_parts_ask_this_gate(gpus, blobs):
    gpus(0)
    with pytest.raises(DeviceError, match="Available: cpu"):
        DensPU(device="cuda").fit(blobs.X, blobs.y)
    with pytest.raises(DeviceError, match="Available: cpu"):
        CAEEncoder(device="cuda", image_size=4).fit(np.zeros((2, 4, 4)))
