"""Records: one JSON object a line, whole and readable again."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from denspu import __version__
from denspu.benchmark import Record, read_records, summarize, write_record
from denspu.benchmark.record import command, commit, versions
from denspu.exceptions import DataIntegrityError, MissingDependencyError

FIELDS = {
    "dataset",
    "method",
    "variant",
    "n_labeled",
    "seed",
    "metrics",
    "estimates",
    "seconds",
    "device",
    "versions",
    "commit",
    "command",
    "extra",
}


def record(seed=0, accuracy=0.5, **changes):
    facts = {
        "dataset": "digits",
        "method": "dens_pu",
        "variant": "default",
        "n_labeled": 100,
        "seed": seed,
        "metrics": {"accuracy": accuracy},
        "estimates": {"expected_loss": 0.1},
        "seconds": {"total": 1.5},
        "device": "cpu",
        **changes,
    }
    return Record(**facts)


def test_round_trip(tmp_path):
    path = tmp_path / "deep" / "runs.jsonl"
    first, second = record(0), record(1, extra={"purity": 0.9})
    write_record(first, path)
    write_record(second, path)
    assert read_records(path) == [first, second]
    lines = path.read_text().splitlines()
    assert len(lines) == 2
    assert set(json.loads(lines[0])) == FIELDS


def test_changes_of_the_package_make_a_commit_dirty_and_no_others(
    tmp_path, monkeypatch
):
    def git(*words):
        identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
        done = ["git", *identity, *words]
        return subprocess.run(done, cwd=tmp_path, check=True, capture_output=True)

    package = tmp_path / "src" / "denspu"
    source = package / "benchmark" / "record.py"
    source.parent.mkdir(parents=True)
    source.write_text("one")
    (tmp_path / "records.jsonl").write_text("")
    monkeypatch.delenv("DENSPU_COMMIT", raising=False)
    monkeypatch.setattr("denspu.benchmark.record.PACKAGE", package)
    git("init", "-q")
    assert commit() == "unknown"  # it belongs to no commit of this repository
    git("add", "-A")
    git("commit", "-qm", "first")
    name = git("rev-parse", "HEAD").stdout.decode()[:12]
    assert commit() == name
    (tmp_path / "records.jsonl").write_text("{}")
    assert commit() == name
    (package / "new.py").write_text("new")
    assert commit() == f"{name}-dirty"
    (package / "new.py").unlink()
    source.write_text("two")
    assert commit() == f"{name}-dirty"


def test_summarize():
    records = [record(seed, accuracy) for seed, accuracy in enumerate([0.5, 0.7, 0.9])]
    mean, spread, n = summarize(records, "accuracy")
    assert (mean, spread, n) == (pytest.approx(0.7), pytest.approx(0.2), 3)
    assert summarize(records[:1], "accuracy") == (0.5, 0.0, 1)


def test_half_a_line_at_the_end_is_not_read_and_is_cut_off(tmp_path):
    path = tmp_path / "runs.jsonl"
    assert read_records(path) == []
    write_record(record(0), path)
    with path.open("ab") as file:
        file.write(b'{"dataset": "dig')
    assert [r.seed for r in read_records(path)] == [0]
    write_record(record(1), path)
    assert [r.seed for r in read_records(path)] == [0, 1]
    path.write_bytes(path.read_bytes().rstrip(b"\n"))  # whole, and without its end
    write_record(record(2), path)
    assert [r.seed for r in read_records(path)] == [0, 1, 2]
    with pytest.raises(ValueError, match="JSON"):
        write_record(record(accuracy=float("nan")), path)
    with path.open("ab") as file:
        file.write(b'{"dataset": "dig\n')
    with pytest.raises(DataIntegrityError, match=r"Line 4 of .* is not a record"):
        read_records(path)


def test_the_command_leaves_the_machines_folders_out(monkeypatch, tmp_path):
    for words, told in (
        (
            [tmp_path / "a.py", "--seed", "1", tmp_path / "out"],
            "python a.py --seed 1 out",
        ),
        (["benchmarks/digits.py"], "python benchmarks/digits.py"),
        (
            [tmp_path / "bin" / "denspu", "bench", tmp_path / "a.toml", "uPU, last"],
            "denspu bench a.toml 'uPU, last'",
        ),
        ([tmp_path / "denspu" / "__main__.py", "list"], "denspu list"),
    ):
        monkeypatch.setattr(sys, "argv", list(map(str, words)))
        assert command() == told


def test_versions_and_commit(monkeypatch):
    found = versions()
    assert found["denspu"] == __version__
    assert {"numpy", "scipy", "scikit-learn", "torch"} <= set(found)
    monkeypatch.setenv("DENSPU_COMMIT", "abc123")
    assert record().commit == "abc123"
    monkeypatch.delenv("DENSPU_COMMIT")
    monkeypatch.setenv("PATH", "")
    assert commit() == "unknown"


def test_what_is_not_installed_is_told_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.delitem(sys.modules, "denspu.benchmark")
    with pytest.raises(MissingDependencyError, match=r"pip install 'denspu\[bench\]'"):
        importlib.import_module("denspu.benchmark")
