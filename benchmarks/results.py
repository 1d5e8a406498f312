"""Write docs/results.md from the specs and their records, or check that it agrees.

    python benchmarks/results.py [--check]

Its pictures are drawn anew where the spec or its records changed: each file tells what
it was made from. A spec shows one: its metric over the number of labels where tasks
differ in it, else every seed.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pandas import DataFrame, notna

from denspu.benchmark import Record, read_records
from denspu.benchmark.record import failed, recorded
from denspu.benchmark.results import (
    FEWEST_SEEDS,
    differences,
    spec_markdown,
    status_markdown,
)
from denspu.benchmark.spec import METRICS, Row, Spec, load_spec
from denspu.benchmark.tables import (
    MISSING,
    Found,
    markdown_grid,
    plain,
    tables_of,
    title_of,
)
from denspu.report.style import save
from pictures import CAPTIONS, draw, figure_names

HERE = Path(__file__).parent
SPECS = HERE / "specs"
RECORDS = HERE / "records" / "specs"
PAGE = HERE.parent / "docs" / "results.md"
FOLDER = "images/bench"


def ablation(records: Path) -> str:
    """Return the table of what each part of the default contributes."""
    spec = load_spec(SPECS / "ablation.toml")
    [table] = tables_of(spec, read_records(records / "ablation.jsonl"))
    return table.markdown()


def ablation_labels(records: Path) -> str:
    """Return the tables of how many labels the default needs."""
    spec = load_spec(SPECS / "ablation-labels.toml")
    found = tables_of(spec, read_records(records / "ablation-labels.jsonl"))
    return "\n\n".join(f"**{t.title}**\n\n{t.markdown()}" for t in found)


def missing(records: Path) -> str:
    """Return the table of what has no record yet."""
    paths = specs_in_order(SPECS)
    specs = [(load_spec(p), read_records(records / f"{p.stem}.jsonl")) for p in paths]
    return status_markdown(specs)


@dataclass(frozen=True)
class Picture:
    """The main picture of a spec: what it shows, where it is, what it is made from."""

    spec: Spec
    records: Sequence[Record]
    name: str

    @property
    def link(self) -> str:
        """Where it is, seen from the page."""
        return f"{FOLDER}/{self.spec.name}-{self.name}.svg"

    @property
    def path(self) -> Path:
        return PAGE.parent / self.link

    @property
    def origin(self) -> str:
        files = SPECS / f"{self.spec.name}.toml", RECORDS / f"{self.spec.name}.jsonl"
        made_from = "".join(path.read_text("utf-8") for path in files)
        return f"made from {hashlib.sha256(made_from.encode()).hexdigest()[:16]}"

    def is_old(self) -> bool:
        known = self.path.read_text("utf-8") if self.path.exists() else ""
        return self.origin not in known


def pictures_of(spec: Spec, records: Sequence[Record]) -> list[Picture]:
    return [Picture(spec, records, name) for name in figure_names(spec, records)[:1]]


def captions_and_links(spec: Spec, records: Sequence[Record]) -> list[tuple[str, str]]:
    return [(CAPTIONS[p.name], p.link) for p in pictures_of(spec, records)]


def page() -> str:
    return results_page(SPECS, RECORDS)


def old_pictures() -> list[Picture]:
    """Return the pictures that are not of the spec and records as they are."""
    found = []
    for path in sorted(SPECS.glob("*.toml")):
        spec, records = load_spec(path), read_records(RECORDS / f"{path.stem}.jsonl")
        if recorded(records):
            found += [p for p in pictures_of(spec, records) if p.is_old()]
    return found


def outdated() -> list[str]:
    """Return the files that disagree with the records: the page, pictures."""
    old = [picture.path.name for picture in old_pictures()]
    if not PAGE.exists() or PAGE.read_text("utf-8") != page():
        old = [PAGE.name, *old]
    return old


# --- the page -----------------------------------------------------------------------

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


def results_page(specs_folder: Path, records_folder: Path) -> str:
    """Return the page of all specs in a folder that have records.

    Records of the spec ``NAME.toml`` are in ``NAME.jsonl``. Numbered tables come first;
    specs without a record are named at the end.
    """
    sections, glances, empty = [], [], []
    for path in specs_in_order(specs_folder):
        spec = load_spec(path)
        records = read_records(records_folder / f"{spec.name}.jsonl")
        if recorded(records):
            text = spec_markdown(spec, records, level=2, pictures=captions_and_links)
            sections.append(text)
            glances.append(glance_of(spec, records))
        else:
            empty.append(f"`{spec.name}`")
    links = [f"#{anchor(plain(glance.spec.title))}" for glance in glances]
    overview = ["## At a glance", glance_markdown(glances, links), HOW_TO_READ]
    parts = [INTRO, *overview, *sections] if sections else [INTRO, NOTHING]
    if empty:
        parts.append(f"Specs without a record so far: {', '.join(empty)}.")
    return "\n\n".join(parts) + "\n"


def specs_in_order(folder: Path) -> list[Path]:
    """Return the specs of a folder, those of numbered tables first."""

    def place(path: Path) -> tuple[bool, str]:
        return not path.stem.startswith("table"), path.stem

    return sorted(folder.glob("*.toml"), key=place)


def anchor(title: str) -> str:
    """Return what a heading is called in links, as GitHub and others make it."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


