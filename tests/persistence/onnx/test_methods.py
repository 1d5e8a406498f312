"""Every method has a torch twin that answers as it does, or the reason in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.persistence.onnx.twins import (
    NEAR,
    QUIET,
    SETS,
    assert_twin,
    colours,
    twin_answers,
)
from tests.small import METHODS, small

from denspu import DensPU
from denspu._registry import registry
from denspu.classifiers import VGG16Classifier
from denspu.encoders import CAEEncoder
from denspu.exceptions import ModelFileError
from denspu.persistence.onnx.answers import answers_twin
from denspu.persistence.onnx.inputs import input_spec

pytestmark = QUIET
PAGE = Path(__file__).parents[3] / "docs" / "export.md"


def cells():
    """Return what the docs say of each method and kind of rows."""
    text = PAGE.read_text(encoding="utf-8")
    rows = re.search(r"<!-- table: export -->\n(.*?)<!-- end table", text, re.DOTALL)
    lines = [line.strip("| ").split(" | ") for line in rows[1].splitlines()[2:]]
    return {
        (cell[0].strip("`"), kind): cell[i + 1]
        for cell in lines
        for i, kind in enumerate(SETS)
    }


def test_the_docs_have_a_cell_for_every_method():
    assert set(cells()) == {(key, kind) for key in METHODS for kind in SETS}


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("key", METHODS)
def test_every_method_has_the_twin_the_docs_say(key, kind):
    pu = SETS[kind]()
    model = small(key, random_state=0).fit(pu.X, pu.y)
    said = cells()[key, kind]
    if said.startswith("no: "):
        with pytest.raises(ModelFileError, match=re.escape(said[4:40])):
            answers_twin(model, input_spec(model, pu.X).dtype)
        return
    assert float(said) < 1e-3
    assert_twin(model, pu.X)


def test_texts_are_refused_with_the_reason():
    texts = ["red apple", "green apple", "blue sea", "deep sea"] * 10
    model = small("nnpu", random_state=0).fit(texts, [1, 0, 0, 0] * 10)
    with pytest.raises(ModelFileError, match=r"NNPU cannot .* takes texts"):
        answers_twin(model, "float64")


def test_the_papers_ending():
    X, y = (part[8:24] for part in colours())
    model = DensPU(
        preset="paper",
        encoder=CAEEncoder(epochs=1),
        detector=make_forest(),
        classifier=VGG16Classifier(epochs=1),
        random_state=0,
        device="cpu",
    )
    score = twin_answers(model.fit(X, y), X[:4], input_spec(model, X))[0]
    np.testing.assert_allclose(score, model.decision_function(X[:4]), atol=NEAR)
    model.set_params(encoder=CAEEncoder(epochs=1), classifier="logistic")
    assert_twin(model.fit(X, y), X)


def make_forest():
    return registry().get("isolation_forest", "detector").build(n_estimators=5)
