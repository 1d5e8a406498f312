"""Small finished runs of every kind, from real fits, for tests of the report."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from denspu._frame import Frame
from denspu._progress import Stage
from denspu.data import Items
from denspu.methods.elkan_noto import ElkanNoto
from denspu.metrics import pu_metrics, scar_check, trivial_check
from denspu.report.run import render
from denspu.runs.fit import project
from denspu.runs.folder import (
    Check,
    Count,
    Curve,
    IfShare,
    Prior,
    Promise,
    RunFacts,
    RunRows,
    Threshold,
)

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
NASTY = f"scan {HOSTILE} & \"quoted\" 'name' \u202etxt.exe\u2028 \x07 ü ß 漢字"


def items(kind, X, ids, **more):
    return Items(
        kind=kind, X=X, ids=list(ids), source=kind, plan={"kind": kind, **more}
    )


def fitted(Z, y, seed=0):
    """Return scores and chances of all rows from a real fit on numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ElkanNoto(random_state=seed).fit(Z, y)
    return model.decision_function(Z), model.predict_proba(Z)[:, 1]


def make_run(P, U, Z_positive, Z_unlabeled, *, evaluated=True, seed=0, **facts):
    """Return facts and rows of one run."""
    n_p, n_u = len(P), len(U)
    held = np.zeros(n_p, dtype=bool)
    if evaluated:
        held[:: max(2, min(5, n_p // 2))] = True
    Z = np.concatenate([Z_positive, Z_unlabeled])
    y = np.r_[~held, np.zeros(n_u, dtype=bool)].astype(int)
    scores, chance = fitted(Z, y, seed)
    positive, unlabeled = scores[:n_p], scores[n_p:]
    prior = float(np.clip(chance[n_p:].mean(), 0.01, 0.9))
    called = max(1, round(prior * n_u))
    ordered = np.sort(unlabeled)[::-1]
    threshold = float(ordered[min(called, n_u - 1)])
    decision = (unlabeled > threshold).astype(np.int64)
    rank = np.empty(n_u, dtype=np.int64)
    rank[np.argsort(-unlabeled, kind="stable")] = np.arange(1, n_u + 1)
    lowest = np.argsort(unlabeled, kind="stable")[: n_u // 5]
    stage = np.where(decision == 1, "above the threshold", "below the threshold")
    stage = stage.astype("<U24")
    stage[lowest] = "chosen negative"
    places, shares = project(Z)
    rows = RunRows(
        positive=P,
        unlabeled=U,
        score_positive=positive,
        held_out=held,
        score_unlabeled=unlabeled,
        probability=chance[n_p:],
        rank=rank,
        decision=decision,
        stage=stage,
        map_positive=places[:n_p],
        map_unlabeled=places[n_p:],
        map_note=f"Two main directions; they show {shares.sum():.0%} of the variance.",
        chosen=np.sort(lowest),
        odd_positive=np.argsort(positive, kind="stable")[: min(15, n_p // 3)],
    )
    low, high = 0.8 * prior, min(1.0, 1.2 * prior)
    report = None
    checks, lists, sensitivity = [], [], []
    if evaluated:
        report, checks, lists, sensitivity = judged(
            positive[held], unlabeled, prior, (low, high), threshold
        )
    made = RunFacts(
        kind=P.kind,
        method="elkan_noto",
        created="2026-01-31T12:00:00Z",
        command="denspu fit --positive confirmed/ --unlabeled archive/ --out run",
        settings={"random_state": 0, "threshold": {"rule": "prior"}, "groups": None},
        versions={"denspu": "0.1.0", "python": "3.11.9", "torch": "2.6.0"},
        seconds={"reading": 3.2, "fit": 71.0, "report": 0.6, "total": 74.8},
        sources={"positive": "confirmed/", "unlabeled": "archive/"},
        scenario="one-sample",
        n_positive=n_p,
        n_held_out=int(held.sum()),
        n_unlabeled=n_u,
        n_called=int(decision.sum()),
        reading=[f"confirmed/: {len(P)} items.", f"archive/: {len(U)} items."],
        prior=Prior(
            prior,
            low,
            high,
            0.9,
            "model",
            {"bbe": 0.95 * prior, "dedpul": 1.1 * prior, "km2": prior},
        ),
        count=Count(prior * n_u, low * n_u, high * n_u),
        threshold=Threshold(
            threshold, "prior", None, "As many are called as there should be positives."
        ),
        evaluation=report,
        sensitivity=sensitivity,
        checks=checks,
        lists=lists,
        stages=[
            Stage("read", 3.2, {"positives": n_p}),
            Stage("boundary", 2.5, {"detector": "DensityRatio", "leftovers": 1234}),
            Stage("refine", 27.3, {"rounds": 3, "changed": 0.002}),
        ],
        curves=[
            Curve("encoder", "loss", [*range(40)], [2 / (1 + k) for k in range(40)]),
            Curve("refiner", "loss", [1, 2, 3], [0.7, 0.4, 0.3]),
        ],
        warnings=[],
    )
    return replace(made, **facts), rows


def judged(P, U, prior, interval, threshold):
    """Return evaluation, checks, lists and sensitivity as a run makes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = pu_metrics(
            P,
            U,
            prior_in_unlabeled=prior,
            prior_interval=interval,
            threshold=threshold,
            k=min(100, len(U)),
            random_state=0,
        )
        scar = scar_check(P, U, prior_in_unlabeled=prior)
        trivial = trivial_check(P, U, prior_in_unlabeled=prior, threshold=threshold)
    ok = not scar.doubtful if scar.tests else None
    told = " ".join(test.sentence for test in scar.tests)
    checks = [
        Check("labels at random", ok, scar.sentence, told),
        Check("trivial model", not trivial.trivial, trivial.sentence),
        Check("shortcut", True, "No fact about the files alone gives the labels away."),
    ]
    lists = [Promise("sure negatives", 12, 0.1, "")]
    shares = np.linspace(*interval, 5).tolist()
    sensitivity = [IfShare(p, 0.7 + p / 10, 0.8, 0.75, 0.9) for p in shares]
    return report, checks, lists, sensitivity


def split(y, n_labeled, seed=0):
    """Return positions of labelled positives and of U."""
    rng = np.random.default_rng(seed)
    labelled = rng.choice(np.flatnonzero(y), n_labeled, replace=False)
    return labelled, np.setdiff1d(np.arange(len(y)), labelled)


def image_run(n_labeled=60, n_rows=600, dtype=np.uint8, channels=1, **options):
    """Digits: even ones are positive."""
    found = load_digits()
    Z, y = found.data[:n_rows] / 16, found.target[:n_rows] % 2 == 0
    p, u = split(y, n_labeled)
    top = {np.uint8: 255, np.uint16: 4095}.get(dtype, 1)
    X = (found.images[:n_rows, :, :, None] / 16 * top).astype(dtype)
    X = np.repeat(X, channels, axis=-1)
    P = items("image", X[p], [f"confirmed/digit-{i:04d}.png" for i in p])
    U = items("image", X[u], [f"archive/{i % 7}/digit-{i:04d}.png" for i in u])
    return make_run(P, U, Z[p], Z[u], **options)


def table_run(n_labeled=60, **options):
    """Tumours: malignant ones are positive; one column of words, one of dates."""
    found = load_breast_cancer()
    y = found.target == 0
    p, u = split(y, n_labeled)
    names = [str(n) for n in found.feature_names]
    ward = np.array(["north", "south", None], dtype=object)[np.arange(len(y)) % 3]
    columns = {n: found.data[:, k] for k, n in enumerate(names)}
    columns["mean texture"] = np.where(
        np.arange(len(y)) % 9 == 0, np.nan, columns["mean texture"]
    )
    columns["seen on"] = 19_000.0 + 40 * y + np.arange(len(y)) % 30
    frame = Frame({**columns, "ward": ward})
    kinds = dict.fromkeys(names, "number") | {"seen on": "date", "ward": "category"}
    P = items("table", frame.iloc[p], [f"{i + 1}" for i in p], columns=kinds)
    U = items("table", frame.iloc[u], [f"{i + 1}" for i in u], columns=kinds)
    Z = found.data / found.data.std(axis=0)
    return make_run(P, U, Z[p], Z[u], **options)


def text_run(n_labeled=40, n_rows=300, **options):
    """Sentences on rivers are positive, on machines negative."""
    rng = np.random.default_rng(0)
    rivers = "river bank water flows slowly under bridges where fish and boats drift"
    engines = "engine turns gears and pumps oil through valves while belts and hum"
    words = rivers.split(), engines.split()
    y = np.arange(n_rows) % 3 == 0
    texts = [
        " ".join(rng.choice(words[0 if flag else 1], rng.integers(8, 90))) for flag in y
    ]
    vocabulary = sorted(set(words[0] + words[1]))
    Z = np.array([[t.split().count(w) for w in vocabulary] for t in texts], dtype=float)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    p, u = split(y, n_labeled)
    P = items("text", [texts[i] for i in p], [f"confirmed.txt:{i + 1}" for i in p])
    U = items("text", [texts[i] for i in u], [f"archive.txt:{i + 1}" for i in u])
    return make_run(P, U, Z[p], Z[u], **options)


def embedding_run(n_labeled=60, n_rows=600, **options):
    """Digits again, as numbers with ids."""
    found = load_digits()
    Z, y = found.data[:n_rows] / 16, found.target[:n_rows] % 2 == 0
    p, u = split(y, n_labeled)
    P = items("embedding", Z[p], [f"id-{i}" for i in p])
    U = items("embedding", Z[u], [f"id-{i}" for i in u])
    return make_run(P, U, Z[p], Z[u], **options)


RUNS = {
    "image": image_run,
    "table": table_run,
    "text": text_run,
    "embedding": embedding_run,
}


@cache
def run_of(kind):
    """Return the run of a kind; it is shared, so leave it as it is."""
    return RUNS[kind]()


@cache
def page_of(kind):
    """Return the page of the run of a kind."""
    return render(*run_of(kind))


def fresh(kind):
    """Return a copy of a run that may be changed."""
    return deepcopy(run_of(kind))


def renamed(rows, name, where="unlabeled", at=0):
    """Return rows in which one item has another name."""
    found = getattr(rows, where)
    ids = list(found.ids)
    ids[at] = name
    return replace(rows, **{where: replace(found, ids=ids)})
