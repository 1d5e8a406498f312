from __future__ import annotations

import gzip
import io
import sys
import tarfile

import numpy as np
import pytest

from denspu.data import _formats
from denspu.exceptions import DataIntegrityError, MissingDependencyError

IDX = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6])
RECORD = 3073


def test_idx_by_hand(tmp_path):
    (tmp_path / "a").write_bytes(IDX)
    assert _formats.read_idx(tmp_path / "a", 2).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_idx_gzipped(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(IDX))
    assert _formats.read_idx(tmp_path / "a", 2).shape == (2, 3)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "starts with nothing"),
        (IDX[:-1], "should be 18 bytes.*got 17"),
        (IDX + b"x", "should be 18 bytes.*got 19"),
        (IDX[:7], "ends within its IDX header"),
        (bytes([0, 0, 9, 2]) + IDX[4:], "starts with 00000902"),
        (bytes([0, 0, 8, 3]) + IDX[4:], "starts with 00000803"),
    ],
)
def test_idx_is_strict(tmp_path, raw, says):
    (tmp_path / "a").write_bytes(raw)
    with pytest.raises(DataIntegrityError, match=says):
        _formats.read_idx(tmp_path / "a", 2)


@pytest.mark.parametrize("raw", [gzip.compress(IDX, mtime=0)[:-9], b"not gzip at all"])
def test_broken_gzip(tmp_path, raw):
    (tmp_path / "a.gz").write_bytes(raw)
    with pytest.raises(DataIntegrityError, match=r"a\.gz cannot be unpacked"):
        _formats.read_idx(tmp_path / "a", 2)


def test_cifar_record_is_label_then_red_green_blue_rows():
    pixels = bytearray(3072)
    pixels[1] = 10  # red, row 0, column 1
    pixels[1024 + 32] = 20  # green, row 1, column 0
    pixels[3071] = 30  # blue, last pixel
    images, labels = _formats.parse_cifar_batch(bytes([7]) + bytes(pixels), "x")
    assert images.shape == (1, 32, 32, 3)
    assert labels.tolist() == [7]
    assert images[0, 0, 1].tolist() == [10, 0, 0]
    assert images[0, 1, 0].tolist() == [0, 20, 0]
    assert images[0, 31, 31].tolist() == [0, 0, 30]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "got 0 bytes"),
        (bytes(RECORD - 1), "whole number of 3073-byte records, got 3072"),
        (bytes([10]) + bytes(RECORD - 1), "label 10"),
    ],
)
def test_cifar_batches_are_strict(tmp_path, raw, says):
    (tmp_path / "b.bin").write_bytes(raw)
    with pytest.raises(DataIntegrityError, match=f"b.bin.*{says}"):
        _formats.read_cifar_batch(tmp_path / "b.bin")


def test_tar_gives_plain_files_by_base_name(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("deep/down/x.bin")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"abc"))
        link = tarfile.TarInfo("y.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
    with _formats.open_tar(tmp_path / "a.tar.gz") as files:
        assert {name: file.read() for name, file in files.items()} == {"x.bin": b"abc"}
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]


def test_broken_tar(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(b"no archive")
    with (
        pytest.raises(DataIntegrityError, match=r"a\.tar\.gz cannot be unpacked"),
        _formats.open_tar(tmp_path / "a.tar.gz"),
    ):
        pass


# --- sheets -------------------------------------------------------------------------


def save_png(path, array, mode="RGB"):
    image_module = pytest.importorskip("PIL.Image")
    image_module.fromarray(array).convert(mode).save(path)
    return path


def test_a_pixel_row_of_a_sheet_is_an_image(tmp_path):
    sheet = np.zeros((2, 1024, 3), dtype=np.uint8)
    sheet[1, 33] = [1, 2, 3]
    images = _formats.read_sheet(save_png(tmp_path / "s.png", sheet))
    assert images.shape == (2, 32, 32, 3)
    assert images[1, 1, 1].tolist() == [1, 2, 3]
    assert images.sum() == 6


@pytest.mark.parametrize(("mode", "width"), [("L", 1024), ("RGBA", 1024), ("RGB", 32)])
def test_other_pictures_are_not_sheets(tmp_path, mode, width):
    path = save_png(tmp_path / "s.png", np.zeros((2, width, 3), np.uint8), mode)
    with pytest.raises(DataIntegrityError, match=rf"s.png .*got {mode} and {width}"):
        _formats.read_sheet(path)


def test_a_truncated_sheet_is_refused(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (4, 1024, 3), dtype=np.uint8)
    path = save_png(tmp_path / "s.png", noise)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(DataIntegrityError, match=r"s\.png cannot be decoded"):
        _formats.read_sheet(path)


def test_sheets_without_pillow_give_the_pip_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'denspu\[data\]'"):
        _formats.read_sheet(tmp_path / "s.png")


@pytest.mark.parametrize("text", ["[1, 2", '{"a": 1}', "[1, 10]", '["1"]', "[1.5]"])
def test_label_lists_are_strict(tmp_path, text):
    (tmp_path / "labels.json").write_text(text)
    with pytest.raises(DataIntegrityError, match=r"labels\.json is not"):
        _formats.read_label_list(tmp_path / "labels.json")


def test_label_list(tmp_path):
    (tmp_path / "labels.json").write_text("[3, 0, 9]")
    labels = _formats.read_label_list(tmp_path / "labels.json")
    assert labels.tolist() == [3, 0, 9]
    assert labels.dtype == np.uint8
