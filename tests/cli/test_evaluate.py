"""``denspu evaluate`` as a person meets it."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from tests.small import small
from typer.testing import CliRunner

from denspu import save
from denspu.cli.app import app
from denspu.data import read_items
from denspu.exceptions import DensPUError, DensPUWarning


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    top = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    truth = rng.random(120) < 0.4
    labels = (truth & (rng.random(120) < 0.6)).astype(int)
    x = rng.normal(size=120) + 2 * truth
    rows = [f"{v},{int(t)}" for v, t in zip(x, truth, strict=True)]
    (top / "t.csv").write_text("u,truth\n" + "\n".join(rows))
    items = read_items(top / "t.csv", aside=["truth"])
    model = small("pu_bagging", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)
        model.fit(items.X, labels, holdout=0.3)
    save(model, top / "model", extra={"input": {"plan": dict(items.plan)}})
    rows = [f"{i + 1},{int(truth[i])}" for i in range(100)]
    (top / "l.csv").write_text("item,label\n" + "\n".join(rows))
    return top


def run(*words):
    return CliRunner().invoke(app, ["evaluate", *map(str, words)])


def test_a_file_of_labels(home):
    answer = run("--model", home / "model", home / "t.csv", "--labels", home / "l.csv")
    assert answer.exit_code == 0, answer.output
    assert "100 of 120 items have a true label" in answer.output
    for name in ("recall", "precision", "roc_auc", "estimated without"):
        assert name in answer.output


def test_json_and_a_column(home):
    words = ["--model", home / "model", home / "t.csv", "--label-column", "truth"]
    facts = json.loads(run(*words, "--json").stdout)
    assert facts["n_matched"] == 120
    assert {"value", "low", "high", "estimate", "held"} <= set(
        facts["figures"]["recall"]
    )


def test_no_labels_is_told(home):
    answer = run("--model", home / "model", home / "t.csv")
    assert isinstance(answer.exception, DensPUError)
    assert "--labels FILE" in str(answer.exception)
