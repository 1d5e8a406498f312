"""Tables say what the records say, failures and gaps too."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from denspu.benchmark import Record
from denspu.benchmark.results import (
    command_of,
    differences,
    differences_grid,
    how_to_read,
    notes_of,
    share_of_positives,
    verdicts,
)
from denspu.benchmark.spec import Row, Spec, Task, cells_of
from denspu.benchmark.tables import tables_of

A = Task("A", "digits", 100)
B = Task("B", "digits", 0.2, positive=(0, 1), keep_positive=0.5, mechanism="sar")
OURS = Row("ours", "dens_pu")
OTHER = Row("nnPU", "nnpu", prior="true", printed={"A": {"f1": 90.0}}, note="As told.")
ORACLE = Row("truth", "supervised", oracle="all")
SPEC = Spec(
    name="small",
    title="A small table",
    tasks=(A,),
    rows=(OTHER, OURS),
    seeds=(0, 1, 2),
    metrics=("f1", "roc_auc"),
    reference="ours",
)


def record(cell, f1=None, *, error=None, **changes):
    """Make the record of a cell; AUC is always 0.99."""
    extra = {"cell": cell.id, **changes.pop("extra", {})}
    facts = {
        "dataset": cell.task.dataset,
        "method": cell.row.method,
        "variant": cell.row.name,
        "n_labeled": 100,
        "seed": cell.seed,
        "metrics": {} if f1 is None else {"f1": f1, "roc_auc": 0.99},
        "estimates": {},
        "seconds": {"total": 2.0},
        "device": "a GPU",
        "extra": extra if error is None else {**extra, "error": error},
        "versions": {},
        "commit": "abc",
        "command": "test",
    }
    return Record(**{**facts, **changes})


def records_of(spec, figures, **changes):
    """Make records from {(row, task): F1 by seed}; ``None`` is a seed left out."""
    out = []
    for cell in cells_of(spec):
        by_seed = figures.get((cell.row.name, cell.task.name), ())
        i = spec.seeds.index(cell.seed)
        if i < len(by_seed) and by_seed[i] is not None:
            out.append(record(cell, by_seed[i], **changes))
    return out


FIGURES = {("ours", "A"): (0.95, 0.96, 0.97), ("nnPU", "A"): (0.90, 0.92, 0.91)}


def cells_in(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


# --- tables ---------------------------------------------------------------------------


def test_table_as_markdown_word_for_word():
    [table] = tables_of(SPEC, records_of(SPEC, FIGURES))
    assert table.markdown() == (
        "|          |                          F1 |      ROC AUC | seeds | seconds |\n"
        "| -------- | --------------------------: | -----------: | ----: | ------: |\n"
        "| nnPU     | 91.00 ± 1.00 (90.00, +1.00) | 99.00 ± 0.00 |     3 |     2.0 |\n"
        "| **ours** |                96.00 ± 1.00 | 99.00 ± 0.00 |     3 |     2.0 |"
    )


def test_failed_and_missing_cells_are_said():
    cells = [c for c in cells_of(SPEC) if c.row.name == "nnPU"]
    records = [
        record(cells[0], error="MemoryError: before it went well"),
        record(cells[0], 0.9),
        record(cells[1], error="InvalidInputError: X has 3 rows"),
    ]
    [table] = tables_of(SPEC, records)
    assert table.lines == [
        [
            *("nnPU", "90.00 (90.00, +0.00)", "99.00"),
            *("1 (1 of 3 failed: InvalidInputError, 1 of 3 missing)", "2.0"),
        ],
        ["ours", "–", "–", "0 (3 of 3 missing)", "–"],
    ]
    [table] = tables_of(SPEC, [record(cells[0], error="MemoryError: x")])
    assert table.lines[0][1] == "– (90.00)"


def test_records_of_other_cells_are_left_out_and_counted():
    other = replace(SPEC, seeds=(7,))
    stranger = record(cells_of(other)[0], 0.1)
    old = replace(stranger, extra={})
    records = [*records_of(SPEC, FIGURES), stranger, old]
    assert tables_of(SPEC, records) == tables_of(SPEC, records_of(SPEC, FIGURES))
    assert "1 recorded cells are left out" in notes_of(SPEC, records)[-1]


def test_oracle_columns_stand_where_a_row_has_them():
    plain_table = tables_of(SPEC, records_of(SPEC, FIGURES))[0]
    assert plain_table.header[1:-2] == ["F1", "ROC AUC"]
    walk = {"oracle": {"boundary_auc": 0.75, "purity": 0.5}}
    ours = {("ours", "A"): FIGURES["ours", "A"]}
    nnpu = {("nnPU", "A"): FIGURES["nnPU", "A"]}
    records = records_of(SPEC, ours, extra=walk) + records_of(SPEC, nnpu)
    [table] = tables_of(SPEC, records)
    wanted = ["F1", "ROC AUC", "boundary AUC", "purity of Ñ"]
    assert table.header[1:-2] == wanted
    assert table.lines[0][3:5] == ["", ""]
    assert table.lines[1][3:5] == ["75.00 ± 0.00", "50.00 ± 0.00"]


def test_layout_of_tasks_word_for_word():
    spec = replace(
        SPEC,
        tasks=(A, B),
        layout="tasks",
        rows=(OTHER, OURS, replace(ORACLE, tasks=("B",))),
    )
    figures = {**FIGURES, ("ours", "B"): (0.8, 0.9), ("truth", "B"): (0.99,) * 3}
    [table] = tables_of(spec, records_of(spec, figures))
    assert table.title == "F1"
    header, _, *lines = table.markdown().splitlines()
    assert cells_in(header) == ["", "A", "B", "seeds", "seconds"]
    assert [cells_in(line) for line in lines] == [
        [
            "nnPU",
            "91.00 ± 1.00 (90.00, +1.00)",
            "–",
            "0 to 3 (3 of 3 missing on B)",
            "2.0",
        ],
        [
            "**ours**",
            "96.00 ± 1.00",
            "85.00 ± 7.07",
            "2 to 3 (1 of 3 missing on B)",
            "2.0",
        ],
        ["truth", "", "99.00 ± 0.00", "3", "2.0"],
    ]


def test_layout_of_tasks_gives_oracle_figures_a_table_of_their_own():
    spec = replace(SPEC, tasks=(A, B), layout="tasks")
    ours = records_of(
        spec, {("ours", "A"): (0.9,)}, extra={"oracle": {"boundary_auc": 0.7}}
    )
    main, boundary = tables_of(spec, ours + records_of(spec, {("nnPU", "A"): (0.9,)}))
    assert (main.title, boundary.title) == ("F1", "Boundary AUC")
    [line] = boundary.lines
    assert line[:3] == ["ours", "70.00", "–"]  # the second is not run yet


def shares(names):
    """Return tasks of two data sets that differ in the share of labels."""
    return tuple(
        Task(f"{name} {p}", name, p / 100, share_of="training set")
        for name in names
        for p in (1, 2.5, 10, 20, 30)
    )


def test_many_tasks_get_a_table_for_each_data_set():
    spec = replace(SPEC, tasks=shares(["digits", "mnist"]), layout="tasks")
    figures = {("ours", "mnist 10"): (0.9,)}
    walk = {"oracle": {"boundary_auc": 0.7}}
    tables = tables_of(spec, records_of(spec, figures, extra=walk))
    assert [t.title for t in tables] == [
        "F1 on digits",
        "F1 on mnist",
        "Boundary AUC on mnist",
    ]
    assert tables[1].header[3] == "mnist 10"
    assert tables[1].lines[1][3] == "90.00"


def test_what_happened_on_several_tasks_is_said_in_short():
    spec = replace(SPEC, tasks=shares(["digits"]), layout="tasks", rows=(OURS,))
    whole = (0.9,) * 3

    def seeds(figures):
        records = records_of(spec, {("ours", t): f for t, f in figures.items()})
        return tables_of(spec, records)[0].lines[0][-2]

    names = [t.name for t in spec.tasks]
    assert seeds({}) == "0 (3 of 3 missing on each task)"
    assert seeds(dict.fromkeys(names, whole)) == "3"
    assert (
        seeds(dict.fromkeys(names[:2], whole)) == "0 to 3 (3 of 3 missing on 3 tasks)"
    )
    assert (
        seeds({**dict.fromkeys(names[:3], whole), names[3]: (0.9,)})
        == "0 to 3 (2 of 3 missing on digits 20; 3 of 3 missing on digits 30)"
    )


def test_seconds_are_medians_and_name_the_encoder():
    shared = replace(SPEC, rows=(replace(OTHER, encoder="shared"), OURS))
    records = [
        record(cell, 0.9, seconds={"total": total, "shared_encoder": 171.2})
        for cell, total in zip(cells_of(shared)[::2], (1.0, 2.4, 60.0), strict=True)
    ]
    nnpu, ours = tables_of(shared, records)[0].lines
    assert (nnpu[-1], ours[-1]) == ("2.4 + encoder 171", "–")
    assert any("“+ encoder”" in note for note in notes_of(shared, records))
    spec = replace(SPEC, tasks=(A, B), layout="tasks", rows=(OURS,), reference=None)
    seconds = {"A": (5.0, 6.0, 9.0), "B": (240.0, 245.0, 300.0)}
    records = [
        record(c, 0.9, seconds={"total": seconds[c.task.name][c.seed]})
        for c in cells_of(spec)
    ]
    assert tables_of(spec, records)[0].lines[0][-1] == "6.0 to 245"


GROUPED = replace(
    SPEC,
    rows=(
        replace(OTHER, group="theirs | <b>"),
        replace(OTHER, name="uPU", method="upu", group="theirs | <b>"),
        OURS,
        replace(ORACLE, group="*truth*"),
    ),
)
EVIL = "<script>alert(1)</script> | *bold* & more"


def evil_spec():
    task = replace(A, name=EVIL)
    rows = (replace(OTHER, name=EVIL, printed={}), OURS)
    return replace(SPEC, tasks=(task,), rows=rows, layout="tasks", title=EVIL)


def test_names_are_words_and_no_markup():
    spec = evil_spec()
    figures = {(EVIL, EVIL): (0.9, 0.9), ("ours", EVIL): (0.9, 0.8)}
    records = records_of(spec, figures)
    [table] = tables_of(spec, records)
    header, _, first, _ = table.markdown().splitlines()
    safe = r"&lt;script>alert(1)&lt;/script> \| \*bold\* & more"
    assert safe in header
    assert first.startswith(f"| {safe} |")


def test_the_name_of_a_group_stands_above_its_rows_once():
    figures = {**FIGURES, ("truth", "A"): (0.99, 0.98, 0.99)}
    found = differences(GROUPED, records_of(GROUPED, figures))
    for text, ours in (
        (tables_of(GROUPED, [])[0].markdown(), ["**ours**"]),
        (differences_grid(GROUPED, found).markdown(), []),
    ):
        names = [re.split(r"(?<!\\)\|", line)[1].strip() for line in text.splitlines()]
        assert names[2:] == [
            *("*theirs \\| &lt;b>*", "nnPU", "uPU", *ours),
            *("*\\*truth\\**", "truth"),
        ]


# --- the reference against the others -------------------------------------------------


def test_differences_are_taken_seed_by_seed():
    ours, theirs = (0.95, 0.96, 0.97), (0.90, None, 0.94)
    records = records_of(SPEC, {("ours", "A"): ours, ("nnPU", "A"): theirs})
    [found] = differences(SPEC, records)
    paired = stats.ttest_rel([95, 97], [90, 94])
    interval = paired.confidence_interval(0.95)
    assert (found.row, found.task, found.n) == ("nnPU", "A", 2)
    assert found.mean == pytest.approx(4)
    assert found.mean - found.half_width == pytest.approx(interval.low)
    assert found.mean + found.half_width == pytest.approx(interval.high)


def three_tasks():
    C = replace(A, name="C", positive=(2, 3))
    rows = (OTHER, replace(OTHER, name="half", parameters={"epochs": 1}), OURS, ORACLE)
    spec = replace(SPEC, tasks=(A, B, C), rows=rows)
    figures = {
        ("ours", "A"): (0.95, 0.96, 0.97),
        ("nnPU", "A"): (0.90, 0.91, 0.91),
        ("truth", "A"): (0.98, 0.99, 0.995),
        ("ours", "B"): (0.80, 0.82, 0.81),
        ("nnPU", "B"): (0.81, 0.80, 0.81),
        ("ours", "C"): (0.70, 0.71, 0.72),
        ("nnPU", "C"): (0.69, 0.70, 0.72),
        ("half", "C"): (0.60,),
    }
    return spec, records_of(spec, figures)


def test_over_tasks_is_the_mean_of_means_with_an_interval_over_tasks():
    spec, records = three_tasks()
    found = [d for d in differences(spec, records) if d.task is None]
    assert [d.row for d in found] == ["nnPU"]  # the others have one task
    means = np.array([16 / 3, 1 / 3, 2 / 3])
    low, _ = stats.t.interval(0.95, 2, means.mean(), stats.sem(means))
    assert found[0].n == 3
    assert found[0].mean == pytest.approx(means.mean())
    assert found[0].mean - found[0].half_width == pytest.approx(low)


def test_tasks_count_as_one_where_labels_alone_differ_and_as_many_where_rows_do():
    def over_tasks(*tasks):
        spec = replace(SPEC, tasks=tasks)
        figures = {(r, t.name): (0.9,) * 3 for r in ("ours", "nnPU") for t in tasks}
        found = differences(spec, records_of(spec, figures))
        told = "may share their images" in how_to_read(spec, found)
        [n] = [d.n for d in found if d.task is None] or [0]
        assert told == (n > 0)
        return n

    rare = replace(A, name="rare", keep_positive=0.5)
    rarer = replace(A, name="rarer", keep_positive=0.25)
    more = replace(A, name="more", n_labeled=200)
    assert over_tasks(A, rare, rarer) == 3
    assert over_tasks(A, rare, more) == 0  # two kinds are too few
    assert over_tasks(A, rare, more, rarer) == 3


def test_table_of_differences_word_for_word():
    spec, records = three_tasks()
    grid = differences_grid(spec, differences(spec, records))
    header, _, *lines = grid.markdown().splitlines()
    assert cells_in(header) == ["", "A", "B", "C", "over tasks"]
    assert [cells_in(line) for line in lines] == [
        [
            "nnPU",
            "+5.33 (+3.90 to +6.77, 3 seeds)",
            "+0.33 (-3.46 to +4.13, 3 seeds)",
            "+0.67 (-0.77 to +2.10, 3 seeds)",
            "+2.11 (-4.83 to +9.06, 3 tasks)",
        ],
        ["half", "–", "–", "+10.00 (1 seed)", ""],
        ["truth", "-2.83 (-3.55 to -2.12, 3 seeds)", "–", "–", ""],
    ]


def test_more_tasks_than_rows_stand_below_each_other():
    spec = replace(SPEC, tasks=shares(["digits"]))
    figures = {
        (row, task.name): (f1 + 0.01 * i,)
        for i, task in enumerate(spec.tasks[:2])
        for row, f1 in (("ours", 0.9), ("nnPU", 0.8 - 0.05 * i))
    }
    found = differences(spec, records_of(spec, figures))
    header, _, *lines = differences_grid(spec, found).markdown().splitlines()
    assert cells_in(header) == ["", "nnPU"]
    assert [cells_in(line) for line in lines] == [
        ["digits 1", "+10.00 (1 seed)"],
        ["digits 2.5", "+15.00 (1 seed)"],
        ["digits 10", "–"],
        ["digits 20", "–"],
        ["digits 30", "–"],
    ]
    assert verdicts(spec, found) == [
        "Against nnPU: ahead on 0 of 5 tasks with an interval above 0. Fewer than 3 "
        "seeds in common on: digits 1 (+10.00); digits 2.5 (+15.00). No seed in common "
        "on: digits 10; digits 20; digits 30.",
    ]
    seeing = replace(OTHER, method="supervised", oracle="all", prior="none")
    spec = replace(spec, rows=(seeing, OURS))
    [said] = verdicts(spec, differences(spec, records_of(spec, figures)))
    assert said.startswith("Against nnPU, trained on true labels: ahead on 0 of 5")


def test_verdicts_word_for_word():
    spec, records = three_tasks()
    assert verdicts(spec, differences(spec, records)) == [
        "On A: ahead of 1 of 2 rows with an interval above 0; of 1 even if all "
        "intervals of the table must hold at once. No seed in common with: half. "
        "Trained on true labels, and not counted: truth (-2.83).",
        "On B: ahead of 0 of 2 rows with an interval above 0. Not told apart from: "
        "nnPU (+0.33). No seed in common with: half.",
        "On C: ahead of 0 of 2 rows with an interval above 0. Not told apart from: "
        "nnPU (+0.67). Fewer than 3 seeds in common with: half (+10.00).",
        "Over tasks: ahead of 0 of 1 row with an interval above 0. Not told apart "
        "from: nnPU (+2.11).",
    ]


def test_two_seeds_are_not_judged_however_well_they_agree():
    figures = {("ours", "A"): (0.95, 0.96), ("nnPU", "A"): (0.900, 0.911)}
    [found] = differences(SPEC, records_of(SPEC, figures))
    assert (found.n, found.verdict) == (2, "few")
    assert found.mean > found.half_width


def test_with_many_rows_an_interval_must_be_wider_to_stand():
    """Bonferroni over the rows that are judged: not oracles, nor those of few seeds."""
    figures = {
        ("ours", "A"): (0.95, 0.96, 0.97),
        ("nnPU", "A"): (0.93, 0.95, 0.95),
        ("half", "A"): (0.90, 0.91, 0.92),
        ("late", "A"): (0.90, 0.91),
        ("truth", "A"): (0.98, 0.99, 0.995),
    }
    half, late = (
        replace(OTHER, name=name, parameters={"epochs": i})
        for i, name in enumerate(("half", "late"), 1)
    )
    spec = replace(SPEC, rows=(OTHER, half, late, OURS, ORACLE))
    by_row = {d.row: d for d in differences(spec, records_of(spec, figures))}
    near = by_row["nnPU"]
    wide = stats.t.interval(1 - 0.05 / 2, 2, scale=stats.sem([2, 1, 2]))[1]
    assert near.joint_half_width == pytest.approx(wide)
    assert (near.verdict, near.stands) == ("ahead", False)
    assert (by_row["half"].verdict, by_row["half"].stands) == ("ahead", True)
    assert not by_row["late"].stands
    text, *_ = verdicts(spec, list(by_row.values()))
    assert text.startswith("On A: ahead of 2 of 3 rows with an interval above 0; of 1 ")


def test_what_stands_is_judged_among_all_intervals_of_the_table():
    """One other row, three tasks: 4.30 standard errors alone, 7.65 of three."""
    spec, records = three_tasks()
    by_task = {d.task: d for d in differences(spec, records) if d.row == "nnPU"}
    wide = stats.t.interval(1 - 0.05 / 3, 2, scale=stats.sem([5, 5, 6]))[1]
    assert by_task["A"].joint_half_width == pytest.approx(wide)
    alone = by_task[None]  # a question of its own
    assert alone.joint_half_width == pytest.approx(alone.half_width)
    truth = [d for d in differences(spec, records) if d.row == "truth"]
    assert all(d.joint_half_width is None and not d.stands for d in truth)
    [only] = differences(SPEC, records_of(SPEC, FIGURES))
    assert only.stands
    assert "at once" not in verdicts(SPEC, [only])[0]  # the same with one interval


def test_what_chance_could_do_is_said():
    """nnPU on three tasks and over them; the oracle and one seed do not count."""
    spec, records = three_tasks()
    found = differences(spec, records)
    said = how_to_read(spec, found)
    assert "Of 4 such intervals about 0.2 would leave out 0 by chance" in said
    assert f"still be {stats.binomtest(3, 3).pvalue:.2g} in a sign test" in said
    found = differences(SPEC, records_of(SPEC, dict.fromkeys(FIGURES, (0.9,))))
    assert "sign test" not in how_to_read(SPEC, found)


# --- what must be known to read a table -----------------------------------------------


def test_notes_word_for_word():
    spec = replace(SPEC, tasks=(A, B), note="The end.")
    assert notes_of(spec, records_of(SPEC, FIGURES)) == [
        "A: data set digits, one-sample, SCAR; labelled: 100.",
        "B: data set digits, positive classes 0, 1, 50 % of the positives kept, "
        "one-sample, SAR; labelled: 20 % of the positives.",
        "In brackets: what the paper prints, and ours minus it.",
        "Seeds: 0, 1, 2. Judged are the last epoch's weights, never those of the best "
        "epoch on the test set.",
        "Settings were fixed beforehand and not tried out on these data.",
        "Seconds: median over seeds; device: a GPU.",
        "Code: commit abc.",
        "nnPU: As told.",
        "The end.",
    ]


def test_a_row_may_run_with_some_of_the_seeds():
    """It is the same run as before, waits for no other seed, and the note says so."""
    few = replace(SPEC, rows=(OTHER, replace(OURS, seeds=(0, 2))))
    assert [c.seed for c in cells_of(few) if c.row.name == "ours"] == [0, 2]
    assert {c.id for c in cells_of(few)} < {c.id for c in cells_of(SPEC)}
    said = " ".join(notes_of(few, []))
    assert "Seeds: 0, 1, 2; ours: 0, 2. Judged are" in said
    (table,) = tables_of(few, records_of(few, {("ours", "A"): (0.9, 0.7, 0.8)}))
    assert table.lines[1][-2] == "2"


def test_tasks_that_differ_in_labels_alone_share_a_note():
    spec = replace(SPEC, tasks=(*shares(["digits"])[:2], A, replace(A, name="more")))
    assert notes_of(spec, [])[:2] == [
        "digits 1; digits 2.5: data set digits, one-sample, SCAR; labelled: "
        "1 %, 2.5 % of the training set's size.",
        "A; more: data set digits, one-sample, SCAR; labelled: 100, 100.",
    ]


def test_notes_name_every_device_but_not_that_of_failures():
    ours, *others = SPEC.rows
    spec = replace(SPEC, rows=(replace(ours, device="cpu"), *others))
    cells = cells_of(spec)
    records = [
        record(cells[0], 0.9, device="cpu, 1 threads"),
        record(cells[1], 0.9, device="two", extra={"jobs": 4}),
        record(cells[2], 0.9, device="two"),
        record(cells[3], error="MemoryError: x", device="auto"),
    ]
    said = (
        "Seconds: median over seeds; device: two (2 cells), cpu, 1 thread (1 cell), up "
        "to 4 cells at once. On a CPU in any case: nnPU."
    )
    assert said in notes_of(spec, records)


def test_notes_name_rows_that_choose_or_were_tried_out_and_every_version():
    ours, other = SPEC.rows[:2]
    rows = (
        replace(ours, tuning="twenty settings"),
        replace(other, selection="label-free"),
        *SPEC.rows[2:],
    )
    spec = replace(SPEC, rows=rows)
    cells = cells_of(spec)
    records = [
        record(cells[0], 0.9, commit="one"),
        record(cells[1], 0.9, commit="two-dirty"),
    ]
    said = notes_of(spec, records)
    assert any(
        f"test set; {other.name}: those that the method's own label-free rule" in text
        for text in said
    )
    place = said.index(
        "Settings were fixed beforehand and not tried out on these data, but for those "
        "of the rows that follow."
    )
    assert said[place + 1] == f"Settings of {ours.name}: twenty settings."
    assert "Code: commits one, two; 1 cell ran with uncommitted changes." in said
    untried = "Settings were fixed beforehand and not tried out on these data."
    assert untried in notes_of(SPEC, records)


def test_sizes_of_the_chosen_negatives_are_told():
    """Where fewer are left outside than asked for, all ways to choose are the same."""
    spec = replace(SPEC, rows=(OTHER, replace(OTHER, name="few", method="upu"), OURS))
    counts = {"nnPU": (1000, 1000, 1000), "few": (362, 1240, 735), "ours": (1000,) * 3}
    records = [
        record(
            cell,
            0.9,
            extra={
                "stages": {"select": {"negatives": counts[cell.row.name][cell.seed]}}
            },
        )
        for cell in cells_of(spec)
    ]
    assert "Size of Ñ: 1,000; few: 362 to 1,240." in notes_of(spec, records)
    assert not any("Size of" in note for note in notes_of(spec, records_of(SPEC, {})))


def test_what_calling_every_row_positive_would_score_is_told():
    """Of 40 positives and 160 negatives: recall 0.9, 0.5 of the negatives right."""
    of = {"accuracy": (36 + 80) / 200, "balanced_accuracy": 0.7, "recall": 0.9}
    blind = {"accuracy": 0.5, "balanced_accuracy": 0.5, "recall": 0.5}
    assert share_of_positives([blind, {}, of]) == pytest.approx(0.2)
    assert share_of_positives([blind]) is None
    rounded = {"accuracy": 0.5, "balanced_accuracy": 0.5, "recall": 0.51}
    assert share_of_positives([of, rounded]) == pytest.approx(0.2)
    spec = replace(SPEC, tasks=(A, B))
    half = {"accuracy": 0.7, "balanced_accuracy": 0.7, "recall": 0.9}

    def said(of_b):
        figures = {"A": of, "B": of_b}
        return notes_of(
            spec,
            [
                replace(record(c, 0.9), metrics=figures[c.task.name])
                for c in cells_of(spec)
            ],
        )

    words = "Calling every test row positive: accuracy 20.00, F1 33.33"
    assert f"{words}." in said(of)
    assert f"{words} on A; accuracy 50.00, F1 66.67 on B." in said(half)
    assert not any("every test row" in note for note in notes_of(SPEC, []))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/me/denspu/benchmarks/specs/small.toml", "benchmarks/specs/small.toml"),
        ("benchmarks/specs/small.toml", "benchmarks/specs/small.toml"),
        ("my specs/small.toml", "'my specs/small.toml'"),
        ("", "small.toml"),
    ],
)
def test_the_command_names_the_file_that_was_read(path, shown):
    assert command_of(replace(SPEC, path=path)) == f"denspu bench run {shown}"
