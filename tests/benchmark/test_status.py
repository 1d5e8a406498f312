"""What is missing, and what it would take."""

from __future__ import annotations

from dataclasses import replace

from denspu.benchmark import Record
from denspu.benchmark.cells import cells_of
from denspu.benchmark.spec import Row, Spec, Task
from denspu.benchmark.status import ENCODERS, NOTHING, Span, parts_of, status_markdown
from denspu.benchmark.tables import MISSING

SPEC = Spec(
    name="small",
    title="A small table",
    tasks=(Task("A", "digits", 100), Task("B", "fashion-mnist", 100)),
    rows=(
        Row("ours", "dens_pu"),
        Row("nnPU", "nnpu", prior="true", encoder="shared"),
    ),
    seeds=(0, 1, 2),
)
ALIKE = replace(SPEC, name="alike", title="The same runs")


def record(cell, total=8.0, *, device="a GPU", jobs=1, **extra):
    shared = {"shared_encoder": 100.0 + cell.seed} if cell.shared_encoder else {}
    return Record(
        dataset=cell.task.dataset,
        method=cell.row.method,
        variant=cell.row.name,
        n_labeled=100,
        seed=cell.seed,
        metrics={},
        estimates={},
        seconds={"total": total, **shared},
        device=device,
        extra={"cell": cell.id, "jobs": jobs, **extra},
    )


def parts(records, *specs, on_gpu=True, encoders="nowhere"):
    asked = [(spec, records) for spec in specs or (SPEC,)]
    found = parts_of(asked, on_gpu=on_gpu, encoders=encoders)
    return {(p.spec, p.name, p.dataset): p for p in found}


def cells(row, dataset):
    return [c for c in cells_of(SPEC) if (c.row.name, c.task.dataset) == (row, dataset)]


def test_missing_and_failed_cells_are_counted_by_row_and_data():
    first, second, _ = cells("ours", "digits")
    found = parts([record(first), record(second, error="MemoryError: x")])
    ours = found["small", "ours", "digits"]
    assert (ours.cells, ours.missing, ours.failed) == (3, 1, 1)
    other = found["small", "ours", "fashion-mnist"]
    assert (other.cells, other.missing, other.failed) == (3, 3, 0)


def test_seconds_are_shares_of_the_device_by_records_of_these_data():
    first, second, _ = cells("ours", "digits")
    records = [record(first, 40.0, jobs=5), record(second, 30.0, jobs=2)]
    found = parts(records)
    ours = found["small", "ours", "digits"]
    assert ours.each == Span(8.0, 15.0)
    assert ours.left == Span(8.0, 15.0)
    assert found["small", "ours", "fashion-mnist"].each is None
    assert found["small", "ours", "fashion-mnist"].left is None


def test_a_row_never_run_is_judged_by_the_same_work_in_another_spec():
    """Other labels and another name do not change it; other settings do."""
    known = replace(SPEC, shared_encoder={"epochs": 3})
    row = replace(SPEC.rows[1], name="nnPU again")
    other = replace(row, name="nnPU, longer", parameters={"epochs": 500})
    new = replace(
        known,
        name="new",
        tasks=(Task("C", "digits", 500, positive=(1, 2)), SPEC.tasks[1]),
        rows=(row, other),
        shared_encoder={"epochs": 3, "positive_weight": 0},
    )
    seen = [
        record(cell, 8.0 + cell.seed)
        for cell in cells_of(known)
        if (cell.row.name, cell.task.name) == ("nnPU", "A") and cell.seed < 2
    ]
    found = parts(seen, new, known)
    assert found["new", "nnPU again", "digits"].each == Span(8.0, 9.0)
    assert found["new", "nnPU, longer", "digits"].each is None
    assert found["new", "nnPU again", "fashion-mnist"].each is None
    assert found["new", ENCODERS, "digits"].each == Span(100.0, 101.0)
    assert found["new", ENCODERS, "fashion-mnist"].each is None
    found = parts([*seen, record(cells_of(new)[0], 50.0)], new, known)
    assert found["new", "nnPU again", "digits"].each == Span(50.0, 50.0)


