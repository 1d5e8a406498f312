"""``denspu bench``: run a spec, and turn its records into tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from denspu._progress import many

if TYPE_CHECKING:
    from denspu.benchmark.spec import Spec

bench_app = typer.Typer(
    help="Run comparisons that a spec describes; tables of the records.",
    no_args_is_help=True,
)

SpecPaths = Annotated[
    list[Path], typer.Argument(metavar="SPEC...", help="TOML files, one or more.")
]
SpecPath = Annotated[Path, typer.Argument(metavar="SPEC", help="A TOML file.")]
Records = Annotated[
    Path | None,
    typer.Option(
        "--records",
        help="File of records. By default records/specs/NAME.jsonl beside the folder "
        "of specs.",
    ),
]
Only = typer.Option(help="Only this one; may be repeated.")


def with_records(specs: list[Path], records: Path | None) -> list[tuple[Spec, Path]]:
    """Return specs, each with its file of records."""
    from denspu.benchmark.spec import load_spec
    from denspu.exceptions import InvalidParameterError

    if records is not None and len(specs) > 1:
        raise InvalidParameterError(
            f"--records {records} is one file, and {len(specs)} specs are given. Leave "
            "it out, so that each has its own, or name one spec at a time."
        )
    found = []
    for path in specs:
        home, name = path.resolve().parent, f"{path.stem}.jsonl"
        if home.name == "specs":
            home = home.parent / "records" / "specs"
        found.append((load_spec(path), records or home / name))
    return found


def print_recorded(asked: list[tuple[Spec, Path]]) -> None:
    """Print how much of each spec is recorded."""
    from denspu.benchmark.record import failed, read_records
    from denspu.benchmark.tables import Found

    for spec, out in asked:
        found = Found(spec, read_records(out))
        text = f"{len(found.records)} of {len(found.cells)} cells recorded"
        bad = sum(map(failed, found.records.values()))
        print(f"{spec.name}: {text}" + (f", {bad} of them failed" if bad else ""))


@bench_app.command("run")
def run(
    specs: SpecPaths,
    records: Records = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds after which no cell is begun."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
    jobs: Annotated[int, typer.Option(min=1, help="Cells that run at once.")] = 1,
    encoders: Annotated[
        Path, typer.Option(help="Folder of the encoders that rows share.")
    ] = Path("encoders"),
    seed: Annotated[list[int] | None, Only] = None,
    row: Annotated[list[str] | None, Only] = None,
    task: Annotated[list[str] | None, Only] = None,
    retry: Annotated[
        bool, typer.Option(help="Run cells again whose record is an error.")
    ] = False,
    cell_limit: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds after which a cell is ended as failed."),
    ] = None,
) -> None:
    """Run the cells of specs that have no record yet; print the table, or the state."""
    from denspu.benchmark.runner import run_specs

    asked = with_records(specs, records)
    try:
        outcome = run_specs(
            asked,
            borrowing=records is None,
            budget=float("inf") if budget is None else budget,
            device=device,
            jobs=jobs,
            encoders=encoders,
            seeds=tuple(seed) if seed else None,
            rows=tuple(row) if row else None,
            tasks=tuple(task) if task else None,
            retry=retry,
            cell_limit=cell_limit,
        )
    except KeyboardInterrupt:
        print("\nStopped. What is recorded stays; the same command goes on from there.")
        raise typer.Exit(130) from None
    if len(specs) == 1:
        table(specs[0], records)
    else:
        print_recorded(asked)
    print(
        f"\n{many(outcome.ran, 'cell')} run in {outcome.seconds:.0f} s, "
        f"{outcome.skipped} recorded before, {outcome.left} left"
        + (" (not begun within the budget)" if outcome.left else "")
        + "."
    )
    if failed := outcome.failed + outcome.failed_before:
        print(f"{failed} failed; --retry runs them again.")
        raise typer.Exit(1)


@bench_app.command("status")
def status(specs: SpecPaths, records: Records = None) -> None:
    """Print which cells have no record yet."""
    from denspu.benchmark.record import read_records
    from denspu.benchmark.results import status_markdown

    asked = with_records(specs, records)
    print_recorded(asked)
    print()
    print(status_markdown([(spec, read_records(out)) for spec, out in asked]))


@bench_app.command("table")
def table(spec: SpecPath, records: Records = None) -> None:
    """Print the tables of a spec as Markdown."""
    from denspu.benchmark.record import read_records
    from denspu.benchmark.results import spec_markdown

    [(loaded, path)] = with_records([spec], records)
    print(spec_markdown(loaded, read_records(path)))
