"""Every method on digits, beside the same methods of pulearn and pu-toolbox.

    pip install pulearn==0.2.0 pu-toolbox==1.11.0
    python benchmarks/methods.py --seeds 0 1 2 3 4

The split of ``small_tables.py``: 70/30 by class, 20 % of the training positives
labelled. Every method runs with its defaults. Those that need a class prior run twice,
once with the prior their own library estimates and once with the true one. Peers that
are not installed are skipped, and one that raises has no record. Nothing was tuned on
seeds 0-4. Other sets (``--dataset``) ask whether a method falls into one class: breast
cancer, ``rare`` (10,000 rows of two overlapping bells, 1 % positive, half of those
labelled), and the two image sets split as in the paper (``--device cuda``), ours alone.
There the methods that train a network start from pixels, and with ``--encoders``, the
folder that ``recipe.py --keep`` filled, all methods run on the same frozen embedding.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from scipy.spatial.distance import pdist
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from _shared import grid, grouped, options, pu_of, spreads, within
from denspu import load_dataset, make_pu
from denspu._registry import registry
from denspu.benchmark import (
    Record,
    device_name,
    read_records,
    summarize,
    write_record,
)
from denspu.data import PUDataset
from denspu.encoders import ContrastiveEncoder
from denspu.exceptions import DegenerateFitWarning
from denspu.metrics import oracle_metrics
from small_tables import split, svc, vote

RECORDS = Path(__file__).parent / "records" / "methods.jsonl"
SHOWN = ("f1", "accuracy", "roc_auc")
IMAGES = ("fashion-mnist", "cifar10")
NONE, OWN, TRUE = "no prior", "prior estimated", "true prior"

Decide = Callable[[Any], Any]
Make = Callable[[Any, Any, float | None, int], Decide]
"""(X, y, true prior or None, seed) to a decision function, above 0 = positive."""
Settings = Callable[[int], dict[str, Any]]
"""Seed to arguments of our methods."""


def data(name: str, seed: int, rows: int | None = None) -> tuple[PUDataset, Any, Any]:
    """Return PU training data, the test rows and their true labels.

    ``rows``: how many images to learn from, drawn at random; all if not given.
    """
    if name in IMAGES:
        full = load_dataset(name)
        truth = np.isin(full.y_test, full.positive).astype(int)
        kept = np.random.default_rng([seed, 7]).permutation(len(full.y_train))[:rows]
        kept.sort()
        part = replace(full, X_train=full.X_train[kept], y_train=full.y_train[kept])
        return pu_of(part, 1_000, seed), full.X_test, truth
    if name != "rare":
        return split(name, seed)
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(20_000, 10)), rng.permuted(np.arange(20_000) % 100 == 0)
    X[y, :4] += 1.5
    X_train, X_test, y_train, y_test = train_test_split(
        X, y.astype(int), test_size=0.5, stratify=y, random_state=seed
    )
    return make_pu(X_train, y_train, n_labeled=0.5, random_state=seed), X_test, y_test


@dataclass(frozen=True)
class Row:
    """A method of a package under one way to come by the prior."""

    package: str
    name: str
    key: str
    """The method of ours that it is compared with."""
    prior: str
    fit: Make

    @property
    def variant(self) -> str:
        return f"{self.name}, {self.prior}"


def both(package: str, name: str, key: str, fit: Make) -> Iterator[Row]:
    """Yield a method that needs a prior, twice."""
    yield Row(package, name, key, OWN, fit)
    yield Row(package, name, key, TRUE, fit)


# --- ours ---------------------------------------------------------------------------


def ours(settings: Settings, place: str = "", deep_only: bool = False) -> Iterator[Row]:
    """Yield our methods; ``place`` says in the record what they run on."""
    for key, entry in registry().of_kind("method").items():
        if deep_only and not entry.deep:
            continue
        name, fit = f"{key}{place}", _ours(key, settings)
        if not entry.needs_prior:
            yield Row("denspu", name, key, NONE, fit)
        else:
            yield from both("denspu", name, key, fit)


def _ours(key: str, settings: Settings) -> Make:
    def fit(X: Any, y: Any, prior: float | None, seed: int) -> Decide:
        given = {} if prior is None else {"prior": prior}
        entry = registry().get(key)
        model = entry.build(random_state=seed, **settings(seed), **given)
        return model.fit(X, y).decision_function

    return fit


class Remembering(ContrastiveEncoder):
    """An encoder that embeds an image once, whoever asks; the file lies beside it."""

    folder: Path

    def transform(self, X: Any) -> Any:
        path = self.folder / "embeddings.safetensors"
        if not path.exists():
            self._keep(path, np.empty(0, np.int64), np.empty((0, 0), np.float32))
        known = load_file(path)
        rows = np.array([digest(row) for row in np.asarray(X)])
        new = ~np.isin(rows, known["rows"])
        if new.any():
            fresh = super().transform(X[new])
            old = known["embeddings"].reshape(-1, fresh.shape[1])
            self._keep(
                path,
                np.concatenate([known["rows"], rows[new]]),
                np.concatenate([old, fresh.astype(np.float32)]),
            )
            known = load_file(path)
        order = np.argsort(known["rows"], kind="stable")
        found = order[np.searchsorted(known["rows"], rows, sorter=order)]
        return known["embeddings"][found]

    @staticmethod
    def _keep(path: Path, rows: Any, embeddings: Any) -> None:
        save_file({"rows": rows, "embeddings": embeddings}, path)


def digest(row: Any) -> int:
    """Return a number that stands for an image."""
    told = hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=8).digest()
    return int.from_bytes(told, "little", signed=True)


def kept_encoder(folder: Path, dataset: str, seed: int) -> FrozenEstimator:
    """Return the encoder that ``recipe.py`` trained for a seed."""
    encoder = Remembering.load(folder / f"{dataset}-{seed}")
    encoder.folder = folder / f"{dataset}-{seed}"
    return FrozenEstimator(encoder)


# --- peers --------------------------------------------------------------------------


def pulearn_rows() -> Iterator[Row]:
    import pulearn

    def elkan_noto(base: Any) -> Make:
        return lambda X, y, prior, seed: vote(
            pulearn.ElkanotoPuClassifier(
                base, hold_out_ratio=0.2, random_state=seed
            ).fit(X, y)
        )

    def bagging(base: Any) -> Make:
        return lambda X, y, prior, seed: vote(
            pulearn.BaggingPuClassifier(
                base, n_estimators=50, max_samples=int(y.sum()), random_state=seed
            ).fit(X, y)
        )

    def nnpu(X: Any, y: Any, prior: float | None, seed: int) -> Decide:
        if prior is None:
            prior = float(pulearn.ScarEMPriorEstimator().estimate(X, y).pi)
        model = pulearn.NNPUClassifier(
            prior, learning_rate=1.0, max_iter=5000, random_state=seed
        )
        return vote(model.fit(X, y))

    forest = RandomForestClassifier(200, random_state=0)
    linear = LogisticRegression(max_iter=2000)
    tree = DecisionTreeClassifier(random_state=0)
    for name, key, fit in (
        ("Elkanoto(LR)", "elkan_noto", elkan_noto(linear)),
        ("Elkanoto(RF200)", "elkan_noto", elkan_noto(forest)),
        ("Bagging(DT, 50)", "pu_bagging", bagging(tree)),
        ("Bagging(SVC, 50)", "pu_bagging", bagging(svc())),
    ):
        yield Row("pulearn", name, key, NONE, fit)
    yield from both("pulearn", "NNPU linear", "nnpu", nnpu)


def pu_toolbox_rows() -> Iterator[Row]:
    import pu_toolbox

    def prior_of(X: Any, y: Any, given: float | None) -> float:
        if given is not None:
            return given
        return float(pu_toolbox.ClassPriorEstimator().fit(X, y).estimate())

    def elkan_noto(base: Any) -> Make:
        return lambda X, y, prior, seed: vote(
            pu_toolbox.ElkanNotoClassifier(base, random_state=seed).fit(X, y)
        )

    def upu(basis: str) -> Make:
        def fit(X: Any, y: Any, prior: float | None, seed: int) -> Decide:
            width = float(np.median(pdist(X))) if basis == "rbf" else None
            model = pu_toolbox.UPUClassifier(
                prior_of(X, y, prior),
                basis=basis,
                kernel_width=width,
                random_state=seed,
            )
            return vote(model.fit(X, y))

        return fit

    def nnpu(X: Any, y: Any, prior: float | None, seed: int) -> Decide:
        model = pu_toolbox.NonNegativePUClassifier(
            class_prior=prior_of(X, y, prior), random_state=seed, device="cpu"
        )
        return vote(model.fit(X, y))

    def deep(name: str) -> Make:
        def fit(X: Any, y: Any, prior: float | None, seed: int) -> Decide:
            model = getattr(pu_toolbox, name)(
                prior_of(X, y, prior), random_state=seed, device="cpu"
            )
            return vote(model.fit(X, y))

        return fit

    def centroid(name: str) -> Make:
        """The flip rate h = P(unlabelled | positive) follows from the prior."""

        def fit(X: Any, y: Any, prior: float | None, seed: int) -> Decide:
            flipped = 1 - y.mean() / prior_of(X, y, prior)
            model = getattr(pu_toolbox, name)(flipped, random_state=seed)
            return vote(model.fit(X, y))

        return fit

    forest = RandomForestClassifier(200, random_state=0)
    none: tuple[tuple[str, str, Make], ...] = (
        ("elkan_noto", "elkan_noto", elkan_noto(None)),
        ("elkan_noto (RF200)", "elkan_noto", elkan_noto(forest)),
        (
            "pusb (LR)",
            "pusb",
            lambda X, y, prior, seed: vote(pu_toolbox.PUSBClassifier().fit(X, y)),
        ),
    )
    for name, key, fit in none:
        yield Row("pu_toolbox", name, key, NONE, fit)
    for name, key, fit in (
        ("upu linear", "upu", upu("linear")),
        ("upu rbf", "upu", upu("rbf")),
        ("nnpu", "nnpu", nnpu),
        ("dist_pu", "dist_pu", deep("DistPUClassifier")),
        ("self_pu", "self_pu", deep("SelfPUClassifier")),
        ("ldce", "kldce", centroid("LDCEClassifier")),
        ("kldce", "kldce", centroid("KLDCEClassifier")),
    ):
        yield from both("pu_toolbox", name, key, fit)


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield our methods, and on digits every peer that is installed."""
    common = {"device": args.device}
    if args.encoders is not None:
        yield from ours(
            lambda seed: {
                **common,
                "encoder": kept_encoder(args.encoders, args.dataset, seed),
            },
            " on the contrastive embedding",
        )
        return
    yield from ours(lambda seed: common, deep_only=args.dataset in IMAGES)
    if args.dataset != "digits":
        return
    for package, found in (("pulearn", pulearn_rows), ("pu_toolbox", pu_toolbox_rows)):
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed: skipped")
        else:
            yield from found()


