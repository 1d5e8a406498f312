"""What a person sees of a fit: progress, and what each stage did."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from denspu import _progress
from denspu._progress import Stages, hearing, progress, show


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


@pytest.fixture
def stages():
    stages = Stages()
    with stages.stage("encode") as facts:
        facts["dimension"] = 1234
        time.sleep(0.01)
    with stages.stage("select") as facts:
        facts["share"] = 0.123456
    return stages


def test_by_name_by_position_and_in_order(stages):
    assert stages.names == ["encode", "select"]
    assert len(stages) == 2
    assert stages["select"] is stages[1]
    assert stages["encode"].facts == {"dimension": 1234}
    assert [stage.name for stage in stages[:1]] == ["encode"]
    assert [stage.name for stage in stages] == ["encode", "select"]


def test_unknown_name_lists_the_known(stages):
    with pytest.raises(KeyError, match=r"no stage 'encodes'.*encode, select"):
        stages["encodes"]


def test_seconds_are_measured_and_add_up(stages):
    seconds = stages.seconds
    assert 0.01 <= seconds["encode"] < 5
    assert seconds["select"] < seconds["encode"]
    assert seconds["total"] == pytest.approx(seconds["encode"] + seconds["select"])


def test_a_failed_stage_leaves_no_trace(stages):
    def fail_inside():
        with stages.stage("classify"):
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fail_inside()
    assert stages.names == ["encode", "select"]


def test_stages_are_heard_as_they_end_and_only_inside_the_block(stages):
    heard = []
    with hearing(lambda stage: heard.append((stage.name, stage.facts["n"]))):
        with stages.stage("label") as facts:
            facts["n"] = 3
            assert heard == []
        assert heard == [("label", 3)]
    with stages.stage("refine"):
        pass
    assert len(heard) == 1


def test_text_has_one_line_a_stage(stages):
    lines = repr(stages).splitlines()
    assert lines[0].startswith("encode")
    assert lines[0].endswith("dimension 1,234")
    assert lines[1].endswith("share 0.1235")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00001234, "1.234e-05"), (1234567, "1,234,567"), (True, "True"), ("a", "a")],
)
def test_show(value, text):
    assert show(value) == text
