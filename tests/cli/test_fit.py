"""``denspu fit`` as a person meets it: lines, exit codes, bad input."""

from __future__ import annotations

import csv
import json
import os
import struct
import zlib

import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from denspu.cli.app import app
from denspu.exceptions import DensPUError

Image = pytest.importorskip("PIL.Image")

FAST = ["--method", "elkan_noto", "--device", "cpu"]


def run(*words):
    """Return the output and the error of a command."""
    found = CliRunner().invoke(app, ["fit", *map(str, words)])
    if found.exception and not isinstance(found.exception, SystemExit | DensPUError):
        raise found.exception
    return found


def refused(*words):
    """Return what is said when a command is refused."""
    found = run(*words)
    assert isinstance(found.exception, DensPUError), found.output
    return str(found.exception)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Threes to learn from, and a pile with damaged files and a copy."""
    top = tmp_path_factory.mktemp("digits")
    data = load_digits()
    threes = np.flatnonzero(data.target == 3)
    others = np.flatnonzero(data.target != 3)
    for name, rows in (
        ("known", threes[:40]),
        ("pile", [*threes[40:60], *others[:80]]),
    ):
        for i in rows:
            folder = top / name / f"s{i % 8}"
            folder.mkdir(parents=True, exist_ok=True)
            picture = (data.images[i] * 15.9).astype(np.uint8)
            Image.fromarray(picture).save(folder / f"{i}.png")
    first = next(iter(sorted((top / "known").rglob("*.png"))))
    (top / "pile" / "again.png").write_bytes(first.read_bytes())
    (top / "pile" / "text.png").write_text("hello")
    (top / "pile" / "empty.png").write_bytes(b"")
    (top / "pile" / "huge.png").write_bytes(huge_png(30_000))
    return top


def huge_png(side):
    """Return a small PNG of side×side black pixels of one bit."""
    packer = zlib.compressobj(9)
    line = bytes(1 + (side + 7) // 8)
    rows = b"".join(packer.compress(line * 1_000) for _ in range(side // 1_000))

    def chunk(name, data):
        sum_ = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", sum_)

    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", rows + packer.flush())
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


def pair(top):
    return ["--positive", top / "known", "--unlabeled", top / "pile"]


def test_a_folder_of_images_becomes_answers_and_a_report(digits, tmp_path):
    out = tmp_path / "run"
    found = run(*pair(digits), "--out", out, *FAST, "--groups", "{group}/*")
    assert found.exit_code == 0, found.exception
    lines = dict(line.split(None, 1) for line in found.output.splitlines())
    assert "known 40 images · pile 101 images" in lines["reading"]
    assert "3 unreadable" in lines["reading"]
    assert "1 unlabelled image is a copy" in lines["reading"]
    assert "called positive · estimated recall" in lines["result"]
    assert lines["open"] == str(out / "report.html")
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")
    facts = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert facts["n_called"] > 0
    with (out / "skipped.csv").open(newline="") as file:
        skipped = {
            os.path.basename(r["item"]): r["reason"] for r in csv.DictReader(file)
        }
    assert "not a readable image" in skipped["text.png"]
    assert "empty" in skipped["empty.png"]
    assert "900,000,000 pixels" in skipped["huge.png"]


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["name,size,town,y"]
    for i in range(90):
        good = i % 3 == 0
        town = "" if i % 7 == 0 else "AB"[i % 2]
        lines.append(f"n{i},{rng.normal(4 * good):.3f},{town},{int(good and i % 2)}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    return tmp_path / "t.csv"


def test_one_table(table, tmp_path):
    words = ["--table", table, "--label-column", "y", "--id-column", "name"]
    found = run(*words, "--out", tmp_path / "run", *FAST, "--quiet")
    assert found.exit_code == 0, found.exception
    assert {line.split()[0] for line in found.output.splitlines()} <= {
        "warning",
        "open",
    }
    first = (tmp_path / "run" / "scores.csv").read_text().splitlines()[:2]
    assert first[0] == "item,score,probability,rank,decision,stage,why"
    assert first[1].startswith("n")


def test_settings_and_kinds_of_columns_are_passed_on(table, tmp_path):
    words = [table, "--label-column", "y", "--columns", "name=drop", "--columns"]
    words += ["size=category", "--set", "variant=weighted", "--out", tmp_path / "run"]
    found = run(*words, *FAST, "--seed", "3")
    assert found.exit_code == 0, found.exception
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["settings"]["settings"] == {"variant": "weighted"}
    assert facts["settings"]["seed"] == 3
    plan = json.loads((tmp_path / "run" / "model" / "input.json").read_text())["plan"]
    assert plan["columns"] == {"size": "category", "town": "category"}


# --- bad input -----------------------------------------------------------------------


def test_a_column_that_is_missing(table, tmp_path):
    words = [table, "--out", tmp_path / "run"]
    assert "Did you mean 'y'" in refused(*words, "--label-column", "yy")
    told = refused(*words, "--label-column", "y", "--time", "when")
    assert told.startswith("time='when'")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--positive is missing"),
        (["--threshold", "recll=0.9"], "Did you mean 'recall'"),
        (["--set", "nothing"], "NAME=VALUE"),
        (["b.csv", "--table", "c.csv"], "both name the table"),
        (["--prior", "0.3", "--prior-in-unlabeled", "0.2"], "Give one of them"),
    ],
    ids=["nothing", "threshold", "set", "table", "prior"],
)
def test_wrong_words_are_told(tmp_path, words, message):
    usual = ["--positive", "a", "--unlabeled", "b"] if words else []
    assert message in refused(*usual, *words, "--out", tmp_path / "run")
