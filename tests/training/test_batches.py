"""Mini-batches: every row once, or exactly balanced."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from denspu.training import BalancedBatches, TensorBatches
from denspu.training.batches import shuffled


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@given(n=st.integers(1, 40), batch_size=st.integers(1, 12))
def test_an_epoch_covers_each_row_once(n, batch_size):
    batches = TensorBatches(torch.arange(n), batch_size=batch_size)
    parts = [rows for (rows,) in batches.epoch(generator())]
    assert torch.cat(parts).sort().values.tolist() == list(range(n))
    assert len(parts) == len(batches)
    assert all(len(part) == batch_size for part in parts[:-1])


def test_tensors_stay_aligned():
    x = torch.arange(10)
    for a, b in TensorBatches(x, x * 2, batch_size=3).epoch(generator()):
        assert torch.equal(b, a * 2)


def test_each_epoch_has_its_own_order_and_a_seed_repeats_it():
    batches = TensorBatches(torch.arange(30), batch_size=30)
    source = generator(1)
    first = next(batches.epoch(source))[0]
    second = next(batches.epoch(source))[0]
    again = next(batches.epoch(generator(1)))[0]
    assert not torch.equal(first, second)
    assert torch.equal(first, again)


def test_drop_last():
    batches = TensorBatches(torch.arange(10), batch_size=4, drop_last=True)
    assert [len(rows) for (rows,) in batches.epoch(generator())] == [4, 4]
    assert len(batches) == 2
    few = TensorBatches(torch.arange(3), batch_size=4, drop_last=True)
    assert [len(rows) for (rows,) in few.epoch(generator())] == [3]


@given(
    n_positive=st.integers(1, 20),
    n_negative=st.integers(1, 20),
    batch_size=st.integers(1, 12),
)
def test_balanced_batches_are_exactly_balanced(n_positive, n_negative, batch_size):
    positive = torch.tensor([True] * n_positive + [False] * n_negative)
    rows = torch.arange(len(positive))
    batches = BalancedBatches(rows, positive=positive, batch_size=batch_size)
    parts = [chosen for (chosen,) in batches.epoch(generator())]
    assert len(parts) == len(batches)
    for chosen in parts:
        assert 2 * positive[chosen].sum() == len(chosen)
        assert len(chosen) <= max(2, batch_size)
    chosen = torch.cat(parts)
    assert len(chosen) == 2 * min(n_positive, n_negative)
    assert len(chosen.unique()) == len(chosen)
    is_smaller = positive if n_positive <= n_negative else ~positive
    assert set(rows[is_smaller].tolist()) <= set(chosen.tolist())


def test_the_larger_class_is_drawn_afresh_every_epoch():
    positive = torch.arange(103) < 3
    batches = BalancedBatches(torch.arange(103), positive=positive, batch_size=6)
    source = generator()
    epochs = [torch.cat([b for (b,) in batches.epoch(source)]) for _ in range(5)]
    negatives = {tuple(sorted(rows[rows >= 3].tolist())) for rows in epochs}
    assert len(negatives) == 5


def test_balanced_tensors_stay_aligned():
    x = torch.arange(9)
    batches = BalancedBatches(x, x * 2, positive=x < 4, batch_size=4)
    for a, b in batches.epoch(generator()):
        assert torch.equal(b, a * 2)


@pytest.mark.parametrize("n", [1, 7])
def test_shuffled_is_a_permutation(n):
    order = shuffled(torch.zeros(n, 2), generator())
    assert order.sort().values.tolist() == list(range(n))


# --- batches that travel --------------------------------------------------------------


class Travelling(TensorBatches):
    """Batches sent by the thread, to a device that is the same one in truth."""

    def __init__(self, *tensors, **settings):
        super().__init__(*tensors, device=torch.device("cpu", 0), **settings)
        self.threads = set()
        self.sent = 0

    def _sent(self, rows):
        self.threads.add(threading.get_ident())
        self.sent += 1
        return super()._sent(rows)


def test_travelling_batches_hold_the_same_rows():
    x = torch.arange(23)
    settings = {"batch_size": 5}
    near, far = TensorBatches(x, x * 2, **settings), Travelling(x, x * 2, **settings)
    a, b = generator(1), generator(1)
    for _ in range(2):
        pairs = list(zip(near.epoch(a), far.epoch(b), strict=True))
        assert len(pairs) == len(far) == 5
        for here, there in pairs:
            assert all(torch.equal(s, t) for s, t in zip(here, there, strict=True))
    assert threading.get_ident() not in far.threads


def test_a_single_batch_travels_too():
    batches = Travelling(torch.arange(3), batch_size=5)
    ((rows,),) = batches.epoch(generator())
    assert sorted(rows.tolist()) == [0, 1, 2]


def test_one_batch_is_sent_ahead_and_no_more():
    batches = Travelling(torch.arange(20), batch_size=4)
    epoch = batches.epoch(generator())
    next(epoch)
    time.sleep(0.05)
    assert batches.sent == 2
    epoch.close()
    assert batches.sent == 2


def test_where_the_tensors_lie_no_thread_is_used():
    batches = Travelling(torch.arange(6), batch_size=2)
    batches.device = torch.device("cpu")
    assert len(list(batches.epoch(generator()))) == 3
    assert not batches.threads


def test_what_goes_wrong_on_the_way_reaches_the_caller():
    class Broken(Travelling):
        def _sent(self, rows):
            if self.sent == 2:
                raise RuntimeError("lost")
            return super()._sent(rows)

    seen = []
    with pytest.raises(RuntimeError, match="lost"):
        seen.extend(Broken(torch.arange(20), batch_size=4).epoch(generator()))
    assert len(seen) == 2
