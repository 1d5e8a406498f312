"""Specs: those that come with denspu load as recorded, and mistakes are named."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from denspu.benchmark import read_records
from denspu.benchmark.spec import (
    METRICS,
    SUPERVISED,
    cells_of,
    load_spec,
    parse_spec,
    spec_hash,
)
from denspu.benchmark.tables import Found
from denspu.exceptions import InvalidParameterError

HOME = Path(__file__).parents[2] / "benchmarks"
SPECS = HOME / "specs"
NAMES = sorted(path.stem for path in SPECS.glob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_spec_asks_for_the_runs_that_are_recorded(name):
    """Ids are those of the records, and no run is asked for twice."""
    spec = load_spec(SPECS / f"{name}.toml")
    ids = [cell.id for cell in cells_of(spec)]
    assert len(set(ids)) == len(ids)
    found = Found(spec, read_records(HOME / "records" / "specs" / f"{name}.jsonl"))
    assert len(found.records) > 0
    assert found.strangers == 0


@pytest.mark.parametrize("name", NAMES)
def test_judged_is_the_last_epoch_or_one_chosen_without_labels(name):
    for row in load_spec(SPECS / f"{name}.toml").rows:
        given = row.parameters
        chooses = (
            given.get("validation", 0.2 if row.method == "vpu" else 0) > 0
            or given.get("estimator__validation", 0) > 0
            or (
                row.method == "upu"
                and given.get("network") in ("cnn", "mlp")
                and given["stop_below"] == 0
            )
        )
        assert row.selection == ("label-free" if chooses else "last"), row.name


def test_the_readme_counts_the_cells():
    lines = [
        line.split("|")
        for line in (SPECS / "README.md").read_text("utf-8").splitlines()
        if line.startswith("| `")
    ]
    counts = {name.strip(" `"): cells.strip() for _, name, _, cells, _ in lines}
    told = {name: counts.get(name) for name in NAMES}
    assert told == {
        name: str(len(cells_of(load_spec(SPECS / f"{name}.toml")))) for name in NAMES
    }


# --- what is the same run -------------------------------------------------------------

GOOD = {
    "title": "A table",
    "seeds": [0, 1],
    "tasks": [{"name": "digits", "dataset": "digits", "n_labeled": 0.2}],
    "rows": [
        {"name": "nnPU", "method": "nnpu", "prior": "true"},
        {"name": "ours", "method": "dens_pu"},
        {"name": "oracle", "method": "supervised", "oracle": "all"},
    ],
}


def changed(place, value=None):
    """Return the good table with one value put somewhere, or taken out."""
    *path, last = place if isinstance(place, tuple) else (place,)
    table = inner = copy.deepcopy(GOOD)
    for step in path:
        inner = inner[step]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return table


def ids(table):
    return [cell.id for cell in cells_of(parse_spec(table, "mine"))]


def test_a_good_table():
    spec = parse_spec(GOOD, "mine")
    assert (spec.name, spec.seeds, spec.metrics) == (
        "mine",
        (0, 1),
        ("accuracy", "f1", "roc_auc"),
    )
    assert [c.seed for c in cells_of(spec)] == [0, 0, 0, 1, 1, 1]  # seed by seed
    assert [row.method == SUPERVISED for row in spec.rows] == [False, False, True]


def test_a_title_does_not_change_which_run_it_is_and_a_setting_does():
    words = {"name": "other", "note": "words", "group": "a", "tuning": "none"}
    renamed = changed(("rows", 2), {**GOOD["rows"][2], **words})
    assert ids(renamed) == ids(GOOD)
    assert spec_hash(parse_spec(renamed, "m")) != spec_hash(parse_spec(GOOD, "m"))
    usual = {"cut": "own", "device": "any", "encoder": "own"}
    assert ids(changed(("rows", 1), {**GOOD["rows"][1], **usual})) == ids(GOOD)
    shapes = [
        (("tasks", 0, "n_labeled"), 0.3),
        (("tasks", 0, "positive"), [0, 1]),
        (("tasks", 0, "keep_positive"), 0.5),
        (("tasks", 0, "mechanism"), "sar"),
        (("tasks", 0, "scenario"), "two-sample"),
        ("seeds", [2, 3]),
    ]
    for place, value in shapes:
        assert not set(ids(changed(place, value))) & set(ids(GOOD)), place
    told = changed(("rows", 1, "parameters"), {"preset": "paper"})
    assert [a == b for a, b in zip(ids(told), ids(GOOD), strict=True)] == [
        *(True, False, True),
        *(True, False, True),
    ]


def test_classes_in_another_order_are_the_same_runs():
    def with_classes(*positive):
        return ids(changed(("tasks", 0, "positive"), list(positive)))

    assert with_classes(3, 1) == with_classes(1, 3) != ids(GOOD)
    assert with_classes(8, 6, 4, 2, 0) == ids(GOOD)  # the set's own


def test_an_encoder_that_sees_no_label_serves_any_labels():
    def encoder(weight, **task):
        table = copy.deepcopy(GOOD)
        table["rows"] = [{"name": "a", "method": "dens_pu", "encoder": "shared"}]
        table["tasks"][0] |= task
        table["shared_encoder"] = {"positive_weight": weight, "epochs": 1}
        return cells_of(parse_spec(table, "mine"))[0].encoder_id

    blind = encoder(0)
    others = {"n_labeled": 9}, {"mechanism": "sar"}, {"positive": [0, 1]}
    for other in others:
        assert encoder(0, **other) == blind
        assert encoder(0.5, **other) != encoder(0.5)
    for other in {"keep_positive": 0.5}, {"scenario": "two-sample"}:
        assert encoder(0, **other) != blind


# --- mistakes -------------------------------------------------------------------------

ELKAN = {"name": "a", "method": "elkan_noto"}
OURS = GOOD["rows"][1]
MISTAKES = [
    (changed("metric", ["f1"]), "spec 'mine' has no setting 'metric'. Did you mean"),
    (changed(("tasks", 0, "n_labelled"), 5), "task 1 .* Did you mean 'n_labeled'"),
    (changed(("rows", 1, "encodr"), "own"), "row 2 of spec 'mine' has no.*'encoder'"),
    (
        changed(("tasks", 0), {"name": "a", "dataset": "digits", "n_labelled": 5}),
        "mean",
    ),
    (changed("path", "x.toml"), "spec 'mine' gives itself a path"),
    (changed("title"), "spec 'mine' lacks 'title'"),
    (changed(("tasks", 0, "n_labeled")), "task 1 of spec 'mine' lacks 'n_labeled'"),
    (changed("tasks", []), r"no list of tasks.*\[\[tasks\]\]"),
    (changed("tasks", GOOD["tasks"][0]), r"no list of tasks.*\[\[tasks\]\]"),
    (changed(("rows", 0), 3), "row 1 of spec 'mine' must be a table, not 3"),
    (changed("title", 3), "title=3 of spec 'mine' must be a valid string"),
    (changed("seeds", []), r"seeds=\[\] of spec 'mine' must be a list of seeds"),
    (changed("seeds", ["0"]), r"seeds=\['0'\] of spec 'mine' must be a list of seeds"),
    (changed("seeds", [3, 3]), "seed 3 twice"),
    (changed("metrics", ["f2"]), "metrics='f2' .*Did you mean 'f1'"),
    (changed("metrics", ["purity"]), "begins with 'purity'"),
    (changed("reference", "our"), "reference 'our' .*Did you mean 'ours'"),
    (changed("shared_encoder", {"epoch": 3}), "shared_encoder: .*'epochs'"),
    (changed(("tasks", 0, "name"), " "), "name=' ' of task 1 .* a name, not empty"),
    (changed(("tasks", 0, "name"), "over tasks"), "called 'over tasks'"),
    (changed(("tasks", 0, "n_labeled"), 1.0), "n_labeled=1.0 .* a share between 0"),
    (changed(("tasks", 0, "n_labeled"), True), "n_labeled=True .* a count above 0"),
    (changed(("tasks", 0, "keep_positive"), 0), "keep_positive=0 .* a share above 0"),
    (changed(("tasks", 0, "positive"), [11]), "0 to 9, and leave some"),
    (changed(("tasks", 0, "dataset"), "cifar"), "Did you mean 'cifar10'"),
    (changed("tasks", GOOD["tasks"] * 2), "task digits twice"),
    (
        changed("tasks", [{**GOOD["tasks"][0], "name": n} for n in "ab"]),
        "one run is asked for twice",
    ),
    (changed(("tasks", 0, "share_of"), "training set"), None),
    (
        changed(
            ("tasks", 0),
            {**GOOD["tasks"][0], "n_labeled": 9, "share_of": "training set"},
        ),
        "needs a share",
    ),
    (changed(("rows", 1, "encoder"), "share"), "'own' or 'shared'. Did you mean"),
    (changed(("rows", 1, "heavy"), "yes"), "heavy='yes' of row 2"),
    (changed(("rows", 0, "method"), "nnpo"), "Did you mean 'nnpu'"),
    (changed(("rows", 0, "prior")), "needs a class prior: use 'true' or 'estimate'"),
    (changed(("rows", 1, "prior"), "estimate"), "use 'none' or 'true'"),
    (changed(("rows", 1), {**ELKAN, "prior": "true"}), "no use of it on one-sample"),
    (changed(("rows", 1), {**ELKAN, "method": "vpu", "prior": "true"}), "takes no"),
    (changed(("rows", 1, "oracle"), "all"), "method='supervised' alone"),
    (changed(("rows", 2, "cut"), "true prior"), "no use to method='supervised'"),
    (changed(("rows", 0, "tasks"), []), r"tasks=\[\] of row 1 .* a list of names"),
    (changed(("rows", 0, "tasks"), ["digit"]), "Did you mean 'digits'"),
    (changed(("rows", 1, "seeds"), [0, 77]), "some of the table's: 0, 1"),
    (changed(("rows", 1, "name"), "nnPU"), "row nnPU twice"),
    (changed(("rows", 0, "parameters"), {"epoch": 3}), "Did you mean 'epochs'"),
    (changed(("rows", 0, "parameters"), {"verbose": 1}), "sets 'verbose', which"),
    (
        changed(("rows", 1, "parameters"), {"encoder": "contrastve"}),
        "cannot be built.*'contrastive'",
    ),
    (
        changed(
            ("rows", 1, "parameters"),
            {"encoder": "contrastive", "encoder__epochs": "x"},
        ),
        "cannot be built.*Got 'x'",
    ),
    (
        changed(("rows", 1), {**OURS, "encoder": "shared", "device": "cpu"}),
        "Leave the device out",
    ),
    (
        changed(
            ("rows", 1),
            {**OURS, "encoder": "shared", "parameters": {"encoder": "cae"}},
        ),
        "Keep one of them",
    ),
    (changed(("rows", 0, "printed"), {"digits": {"auc": 9}}), "='auc' of row 1 .*'f1'"),
    (
        changed(("rows", 0, "printed"), {"digits": {"f1": 0.9}}),
        "printed.digits.f1=0.9 of row 1 .* in percent",
    ),
    (changed(("rows", 0, "method"), "no.such:Thing"), "cannot be imported: No module"),
    (changed(("rows", 0, "method"), "json:loads"), "is no class with fit"),
]


@pytest.mark.parametrize(("table", "words"), MISTAKES)
def test_a_mistake_is_named(table, words):
    if words is None:
        assert parse_spec(table, "mine")
        return
    with pytest.raises(InvalidParameterError, match=f"(?s){words}"):
        parse_spec(table, "mine")


def test_a_task_without_a_row_and_a_method_of_another_scenario():
    other = {"name": "other", "dataset": "digits", "n_labeled": 5}
    table = copy.deepcopy(GOOD)
    table["tasks"].append(other)
    table["rows"] = [{**row, "tasks": ["digits"]} for row in table["rows"]]
    with pytest.raises(InvalidParameterError, match=r"no row .* task 'other'"):
        parse_spec(table, "mine")
    two = changed(("tasks", 0, "scenario"), "two-sample")
    two["rows"] = [{"name": "spy", "method": "spy"}]
    assert parse_spec(two, "mine")
    two["rows"] = [{"name": "a", "method": "biased_svm"}]
    with pytest.raises(InvalidParameterError, match="task 'digits' is two-sample"):
        parse_spec(two, "mine")


@pytest.mark.parametrize("content", [b"title = ", b"\xff\xfe", b"a = 1\na = 2"])
def test_files_that_are_no_specs(tmp_path, content):
    path = tmp_path / "broken.toml"
    with pytest.raises(InvalidParameterError, match=r"broken\.toml cannot be read: No"):
        load_spec(path)
    path.write_bytes(content)
    with pytest.raises(InvalidParameterError, match=r"broken\.toml is not a TOML file"):
        load_spec(path)
    with pytest.raises(InvalidParameterError, match=r"cannot be read: .* TOML file"):
        load_spec(tmp_path)


def test_every_metric_may_be_asked_for():
    assert parse_spec(changed("metrics", list(METRICS)), "mine").metrics == METRICS
