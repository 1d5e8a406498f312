"""What a benchmark compares, as declared data: tasks, rows, seeds, and their cells.

A spec names tasks (a data set, its positive classes, how many labels), rows (a method
with its settings) and seeds. Every task × row × seed is one cell.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from dataclasses import dataclass as plain_dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import (
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)
from pydantic.dataclasses import dataclass

Metric = Literal[
    "accuracy",
    "balanced_accuracy",
    "precision",
    "recall",
    "f1",
    "roc_auc",
    "average_precision",
]
OfTheWalk = Literal["boundary_auc", "purity", "unlabeled_right"]
METRICS: tuple[str, ...] = get_args(Metric)
OF_THE_WALK: tuple[str, ...] = get_args(OfTheWalk)
"""What true labels say of a Dens-PU walk on its own rows; a spec may ask for these."""
OVER_TASKS = "over tasks"
"""What tables call a column of their own; no task may be called so."""
SUPERVISED = "supervised"
"""In place of a method: ordinary training on true labels; rows with an oracle only."""
Name = Annotated[StrictStr, Field(pattern=r"\S", description="a name, not empty")]
Names = Annotated[tuple[StrictStr, ...], Field(min_length=1)]
Seeds = Annotated[tuple[Annotated[StrictInt, Field(ge=0)], ...], Field(min_length=1)]
Classes = Annotated[tuple[StrictInt, ...], Field(min_length=1)]
A_LIST_OF_SEEDS = "a list of seeds of 0 or more, such as [0, 1]"
Number = StrictInt | StrictFloat  # an integer stays one: it is part of a cell's id
Percent = Annotated[
    Number, Field(gt=1, le=100, description="a number in percent, above 1")
]
Parameters = dict[str, Any]
DECLARED = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=DECLARED)
class Task:
    """A data set made into PU data."""

    name: Name
    """As columns and headings call it."""
    dataset: StrictStr
    n_labeled: Annotated[
        Annotated[StrictInt, Field(gt=0)] | Annotated[StrictFloat, Field(gt=0, lt=1)],
        Field(description="a count above 0, or a share between 0 and 1"),
    ]
    """How many positives are labelled, or a share of them."""
    share_of: Literal["positives", "training set"] = "positives"
    """What a share is taken of: the positives, or the whole training set."""
    positive: Annotated[
        Classes | None, Field(description="a list of class numbers, such as [0, 1]")
    ] = None
    """Classes that are positive; the set's own if not given."""
    keep_positive: Annotated[
        Number, Field(gt=0, le=1, description="a share above 0, up to 1")
    ] = 1.0
    """Share of the positives that are kept at all, in training and test part."""
    scenario: Literal["one-sample", "two-sample"] = "one-sample"
    mechanism: Literal["scar", "sar"] = "scar"


@dataclass(frozen=True, config=DECLARED)
class Row:
    """A method with its settings."""

    name: Name
    """As the table calls it."""
    method: StrictStr
    """Key in the registry, ``module:Class`` of one's own, or ``supervised``."""
    parameters: Parameters = Field(default_factory=dict)
    prior: Literal["none", "true", "estimate"] = "none"
    """What the method is told: nothing, the true class prior, or to estimate it."""
    encoder: Literal["own", "shared"] = "own"
    """``shared``: the frozen contrastive encoder that is trained once for each seed and
    data, as our default trains its own."""
    cut: Literal["own", "true prior"] = "own"
    """Above which score a row is called positive: the method's own rule, or so that the
    true share of U is. For methods that take no prior, beside others that are told."""
    device: Literal["any", "cpu"] = "any"
    """Where it runs: where the run is told to, or on a CPU in any case. For methods
    that choose their parts by the device, as our default does."""
    oracle: Literal["no", "negatives", "all"] = "no"
    """True labels that a supervised row may see: P and as many true negatives, or
    all."""
    tasks: Annotated[
        Names | None, Field(description='a list of names, such as ["one", "two"]')
    ] = None
    """Names of the tasks it runs on; all if not given."""
    seeds: Annotated[Seeds | None, Field(description=A_LIST_OF_SEEDS)] = None
    """Those of the table's seeds that it runs with; all if not given."""
    selection: Literal["last", "label-free"] = "last"
    """Whose weights are judged: the last epoch's, or those that the method itself
    chooses without a label. The best epoch on the test set is never an option."""
    tuning: StrictStr = ""
    """What was tried out on these data before the runs; nothing if empty."""
    heavy: StrictBool = False
    """Fills a GPU by itself: of several cells at once one such at most."""
    group: StrictStr = ""
    """Heading in the table above it and the rows of the same group after it."""
    printed: dict[str, dict[str, Percent]] = Field(default_factory=dict)
    """What the paper prints, in percent: task, then metric."""
    note: StrictStr = ""
    """A sentence beneath the table."""

    @property
    def keeps_to_cpu(self) -> bool:
        """Whether it runs on a CPU wherever the others do."""
        return self.device == "cpu"

    @property
    def sees_labels(self) -> bool:
        """Whether it is trained on true labels."""
        return self.oracle != "no"


