"""What a run found: facts for ``run.json`` and the report, and the rows behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from denspu._files import plain
from denspu._progress import Stage
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.data import Items
from denspu.metrics import PUReport

Source: TypeAlias = Literal["given", "model", "scores"]
"""Who says how many are positive."""


@dataclass(frozen=True)
class Count:
    """How many unlabelled items are positive."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Prior:
    """Share of positives inside U; without figures where it is not known."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    """How often the interval should hold the share."""
    source: Source | None = None
    """Who says so; ``from`` in ``run.json``."""
    estimates: Mapping[str, float] = field(default_factory=dict)
    """By estimator."""

    @property
    def given(self) -> bool:
        """Whether the user gave it."""
        return self.source == "given"


@dataclass(frozen=True)
class Threshold:
    """Where the cut lies, and why there."""

    value: float
    rule: str
    """``own``, ``prior``, ``recall``, ``precision`` or ``top``."""
    target: float | None
    sentence: str


@dataclass(frozen=True)
class IfShare:
    """The figures if the share inside U were ``prior``."""

    prior: float
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    accuracy: float | None = None


@dataclass(frozen=True)
class Check:
    """One doubt, or its absence."""

    name: Literal["labels at random", "trivial model", "shortcut"]
    ok: bool | None
    """None where nothing could be seen."""
    sentence: str
    detail: str = ""
    """Numbers behind the sentence, in words."""


@dataclass(frozen=True)
class Promise:
    """A list whose errors are controlled."""

    name: str
    n: int
    level: float
    sentence: str
    """Which list, which promise, and what it assumes."""


@dataclass(frozen=True)
class Curve:
    """A training curve."""

    name: str
    label: str
    x: list[float]
    """Epochs."""
    y: list[float | None]


@dataclass(frozen=True)
class SkippedItem:
    """What could not be read."""

    item: str
    reason: str


@dataclass(frozen=True)
class Copy:
    """An unlabelled item that is a copy of a labelled positive."""

    positive: str
    unlabeled: str
    kind: Literal["exact", "near"]


@dataclass(frozen=True)
class RunFacts:
    """What ``run.json`` holds."""

    kind: str
    """image, table, text or embedding."""
    method: str
    """Registry key."""
    created: str
    """ISO time, UTC."""
    command: str
    settings: dict[str, Any]
    versions: dict[str, str]
    seconds: dict[str, float]
    """By step, and ``total``."""
    sources: dict[str, str]
    """``positive`` and ``unlabeled`` (or ``table``), as the user named them."""
    scenario: str
    n_positive: int
    """Labelled positives that were read."""
    n_held_out: int
    """Of them, kept from the fit for evaluation."""
    n_unlabeled: int
    n_called: int
    """Unlabelled items above the threshold."""
    reading: list[str]
    """Sentences about what was read and how."""
    prior: Prior
    count: Count | None
    threshold: Threshold
    evaluation: PUReport | None
    """None without held-out positives."""
    sensitivity: list[IfShare]
    checks: list[Check]
    lists: list[Promise]
    stages: list[Stage]
    curves: list[Curve]
    warnings: list[str]
    skipped: list[SkippedItem] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    shortcuts: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        found = asdict(replace(self, evaluation=None))
        found["prior"]["from"] = found["prior"].pop("source")
        found["evaluation"] = self.evaluation and self.evaluation.to_dict()
        whole: dict[str, Any] = plain(found)
        return whole


@dataclass(frozen=True, eq=False)
class RunRows:
    """The items of a run and what was found out about each; not in ``run.json``."""

    positive: Items
    unlabeled: Items
    score_positive: FloatArray
    held_out: BoolArray
    """Mask over ``positive``."""
    score_unlabeled: FloatArray
    probability: FloatArray
    """P(y = 1) of each unlabelled item."""
    rank: IntArray
    """1 for the highest score in U."""
    decision: IntArray
    """1 or 0."""
    stage: NDArray[Any]
    """Words: what settled the item; one of ``STAGES`` in ``runs/findings.py``."""
    map_positive: FloatArray | None
    """Places on the map, n×2; None where there is no embedding."""
    map_unlabeled: FloatArray | None
    map_note: str
    """How much of the variance the map shows, in words."""
    chosen: IntArray
    """Positions in U of the reliable negatives Ñ; empty if the method has none."""
    odd_positive: IntArray
    """Positions in P of labelled positives that look mislabelled, oddest first."""