# --- measuring ----------------------------------------------------------------------


def title(args: argparse.Namespace) -> str:
    """Return the data set as records name it."""
    return args.dataset if args.rows is None else f"{args.dataset}, {args.rows} rows"


def measure_one(row: Row, args: argparse.Namespace, seed: int) -> Record | None:
    """Fit one method on one split; a peer that raises gives no record."""
    pu, X_test, y_test = data(args.dataset, seed, args.rows)
    prior = pu.oracle.prior if row.prior == TRUE else None
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            decide = row.fit(pu.X, pu.y, prior, seed)
            seconds = time.perf_counter() - start
            scores = np.asarray(decide(X_test))
            metrics = oracle_metrics(y_test, scores)
    except Exception as error:
        if row.package == "denspu":
            raise
        print(f"seed {seed}: {row.package} {row.variant} raises {error!r}")
        return None
    return Record(
        dataset=title(args),
        method=row.package,
        variant=row.variant,
        n_labeled=pu.n_labeled,
        seed=seed,
        metrics=metrics,
        estimates={},
        seconds={"total": seconds},
        device=device_name(args.device),
        extra={
            "compared_with": row.key,
            "true_prior": pu.oracle.prior,
            "called": float(np.mean(scores > 0)),
            "true_share": float(np.mean(y_test)),
            "warned": any(issubclass(w.category, DegenerateFitWarning) for w in told),
        },
    )


