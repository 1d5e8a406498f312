"""The page of results: every spec that has records, as Markdown.

First all tables at a glance, then each with its comparison and with what must be known
to read it: tasks, seeds, tuning, devices, code.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pandas import DataFrame, notna

from denspu._words import many
from denspu.benchmark.paired import (
    FEWEST_SEEDS,
    caption_of,
    differences,
    differences_grid,
    how_to_read,
    verdicts,
)
from denspu.benchmark.record import Record, failed, read_records, recorded
from denspu.benchmark.spec import METRICS, Row, Spec, Task
from denspu.benchmark.spec_file import load_spec
from denspu.benchmark.tables import (
    MISSING,
    Found,
    markdown_grid,
    plain,
    tables_of,
    title_of,
)

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
        parts.append(table.markdown())
    for caption, link in pictures(spec, records):
        parts.append(f"![{plain(f'{caption}: {spec.title}')}]({link})")
    if found:
        parts += [
            f"**{plain(caption_of(spec))}**",
            differences_grid(spec, found).markdown(),
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


# --- what must be known to read a table ----------------------------------------------

OURS = ("benchmarks", "specs")
"""Folders of the specs that come with denspu."""
NEEDED = {"accuracy", "balanced_accuracy", "recall"}
"""Figures that tell the classes' sizes."""
LEAST_GAP = 1e-3
"""Recalls of the two classes that lie nearer do not tell the classes' sizes."""


def alike_but_labels(tasks: Sequence[Task]) -> list[list[Task]]:
    """Return tasks in groups that differ in name and number of labels alone."""
    groups: dict[Task, list[Task]] = {}
    for task in tasks:
        groups.setdefault(replace(task, name="any", n_labeled=1), []).append(task)
    return list(groups.values())


def task_words(tasks: Sequence[Task]) -> str:
    """Say in a line what tasks are made of that differ in their labels alone."""
    task = tasks[0]
    facts = [f"data set {task.dataset}"]
    if task.positive is not None:
        facts.append(f"positive classes {', '.join(map(str, task.positive))}")
    if task.keep_positive < 1:
        facts.append(f"{100 * task.keep_positive:g} % of the positives kept")
    facts += [task.scenario, task.mechanism.upper()]
    counts = [
        f"{t.n_labeled:,}"
        if isinstance(t.n_labeled, int)
        else f"{100 * t.n_labeled:g} %"
        for t in tasks
    ]
    of = "positives" if task.share_of == "positives" else "training set's size"
    if all("%" in count for count in counts):
        labels = f"{', '.join(counts)} of the {of}"
    else:
        labels = ", ".join(f"{c} of the {of}" if "%" in c else c for c in counts)
    return f"{', '.join(facts)}; labelled: {labels}"


def _tasks(spec: Spec) -> list[str]:
    if len(spec.tasks) == 1:
        return [f"Task: {task_words(spec.tasks)}."]
    return [
        f"{'; '.join(t.name for t in group)}: {task_words(group)}."
        for group in alike_but_labels(spec.tasks)
    ]


def notes_of(spec: Spec, records: Sequence[Record]) -> list[str]:
    """Return what must be known to read a spec's tables, as sentences."""
    found = Found(spec, records)
    said = _tasks(spec)
    if any(table.has_printed for table in tables_of(spec, records)):
        said.append("In brackets: what the paper prints, and ours minus it.")
    said.append(f"{_which_seeds(spec)} {_selection(spec)}")
    said.extend(_tuning(spec))
    said.extend(_trivial(found))
    said.extend(_sizes(found))
    said.extend(_devices(found))
    said.extend(f"{row.name}: {row.note}" for row in spec.rows if row.note)
    if spec.note:
        said.append(spec.note)
    if found.strangers:
        said.append(
            f"{found.strangers} recorded cells are left out: the spec no longer asks "
            "for them."
        )
    return said


def _which_seeds(spec: Spec) -> str:
    fewer = [row for row in spec.rows if row.seeds is not None]
    groups = [spec.seeds, *(row.seeds or () for row in fewer)]
    every, *others = (", ".join(map(str, group)) for group in groups)
    parts = [f"{row.name}: {some}" for row, some in zip(fewer, others, strict=True)]
    return f"Seeds: {'; '.join([every, *parts])}."


def _selection(spec: Spec) -> str:
    own = [row.name for row in spec.rows if row.selection == "label-free"]
    text = "Judged are the last epoch's weights, never those of the best epoch on the "
    if not own:
        return f"{text}test set."
    return (
        f"{text}test set; {' · '.join(own)}: those that the method's own label-free "
        "rule chose."
    )


