"""Compare the answers of this tree with those of another commit, bit for bit.

python benchmarks/frozen_answers.py --against COMMIT [--only REGEX] [--jobs 2]

Every registered method and part learns tiny data with fixed seeds, one thread, on both
trees; what each answers is kept as arrays and compared. Only public doors are used, so
the script runs on trees whose modules lie elsewhere. Answers of COMMIT are kept in a
cache of temporary files; only this tree is computed anew.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

Answers = dict[str, Any]
Case = tuple[str, Callable[[], Answers]]

SMALL = {
    "prior": 0.5,
    "epochs": 2,
    "gan_epochs": 20,
    "width": 16,
    "n_made": 200,
    "final_epochs": 2,
    "n_bags": 5,
    "n_components": 20,
    "batch_size": 32,
    "device": "cpu",
    "random_state": 0,
}
"""Settings that make a fit short, wherever a constructor has them."""

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "dens_pu": [
        {"contamination": 0.1},
        {"contamination": "ratio", "refiner": None},
        {"checks": 1},
        {"classifier": "logistic", "classify_on": "embedding"},
        {"prior": 0.4},
    ],
    "apu": [{"variant": "wuu"}, {"variant": "apnu"}, {"validation": 0.3}],
    "biased_svm": [{"folds": 2}],
    "density_estimator": [{"density": "mixture"}, {"density": "mahalanobis"}],
    "elkan_noto": [
        {"variant": "adjusted"},
        {"calibration": "sigmoid"},
        {"calibration": None},
    ],
    "kldce": [{"variant": "linear"}],
    "label_propagation": [{"metric": "euclidean"}],
    "ncpu": [{"class_level": False}, {"confidence": None}, {"augment": "none"}],
    "one_class": [{"detector": "mahalanobis"}],
    "pubn": [{"rho": 0.2}, {"tau": 0.5}, {"validation": 0.3}],
    "pu_bagging": [{"bag_size": 0.5}, {"estimator": "logistic"}],
    "rank_pruning": [{"noise_rate": 0.3}, {"calibration": "isotonic"}],
    "rocchio_svm": [{"n_clusters": 3}],
    "self_pu": [{"labels": "hard"}],
    "spy": [{"variant": "em"}],
    "upu": [{"stop_below": None}],
    "vpu": [{"top": "max"}, {"epoch_steps": 3}],
    "nnpu": [
        {"network": "linear"},
        {"network": "resnet18"},
        {"beta": 0.1, "gamma": 0.5},
    ],
    "contrastive": [
        {"network": "small"},
        {"network": "resnet18"},
        {"image_size": 8},
        {"augment": "natural"},
        {"augment": "documents"},
        {"augment": "grey"},
    ],
    "cae": [{"fit_on": "all", "image_size": 16}],
    "tabular": [{"scale": "common"}, {"missing_indicator": False}],
    "text": [{"unit": "character"}],
    "knn": [{"metric": "cosine", "statistic": "kth"}],
    "density_ratio": [
        {"around": "positives"},
        {"around": "rows", "metric": "cosine", "n_neighbors": 12},
    ],
    "isolation_forest": [{"engine": "torch"}],
    "extended_isolation_forest": [{"engine": "torch"}],
    "embedding": [
        {"draws": "start"},
        {"prior": "start", "folds": 3},
        {"tolerance": 0.0},
    ],
    "ranking": [
        {"learner": "boosting"},
        {"learner": "forest"},
        {"learner": "both", "prior": "start"},
    ],
    "backbone": [
        {"network": "linear"},
        {"network": "mlp"},
        {"network": "resnet18"},
        {"balance": "weights"},
        {"validation": 0.3},
    ],
    "vgg16": [{"balance": "weights", "momentum": 0.9}],
}  # fmt: skip
"""Further settings to compare, by key; those a class does not take are errors alike."""

REFINER = {
    "embedding": {"rounds": 1, "folds": 2, "n_bags": 2},
    "ranking": {"rounds": 1, "folds": 2, "n_trees": 5, "max_iter": 5},
    "network": {
        "ratio_epochs": 1,
        "risk_epochs": 1,
        "rounds": 1,
        "epochs": 1,
        "batch_size": 32,
    },
}
ONE_EPOCH = ("vgg16", "contrastive", "cae", "self_pu")

FITTED = (
    "prior_",
    "prior_in_unlabeled_",
    "prior_interval_",
    "labels_",
    "unlabeled_scores_",
    "held_out_scores_",
    "threshold_",
    "label_frequency_",
    "noise_rate_",
)
"""Fitted attributes that are compared where they exist."""


# --- data ----------------------------------------------------------------------------


class Data:
    """Train rows with PU labels, and new rows."""

    def __init__(self, X: Any, truth: np.ndarray, n_train: int = 160) -> None:
        new = np.arange(len(truth)) >= n_train
        rows = lambda chosen: (  # noqa: E731
            X.loc[chosen] if hasattr(X, "loc") else X[chosen]
        )
        rng = np.random.default_rng(7)
        self.X, self.new = rows(~new), rows(new)
        self.truth, self.new_truth = truth[~new], truth[new]
        self.y = self.truth * (rng.random(n_train) < 0.5)
        self.known_negative = (self.truth == 0) & (rng.random(n_train) < 0.2)
        self.groups = np.arange(n_train) // 3


@cache
def data(name: str) -> Data:
    """Return one of the small sets."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    rng = np.random.default_rng(3)
    n = 220
    images, truth = digits.images[:n], (digits.target[:n] % 2 == 0).astype(int)
    if name == "digits":
        return Data(digits.data[:n], truth)
    if name == "grey":
        return Data((images[:120] * 15).astype(np.uint8), truth[:120], 80)
    if name == "colour":
        big = np.kron(images[:120], np.ones((1, 2, 2)))[..., None]
        tint = rng.random((120, 1, 1, 3))
        return Data((big * tint * 15).astype(np.uint8), truth[:120], 80)
    if name == "vectors":
        rows = digits.data[:n] - digits.data.mean(axis=0)
        return Data(rows / np.linalg.norm(rows, axis=1, keepdims=True), truth)
    if name == "table":
        import pandas

        held = digits.data[:n, 18:24] + rng.normal(size=(n, 6))
        frame = pandas.DataFrame(held, columns=list("abcdef"))
        frame.loc[rng.random(n) < 0.1, "b"] = np.nan
        colours = np.where(truth == (rng.random(n) < 0.8), "red", "blue").astype(object)
        colours[rng.random(n) < 0.1] = None
        frame["colour"] = colours
        frame["shape"] = pandas.Categorical(rng.choice(["x", "y", "z"], n))
        return Data(frame, truth)
    words = np.array([f"even{i}" for i in range(12)] + [f"odd{i}" for i in range(12)])
    chances = np.where(np.arange(24) < 12, 3.0, 1.0)
    texts = [
        " ".join(
            rng.choice(words, 12, p=(c := chances if t else chances[::-1]) / c.sum())
        )
        for t in truth
    ]
    return Data(np.array(texts, dtype=object), truth)


