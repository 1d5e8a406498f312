"""The specs of the benchmark: what they say, and how mistakes in one are refused."""

from __future__ import annotations

import copy
from datetime import date
from pathlib import Path

import pytest

from denspu._parameters import check_parameters
from denspu._registry import registry
from denspu.benchmark import read_records
from denspu.benchmark.cells import cells_of, spec_hash
from denspu.benchmark.oracle import Supervised
from denspu.benchmark.spec import SUPERVISED
from denspu.benchmark.spec_file import load_spec, parse_spec
from denspu.classifiers import VGG16Classifier
from denspu.data._sets import find_set
from denspu.exceptions import InvalidParameterError, UnknownPartError
from denspu.methods._deep import LARGE, DeepPU
from denspu.methods.dens_pu import ENCODER_SHARE

SPECS = Path(__file__).parents[2] / "benchmarks" / "specs"
VPU_SETTINGS = SPECS.parent / "records" / "vpu-settings.jsonl"
NAMES = sorted(path.stem for path in SPECS.glob("*.toml"))
TABLE_2 = {"table2-fmnist": "F-MNIST", "table2-cifar10": "CIFAR-10"}
BACKBONE = {"table2-fmnist": "mlp", "table2-cifar10": "cnn"}
OURS = "Dens-PU, our default"
TOLD = "Dens-PU, told the true prior"
AS_PRINTED = "Dens-PU, as in the paper"

SHAPES = {"digits": (1, 8, 8), "fashion-mnist": (1, 28, 28), "cifar10": (3, 32, 32)}
"""Rows as a network sees them."""
EMBEDDING = (512,)

TEN = ["uPU", "nnPU", "RP", "PUSB", "PUbN"]
TEN += ["self-PU", "aPU", "VPU", "ImbPU", "Dist-PU"]
FROZEN = "Dens-PU, shared encoder"
ON_A_CPU = ", on a CPU"
STRONGEST = ["Dist-PU", "PUbN", "self-PU", "ImbPU", "aPU"]


def spec(name):
    return load_spec(SPECS / f"{name}.toml")


def rows(name):
    return {row.name: row for row in spec(name).rows}


# --- all of them ----------------------------------------------------------------------


def test_every_table_has_its_spec():
    wanted = {"digits", "table3", "table4", "table5", "sensitivity", "sar", "sealed"}
    wanted |= {"ablation", "ablation-labels", "sar-digits", "sealed-digits", "no-gpu"}
    assert set(NAMES) == wanted | set(TABLE_2)


def built(row):
    if row.method == SUPERVISED:
        return Supervised(**row.parameters, prior=0.4, device="cpu")
    given = {"prior": 0.4} if row.prior == "true" else {}
    entry = registry().get(row.method)
    return entry.build(**row.parameters, **given, random_state=0, device="cpu")


@pytest.mark.parametrize("name", NAMES)
def test_every_row_builds_on_its_tasks(name):
    """Values are allowed too, and the network suits the pictures."""
    for task in spec(name).tasks:
        for row in spec(name).rows_of(task):
            model = built(row)
            check_parameters(model)
            for part in model.get_params(deep=False).values():
                if hasattr(part, "_rules"):
                    check_parameters(part)
            if row.method != SUPERVISED:
                assert "image" in registry().get(row.method).inputs
            if isinstance(model, DeepPU):
                shared = row.encoder == "shared"
                model._builder(EMBEDDING if shared else SHAPES[task.dataset])()


@pytest.mark.parametrize("name", NAMES)
def test_tasks_hold_classes_of_their_sets(name):
    for task in spec(name).tasks:
        found = find_set(task.dataset)
        positive = set(task.positive or found.positive)
        assert positive < set(range(len(found.class_names)))


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_is_a_run_of_its_own(name):
    cells = cells_of(spec(name))
    assert len({cell.id for cell in cells}) == len(cells)


@pytest.mark.parametrize("name", NAMES)
def test_the_last_epoch_is_judged_and_seeds_of_development_are_not_used(name):
    for row in spec(name).rows:
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
    assert set(spec(name).seeds) <= set(range(5))
    assert len(spec(name).seeds) >= (5 if name in TABLE_2 else 3)


