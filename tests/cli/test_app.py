"""The command line as a person meets it: output, exit codes, errors, start-up time."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from denspu._registry import registry
from denspu.cli.app import app, as_options, main

OPTIONS = {"label_column": "--label-column", "kind": "--kind", "columns": "--columns"}


def run(*words):
    return CliRunner().invoke(app, list(words))


def said(monkeypatch, capsys, *words):
    """Return what an error says, as one sentence and exit code 1."""
    monkeypatch.setattr(sys, "argv", ["denspu", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert told.startswith("denspu: ")
    return told


def test_list():
    facts = json.loads(run("list", "--json").output)
    assert {(one["key"], one["kind"]) for one in facts} == {
        (entry.key, entry.kind) for entry in registry()
    }
    some = json.loads(run("list", "--json", "--kind", "detector").output)
    assert {one["kind"] for one in some} == {"detector"}
    text = run("list").output
    assert all(entry.key in text for entry in registry())


def test_data_info_names_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DENSPU_HOME", str(tmp_path))
    facts = json.loads(run("data", "info", "--json").output)
    here = {one["name"]: one["present"] for one in facts}
    assert here == {"digits": True, "fashion-mnist": False, "cifar10": False}
    monkeypatch.setenv("COLUMNS", "120")
    assert "60,000 / 10,000" in run("data", "info").output


def test_wrong_words_are_told_in_one_sentence(monkeypatch, capsys):
    told = said(monkeypatch, capsys, "list", "--kind", "detecter")
    assert "Did you mean 'detector'?" in told
    assert "cifar10" in said(monkeypatch, capsys, "data", "get", "cifer10")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("label_column='my y' is odd", "--label-column 'my y' is odd"),
        ('label_column="it\'s" is odd', "--label-column it's is odd"),
        ("kind=-1 is odd.", "--kind -1 is odd."),
        ("Or set kind=.", "Or set --kind."),
        ("columns['a']='colour' is odd", "--columns a=colour is odd"),
        ("batch=3 and my_kind='x' stay", "batch=3 and my_kind='x' stay"),
    ],
    ids=lambda text: text[:12],
)
def test_arguments_become_options(error, told):
    assert as_options(error, OPTIONS) == told


def test_an_error_names_the_option_that_was_typed(tmp_path, monkeypatch, capsys):
    table = tmp_path / "t.csv"
    table.write_bytes("a,y\ncafé,1\n".encode("latin-1"))
    words = ["fit", table, "--label-column", "y", "--out", tmp_path / "run"]
    told = said(monkeypatch, capsys, *words)
    assert "or pass --encoding latin-1 if that" in told


def test_starts_fast_and_without_heavy_libraries():
    """Seconds of the processor: the machine may be busy, the program may not."""
    code = (
        "import sys; from denspu.cli.app import app;"
        "app(sys.argv[1:], standalone_mode=False);"
        "assert not {'torch', 'sklearn', 'scipy', 'numpy'} & set(sys.modules)"
    )
    for words in (["--version"], ["list"], ["fit", "--help"]):
        best = float("inf")
        for _ in range(3):
            before = os.times()
            done = subprocess.run(
                [sys.executable, "-c", code, *words], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            after = os.times()
            user = after.children_user - before.children_user
            best = min(best, user + after.children_system - before.children_system)
        assert best < 0.4
