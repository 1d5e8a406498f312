"""Verbs for one's own files: ``fit``, ``predict``, ``evaluate``, ``export``."""

from __future__ import annotations

import ast
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from denspu.exceptions import InvalidParameterError

ModelPath = Annotated[
    Path, typer.Option(help="The model of a run: run/model, or run itself.")
]
IdColumn = Annotated[
    str | None, typer.Option(help="Column with the names of the rows.")
]
TextColumn = Annotated[str | None, typer.Option(help="Column with the texts.")]
VectorColumn = Annotated[
    str | None, typer.Option(help="Column of a Parquet file with embeddings.")
]
Ids = Annotated[
    Path | None, typer.Option(help="File with one id a line, for .npy embeddings.")
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of texts and CSV files.")]
Threshold = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="prior, recall=0.9, precision=0.9 or top=200; with a model also a score.",
    ),
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Chunk = Annotated[
    int,
    typer.Option(min=1, help="Items in memory at a time; the answers stay the same."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an older one.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object with all facts.")]

CHUNK = 4096
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
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    vector_column: VectorColumn = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KIND",
            help="number, category, date, drop, or a date format; may be repeated.",
        ),
    ] = None,
    ids: Ids = None,
    encoding: Encoding = "utf-8",
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
            help="one-sample: positives were taken out of the pile; two-sample: they "
            "were collected apart."
        ),
    ] = "one-sample",
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|PATTERN",
            help="Patient, customer, ...: a column, or a pattern over paths such as "
            "'{group}/*', that no hold-out splits.",
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
            help="A setting of the method; may be repeated.",
        ),
    ] = None,
    prior: Annotated[
        float | None,
        typer.Option(
            help="Share of positives among all items, labelled and not, if you know it."
        ),
    ] = None,
    prior_in_unlabeled: Annotated[
        float | None,
        typer.Option(help="In its place: the share among the unlabelled alone."),
    ] = None,
    holdout: Annotated[
        float,
        typer.Option(help="Share of the positives kept from the fit to judge it."),
    ] = 0.2,
    threshold: Threshold = None,
    seed: Seed = 0,
    device: Device = "auto",
    max_seconds: Annotated[
        float | None, typer.Option(min=0.001, help="About how long the fit may take.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print warnings and the report's place.")
    ] = False,
) -> None:
    """Learn from positives and a pile of unlabelled items; write answers and a report.

    The run folder holds model/, scores.csv and scores.parquet (every unlabelled item),
    skipped.csv, run.json and report.html. Cut off with Ctrl-C, the same command goes on
    where it was.
    """
    given = dict(locals())  # first of all: nothing but the options
    from denspu.report.run import missing_for_pages, write_run_report
    from denspu.runs.fit import fit_run
    from denspu.runs.folder import WorkFolder
    from denspu.runs.options import RunOptions

    for word in ("source", "set_", "quiet"):
        del given[word]
    if source is not None and table is not None:
        raise InvalidParameterError(
            f"{source} and --table {table} both name the table. Give one of them."
        )
    given["table"] = source or table
    given["columns"] = _pairs("--columns", columns)
    given["settings"] = {k: _value(v) for k, v in _pairs("--set", set_).items()}
    options = RunOptions(
        **given, verbose=int(not quiet), command=shlex.join(["denspu", *sys.argv[1:]])
    )

    def tell(word: str, sentence: str) -> None:
        if not quiet or word in ("warning", "open"):
            say(word, sentence)

    try:
        missing = missing_for_pages()
        fit_run(options, report=None if missing else write_run_report, tell=tell)
        if missing:
            tell("warning", missing)
    except KeyboardInterrupt:
        if WorkFolder(options.target).useful:
            say("stopped", "the same command again goes on where it was")
        raise


