"""Batches of P and U: fixed counts, fair turns, the whole pool once an epoch."""

from __future__ import annotations

from collections import Counter

import torch
from hypothesis import given
from hypothesis import strategies as st

from denspu.training import PUBatches


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def make(n_p, n_u, batch_size, n_positive=None, device=None):
    rows = torch.arange(n_p + n_u) * 10
    return PUBatches(
        rows,
        torch.arange(n_p),
        torch.arange(n_p, n_p + n_u),
        batch_size=batch_size,
        n_positive=n_positive,
        device=device,
    )


@given(
    n_p=st.integers(1, 20),
    n_u=st.integers(1, 40),
    batch_size=st.integers(1, 15),
    n_positive=st.none() | st.integers(1, 30),
)
def test_every_batch_holds_the_same_counts(n_p, n_u, batch_size, n_positive):
    batches = make(n_p, n_u, batch_size, n_positive)
    found = list(batches.epoch(generator()))
    assert len(found) == len(batches) >= 1
    sizes = {tuple(len(part) for part in batch) for batch in found}
    size = min(batch_size, n_u)
    wanted = n_positive or max(2, round(size * n_p / n_u))
    assert sizes == {(wanted, size, wanted, size)}


@given(n_p=st.integers(1, 9), n_u=st.integers(1, 40), n_positive=st.integers(1, 20))
def test_every_positive_comes_as_often_as_the_others(n_p, n_u, n_positive):
    batches = make(n_p, n_u, 3, n_positive)
    seen = Counter(torch.cat([b[2] for b in batches.epoch(generator())]).tolist())
    counts = [seen[row] for row in range(n_p)]
    assert max(counts) - min(counts) <= 1


def test_the_pool_is_passed_once_an_epoch():
    batches = make(4, 23, 5)
    seen = torch.cat([b[3] for b in batches.epoch(generator())]).tolist()
    assert len(seen) == len(set(seen)) == 20  # the incomplete batch is left out
    assert set(seen) <= set(range(4, 27))
    left_out = set(range(4, 27)) - set(seen)
    source = generator(1)
    later = [torch.cat([b[3] for b in batches.epoch(source)]) for _ in range(5)]
    assert left_out <= set(torch.cat(later).tolist())


def test_numbers_belong_to_their_rows():
    for p, u, of_p, of_u in make(6, 20, 4).epoch(generator()):
        assert torch.equal(p, of_p * 10)
        assert torch.equal(u, of_u * 10)


def test_a_seed_repeats_the_order_and_epochs_differ():
    batches = make(6, 20, 20, 6)
    source = generator(3)
    first, second = (next(batches.epoch(source)) for _ in range(2))
    again = next(batches.epoch(generator(3)))
    assert torch.equal(first[3], again[3])
    assert torch.equal(first[2], again[2])
    assert not torch.equal(first[3], second[3])
    assert not torch.equal(first[2], second[2])


def test_rows_elsewhere_travel_to_the_device():
    near = make(3, 8, 4, device=torch.device("cpu"))
    far = make(3, 8, 4, device=torch.device("meta"))
    assert not near.streams
    assert far.streams
    assert {t.device.type for t in next(far.epoch(generator()))} == {"meta"}


def test_an_epoch_may_be_shorter_than_a_pass():
    source = PUBatches(
        torch.arange(40), torch.arange(4), torch.arange(40), batch_size=10, steps=3
    )
    generator = torch.Generator().manual_seed(0)
    passes = [list(source.epoch(generator)) for _ in range(8)]
    assert len(source) == 3
    assert {len(batches) for batches in passes} == {3}
    first = [torch.cat([u for _, u, _, _ in batches]).tolist() for batches in passes]
    assert all(len(set(rows)) == 30 for rows in first)  # no row twice in an epoch
    assert set().union(*first) == set(range(40))  # each epoch draws afresh


def test_an_epoch_is_never_longer_than_a_pass():
    rows = torch.arange(40)
    assert len(PUBatches(rows, rows[:4], rows, batch_size=10, steps=9)) == 4