@dataclass(frozen=True, config=DECLARED)
class Spec:
    """A table of the benchmark."""

    name: Name
    title: StrictStr
    tasks: Annotated[tuple[Task, ...], Field(min_length=1)]
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    seeds: Annotated[Seeds, Field(description=A_LIST_OF_SEEDS)]
    metrics: Annotated[tuple[Metric | OfTheWalk, ...], Field(min_length=1)] = (
        "accuracy",
        "f1",
        "roc_auc",
    )
    layout: Literal["metrics", "tasks"] = "metrics"
    """Columns of the table: the metrics of each task, or one metric on all tasks."""
    reference: StrictStr | None = None
    """Name of the row that others are compared with."""
    shared_encoder: Parameters = Field(default_factory=dict)
    """Settings of the contrastive encoder that rows with ``encoder="shared"`` use."""
    note: StrictStr = ""
    path: StrictStr = ""
    """The file it was read from, as the user named it; no setting of a table."""

    def rows_of(self, task: Task) -> tuple[Row, ...]:
        """Return the rows that run on a task."""
        return tuple(r for r in self.rows if r.tasks is None or task.name in r.tasks)


# --- cells ---------------------------------------------------------------------------

ID_LENGTH = 16
SHAPES_NOTHING = (
    *("name", "tasks", "seeds", "printed", "note", "selection", "tuning", "heavy"),
    "group",
)
"""Settings that change how a table reads or a run is laid out, not what is measured."""
ADDED_LATER = {"cut": "own", "device": "any"}
"""Settings that earlier records do not know, and what these were run with."""
OF_LABELS = ("n_labeled", "share_of", "mechanism")
"""Settings of a task that change labels alone, where every row keeps its place."""


@plain_dataclass(frozen=True)
class Cell:
    """One run."""

    task: Task
    row: Row
    seed: int
    shared_encoder: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the encoder it shares; empty where it has its own."""

    @cached_property
    def id(self) -> str:
        """Say which run this is: all that shapes its result, and no titles."""
        task, row = _facts(self.task), _facts(self.row)
        facts: dict[str, Any] = {"task": task, "row": row, "seed": self.seed}
        if self.shared_encoder:
            facts["shared_encoder"] = self.shared_encoder
        return _hash(facts)

    @cached_property
    def encoder_id(self) -> str:
        """Say which encoder it shares, whatever the task is called.

        One that looks at no label is the same however many there are, and whatever is
        positive where all rows are kept.
        """
        task = _facts(self.task)
        unseen = self.shared_encoder.get("positive_weight") == 0
        if unseen and self.task.scenario == "one-sample":
            whole = self.task.keep_positive == 1
            of_labels = (*OF_LABELS, "positive") if whole else OF_LABELS
            task = {k: v for k, v in task.items() if k not in of_labels}
        facts = {"task": task, "settings": self.shared_encoder}
        return f"{self.task.dataset}-{_hash(facts)}-{self.seed}"

    @cached_property
    def work(self) -> str:
        """Say what it asks of a device, whatever labels it sees and what it is called.

        A prior that is told costs nothing, one that is estimated does.
        """
        row = self.row
        facts = [row.method, row.parameters, row.encoder, row.oracle]
        return _hash([*facts, row.prior == "estimate", row.device])

    @cached_property
    def encoder_work(self) -> str:
        """Say the same of the encoder it shares."""
        settings = dict(self.shared_encoder)
        settings.pop("positive_weight", None)
        return _hash(settings)

    @property
    def alone(self) -> bool:
        """Tell whether others must wait: under ``max_seconds`` load changes results."""
        return any(name.endswith("max_seconds") for name in self.row.parameters)

    @property
    def encoder_alone(self) -> bool:
        """Tell the same of the encoder it shares."""
        return "max_seconds" in self.shared_encoder

    @property
    def title(self) -> str:
        """Name the cell for people."""
        return f"{self.row.name} · {self.task.name} · seed {self.seed}"


def cells_of(spec: Spec) -> list[Cell]:
    """Return all cells, seed by seed: a run that is cut off leaves whole rows."""
    return [
        Cell(task, row, seed, spec.shared_encoder if row.encoder == "shared" else {})
        for seed in spec.seeds
        for task in spec.tasks
        for row in spec.rows_of(task)
        if row.seeds is None or seed in row.seeds
    ]


def spec_hash(spec: Spec) -> str:
    """Return a fingerprint of everything a spec says, wherever its file is."""
    return _hash(asdict(replace(spec, path="")))


def _facts(thing: Task | Row) -> dict[str, Any]:
    return {
        name: value
        for name, value in asdict(cast(Any, thing)).items()
        if name not in SHAPES_NOTHING and ADDED_LATER.get(name, ...) != value
    }


def _hash(facts: Any) -> str:
    text = json.dumps(facts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]