# --- all tables at a glance ---------------------------------------------------------

CLOSE = 2.0
"""Percent points within which a printed figure counts as met."""
GLANCE = (
    *("table", "cells", "metric", "reference row", "best other row, by mean", "ahead"),
    *("not told apart", "behind", "not compared", "printed figures met"),
)
HOW_TO_READ = f"""\
Cells: how many runs of a table are recorded. The metric is the first of each table,
in percent; of several tasks the lowest and the highest mean, over those that the
reference row and another have both been run on. “Ahead”, “not told apart” and
“behind” count the other rows, on each task, by whether the 95 % interval of the
difference to the reference row leaves out 0; in brackets how many of them stay so if
all intervals of the table must hold at once; “not compared” those with fewer than
{FEWEST_SEEDS} seeds in common so far. Rows trained on true labels are left out. A
printed figure counts as met where the mean of the seeds so far lies within {CLOSE:g}
points of it: first those of the table's first metric, then those of all metrics."""


@dataclass(frozen=True)
class Glance:
    """What is said of one spec."""

    spec: Spec
    recorded: int
    cells: int
    failed: int
    reference: str
    best_other: str
    verdicts: Counter[str]
    """Of every other row on every task: ahead, open, behind or, with too few seeds in
    common, few; and how many are ahead or behind also when all rows are judged at once,
    as ``"ahead together"`` and ``"behind together"``."""
    met: str
    """How many figures that the paper prints are met: of the first metric, of all."""


def glance_of(spec: Spec, records: Sequence[Record]) -> Glance:
    """Return what one line says of a spec."""
    found, key = Found(spec, records), spec.metrics[0]
    unseeing = [row for row in spec.rows if not row.sees_labels]
    reference = next((r for r in unseeing if r.name == spec.reference), None)
    others = [row for row in unseeing if row is not reference]
    means = found.means(key)
    tasks = _in_common(means, reference, others)
    rivals = means.loc[[r.name for r in others if r.name in means.index], tasks]
    rivals = rivals.dropna() if tasks else rivals.iloc[:0]
    best = rivals.mean(axis=1).idxmax() if len(rivals) else None
    return Glance(
        spec=spec,
        recorded=len(found.records),
        cells=len(found.cells),
        failed=sum(map(failed, found.records.values())),
        reference=_means_words(means, reference.name if reference else None, tasks),
        best_other=_means_words(means, best, tasks),
        verdicts=_verdicts(found, others, reference),
        met=_met(found, unseeing),
    )


