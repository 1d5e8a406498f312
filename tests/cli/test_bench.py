"""``denspu bench`` as a person meets it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from denspu.cli.app import app
from denspu.exceptions import InvalidParameterError


def run(*words):
    return CliRunner().invoke(app, list(words))


BENCH = """
title = "Two digits"
seeds = [10]
metrics = ["f1", "accuracy"]
reference = "Elkan-Noto"

[[tasks]]
name = "zeros and ones"
dataset = "digits"
n_labeled = 30
positive = [0, 1]

[[rows]]
name = "Elkan-Noto"
method = "elkan_noto"

[[rows]]
name = "Rocchio"
method = "rocchio_svm"
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A spec in a folder of specs, and what ``bench run`` printed."""
    home = tmp_path_factory.mktemp("bench")
    (home / "specs").mkdir()
    spec = home / "specs" / "pair.toml"
    spec.write_text(BENCH)
    return spec, run("bench", "run", str(spec), "--device", "cpu")


def test_bench_run_prints_the_table_and_what_was_done(bench):
    spec, done = bench
    assert done.exit_code == 0, done.output
    assert "| **Elkan-Noto** |" in done.output
    assert "2 cells run in" in done.output
    assert "0 recorded before, 0 left." in done.output
    records = spec.parent.parent / "records" / "specs" / "pair.jsonl"
    assert len(records.read_text().splitlines()) == 2
    again = run("bench", "run", str(spec), "--device", "cpu")
    assert "0 cells run in" in again.output
    assert "2 recorded before" in again.output
    own = spec.parent.parent / "own.jsonl"
    alone = run("bench", "run", str(spec), "--device", "cpu", "--records", str(own))
    assert "2 cells run in" in alone.output
    shown = run("bench", "table", str(spec))
    assert shown.output.strip() in done.output


def test_bench_run_takes_several_specs(tmp_path):
    names = [tmp_path / f"{name}.toml" for name in ("one", "two")]
    names[0].write_text(BENCH)
    names[1].write_text(BENCH.replace("n_labeled = 30", "n_labeled = 31"))
    command = ["bench", "run", *map(str, names), "--device", "cpu"]
    refused = run(*command, "--records", str(tmp_path / "both.jsonl"))
    assert "both.jsonl is one file, and 2 specs" in str(refused.exception)
    done = run(*command)
    assert done.exit_code == 0, done.output
    for name in ("one", "two"):
        assert f"{name}: 2 of 2 cells recorded\n" in done.output
        assert len((tmp_path / f"{name}.jsonl").read_text().splitlines()) == 2
    assert "4 cells run in" in done.output
    names[1].write_text(BENCH.replace("n_labeled = 30", "n_labeled = 1"))
    again = run(*command)  # with records of cells that are no longer asked for
    assert "one: 2 of 2 cells recorded\n" in again.output
    assert "two: 2 of 2 cells recorded, 2 of them failed\n" in again.output
    assert "2 failed; --retry runs them again." in again.output
    assert again.exit_code == 1


def test_bench_run_that_is_stopped_says_that_nothing_is_lost(bench, monkeypatch):
    def stopped(*args, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("denspu.benchmark.runner.run_specs", stopped)
    done = run("bench", "run", str(bench[0]))
    assert done.exit_code == 130
    assert "What is recorded stays; the same command goes on" in done.output


def test_bench_status_tells_what_is_missing(bench, tmp_path):
    spec, _ = bench
    whole = run("bench", "status", str(spec))
    assert whole.exit_code == 0, whole.output
    assert whole.output == "pair: 2 of 2 cells recorded\n\nNothing is missing.\n"

    records = spec.parent.parent / "records" / "specs" / "pair.jsonl"
    longer = tmp_path / "longer.toml"
    longer.write_text(BENCH.replace("seeds = [10]", "seeds = [10, 11]"))
    here = run("bench", "status", str(longer), "--records", str(records))
    assert here.output.startswith("longer: 2 of 4 cells recorded\n\n| spec ")
    line = next(x for x in here.output.splitlines() if "Rocchio" in x)
    cells = [word.strip() for word in line.split("|")[1:-1]]
    assert cells == ["longer", "Rocchio", "digits", "1 of 2"]

    both = run("bench", "status", str(spec), str(longer), "--records", str(records))
    assert "is one file, and 2 specs" in str(both.exception)


def test_bench_refuses_a_spec_with_one_sentence(tmp_path):
    spec = tmp_path / "wrong.toml"
    spec.write_text(BENCH.replace("n_labeled", "n_labelled"))
    done = run("bench", "run", str(spec))
    assert isinstance(done.exception, InvalidParameterError)  # main() prints it
    assert "Did you mean 'n_labeled'?" in str(done.exception)
    assert not (tmp_path / "wrong.jsonl").exists()
