from __future__ import annotations

import tarfile

import pytest

from denspu.data import get, load_dataset
from denspu.data.cifar10 import SPEC
from denspu.exceptions import DataIntegrityError, DataNotFoundError


def check_loaded(source, expected):
    get("cifar10", source=source)
    benchmark = load_dataset("cifar10", download=False)
    assert (benchmark.X_train == expected["X_train"]).all()
    assert (benchmark.y_train == expected["y_train"]).all()
    assert (benchmark.X_test == expected["X_test"]).all()
    assert (benchmark.y_test == expected["y_test"]).all()


def test_binary_batches(tiny_cifar, write_batches, tmp_path):
    folder = tmp_path / "mine"
    write_batches(folder / "cifar-10-batches-bin", tiny_cifar)
    check_loaded(folder, tiny_cifar)


def test_binary_archive(tiny_cifar, write_batches, tmp_path):
    batches = write_batches(tmp_path / "bin", tiny_cifar)
    folder = tmp_path / "mine"
    folder.mkdir()
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz") as tar:
        tar.add(batches, "cifar-10-batches-bin")
    check_loaded(folder, tiny_cifar)


def test_an_archive_that_lacks_a_batch(tiny_cifar, write_batches, tmp_path):
    batches = write_batches(tmp_path / "bin", tiny_cifar)
    (batches / "test_batch.bin").unlink()
    folder = tmp_path / "mine"
    folder.mkdir()
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz") as tar:
        tar.add(batches, "cifar-10-batches-bin")
    with pytest.raises(DataIntegrityError, match=r"gz lacks test_batch\.bin"):
        get("cifar10", source=folder)


def test_png_sheets(tiny_cifar, write_sheets, tmp_path):
    check_loaded(write_sheets(tmp_path / "package", tiny_cifar), tiny_cifar)


@pytest.mark.parametrize(
    "name", ["cifar-10-batches-py/data_batch_1", "cifar-10-python.tar.gz"]
)
def test_pickled_batches_are_refused(tmp_path, name, monkeypatch):
    def boom(*args, **kwargs):
        raise AssertionError("a pickle was loaded")

    monkeypatch.setattr("pickle.load", boom)
    monkeypatch.setattr("pickle.loads", boom)
    path = tmp_path / "mine" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(DataNotFoundError, match="never loads one") as caught:
        get("cifar10", source=tmp_path / "mine")
    assert "get cifar-10-binary.tar.gz, the same images, instead" in str(caught.value)


def test_facts_are_those_of_the_paper():
    names = [SPEC.class_names[i] for i in SPEC.positive]
    assert names == ["airplane", "automobile", "ship", "truck"]
    assert SPEC.shapes["X_train"] == (50_000, 32, 32, 3)
    assert SPEC.files[0].md5 == "c32a1d4ab5d03f1284b67883e8d87530"
