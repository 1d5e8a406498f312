"""What a run found: facts for ``run.json`` and the report, and the rows behind them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from numpy.typing import NDArray

from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.data import Items


@dataclass(frozen=True)
class RunFacts:
    """Plain data about one run; ``to_json`` is what ``run.json`` holds."""

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
    prior: dict[str, Any]
    """``value``, ``low``, ``high``, ``level`` (share of positives inside U),
    ``estimates`` (estimator -> value), ``sentence``."""
    count: dict[str, float]
    """``value``, ``low``, ``high``: how many unlabelled items are positive."""
    threshold: dict[str, Any]
    """``value``, ``rule``, ``target``, ``sentence``."""
    evaluation: dict[str, Any] | None
    """``PUReport.to_dict()``; None without held-out positives."""
    sensitivity: list[dict[str, float]]
    """One object a prior: ``prior``, ``precision``, ``recall``, ``f1``, accuracy."""
    checks: list[dict[str, Any]]
    """``name``, ``ok`` (None: not known), ``sentence``: SCAR, trivial model,
    shortcuts."""
    lists: list[dict[str, Any]]
    """Error control: ``name``, ``n``, ``level``, ``sentence`` (which list, promise)."""
    stages: list[dict[str, Any]]
    """``name``, ``seconds``, ``facts``."""
    curves: list[dict[str, Any]]
    """Training curves: ``name``, ``x`` (epochs), ``y``, ``label``."""
    warnings: list[str]
    skipped: list[dict[str, str]] = field(default_factory=list)
    """``item``, ``reason``."""
    copies: list[dict[str, str]] = field(default_factory=list)
    """``positive``, ``unlabeled``, ``kind`` (exact or near)."""
    shortcuts: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


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
    """Words: what settled the item; one of ``STAGES`` in ``runs/rows.py``."""
    map_positive: FloatArray | None
    """Places on the map, n×2; None where there is no embedding."""
    map_unlabeled: FloatArray | None
    map_note: str
    """How much of the variance the map shows, in words."""
    chosen: IntArray
    """Positions in U of the reliable negatives Ñ; empty if the method has none."""
    odd_positive: IntArray
    """Positions in P of labelled positives that look mislabelled, oddest first."""