def run(args: argparse.Namespace) -> None:
    done = {(r.dataset, r.method, r.variant, r.seed) for r in read_records(args.out)}
    jobs = [
        (row, seed)
        for row in rows(args)
        if (not args.only or row.key in args.only)
        and (not args.prior or row.prior in (NONE, args.prior))
        for seed in args.seeds
        if (title(args), row.package, row.variant, seed) not in done
    ]
    for row, seed in within(args.budget, jobs):
        record = measure_one(row, args, seed)
        if record is not None:
            write_record(record, args.out)
            print(
                f"{row.package} {row.variant}, seed {seed}: "
                f"F1 {record.metrics['f1']:.3f}, "
                f"accuracy {record.metrics['accuracy']:.3f}, "
                f"{record.seconds['total']:.1f} s",
                flush=True,
            )


def table(out: Path, dataset: str = "digits") -> str:
    """Return the Markdown table: a method of ours, then the same of the peers."""
    groups = grouped(
        (r for r in read_records(out) if r.dataset == dataset),
        lambda r: (r.extra["compared_with"], r.method, r.variant),
    )
    unit = np.median(
        [
            r.seconds["total"]
            for k, found in groups.items()
            if k[:2] == ("dens_pu", "denspu")
            for r in found
        ]
        or [1.0]
    )
    lines = []
    order = list(registry().of_kind("method"))
    packages = ("denspu", "pulearn", "pu_toolbox")
    for (_, package, variant), found in sorted(
        groups.items(), key=lambda g: (order.index(g[0][0]), packages.index(g[0][1]))
    ):
        seconds = np.median([r.seconds["total"] for r in found]) / unit
        title = f"**{variant}**" if package == "denspu" else variant
        shown = [*spreads(found, SHOWN), f"{seconds:.2f}"]
        lines.append([title, package, len(found), *shown])
    header = "method|package|seeds|F1|accuracy|ROC AUC|seconds, dens_pu = 1"
    return grid(header.split("|"), lines)


