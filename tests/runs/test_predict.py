"""New files through a saved model: same answers in any chunk, whole or nothing."""

from __future__ import annotations

import csv
import errno
import json
import os
import subprocess
import sys
import threading
import warnings
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from tests.small import small

import denspu
from denspu import _files, load, save
from denspu._frame import Frame
from denspu.data import _tables, read_items
from denspu.exceptions import (
    DensPUWarning,
    InvalidInputError,
    InvalidParameterError,
    ModelFileError,
    RunFolderError,
)
from denspu.runs import predict as module
from denspu.runs import predict_files
from denspu.runs.predict import ranks

N = 120
COLUMNS = ["item", "score", "probability", "rank", "decision", "why"]


def classes(n=N, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.4
    labels = (truth & (rng.random(n) < 0.6)).astype(int)
    return rng, truth, labels


def write_table(path, n=N, seed=0):
    rng, truth, labels = classes(n, seed)
    x = rng.normal(size=(n, 2)) + 2.5 * truth[:, None]
    rows = [
        f'k{i},{x[i, 0] if i % 9 else "NA"},{x[i, 1]},"a\n{"bc"[i % 2]}"'
        for i in range(n)
    ]
    path.write_text("id,u,v,town\n" + "\n".join(rows) + "\n")
    return labels


def write_images(folder, n=N, seed=0):
    rng, truth, labels = classes(n, seed)
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(n):
        pixels = rng.integers(0, 120, (8, 8)) + 100 * truth[i]
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i:04d}.png")
    return labels


