"""``DensPU()`` beside pulearn and pu-toolbox on small tables, no prior given to us.

    pip install pulearn==0.2.0 pu-toolbox==1.11.0 palmerpenguins
    python benchmarks/small_tables.py --seeds 0 1 2 3 4

A 70/30 split stratified by class, a share of the training positives labelled (20 % of
digits, 30 % of the others), the rest unlabelled. Peers cannot take gaps or categories,
so they see the same numbers as our classifier does: the encoded table (pixels for
digits). Peers that need a class prior get the true one, which makes them "oracle".
Peers that are not installed are skipped. Nothing was tuned on wine and penguins, nor on
seeds 0-4 or the test part of any set.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from _shared import finish, grid, grouped, options, spreads
from denspu import DensPU, make_pu
from denspu.benchmark import (
    Record,
    device_name,
    read_records,
    summarize,
    write_record,
)
from denspu.data import PUDataset
from denspu.encoders import TabularEncoder
from denspu.metrics import oracle_metrics

RECORDS = Path(__file__).parent / "records" / "small-tables.jsonl"
SHOWN = ("f1", "accuracy", "roc_auc")
BASE = "refiner='embedding'"
"""Seconds are told in units of this row, by rows of the same run."""


# --- data sets ----------------------------------------------------------------------


def digits() -> tuple[Any, Any, Any]:
    X, digit = load_digits(return_X_y=True)
    return X / 16, digit % 2 == 0, digit


def breast_cancer() -> tuple[Any, Any, Any]:
    X, benign = load_breast_cancer(return_X_y=True)
    return X, benign == 0, benign


def wine() -> tuple[Any, Any, Any]:
    X, kind = load_wine(return_X_y=True)
    return X, kind == 1, kind


def penguins() -> tuple[Any, Any, Any]:
    from palmerpenguins import load_penguins

    frame = load_penguins().drop(columns="year")
    species = frame.pop("species")
    return frame, (species == "Chinstrap").to_numpy(), species.to_numpy()


DATASETS: dict[str, tuple[Callable[[], tuple[Any, Any, Any]], float]] = {
    "digits": (digits, 0.2),
    "breast_cancer": (breast_cancer, 0.3),
    "wine": (wine, 0.3),
    "penguins": (penguins, 0.3),
}


def split(name: str, seed: int) -> tuple[PUDataset, Any, Any]:
    """Return PU training data, the test rows and their true labels."""
    load, share = DATASETS[name]
    X, y, strata = load()
    X_train, X_test, y_train, y_test = train_test_split(
        X, y.astype(int), test_size=0.3, stratify=strata, random_state=seed
    )
    if hasattr(X_train, "reset_index"):
        X_train = X_train.reset_index(drop=True)
    pu = make_pu(X_train, y_train, n_labeled=share, random_state=seed)
    return pu, X_test, y_test


# --- methods ------------------------------------------------------------------------

Fit = Callable[[Any, Any, float, int], Callable[[Any], Any]]
"""(X, y, true prior, seed) to a decision function, above 0 = positive."""


def ours(X: Any, y: Any, prior: float, seed: int) -> Callable[[Any], Any]:
    return DensPU(random_state=seed, device="cpu").fit(X, y).decision_function


def in_rounds(X: Any, y: Any, prior: float, seed: int) -> Callable[[Any], Any]:
    model = DensPU(refiner="embedding", random_state=seed, device="cpu")
    return model.fit(X, y).decision_function


def vote(model: Any) -> Callable[[Any], Any]:
    """Return a ranking whose sign is the model's own prediction."""

    def decide(X: Any) -> Any:
        score = np.asarray(scores(model, X), dtype=float)
        low, high = score.min(), score.max()
        rank = (score - low) / (high - low) if high > low else np.full(len(X), 0.5)
        called = np.asarray(model.predict(X)).ravel() == 1
        return np.where(called, rank + 1e-9, rank - 1 - 1e-9)

    return decide


def scores(model: Any, X: Any) -> Any:
    for name in ("predict_proba", "decision_function"):
        try:
            found = np.asarray(getattr(model, name)(X))
        except (AttributeError, NotImplementedError):
            continue
        return found[:, 1] if found.ndim == 2 else found
    return model.predict(X)


def svc() -> SVC:
    return SVC(C=10, gamma="scale")


def pulearn_methods() -> dict[str, Fit]:
    import pulearn

    def elkan_noto(base: Callable[[], Any]) -> Fit:
        return lambda X, y, prior, seed: vote(
            pulearn.ElkanotoPuClassifier(
                base(), hold_out_ratio=0.2, random_state=seed
            ).fit(X, np.where(y == 1, 1, 0))
        )

    def bagging(base: Callable[[], Any]) -> Fit:
        return lambda X, y, prior, seed: vote(
            pulearn.BaggingPuClassifier(
                base(), n_estimators=50, max_samples=int(y.sum()), random_state=seed
            ).fit(X, y)
        )

    def nnpu(X: Any, y: Any, prior: float, seed: int) -> Callable[[Any], Any]:
        model = pulearn.NNPUClassifier(
            prior, learning_rate=1.0, max_iter=5000, random_state=seed
        )
        return vote(model.fit(X, y))

    return {
        "Elkanoto(LR)": elkan_noto(lambda: LogisticRegression(max_iter=2000)),
        "Elkanoto(RF200)": elkan_noto(lambda: RandomForestClassifier(200)),
        "Bagging(DT, 50)": bagging(DecisionTreeClassifier),
        "Bagging(SVC, 50)": bagging(svc),
        "NNPU linear, oracle prior": nnpu,
        "PositiveNaiveBayes": lambda X, y, prior, seed: vote(
            pulearn.PositiveNaiveBayesClassifier().fit(X, y)
        ),
    }


