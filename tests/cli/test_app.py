"""The command line as a person meets it: output, exit codes, start-up time."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import denspu
from denspu._registry import registry
from denspu.cli.app import app


def run(*words):
    return CliRunner().invoke(app, list(words))


def denspu_process(*words, **env):
    return subprocess.run(
        [sys.executable, "-m", "denspu", *words],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=60,
    )


def test_version():
    assert run("--version").output.strip() == f"denspu {denspu.__version__}"


def test_help_names_every_verb():
    text = run("--help").output
    for verb in ("demo", "list", "data", "bench"):
        assert verb in text


def test_list_json_has_one_object_a_registered_thing():
    facts = json.loads(run("list", "--json").output)
    assert len(facts) == len(list(registry()))
    for one in facts:
        assert {"key", "kind", "paper", "needs_prior", "scenario"} <= set(one)


def test_list_shows_every_key_in_its_kind():
    text = run("list").output
    for entry in registry():
        assert entry.key in text


def test_list_of_one_kind():
    facts = json.loads(run("list", "--json", "--kind", "detector").output)
    assert {one["kind"] for one in facts} == {"detector"}


def test_unknown_kind_suggests_and_exits_with_one():
    answer = denspu_process("list", "--kind", "detecter")
    assert answer.returncode == 1
    assert "Did you mean 'detector'?" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_unknown_data_set_suggests_and_exits_with_one():
    answer = denspu_process("data", "get", "cifer10")
    assert answer.returncode == 1
    assert answer.stderr.startswith("denspu: There is no data set called 'cifer10'")
    assert "cifar10" in answer.stderr


def test_data_get_from_an_empty_folder_says_what_to_put_there(tmp_path):
    answer = denspu_process(
        "data", "get", "fashion-mnist", "--from", str(tmp_path),
        DENSPU_HOME=str(tmp_path / "home"),
    )  # fmt: skip
    assert answer.returncode == 1
    assert "train-images-idx3-ubyte" in answer.stderr
    assert not (tmp_path / "home" / "data" / "fashion-mnist").exists()


def test_data_info_names_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DENSPU_HOME", str(tmp_path))
    facts = json.loads(run("data", "info", "--json").output)
    here = {one["name"]: one["present"] for one in facts}
    assert here == {"digits": True, "fashion-mnist": False, "cifar10": False}
    monkeypatch.setenv("COLUMNS", "120")
    assert "60,000 / 10,000" in run("data", "info").output


@pytest.mark.parametrize("words", [["--version"], ["list", "--json"], ["--help"]])
def test_starts_without_torch(words):
    code = (
        "import sys; from denspu.cli.app import app;"
        f"app({words!r}, standalone_mode=False);"
        "assert not {'torch', 'sklearn', 'scipy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_starts_in_half_a_second():
    """Seconds of the processor: the machine may be busy, the program may not."""
    best = float("inf")
    for _ in range(5):
        before = os.times()
        assert denspu_process("list", "--json").returncode == 0
        after = os.times()
        user = after.children_user - before.children_user
        best = min(best, user + after.children_system - before.children_system)
    assert best < 0.5


def test_runs_from_source_without_installation(tmp_path):
    source = os.path.dirname(os.path.dirname(denspu.__file__))
    answer = denspu_process("--version", PYTHONPATH=source)
    assert answer.stdout.startswith("denspu ")
