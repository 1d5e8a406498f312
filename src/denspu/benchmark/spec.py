"""What a benchmark compares, as data.

A spec names tasks (a data set, its positive classes, how many labels), rows (a method
with its settings) and seeds. Every task × row × seed is one cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Prior = Literal["none", "true", "estimate"]
Encoder = Literal["own", "shared"]
Oracle = Literal["no", "negatives", "all"]
Cut = Literal["own", "true prior"]
On = Literal["any", "cpu"]

METRICS = (
    "accuracy",
    "balanced_accuracy",
    "precision",
    "recall",
    "f1",
    "roc_auc",
    "average_precision",
)
OVER_TASKS = "over tasks"
"""What tables call a column of their own; no task may be called so."""
OF_THE_WALK = ("boundary_auc", "purity", "unlabeled_right")
"""What true labels say of a Dens-PU walk on its own rows; a spec may ask for these."""
SUPERVISED = "supervised"
"""In place of a method: ordinary training on true labels; rows with an oracle only."""


@dataclass(frozen=True)
class Task:
    """A data set made into PU data."""

    name: str
    """As columns and headings call it."""
    dataset: str
    n_labeled: int | float
    """How many positives are labelled, or a share of them."""
    share_of: str = "positives"
    """What a share is taken of: the positives, or the whole training set."""
    positive: tuple[int, ...] | None = None
    """Classes that are positive; the set's own if not given."""
    keep_positive: float = 1.0
    """Share of the positives that are kept at all, in training and test part."""
    scenario: str = "one-sample"
    mechanism: str = "scar"


@dataclass(frozen=True)
class Row:
    """A method with its settings."""

    name: str
    """As the table calls it."""
    method: str
    """Key in the registry, or ``supervised``."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    prior: Prior = "none"
    """What the method is told: nothing, the true class prior, or to estimate it."""
    encoder: Encoder = "own"
    """``shared``: the frozen contrastive encoder that is trained once for each seed and
    data, as our default trains its own."""
    cut: Cut = "own"
    """Above which score a row is called positive: the method's own rule, or so that the
    true share of U is. For methods that take no prior, beside others that are told."""
    device: On = "any"
    """Where it runs: where the run is told to, or on a CPU in any case. For methods
    that choose their parts by the device, as our default does."""
    oracle: Oracle = "no"
    """True labels that a supervised row may see: P and as many true negatives, or
    all."""
    tasks: tuple[str, ...] | None = None
    """Names of the tasks it runs on; all if not given."""
    seeds: tuple[int, ...] | None = None
    """Those of the table's seeds that it runs with; all if not given."""
    selection: str = "last"
    """Whose weights are judged: the last epoch's, or those that the method itself
    chooses without a label. The best epoch on the test set is never an option."""
    tuning: str = ""
    """What was tried out on these data before the runs; nothing if empty."""
    heavy: bool = False
    """Fills a GPU by itself: of several cells at once one such at most."""
    group: str = ""
    """Heading in the table above it and the rows of the same group after it."""
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What the paper prints, in percent: task, then metric."""
    note: str = ""
    """A sentence beneath the table."""

    @property
    def keeps_to_cpu(self) -> bool:
        """Whether it runs on a CPU wherever the others do."""
        return self.device == "cpu"


@dataclass(frozen=True)
class Spec:
    """A table of the benchmark."""

    name: str
    title: str
    tasks: tuple[Task, ...]
    rows: tuple[Row, ...]
    seeds: tuple[int, ...]
    metrics: tuple[str, ...] = ("accuracy", "f1", "roc_auc")
    layout: str = "metrics"
    """Columns of the table: the metrics of each task, or one metric on all tasks."""
    reference: str | None = None
    """Name of the row that others are compared with."""
    shared_encoder: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the contrastive encoder that rows with ``encoder="shared"`` use."""
    note: str = ""
    path: str = ""
    """The file it was read from, as the user named it; no setting of a table."""

    def rows_of(self, task: Task) -> tuple[Row, ...]:
        """Return the rows that run on a task."""
        return tuple(r for r in self.rows if r.tasks is None or task.name in r.tasks)
