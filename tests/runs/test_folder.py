"""The run folder is whole or not there, and an older one is safe."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

from denspu.exceptions import ModelFileError, RunFolderError
from denspu.persistence import save
from denspu.runs import RunOptions, fit_run, read_input
from denspu.runs.folder import check_out


def options(top, **changes):
    rng = np.random.default_rng(0)
    np.save(top / "p.npy", rng.normal(2, 1, (30, 3)))
    np.save(top / "u.npy", rng.normal(0, 2, (60, 3)))
    usual = {"method": "elkan_noto", "out": top / "run", "device": "cpu"}
    pair = {"positive": top / "p.npy", "unlabeled": top / "u.npy"}
    return RunOptions(**{**usual, **pair, **changes})


def names(folder):
    return sorted(p.name for p in folder.iterdir())


BEFORE = ["p.npy", "u.npy"]


def test_a_run_is_not_replaced_unasked(tmp_path):
    wanted = options(tmp_path)
    fit_run(wanted)
    first = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(RunFolderError, match="--overwrite"):
        fit_run(wanted)
    assert (tmp_path / "run" / "run.json").read_bytes() == first
    fit_run(options(tmp_path, overwrite=True, seed=1))
    assert (tmp_path / "run" / "run.json").read_bytes() != first
    assert names(tmp_path) == [*BEFORE[:1], "run", *BEFORE[1:]]


@pytest.mark.parametrize("held", [["run.json", "mine.txt"], ["scores.csv"]])
def test_overwrite_never_deletes_other_things(tmp_path, held):
    for name in held:
        (tmp_path / name).write_text("x")
    with pytest.raises(RunFolderError, match="holds more than a run"):
        check_out(tmp_path, overwrite=True)
    assert names(tmp_path) == sorted(held)


def test_a_place_that_cannot_be_written_is_told_before_reading(tmp_path):
    (tmp_path / "file").write_text("x")
    told = []
    with pytest.raises(RunFolderError, match="Choose another --out"):
        fit_run(
            options(tmp_path, out=tmp_path / "file" / "run"),
            tell=lambda word, sentence: told.append(word),
        )
    assert told == []


@pytest.mark.parametrize(
    ("code", "older"),
    [(errno.ENOSPC, False), (errno.EIO, True)],
    ids=["full", "broken"],
)
def test_an_error_while_writing_leaves_nothing(tmp_path, code, older):
    if older:
        fit_run(options(tmp_path))
        first = (tmp_path / "run" / "run.json").read_bytes()

    def report(path, facts, rows):
        path.write_text("half")
        raise OSError(code, os.strerror(code))

    with pytest.raises(RunFolderError) as error:
        fit_run(options(tmp_path, overwrite=older, seed=1), report=report)
    full = code == errno.ENOSPC
    assert ("the disk is full" in str(error.value)) == full
    if older:
        assert (tmp_path / "run" / "run.json").read_bytes() == first
    assert names(tmp_path) == (["p.npy", "run", "u.npy"] if older else BEFORE)


def test_a_model_without_a_way_of_reading_is_named(tmp_path):
    from denspu import make

    X = np.random.default_rng(0).normal(size=(20, 2))
    model = make("one_class", prior=0.5).fit(X, [1] * 8 + [0] * 12)
    save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"without input\.json"):
        read_input(tmp_path / "model")
