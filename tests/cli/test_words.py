"""Errors of the library, told to those who typed a command."""

from __future__ import annotations

import sys

import pytest
import typer

from denspu.cli.app import app, main
from denspu.cli.words import as_options, options_of

OPTIONS = {"label_column": "--label-column", "kind": "--kind", "columns": "--columns"}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("label_column='y': no such column.", "--label-column y: no such column."),
        ("label_column='my y' is odd", "--label-column 'my y' is odd"),
        ('label_column="it\'s" is odd', "--label-column it's is odd"),
        ("label_column='' is odd", "--label-column '' is odd"),
        ("kind=2.5 is odd.", "--kind 2.5 is odd."),
        ("kind=-1 is odd.", "--kind -1 is odd."),
        ("Or set kind=.", "Or set --kind."),
        ("columns['a']='colour' is odd", "--columns a=colour is odd"),
        ("batch=3 and my_kind='x' stay", "batch=3 and my_kind='x' stay"),
    ],
    ids=lambda text: text[:12],
)
def test_arguments_become_options(error, told):
    assert as_options(error, OPTIONS) == told


def test_the_options_are_those_of_the_verb():
    command = typer.main.get_command(app)
    fit = options_of(command, ["fit", "--out", "x"])
    assert fit["label_column"] == "--label-column"
    assert fit["set_"] == "--set"
    assert "source" not in fit
    assert "labels" in options_of(command, ["evaluate"])
    assert options_of(command, ["data", "get", "x"])["source"] == "--from"
    assert "label_column" not in options_of(command, [])


def test_an_error_names_the_option_that_was_typed(tmp_path, monkeypatch, capsys):
    table = tmp_path / "t.csv"
    table.write_bytes("a,y\ncafé,1\n".encode("latin-1"))
    words = ["denspu", "fit", str(table), "--label-column", "y"]
    monkeypatch.setattr(sys, "argv", [*words, "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "or pass --encoding latin-1 if that" in capsys.readouterr().err
