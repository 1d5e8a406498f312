"""Records: one JSON object a line, whole and readable again."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

import pytest

from denspu import __version__
from denspu.benchmark import Record, read_records, summarize, write_record
from denspu.benchmark.record import command, commit, versions
from denspu.exceptions import DataIntegrityError

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


def test_a_missing_file_has_no_records(tmp_path):
    assert read_records(tmp_path / "none.jsonl") == []


def test_nan_is_not_json(tmp_path):
    path = tmp_path / "runs.jsonl"
    with pytest.raises(ValueError, match="JSON"):
        write_record(record(accuracy=float("nan")), path)
    assert read_records(path) == []


def test_versions_name_what_shapes_a_result():
    found = versions()
    assert found["denspu"] == __version__
    assert found["python"] == sys.version.split()[0]
    assert {"numpy", "scipy", "scikit-learn", "torch"} <= set(found)
    assert "absent" not in found.values()


def test_commit_from_the_environment_wins(monkeypatch):
    monkeypatch.setenv("DENSPU_COMMIT", "abc123")
    assert commit() == "abc123"
    assert record().commit == "abc123"


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


def test_commit_without_git_is_unknown(monkeypatch):
    monkeypatch.delenv("DENSPU_COMMIT", raising=False)
    monkeypatch.setenv("PATH", "")
    assert commit() == "unknown"


def test_command_leaves_the_machines_folders_out(monkeypatch, tmp_path):
    words = [str(tmp_path / "digits.py"), "--seed", "1", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", words)
    assert command() == "python digits.py --seed 1 out"
    monkeypatch.setattr(sys, "argv", ["benchmarks/digits.py"])
    assert command() == "python benchmarks/digits.py"


@pytest.mark.parametrize("program", ["bin/denspu", "denspu/__main__.py"])
def test_command_of_the_program_itself(monkeypatch, tmp_path, program):
    words = ["bench", "run", str(tmp_path / "a.toml"), "--row", "uPU, last epoch"]
    monkeypatch.setattr(sys, "argv", [str(tmp_path / program), *words])
    assert command() == "denspu bench run a.toml --row 'uPU, last epoch'"


def test_summarize():
    records = [record(seed, accuracy) for seed, accuracy in enumerate([0.5, 0.7, 0.9])]
    mean, spread, n = summarize(records, "accuracy")
    assert (mean, spread, n) == (pytest.approx(0.7), pytest.approx(0.2), 3)
    assert summarize(records[:1], "accuracy") == (0.5, 0.0, 1)


def test_records_are_frozen():
    with pytest.raises(AttributeError):
        record().seed = 3
    assert asdict(record(3))["seed"] == 3


def test_half_a_line_at_the_end_is_not_read_and_is_cut_off(tmp_path):
    path = tmp_path / "runs.jsonl"
    write_record(record(0), path)
    with path.open("ab") as file:
        file.write(b'{"dataset": "dig')
    assert [r.seed for r in read_records(path)] == [0]
    write_record(record(1), path)
    assert [r.seed for r in read_records(path)] == [0, 1]
    assert path.read_text().count("\n") == 2


def test_a_whole_line_without_its_end_is_kept(tmp_path):
    path = tmp_path / "runs.jsonl"
    write_record(record(0), path)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert [r.seed for r in read_records(path)] == [0]
    write_record(record(1), path)
    assert [r.seed for r in read_records(path)] == [0, 1]


def test_half_a_line_elsewhere_is_an_error(tmp_path):
    path = tmp_path / "runs.jsonl"
    write_record(record(0), path)
    with path.open("ab") as file:
        file.write(b'{"dataset": "dig\n')
    with pytest.raises(DataIntegrityError, match=r"Line 2 of .* is not a record"):
        read_records(path)
