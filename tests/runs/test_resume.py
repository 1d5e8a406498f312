"""A run that was cut off goes on, to the same end."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

import denspu
from denspu.cli.app import app
from denspu.data import join, read_pair
from denspu.encoders import ContrastiveEncoder
from denspu.exceptions import InvalidParameterError, ModelFileError, RunFolderError
from denspu.runs import RunOptions, fit_run, folder
from denspu.training import Checkpoint

Image = pytest.importorskip("PIL.Image")

PARTS = {"detector": "isolation_forest", "checks": 1, "refiner": None}
PARTS |= {"classifier": "logistic"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    top = tmp_path_factory.mktemp("images")
    digits = load_digits()
    rng = np.random.default_rng(0)
    threes = np.flatnonzero(digits.target == 3)[:30]
    others = rng.permutation(np.flatnonzero(digits.target != 3))[:50]
    for name, rows in (("p", threes[:20]), ("u", [*threes[20:], *others])):
        (top / name).mkdir()
        for i in rows:
            picture = (digits.images[i] * 15.9).astype(np.uint8)
            Image.fromarray(picture).save(top / name / f"{i}.png")
    return top


def encoder():
    return ContrastiveEncoder(epochs=11, image_size=8)


def options(folders, out, **changes):
    usual = {"positive": folders / "p", "unlabeled": folders / "u", "device": "cpu"}
    usual["settings"] = {"encoder": encoder(), **PARTS}
    return RunOptions(**{**usual, "out": out, **changes})


@pytest.fixture(scope="module")
def straight(folders, tmp_path_factory):
    """The run that nothing interrupts."""
    out = tmp_path_factory.mktemp("straight") / "run"
    fit_run(options(folders, out))
    return out


def after_the_encoder(monkeypatch, wanted):
    """Press Ctrl-C when the encoder has been trained."""

    def stop(*args, **named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("denspu.methods.dens_pu.bound", stop)
        with pytest.raises(KeyboardInterrupt):
            fit_run(wanted)


def goes_on(monkeypatch, wanted):
    """Return what is told, and the epochs that were done before each training."""
    told, starts = {}, []
    load = Checkpoint.load

    def watched(self, *args):
        found = load(self, *args)
        starts.append(found[0])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "load", watched)
        fit_run(wanted, tell=lambda word, sentence: told.update({word: sentence}))
    return told, starts


def same(one, other):
    return (one / "scores.csv").read_bytes() == (other / "scores.csv").read_bytes()


def test_a_killed_training_goes_on(folders, tmp_path, monkeypatch):
    """The whole command, killed where nothing can tidy up, and the same one again."""
    monkeypatch.chdir(tmp_path)
    for name, n in (("p", 12), ("u", 16)):
        (tmp_path / name).mkdir()
        for path in sorted((folders / name).iterdir())[:n]:
            (tmp_path / name / path.name).write_bytes(path.read_bytes())
    words = "fit --positive p --unlabeled u --out run --method elkan_noto --device cpu"
    words = [*words.split(), "--set", "encoder=contrastive"]
    first = subprocess.Popen(
        [sys.executable, "-m", "denspu", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    ends = time.monotonic() + 60
    while not list(tmp_path.glob("run.part/training/*.safetensors")):
        assert first.poll() is None, "it ended before it was killed"
        assert time.monotonic() < ends, "no training was kept"
        time.sleep(0.01)
    first.kill()
    assert first.wait() == -signal.SIGKILL
    assert not (tmp_path / "run").exists()
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 0, again.output
    assert "resuming  going on" in again.output
    assert len((tmp_path / "run" / "scores.csv").read_text().splitlines()) == 17
    assert not (tmp_path / "run.part").exists()


def test_a_trained_encoder_is_not_trained_again(
    folders, straight, tmp_path, monkeypatch
):
    wanted = options(folders, tmp_path / "run")
    after_the_encoder(monkeypatch, wanted)
    assert goes_on(monkeypatch, wanted)[1] == []
    assert same(tmp_path / "run", straight)
    model = denspu.load(tmp_path / "run" / "model")
    assert type(model.encoder_) is ContrastiveEncoder
    assert model.checkpoint is model.encoder_.checkpoint is None


def test_another_run_starts_anew(folders, tmp_path, monkeypatch):
    wanted = options(folders, tmp_path / "run")
    after_the_encoder(monkeypatch, wanted)
    told, starts = goes_on(monkeypatch, options(folders, tmp_path / "run", seed=1))
    assert starts == [0]
    assert "starting anew" in told["resuming"]


def test_a_folder_of_that_name_that_is_not_ours_is_left_alone(folders, tmp_path):
    (tmp_path / "run.part").mkdir()
    (tmp_path / "run.part" / "mine.txt").write_text("x")
    with pytest.raises(RunFolderError, match="Move it away"):
        fit_run(options(folders, tmp_path / "run"))
    assert (tmp_path / "run.part" / "mine.txt").exists()


def full(*args, **named):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_while_training_is_one_sentence(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "save", full)
    with pytest.raises(RunFolderError, match=r"run\.part could not.*No space left"):
        fit_run(options(folders, tmp_path / "run"))
    assert not list(tmp_path.iterdir())


def test_an_encoder_that_cannot_be_kept_does_not_end_the_run(
    folders, straight, tmp_path, monkeypatch
):
    save = denspu.persistence.save

    def refuse(model, *args, **named):
        if isinstance(model, ContrastiveEncoder):
            raise ModelFileError("could not be written")
        return save(model, *args, **named)

    monkeypatch.setattr("denspu.persistence.save", refuse)
    fit_run(options(folders, tmp_path / "run"))
    assert same(tmp_path / "run", straight)


def test_what_a_full_disk_leaves_is_named(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "parquet_file", full)
    with pytest.raises(RunFolderError, match=r"kept in .*run\.part") as caught:
        fit_run(options(folders, tmp_path / "run"))
    assert "Nothing was left" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["run.part"]


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DegenerateFitWarning")
@pytest.mark.parametrize("method", ["dens_pu", "nnpu"])
def test_a_fit_goes_on_in_python(folders, tmp_path, monkeypatch, method):
    X, y, _ = join(*read_pair(folders / "p", folders / "u"))
    place = tmp_path / "kept"
    settings = {"random_state": 0, "device": "cpu", "checkpoint": place}
    settings |= {"dens_pu": PARTS, "nnpu": {"epochs": 1, "prior": 0.5}}.get(method, {})

    def unfitted():
        return denspu.make(method, encoder=encoder(), **settings)

    first = unfitted().fit(X, y)
    assert first.encoder_.checkpoint is None
    monkeypatch.setattr(Checkpoint, "save", full)  # would fail if it were reached
    again = unfitted().fit(X, y)
    assert np.array_equal(first.decision_function(X), again.decision_function(X))
    with pytest.raises(InvalidParameterError, match="of other rows or settings"):
        unfitted().fit(X[::-1], y[::-1])
    (place / "encoder" / "manifest.json").write_text("{")
    with pytest.raises(RunFolderError, match="No space left"):  # learned again
        unfitted().fit(X, y)