def test_the_readme_counts_the_cells():
    text = (SPECS / "README.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    for name in NAMES:
        [line] = [x for x in lines if f"`{name}`" in x.split("|")[1]]
        assert line.split("|")[3].split()[0] == str(len(cells_of(spec(name)))), name


# --- table 2 --------------------------------------------------------------------------

ADAM = {"epochs": 120, "batch_size": 256, "lr": 5e-4, "weight_decay": 5e-3}
CONSTANTS = {
    "nnPU": {"beta": 0, "gamma": 1},
    "PUSB": {"beta": 0, "gamma": 1},
    "PUbN": {"tau": 0.9, "validation": 0.1667},
    "self-PU": {"paces": [0.08, 0.12], "warmup": 10 / 200, "growing": 40 / 200},
    "aPU": {"variant": "purr", "validation": 0.1667},
    "ImbPU": {"balanced_prior": 0.5, "beta": 0, "gamma": 1},
    "Dist-PU": {
        "warm_up": 60 / 120,
        "main_lr": 5e-5,
        "main_weight_decay": 1e-3,
        "warm_up_entropy": 0.002,
        "entropy_weight": 0.004,
        "mixup_weight": 5,
        "mixup_entropy": 0.04,
        "mixup_alpha": 6,
    },
    "uPU": {"stop_below": 0},
}


@pytest.mark.parametrize("name", TABLE_2)
def test_the_task_is_that_of_the_paper(name):
    [task] = spec(name).tasks
    assert (task.name, task.n_labeled) == (TABLE_2[name], 1000)
    assert (task.scenario, task.mechanism) == ("one-sample", "scar")
    assert (task.positive, task.keep_positive) == (None, 1.0)
    assert spec(name).seeds == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("baseline", [b for b in TEN if b not in ("RP", "VPU")])
@pytest.mark.parametrize("name", TABLE_2)
def test_baselines_run_under_one_protocol(name, baseline):
    row = rows(name)[baseline]
    wanted = {**ADAM, "network": BACKBONE[name], **CONSTANTS[baseline]}
    assert dict(row.parameters) | wanted == dict(row.parameters)
    assert (row.prior, row.encoder) == ("true", "own")
    model = built(row)
    assert {key: getattr(model, key) for key in wanted} == wanted


RP_STOPS = {"epochs": 50, "validation": 0.1, "patience": 10}
"""How the paper of Rank Pruning ends a training."""

LONGER = (
    "RP, last epoch",
    "PUbN, last epoch",
    "aPU, last epoch",
    "VPU, epochs of a pass over U",
    "VPU, 120 passes over U",
)
"""Without the rules of their papers."""


@pytest.mark.parametrize("name", TABLE_2)
def test_rank_pruning_has_the_same_network(name):
    row = rows(name)["RP"]
    model = built(row)
    wanted = {**ADAM, "network": BACKBONE[name], **RP_STOPS}
    assert {key: getattr(model.estimator, key) for key in wanted} == wanted
    assert {f"estimator__{key}" for key in wanted} <= set(row.parameters)
    assert row.selection == "label-free"
    assert (model.folds, model.estimator.balance) == (3, None)


@pytest.mark.parametrize(
    ("name", "lr", "weight"),
    [("table2-fmnist", 3e-4, 0.3), ("table2-cifar10", 3e-5, 0.03)],
)
def test_vpu_keeps_its_own_optimiser(name, lr, weight):
    model = built(rows(name)["VPU"])
    assert (model.lr, model.mixup_weight, model.mixup_alpha) == (lr, weight, 0.3)
    assert (model.epochs, model.epoch_steps, model.batch_size) == (50, 30, 500)
    assert model.patience >= model.epochs
    assert (model.network, model.top) == (BACKBONE[name], "max")


@pytest.mark.parametrize(
    ("name", "dataset"),
    [("table2-fmnist", "fashion-mnist"), ("table2-cifar10", "cifar10")],
)
def test_vpu_has_the_rate_and_weight_that_its_own_loss_chose(name, dataset):
    tried = [r for r in read_records(VPU_SETTINGS) if r.dataset == dataset]
    least = min(tried, key=lambda record: record.estimates["held_out_loss"])
    row = rows(name)["VPU, chosen rate and weight"]
    assert dict(row.parameters) == least.extra["parameters"]


@pytest.mark.parametrize("name", TABLE_2)
def test_rows_of_table_2(name):
    found = rows(name)
    assert list(found)[:10] == TEN
    assert dict(found[AS_PRINTED].parameters) == {"preset": "paper"}
    assert not found[OURS].parameters
    assert (found[OURS].encoder, spec(name).reference) == ("own", OURS)
    for label in STRONGEST:
        for words, prior in (("true", "true"), ("estimated", "estimate")):
            row = found[f"{label}, shared encoder, {words} prior"]
            alone = dict(found[label].parameters)
            assert dict(row.parameters) == alone | {"network": "mlp"}
            assert (row.method, row.prior) == (found[label].method, prior)
            assert row.encoder == "shared"
    assert found["NcPU, shared encoder"].encoder == "shared"
    short, long = found["NcPU, shared encoder, short warm-up"], "NcPU, shared encoder"
    assert dict(short.parameters) == dict(found[long].parameters) | {"warmup": 0.023}
    assert found["P and 1,000 true negatives"].oracle == "negatives"
    assert found["all true labels"].oracle == "all"
    shared = found["all true labels, shared encoder"]
    alone = dict(found["all true labels"].parameters)
    assert dict(shared.parameters) == alone | {"network": "mlp"}
    assert (shared.oracle, shared.encoder) == ("all", "shared")
    for label, off in (("uPU", "stop_below"), ("VPU", "validation")):
        ruled, last = found[label], found[f"{label}, last epoch"]
        differ = {k for k, v in last.parameters.items() if ruled.parameters[k] != v}
        assert differ == {off}
    longer = LONGER if name == "table2-fmnist" else ()
    assert set(longer) <= set(found)
    frozen = [row for row in found if row == FROZEN]
    others = 2 + 3 + len(longer) + 2 + 3 + len(frozen)
    assert len(found) == 10 + others + 2 * len(STRONGEST)


@pytest.mark.parametrize("name", ["table2-cifar10", "sealed", "sar"])
def test_our_default_has_a_row_that_is_as_frozen_as_the_others(name):
    row = rows(name)[FROZEN]
    assert (row.method, row.encoder, row.prior) == ("dens_pu", "shared", "none")
    assert dict(row.parameters) == {"refiner": "embedding"}
    model = built(rows(name)[OURS])
    assert {**model.get_params(), "refiner": "embedding"} == built(row).get_params()


def test_the_frozen_row_of_table_2_is_one_of_the_ablation():
    def ids(name, row):
        return {c.id for c in cells_of(spec(name)) if c.row.name == row}

    there = ids("ablation", "refined on the embedding alone")
    assert ids("table2-cifar10", FROZEN) == there


@pytest.mark.parametrize(
    ("name", "rows_in_all", "share"),
    [("table2-fmnist", 60_000, 1.0), ("table2-cifar10", 50_000, 0.2)],
)
def test_oracles_have_network_and_steps_of_the_baselines(name, rows_in_all, share):
    """But for convolutions on 2,000 images, which need no 6,000 passes over them."""
    found = rows(name)
    steps = 120 * (rows_in_all // 256)
    few = built(found["P and 1,000 true negatives"])
    assert few.epochs * (1000 // 256) == share * steps
    everything = built(found["all true labels"])
    negatives = round(0.6 * rows_in_all) - 1
    assert abs(everything.epochs * (negatives // 256) / steps - 1) < 0.01
    for model in (few, everything):
        assert (model.network, model.lr) == (BACKBONE[name], 5e-4)
        assert (model.batch_size, model.weight_decay) == (256, 5e-3)


# --- printed values, copied from the paper once more ----------------------------------

PRINTED = {
    ("table2-fmnist", "uPU"): (94.20, 92.50, 92.59, 92.53, 97.34),
    ("table2-fmnist", "RP"): (92.37, 88.58, 92.94, 90.60, 97.14),
    ("table2-fmnist", "self-PU"): (94.75, 91.73, 95.50, 93.57, 97.62),
    ("table2-fmnist", "VPU"): (92.26, 89.04, 92.01, 90.48, 97.38),
    ("table2-fmnist", "Dist-PU"): (95.40, 94.18, 94.34, 94.25, 98.57),
    ("table2-cifar10", "nnPU"): (88.89, 86.18, 86.05, 86.10, 95.12),
    ("table2-cifar10", "PUSB"): (88.95, 86.19, 86.19, 86.19, 95.13),
    ("table2-cifar10", "aPU"): (89.05, 86.29, 86.37, 86.32, 95.09),
    ("table2-cifar10", "ImbPU"): (89.41, 86.69, 86.87, 86.77, 95.52),
    ("table2-cifar10", "Dist-PU"): (91.88, 89.87, 89.84, 89.85, 96.92),
}
BALANCED = {
    ("table2-fmnist", "PUbN"): (94.82, 92.92, 94.24, 93.57, 94.72),
    ("table2-fmnist", AS_PRINTED): (95.73, 92.36, 94.80, 94.80, 96.00),
    ("table2-cifar10", "PUbN"): (89.83, 87.85, 86.56, 87.18, 89.28),
    ("table2-cifar10", AS_PRINTED): (93.63, 92.68, 91.25, 91.96, 93.22),
}
"""Rows whose printed "AUC" is balanced accuracy."""


@pytest.mark.parametrize(("name", "row"), PRINTED)
def test_printed_in_table_2(name, row):
    keys = ("accuracy", "precision", "recall", "f1", "roc_auc")
    wanted = dict(zip(keys, PRINTED[name, row], strict=True))
    assert rows(name)[row].printed == {TABLE_2[name]: wanted}


@pytest.mark.parametrize(("name", "row"), BALANCED)
def test_printed_in_table_2_as_auc_and_balanced_accuracy(name, row):
    keys = ("accuracy", "precision", "recall", "f1", "balanced_accuracy")
    wanted = dict(zip(keys, BALANCED[name, row], strict=True))
    assert rows(name)[row].printed == {TABLE_2[name]: wanted}
    assert "balanced accuracy" in rows(name)[row].note


@pytest.mark.parametrize("name", TABLE_2)
def test_every_row_of_the_papers_table_2_is_there_in_full(name):
    printed = {row for row, found in rows(name).items() if found.printed}
    assert printed == {*TEN, AS_PRINTED}
    for row in printed:
        assert len(rows(name)[row].printed[TABLE_2[name]]) == 5


def f1_of(accuracy, balanced, prior=0.4):
    """Return F1 and recall by two linear equations and the definition."""
    recall = (2 * (1 - prior) * balanced - accuracy) / (1 - 2 * prior)
    false = (1 - prior) * (1 - (2 * balanced - recall))
    precision = prior * recall / (prior * recall + false)
    return 2 * precision * recall / (precision + recall), recall


@pytest.mark.parametrize("name", TABLE_2)
def test_the_finding_about_balanced_accuracy(name):
    claims = rows(name)[AS_PRINTED].printed[TABLE_2[name]]
    f1, recall = f1_of(claims["accuracy"] / 100, claims["balanced_accuracy"] / 100)
    assert abs(100 * f1 - claims["f1"]) < 0.015
    misprint = abs(100 * recall - claims["recall"]) > 1
    assert misprint == (name == "table2-fmnist")


@pytest.mark.parametrize("name", TABLE_2)
@pytest.mark.parametrize("row", TEN)
def test_which_printed_auc_is_balanced_accuracy(name, row):
    claims = rows(name)[row].printed[TABLE_2[name]]
    recall, precision = claims["recall"] / 100, claims["precision"] / 100
    false = 0.4 * recall * (1 - precision) / precision / 0.6
    balanced = 50 * (recall + 1 - false)
    printed = claims.get("balanced_accuracy", claims.get("roc_auc"))
    assert (abs(balanced - printed) < 0.02) == (row == "PUbN")


# --- the other tables -----------------------------------------------------------------

TABLE_3 = {
    "F-MNIST": (88.71, 93.83, 94.35, 94.71, 94.68, 95.10),
    "CIFAR-10": (82.85, 89.65, 92.23, 92.02, 92.55, 93.79),
}
PERCENT = (1, 5, 10, 25, 30, 50)


def test_table_3():
    loaded, found = spec("table3"), rows("table3")
    names = [f"{data}, {share} %" for data in TABLE_3 for share in PERCENT]
    assert [task.name for task in loaded.tasks] == names
    assert {task.share_of for task in loaded.tasks} == {"positives"}
    shares = [share / 100 for share in PERCENT]
    assert [task.n_labeled for task in loaded.tasks] == shares + shares
    figures = [figure for line in TABLE_3.values() for figure in line]
    assert found[AS_PRINTED].printed == {
        name: {"f1": figure} for name, figure in zip(names, figures, strict=True)
    }
    assert (loaded.layout, loaded.metrics[0]) == ("tasks", "f1")
    assert "max_seconds=60" in found[OURS].note
    assert (found[OURS].encoder, list(found[OURS].parameters)) == (
        "shared",
        ["max_seconds"],
    )
    for_encoder = loaded.shared_encoder["max_seconds"]
    assert for_encoder == ENCODER_SHARE * 60
    assert for_encoder + found[OURS].parameters["max_seconds"] == 60


def test_table_3_trains_one_encoder_a_set_and_seed():
    cells = [cell for cell in cells_of(spec("table3")) if cell.row.name == OURS]
    assert len(cells) == 36
    assert len({cell.encoder_id for cell in cells}) == 6
    assert all(cell.alone and cell.encoder_alone for cell in cells)


def test_table_3_takes_at_most_the_steps_of_the_base_configuration():
    model = built(rows("table3")[AS_PRINTED])
    assert model.preset == "paper"
    assert isinstance(model.classifier, VGG16Classifier)
    assert model.classifier.max_steps == 200 * -(-2000 // 32) == 12_600
    left = VGG16Classifier(max_steps=12_600).get_params()
    assert model.classifier.get_params() == left


def parts(row):
    """Return the parts that differ from the paper's, by class name."""
    return {
        name: type(value).__name__ if not isinstance(value, str) else value
        for name, value in built(row).get_params(deep=False).items()
        if name in ("densifier", "selector", "classifier", "detector", "encoder")
        and value != "auto"
    }


def test_table_4():
    found = list(spec("table4").rows)
    assert [row.printed["CIFAR-10"]["f1"] for row in found] == [
        80.46,
        86.74,
        83.02,
        90.38,
        90.51,
        89.88,
        91.20,
    ]
    assert {row.parameters["preset"] for row in found} == {"paper"}
    assert [
        (row.parameters.get("densifier"), row.parameters.get("selector"))
        for row in found
    ] == [
        ("none", "random_unlabeled"),
        ("none", "random_leftover"),
        ("none", "by_score"),
        ("mixup", "random_leftover"),
        ("mixup", "by_score"),
        ("midpoint", "random_leftover"),
        (None, None),  # the preset's own: midpoint, by_score
    ]
    assert all(set(parts(row)) <= {"densifier", "selector"} for row in found)


def test_table_5():
    found = list(spec("table5").rows)
    assert [
        (row.printed["F-MNIST"]["f1"], row.printed["CIFAR-10"]["f1"])
        for row in found
        if row.printed
    ] == [(91.73, 89.80), (88.91, 84.12), (93.41, 91.33)]
    sizes = [getattr(built(row).selector, "size", None) for row in found]
    assert sizes == ["leftovers", "random", None, "leftovers"]
    assert dict(found[2].parameters) == {"preset": "paper"}
    weighted = built(found[3]).classifier
    assert (weighted.balance, weighted.max_steps) == ("weights", 12_600)
    assert not found[3].printed


def test_sensitivity_changes_one_thing_at_a_time():
    loaded = spec("sensitivity")
    base = built(rows("sensitivity")[loaded.reference]).densifier.get_params()
    assert base == {"k": 0.2, "s": 11, "n_pairs": 16_000}
    varied = []
    for row in loaded.rows:
        model = built(row)
        if row.parameters.get("densifier") != "midpoint":
            continue
        here = model.densifier.get_params()
        changed = [name for name in base if here[name] != base[name]]
        assert len(changed) == (row.name != loaded.reference)
        varied += changed
    assert {name: varied.count(name) for name in base} == {"k": 4, "s": 4, "n_pairs": 3}


ESTIMATED = ", estimated prior"


def assert_differs_by_its_prior(row, known):
    """One row is told the true prior, the other estimates it; nothing else differs."""
    twin = known[row.name.removesuffix(ESTIMATED)]
    assert (row.prior, twin.prior) == ("estimate", "true")
    for name in ("method", "parameters", "encoder", "selection", "oracle", "cut"):
        assert getattr(row, name) == getattr(twin, name)


@pytest.mark.parametrize("name", ["sar", "sar-digits", "sealed", "sealed-digits"])
def test_estimating_rows_differ_by_their_prior_alone(name):
    found = [row for row in rows(name).values() if row.name.endswith(ESTIMATED)]
    assert found
    known = rows(name)
    told = {row.removesuffix(", true prior"): known[row] for row in known}
    for row in found:
        assert_differs_by_its_prior(row, told)


def test_biased_labels_run_as_random_ones_do():
    [task] = spec("sar").tasks
    assert (task.mechanism, task.n_labeled) == ("sar", 1000)
    assert task.dataset == "fashion-mnist"
    elsewhere = rows("table2-fmnist")
    told = rows("sar")[TOLD]
    assert (told.method, told.prior, dict(told.parameters)) == ("dens_pu", "true", {})
    for name, row in rows("sar").items():
        if name in (TOLD, FROZEN) or name.endswith(ON_A_CPU):  # ours, but for a part
            continue
        if name.endswith(ESTIMATED):
            assert_differs_by_its_prior(row, elsewhere)
            continue
        twin = elsewhere[name]
        assert dict(row.parameters) == dict(twin.parameters)
        assert (row.method, row.prior) == (twin.method, twin.prior)
        if name != OURS:  # which shares its encoder here, to train one less
            assert row.encoder == twin.encoder


@pytest.mark.parametrize("name", ["sar", "sealed", "no-gpu"])
def test_rows_on_a_cpu_are_rows_of_a_gpu_with_parts_of_their_own(name):
    """Nothing but the device is said of them: what they choose there is theirs."""
    found = [row for row in spec(name).rows if row.name.endswith(ON_A_CPU)]
    assert found
    for row in found:
        twin = rows(name)[row.name.removesuffix(ON_A_CPU)]
        assert (row.method, row.prior, row.device) == (twin.method, twin.prior, "cpu")
        assert (dict(row.parameters), dict(twin.parameters)) == ({}, {})
        assert (row.encoder, row.tasks) == ("own", None)


def test_without_a_gpu_baselines_are_cells_of_table_2():
    """nnPU, and those that are sealed beside ours."""
    table = {c.id for name in TABLE_2 for c in cells_of(spec(name))}
    mine = [c for c in cells_of(spec("no-gpu")) if c.row.device == "any"]
    assert {c.id for c in mine} < table
    names = {c.row.name.split(",")[0] for c in mine} - {"Dens-PU"}
    assert names == {"nnPU", *STRONGEST_THREE}
    assert all(c.row.prior == "true" for c in mine if c.row.name != OURS)
    assert spec("no-gpu").reference == OURS + ON_A_CPU


SIZES = {"cifar10": 5_000, "fashion-mnist": 6_000}
"""Training rows of a class."""


def prior_of(task):
    size = SIZES[task.dataset]
    kept = len(task.positive) * size * task.keep_positive
    return kept / (kept + (10 - len(task.positive)) * size)


SEALED = ("sealed", "sealed-digits")
STRONGEST_THREE = ["Dist-PU", "PUbN", "self-PU"]
TOLD_NOTHING = [name + ESTIMATED for name in STRONGEST_THREE[:2]]


def test_sealed_tasks_are_none_of_development():
    loaded = [spec(name) for name in SEALED]
    tasks = {task.name: task for one in loaded for task in one.tasks}
    assert tasks["cats and dogs"].positive == (3, 5)
    assert tasks["cats and dogs"].n_labeled == 500
    assert {task.dataset for task in tasks.values()} == set(SHAPES)
    for task in tasks.values():
        assert set(task.positive) != set(find_set(task.dataset).positive)
    priors = [prior_of(task) for task in tasks.values() if task.dataset in SIZES]
    assert min(priors) <= 0.05


def test_sealed_rows():
    shared = [f"{one}, shared encoder" for one in STRONGEST_THREE[:2]]
    embedded = [row + known for known in (", true prior", ESTIMATED) for row in shared]
    names = [*STRONGEST_THREE, *TOLD_NOTHING]
    assert [row.name for row in spec("sealed-digits").rows] == [*names, OURS]
    assert [row.name for row in spec("sealed").rows] == [
        *(*names, *embedded, FROZEN, OURS, OURS + ON_A_CPU),
        "all true labels, shared encoder",
    ]
    for name in SEALED:
        assert spec(name).reference == OURS
    grey = [task.name for task in spec("sealed").tasks if task.dataset != "cifar10"]
    for row in spec("sealed").rows:  # what learns from pixels has no shared encoder
        anywhere = row.encoder == "shared" or row.name.endswith(ON_A_CPU)
        assert (row.tasks is None) == anywhere
        assert row.tasks is None or list(row.tasks) == grey
    elsewhere = rows("table2-fmnist")
    for row in embedded:
        twin, here = elsewhere[row], rows("sealed")[row]
        assert dict(here.parameters) == dict(twin.parameters)
        assert (here.prior, here.selection) == (twin.prior, twin.selection)


def test_sealed_and_biased_tasks_on_the_same_images_share_an_encoder():
    def encoders(name):
        return {
            (cell.task.name, cell.seed): cell.encoder_id
            for cell in cells_of(spec(name))
            if cell.row.encoder == "shared"
        }

    sealed, biased = encoders("sealed"), encoders("sar")
    for seed in (0, 1, 2):
        grey = {sealed["shoes", seed], sealed["dresses", seed]}
        assert grey == {biased["F-MNIST, biased labels", seed]}
    assert len(set(sealed.values())) == 9  # rare automobiles lack some of the images


def test_the_sealed_baselines_are_the_strongest_by_the_paper():
    def mean_f1(row):
        return sum(
            rows(name)[row].printed[task]["f1"] for name, task in TABLE_2.items()
        )

    order = sorted(TEN, key=mean_f1, reverse=True)
    assert order[:3] == STRONGEST_THREE
    assert set(order[:5]) == set(STRONGEST)


def test_sealed_baselines_have_the_protocol_of_large_samples():
    """On digits "auto" takes whole batches, as everywhere in the library."""
    assert {key: ADAM[key] for key in LARGE} == LARGE
    for name in SEALED:
        for row in (rows(name)[one] for one in (*STRONGEST_THREE, *TOLD_NOTHING)):
            assert {row.parameters[key] for key in LARGE} == {"auto"}
            assert row.parameters["weight_decay"] == ADAM["weight_decay"]


# --- ablation -------------------------------------------------------------------------


def named(name, kind):
    """Return the parts of a kind that rows of a spec name."""
    return {row.parameters[kind] for row in spec(name).rows if kind in row.parameters}


def test_the_ablation_has_every_densifier_and_detector():
    densifiers = set(registry().of_kind("densifier"))
    assert named("ablation", "densifier") == densifiers
    detectors = set(registry().of_kind("detector")) - {"density_ratio"}  # the default
    assert named("ablation", "detector") == detectors


def test_the_ablation_leaves_out_one_ingredient_at_a_time():
    usual = registry().get("network", "refiner").build().get_params()
    changed = []
    for row in spec("ablation").rows:
        if row.name.startswith("refine: "):
            [name] = [k for k in row.parameters if k.startswith("refiner__")]
            changed.append(name.removeprefix("refiner__"))
            assert row.parameters[name] != usual[changed[-1]]
            assert (row.encoder, row.heavy) == ("shared", True)
    wanted = ["ratio_epochs", "risk_epochs", "smooth", "rounds", "rounds"]
    assert changed == [*wanted, "weighted", "mixup", "ema_decay"]
    assert spec("ablation").reference == OURS
    assert dict(rows("ablation")[OURS].parameters) == {}


def test_the_ablation_uses_the_encoders_of_table_2():
    def encoders(name):
        cells = cells_of(spec(name))
        return {c.encoder_id for c in cells if c.row.encoder == "shared"}

    assert encoders("ablation") < encoders("table2-cifar10")
    assert len(encoders("ablation-labels")) == 3  # one a seed for all label counts
    counts = [task.n_labeled for task in spec("ablation-labels").tasks]
    assert counts == [100, 250, 500, 1000, 3000]


# --- mistakes -------------------------------------------------------------------------

TODAY = date(2026, 1, 2)

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


def changed(*path_and_value):
    """Return the good table with one value put somewhere."""
    *path, last, value = path_and_value
    table = copy.deepcopy(GOOD)
    place = table
    for step in path:
        place = place[step]
    place[last] = value
    return table


def without(*path):
    *path, last = path
    table = copy.deepcopy(GOOD)
    place = table
    for step in path:
        place = place[step]
    del place[last]
    return table


def message(table):
    with pytest.raises((InvalidParameterError, UnknownPartError)) as caught:
        parse_spec(table, "mine")
    return str(caught.value)


def test_classes_in_another_order_are_the_same_runs():
    def ids(**task):
        cells = cells_of(
            parse_spec(changed("tasks", [{**GOOD["tasks"][0], **task}]), "x")
        )
        return [cell.id for cell in cells]

    assert ids(positive=[3, 1]) == ids(positive=[1, 3]) != ids()
    assert ids(positive=[8, 6, 4, 2, 0]) == ids()  # the set's own
    twins = changed(
        "tasks",
        [
            {**GOOD["tasks"][0], "positive": positive, "name": str(positive)}
            for positive in ([1, 3], [3, 1])
        ],
    )
    assert "asks for one run twice" in message(twins)


def test_a_folder_is_no_spec(tmp_path):
    with pytest.raises(InvalidParameterError, match=r"cannot be read: .* TOML file"):
        load_spec(tmp_path)


def test_a_spec_knows_its_file_and_its_hash_does_not(tmp_path):
    path = tmp_path / "digits.toml"
    path.write_text((SPECS / "digits.toml").read_text("utf-8"), encoding="utf-8")
    assert load_spec(path).path == str(path)
    assert spec_hash(load_spec(path)) == spec_hash(spec("digits"))


def test_the_good_table_is_good():
    loaded = parse_spec(GOOD, "mine")
    assert (loaded.name, loaded.seeds) == ("mine", (0, 1))
    assert [row.name for row in loaded.rows_of(loaded.tasks[0])] == [
        "nnPU",
        "ours",
        "oracle",
    ]


MISTAKES = {
    "unknown key": (
        changed("metric", ["f1"]),
        ["spec 'mine' has no setting 'metric'", "Did you mean 'metrics'"],
    ),
    "unknown key of a task": (
        changed("tasks", 0, "n_labelled", 5),
        ["task 1 of spec 'mine'", "'n_labelled'", "Did you mean 'n_labeled'"],
    ),
    "unknown key of a row": (
        changed("rows", 1, "encodr", "shared"),
        ["row 2 of spec 'mine'", "'encodr'", "Did you mean 'encoder'"],
    ),
    "unknown parameter": (
        changed("rows", 0, "parameters", {"epoch": 3}),
        ["Row 'nnPU'", "'nnpu' has no parameter 'epoch'", "Did you mean 'epochs'"],
    ),
    "unknown parameter of a part": (
        changed(
            "rows", 1, "parameters", {"classifier": "vgg16", "classifier__epoch": 3}
        ),
        ["Row 'ours' of spec 'mine'", "'epoch'", "epochs"],
    ),
    "parameter of a part that is not named": (
        changed("rows", 1, "parameters", {"classifier__epochs": 3}),
        ["Row 'ours'", "classifier__epochs cannot be set while classifier='auto'"],
    ),
    "unknown parameter of an oracle": (
        changed("rows", 2, "parameters", {"epoch": 3}),
        ["Row 'oracle' of spec 'mine'", "'epoch'"],
    ),
    "lacking": (without("title"), ["spec 'mine' lacks 'title'"]),
    "lacking in a task": (
        without("tasks", 0, "n_labeled"),
        ["task 1 of spec 'mine' lacks 'n_labeled'"],
    ),
    "lacking in a row": (
        without("rows", 0, "method"),
        ["row 1 of spec 'mine' lacks 'method'"],
    ),
    "no tasks": (changed("tasks", []), ["has no tasks", "[[tasks]]"]),
    "no rows": (without("rows"), ["has no rows", "[[rows]]"]),
    "no seeds": (changed("seeds", []), ["seeds of spec 'mine' is empty"]),
    "number for text": (changed("title", 3), ["title=3", "must be str"]),
    "text for a number": (
        changed("tasks", 0, "n_labeled", "many"),
        ["n_labeled='many' of task 1", "must be int or float"],
    ),
    "a figure of the walk that leads": (
        changed("metrics", ["purity", "f1"]),
        ["metrics of spec 'mine' begins with 'purity'", "accuracy"],
    ),
    "text for truth": (
        changed("rows", 1, "heavy", "yes"),
        ["heavy='yes' of row 2", "must be true or false"],
    ),
    "a group that begins twice": (
        changed("rows", [GOOD["rows"][i] | {"group": "aba"[i]} for i in range(3)]),
        ["The rows of group 'a' in spec 'mine' do not stand together", "another"],
    ),
    "rows without a group on both sides of one": (
        changed("rows", 1, "group", "ours"),
        ["The rows without a group in spec 'mine' do not stand together"],
    ),
    "a part that does not exist": (
        changed("rows", 1, "parameters", {"encoder": "contrastve"}),
        ["Row 'ours' of spec 'mine' cannot be built", "Did you mean 'contrastive'"],
    ),
    "a setting of a part that it cannot have": (
        changed(
            "rows", 1, "parameters", {"encoder": "contrastive", "encoder__epochs": "x"}
        ),
        ["Row 'ours' of spec 'mine' cannot be built", "'epochs'", "Got 'x'"],
    ),
    "a number for a part": (
        changed(
            "rows",
            0,
            {"name": "a", "method": "elkan_noto", "parameters": {"estimator": 3}},
        ),
        ["Row 'a' of spec 'mine' cannot be built", "estimator=3 is not a classifier"],
    ),
    "a date for a part": (
        changed(
            "rows",
            0,
            {"name": "a", "method": "elkan_noto", "parameters": {"estimator": TODAY}},
        ),
        ["cannot be built", "is not a classifier"],
    ),
    "the seed of a part": (
        changed(
            "rows",
            1,
            "parameters",
            {"encoder": "contrastive", "encoder__random_state": 3},
        ),
        ["Row 'ours' of spec 'mine' sets 'encoder__random_state'", "seeds from the"],
    ),
    "the device of a part": (
        changed(
            "rows",
            1,
            "parameters",
            {"encoder": "contrastive", "encoder__device": "cpu"},
        ),
        ["sets 'encoder__device'"],
    ),
    "one table for several": (
        changed("tasks", {"name": "digits", "dataset": "digits", "n_labeled": 0.2}),
        ["has [tasks] as one table", "write [[tasks]]"],
    ),
    "a number of labels that is none": (
        changed("tasks", 0, "n_labeled", float("nan")),
        ["n_labeled=nan of task 'digits'", "above 0"],
    ),
    "all classes positive": (
        changed("tasks", 0, "positive", list(range(10))),
        ["positive=[0, 1, 2", "0 to 9", "leave some for the negatives"],
    ),
    "a metric twice": (
        changed("metrics", ["f1", "accuracy", "f1"]),
        ["spec 'mine' has metric f1 twice"],
    ),
    "a row on no task": (
        changed("rows", 0, "tasks", []),
        ["tasks of row 'nnPU' in spec 'mine' is empty", "leave it out"],
    ),
    "one task for a list": (
        changed("rows", 0, "tasks", "digits"),
        ["tasks='digits' of row 1", '["one", "two"]'],
    ),
    "a task without a row": (
        changed(
            "tasks",
            [
                *GOOD["tasks"],
                {"name": "other", "dataset": "digits", "n_labeled": 5},
            ],
        )
        | {"rows": [{**row, "tasks": ["digits"]} for row in GOOD["rows"]]},
        ["No row of spec 'mine' runs on task 'other'"],
    ),
    "a task without a name": (
        changed("tasks", 0, "name", " "),
        ["A task of spec 'mine' is called ' '"],
    ),
    "a task with a column's name": (
        changed("tasks", 0, "name", "over tasks"),
        ["A task of spec 'mine' is called 'over tasks'"],
    ),
    "a row without a name": (
        changed("rows", 0, "name", ""),
        ["A row of spec 'mine' has an empty name"],
    ),
    "a seed of a row twice": (
        changed("rows", 1, "seeds", [0, 0]),
        ["spec 'mine' has in row 'ours' the seed 0 twice"],
    ),
    "a prior for true labels": (
        changed("rows", 2, "prior", "true"),
        ["prior='true' of row 'oracle'", "no use to method='supervised'"],
    ),
    "a choice among true labels": (
        changed("rows", 2, "selection", "label-free"),
        ["selection='label-free' of row 'oracle'", "no use to"],
    ),
    "a cut for true labels": (
        changed("rows", 2, "cut", "true prior"),
        ["cut='true prior' of row 'oracle'", "no use to"],
    ),
    "a path of its own": (
        changed("path", "elsewhere.toml"),
        ["spec 'mine' gives itself a path"],
    ),
    "truth for text": (changed("note", True), ["note=True", "must be str"]),
    "one seed alone": (changed("seeds", 0), ["seeds=0", "must be a list"]),
    "seeds in words": (changed("seeds", ["0"]), ["seeds=['0']", "int values only"]),
    "seeds of a row that the table has not": (
        changed("rows", 1, "seeds", [0, 77]),
        ["seeds=[0, 77] of row", "spec 'mine'", "some of the table's: 0", "all of"],
    ),
    "a row without a seed": (
        changed("rows", 1, "seeds", []),
        ["seeds=[] of row", "some of the table's"],
    ),
    "a list for a table": (
        changed("rows", 0, "parameters", [1]),
        ["parameters of row 1", "must be a table"],
    ),
    "unknown metric": (
        changed("metrics", ["f2"]),
        ["metric 'f2'", "Did you mean 'f1'", "Known: accuracy"],
    ),
    "unknown word": (
        changed("rows", 1, "encoder", "share"),
        ["encoder='share' of row 2", "'own' or 'shared'", "Did you mean 'shared'"],
    ),
    "the best epoch": (
        changed("rows", 0, "selection", "best"),
        ["selection='best'", "'last' or 'label-free'"],
    ),
    "unknown set": (
        changed("tasks", 0, "dataset", "cifar"),
        ["no data set called 'cifar'", "Did you mean 'cifar10'"],
    ),
    "unknown method": (
        changed("rows", 0, "method", "nnpo"),
        ["no method called 'nnpo'", "Did you mean 'nnpu'"],
    ),
    "a prior that is needed": (
        without("rows", 0, "prior"),
        ["Row 'nnPU'", "prior='none'", "needs a class prior", "'true' or 'estimate'"],
    ),
    "a prior that is not": (
        changed("rows", 1, "prior", "estimate"),
        ["Row 'ours'", "by itself unless it is told", "use 'none' or 'true'"],
    ),
    "a prior without a use for it": (
        changed("rows", 1, {"name": "ours", "method": "elkan_noto", "prior": "true"}),
        ["prior='true'", "'elkan_noto' with these", "no use of it on one-sample data"],
    ),
    "a prior for the paper's ending": (
        changed(
            "rows",
            1,
            {
                "name": "ours",
                "method": "dens_pu",
                "prior": "true",
                "parameters": {"preset": "paper"},
            },
        ),
        ["Row 'ours'", "no use of it", "cut='true prior'"],
    ),
    "a prior that none takes": (
        changed("rows", 1, {"name": "ours", "method": "vpu", "prior": "true"}),
        ["Row 'ours'", "takes no class prior", "use 'none'"],
    ),
    "an oracle for a method": (
        changed("rows", 1, "oracle", "all"),
        ["Row 'ours'", "oracle='all'", "method='supervised' alone"],
    ),
    "supervised without an oracle": (
        without("rows", 2, "oracle"),
        ["Row 'oracle'", "oracle='negatives' or 'all'"],
    ),
    "two encoders": (
        changed(
            "rows",
            1,
            {"name": "ours", "method": "dens_pu", "encoder": "shared"}
            | {"parameters": {"encoder": "cae"}},
        ),
        ["Row 'ours'", "encoder='shared'", "Keep one of them"],
    ),
    "a CPU for one encoder of many rows": (
        changed(
            "rows",
            1,
            {"name": "ours", "method": "dens_pu", "encoder": "shared", "device": "cpu"},
        ),
        ["Row 'ours'", "encoder='shared' and device='cpu'", "Leave the device out"],
    ),
    "unknown device": (
        changed("rows", 1, "device", "cuda"),
        ["device='cuda' of row 2", "'any' or 'cpu'"],
    ),
    "a row twice": (changed("rows", 1, "name", "nnPU"), ["row nnPU twice"]),
    "a task twice": (
        changed("tasks", GOOD["tasks"] * 2),
        ["task digits twice"],
    ),
    "a seed twice": (changed("seeds", [3, 3]), ["seed 3 twice"]),
    "unknown task of a row": (
        changed("rows", 0, "tasks", ["digit"]),
        ["task of row 'nnPU' 'digit'", "Did you mean 'digits'"],
    ),
    "printed for an unknown task": (
        changed("rows", 0, "printed", {"digit": {"f1": 90.0}}),
        ["task of row 'nnPU' 'digit'", "Did you mean 'digits'"],
    ),
    "printed of an unknown metric": (
        changed("rows", 0, "printed", {"digits": {"auc": 90.0}}),
        ["printed metric of row 'nnPU' 'auc'", "Known: accuracy"],
    ),
    "unknown reference": (
        changed("reference", "our"),
        ["reference 'our'", "Did you mean 'ours'"],
    ),
    "a share of one": (
        changed("tasks", 0, "n_labeled", 1.0),
        ["n_labeled=1.0 of task 'digits'", "between 0 and 1"],
    ),
    "no positives kept": (
        changed("tasks", 0, "keep_positive", 0),
        ["keep_positive=0 of task 'digits'", "above 0 and at most 1"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mistake):
    table, words = MISTAKES[mistake]
    said = message(table)
    for word in words:
        assert word in said


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidParameterError, match=r"no spec at .*lost\.toml"):
        load_spec(tmp_path / "lost.toml")


@pytest.mark.parametrize("content", [b"title = ", b"\xff\xfe", b"a = 1\na = 2"])
def test_what_is_no_toml_is_named(tmp_path, content):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(InvalidParameterError, match=r"broken\.toml is not a TOML file"):
        load_spec(path)


def test_a_file_is_called_by_its_name(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text((SPECS / "digits.toml").read_text("utf-8"), "utf-8")
    assert load_spec(path).name == "mine"
    path.write_text("title = 'x'\n[[tasks]]\n[[rows]]", "utf-8")
    with pytest.raises(InvalidParameterError, match="task 1 of spec 'mine' lacks"):
        load_spec(path)
