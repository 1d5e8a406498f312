"""Progress: nothing, plain lines, or a bar."""

from __future__ import annotations

import sys

import pytest

from denspu._progress import progress


def run(total, verbose):
    with progress("work", total, verbose) as advance:
        for i in range(total):
            advance(f"loss {i}")


def test_silent_by_default(capsys):
    run(20, verbose=0)
    out, err = capsys.readouterr()
    assert out == err == ""


def test_about_ten_lines_in_a_file(capsys):
    run(200, verbose=1)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == 10
    assert lines[0].split() == ["work", "20/200", "loss", "19"]
    assert lines[-1].split() == ["work", "200/200", "loss", "199"]


def test_the_last_unit_is_always_shown(capsys):
    run(25, verbose=1)
    assert "25/25" in capsys.readouterr().err.splitlines()[-1]


def test_a_bar_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    run(3, verbose=1)
    err = capsys.readouterr().err
    assert "work" in err
    assert "3/3" in err
    assert "loss 2" in err


@pytest.mark.parametrize("total", [0, -1])
def test_no_work_shows_nothing(capsys, total):
    run(total, verbose=1)
    assert capsys.readouterr().err == ""
