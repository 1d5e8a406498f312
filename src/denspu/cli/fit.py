"""``denspu fit``: from files to a run folder."""

from __future__ import annotations

import ast
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from denspu.exceptions import InvalidParameterError

WIDTH = 9
"""Of the word at the start of a line."""


def fit(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TABLE]", help="One table with --label-column, as --table."
        ),
    ] = None,
    positive: Annotated[
        Path | None, typer.Option(help="Folder or file of the labelled positives.")
    ] = None,
    unlabeled: Annotated[
        Path | None, typer.Option(help="Folder or file of the unlabelled items.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="The run folder; it must not exist yet.")
    ] = Path("run"),
    table: Annotated[
        Path | None, typer.Option(help="One table that holds both, with labels.")
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(
            help="Column with 1 for a labelled positive, 0 or nothing for the rest."
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="Column with the names of the rows.")
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(help="Column with the texts.")
    ] = None,
    vector_column: Annotated[
        str | None, typer.Option(help="Column of a Parquet file with embeddings.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KIND",
            help="Kind of a column: number, category, date, drop, or a date format. "
            "May be repeated.",
        ),
    ] = None,
    ids: Annotated[
        Path | None, typer.Option(help="File with one id a line, for .npy embeddings.")
    ] = None,
    encoding: Annotated[
        str, typer.Option(help="Encoding of texts and CSV files.")
    ] = "utf-8",
    kind: Annotated[
        str | None,
        typer.Option(help="image, table, text or embedding, if it is not clear."),
    ] = None,
    image_size: Annotated[
        int | None, typer.Option(min=1, help="Side of the images in pixels.")
    ] = None,
    scenario: Annotated[
        str,
        typer.Option(
            help="one-sample: positives were taken out of the pile. two-sample: they "
            "were collected apart."
        ),
    ] = "one-sample",
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|PATTERN",
            help="Patient, customer, ...: a column, or a pattern over paths such as "
            "'{group}/*'. No group is split by a hold-out.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Hold out the latest positives."),
    ] = None,
    known_negatives: Annotated[
        Path | None,
        typer.Option(help="One item a line, or a table with item (and label)."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="A key that `denspu list --kind method` shows.")
    ] = "dens_pu",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the method. May be repeated.",
        ),
    ] = None,
    prior: Annotated[
        float | None,
        typer.Option(help="Share of positives among the unlabelled, if you know it."),
    ] = None,
    holdout: Annotated[
        float,
        typer.Option(help="Share of the positives kept from the fit to judge it."),
    ] = 0.2,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="prior, recall=0.9, precision=0.9 or top=200. By default the method's "
            "own cut.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    max_seconds: Annotated[
        float | None, typer.Option(min=0.001, help="About how long the fit may take.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an older run.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print warnings and the report's place.")
    ] = False,
) -> None:
    """Learn from positives and a pile of unlabelled items; write answers and a report.

    The run folder holds model/, scores.csv and scores.parquet (every unlabelled item),
    skipped.csv, run.json and report.html. Cut off with Ctrl-C, the same command goes on
    where it was.
    """
    from denspu.report.run import write_run_report
    from denspu.runs.fit import fit_run
    from denspu.runs.options import RunOptions
    from denspu.runs.resume import WorkFolder

    options = RunOptions(
        out=out,
        positive=positive,
        unlabeled=unlabeled,
        table=_one(source, table),
        label_column=label_column,
        id_column=id_column,
        text_column=text_column,
        vector_column=vector_column,
        columns=_pairs("--columns", columns),
        ids=ids,
        encoding=encoding,
        kind=kind,  # type: ignore[arg-type]
        image_size=image_size,
        scenario=scenario,
        groups=groups,
        time=time,
        known_negatives=known_negatives,
        method=method,
        settings={k: _value(v) for k, v in _pairs("--set", set_).items()},
        prior=prior,
        holdout=holdout,
        threshold=threshold,
        seed=seed,
        device=device,
        max_seconds=max_seconds,
        overwrite=overwrite,
        verbose=0 if quiet else 1,
        command=shlex.join(["denspu", *sys.argv[1:]]),
    )
    try:
        fit_run(options, report=write_run_report, tell=_quiet if quiet else _tell)
    except KeyboardInterrupt:
        if WorkFolder(options.target).useful:
            _tell("stopped", "the same command again goes on where it was")
        raise


def _one(source: Path | None, table: Path | None) -> Path | None:
    if source is not None and table is not None:
        raise InvalidParameterError(
            f"{source} and --table {table} both name the table. Give one of them."
        )
    return source or table


def _pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """Read ``name=value`` pairs."""
    found = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise InvalidParameterError(
                f"{option} {text} must be NAME=VALUE, with no space around the sign."
            )
        found[name.strip()] = value.strip()
    return found


def _value(text: str) -> Any:
    """Return a number, True, False or None for what looks like one, else the text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _tell(word: str, sentence: str) -> None:
    print(f"{word:<{WIDTH}} {sentence}", flush=True)


def _quiet(word: str, sentence: str) -> None:
    if word in ("warning", "open"):
        _tell(word, sentence)