def _tuning(spec: Spec) -> list[str]:
    """Say which settings were tried out on these data, a line for each history."""
    text = "Settings were fixed beforehand and not tried out on these data"
    by_words: dict[str, list[str]] = {}
    for row in spec.rows:
        if row.tuning:
            by_words.setdefault(row.tuning, []).append(row.name)
    if not by_words:
        return [f"{text}."]
    tried = (f"Settings of {' · '.join(n)}: {w}." for w, n in by_words.items())
    return [f"{text}, but for those of the rows that follow.", *tried]


def _trivial(found: Found) -> list[str]:
    """Say what calling every row positive would score, to hold each F1 against."""
    tasks: dict[str, list[str]] = {}
    for task in found.spec.tasks:
        records = [r for row in found.spec.rows for r in found.good(row, task)]
        share = share_of_positives([r.metrics for r in records])
        if share is not None:
            f1 = 2 * share / (1 + share)
            words = f"accuracy {100 * share:.2f}, F1 {100 * f1:.2f}"
            tasks.setdefault(words, []).append(task.name)
    if not tasks:
        return []
    said = [f"{words} on {', '.join(names)}" for words, names in tasks.items()]
    if len(tasks) == 1:
        said = list(tasks)
    return [f"Calling every test row positive: {'; '.join(said)}."]


def share_of_positives(metrics: Sequence[Mapping[str, float]]) -> float | None:
    """Return the share of positives among the rows that figures are of.

    Accuracy is the mean of both classes' recalls, each weighted by its share.
    """
    best, gap = None, LEAST_GAP
    for found in metrics:
        if not found.keys() >= NEEDED:
            continue
        recall = found["recall"]
        of_negatives = 2 * found["balanced_accuracy"] - recall
        if abs(recall - of_negatives) > gap:
            gap = abs(recall - of_negatives)
            best = (found["accuracy"] - of_negatives) / (recall - of_negatives)
    return best


def _sizes(found: Found) -> list[str]:
    """Say how many negatives rows with the paper's ending chose.

    Where the boundary leaves fewer rows outside than were asked for, all are taken, and
    how they were to be chosen makes no difference.
    """
    words: dict[str, str] = {}
    for row in found.spec.rows:
        records = [r for task in found.spec.tasks for r in found.good(row, task)]
        chosen = [r.extra.get("stages", {}).get("select", {}) for r in records]
        if counts := [facts["negatives"] for facts in chosen if "negatives" in facts]:
            words[row.name] = _span(counts)
    if not words:
        return []
    [(usual, _)] = Counter(words.values()).most_common(1)
    others = [f"{name}: {count}" for name, count in words.items() if count != usual]
    return [f"Size of Ñ: {'; '.join([usual, *others])}."]


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _devices(found: Found) -> list[str]:
    good = [r for r in found.records.values() if not failed(r)]
    devices = Counter(re.sub(r"\b1 threads$", "1 thread", r.device) for r in good)
    if not devices:
        return []
    names = [
        name if len(devices) == 1 else f"{name} ({count} cell{'s' * (count > 1)})"
        for name, count in devices.most_common()
    ]
    text = "Seconds: median over seeds"
    text += ", of several tasks the least and the most" * (found.spec.layout == "tasks")
    text += f"; device: {', '.join(names)}"
    most = max(r.extra.get("jobs", 1) for r in good)
    text += f", up to {most} cells at once." if most > 1 else "."
    if kept := [row.name for row in found.spec.rows if row.keeps_to_cpu]:
        text += f" On a CPU in any case: {' · '.join(kept)}."
    if any("shared_encoder" in r.seconds for r in good):
        text += (
            " “+ encoder”: seconds of the encoder that rows share, trained once a seed "
            "for all cells that can."
        )
    return [text, _commits(good)]


def _commits(records: Sequence[Record]) -> str:
    """Say which versions of the code the records are of."""
    names = Counter(r.commit.removesuffix("-dirty")[:12] for r in records)
    text = f"Code: commit{'' if len(names) == 1 else 's'} {', '.join(names)}."
    dirty = sum(r.commit.endswith("-dirty") for r in records)
    if not dirty:
        return text
    return f"{text[:-1]}; {many(dirty, 'cell')} ran with uncommitted changes."


def command_of(spec: Spec) -> str:
    """Return the command that makes the records of a spec."""
    path = Path(spec.path or f"{spec.name}.toml")
    if path.parts[-3:-1] == OURS:
        path = Path(*path.parts[-3:])  # wherever the repository lies
    return f"denspu bench run {shlex.quote(str(path))}"


# --- all tables on one screen --------------------------------------------------------

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
