"""The lines that a run prints: one a step, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from denspu._progress import Stage
from denspu._typing import BoolArray
from denspu._words import NOUNS, does, many
from denspu.runs.facts import RunFacts
from denspu.runs.folder import REPORT, SKIPPED
from denspu.runs.options import RunOptions
from denspu.runs.reading import RunData

PARTS = {
    "CAEEncoder": "autoencoder",
    "ContrastiveEncoder": "contrastive",
    "DensityRatio": "density ratio",
    "EmbeddingRefiner": "labels on embeddings",
    "IdentityEncoder": "numbers as they are",
    "IsolationForest": "isolation forest",
    "NetworkRefiner": "network",
    "RankingRefiner": "ranking",
    "TabularEncoder": "columns, scaled",
    "TextEncoder": "words (TF-IDF)",
}
"""Parts as people may call them."""


def percent(share: float) -> str:
    """Return a share with two digits that count, without the sign."""
    value = 100 * share
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def between(value: float, low: float, high: float) -> str:
    """Return a share with its interval: ``0.93 (0.89 to 0.96)``."""
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def reading(data: RunData, options: RunOptions) -> str:
    """Return what was read."""
    noun = NOUNS[data.P.kind]
    if options.table is not None:
        name = Path(options.table).name
        rows = many(len(data.P) + len(data.U), noun)
        parts = [f"{name} {rows}", many(len(data.P), "labelled positive")]
    else:
        parts = [
            f"{_short(source)} {many(n, noun)}"
            for source, n in (
                (options.positive, len(data.P)),
                (options.unlabeled, len(data.U)),
            )
        ]
    if n := len(data.skipped):
        parts.append(f"{n:,} unreadable (listed in {Path(options.out) / SKIPPED})")
    if n := int(data.is_copy.sum()):
        verb = does(n, "is a copy", "are copies")
        parts.append(f"{many(n, f'unlabelled {noun}')} {verb} of labelled positives")
    if n := int(data.known_negative.sum()):
        parts.append(many(n, "known negative"))
    return " · ".join(parts)


def _short(source: Any) -> str:
    return Path(source).name or str(source)


def fitting(method: str, data: RunData, held: BoolArray) -> str:
    """Return what is about to be fitted."""
    n = len(data.P) - int(held.sum())
    rows = len(data.U) - int(data.is_copy.sum())
    parts = [f"{method} on {many(n, 'labelled positive')} and {rows:,} unlabelled"]
    if held.any():
        parts.append(f"{many(int(held.sum()), 'positive')} held out to judge it")
    return " · ".join(parts)


def resuming(state: str, path: Path) -> str:
    """Return whether an earlier try is gone on with."""
    if state == "resumed":
        return f"going on from {path}"
    return f"{path} belongs to other files or settings: starting anew"


def stage(one: Stage, n: int) -> Iterator[tuple[str, str]]:
    """Yield the line of a step of the fit on ``n`` items, if people ask about it."""
    told, took = one.facts, f"{one.seconds:.1f} s"
    if one.name == "encode":
        dimension = f"{many(told['dimension'], 'number')} an item"
        part = PARTS.get(told["encoder"], told["encoder"])
        yield "encoding", " · ".join([part, dimension, took])
    elif one.name == "boundary":
        part = PARTS.get(told["detector"], told["detector"])
        yield "boundary", f"{part} on {n:,} embeddings · {took}"
    elif one.name == "refine":
        parts = [PARTS.get(told["refiner"], told["refiner"])]
        if told.get("rounds"):
            parts.append(many(told["rounds"], "round"))
        yield "refining", " · ".join([*parts, took])


def share(facts: RunFacts) -> Iterator[tuple[str, str]]:
    """Yield how many of the unlabelled are positive, if that is known."""
    if facts.count:
        prior = facts.prior
        value = percent(prior["value"])
        around = ", as you said"
        if prior["low"] < prior["high"]:
            around = f" ({percent(prior['low'])} to {percent(prior['high'])})"
        yield "share", f"about {value} % of the unlabelled are positive{around}"


def result(facts: RunFacts, options: RunOptions) -> Iterator[tuple[str, str]]:
    """Yield the outcome, the warnings, and what to open."""
    parts = [f"{facts.n_called:,} of {facts.n_unlabeled:,} called positive"]
    if facts.evaluation is not None:
        figures = facts.evaluation["figures"]
        recall, precision = figures["recall"], figures["precision"]
        words = between(recall["value"], recall["low"], recall["high"])
        parts.append(f"estimated recall {words}")
        if not precision["note"]:
            words = between(precision["value"], precision["low"], precision["high"])
            parts.append(f"precision {words}")
    yield "result", " · ".join(parts)
    failed = [c["sentence"] for c in facts.checks if c["ok"] is False]
    for sentence in dict.fromkeys([*facts.warnings, *failed]):
        yield "warning", sentence
    yield "open", str(Path(options.out) / REPORT)
