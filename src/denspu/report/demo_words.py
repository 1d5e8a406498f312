"""The demonstration told in plain words on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from denspu._progress import Stage, show

if TYPE_CHECKING:
    from rich.console import Console

    from denspu.report.demo import DemoResult

SENTENCES = {
    "encode": (
        "{positives:,} labelled and {unlabeled:,} unlabelled images became "
        "{dimension} numbers each ({encoder})."
    ),
    "densify": (
        "{embeddings:,} points between labelled positives filled the gaps "
        "({densifier})."
    ),
    "boundary": (
        "{detector} learned what is normal among them. The boundary was set so that "
        "{held_out_inlier_share:.0%} of positives it had not seen lie inside. "
        "{predicted_inlier:,} unlabelled images lie inside, {leftovers:,} outside."
    ),
    "label": (
        "Where labelled positives are dense along the boundary's score, so are the "
        "others: a first guess says {prior_in_unlabeled:.0%} of the unlabelled images "
        "are positive."
    ),
    "refine": (
        "{refiner} trained on the guess, looked again and took labels back, "
        "{rounds} times. {called_positive:.0%} of the unlabelled images are called "
        "positive; the estimate of how many are is {prior_in_unlabeled:.0%} "
        "({prior_interval[0]:.0%} to {prior_interval[1]:.0%})."
    ),
    "select": "The {negatives:,} least normal of those outside are taken as negatives.",
    "classify": (
        "{classifier} learned to tell the {positives:,} positives from the "
        "{negatives:,} negatives."
    ),
}
"""What each stage did; the blanks are its facts."""

METRICS = {
    "accuracy": ("accuracy", "share of answers that are right"),
    "precision": ("precision", "share of those called positive that are"),
    "recall": ("recall", "share of the positives that are found"),
    "f1": ("F1", "precision and recall in one figure"),
    "balanced_accuracy": ("balanced accuracy", "mean of the shares found, per class"),
    "roc_auc": ("ROC AUC", "a positive ranks above a negative this often"),
    "average_precision": ("average precision", "mean precision down the ranking"),
}


def render_demo(result: DemoResult, console: Console) -> None:
    """Print what was given, what each stage did, and what came out."""
    console.print(
        "[bold]Which digits are even?[/bold] "
        f"Given: {result.n_labeled:,} images known to be even and "
        f"{result.n_unlabeled:,} without a label. No example of an odd digit."
    )
    console.print()
    console.print(_stage_table(result))
    console.print()
    console.print(_metric_table(result))
    console.print()
    _print_oracle(result, console)
    console.print()
    console.print("[bold]Pictures[/bold]")
    for path in result.pictures.values():
        console.print(Text(f"  {path}"), soft_wrap=True)
    console.print(f"Done in {result.seconds:.1f} s.")


def words(stage: Stage) -> str:
    """Return what a stage did in one or two sentences."""
    if stage.name == "densify" and not stage.facts["embeddings"]:
        return "Nothing was added: the boundary is drawn around the positives as is."
    if stage.name in SENTENCES:
        return SENTENCES[stage.name].format(**stage.facts)
    return ", ".join(f"{name} {show(fact)}" for name, fact in stage.facts.items())


def _stage_table(result: DemoResult) -> Table:
    table = _table("What each stage did")
    table.add_column("stage", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("what happened")
    for stage in result.stages:
        table.add_row(stage.name, f"{stage.seconds:.2f}", Text(words(stage)))
    return table


def _metric_table(result: DemoResult) -> Table:
    table = _table(f"What came out, on {result.n_test:,} new images")
    table.add_column("figure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("in words")
    for key, (name, meaning) in METRICS.items():
        table.add_row(name, f"{result.metrics[key]:.3f}", meaning)
    table.add_section()
    share = result.test_positive_share
    table.add_row(
        "positives",
        f"{share:.3f}",
        f"for scale: always giving one answer is right {max(share, 1 - share):.0%}",
        style="dim",
    )
    return table


def _print_oracle(result: DemoResult, console: Console) -> None:
    console.print(
        "[bold]Behind the scenes[/bold] "
        "(needs true labels, shown because this is a demonstration)"
    )
    for line in (
        f"{result.labels_right:.1%} of the unlabelled images got the right label; "
        f"{result.prior_in_unlabeled:.0%} of them are even.",
        "The boundary ranks an unlabelled even digit above an odd one "
        f"{result.boundary_auc:.1%} of the time (AUC); chance is 50%.",
    ):
        console.print(Padding(Text(line), (0, 0, 0, 2)))


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
