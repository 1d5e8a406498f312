"""What a cell of the benchmark took on a GPU: the table of docs/gpu-plan.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from denspu.benchmark import Record, read_records
from denspu.benchmark.record import failed

RECORDS = Path(__file__).parent / "records"
SECOND_NETWORKS = ("PUbN", "self-PU")
SHORT = ("RP", "aPU", "VPU", "uPU")
ORACLES = ("P and 1,000 true negatives", "all true labels")


def span(seconds: Sequence[float]) -> str:
    """Return least, median and most."""
    if not seconds:
        return "–"
    low, high = f"{min(seconds):.0f}", f"{max(seconds):.0f}"
    return f"{low} to {high} ({median(seconds):.0f})" if low != high else low


def table(records: Path) -> str:
    """Return the Markdown table."""
    recipe = read_records(records / "recipe.jsonl")
    paper = read_records(records / "paper-preset.jsonl")
    whole = [r for r in paper if "200 epochs" in r.variant]
    specs = records / "specs"

    def cells(name: str, **facts: str) -> list[Record]:
        found = [r for r in read_records(specs / f"{name}.jsonl") if not failed(r)]
        found = [r for r in found if not r.device.startswith("cpu")]
        found = [r for r in found if "taken_from" not in r.extra]
        return [r for r in found if all(r.extra[k] == v for k, v in facts.items())]

    def deep(name: str) -> list[Record]:
        """Return the rows from pixels that train one network to its end."""
        return [
            r
            for r in cells(name, encoder="own")
            if r.method != "dens_pu"
            and not r.variant.startswith((*SECOND_NETWORKS, *SHORT))
            and r.variant not in ORACLES
        ]

    def twice(name: str) -> list[Record]:
        found = cells(name, encoder="own")
        return [r for r in found if r.variant in SECOND_NETWORKS]

    def seconds(found: Sequence[Record], key: str = "total") -> str:
        return span([r.seconds[key] for r in found if key in r.seconds])

    def encoders(name: str) -> str:
        found = cells(name, encoder="shared")
        return span(sorted({r.seconds["shared_encoder"] for r in found}))

    both = {"cifar10": "table2-cifar10", "fashion-mnist": "table2-fmnist"}
    variants = [r for n in ("table4", "table5") for r in cells(n)]
    equal = [r for r in variants if "weighted" not in r.variant]
    lines = [
        "| cell | CIFAR-10 | Fashion-MNIST | from |",
        "|---|---|---|---|",
        _line(
            "contrastive encoder, 14 million views, in a run of our default",
            [seconds(_on(recipe, d), "encode") for d in both],
            "recipe.jsonl",
        ),
        _line(
            "the same, for rows that share it",
            [encoders(n) for n in both.values()],
            "specs",
        ),
        _line(
            "our default on a trained encoder",
            [seconds(_on(recipe, d), "refine") for d in both],
            "recipe.jsonl",
        ),
        _line(
            "a baseline from pixels, one network of 120 epochs, several at once",
            [seconds(deep(n)) for n in both.values()],
            "specs",
        ),
        _line(
            "PUbN, self-PU: two networks, several at once",
            [seconds(twice(n)) for n in both.values()],
            "specs",
        ),
        _line(
            "a baseline on the frozen embedding, several at once",
            [seconds(cells(n, encoder="shared")) for n in both.values()],
            "specs",
        ),
        _line(
            "Dens-PU as in the paper, alone",
            [seconds([r for r in _on(paper, d) if r not in whole]) for d in both],
            "paper-preset.jsonl",
        ),
        _line(
            "the same, classifier for all 200 epochs (12,600 steps)",
            [seconds(_on(whole, d)) for d in both],
            "paper-preset.jsonl",
        ),
        _line(
            "variants of it, classes of equal size, ten at once",
            [seconds(_on(equal, d)) for d in both],
            "specs",
        ),
    ]
    return "\n".join(lines)


def _on(records: Sequence[Record], dataset: str) -> list[Record]:
    return [r for r in records if r.dataset == dataset]


def _line(name: str, seconds: Sequence[str], source: str) -> str:
    link = f"[{source}](../benchmarks/records/{source})"
    return f"| {name} | {' | '.join(seconds)} | {link} |"