# --- cases ---------------------------------------------------------------------------


@cache
def registered() -> list[dict[str, Any]]:
    """Return what the tree says it has."""
    command = [sys.executable, "-m", "denspu", "list", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def part(kind: str, key: str, **settings: Any) -> Any:
    """Make a registered part with small settings."""
    entry = next(e for e in registered() if (e["kind"], e["key"]) == (kind, key))
    module, _, name = entry["target"].partition(":")
    cls = getattr(importlib.import_module(module), name)
    made = cls(**entry["defaults"])
    small = SMALL if kind != "classifier" or not module.startswith("sklearn") else {}
    known = made.get_params()
    small = {k: v for k, v in {**small, "n_estimators": 20}.items() if k in known}
    small |= {"epochs": 1} if key in ONE_EPOCH else {}
    if kind == "refiner":
        small = {**small, **REFINER[key]}
        small.pop("prior", None)
    return made.set_params(**{**small, **settings})


def keys(kind: str) -> list[str]:
    """Return the keys of a kind."""
    return [entry["key"] for entry in registered() if entry["kind"] == kind]


def method(
    key: str, on: str, settings: dict[str, Any], given: tuple[str, ...] = ()
) -> Answers:
    """Fit a method and collect what it answers."""
    import denspu

    rows = data(on)
    known = denspu.make(key).get_params()
    small = {k: v for k, v in SMALL.items() if k in known}
    if "network" in known:
        small["network"] = "cnn" if on in ("grey", "colour") else "mlp"
        small |= {"encoder": "text"} if on == "text" else {}
    elif on == "colour":
        small["encoder"] = part("encoder", "contrastive")
    if key == "dens_pu":
        small["prior"] = "estimate"
        small["refiner"] = part("refiner", "embedding")
    model = denspu.make(key, **{**small, **settings})
    model.fit(rows.X, rows.y, **{name: getattr(rows, name) for name in given})
    found = answers(model, rows)
    found["stages"] = [
        [s.name, {k: v for k, v in s.facts.items() if "second" not in k}]
        for s in getattr(model, "stages_", [])
    ]
    return found


def answers(model: Any, rows: Data) -> Answers:
    """Return decisions and fitted attributes."""
    found = {name: getattr(model, name) for name in FITTED if hasattr(model, name)}
    for where, X in (("train", rows.X), ("new", rows.new)):
        for asked in ("decision_function", "predict_proba", "predict"):
            if hasattr(model, asked):
                found[f"{asked} {where}"] = getattr(model, asked)(X)
    return found


def judged(key: str, on: str, scenario: str | None) -> Answers:
    """Fit with held-out positives; ask for everything that rests on them."""
    import denspu

    rows = data(on)
    known = denspu.make(key).get_params()
    small = {k: v for k, v in SMALL.items() if k in known}
    small |= {"network": "mlp"} if "network" in known else {}
    small |= {"scenario": scenario} if scenario else {}
    if key == "dens_pu":
        small |= {"prior": "estimate", "refiner": part("refiner", "embedding")}
    model = denspu.make(key, **small)
    model.fit(rows.X, rows.y, groups=rows.groups, holdout=0.3)
    found = answers(model, rows) | {"evidence": plain_fields(model.evidence_)}
    found["report"] = plain_fields(model.evaluate(k=5))
    found["report of all"] = plain_fields(model.evaluate(population="population"))
    positive, others = rows.new[rows.new_truth == 1], rows.new[rows.new_truth == 0]
    found["report of rows"] = plain_fields(model.evaluate(positive, others))
    rules: list[dict[str, Any]] = [{"recall": 0.8}, {"precision": 0.6}, {"top": 9}]
    rules += [{"prior": True}, {"prior_in_unlabeled": 0.3}, {"value": 0.25}]
    for rule in rules:
        model.set_threshold(**rule)
        found[f"threshold {rule}"] = model.threshold_
    found["calibrated"] = model.calibrate().predict_proba(rows.new)
    return found


def encoder(key: str, on: str, settings: dict[str, Any]) -> Answers:
    """Fit an encoder and transform."""
    rows = data(on)
    made = part("encoder", key, **settings).fit(rows.X, rows.y)
    return {"train": made.transform(rows.X), "new": made.transform(rows.new)}


def detector(key: str, settings: dict[str, Any]) -> Answers:
    """Fit a detector on positives; move its threshold by every rule."""
    rows = data("digits")
    made = part("detector", key, **settings)
    U = rows.X[rows.y == 0]
    if key == "density_ratio":
        made.fit(rows.X, rows.y)
    else:
        made.fit(rows.X[rows.y == 1])
    found = {"threshold": made.threshold_, "scores": made.score_samples(rows.new)}
    found |= {
        "above": made.decision_function(rows.new),
        "calls": made.predict(rows.new),
    }
    for rule in ("value", "contamination", "held_out", "otsu", "prior"):
        made.set_threshold(rule, 0.3, None if rule == "value" else U)
        found[rule] = made.threshold_
    return found


def densifier(key: str, on: str) -> Answers:
    """Return the new rows of a densifier."""
    positive = data(on).X[data(on).y == 1]
    return {"new": part("densifier", key).densify(positive, np.random.default_rng(0))}


def classifier(key: str, on: str, settings: dict[str, Any]) -> Answers:
    """Fit a classifier on true labels."""
    made = part("classifier", key, **settings).fit(data(on).X, data(on).truth)
    return answers(made, data(on))


def prior(key: str, on: str, scenario: str) -> Answers:
    """Ask one estimator of the prior for its share and interval."""
    from denspu.priors import estimate_prior

    rows, settings = data(on), {"scenario": scenario, "random_state": 0}
    found = estimate_prior(rows.X, rows.y, method=key, n_resamples=5, **settings)
    again = estimate_prior(
        rows.X, rows.y, method=key, n_resamples=0, groups=rows.groups, **settings
    )
    return {"whole": plain_fields(found), "groups": plain_fields(again)}


def scores_alone() -> Answers:
    """Ask everything that takes only scores of positives and of U."""
    from denspu import metrics, priors

    rng = np.random.default_rng(5)
    P, more = rng.normal(2, 1, 80), rng.normal(2, 1, 60)
    U = np.concatenate([more, rng.normal(-1, 1, 140)])
    share, seed = {"prior_in_unlabeled": 0.3}, {"random_state": 0}
    found: Answers = {
        "estimate": priors.estimate_prior_from_scores(P, U, rng=rng),
        "shares": priors.prior_from_scores(P, U, n_resamples=10, **seed),
        "mixture": priors.mixture_share(P, U, 0.25),
        "pu_metrics": metrics.pu_metrics(
            P, U, prior_interval=(0.2, 0.4), k=[5, 20], n_labeled=80, **share, **seed
        ),
        "two samples": metrics.pu_metrics(
            P, U, scenario="two-sample", population="population", **share, **seed
        ),
        "scar": metrics.scar_check(P, U, **share, **seed),
        "trivial": metrics.trivial_check(P, U, **share),
        "sensitivity": metrics.prior_sensitivity(P, U, priors=[0.2, 0.4], **seed),
        "negatives": metrics.declared_negatives(P, U),
        "positives": metrics.declared_positives(P, U),
        "low": metrics.conformal_p_values(P, U),
        "high": metrics.conformal_p_values(P, U, tail="high"),
        "oracle": metrics.oracle_metrics(np.arange(200) < 60, U),
    }
    for rule, target in {"prior": None, "recall": 0.8, "top": 9}.items():
        found[f"threshold {rule}"] = metrics.choose_threshold(
            P, U, rule=rule, target=target, **share, **seed
        )
    for key in keys("prior"):
        made = part("prior", key)
        rows = (P, U) if made.sees == "scores" else (P[:, None], U[:, None])
        found[key] = made.estimate(*rows, np.random.default_rng(0))
    return {name: plain_fields(value) for name, value in found.items()}


def made_pu(scenario: str, mechanism: str) -> Answers:
    """Hide labels of the table."""
    import denspu

    rows = data("digits")
    made = denspu.make_pu(
        rows.X,
        rows.truth,
        n_labeled=0.4,
        scenario=scenario,
        mechanism=mechanism,
        random_state=0,
    )
    return {"X": made.X, "y": made.y}


def cases() -> Iterator[Case]:
    """Yield the name of each case, and how to get its answers."""
    flat = ("digits", "table", "grey", "colour", "text", "vectors")
    deep = {e["key"] for e in registered() if e["kind"] == "method" and e["deep"]}
    for key in keys("method"):
        case = partial(method, key)
        for on in flat[: 5 if key in deep else 6]:
            yield f"method/{key}/{on}", partial(case, on, {})
        for settings in OPTIONS.get(key, []):
            on = (
                "colour"
                if settings.get("network") in ("resnet18", "vgg16")
                else "digits"
            )
            yield f"method/{key}/{on} {words(settings)}", partial(case, on, settings)
        for settings in ({"prior": "estimate"}, {"scenario": "two-sample"}):
            if takes("method", key, *settings):
                yield (
                    f"method/{key}/{words(settings)}",
                    partial(case, "digits", settings),
                )
        given = ("known_negative", "groups")
        yield f"method/{key}/known", partial(case, "digits", {}, given)
        yield f"judged/{key}", partial(judged, key, "digits", None)
        if takes("method", key, "scenario"):
            two = "two-sample"
            yield f"judged/{key} {two}", partial(judged, key, "digits", two)
    yield "judged/dens_pu/table", partial(judged, "dens_pu", "table", None)
    for kind in ("densifier", "selector", "detector", "encoder"):
        for key in keys(kind):
            if key == "sentence":
                continue
            on = {"text": "text", "cae": "colour", "contrastive": "colour"}
            parts = {kind: key, "refiner": None, "classifier": "logistic"}
            parts |= {f"{kind}__{k}": v for k, v in short(kind, key).items()}
            case = partial(method, "dens_pu", on.get(key, "digits"), parts)
            yield f"dens_pu/{kind} {key}", case
    for key in keys("refiner"):
        for settings in [{}, *OPTIONS.get(key, [])]:
            on = "colour" if key == "network" else "digits"
            parts = {"refiner": part("refiner", key, **settings)}
            for given in ((), ("known_negative", "groups")):
                name = f"dens_pu/refiner {key} {words(settings)} {' '.join(given)}"
                yield name, partial(method, "dens_pu", on, parts, given)
    paper = {"preset": "paper", "refiner": "auto"}
    paper |= {name: part(*at) for name, at in PAPER.items()}
    yield "dens_pu/paper", partial(method, "dens_pu", "colour", paper)
    for kind, ask in (("encoder", encoder), ("classifier", classifier)):
        for key in keys(kind):
            for on in flat[:5]:
                if suits(kind, key, on) and key != "vgg16":  # slow: below, once
                    yield f"{kind}/{key}/{on}", partial(ask, key, on, {})
            on = (
                "colour" if key in IMAGE_PARTS else "text" if key == "text" else "table"
            )
            for settings in OPTIONS.get(key, []):
                name = f"{kind}/{key}/{on} {words(settings)}"
                yield name, partial(ask, key, on, settings)
    for key in keys("detector"):
        for settings in [{}, {"contamination": 0.2}, *OPTIONS.get(key, [])]:
            yield f"detector/{key} {words(settings)}", partial(detector, key, settings)
    for key in keys("densifier"):
        for on in ("digits", "vectors"):
            yield f"densifier/{key}/{on}", partial(densifier, key, on)
    for key in (*keys("prior"), "auto"):
        for on in ("digits", "table", "text"):
            for scenario in ("one-sample", "two-sample"):
                name = f"prior/{key}/{on} {scenario}"
                yield name, partial(prior, key, on, scenario)
    yield "scores alone", scores_alone
    for scenario in ("one-sample", "two-sample"):
        for mechanism in ("scar", "sar"):
            yield (
                f"make_pu/{scenario} {mechanism}",
                partial(made_pu, scenario, mechanism),
            )


IMAGE_PARTS = ("backbone", "cae", "contrastive", "vgg16")
PAPER = {
    "encoder": ("encoder", "cae"),
    "detector": ("detector", "isolation_forest"),
    "classifier": ("classifier", "vgg16"),
}


def takes(kind: str, key: str, name: str) -> bool:
    """Tell whether a part has a parameter."""
    return name in part(kind, key).get_params()


def short(kind: str, key: str) -> dict[str, Any]:
    """Return the small settings of a part that is named by its key."""
    return {
        name: value
        for name, value in part(kind, key).get_params().items()
        if name in ("n_estimators", "epochs", "batch_size", "device")
    }


def suits(kind: str, key: str, on: str) -> bool:
    """Tell whether a part takes a kind of data."""
    taken = next(
        e["inputs"] for e in registered() if (e["kind"], e["key"]) == (kind, key)
    )
    images = on in ("grey", "colour")
    wanted = "image" if images else "text" if on == "text" else "table"
    if (key, on) in (("identity", "table"), ("sentence", "text")):
        return False  # gaps; its weights are a folder that is not here
    return wanted in taken or ("embedding" in taken and on == "digits")


def words(settings: dict[str, Any]) -> str:
    """Return settings as one word in the name of a case."""
    return " ".join(f"{name}={value}" for name, value in settings.items())


# --- keeping and comparing -----------------------------------------------------------


def plain_fields(value: Any) -> Any:
    """Return dataclasses and the like as dictionaries."""
    if isinstance(value, dict):
        return {str(name): plain_fields(held) for name, held in value.items()}
    if type(value).__module__.startswith("denspu."):
        names = getattr(value, "__slots__", None) or vars(value)
        held = {n: getattr(value, n) for n in names if not n.startswith("_")}
        return plain_fields(held)
    return value


def flat(value: Any, name: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Yield every number and text of an answer as an array with a name."""
    if isinstance(value, dict):
        for key, held in value.items():
            yield from flat(held, f"{name}/{key}")
    elif isinstance(value, list | tuple):
        yield f"{name}/length", np.array(len(value))
        for i, held in enumerate(value):
            yield from flat(held, f"{name}/{i}")
    else:
        array = np.asarray(value)
        yield name, array if array.dtype != object else np.array(str(value))


def answer_all(folder: Path, only: str, share: str) -> None:
    """Write the answers of all cases that are not there yet, or of a share of them."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    first, step = map(int, share.split("/"))
    wanted = [(name, ask) for name, ask in cases() if re.search(only, name)]
    for name, ask in wanted[first::step]:
        path = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.npz"
        if path.exists():
            continue
        start = time.perf_counter()
        try:
            found = dict(flat(ask()))
        except Exception as error:
            found = {"error": np.array(f"{type(error).__name__}: {error}")}
        seconds = time.perf_counter() - start
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            np.savez(file, case=np.array(name), took=np.array(seconds), **found)
        part.replace(path)


def run(tree: Path, folder: Path, only: str, jobs: int) -> None:
    """Answer on a tree in processes of one thread."""
    folder.mkdir(parents=True, exist_ok=True)
    alone = {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    environment = {**os.environ, **alone, "PYTHONPATH": str(tree / "src")}
    command = [sys.executable, __file__, "--answer", str(folder), "--only", only]
    runs = [
        subprocess.Popen(
            [*command, "--share", f"{i}/{jobs}"], env=environment, cwd=tree
        )
        for i in range(jobs)
    ]
    codes = [process.wait() for process in runs]
    if any(codes):
        sys.exit(f"{tree} could not answer.")


def read(folder: Path, only: str) -> dict[str, dict[str, np.ndarray]]:
    """Return the answers of a folder by case."""
    found = {}
    for path in folder.glob("*.npz"):
        with np.load(path) as held:
            name = str(held["case"])
            if re.search(only, name):
                found[name] = {
                    k: held[k] for k in held.files if k not in ("case", "took")
                }
    return found


def difference(
    one: dict[str, np.ndarray], other: dict[str, np.ndarray], tolerance: float
) -> str:
    """Say how the answers of a case differ; nothing where they do not."""
    if "error" in one or "error" in other:
        texts = [str(side.get("error", "an answer")) for side in (one, other)]
        return "" if texts[0] == texts[1] else " BECAME ".join(texts)
    found = [f"only one tree has {name}" for name in sorted(one.keys() ^ other.keys())]
    for name in one.keys() & other.keys():
        a, b = one[name], other[name]
        numbers = (
            a.dtype.kind in "biuf" and b.dtype.kind in "biuf" and a.shape == b.shape
        )
        if not numbers:
            same = a.shape == b.shape and bool(np.all(a == b))
            found += [] if same else [f"{name}: {a!s:.60} became {b!s:.60}"]
            continue
        if np.array_equal(a, b, equal_nan=True):
            continue
        gap = np.nanmax(np.abs(a.astype(float) - b.astype(float)))
        if not gap <= tolerance or (np.isnan(a) != np.isnan(b)).any():
            found.append(f"{name}: up to {gap:.3g}")
    return "; ".join(sorted(found)[:6])


def tree_of(commit: str, here: Path) -> tuple[str, Path]:
    """Return the full name of a commit, and a work tree of it."""
    git = ["git", "-C", str(here)]
    asked = [*git, "rev-parse", f"{commit}^{{commit}}"]
    full = subprocess.run(
        asked, capture_output=True, text=True, check=True
    ).stdout.strip()
    tree = CACHE / f"tree-{full}"
    if not (tree / "src").is_dir():
        tree.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(
            [*git, "archive", full], capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", str(tree)], input=packed.stdout, check=True)
    return full, tree


CACHE = Path(tempfile.gettempdir()) / f"denspu-frozen-{os.getuid()}"


def versions() -> str:
    """Return what answers depend on beside the tree and this script."""
    import scipy
    import sklearn
    import torch

    known = [m.__version__ for m in (np, scipy, sklearn, torch)]
    return " ".join([sys.version, *known])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="COMMIT")
    parser.add_argument("--only", default="", metavar="REGEX", help="of names of cases")
    parser.add_argument("--tolerance", type=float, default=0.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--share", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer:
        return answer_all(args.answer, args.only, args.share)
    here = Path(__file__).resolve().parents[1]
    full, tree = tree_of(args.against, here)
    asking = Path(__file__).read_text("utf-8").partition("def run(")[0]
    made_by = hashlib.sha256((asking + versions()).encode())
    kept = CACHE / f"{full[:12]}-{made_by.hexdigest()[:12]}"
    run(tree, kept, args.only, args.jobs)
    with tempfile.TemporaryDirectory() as place:
        run(here, Path(place), args.only, args.jobs)
        then, now = read(kept, args.only), read(Path(place), args.only)
    differ = 0
    for name in sorted(then.keys() | now.keys()):
        if name not in then:
            print(f"new      {name}")
            continue
        told = difference(then[name], now.get(name, {}), args.tolerance)
        differ += bool(told)
        if told:
            print(f"DIFFERS  {name}: {told}")
        elif "error" in now[name]:
            print(f"error    {name}: {now[name]['error']!s:.150}")
    print(f"{len(then.keys() | now.keys())} cases, {differ} differ from {full[:7]}.")
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
