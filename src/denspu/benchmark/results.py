"""A spec's records as one Markdown text, with what must be known to read its tables.

The verdicts, the tables, the comparison with the reference row, then notes: tasks,
seeds, tuning, devices, code. And of several specs: what has no record yet.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from denspu._progress import many
from denspu.benchmark.paired import (
    differences,
    differences_grid,
    how_to_read,
    verdicts,
)
from denspu.benchmark.record import Record, failed
from denspu.benchmark.spec import Spec, Task
from denspu.benchmark.tables import (
    Found,
    markdown_grid,
    plain,
    tables_of,
    title_of,
)

Pictures = Callable[[Spec, Sequence[Record]], Sequence[tuple[str, str]]]
"""What shows a spec's records: captions and links."""


def spec_markdown(
    spec: Spec,
    records: Sequence[Record],
    *,
    level: int = 1,
    pictures: Pictures = lambda spec, records: (),
) -> str:
    """Return a spec as Markdown, under a heading of some level.

    Records of other cells are not used. ``pictures`` stand below the tables.
    """
    parts = ["#" * level + " " + plain(spec.title)]
    found = differences(spec, records)
    if found:
        metric = title_of(spec.metrics[0])
        parts.append(f"{plain(str(spec.reference))}, {metric}:")
        parts.append(_bullets(verdicts(spec, found)))
    tables = tables_of(spec, records)
    for table in tables:
        if len(tables) > 1 or spec.layout == "tasks":
            parts.append(f"**{plain(table.title)}**")
        parts.append(table.markdown())
    for caption, link in pictures(spec, records):
        parts.append(f"![{plain(f'{caption}: {spec.title}')}]({link})")
    if found:
        grid = differences_grid(spec, found)
        parts += [f"**{plain(grid.title)}**", grid.markdown(), how_to_read(spec, found)]
    parts.append(_bullets(notes_of(spec, records)))
    parts.append(f"```sh\n{command_of(spec)}\n```")
    return "\n\n".join(parts)


def _bullets(sentences: Sequence[str]) -> str:
    """Return sentences as a list; a spec's notes may hold Markdown of their own."""
    return "\n".join(
        f"- {' '.join(sentence.replace('<', '&lt;').split())}" for sentence in sentences
    )


def command_of(spec: Spec) -> str:
    """Return the command that makes the records of a spec."""
    path = Path(spec.path or f"{spec.name}.toml")
    if path.parts[-3:-1] == ("benchmarks", "specs"):
        path = Path(*path.parts[-3:])  # wherever the repository lies
    return f"denspu bench run {shlex.quote(str(path))}"


# --- what must be known to read a table ----------------------------------------------


def notes_of(spec: Spec, records: Sequence[Record]) -> list[str]:
    """Return what must be known to read a spec's tables, as sentences."""
    found = Found(spec, records)
    groups = alike_but_labels(spec.tasks)
    names = ["; ".join(task.name for task in group) for group in groups]
    names = ["Task"] if len(spec.tasks) == 1 else names
    words = map(_task_words, groups)
    said = [f"{name}: {facts}." for name, facts in zip(names, words, strict=True)]
    shown = spec.metrics if spec.layout == "metrics" else spec.metrics[:1]
    claims = [claim for row in spec.rows for claim in row.printed.values()]
    if any(metric in claim for claim in claims for metric in shown):
        said.append("In brackets: what the paper prints, and ours minus it.")
    seeds = [", ".join(map(str, spec.seeds))]
    seeds += [f"{r.name}: {', '.join(map(str, r.seeds))}" for r in spec.rows if r.seeds]
    judged = (
        "Judged are the last epoch's weights, never those of the best epoch on the "
        "test set"
    )
    if own := [row.name for row in spec.rows if row.selection == "label-free"]:
        judged += (
            f"; {' · '.join(own)}: those that the method's own label-free rule chose"
        )
    said.append(f"Seeds: {'; '.join(seeds)}. {judged}.")
    said += [*_tuning(spec), *_trivial(found), *_sizes(found), *_devices(found)]
    said += [f"{row.name}: {row.note}" for row in spec.rows if row.note]
    said += [spec.note] if spec.note else []
    if found.strangers:
        said.append(
            f"{found.strangers} recorded cells are left out: the spec no longer asks "
            "for them."
        )
    return said