def predict(
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="Folder or file of new items.")
    ],
    model: ModelPath,
    out: Annotated[Path, typer.Option(help="Answers: a .csv or .parquet file.")],
    threshold: Threshold = None,
    chunk: Chunk = CHUNK,
    device: Device = None,
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    vector_column: VectorColumn = None,
    ids: Ids = None,
    encoding: Encoding = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Score new items with the model of a run; any number of them.

    The file has the columns item, score, probability, rank and decision. What cannot be
    read is listed beside it, in NAME.skipped.csv.
    """
    from denspu.runs.options import Reading
    from denspu.runs.predict import predict_files

    shown = sys.stderr.isatty()

    def tell(done: int, skipped: int) -> None:
        if shown:
            print(f"\r{done:,} scored, {skipped:,} skipped", end="", file=sys.stderr)

    found = predict_files(
        _model_folder(model),
        source,
        out,
        chunk=chunk,
        device=device,
        threshold=threshold,
        overwrite=overwrite,
        reading=Reading(id_column, text_column, vector_column, ids, encoding),
        tell=tell,
    )
    if shown:
        print("\r\033[K", end="", file=sys.stderr)
    if json:
        print_json(found.to_json())
        return
    for note in found.notes:
        say("note", note)
    say("items", found.summary())
    say("threshold", found.threshold_sentence)
    if found.n_skipped:
        say("skipped", f"{found.n_skipped:,}, listed in {found.skipped_out}")
    say("wrote", found.out)


def evaluate(
    model: ModelPath,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[INPUT]",
            help="Folder or file of the items. By default the run's unlabelled items.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Table with item and label (1, 0, or nothing: not known)."),
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(help="Column of --labels; without it, of INPUT itself."),
    ] = None,
    item_column: Annotated[
        str | None, typer.Option(help="Column of --labels with the names.")
    ] = None,
    threshold: Threshold = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.9,
    seed: Seed = 0,
    chunk: Chunk = CHUNK,
    device: Device = None,
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    vector_column: VectorColumn = None,
    ids: Ids = None,
    encoding: Encoding = None,
    json: Json = False,
) -> None:
    """Compare the model with true labels, and its own estimates with both."""
    from denspu.runs.evaluate import evaluate_files
    from denspu.runs.options import Reading

    found = evaluate_files(
        _model_folder(model),
        source,
        labels=labels,
        label_column=label_column,
        item_column=item_column,
        threshold=threshold,
        level=level,
        random_state=seed,
        chunk=chunk,
        device=device,
        reading=Reading(id_column, text_column, vector_column, ids, encoding),
    )
    if json:
        print_json(found.to_json())
        return
    print(found)


def export(
    model: Annotated[
        Path, typer.Option(help="The folder of a saved model: RUN/model.")
    ],
    onnx: Annotated[Path, typer.Option(help="The file to write.")],
    rows: Annotated[
        Path | None,
        typer.Option(
            help="An .npy file of rows to compare on; its type of numbers becomes the "
            "graph's. Without it rows are drawn."
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Largest difference allowed; by default 0.001."),
    ] = None,
    opset: Annotated[int, typer.Option(help="Version of the ONNX operators.")] = 20,
    overwrite: Overwrite = False,
) -> None:
    """Write a saved model as an ONNX file, compared with the model before it is kept.

    The graph takes images or a table of numbers and gives score, probability and
    decision.
    """
    from denspu.persistence import load
    from denspu.persistence.onnx import export_onnx

    found = export_onnx(
        load(_model_folder(model), device="cpu"),
        onnx,
        sample=None if rows is None else _read(rows),
        tolerance=tolerance,
        opset=opset,
        overwrite=overwrite,
    )
    say("wrote", f"{found.path} ({found.n_bytes / 1e6:.1f} MB)")
    say("parity", found.sentence())


def _read(path: Path) -> object:
    import numpy as np

    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidParameterError(
            f"--rows {path} cannot be read as an .npy file ({error}). Save rows with "
            "numpy.save."
        ) from error


# --- helpers -------------------------------------------------------------------------


def say(word: str, sentence: str) -> None:
    """Print one line: what it is about, and what is to be said."""
    print(f"{word:<{WIDTH}} {sentence}", flush=True)


def _model_folder(path: Path) -> Path:
    """Return the folder of the model; the run folder around it is taken too."""
    inside = path / "model"
    alone = not (path / "manifest.json").exists()
    return inside if alone and (inside / "manifest.json").exists() else path


def print_json(facts: Any) -> None:
    """Print facts as JSON."""
    import json

    print(json.dumps(facts, indent=1))


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
