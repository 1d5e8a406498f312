"""Files and folders are put in place whole, or not at all."""

from __future__ import annotations

import json

import pytest

from denspu import _files


def put(path, content, overwrite=True):
    with _files.new_file(path, overwrite=overwrite) as work:
        work.write_bytes(content)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fail_in(writer):
    with writer as work:
        (work / "file" if work.is_dir() else work).write_bytes(b"half")
        raise RuntimeError


def test_files_take_their_place_whole(tmp_path):
    target = tmp_path / "a.json"
    put(target, _files.as_json({"one": 1}))
    _files.write_text(tmp_path / "b.txt", "a\r\nb")
    assert json.loads(target.read_bytes()) == {"one": 1}
    assert (tmp_path / "b.txt").read_bytes() == b"a\r\nb"
    with pytest.raises(FileExistsError):
        put(target, b"other", overwrite=False)
    with pytest.raises(RuntimeError):
        fail_in(_files.new_file(target))
    assert json.loads(target.read_bytes()) == {"one": 1}
    assert names(tmp_path) == ["a.json", "b.txt"]


def test_no_name_is_taken_over_where_there_are_no_links(tmp_path, monkeypatch):
    def no_links(*names):
        raise PermissionError

    monkeypatch.setattr(_files.os, "link", no_links)
    put(tmp_path / "a", b"1", overwrite=False)
    with pytest.raises(FileExistsError):
        put(tmp_path / "a", b"2", overwrite=False)
    assert (tmp_path / "a").read_bytes() == b"1"


@pytest.mark.parametrize("swaps", [True, False])
def test_a_folder_is_replaced_in_one_step(tmp_path, monkeypatch, swaps):
    if not swaps:
        monkeypatch.setattr(_files, "_exchange", lambda *names: False)
    target = tmp_path / "deep" / "er" / "folder"
    for text in ("old", "new"):
        with _files.new_folder(target, overwrite=text == "new") as work:
            (work / "inside").mkdir()
            (work / "inside" / "file").write_text(text)
    assert (target / "inside" / "file").read_text() == "new"
    assert names(target.parent) == ["folder"]


def test_a_folder_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "_exchange", lambda *names: False)
    with pytest.raises(RuntimeError):
        fail_in(_files.new_folder(tmp_path / "a" / "b"))
    assert names(tmp_path) == []
    with _files.new_folder(tmp_path / "a") as work:
        (work / "file").write_text("old")
    moved, rename = [], _files.os.rename

    def breaks(one, other):
        moved.append(one)
        if len(moved) == 2:
            raise OSError("disk")
        rename(one, other)

    monkeypatch.setattr(_files.os, "rename", breaks)
    with (
        pytest.raises(OSError, match="disk"),
        _files.new_folder(tmp_path / "a", overwrite=True) as work,
    ):
        (work / "file").write_text("new")
    assert (tmp_path / "a" / "file").read_text() == "old"
    assert names(tmp_path) == ["a"]
