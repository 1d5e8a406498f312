"""Do one job of a benchmark: make the data, build the method, fit, measure.

A job is a cell, or the encoder that several cells share.
"""

from __future__ import annotations

import json
import time
import traceback
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.frozen import FrozenEstimator
from torch import Tensor
from torch.nn.functional import softplus

from denspu._files import new_folder
from denspu._machine import resolve_device
from denspu._random import Randomness
from denspu._registry import prepare_part
from denspu._typing import BoolArray, IntArray
from denspu._validation import PUInput, take_rows
from denspu.benchmark.record import Record, commit, device_name, measure
from denspu.benchmark.spec import SUPERVISED, Cell, Row, entry_of, loader_of
from denspu.benchmark.spec import Task as DataTask
from denspu.data import Benchmark, PUDataset, load_dataset, make_pu
from denspu.encoders import ContrastiveEncoder
from denspu.exceptions import DataIntegrityError, DensPUWarning
from denspu.methods._deep import DeepPriorPU, Task
from denspu.persistence import load, save

ABOUT_FILE = "about.json"
MOST_WARNINGS, LONGEST_WARNING = 10, 400


@dataclass(frozen=True)
class Place:
    """Where cells run, and what is written into their records."""

    device: str = "auto"
    encoders: Path = Path("encoders")
    """Folder of the encoders that rows share."""
    spec: str = ""
    spec_hash: str = ""
    jobs: int = 1
    """Cells that ran at once; their seconds are longer for it."""

    def of(self, row: Row) -> Place:
        """Return where a row's cells run: some keep to a CPU."""
        return replace(self, device="cpu") if row.keeps_to_cpu else self


@dataclass(frozen=True)
class Job:
    """A cell, or the encoder that cells wait for."""

    cell: Cell
    place: Place
    encoder: bool = False

    @property
    def alone(self) -> bool:
        """Whether no other may run beside it: under ``max_seconds`` load tells."""
        bound = any(name.endswith("max_seconds") for name in self.cell.row.parameters)
        return bound or self.cell.row.heavy

    @property
    def shared_folder(self) -> Path | None:
        """Where the encoder lies that the cell shares, if it shares one."""
        if self.cell.row.encoder == "own":
            return None
        return self.place.encoders / self.cell.encoder_id


def do(job: Job) -> Record:
    """Do a job and return its record, also where it raises.

    Warnings go into the record, not to the screen. That of an encoder has no figures.
    """
    start = time.perf_counter()
    record = None
    extra: dict[str, Any] = {}
    shared: dict[str, Any] = {"warnings": []}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DensPUWarning)
        try:
            if job.encoder:
                _train_encoder(job)
            else:
                shared |= _about(job.shared_folder)
                record = _measured(job, shared)
        except Exception as error:  # recorded, so that the other cells go on
            last = traceback.extract_tb(error.__traceback__)[-1]
            extra["error"] = f"{type(error).__name__}: {error}"
            extra["raised_in"] = f"{Path(last.filename).name}:{last.lineno}"
    said = [f"shared encoder: {text}" for text in shared["warnings"]]
    said += _texts_of(told)
    if said and job.cell.row.method != SUPERVISED:  # it has no U to be warned about
        extra["warnings"] = said
    if record is None:
        return without_figures(job, time.perf_counter() - start, **extra)
    return replace(record, extra={**record.extra, **facts_of(job), **extra})


def _texts_of(told: list[warnings.WarningMessage]) -> list[str]:
    """Return each warning once, shortened."""
    texts = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in told)
    return [text[:LONGEST_WARNING] for text in texts][:MOST_WARNINGS]


def facts_of(job: Job) -> dict[str, Any]:
    """Return what tells a cell's record apart from all others."""
    cell, place = job.cell, job.place
    return {
        "spec": place.spec,
        "spec_hash": place.spec_hash,
        "cell": cell.id,
        "task": cell.task.name,
        "prior_given": cell.row.prior,
        "cut": cell.row.cut,
        "encoder": cell.row.encoder,
        "oracle_labels": cell.row.oracle,
        "selection": cell.row.selection,
        "parameters": dict(cell.row.parameters),
        "jobs": place.jobs,
    }


