"""A model as an ONNX file: same answers, whole files, refusals with the reason."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from denspu import make, make_pu
from denspu.detectors import Mahalanobis
from denspu.exceptions import InvalidParameterError, ModelFileError
from denspu.persistence.onnx import export_onnx, session
from denspu.persistence.onnx.twins import Answers
from denspu.refinement import EmbeddingRefiner

pytestmark = pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")


@cache
def table():
    rng = np.random.default_rng(0)
    y = (np.arange(160) % 2 == 0).astype(int)
    X = rng.normal(size=(160, 6)) * [1, 2, 3, 50, 1, 1] + 4
    X[:, :3] += 1.5 * (2 * y - 1)[:, None]
    return make_pu(X, y, n_labeled=0.4, random_state=0)


def needs_onnx():
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name, reason="pip install 'denspu[onnx]'")


@pytest.fixture(scope="module")
def fitted():
    refiner = EmbeddingRefiner(rounds=0, folds=2, n_bags=1)
    model = make("dens_pu", refiner=refiner, random_state=0, device="cpu")
    model.fit(table().X, table().y, holdout=0.3)
    return model.set_threshold(recall=0.8).calibrate()


@pytest.fixture(scope="module")
def short():
    model = make("nnpu", prior=0.5, network="linear", epochs=1, random_state=0)
    return model.set_params(device="cpu").fit(table().X, table().y)


@pytest.fixture(scope="module")
def written(fitted, tmp_path_factory):
    needs_onnx()
    path = tmp_path_factory.mktemp("onnx") / "m.onnx"
    return path, export_onnx(fitted, path, sample=table().X)


def test_the_file_answers_as_the_model_with_threshold_and_calibration(fitted, written):
    assert fitted.threshold_ != 0
    X = np.random.default_rng(1).normal(4, 2, size=(37, 6))
    score, probability, decision = session(written[0])(X)
    np.testing.assert_allclose(score, fitted.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(probability, fitted.predict_proba(X)[:, 1], atol=1e-9)
    assert decision.tolist() == fitted.predict(X).tolist()
    assert 0 < decision.mean() < 1


def test_one_row_and_many_are_answered_alike(written):
    run, X = session(written[0]), table().X[:37]
    together = run(X)
    for i in range(0, 37, 9):
        for whole, alone in zip(together, run(X[i : i + 1]), strict=True):
            np.testing.assert_allclose(alone, whole[i : i + 1], rtol=1e-12)


def test_the_metadata_tell_what_was_seen(fitted, written):
    import onnx

    path, found = written
    facts = {p.key: p.value for p in onnx.load(path).metadata_props}
    assert json.loads(facts["score_difference"]) == found.score_difference < 1e-9
    assert json.loads(facts["threshold"]) == fitted.threshold_
    assert json.loads(facts["rows_compared"]) == found.rows == 160
    assert (facts["rows"], facts["calibrated"]) == ("given", "true")
    assert path.stat().st_size == found.n_bytes
    assert [p.name for p in path.parent.iterdir()] == ["m.onnx"]


def test_a_graph_that_differs_is_refused_and_leaves_nothing(
    short, tmp_path, monkeypatch
):
    needs_onnx()
    real = Answers.forward

    def off(self, rows):
        score, probability, decision = real(self, rows)
        return score + 0.01, probability, decision

    monkeypatch.setattr(Answers, "forward", off)
    with pytest.raises(ModelFileError, match=r"score differs by up to 1\.00e-02"):
        export_onnx(short, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_a_graph_that_decides_otherwise_is_refused(short, tmp_path, monkeypatch):
    needs_onnx()
    real = Answers.forward

    def off(self, rows):
        score, probability, decision = real(self, rows)
        return score, probability, 1 - decision

    monkeypatch.setattr(Answers, "forward", off)
    with pytest.raises(ModelFileError, match="decides otherwise"):
        export_onnx(short, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


class Strange(nn.Module):
    """A network with an operation that ONNX lacks."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(6, 1)

    def forward(self, x):
        return self.line(torch.special.bessel_j0(x))


def test_a_network_that_torch_cannot_export_is_refused(tmp_path):
    needs_onnx()
    model = make("nnpu", prior=0.5, network=Strange(), epochs=1, device="cpu")
    model.fit(table().X, table().y)
    with pytest.raises(ModelFileError, match="NNPU cannot be exported"):
        export_onnx(model, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_kept_unless_asked(short, tmp_path):
    needs_onnx()
    path = tmp_path / "m.onnx"
    path.write_text("mine")
    with pytest.raises(ModelFileError, match="exists already"):
        export_onnx(short, path)
    assert path.read_text() == "mine"
    with pytest.raises(ModelFileError, match="is a folder"):
        export_onnx(short, tmp_path, overwrite=True)
    with pytest.raises(ModelFileError, match="does not exist"):
        export_onnx(short, tmp_path / "no" / "m.onnx")


def test_bad_arguments_are_named(short, tmp_path):
    needs_onnx()
    path = tmp_path / "m.onnx"
    with pytest.raises(InvalidParameterError, match=r"opset must be .* Got 7"):
        export_onnx(short, path, opset=7)
    with pytest.raises(InvalidParameterError, match=r"tolerance must be .* Got 0"):
        export_onnx(short, path, tolerance=0)
    with pytest.raises(InvalidParameterError, match="not a PU method"):
        export_onnx(Mahalanobis(), path)
    with pytest.raises(InvalidParameterError, match=r"rows of shape \(6,\)"):
        export_onnx(short, path, sample=np.zeros((3, 5)))
    assert not list(tmp_path.iterdir())
