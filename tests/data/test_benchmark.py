from __future__ import annotations

import numpy as np
import pytest

from denspu.data import Benchmark, _benchmark, get, load_dataset, make_pu
from denspu.data._sets import SETS
from denspu.exceptions import (
    DataIntegrityError,
    DataNotFoundError,
    InvalidParameterError,
    UnknownPartError,
)


def test_download_false_says_how_to_get_it(tmp_path):
    with pytest.raises(DataNotFoundError, match="denspu data get cifar10") as caught:
        load_dataset("cifar10", download=False, data_home=tmp_path)
    assert str(tmp_path / "data" / "cifar10") in str(caught.value)


def test_an_absent_set_is_fetched_into_the_home_asked_for(
    tiny_fashion, write_idx, tmp_path, monkeypatch
):
    source = write_idx(tmp_path / "mine", tiny_fashion)
    monkeypatch.setattr(
        _benchmark,
        "get",
        lambda name, data_home: get(name, source=source, data_home=data_home),
    )
    loaded = load_dataset("fashion-mnist", data_home=tmp_path / "there")
    assert isinstance(loaded, Benchmark)
    assert (loaded.X_train == tiny_fashion["X_train"]).all()
    assert loaded.X_train.dtype == np.uint8
    assert loaded.X_train.flags.writeable
    assert loaded.y_train.dtype == np.int64
    assert (tmp_path / "there" / "data" / "fashion-mnist").is_dir()


def test_a_damaged_set_does_not_load(tiny_fashion, write_idx, tmp_path):
    folder = get("fashion-mnist", source=write_idx(tmp_path / "mine", tiny_fashion))
    np.save(folder / "y_train.npy", tiny_fashion["y_train"] ^ 1)
    with pytest.raises(DataIntegrityError, match="y_train of fashion-mnist"):
        load_dataset("fashion-mnist")


def test_sets_with_their_own_split_take_no_seed():
    with pytest.raises(InvalidParameterError, match="cifar10 comes with a split"):
        load_dataset("cifar10", split_seed=0)


def test_unknown_name():
    with pytest.raises(UnknownPartError, match="mean 'fashion-mnist'"):
        load_dataset("fashion_mnist")


def test_repr_shows_sizes_only():
    assert repr(load_dataset("digits")) == (
        "Benchmark('digits', 1257 train, 540 test, 8×8, 10 classes)"
    )


def test_a_benchmark_becomes_pu_data():
    digits = load_dataset("digits")
    data = make_pu(
        digits.X_train, digits.y_train, positive=digits.positive, n_labeled=100
    )
    even = digits.y_train % 2 == 0
    assert data.oracle.prior == pytest.approx(even.mean())


@pytest.mark.parametrize("name", sorted(SETS))
def test_facts_agree_with_each_other(name):
    spec = SETS[name]
    assert len(set(spec.class_names)) == 10
    assert set(spec.positive) < set(range(10))
    assert spec.shapes["X_train"][:1] == spec.shapes["y_train"]
    assert spec.shapes["X_test"][:1] == spec.shapes["y_test"]
    assert spec.shapes["X_train"][1:] == spec.shapes["X_test"][1:]
    assert spec.licence
    assert all(mirror.endswith("/") for mirror in spec.mirrors)
    assert (spec.split is None) == (set(spec.sha256) == set(spec.shapes))
