"""docs/results.md is what the specs and their records make of it."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from denspu.benchmark import Record, read_records, write_record
from denspu.benchmark.cells import cells_of, recorded
from denspu.benchmark.results import NOTHING, results_page
from denspu.benchmark.spec_file import load_spec

ROOT = Path(__file__).parent.parent.parent
SPEC = """
title = "{title}"
seeds = [0]
metrics = ["f1"]
[[tasks]]
name = "digits"
dataset = "digits"
n_labeled = 0.2
[[rows]]
name = "one"
method = "elkan_noto"
"""


@pytest.fixture
def script(monkeypatch):
    path = ROOT / "benchmarks" / "results.py"
    spec = importlib.util.spec_from_file_location("results_script", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # its dataclass looks there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folders(tmp_path):
    specs, records = tmp_path / "specs", tmp_path / "records"
    specs.mkdir()
    records.mkdir()
    for name in ("first", "second"):
        text = SPEC.format(title=f"The {name}")
        (specs / f"{name}.toml").write_text(text, encoding="utf-8")
    return specs, records


def write(folders, name, f1, **extra):
    specs, records = folders
    [cell] = cells_of(load_spec(specs / f"{name}.toml"))
    record = Record(
        dataset="digits",
        method="elkan_noto",
        variant="one",
        n_labeled=100,
        seed=0,
        metrics={"f1": f1},
        estimates={},
        seconds={"total": 1.0},
        device="cpu",
        extra=extra or {"cell": cell.id},
    )
    write_record(record, records / f"{name}.jsonl")


def test_the_page_agrees_with_the_records(script):
    assert not script.outdated(), "run: python benchmarks/results.py"


def test_a_changed_figure_is_noticed(script, folders, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "SPECS", folders[0])
    monkeypatch.setattr(script, "RECORDS", folders[1])
    monkeypatch.setattr(script, "PAGE", tmp_path / "results.md")
    assert script.outdated()  # there is no page
    monkeypatch.setattr("sys.argv", ["results.py"])
    write(folders, "first", 0.5)
    script.main()
    assert not script.outdated()
    monkeypatch.setattr("sys.argv", ["results.py", "--check"])
    with pytest.raises(SystemExit) as end:
        script.main()
    assert end.value.code == 0
    write(folders, "second", 0.6)
    with pytest.raises(
        SystemExit, match=r"out of date: results\.md, second-spread\.svg"
    ):
        script.main()


def test_pictures_are_drawn_where_records_changed(
    script, folders, tmp_path, monkeypatch
):
    monkeypatch.setattr(script, "SPECS", folders[0])
    monkeypatch.setattr(script, "RECORDS", folders[1])
    monkeypatch.setattr(script, "PAGE", tmp_path / "results.md")
    monkeypatch.setattr("sys.argv", ["results.py"])
    write(folders, "first", 0.5)
    write(folders, "second", 0.6)
    script.main()
    first, second = (
        tmp_path / "images" / "bench" / f"{name}-spread.svg"
        for name in ("first", "second")
    )
    page = script.PAGE.read_text("utf-8")
    assert "![Every seed: The first](images/bench/first-spread.svg)" in page
    assert page.count("![") == 2
    drawn, kept = first.read_bytes(), second.stat().st_mtime_ns

    first.unlink()
    assert script.outdated() == ["first-spread.svg"]
    script.main()
    assert first.read_bytes() == drawn
    assert second.stat().st_mtime_ns == kept  # nothing about it changed

    changed = (folders[1] / "first.jsonl").read_text("utf-8").replace("0.5", "0.4")
    (folders[1] / "first.jsonl").write_text(changed, "utf-8")
    script.PAGE.write_text(script.page(), "utf-8")
    assert script.outdated()  # the page is new, the picture is not
    script.main()
    assert not script.outdated()
    assert first.read_bytes() != drawn


def test_the_page_links_the_pictures_that_are_there(script):
    linked = set(re.findall(r"!\[[^]]+\]\(([^)]+)\)", script.PAGE.read_text("utf-8")))
    there = (script.PAGE.parent / script.FOLDER).iterdir()
    assert linked == {f"{script.FOLDER}/{path.name}" for path in there}


def test_only_specs_with_records_have_a_section(folders):
    write(folders, "first", 0.5)
    page = results_page(*folders)
    assert page.startswith("<!-- Made by")
    assert "## The first" in page
    assert "50.00" in page
    assert "## The second" not in page
    assert page.endswith("Specs without a record so far: `second`.\n")


def test_sections_can_be_found_and_numbered_tables_come_first(folders):
    specs, _ = folders
    spec = (specs / "second.toml").read_text("utf-8")
    titled = spec.replace("The second", "Table 9: 1 % of P, a_b – c")
    (specs / "table9.toml").write_text(titled, "utf-8")
    write(folders, "first", 0.5)
    write(folders, "table9", 0.6)
    page = results_page(*folders)
    links = re.findall(r"^\| \[(.*)\]\((#\S+)\) ", page, re.MULTILINE)
    assert links == [
        ("Table 9: 1 % of P", "#table-9-1--of-p-a_b--c"),
        ("The first", "#the-first"),
    ]
    assert page.index("## Table 9") < page.index("## The first")


def test_nothing_recorded_is_said(folders):
    write(folders, "first", 0.5, note="a record of another script")
    page = results_page(*folders)
    assert NOTHING in page
    assert "`first`, `second`" in page
    assert "50.00" not in page


def loss_of_encoder(record):
    """Return the last loss of the encoder behind a record, if it is told."""
    in_stages = record.extra.get("stages", {}).get("encode", {}).get("loss")
    return record.extra.get("shared_encoder_loss", in_stages)


def test_rows_that_share_an_encoder_started_from_the_same_one(script):
    """In Table 2 it is the one that our default trained itself."""
    for path in sorted(script.SPECS.glob("*.toml")):
        known = recorded(read_records(script.RECORDS / f"{path.stem}.jsonl"))
        losses = {}
        for cell in cells_of(load_spec(path)):
            default = cell.row.name == "Dens-PU, our default" and "table2" in path.stem
            if cell.id in known and (default or cell.row.encoder == "shared"):
                found = loss_of_encoder(known[cell.id])
                losses.setdefault(cell.encoder_id, set()).add(found)
        assert all(len(found - {None}) <= 1 for found in losses.values()), path.stem