def write_texts(path, n=N):
    rng, truth, labels = classes(n)
    words = np.array(["ape", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"])
    lines = [" ".join(rng.choice(words[4 * t :][:6], 9)) for t in truth.astype(int)]
    path.write_text("\n".join(lines))
    return labels


def fitted(model, X, labels, **options):
    """Fit a model that may be poor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)
        return model.fit(X, labels, **options)


def keep(model, items, folder, labels, **options):
    """Fit, and save as a run does."""
    fitted(model, items.X, labels, holdout=0.3)
    how = {"kind": items.kind, "plan": dict(items.plan), "options": options}
    return save(model, folder, extra={"input": how})


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A forest on a table, a network on images, and a model of texts."""
    top = tmp_path_factory.mktemp("models")
    labels = write_table(top / "t.csv")
    table = read_items(top / "t.csv", id_column="id")
    keep(small("pu_bagging", random_state=0), table, top / "table", labels,
         id_column="id")  # fmt: skip
    labels = write_images(top / "pictures")
    images = read_items(top / "pictures")
    keep(small("nnpu", random_state=0), images, top / "image", labels)
    labels = write_texts(top / "t.txt")
    texts = read_items(top / "t.txt")
    keep(small("elkan_noto", random_state=0), texts, top / "text", labels)
    _, truth, labels = classes()
    array = np.random.default_rng(1).normal(size=(N, 5)) + truth[:, None]
    np.save(top / "e.npy", array.astype(np.float32))
    keep(small("dens_pu", random_state=0), read_items(top / "e.npy"),
         top / "embedding", labels)  # fmt: skip
    labels = classes()[2]
    keep(small("label_propagation", random_state=0), table, top / "graph", labels,
         id_column="id")  # fmt: skip
    return top


SOURCES = {
    "table": "t.csv",
    "graph": "t.csv",
    "image": "pictures",
    "text": "t.txt",
    "embedding": "e.npy",
}


def rows_of(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    kinds = {"score": float, "probability": float, "rank": int, "decision": int}
    return [{k: kinds.get(k, str)(v) for k, v in row.items()} for row in rows]


@pytest.mark.parametrize("kind", ["table", "graph", "image"])
def test_answers_do_not_depend_on_the_chunk(home, tmp_path, monkeypatch, kind):
    """A graph's last bits do depend on how many rows are asked for at once."""
    monkeypatch.setattr(module, "BLOCK", 32)
    monkeypatch.setattr(module, "IMAGE_BLOCK", 32)
    tables = []
    for chunk in (7, 32, 1000):
        out = tmp_path / f"{chunk}.parquet"
        predict_files(home / kind, home / SOURCES[kind], out, chunk=chunk)
        tables.append(pq.read_table(out))
    assert all(table.equals(tables[0]) for table in tables)
    assert tables[0].num_rows == N


@pytest.mark.parametrize("kind", SOURCES)
def test_answers_are_the_model_s_own(home, tmp_path, kind):
    model = load(home / kind)
    how = denspu.persistence.load_extra(home / kind)
    whole = read_items(home / SOURCES[kind], like=how["plan"], **how["options"])
    scores = model.decision_function(whole.X)
    out = tmp_path / ("a.csv" if kind == "text" else "a.parquet")
    found = predict_files(home / kind, home / SOURCES[kind], out, chunk=7)
    rows = rows_of(out)
    assert list(rows[0]) == COLUMNS
    assert [r["item"] for r in rows] == whole.ids
    assert [r["score"] for r in rows] == scores.tolist()
    chances = model.predict_proba(whole.X)[:, 1]
    assert [r["probability"] for r in rows] == chances.tolist()
    assert [r["decision"] for r in rows] == model.predict(whole.X).tolist()
    assert [r["rank"] for r in rows] == ranks(scores).tolist()
    assert found.n_items == len(whole)
    assert found.n_called == int(model.predict(whole.X).sum())


def test_skipped_items_are_listed_beside(home, tmp_path):
    folder = tmp_path / "new"
    write_images(folder, 9)
    (folder / "0003.png").write_bytes(b"")
    (folder / "0005.png").write_text("a text")
    seen = []
    found = predict_files(
        home / "image",
        folder,
        tmp_path / "a.csv",
        chunk=2,
        tell=lambda done, skipped: seen.append((done, skipped)),
    )
    assert found.n_items == 7
    assert found.n_skipped == 2
    assert seen[-1] == (7, 2)
    assert found.skipped_out == str(tmp_path / "a.skipped.csv")
    with open(found.skipped_out, newline="") as file:
        listed = list(csv.reader(file))
    assert listed[:2] == [["item", "reason"], ["0003.png", "the file is empty"]]
    assert listed[2][0] == "0005.png"
    assert len(rows_of(tmp_path / "a.csv")) == 7
    assert found.per_second > 0
    assert json.loads(json.dumps(found.to_json()))["n_skipped"] == 2
    assert "7 images ·" in found.summary()
    assert "1 image ·" in replace(found, n_items=1).summary()


# --- thresholds ----------------------------------------------------------------------


def decisions(home, tmp_path, threshold):
    path = tmp_path / "a.csv"
    found = predict_files(
        home / "table", home / "t.csv", path, threshold=threshold, overwrite=True
    )
    rows = rows_of(path)
    assert [r["decision"] for r in rows] == [
        int(r["score"] > found.threshold) for r in rows
    ]
    return found, rows


def test_a_threshold_by_the_model_s_evidence(home, tmp_path):
    model = load(home / "table").set_threshold(recall=0.8)
    found, _ = decisions(home, tmp_path, "recall=0.8")
    assert found.threshold == model.threshold_
    assert model.threshold_choice_.sentence in found.threshold_sentence
    prior, _ = decisions(home, tmp_path, "prior")
    assert prior.threshold == load(home / "table").set_threshold(prior=True).threshold_


def test_top_is_about_these_items(home, tmp_path):
    _, rows = decisions(home, tmp_path, "top=5")
    assert sorted(r["rank"] for r in rows if r["decision"]) == [1, 2, 3, 4, 5]
    found, _ = decisions(home, tmp_path, "top=100000")
    assert found.n_called == N


def test_rules_need_held_out_positives(home, tmp_path):
    items = read_items(home / "t.csv", id_column="id")
    model = fitted(small("pu_bagging", random_state=0), items.X, classes()[2])
    save(model, tmp_path / "m", extra={"input": {"plan": dict(items.plan)}})
    with pytest.raises(InvalidInputError, match="no held-out positives"):
        predict_files(
            tmp_path / "m", home / "t.csv", tmp_path / "a.csv", threshold="recall=0.9"
        )
    found = predict_files(
        tmp_path / "m", home / "t.csv", tmp_path / "a.csv", threshold="top=3"
    )
    assert found.n_called == 3


# --- wrong input ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "source", "said"),
    [
        ("table", "pictures", "is a folder"),
        ("image", "t.csv", "is a table by its name, and images are wanted"),
    ],
)
def test_another_kind_is_refused_and_nothing_is_written(
    home, tmp_path, kind, source, said
):
    with pytest.raises(InvalidInputError, match=said):
        predict_files(home / kind, home / source, tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_missing_columns_and_wrong_cells_are_named(home, tmp_path):
    new = tmp_path / "n.csv"
    new.write_text("id,u,town\nx,1,a\n")
    with pytest.raises(InvalidParameterError, match=r"'v'.*no such column"):
        predict_files(home / "table", new, tmp_path / "a.csv")
    new.write_text("u,v,town\n1,2,a\n")
    with pytest.raises(InvalidParameterError, match="id_column='id'"):
        predict_files(home / "table", new, tmp_path / "a.csv")
    new.write_text("id,u,v,town\nx,1,2,a\ny,1,two,a\n")
    with pytest.raises(InvalidInputError, match="row 2 holds 'two'"):
        predict_files(home / "table", new, tmp_path / "a.csv", chunk=1)
    assert [p.name for p in tmp_path.iterdir()] == ["n.csv"]


def test_a_model_without_a_way_to_read(home, tmp_path):
    model = load(home / "table")
    save(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"without input\.json"):
        predict_files(tmp_path / "m", home / "t.csv", tmp_path / "a.csv")
    with pytest.raises(ModelFileError, match="no folder"):
        predict_files(tmp_path / "none", home / "t.csv", tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("out", "error", "said"),
    [
        ("a.txt", InvalidParameterError, r"must end in \.csv or \.parquet"),
        ("none/a.csv", RunFolderError, "no folder"),
        ("taken.csv", RunFolderError, "exists already"),
        ("beside.csv", RunFolderError, "beside.skipped.csv exists already"),
        ("folder.csv", RunFolderError, "is a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_first(
    home, tmp_path, monkeypatch, out, error, said
):
    (tmp_path / "taken.csv").write_text("mine")
    (tmp_path / "beside.skipped.csv").write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    monkeypatch.setattr(module, "open_model", None)  # would fail if it were reached
    with pytest.raises(error, match=said):
        predict_files(home / "table", home / "t.csv", tmp_path / out)
    assert (tmp_path / "taken.csv").read_text() == "mine"


# --- whole or nothing ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "suffix", "old"),
    [
        ("scoring", "csv", True),
        ("writing", "parquet", False),
        ("last step", "parquet", True),
    ],
)
def test_an_end_half_way_leaves_everything_as_it_was(
    home, tmp_path, monkeypatch, suffix, old, when
):
    monkeypatch.setattr(module, "BLOCK", 20)
    out = tmp_path / f"a.{suffix}"
    if old:
        out.write_text("older answers")
        (tmp_path / "a.skipped.csv").write_text("older list")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    error: BaseException = KeyboardInterrupt()
    if when == "last step":
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    calls = []

    def fail(*args, **kwargs):
        calls.append(args)
        if when != "scoring" or len(calls) > 3:
            raise error
        return real(*args, **kwargs)

    real = small("pu_bagging").decision_function.__func__
    target = {
        "scoring": (type(load(home / "table")), "decision_function"),
        "writing": (module.Scorer, "probability"),
        "last step": (_files.os, "fsync"),
    }[when]
    monkeypatch.setattr(*target, fail)
    expected = RunFolderError if isinstance(error, OSError) else KeyboardInterrupt
    said = "No space left on device. Nothing was left behind"
    match = said if expected is RunFolderError else None
    with pytest.raises(expected, match=match):
        predict_files(home / "table", home / "t.csv", out, chunk=20, overwrite=True)
    assert calls
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


# --- the pipeline --------------------------------------------------------------------


def test_the_next_chunk_is_read_while_this_one_is_scored(home, tmp_path, monkeypatch):
    """Reading the second chunk must begin before the first is scored."""
    monkeypatch.setattr(module, "BLOCK", 50)
    begun = threading.Event()
    kind = type(load(home / "table"))
    real_score, chunks = kind.decision_function, _tables.raw_chunks

    def noted(*args):
        for i, table in enumerate(chunks(*args)):
            if i == 1:
                begun.set()
            yield table

    def score(self, X):
        assert begun.wait(20), "the second chunk was not read meanwhile"
        return real_score(self, X)

    monkeypatch.setattr(_tables, "raw_chunks", noted)
    monkeypatch.setattr(kind, "decision_function", score)
    predict_files(home / "table", home / "t.csv", tmp_path / "a.csv", chunk=50)


# --- memory --------------------------------------------------------------------------

PEAK = """
import resource, sys
from denspu.runs import predict_files
from denspu import load
model, small, large, out = sys.argv[1:]
predict_files(model, small, out, chunk=CHUNK, overwrite=True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = predict_files(model, large, out, chunk=CHUNK, overwrite=True)
print(found.n_items, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def growth_mb(model, small_source, large_source, out, chunk):
    code = PEAK.replace("CHUNK", str(chunk))
    words = [sys.executable, "-c", code, model, small_source, large_source, out]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    n, kilobytes = map(int, done.stdout.split())
    return n, kilobytes / 1024


def test_memory_does_not_grow_with_a_table(tmp_path):
    """100,000 rows beside 4,000: read at once they take some 75 MB."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    pu = (X[:, 0] > 0.5).astype(int)
    names = ["u", "v", "w"]
    plan = {"kind": "table", "columns": dict.fromkeys(names, "number")}
    frame = Frame(dict(zip(names, X.T, strict=True)))
    model = fitted(small("rank_pruning", random_state=0), frame, pu)
    save(model, tmp_path / "m", extra={"input": {"plan": plan}})
    block = "\n".join(",".join(f"{v:.6f}" for v in row) for row in X) + "\n"
    for name, times in (("small.csv", 20), ("large.csv", 500)):
        (tmp_path / name).write_text("u,v,w\n" + block * times)
    n, grown = growth_mb(
        tmp_path / "m",
        tmp_path / "small.csv",
        tmp_path / "large.csv",
        tmp_path / "a.csv",
        2000,
    )
    assert n == 100_000
    assert grown < 30
