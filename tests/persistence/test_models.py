"""Models saved by earlier code load, and answer as they did.

Together the models in ``models/`` name every class that a model may hold. A module that
moves needs a line in ``allowed.MOVED``.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.persistence.saved_models import answers, environment, read_rows

from denspu import load, save
from denspu._registry import registry
from denspu.persistence.allowed import NAMED, current, find

MODELS = Path(__file__).parent / "models"
NAMES = ("classical", "deep", "walk", "parts", "estimators")
HERE = json.loads((MODELS / "environment.json").read_text("utf-8")) == environment()
"""Do these versions and this processor give the last bits of the answers?"""

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def rows():
    pytest.importorskip("pandas")
    found = read_rows(MODELS / "rows.npz")
    return {**found, "column": found["table"][:, 0]}


@pytest.mark.parametrize("name", NAMES)
def test_they_answer_as_when_they_were_saved(name, rows, tmp_path):
    model = load(MODELS / name)
    with np.load(MODELS / f"{name}.npz") as held:
        expected = {key: held[key] for key in held.files}
    again = load(save(model, tmp_path / "model"))
    for loaded in (model, again):
        things = dict(loaded.transformer_list)
        kinds = {key.split("/")[0]: key.split("/")[1] for key in expected}
        assert len(kinds) > 5
        for thing, kind in kinds.items():
            found = answers(things[thing], rows[kind])
            assert found, thing
            for asked, answer in found.items():
                then = expected[f"{thing}/{kind}/{asked}"]
                if HERE:
                    assert answer.tobytes() == then.tobytes(), (thing, asked)
                else:
                    np.testing.assert_allclose(answer, then, rtol=1e-5, atol=1e-5)
    settings = [re.sub("0x[0-9A-F]+", "", repr(m.get_params())) for m in (model, again)]
    assert settings[0] == settings[1]


def test_they_name_every_class_that_a_model_may_hold():
    texts = [(MODELS / name / "config.json").read_text("utf-8") for name in NAMES]
    held = set(re.findall(r'"object": "([^"]+)"', "".join(texts)))
    assert not [name for name in held if find(name) is None]
    assert not NAMED - {current(name) for name in held}
    for entry in registry():  # those made since then, too
        cls = entry.load()
        known = entry.target if entry.target in NAMED else None
        assert find(known or f"{cls.__module__}:{cls.__qualname__}") is cls, entry.key


def test_a_setting_that_is_newer_than_a_model_has_its_default(tmp_path):
    shutil.copytree(MODELS / "walk", tmp_path / "walk")
    model = dict(load(tmp_path / "walk").transformer_list)["embedding"]
    tolerance = model.refiner_.tolerance
    del model.prior, model.refiner_.tolerance
    again = load(save(model, tmp_path / "model"))
    assert (again.prior, again.refiner_.tolerance) == ("estimate", tolerance)
    assert "DensPU(" in repr(again)
