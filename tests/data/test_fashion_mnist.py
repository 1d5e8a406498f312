from __future__ import annotations

import gzip

import pytest

from denspu.data import get, load_dataset
from denspu.data.fashion_mnist import SPEC
from denspu.exceptions import DataIntegrityError


@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files_plain_or_gzipped(tiny_fashion, write_idx, tmp_path, zipped):
    folder = write_idx(tmp_path / "mine", tiny_fashion)
    if zipped:
        for path in list(folder.iterdir()):
            path.with_name(path.name + ".gz").write_bytes(
                gzip.compress(path.read_bytes())
            )
            path.unlink()
    get("fashion-mnist", source=folder)
    benchmark = load_dataset("fashion-mnist", download=False)
    assert (benchmark.X_train == tiny_fashion["X_train"]).all()
    assert (benchmark.y_train == tiny_fashion["y_train"]).all()
    assert (benchmark.X_test == tiny_fashion["X_test"]).all()
    assert (benchmark.y_test == tiny_fashion["y_test"]).all()


def test_a_truncated_file_is_named(tiny_fashion, write_idx, tmp_path):
    folder = write_idx(tmp_path / "mine", tiny_fashion)
    path = folder / "t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataIntegrityError, match="t10k-images-idx3-ubyte should be"):
        get("fashion-mnist", source=folder)


def test_facts_are_those_of_the_paper():
    names = [SPEC.class_names[i] for i in SPEC.positive]
    assert names == ["T-shirt/top", "Pullover", "Coat", "Shirt"]
    assert SPEC.shapes["X_train"] == (60_000, 28, 28)
    assert len(SPEC.files) == 4
