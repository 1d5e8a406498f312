"""Mini-batches: every row once, exactly balanced, P beside U, and rows alone."""

from __future__ import annotations

import threading
import time
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from denspu.training import (
    BalancedBatches,
    PUBatches,
    TensorBatches,
    in_fixed_batches,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


# --- all rows -------------------------------------------------------------------------


@given(n=st.integers(1, 40), batch_size=st.integers(1, 12))
def test_an_epoch_covers_each_row_once(n, batch_size):
    x = torch.arange(n)
    batches = TensorBatches(x, x * 2, batch_size=batch_size)
    parts = list(batches.epoch(generator()))
    rows = torch.cat([a for a, _ in parts])
    assert rows.sort().values.tolist() == list(range(n))
    assert torch.equal(torch.cat([b for _, b in parts]), 2 * rows)
    assert len(parts) == len(batches)
    assert all(len(a) == batch_size for a, _ in parts[:-1])


def test_orders_follow_the_generator():
    batches, source = TensorBatches(torch.arange(30), batch_size=30), generator(1)
    (first,), (second,) = (next(batches.epoch(source)) for _ in range(2))
    (again,) = next(batches.epoch(generator(1)))
    assert not torch.equal(first, second)
    assert torch.equal(first, again)


def test_drop_last():
    for n, sizes in ((10, [4, 4]), (3, [3])):
        batches = TensorBatches(torch.arange(n), batch_size=4, drop_last=True)
        assert [len(rows) for (rows,) in batches.epoch(generator())] == sizes
        assert len(batches) == len(sizes)


# --- as many of each class ------------------------------------------------------------


@given(
    n_positive=st.integers(1, 20),
    n_negative=st.integers(1, 20),
    batch_size=st.integers(1, 12),
)
def test_balanced_batches_are_exactly_balanced(n_positive, n_negative, batch_size):
    positive = torch.tensor([True] * n_positive + [False] * n_negative)
    rows = torch.arange(len(positive))
    batches = BalancedBatches(rows, rows * 2, positive=positive, batch_size=batch_size)
    parts = list(batches.epoch(generator()))
    assert len(parts) == len(batches)
    for chosen, doubled in parts:
        assert 2 * positive[chosen].sum() == len(chosen)
        assert len(chosen) <= max(2, batch_size)
        assert torch.equal(doubled, 2 * chosen)
    chosen = torch.cat([rows for rows, _ in parts])
    assert len(chosen) == len(chosen.unique()) == 2 * min(n_positive, n_negative)


# --- batches that travel --------------------------------------------------------------


class Travelling(TensorBatches):
    """Batches sent by the thread, to a device that is the same one in truth."""

    broken = False

    def __init__(self, *tensors, **settings):
        super().__init__(*tensors, device=torch.device("cpu", 0), **settings)
        self.threads = set()
        self.sent = 0

    def _sent(self, rows):
        if self.broken and self.sent == 2:
            raise RuntimeError("lost")
        self.threads.add(threading.get_ident())
        self.sent += 1
        return super()._sent(rows)


def test_travelling_batches_hold_the_same_rows():
    for n in (23, 3):
        x = torch.arange(n)
        near, far = (
            TensorBatches(x, x * 2, batch_size=5),
            Travelling(x, x * 2, batch_size=5),
        )
        a, b = generator(1), generator(1)
        for _ in range(2):
            for here, there in zip(near.epoch(a), far.epoch(b), strict=True):
                assert all(torch.equal(s, t) for s, t in zip(here, there, strict=True))
        assert threading.get_ident() not in far.threads


def test_one_batch_is_sent_ahead_and_what_goes_wrong_is_told():
    batches = Travelling(torch.arange(20), batch_size=4)
    epoch = batches.epoch(generator())
    next(epoch)
    time.sleep(0.05)
    assert batches.sent == 2
    epoch.close()
    assert batches.sent == 2
    lossy, seen = Travelling(torch.arange(20), batch_size=4), []
    lossy.broken = True
    with pytest.raises(RuntimeError, match="lost"):
        seen.extend(lossy.epoch(generator()))
    assert len(seen) == 2


# --- P beside U -----------------------------------------------------------------------


def pu(n_p, n_u, batch_size, n_positive=None, **more):
    pool = torch.arange(n_p, n_p + n_u)
    return PUBatches(
        torch.arange(n_p + n_u) * 10,
        torch.arange(n_p),
        pool,
        batch_size=batch_size,
        n_positive=n_positive,
        **more,
    )


@given(
    n_p=st.integers(1, 20),
    n_u=st.integers(1, 40),
    batch_size=st.integers(1, 15),
    n_positive=st.none() | st.integers(1, 30),
)
def test_every_batch_holds_the_same_counts_in_fair_turns(
    n_p, n_u, batch_size, n_positive
):
    batches = pu(n_p, n_u, batch_size, n_positive)
    found = list(batches.epoch(generator()))
    assert len(found) == len(batches) >= 1
    size = min(batch_size, n_u)
    wanted = n_positive or max(2, round(size * n_p / n_u))
    sizes = {tuple(len(part) for part in batch) for batch in found}
    assert sizes == {(wanted, size, wanted, size)}
    seen = Counter(torch.cat([b[2] for b in found]).tolist())
    counts = [seen[row] for row in range(n_p)]
    assert max(counts) - min(counts) <= 1
    for p, u, of_p, of_u in found:
        assert torch.equal(p, of_p * 10)
        assert torch.equal(u, of_u * 10)


def test_the_pool_is_passed_once_an_epoch_or_its_first_steps():
    for batches, size in ((pu(4, 23, 5), 20), (pu(4, 23, 5, steps=3), 15)):
        source = generator()
        passes = [
            torch.cat([b[3] for b in batches.epoch(source)]).tolist() for _ in range(9)
        ]
        assert all(len(rows) == len(set(rows)) == size for rows in passes)
        assert set().union(*passes) == set(range(4, 27))  # each epoch draws afresh
    assert len(pu(4, 23, 5, steps=9)) == 4


def test_rows_elsewhere_travel_to_the_device():
    near, far = (pu(3, 8, 4, device=torch.device(d)) for d in ("cpu", "meta"))
    assert not near.streams
    assert far.streams
    assert {t.device.type for t in next(far.epoch(generator()))} == {"meta"}


# --- answers --------------------------------------------------------------------------


def test_a_rows_answer_never_depends_on_its_neighbours():
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.ReLU(),
            nn.BatchNorm2d(8),
            nn.Dropout(0.5),
            nn.Flatten(),
            nn.Linear(8 * 36, 5),
        )
    X = np.random.default_rng(0).random((23, 3, 6, 6), dtype=np.float32)
    sizes, before = [], net[2].running_mean.clone()
    net.register_forward_pre_hook(lambda module, args: sizes.append(len(args[0])))

    def apply(rows):
        return in_fixed_batches(
            net, rows, torch.from_numpy, device=torch.device("cpu"), batch_size=8
        )

    whole = apply(X)
    assert sizes == [8, 8, 8]
    assert whole.dtype == np.float32
    assert not net.training
    assert torch.equal(net[2].running_mean, before)
    for rows in (slice(0, 1), slice(3, 4), slice(5, 18), slice(8, 16)):
        assert np.array_equal(apply(X[rows]), whole[rows])
    order = np.random.default_rng(1).permutation(len(X))
    assert np.array_equal(apply(X[order]), whole[order])
    with torch.inference_mode():
        assert np.allclose(net(torch.from_numpy(X)).numpy(), whole, atol=1e-5)
