"""A run that was cut off goes on, to the same end."""

from __future__ import annotations

import errno

import numpy as np
import pytest
from sklearn.datasets import load_digits

import denspu
from denspu.encoders import ContrastiveEncoder
from denspu.exceptions import ModelFileError, RunFolderError
from denspu.methods.elkan_noto import ElkanNoto
from denspu.runs import RunOptions, fit_run, folder, resume
from denspu.runs.resume import WorkFolder
from denspu.training import Checkpoint

Image = pytest.importorskip("PIL.Image")


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


def options(folders, out, **changes):
    settings = {"encoder": ContrastiveEncoder(epochs=20, image_size=8)}
    usual = {"positive": folders / "p", "unlabeled": folders / "u", "device": "cpu"}
    usual["method"] = "elkan_noto"
    return RunOptions(**{**usual, "out": out, "settings": settings, **changes})


@pytest.fixture(scope="module")
def straight(folders, tmp_path_factory):
    """The run that nothing interrupts."""
    out = tmp_path_factory.mktemp("straight") / "run"
    fit_run(options(folders, out))
    return out


def interrupted(monkeypatch, wanted, owner, name, after):
    """Run until a method has been called, then press Ctrl-C."""
    original = getattr(owner, name)

    def cut(self, *args, **named):
        if not after:
            raise KeyboardInterrupt
        original(self, *args, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, cut)
        with pytest.raises(KeyboardInterrupt):
            fit_run(wanted)


def same(one, other):
    return (one / "scores.csv").read_bytes() == (other / "scores.csv").read_bytes()


def test_training_goes_on_from_its_checkpoint(folders, straight, tmp_path, monkeypatch):
    wanted = options(folders, tmp_path / "run")
    interrupted(monkeypatch, wanted, Checkpoint, "save", after=True)
    work = WorkFolder(wanted.target)
    assert work.useful
    assert not (tmp_path / "run").exists()
    told, starts = [], []
    load = Checkpoint.load

    def watched(self, *args):
        found = load(self, *args)
        starts.append(found[0])
        return found

    monkeypatch.setattr(Checkpoint, "load", watched)
    fit_run(wanted, tell=lambda word, _: told.append(word))
    assert starts == [10]
    assert "resuming" in told
    assert same(tmp_path / "run", straight)
    assert not work.path.exists()


def test_a_trained_encoder_is_not_trained_again(
    folders, straight, tmp_path, monkeypatch
):
    wanted = options(folders, tmp_path / "run")
    interrupted(monkeypatch, wanted, ElkanNoto, "_learn", after=False)
    assert (tmp_path / "run.part" / "encoder" / "manifest.json").is_file()

    def never(self, *args):
        raise AssertionError("trained again")

    monkeypatch.setattr(Checkpoint, "save", never)
    fit_run(wanted)
    assert same(tmp_path / "run", straight)


def test_the_saved_model_knows_nothing_of_it(straight):
    model = denspu.load(straight / "model")
    assert type(model.encoder_) is ContrastiveEncoder
    assert model.encoder_.checkpoint is None
    assert model.encoder.checkpoint is None


def test_another_run_starts_anew(folders, tmp_path, monkeypatch):
    wanted = options(folders, tmp_path / "run")
    interrupted(monkeypatch, wanted, Checkpoint, "save", after=True)
    told, starts = {}, []
    load = Checkpoint.load

    def watched(self, *args):
        found = load(self, *args)
        starts.append(found[0])
        return found

    monkeypatch.setattr(Checkpoint, "load", watched)
    fit_run(
        options(folders, tmp_path / "run", seed=1),
        tell=lambda word, sentence: told.update({word: sentence}),
    )
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
    """What was half written is gone, so that no second try goes on from it."""

    def half(self, *args, **named):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.with_suffix(".1.part").write_bytes(b"half")
        full()

    monkeypatch.setattr(Checkpoint, "save", half)
    with pytest.raises(RunFolderError, match=r"run\.part could not.*No space left"):
        fit_run(options(folders, tmp_path / "run"))
    assert not list(tmp_path.iterdir())


def test_an_encoder_that_cannot_be_kept_does_not_end_the_run(
    folders, straight, tmp_path, monkeypatch
):
    def refuse(*args, **named):
        raise ModelFileError("could not be written")

    monkeypatch.setattr(resume, "save", refuse)
    fit_run(options(folders, tmp_path / "run"))
    assert same(tmp_path / "run", straight)


def test_what_a_full_disk_leaves_is_named(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "write_parquet", full)
    with pytest.raises(RunFolderError, match=r"kept in .*run\.part") as caught:
        fit_run(options(folders, tmp_path / "run"))
    assert "Nothing was left" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["run.part"]
