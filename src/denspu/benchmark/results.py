"""The page of results: every spec that has records, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from denspu.benchmark.cells import recorded
from denspu.benchmark.glance import HOW_TO_READ, glance_markdown, glance_of
from denspu.benchmark.markup import plain, to_markdown
from denspu.benchmark.notes import command_of, notes_of
from denspu.benchmark.paired import (
    caption_of,
    differences,
    differences_markdown,
    how_to_read,
    verdicts,
)
from denspu.benchmark.record import Record, read_records
from denspu.benchmark.spec import Spec
from denspu.benchmark.spec_file import load_spec
from denspu.benchmark.tables import tables_of, title_of

INTRO = """\
<!-- Made by benchmarks/results.py from the records; edits here are lost. -->

# Results

Every figure below is made from records: one line for each run, with its settings,
seed, versions, device and seconds ([records](../benchmarks/records)). A spec names
the runs of a table ([specs](../benchmarks/specs)); the command under each table makes
those that have no record yet; with `--records FILE` all of them, into a new file.

Figures are percent on the test set, mean ± standard deviation over seeds; the column
“seeds” says how many. The last epoch is judged, or the one a label-free criterion
chose, never the best on the test set. “–” stands where no run has been recorded; an
empty cell is not part of the comparison. Runs that failed are counted beside the
seeds, with the name of the error. The row in bold is the one that others are compared
with. Boundary AUC (how well the boundary ranks U), purity of Ñ (how many chosen
negatives are negative) and the share of U right (whose refined label is the true one)
are figures of U, known only because the true labels of U are."""

NOTHING = "Nothing is recorded yet."

Pictures = Callable[[Spec, Sequence[Record]], Sequence[tuple[str, str]]]
"""What shows a spec's records: captions and links."""


def no_pictures(spec: Spec, records: Sequence[Record]) -> Sequence[tuple[str, str]]:
    """Return none."""
    return ()


def spec_markdown(
    spec: Spec,
    records: Sequence[Record],
    *,
    level: int = 1,
    pictures: Pictures = no_pictures,
) -> str:
    """Return a spec as Markdown: the verdicts, tables, the comparison, notes.

    Parameters
    ----------
    spec : Spec
    records : sequence of Record
        Those without a cell, or of cells the spec does not have, are not used.
    level : int, default=1
        Of the heading: how many ``#`` it gets.
    pictures : callable, optional
        Gives captions and links of pictures to show below the tables.
    """
    parts = ["#" * level + " " + plain(spec.title)]
    found = differences(spec, records)
    if found:
        parts += [
            f"{plain(str(spec.reference))}, {title_of(spec.metrics[0])}:",
            _bullets(verdicts(spec, found)),
        ]
    tables = tables_of(spec, records)
    for table in tables:
        if len(tables) > 1 or spec.layout == "tasks":
            parts.append(f"**{plain(table.title)}**")
        parts.append(to_markdown(table))
    for caption, link in pictures(spec, records):
        parts.append(f"![{plain(f'{caption}: {spec.title}')}]({link})")
    if found:
        parts += [
            f"**{plain(caption_of(spec))}**",
            differences_markdown(spec, found),
            how_to_read(spec, found),
        ]
    parts.append(_bullets(notes_of(spec, records)))
    parts.append(f"```sh\n{command_of(spec)}\n```")
    return "\n\n".join(parts)


def _bullets(sentences: Sequence[str]) -> str:
    """Return sentences as a list; a spec's notes may hold Markdown of their own."""
    return "\n".join(
        f"- {' '.join(sentence.replace('<', '&lt;').split())}" for sentence in sentences
    )


def results_page(
    specs_folder: str | Path,
    records_folder: str | Path,
    pictures: Pictures = no_pictures,
) -> str:
    """Return the page of all specs in a folder that have records.

    Records of the spec ``NAME.toml`` are in ``NAME.jsonl``. Numbered tables come first;
    specs without a record are named at the end.
    """
    sections, glances, empty = [], [], []
    for path in specs_in_order(specs_folder):
        spec = load_spec(path)
        records = read_records(Path(records_folder) / f"{spec.name}.jsonl")
        if recorded(records):
            sections.append(spec_markdown(spec, records, level=2, pictures=pictures))
            glances.append(glance_of(spec, records))
        else:
            empty.append(f"`{spec.name}`")
    links = [f"#{anchor(plain(glance.spec.title))}" for glance in glances]
    overview = ["## At a glance", glance_markdown(glances, links), HOW_TO_READ]
    parts = [INTRO, *overview, *sections] if sections else [INTRO, NOTHING]
    if empty:
        parts.append(f"Specs without a record so far: {', '.join(empty)}.")
    return "\n\n".join(parts) + "\n"


def specs_in_order(folder: str | Path) -> list[Path]:
    """Return the specs of a folder, those of numbered tables first."""

    def place(path: Path) -> tuple[bool, str]:
        return not path.stem.startswith("table"), path.stem

    return sorted(Path(folder).glob("*.toml"), key=place)


def anchor(title: str) -> str:
    """Return what a heading is called in links, as GitHub and others make it."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")
