from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from denspu.data import _cache, data_home
from denspu.data._sets import find_set
from denspu.exceptions import DataIntegrityError


def test_home_by_argument_then_variable_then_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("DENSPU_HOME", str(tmp_path / "env"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert data_home(tmp_path / "given") == tmp_path / "given"
    assert data_home() == tmp_path / "env"
    monkeypatch.delenv("DENSPU_HOME")
    assert data_home() == tmp_path / "xdg" / "denspu"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("linux", ".cache/denspu"), ("darwin", "Library/Caches/denspu")],
)
def test_home_of_each_platform(monkeypatch, tmp_path, platform, expected):
    monkeypatch.delenv("DENSPU_HOME")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(_cache.sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert data_home() == tmp_path / expected


def test_home_understands_a_tilde(monkeypatch):
    monkeypatch.setenv("DENSPU_HOME", "~/sets")
    assert data_home() == Path.home() / "sets"
    assert data_home("~/mine") == Path.home() / "mine"


def put(spec, arrays, tmp_path):
    folder = _cache.folder_of(spec, tmp_path)
    with _cache.scratch(folder) as work:
        _cache.store(arrays, folder, work)
    return folder


def test_stored_arrays_are_plain_npy_and_come_back(tiny_fashion, tmp_path):
    spec = find_set("fashion-mnist")
    folder = put(spec, tiny_fashion, tmp_path)
    assert folder == tmp_path / "data" / "fashion-mnist"
    assert _cache.is_stored(folder)
    assert [p.name for p in folder.parent.iterdir()] == ["fashion-mnist"]
    mapped = np.load(folder / "X_train.npy", mmap_mode="r", allow_pickle=False)
    assert (mapped == tiny_fashion["X_train"]).all()
    assert (_cache.load(spec, folder)["y_test"] == tiny_fashion["y_test"]).all()


def test_an_incomplete_folder_is_replaced(tiny_fashion, tmp_path):
    spec = find_set("fashion-mnist")
    folder = _cache.folder_of(spec, tmp_path)
    folder.mkdir(parents=True)
    (folder / "X_train.npy").write_bytes(b"half")
    assert not _cache.is_stored(folder)
    put(spec, tiny_fashion, tmp_path)
    assert _cache.load(spec, folder)["X_train"].shape == (6, 28, 28)


def test_a_faster_process_wins_without_a_fault(tiny_fashion, tmp_path):
    spec = find_set("fashion-mnist")
    folder = put(spec, tiny_fashion, tmp_path)
    before = (folder / "X_train.npy").stat().st_ino
    put(spec, tiny_fashion, tmp_path)
    assert (folder / "X_train.npy").stat().st_ino == before
    assert [p.name for p in folder.parent.iterdir()] == ["fashion-mnist"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_scratch_goes_whatever_happens(tmp_path, error):
    with pytest.raises(error), _cache.scratch(tmp_path / "set") as work:  # noqa: PT012
        (work / "file").write_text("half")
        raise error
    assert list(tmp_path.iterdir()) == []


def flip_a_bit(folder):
    path = folder / "X_test.npy"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def cut_short(folder):
    path = folder / "X_test.npy"
    path.write_bytes(path.read_bytes()[:-10])


def put_a_pickle(folder):
    array = np.array([{"a": 1}], dtype=object)
    np.save(folder / "X_test.npy", array, allow_pickle=True)


def other_shape(folder):
    np.save(folder / "X_test.npy", np.zeros((2, 28, 28), np.uint8))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (flip_a_bit, "X_test.*expected sha256 .*, got "),
        (cut_short, "Delete the folder"),
        (put_a_pickle, "(?i)pickle"),
        (other_shape, r"expected bytes of shape \(3, 28, 28\), got uint8 of shape \(2"),
    ],
)
def test_a_damaged_store_is_noticed(tiny_fashion, tmp_path, damage, says):
    spec = find_set("fashion-mnist")
    folder = put(spec, tiny_fashion, tmp_path)
    damage(folder)
    with pytest.raises(DataIntegrityError, match=says) as caught:
        _cache.load(spec, folder)
    assert "denspu data get fashion-mnist" in str(caught.value)
