"""What a fit tells about itself."""

from __future__ import annotations

import time

import pytest

from denspu._progress import Stages, hearing, show


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
