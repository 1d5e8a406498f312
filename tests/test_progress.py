"""Progress: nothing, plain lines, or a bar."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from denspu import _progress
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
    assert lines[0].startswith("work         20/200 loss 19 · ")
    assert lines[-1].startswith("work         200/200 loss 199 · ")


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


def test_lines_tell_the_time_spent_and_left(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now)
    with progress("work", 4, 1) as advance:
        for seconds in (60.0, 75.0, 90.0, 120.0):
            now = seconds
            advance("cell")
    told = [line.split("cell · ")[1] for line in capsys.readouterr().err.splitlines()]
    assert told == [
        "1 min 0 s, about 3 min 0 s left",
        "1 min 15 s, about 1 min 15 s left",
        "1 min 30 s, about 30 s left",
        "2 min 0 s",
    ]


def test_nothing_is_guessed_before_the_first_unit_ended(capsys):
    with progress("work", 4, 1):
        pass
    assert capsys.readouterr().err == ""


def test_units_may_come_in_parts_and_from_threads(capsys):
    total = 99 * 64  # no multiple of a tenth
    with progress("work", total, 1) as advance, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: advance("part", 64), range(99)))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith(f"work         {total}/{total} part")


@pytest.mark.parametrize(("total", "lines"), [(9, 0), (10, 10)])
def test_little_work_is_not_shown(capsys, total, lines):
    with progress("work", total, 1, least=10) as advance:
        for _ in range(total):
            advance("")
    assert len(capsys.readouterr().err.splitlines()) == lines


def test_a_note_is_shown_as_it_is(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress("work", 1, 1) as advance:
        advance("a[/b]")
    assert "a[/b]" in capsys.readouterr().err