def test_only_seconds_of_such_a_device_count():
    first, second, _ = cells("ours", "digits")
    records = [record(first, 40.0), record(second, 7.0, device="cpu, 1 threads")]
    key = ("small", "ours", "digits")
    assert parts(records)[key].each == Span(40.0, 40.0)
    assert parts(records, on_gpu=False)[key].each == Span(7.0, 7.0)
    failure = record(first, 0.1, error="MemoryError: x")
    assert parts([failure])[key].each is None


def test_what_keeps_to_a_cpu_takes_nothing_of_a_gpu():
    """It is judged by CPUs alone, and told apart from what the device would take."""
    spec = replace(SPEC, rows=(SPEC.rows[0], replace(SPEC.rows[0], name="cpu")))
    spec = replace(spec, rows=(spec.rows[0], replace(spec.rows[1], device="cpu")))
    both = [c for c in cells_of(spec) if (c.task.name, c.seed) == ("A", 0)]
    anywhere, kept = sorted(both, key=lambda c: c.row.device)
    seen = [record(anywhere, 40.0), record(kept, 9.0, device="cpu, 2 threads")]
    found = parts(seen, spec)
    here, there = (found["small", name, "digits"] for name in ("ours", "cpu"))
    assert (here.each, here.elsewhere) == (Span(40.0, 40.0), False)
    assert (there.each, there.elsewhere) == (Span(9.0, 9.0), True)
    text = status_markdown([here, there])
    assert text.endswith(
        "Together 80 s of such a device. 2 cells more on a CPU, with seconds of a CPU."
    )
    on_cpu = parts(seen, spec, on_gpu=False)["small", "cpu", "digits"]
    assert (on_cpu.each, on_cpu.elsewhere) == (Span(9.0, 9.0), False)
    none_known = parts([], spec)
    said = status_markdown([none_known["small", n, "digits"] for n in ("ours", "cpu")])
    assert said.endswith(
        "None of these 3 is like a run recorded on such a device. "
        "3 cells more on a CPU, with seconds of a CPU."
    )


def test_encoders_are_missing_where_a_cell_is_and_none_is_kept(tmp_path):
    spec = replace(SPEC, shared_encoder={"epochs": 3})
    mine = [c for c in cells_of(spec) if c.row.name == "nnPU"]
    done = record(mine[0])
    key = ("small", ENCODERS, "digits")

    found = parts([done], spec)[key]
    assert (found.cells, found.missing) == (3, 2)
    assert found.each == Span(100.0, 100.0)
    digits = [c for c in mine if c.task.dataset == "digits" and c is not mine[0]]
    (tmp_path / digits[0].encoder_id).mkdir()
    assert parts([done], spec, encoders=tmp_path)[key].missing == 1


def test_what_two_specs_ask_for_is_missing_once():
    found = parts([], SPEC, ALIKE)
    assert found["small", "ours", "digits"].missing == 3
    assert found["alike", "ours", "digits"].missing == 0
    assert found["small", ENCODERS, "digits"].missing == 3
    assert found["alike", ENCODERS, "digits"].missing == 0


def test_the_table_names_what_is_open_and_sums_it_up():
    records = [
        record(c, 10.0 + c.seed)
        for c in cells_of(SPEC)
        if (c.seed < 2 or c.task.name == "A") and c.row.name == "ours"
    ]
    table = status_markdown(list(parts(records).values()))
    lines = [[w.strip() for w in line.split("|")[1:-1]] for line in table.splitlines()]
    assert lines[2] == [
        *("small", "ours", "fashion-mnist", "1 of 3", "10 to 11", "10 to 11"),
    ]
    assert lines[3] == ["small", "nnPU", "digits", "3 of 3", MISSING, MISSING]
    assert table.endswith(
        "Together 10 to 11 s of such a device, and 12 runs that are like none recorded "
        "on one."
    )


def test_nothing_missing_and_nothing_known():
    whole = [record(cell) for cell in cells_of(SPEC)]
    assert status_markdown(list(parts(whole).values())) == NOTHING
    text = status_markdown(list(parts([]).values()))
    assert text.endswith("None of these 18 is like a run recorded on such a device.")


def test_a_failed_cell_is_shown_though_nothing_is_missing():
    first, *others = cells_of(SPEC)
    records = [record(first, error="MemoryError: x"), *map(record, others)]
    text = status_markdown(list(parts(records).values()))
    assert "0 of 3, 1 failed" in text
    assert text.endswith("\n\n1 failed; `denspu bench run --retry` runs them again.")