def shares(out: Path, dataset: str) -> str:
    """Return the Markdown table of how many rows each method calls positive."""
    ours = (
        r for r in read_records(out) if (r.dataset, r.method) == (dataset, "denspu")
    )
    groups, lines = grouped(ours, lambda r: r.variant), []
    for variant, found in groups.items():
        called = [r.extra["called"] for r in found]
        true = np.mean([r.extra["true_share"] for r in found])
        warned = sum(r.extra["warned"] for r in found)
        cells = [mean_of(found, metric) for metric in SHOWN]
        share = f"{between(called)} ({true:.3f})"
        lines.append([variant, len(found), share, warned, *cells])
    header = "method|seeds|called positive (true)|warned|F1|accuracy|ROC AUC"
    return grid(header.split("|"), lines)


def between(values: list[float]) -> str:
    """Return the least and the largest, once if there is one."""
    low, high = min(values), max(values)
    return f"{low:.3f}" if len(values) == 1 else f"{low:.3f} to {high:.3f}"


def mean_of(found: list[Record], metric: str) -> str:
    """Return the mean, with the standard deviation where there are several seeds."""
    mean, spread, n = summarize(found, metric)
    return f"{mean:.3f} ± {spread:.3f}" if n > 1 else f"{mean:.3f}"


def main() -> None:
    parser = options(__doc__, RECORDS, seeds=range(5), device="cpu", budget=True)
    parser.add_argument(
        "--dataset",
        choices=["digits", "breast_cancer", "rare", *IMAGES],
        default="digits",
    )
    parser.add_argument("--only", nargs="+", help="keys of our methods")
    parser.add_argument("--prior", choices=[OWN, TRUE], help="one of the two only")
    parser.add_argument("--rows", type=int, help="learn from so many images only")
    parser.add_argument("--encoders", type=Path, help="folder of kept encoders")
    args = parser.parse_args()
    if not args.table:
        run(args)
    print((table if args.dataset == "digits" else shares)(args.out, title(args)))


if __name__ == "__main__":
    main()