def pu_toolbox_methods() -> dict[str, Fit]:
    import pu_toolbox

    def pipeline(X: Any, y: Any, prior: float, seed: int) -> Callable[[Any], Any]:
        report = pu_toolbox.PUPipeline(random_state=seed).fit_evaluate(X, y)
        return vote(report.final_model)

    def elkan_noto(base: Callable[[], Any]) -> Fit:
        return lambda X, y, prior, seed: vote(
            pu_toolbox.ElkanNotoClassifier(base(), random_state=seed).fit(X, y)
        )

    def upu(basis: str) -> Fit:
        def fit(X: Any, y: Any, prior: float, seed: int) -> Callable[[Any], Any]:
            width = float(np.median(pdist(X))) if basis == "rbf" else None
            model = pu_toolbox.UPUClassifier(
                prior, basis=basis, kernel_width=width, random_state=seed
            )
            return vote(model.fit(X, y))

        return fit

    def nnpu(X: Any, y: Any, prior: float, seed: int) -> Callable[[Any], Any]:
        model = pu_toolbox.NonNegativePUClassifier(
            class_prior=prior, random_state=seed, device="cpu"
        )
        return vote(model.fit(X, y))

    return {
        "PUPipeline()": pipeline,
        "elkan_noto": elkan_noto(lambda: None),
        "elkan_noto (RF200)": elkan_noto(lambda: RandomForestClassifier(200)),
        "upu linear, oracle prior": upu("linear"),
        "upu rbf, oracle prior": upu("rbf"),
        "nnpu, oracle prior": nnpu,
    }


def methods() -> Iterator[tuple[str, str, Fit]]:
    """Yield (package, variant, fit) of everything that is installed."""
    yield "dens_pu", "default", ours
    yield "dens_pu", BASE, in_rounds
    for package, found in (
        ("pulearn", pulearn_methods),
        ("pu_toolbox", pu_toolbox_methods),
    ):
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed: skipped")
            continue
        for variant, fit in found().items():
            yield package, variant, fit


# --- measuring ----------------------------------------------------------------------


def measure_one(
    dataset: str, package: str, variant: str, fit: Fit, seed: int
) -> Record | None:
    """Fit one method on one split; a peer that raises gives no record."""
    pu, X_test, y_test = split(dataset, seed)
    X = pu.X
    if package != "dens_pu" and dataset != "digits":
        encoder = TabularEncoder().fit(pu.X)
        X, X_test = encoder.transform(pu.X), encoder.transform(X_test)
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decide = fit(X, pu.y, pu.oracle.prior, seed)
            seconds = time.perf_counter() - start
            metrics = oracle_metrics(y_test, decide(X_test))
    except Exception as error:
        if package == "dens_pu":
            raise
        print(f"{dataset}, seed {seed}: {package} {variant} raises {error!r}")
        return None
    return Record(
        dataset=dataset,
        method=package,
        variant=variant,
        n_labeled=pu.n_labeled,
        seed=seed,
        metrics=metrics,
        estimates={},
        seconds={"total": seconds},
        device=device_name("cpu"),
    )


def table(out: Path) -> str:
    """Return one Markdown table a data set, best F1 first."""
    lines = []
    for dataset, every in grouped(read_records(out), lambda r: r.dataset).items():
        found = grouped(every, lambda r: f"{r.method}: {r.variant}")
        ordered = sorted(found.items(), key=lambda item: -summarize(item[1], "f1")[0])
        base = [r for r in every if r.variant == BASE]
        unit = np.median([r.seconds["total"] for r in base]) if base else np.nan
        commits = {r.commit for r in base}
        rows = []
        for name, records in ordered:
            seconds = np.median([r.seconds["total"] for r in records]) / unit
            same_run = {r.commit for r in records} <= commits
            told = f"{seconds:.2f}" if same_run else "–"
            cells = [*spreads(records, SHOWN), told]
            rows.append([name, len(records), *cells])
        lines.append(f"\n**{dataset}**, {every[0].n_labeled} labelled\n")
        header = "method|seeds|F1|accuracy|ROC AUC|seconds, in rounds = 1"
        lines.append(grid(header.split("|"), rows))
    return "\n".join(lines)


def run(args: argparse.Namespace) -> None:
    done = {(r.dataset, r.method, r.variant, r.seed) for r in read_records(args.out)}
    for package, variant, fit in methods():
        for dataset in args.datasets:
            for seed in args.seeds:
                if (dataset, package, variant, seed) in done:
                    continue
                record = measure_one(dataset, package, variant, fit, seed)
                if record is not None:
                    write_record(record, args.out)


if __name__ == "__main__":
    parser = options(__doc__, RECORDS, seeds=range(5))
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=[*DATASETS])
    finish(parser, run, table)