def _met(found: Found, rows: Sequence[Row]) -> str:
    """Say how many printed figures are met: of the first metric, then of all."""

    def near(keys: Sequence[str]) -> list[bool]:
        return [
            abs(means.at[row.name, task] - claims[key]) <= CLOSE
            for key in keys
            for means in [found.means(key)]
            for row in rows
            for task, claims in row.printed.items()
            if key in claims and row.name in means.index and task in means
            if notna(means.at[row.name, task])
        ]

    first, every = near([found.spec.metrics[0]]), near(METRICS)
    if not every:
        return ""
    return f"{sum(first)} of {len(first)}; of all metrics {sum(every)} of {len(every)}"


def _verdicts(
    found: Found, others: Sequence[Row], reference: Row | None
) -> Counter[str]:
    if reference is None:
        return Counter()
    names = {row.name for row in others}
    judged = [
        d
        for d in differences(found.spec, found.records.values())
        if d.task is not None and d.row in names
    ]
    compared = Counter(d.verdict for d in judged)
    asked = sum(
        1
        for task in found.spec.tasks
        for row in others
        if found.expected(row, task) and found.expected(reference, task)
    )
    compared["few"] += asked - len(judged)
    compared.update(f"{d.verdict} together" for d in judged if d.stands)
    return compared


def _in_common(
    means: DataFrame, reference: Row | None, others: Sequence[Row]
) -> list[str]:
    """Return the tasks on which the reference and another have records."""
    if reference is None or reference.name not in means.index:
        return []
    names = [row.name for row in others if row.name in means.index]
    ours, theirs = means.loc[reference.name].notna(), means.loc[names].notna().any()
    return [str(task) for task in means if ours[task] and theirs[task]]


def _means_words(means: DataFrame, row: str | None, tasks: Sequence[str]) -> str:
    """Name a row with its figures on these tasks."""
    if row is None or not tasks:
        return MISSING
    figures = means.loc[row, list(tasks)]
    low, high = f"{figures.min():.2f}", f"{figures.max():.2f}"
    return f"{row}: {low if len(figures) == 1 else f'{low} to {high}'}"


def glance_markdown(glances: Sequence[Glance], links: Sequence[str]) -> str:
    """Return the specs as a Markdown table, each title with its link."""
    titles = _short([glance.spec.title for glance in glances])
    lines = [
        [f"[{plain(title)}]({link})", *map(plain, _cells(glance))]
        for title, glance, link in zip(titles, glances, links, strict=True)
    ]
    return markdown_grid(GLANCE, lines)


def _short(titles: Sequence[str]) -> list[str]:
    """Return titles up to their first comma, whole where that is not theirs alone."""
    starts = [title.partition(", ")[0] for title in titles]
    return [
        start if starts.count(start) == 1 else title
        for start, title in zip(starts, titles, strict=True)
    ]


def _cells(glance: Glance) -> list[str]:
    cells = f"{glance.recorded} of {glance.cells}"
    cells += f", {glance.failed} failed" if glance.failed else ""
    compared = [
        _count(glance.verdicts, word) if glance.verdicts else ""
        for word in ("ahead", "open", "behind", "few")
    ]
    metric = title_of(glance.spec.metrics[0])
    return [cells, metric, glance.reference, glance.best_other, *compared, glance.met]


def _count(verdicts: Counter[str], word: str) -> str:
    """Show a count, and in brackets how many of it stand together."""
    count = verdicts[word]
    judged = count and word in ("ahead", "behind")
    return f"{count} ({verdicts[f'{word} together']})" if judged else str(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        old = ", ".join(outdated())
        raise SystemExit(f"out of date: {old}" if old else 0)
    PAGE.write_text(page(), "utf-8")
    for picture in old_pictures():
        figure = draw(picture.name, picture.spec, picture.records)
        save(figure, picture.path, picture.origin)


if __name__ == "__main__":
    main()
