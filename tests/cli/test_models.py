"""``denspu predict``, ``evaluate`` and ``export`` as a person meets them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from tests.small import small
from typer.testing import CliRunner

from denspu import load, save
from denspu.cli.app import app
from denspu.data import read_items
from denspu.exceptions import DensPUError, DensPUWarning, InvalidParameterError


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    top = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    truth = rng.random(90) < 0.4
    labels = (truth & (rng.random(90) < 0.6)).astype(int)
    x = rng.normal(size=90) + 2 * truth
    rows = [f"{v},{'ab'[i % 2]}" for i, v in enumerate(x)]
    (top / "t.csv").write_text("u,town\n" + "\n".join(rows) + "\n1\n")
    items = read_items(top / "t.csv")
    known = "\n".join(f"{i + 1},{int(t)}" for i, t in enumerate(truth[:80]))
    (top / "labels.csv").write_text(f"item,label\n{known}\n")
    model = small("pu_bagging", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)
        model.fit(items.X, labels, holdout=0.3)
    save(model, top / "model", extra={"input": {"plan": dict(items.plan)}})
    return top


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_answers_and_what_is_said(home, tmp_path):
    out = tmp_path / "a.csv"
    answer = run(
        "predict", "--model", home, home / "t.csv", "--out", out,
        "--threshold", "top=10", "--chunk", 8,
    )  # fmt: skip
    assert answer.exit_code == 0, answer.output
    assert "90 rows · 10 called positive · 1 skipped ·" in answer.output
    assert "a second" in answer.output
    assert "The 10 highest of 90 items" in answer.output
    assert f"wrote     {out}" in answer.output
    assert "a.skipped.csv" in answer.output
    assert out.read_text().startswith("item,score,probability,rank,decision,why\n1,")
    assert (tmp_path / "a.skipped.csv").read_text() == (
        'item,reason\nrow 91,"1 cells, but the header has 2"\n'
    )


def test_json(home, tmp_path):
    out = tmp_path / "a.parquet"
    words = ["predict", "--model", home / "model", home / "t.csv", "--out", out]
    facts = json.loads(run(*words, "--json").stdout)
    assert facts["n_items"] == 90
    assert facts["n_skipped"] == 1
    assert set(facts["seconds"]) == {"load", "read", "score", "total"}
    again = run(*words)
    assert isinstance(again.exception, DensPUError)
    assert "exists already" in str(again.exception)
    assert run(*words, "--overwrite").exit_code == 0


def hears_ctrl_c():
    """Undo what a shell does to jobs in the background: they ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_leaves_nothing_behind(home, tmp_path):
    long = tmp_path / "long.csv"
    long.write_text("u,town\n" + "1,a\n" * 100_000)
    out = tmp_path / "out"
    out.mkdir()
    words = ["--model", home / "model", long, "--out", out / "a.csv", "--chunk", 50]
    process = subprocess.Popen(
        [sys.executable, "-m", "denspu", "predict", *map(str, words)],
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=hears_ctrl_c,
    )
    waited = time.monotonic() + 60
    while not list(out.iterdir()) and time.monotonic() < waited:
        time.sleep(0.05)
    assert list(out.iterdir()), "the run did not begin"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert list(out.iterdir()) == []


def test_reading_that_differs_is_passed_on(home, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("u,town,who\n1,\xe9,x\n", encoding="latin-1")
    words = ["--model", home, new, "--out", tmp_path / "a.csv", "--id-column", "who"]
    assert isinstance(run("predict", *words).exception, DensPUError)
    answer = run("predict", *words, "--encoding", "latin-1")
    assert answer.exit_code == 0, answer.output
    assert (tmp_path / "a.csv").read_text().splitlines()[1].startswith("x,")


def test_evaluate(home):
    words = ["evaluate", "--model", home / "model", home / "t.csv"]
    answer = run(*words)
    assert isinstance(answer.exception, DensPUError)
    assert "--labels FILE" in str(answer.exception)
    words += ["--labels", home / "labels.csv"]
    answer = run(*words)
    assert answer.exit_code == 0, answer.output
    assert "80 of 90 items have a true label" in answer.output
    assert "estimated without" in answer.output
    facts = json.loads(run(*words, "--json").stdout)
    assert facts["n_matched"] == 80
    expected = {"value", "low", "high", "estimate", "held"}
    assert expected <= set(facts["figures"]["recall"])


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_export(blobs, tmp_path):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name, reason="pip install 'denspu[onnx]'")
    from denspu.persistence.onnx import session

    model = small("nnpu", random_state=0, network="linear").fit(blobs.X, blobs.y)
    save(model, tmp_path / "model")
    rows, file = tmp_path / "rows.npy", tmp_path / "m.onnx"
    rows.write_text("not an array")
    words = ["export", "--model", tmp_path / "model", "--onnx", file, "--rows", rows]
    wrong = run(*words).exception
    assert isinstance(wrong, InvalidParameterError)
    assert "rows.npy cannot be read" in str(wrong)
    assert not file.exists()
    np.save(rows, blobs.X.astype(np.float32))
    answer = run(*words)
    assert answer.exit_code == 0, answer.output
    assert "140 given rows compared with the model" in answer.output
    score, _, decision = session(file)(blobs.X.astype(np.float32))
    np.testing.assert_allclose(score, model.decision_function(blobs.X), atol=1e-4)
    assert decision.tolist() == load(tmp_path / "model").predict(blobs.X).tolist()