def without_figures(job: Job, seconds: float = 0.0, **extra: Any) -> Record:
    """Return the record of a job that nobody could do to its end."""
    cell = job.cell
    count = cell.task.n_labeled
    return Record(
        dataset=cell.task.dataset,
        method=cell.row.method,
        variant=cell.row.name,
        n_labeled=count if isinstance(count, int) else 0,
        seed=cell.seed,
        metrics={},
        estimates={},
        seconds={"total": seconds},
        device=job.place.device,
        extra={**facts_of(job), **extra},
    )


def _measured(job: Job, shared: dict[str, Any]) -> Record:
    """Return the record of a cell; ``shared`` is told of the encoder it shares."""
    cell, row = job.cell, job.cell.row
    pu, benchmark = make_data(cell.task, cell.seed)
    labels, known = np.asarray(pu.y), None
    if row.method == SUPERVISED:
        labels, known = _true_labels(pu, row.oracle == "all", cell.seed)
    entry = entry_of(row.method)
    takes = entry.takes()
    settings: dict[str, Any] = {"random_state": cell.seed, "device": job.place.device}
    if row.method != SUPERVISED:
        settings["scenario"] = cell.task.scenario
    if row.prior == "true" or row.method == SUPERVISED:
        asks = row.method == SUPERVISED or "scenario" in takes
        settings["prior"] = _true_prior(cell.task, pu, asks)
    encoder = None
    if job.shared_folder is not None:
        encoder = load(job.shared_folder / "encoder").set_params(device="auto")
        settings["encoder"] = FrozenEstimator(encoder)
    settings = {name: value for name, value in settings.items() if name in takes}
    model = entry.build(**settings, **row.parameters)
    _wake(job.place.device)
    true_cut = row.cut == "true prior"
    record = measure(
        model,
        pu,
        benchmark,
        method=row.method,
        variant=row.name,
        seed=cell.seed,
        labels=labels,
        known_negative=known,
        share_called=pu.oracle.prior_in_unlabeled if true_cut else None,
    )
    for name, value in record.metrics.items():
        if not np.isfinite(value):
            raise ValueError(f"{name} is {value}: nothing can be said of this run")
    if encoder is None:
        return record
    loss = encoder.history_.last["loss"]
    return replace(
        record,
        seconds={**record.seconds, "shared_encoder": shared["fit"]},
        extra={**record.extra, "shared_encoder_loss": loss},
    )


def _wake(device: str) -> None:
    """Start a GPU before the clock: its libraries are loaded when first used.

    Else a process's first cell would pay for it, under ``max_seconds`` with epochs.
    """
    found = resolve_device(device)
    if found.type == "cuda":
        image = torch.zeros(8, 3, 32, 32, device=found)
        torch.nn.functional.conv2d(image, image[:, :, :3, :3])
        torch.cuda.synchronize(found)


def _true_prior(task: DataTask, pu: PUDataset, asks: bool) -> float:
    """Return the share of positives in the population a method speaks of.

    A method that does not ask for the scenario (``asks``) takes P and U together.
    """
    if task.scenario == "one-sample":
        return float(pu.oracle.prior)
    if asks:
        return float(pu.oracle.prior_in_unlabeled)
    hidden = pu.oracle.prior_in_unlabeled * (len(pu.y) - pu.n_labeled)
    return float((pu.n_labeled + hidden) / len(pu.y))


# --- data ---------------------------------------------------------------------------


@lru_cache(maxsize=3)
def loaded(name: str) -> Benchmark:
    """Return a data set, read once; one of one's own is what its function returns."""
    return loader_of(name)() if ":" in name else load_dataset(name)


def make_data(task: DataTask, seed: int) -> tuple[PUDataset, Benchmark]:
    """Return PU data and the set with its test part."""
    benchmark = loaded(task.dataset)
    if task.positive is not None:
        benchmark = replace(benchmark, positive=task.positive)
    if task.keep_positive < 1:
        benchmark = _thinned(benchmark, task.keep_positive, seed)
    count: int | float = task.n_labeled
    if isinstance(count, float) and task.share_of == "training set":
        count = round(count * len(benchmark.X_train))
    pu = make_pu(
        benchmark.X_train,
        benchmark.y_train,
        positive=benchmark.positive,
        n_labeled=count,
        scenario=task.scenario,
        mechanism=task.mechanism,
        random_state=seed,
    )
    return pu, benchmark


