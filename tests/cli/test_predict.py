"""``denspu predict`` as a person meets it."""

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

from denspu import save
from denspu.cli.app import app
from denspu.cli.predict import model_folder
from denspu.data import read_items
from denspu.exceptions import DensPUError, DensPUWarning
from denspu.runs import Reading


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
    model = small("pu_bagging", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)
        model.fit(items.X, labels, holdout=0.3)
    save(model, top / "model", extra={"input": {"plan": dict(items.plan)}})
    return top


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_the_run_folder_is_taken_for_its_model(home, tmp_path):
    assert model_folder(home) == home / "model"
    assert model_folder(home / "model") == home / "model"
    assert model_folder(tmp_path) == tmp_path
    words = "--model", home, home / "t.csv", "--out", tmp_path / "a.csv"
    assert run("predict", *words).exit_code == 0


def test_answers_and_what_is_said(home, tmp_path):
    out = tmp_path / "a.csv"
    answer = run(
        "predict", "--model", home / "model", home / "t.csv", "--out", out,
        "--threshold", "top=10", "--chunk", 8,
    )  # fmt: skip
    assert answer.exit_code == 0, answer.output
    assert "90 rows · 10 called positive · 1 skipped ·" in answer.output
    assert "a second" in answer.output
    assert "The 10 highest of 90 items" in answer.output
    assert f"wrote     {out}" in answer.output
    assert "a.skipped.csv" in answer.output
    assert out.read_text().startswith("item,score,probability,rank,decision\n1,")
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


def test_an_error_is_one_sentence(home, tmp_path):
    words = ["--model", home / "model", home / "none.csv", "--out", tmp_path / "a.csv"]
    done = subprocess.run(
        [sys.executable, "-m", "denspu", "predict", *map(str, words)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("denspu: ")
    assert "neither a folder nor a file" in done.stderr
    assert "Traceback" not in done.stderr


def hears_ctrl_c():
    """Undo what a shell does to jobs in the background: they ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_leaves_nothing_behind(home, tmp_path):
    long = tmp_path / "long.csv"
    long.write_text("u,town\n" + "1,a\n" * 300_000)
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


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_each_option_of_reading_goes_to_its_place(command, tmp_path, monkeypatch):
    class Told(Exception):
        pass

    def tell(*args, reading, **rest):
        raise Told(reading)

    monkeypatch.setattr(f"denspu.runs.{command}.{command}_files", tell)
    given = {
        "id_column": "i",
        "text_column": "t",
        "vector_column": "v",
        "ids": tmp_path / "ids",
        "encoding": "latin-1",
    }
    words = [
        w
        for name, value in given.items()
        for w in (f"--{name}".replace("_", "-"), value)
    ]
    if command == "predict":
        words += ["--out", tmp_path / "a.csv"]
    answer = run(command, "--model", tmp_path, tmp_path, *words)
    assert answer.exception.args == (Reading(**given),)
