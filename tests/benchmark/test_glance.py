"""All tables on one screen: counts and figures agree with what stands below."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.benchmark.test_tables import records_of

from denspu.benchmark.glance import glance_markdown, glance_of
from denspu.benchmark.spec import Row, Spec, Task
from denspu.benchmark.tables import MISSING

SPEC = Spec(
    name="small",
    title="A | small table",
    tasks=(Task("A", "digits", 100), Task("B", "digits", 200)),
    rows=(
        Row("far", "nnpu", prior="true", printed={"A": {"f1": 72.5}, "B": {"f1": 90}}),
        Row("near", "pusb", prior="true"),
        Row("ours", "dens_pu", printed={"A": {"roc_auc": 50.0}}),
        Row("late", "upu", prior="true"),
        Row("truth", "supervised", oracle="all", printed={"A": {"f1": 99.0}}),
    ),
    seeds=(0, 1, 2),
    metrics=("f1", "roc_auc"),
    reference="ours",
)
FIGURES = {
    ("far", "A"): (0.70, 0.71, 0.72),
    ("far", "B"): (0.70, 0.71, 0.72),
    ("near", "A"): (0.90, 0.91, 0.92),
    ("near", "B"): (0.97, 0.98, 0.99),
    ("ours", "A"): (0.92, 0.90, 0.91),
    ("ours", "B"): (0.901, 0.911, 0.921),
    ("late", "A"): (0.95,),
    ("truth", "A"): (0.99, 0.98, 0.99),
}


def seen(figures=FIGURES, spec=SPEC, **changes):
    return glance_of(spec, records_of(spec, figures, **changes))


def test_rows_are_counted_by_what_the_intervals_say():
    assert seen().verdicts == Counter(ahead=2, open=1, behind=1, single=4 - 2)
    with_one_more = {**FIGURES, ("late", "A"): (0.95, 0.96)}
    assert seen(with_one_more).verdicts["single"] == 1


def test_rows_on_true_labels_are_left_out():
    figures = {k: v for k, v in FIGURES.items() if k[0] in ("ours", "truth")}
    found = seen(figures)
    assert found.verdicts == Counter(single=6)
    assert found.best_other == MISSING
    assert found.printed == 0


def test_the_best_other_has_records_wherever_the_reference_is_compared():
    found = seen()
    assert found.reference == "ours: 91.00 to 91.10"
    assert found.best_other == "near: 91.00 to 98.00"  # late has 95, on one task
    one = seen({k: v for k, v in FIGURES.items() if k[1] == "A"})
    assert (one.reference, one.best_other) == ("ours: 91.00", "late: 95.00")


def test_tasks_that_only_the_reference_was_run_on_are_not_shown():
    figures = {("ours", "A"): (0.5,), ("ours", "B"): (0.9,), ("near", "B"): (0.8,)}
    found = seen(figures)
    assert (found.reference, found.best_other) == ("ours: 90.00", "near: 80.00")


@pytest.mark.parametrize(
    ("printed", "met"), [(73.0, 1), (69.0, 1), (73.1, 0), (68.9, 0)]
)
def test_a_printed_figure_is_met_within_two_points(printed, met):
    row = replace(SPEC.rows[0], printed={"A": {"f1": printed}})
    spec = replace(SPEC, rows=(row, *SPEC.rows[1:]))
    found = seen(spec=spec)
    assert (found.met, found.printed) == (met, 1)


def test_a_printed_figure_without_a_record_waits():
    found = seen({k: v for k, v in FIGURES.items() if k != ("far", "B")})
    assert (found.met, found.printed) == (1, 1)
    assert seen().printed == 2


def test_the_line_of_a_spec():
    table = glance_markdown([seen()], ["#a"])
    line = [
        word.strip() for word in table.splitlines()[2].replace("\\|", "/").split("|")
    ]
    assert line[1:-1] == [
        *("[A / small table](#a)", "22 of 30", "F1", "ours: 91.00 to 91.10"),
        *("near: 91.00 to 98.00", "2", "1", "1", "2", "1 of 2"),
    ]
    broken = seen({("ours", "A"): (0.9,)}, error="MemoryError: x")
    assert "| 1 of 30, 1 failed |" in glance_markdown([broken], ["#a"])


def test_a_spec_without_a_reference_compares_nothing():
    table = glance_markdown([seen(spec=replace(SPEC, reference=None))], ["#a"])
    line = [word.strip() for word in table.splitlines()[2].split("|")]
    assert line[-7:-1] == [MISSING, "", "", "", "", "1 of 2"]
