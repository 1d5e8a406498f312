"""Methods that hold rows out: what is not learned from, and what is kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from denspu import make_pu
from denspu.methods._deep import PULoss, Task
from denspu.methods.apu import APU
from denspu.methods.pubn import PUbN
from denspu.training import KeepBest

METHODS = {
    "pubn": PUbN,
    "pubn, known": PUbN,
    "purr": lambda **s: APU(variant="purr", **s),
    "wuu": lambda **s: APU(variant="wuu", **s),
    "apnu": lambda **s: APU(variant="apnu", **s),
}
pytestmark = pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")


@pytest.fixture(scope="module")
def pu():
    rng = np.random.default_rng(10)
    truth = (np.arange(240) % 2 == 0).astype(int)
    X = rng.normal(size=(240, 4)) + 0.7 * (2 * truth - 1)[:, None]
    return make_pu(X, truth, n_labeled=0.3, random_state=10)


def fit(name, pu, **settings):
    usual = {"prior": 0.5, "network": "mlp", "epochs": 25, "lr": 3e-3}
    usual |= {"random_state": 10, "device": "cpu", "validation": 0.25}
    model = METHODS[name](**{**usual, **settings})
    known = np.zeros(240, dtype=bool)
    if name == "pubn, known":
        known[np.flatnonzero(pu.oracle.labels == 0)[:20]] = True
    return model.fit(pu.X, pu.y, known_negative=known if known.any() else None)


@pytest.fixture
def watched(monkeypatch):
    """Note the split, the row numbers of training steps, and every measure."""
    noted = {"rows": set(), "splits": [], "measures": []}
    real_split = Task.split_off

    def split_off(*args):
        noted["splits"].append(real_split(*args))
        return noted["splits"][-1]

    monkeypatch.setattr(Task, "split_off", split_off)
    real = PULoss.__call__

    def call(self, module, batch):
        noted["rows"].update(torch.cat(batch[len(batch) // 2 :]).tolist())
        return real(self, module, batch)

    monkeypatch.setattr(PULoss, "__call__", call)
    start = KeepBest.__init__

    def init(self, measure):
        noted["measures"].append(measure)
        start(self, measure)

    monkeypatch.setattr(KeepBest, "__init__", init)
    return noted


@pytest.mark.parametrize("name", METHODS)
def test_held_out_rows_choose_the_epoch_and_are_not_learned_from(name, pu, watched):
    model = fit(name, pu, epochs=30, lr=0.01, batch_size=60)
    [(_, sets)] = watched["splits"]
    held = set(np.concatenate(sets).tolist())
    assert 40 < len(held) < 80
    assert not held & watched["rows"]
    assert len(held | watched["rows"]) > 220  # incomplete batches are left out
    losses = model.history_.column("held_out")
    assert len(losses) == 30
    last = watched["measures"][-1]
    assert last(model.module_) == pytest.approx(min(losses), abs=1e-5)
    networks = 1 if name == "purr" else 2
    assert len(watched["measures"]) == networks
    if networks == 2:
        assert "held_out" in model.first_history_.last
    hidden = pu.y == 0
    scores = model.decision_function(pu.X[hidden])
    assert roc_auc_score(pu.oracle.labels[hidden], scores) > 0.85


def test_a_single_known_negative_is_learned_from(pu):
    known = np.zeros(240, dtype=bool)
    known[np.flatnonzero(pu.oracle.labels == 0)[0]] = True
    model = PUbN(prior=0.5, epochs=2, validation=0.25, device="cpu", random_state=10)
    model.fit(pu.X, pu.y, known_negative=known)
    assert "held_out" not in model.history_.last
