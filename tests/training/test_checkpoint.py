"""A training that was cut off ends as if it had not been."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from denspu._random import Randomness
from denspu.exceptions import DensPUError, DensPUWarning
from denspu.training import (
    Checkpoint,
    Hook,
    Plateau,
    Step,
    TensorBatches,
    TrainingConfig,
    train,
)

CPU = torch.device("cpu")
CONFIG = TrainingConfig(epochs=6, lr=0.02, schedule="cosine", ema_decay=0.9)
RNG = np.random.default_rng(0)
X = torch.tensor(RNG.normal(size=(20, 3)), dtype=torch.float32)
Y = X.sum(1, keepdim=True)


class PulledPlugError(Exception):
    pass


class PullThePlug(Hook):
    """End the training after so many epochs by an exception."""

    def __init__(self, after):
        self.after = after

    def on_epoch_start(self, state):
        if state.epoch == self.after:
            raise PulledPlugError


def network(width=8):
    """Return a net with random numbers in each step and with running statistics."""
    return nn.Sequential(
        nn.Linear(3, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(width, 1),
    )


def squared_error(module, batch):
    return ((module(batch[0]) - batch[1]) ** 2).mean()


def run(folder=None, *, every=1, config=CONFIG, hooks=(), make=network, steps=None):
    with Randomness(0).torch_scope("run", CPU):
        module = make()
        history = train(
            module,
            TensorBatches(X, Y, batch_size=6),
            steps or squared_error,
            config,
            device=CPU,
            generator=torch.Generator().manual_seed(5),
            hooks=hooks,
            checkpoint=None if folder is None else Checkpoint(folder, every),
        )
    return module, history


def cut_off(folder, after, **settings):
    with pytest.raises(PulledPlugError):
        run(folder, hooks=[PullThePlug(after)], **settings)


def assert_same(one, two):
    for (name, a), b in zip(
        one[0].state_dict().items(), two[0].state_dict().values(), strict=True
    ):
        assert torch.equal(a, b), name
    for column in ("epoch", "loss", "lr"):
        assert one[1].column(column) == two[1].column(column)
    assert one[1].stopped == two[1].stopped


@pytest.mark.parametrize(("optimizer", "ema_decay"), [("adam", 0.9), ("sgd", None)])
def test_resumed_equals_uninterrupted(tmp_path, optimizer, ema_decay):
    config = TrainingConfig(
        epochs=6,
        optimizer=optimizer,
        lr=0.02,
        momentum=0.9 if optimizer == "sgd" else 0.0,
        schedule="cosine",
        warmup_epochs=1,
        ema_decay=ema_decay,
    )
    folder = tmp_path / "made" / "on the way"
    cut_off(folder, 4, config=config)
    names = {"training.safetensors", "training.before.safetensors"}
    assert {path.name for path in folder.iterdir()} == names
    assert_same(run(folder, config=config), run(config=config))
    assert not list(folder.iterdir())


def test_a_checkpoint_changes_nothing(tmp_path):
    assert_same(run(tmp_path), run())


def test_epochs_since_the_last_writing_are_done_again(tmp_path):
    starts = []

    class Note(Hook):
        def on_epoch_start(self, state):
            starts.append((state.epoch, state.step))

    cut_off(tmp_path, 5, every=2)
    resumed = run(tmp_path, every=2, hooks=[Note()])
    assert starts == [(4, 16), (5, 20)]
    assert_same(resumed, run())


def test_several_steps_keep_their_own_memory(tmp_path):
    steps = [
        Step(squared_error, lambda m: m[0].parameters()),
        Step(squared_error, lambda m: m[4].parameters()),
    ]
    cut_off(tmp_path, 3, steps=steps)
    assert_same(run(tmp_path, steps=steps), run(steps=steps))


def test_a_plateau_is_remembered(tmp_path):
    config = TrainingConfig(epochs=9, lr=1e-12, plateau=Plateau(4, 0.5))
    whole = run(config=config)
    assert len(whole[1]) < 9
    cut_off(tmp_path, 3, config=config)
    assert_same(run(tmp_path, config=config), whole)


@pytest.mark.parametrize("which", ["newest", "both", "gone"])
def test_a_damaged_one_falls_back_to_the_one_before(tmp_path, which):
    cut_off(tmp_path, 3)
    for name in ("training.safetensors", "training.before.safetensors"):
        path = tmp_path / name
        content = bytearray(path.read_bytes())
        content[-9] ^= 1
        path.write_bytes(content)
        if which != "both":
            break
    starts = []

    class Note(Hook):
        def on_epoch_start(self, state):
            starts.append(state.epoch)

    if which == "gone":  # killed between the two renames
        path.unlink()
        resumed = run(tmp_path, hooks=[Note()])
    else:
        said = "begins anew" if which == "both" else "one before is taken"
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            resumed = run(tmp_path, hooks=[Note()])
        assert said in str(told[-1].message)
        assert told[-1].category is DensPUWarning
    assert starts[0] == (0 if which == "both" else 2)
    assert_same(resumed, run())


def test_one_of_earlier_code_has_no_sum(tmp_path):
    cut_off(tmp_path, 3)
    path = tmp_path / "training.safetensors"
    with safe_open(path, framework="pt") as file:
        about = {"denspu": file.metadata()["denspu"]}
    save_file(load_file(path), path, metadata=about)
    assert_same(run(tmp_path), run())


def test_writing_is_whole_or_not_at_all(tmp_path, monkeypatch):
    """A disk that fills up while writing leaves the last whole state."""
    cut_off(tmp_path, 3)
    before = (tmp_path / "training.safetensors").read_bytes()

    def full(tensors, path, metadata):
        path.write_bytes(b"half")
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("denspu.training.hooks.save_file", full)
        with pytest.raises(OSError, match="disk full"):
            run(tmp_path)
    assert (tmp_path / "training.safetensors").read_bytes() == before
    assert_same(run(tmp_path), run())


@pytest.mark.parametrize(
    "other",
    [
        {"config": TrainingConfig(epochs=7, lr=0.02, schedule="cosine", ema_decay=0.9)},
        {"make": lambda: network(width=9)},
    ],
)
def test_another_training_is_refused(tmp_path, other):
    cut_off(tmp_path, 3)
    before = (tmp_path / "training.safetensors").read_bytes()
    with pytest.raises(DensPUError, match="belongs to another training"):
        run(tmp_path, **other)
    assert (tmp_path / "training.safetensors").read_bytes() == before


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    def keep(identity, hooks=()):
        with Randomness(0).torch_scope("run", CPU):
            train(
                network(),
                TensorBatches(X, Y, batch_size=6),
                squared_error,
                CONFIG,
                device=CPU,
                generator=Randomness(0).generator("batches"),
                hooks=hooks,
                checkpoint=Checkpoint(tmp_path, 1, identity),
            )

    with pytest.raises(PulledPlugError):
        keep("one", hooks=[PullThePlug(3)])
    with pytest.raises(DensPUError, match="data or random_state"):
        keep("two")
    keep("one")
