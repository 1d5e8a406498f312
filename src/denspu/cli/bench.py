"""``denspu bench``: run a spec, and turn its records into tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from denspu._words import many

if TYPE_CHECKING:
    from denspu.benchmark.spec import Spec

bench_app = typer.Typer(
    help="Run comparisons that a spec describes; tables and figures of the records.",
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


def records_of(spec: Path, given: Path | None) -> Path:
    """Return the file of records of a spec."""
    if given is not None:
        return given
    home = spec.resolve().parent
    name = f"{spec.stem}.jsonl"
    if home.name == "specs":
        return home.parent / "records" / "specs" / name
    return home / name


def loaded_with_records(
    specs: list[Path], records: Path | None
) -> list[tuple[Spec, Path]]:
    """Return specs, each with its file of records."""
    from denspu.benchmark.spec import load_spec
    from denspu.exceptions import InvalidParameterError

    if records is not None and len(specs) > 1:
        raise InvalidParameterError(
            f"--records {records} is one file, and {len(specs)} specs are given. Leave "
            "it out, so that each has its own, or name one spec at a time."
        )
    return [(load_spec(spec), records_of(spec, records)) for spec in specs]


def recorded_words(spec: Spec, out: Path) -> str:
    """Say how much of a spec is recorded."""
    from denspu.benchmark.record import failed, read_records, recorded
    from denspu.benchmark.spec import cells_of

    known = recorded(read_records(out))
    cells = cells_of(spec)
    found = [known[cell.id] for cell in cells if cell.id in known]
    text = f"{len(found)} of {len(cells)} cells recorded"
    bad = sum(map(failed, found))
    return f"{text}, {bad} of them failed" if bad else text


@bench_app.command("run")
def run(
    specs: SpecPaths,
    records: Records = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds; no cell is begun that would end later."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
    jobs: Annotated[int, typer.Option(min=1, help="Cells that run at once.")] = 1,
    encoders: Annotated[
        Path, typer.Option(help="Folder of the encoders that rows share.")
    ] = Path("encoders"),
    seed: Annotated[
        list[int] | None, typer.Option(help="Only this seed; may be repeated.")
    ] = None,
    row: Annotated[
        list[str] | None, typer.Option(help="Only this row; may be repeated.")
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="Only this task; may be repeated.")
    ] = None,
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

    asked = loaded_with_records(specs, records)
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
        for one, out in asked:
            print(f"{one.name}: {recorded_words(one, out)}")
    print(
        f"\n{many(outcome.ran, 'cell')} run in {outcome.seconds:.0f} s, "
        f"{outcome.skipped} recorded before, {outcome.left} left"
        + (" (they would not end within the budget)" if outcome.left else "")
        + "."
    )
    if failed := outcome.failed + outcome.failed_before:
        print(f"{failed} failed; --retry runs them again.")
        raise typer.Exit(1)


@bench_app.command("status")
def status(
    specs: SpecPaths,
    records: Records = None,
    device: Annotated[
        str,
        typer.Option(help="Whose seconds count: auto, cpu, cuda. It need not be here."),
    ] = "auto",
    encoders: Annotated[
        Path, typer.Option(help="Folder of the encoders that rows share.")
    ] = Path("encoders"),
) -> None:
    """Print which cells have no record yet, and what these would take."""
    from denspu._machine import resolve_device
    from denspu.benchmark.record import read_records
    from denspu.benchmark.results import parts_of, status_markdown

    asked = loaded_with_records(specs, records)
    on_gpu = device.startswith("cuda") or resolve_device(device).type == "cuda"
    known = [(one, read_records(out)) for one, out in asked]
    for one, out in asked:
        print(f"{one.name}: {recorded_words(one, out)}")
    print()
    print(status_markdown(parts_of(known, on_gpu=on_gpu, encoders=encoders)))


@bench_app.command("table")
def table(spec: SpecPath, records: Records = None) -> None:
    """Print the tables of a spec as Markdown."""
    from denspu.benchmark.record import read_records
    from denspu.benchmark.results import spec_markdown
    from denspu.benchmark.spec import load_spec

    print(spec_markdown(load_spec(spec), read_records(records_of(spec, records))))


@bench_app.command("figure")
def figure(
    spec: SpecPath,
    records: Records = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the pictures and the page.")
    ] = Path("denspu-bench"),
) -> None:
    """Draw the pictures of a spec (SVG, PNG) and write a page with its tables."""
    from denspu.benchmark.record import read_records
    from denspu.benchmark.spec import load_spec
    from denspu.exceptions import InvalidParameterError
    from denspu.report.bench import save_figures, spec_page

    loaded = load_spec(spec)
    found = read_records(records_of(spec, records))
    try:
        out.mkdir(parents=True, exist_ok=True)
        pictures = save_figures(loaded, found, out)
        page = out / f"{loaded.name}.html"
        page.write_text(spec_page(loaded, found), encoding="utf-8")
    except OSError as error:
        raise InvalidParameterError(
            f"--out {out} cannot be written to: {error.strerror}. Name another folder."
        ) from None
    for path in (page, *pictures):
        print(path)
