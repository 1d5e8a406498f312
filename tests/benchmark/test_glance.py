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
    single = Counter(ahead=2, open=1, behind=1, few=4 - 2)
    assert seen().verdicts == single + Counter({"ahead together": 2}) + Counter(
        {"behind together": 1}
    )
    two = {**FIGURES, ("late", "A"): (0.95, 0.96)}
    assert seen(two).verdicts["few"] == 2
    three = {**FIGURES, ("late", "A"): (0.95, 0.96, 0.96)}
    assert seen(three).verdicts["few"] == 1


def test_what_stands_alone_and_not_beside_others_is_counted_apart():
    """4.58 standard errors: to leave out 0 takes 4.30 alone, 9.92 beside four more."""
    close = {**FIGURES, ("far", "A"): (0.90, 0.89, 0.898), ("late", "A"): (0.9,) * 3}
    found = seen(close)
    assert (found.verdicts["ahead"], found.verdicts["ahead together"]) == (2, 1)
    line = glance_markdown([found], ["#a"]).splitlines()[2]
    assert " 2 (1) " in line
    none = glance_markdown([seen({("ours", "A"): (0.9,)})], ["#a"]).splitlines()[2]
    assert "(0)" not in none


def test_rows_on_true_labels_are_left_out():
    figures = {k: v for k, v in FIGURES.items() if k[0] in ("ours", "truth")}
    found = seen(figures)
    assert found.verdicts == Counter(few=6)
    assert found.best_other == MISSING
    assert found.met.of == 0


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
    assert found.met == (met, 1)


def test_a_printed_figure_without_a_record_waits():
    found = seen({k: v for k, v in FIGURES.items() if k != ("far", "B")})
    assert found.met == (1, 1)
    assert seen().met == (1, 2)


def test_printed_figures_of_all_metrics_are_counted_too():
    """The one of ``ours`` is a ROC AUC of 50; that of the oracle is left out."""
    assert seen().met_of_all == (1, 3)
    near = replace(SPEC.rows[2], printed={"A": {"roc_auc": 98.0}})
    spec = replace(SPEC, rows=(*SPEC.rows[:2], near, *SPEC.rows[3:]))
    assert seen(spec=spec).met_of_all == (2, 3)
    one = replace(spec, metrics=("f1",))  # whether the table shows the metric or not
    assert seen(spec=one).met_of_all == (2, 3)


def test_the_line_of_a_spec():
    table = glance_markdown([seen()], ["#a"])
    line = [
        word.strip() for word in table.splitlines()[2].replace("\\|", "/").split("|")
    ]
    assert line[1:-1] == [
        *("[A / small table](#a)", "22 of 30", "F1", "ours: 91.00 to 91.10"),
        *("near: 91.00 to 98.00", "2 (2)", "1", "1 (1)", "2"),
        "1 of 2; of all metrics 1 of 3",
    ]
    broken = seen({("ours", "A"): (0.9,)}, error="MemoryError: x")
    assert "| 1 of 30, 1 failed |" in glance_markdown([broken], ["#a"])


def test_a_spec_without_a_reference_compares_nothing():
    table = glance_markdown([seen(spec=replace(SPEC, reference=None))], ["#a"])
    line = [word.strip() for word in table.splitlines()[2].split("|")]
    assert line[-7:-1] == [MISSING, *[""] * 4, "1 of 2; of all metrics 1 of 3"]


def test_titles_are_shortened_where_they_stay_apart():
    titles = ["Table 9: x, 10 labels", "Odd: y, one", "Odd: y, two", "Plain"]
    glances = [seen(spec=replace(SPEC, title=title)) for title in titles]
    lines = glance_markdown(glances, ["#a"] * 4).splitlines()[2:]
    shown = [line.split("]")[0].removeprefix("| [") for line in lines]
    assert shown == ["Table 9: x", "Odd: y, one", "Odd: y, two", "Plain"]
