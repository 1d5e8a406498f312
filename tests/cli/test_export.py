"""``denspu export``: a saved model becomes a file, errors are one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from denspu import make, save
from denspu.cli.app import app
from denspu.exceptions import InvalidParameterError

RUN = CliRunner()


@pytest.fixture
def saved(blobs, tmp_path):
    model = make("elkan_noto", estimator="logistic", random_state=0, device="cpu")
    model.fit(blobs.X, blobs.y)
    return model, save(model, tmp_path / "model")


def test_a_saved_model_becomes_a_file_that_answers_alike(saved, blobs, tmp_path):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name, reason="pip install 'denspu[onnx]'")
    from denspu.persistence.onnx import session

    model, folder = saved
    rows, file = tmp_path / "rows.npy", tmp_path / "m.onnx"
    np.save(rows, blobs.X.astype(np.float32))
    words = ["export", "--model", str(folder), "--onnx", str(file), "--rows", str(rows)]
    result = RUN.invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert "140 given rows compared with the model: largest difference" in result.output
    score, _, decision = session(file)(blobs.X.astype(np.float32))
    np.testing.assert_allclose(score, model.decision_function(blobs.X), atol=1e-4)
    assert decision.tolist() == model.predict(blobs.X).tolist()


def test_rows_that_are_no_array_are_named(saved, tmp_path):
    pytest.importorskip("onnxruntime", reason="pip install 'denspu[onnx]'")
    rows = tmp_path / "rows.npy"
    rows.write_text("not an array")
    words = ["export", "--model", str(saved[1]), "--onnx", str(tmp_path / "m.onnx")]
    with pytest.raises(InvalidParameterError, match=r"rows\.npy cannot be read"):
        RUN.invoke(app, [*words, "--rows", str(rows)], catch_exceptions=False)
    assert not (tmp_path / "m.onnx").exists()