def _thinned(benchmark: Benchmark, share: float, seed: int) -> Benchmark:
    """Return a set with some of its positives left out, in both parts alike."""
    rng = np.random.default_rng([seed, 5])

    def kept(y: Any) -> Any:
        positive = np.flatnonzero(np.isin(y, benchmark.positive))
        out = rng.permutation(positive)[round(share * len(positive)) :]
        return np.delete(np.arange(len(y)), out)

    train, test = kept(benchmark.y_train), kept(benchmark.y_test)
    return replace(
        benchmark,
        X_train=take_rows(benchmark.X_train, train),
        y_train=benchmark.y_train[train],
        X_test=take_rows(benchmark.X_test, test),
        y_test=benchmark.y_test[test],
    )


# --- encoders that rows share -------------------------------------------------------


def _about(folder: Path | None) -> dict[str, Any]:
    """Return what an encoder's training told; nothing where none is shared."""
    if folder is None:
        return {}
    try:
        found = json.loads((folder / ABOUT_FILE).read_text(encoding="utf-8"))
        return {"fit": float(found["fit"]), "warnings": list(found["warnings"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataIntegrityError(
            f"{folder} is not the encoder of a benchmark: {error}. Remove the folder; "
            "the next run trains it anew."
        ) from None


def _train_encoder(job: Job) -> None:
    """Train and keep the encoder that a cell shares; the folder appears whole.

    It is the one that ``DensPU`` trains with the same seed and settings.
    """
    cell, device, folder = job.cell, job.place.device, job.shared_folder
    assert folder is not None
    pu, _ = make_data(cell.task, cell.seed)
    _wake(device)
    encoder = prepare_part(
        ContrastiveEncoder(**cell.shared_encoder),
        Randomness(cell.seed),
        "encoder",
        device=device,
    )
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DensPUWarning)
        encoder.fit(pu.X, pu.y)
    about = {
        "fit": time.perf_counter() - start,
        "device": device_name(str(resolve_device(device))),
        "commit": commit(),
        "warnings": _texts_of(told),
    }
    try:
        with new_folder(folder) as half:
            save(encoder, half / "encoder")
            (half / ABOUT_FILE).write_text(json.dumps(about), encoding="utf-8")
    except OSError:
        if not folder.exists():  # else another run was faster
            raise


# --- what true labels would give ----------------------------------------------------


class Supervised(DeepPriorPU):
    """Logistic loss on P and known negatives, weighted to the given class prior."""

    def _settle_prior(self, task: Task, data: PUInput) -> None:
        """Estimate none, and take the one given as it is."""

    def _check_prior(self, data: PUInput) -> None:
        """Refuse none: P may be as large as the prior says all positives are."""

    def _learn(self, task: Task) -> None:
        prior = float(self.prior)

        def risk(positive: Tensor, negative: Tensor) -> Tensor:
            of_positive = prior * softplus(-positive).mean()
            return of_positive + (1 - prior) * softplus(negative).mean()

        self.module_ = task.network()
        self.history_ = task.train(
            self.module_,
            task.loss(risk),
            "supervised",
            batches=task.batches(pool=task.known_negative),
        )


def _true_labels(
    pu: PUDataset, everything: bool, seed: int
) -> tuple[IntArray, BoolArray]:
    """Return labels with true negatives marked, and which rows those are.

    ``everything``: all true labels but that of one negative, since the gate insists on
    a row to judge; else P and as many true negatives, drawn at random.
    """
    truth = pu.oracle.labels
    negatives = np.flatnonzero(truth == 0)
    if everything:
        known = truth == 0
        known[negatives[-1]] = False
        return truth.astype(np.int64), known
    count = min(pu.n_labeled, len(negatives))
    chosen = np.random.default_rng([seed, 6]).choice(negatives, count, replace=False)
    known = np.zeros(len(truth), dtype=bool)
    known[chosen] = True
    return np.asarray(pu.y, dtype=np.int64), known
