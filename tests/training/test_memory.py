"""What fits where."""

from __future__ import annotations

import torch

from denspu.training import budget as memory
from denspu.training.budget import fits, free_bytes

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_off_a_gpu_everything_fits():
    assert free_bytes(CPU) == float("inf")
    assert fits(torch.zeros(10), CPU)


def test_a_data_set_may_take_a_share_of_what_is_free(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1000.0)
    assert fits(torch.zeros(100), CUDA)
    assert not fits(torch.zeros(101), CUDA)
    assert fits(torch.zeros(400, dtype=torch.uint8), CUDA)


def gpu(monkeypatch, *, free, total, reserved, allocated, fraction):
    cuda = torch.cuda
    monkeypatch.setattr(cuda, "mem_get_info", lambda device: (free, total))
    monkeypatch.setattr(cuda, "memory_reserved", lambda device: reserved)
    monkeypatch.setattr(cuda, "memory_allocated", lambda device: allocated)
    monkeypatch.setattr(
        cuda, "get_per_process_memory_fraction", lambda device: fraction, raising=False
    )
    return free_bytes(CUDA)


def test_free_memory_of_a_gpu(monkeypatch):
    """What others left, or what this process may take, and what it holds unused."""
    state = {"free": 60, "total": 100, "reserved": 30, "allocated": 10}
    assert gpu(monkeypatch, **state, fraction=1.0) == 60 + 20
    assert gpu(monkeypatch, **state, fraction=0.5) == 20 + 20