def alike_but_labels(tasks: Sequence[Task]) -> list[list[Task]]:
    """Return tasks in groups that differ in name and number of labels alone."""
    groups: dict[Task, list[Task]] = {}
    for task in tasks:
        groups.setdefault(replace(task, name="any", n_labeled=1), []).append(task)
    return list(groups.values())


def _task_words(tasks: Sequence[Task]) -> str:
    """Say in a line what tasks are made of that differ in their labels alone."""
    task = tasks[0]
    facts = [f"data set {task.dataset}"]
    if task.positive is not None:
        facts.append(f"positive classes {', '.join(map(str, task.positive))}")
    if task.keep_positive < 1:
        facts.append(f"{100 * task.keep_positive:g} % of the positives kept")
    facts += [task.scenario, task.mechanism.upper()]
    of = "positives" if task.share_of == "positives" else "training set's size"
    counts = [t.n_labeled for t in tasks]
    words = [f"{c:,}" if isinstance(c, int) else f"{100 * c:g} %" for c in counts]
    if all("%" in word for word in words):
        words[-1] += f" of the {of}"
    else:
        words = [f"{word} of the {of}" if "%" in word else word for word in words]
    return f"{', '.join(facts)}; labelled: {', '.join(words)}"


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
    said = [f"{words} on {', '.join(names)}" for words, names in tasks.items()]
    if len(tasks) == 1:
        said = list(tasks)
    return [f"Calling every test row positive: {'; '.join(said)}."] if said else []


def share_of_positives(metrics: Sequence[Mapping[str, float]]) -> float | None:
    """Return the share of positives among the rows that figures are of.

    Accuracy is the mean of both classes' recalls, each weighted by its share.
    """
    best, gap = None, 1e-3  # recalls that lie nearer do not tell the classes' sizes
    for found in metrics:
        if not found.keys() >= {"accuracy", "balanced_accuracy", "recall"}:
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
            ends = dict.fromkeys([min(counts), max(counts)])
            words[row.name] = " to ".join(f"{count:,}" for count in ends)
    if not words:
        return []
    [(usual, _)] = Counter(words.values()).most_common(1)
    others = [f"{name}: {count}" for name, count in words.items() if count != usual]
    return [f"Size of Ñ: {'; '.join([usual, *others])}."]


def _devices(found: Found) -> list[str]:
    """Say what seconds are of, on which devices, and which code ran."""
    good = [r for r in found.records.values() if not failed(r)]
    devices = Counter(re.sub(r"\b1 threads$", "1 thread", r.device) for r in good)
    if not devices:
        return []
    names = [
        name if len(devices) == 1 else f"{name} ({many(count, 'cell')})"
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
    commits = Counter(r.commit.removesuffix("-dirty")[:12] for r in good)
    code = f"Code: commit{'' if len(commits) == 1 else 's'} {', '.join(commits)}"
    if dirty := sum(r.commit.endswith("-dirty") for r in good):
        code += f"; {many(dirty, 'cell')} ran with uncommitted changes"
    return [text, f"{code}."]


# --- what has no record yet ----------------------------------------------------------

HEADER = ("spec", "row", "data set", "missing")
NOTHING_MISSING = "Nothing is missing."


def status_markdown(specs: Sequence[tuple[Spec, Sequence[Record]]]) -> str:
    """Return how many cells of each row and data set are missing or have failed.

    What several specs ask for is missing once, in the first of them.
    """
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    asked: set[str] = set()
    for spec, records in specs:
        found = Found(spec, records)
        rows = [row.name for row in spec.rows]
        for cell in sorted(found.cells, key=lambda cell: rows.index(cell.row.name)):
            place = (spec.name, cell.row.name, cell.task.dataset)
            count = counts.setdefault(place, Counter())
            record = found.records.get(cell.id)
            count["cells"] += 1
            count["missing"] += record is None and cell.id not in asked
            count["failed"] += record is not None and failed(record)
            asked.add(cell.id)
    lines = []
    for (name, row, dataset), count in counts.items():
        words = f"{count['missing']} of {count['cells']}"
        words += f", {count['failed']} failed" if count["failed"] else ""
        if count["missing"] or count["failed"]:
            lines.append([plain(name), plain(row), dataset, words])
    if not lines:
        return NOTHING_MISSING
    said = f"{many(sum(n['missing'] for n in counts.values()), 'cell')} missing."
    if bad := sum(n["failed"] for n in counts.values()):
        said += f" {bad} failed; `denspu bench run --retry` runs them again."
    return f"{markdown_grid(HEADER, lines)}\n\n{said}"
