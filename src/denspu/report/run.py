"""The report of a run: one HTML file that needs nothing else.

Everything that comes from the user's files reaches the page through jinja2's escaping
or, as data for the script, through :func:`page_json`. A content security policy forbids
the page to load anything, and to run any script but its own.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from denspu.exceptions import InvalidInputError, MissingDependencyError
from denspu.report import run_text as text
from denspu.report import run_words as words
from denspu.report.run_charts import (
    Whisker,
    curve_charts,
    histogram,
    sensitivity_chart,
    ticks,
)
from denspu.report.run_gallery import galleries
from denspu.report.run_items import Shower, short_name
from denspu.report.run_map import make_map
from denspu.report.run_plain import Speaker, checks_in_order, list_words
from denspu.report.run_table import item_table
from denspu.runs.facts import RunFacts, RunRows

HERE = Path(__file__).parent
MAIN = ("recall", "precision")
"""Figures shown at once."""
LISTED = 200
"""Skipped items and copies named in the page; the files hold all."""
LETTERS = "P stands for your labelled positives, U for the unlabelled rows."


def write_run_report(path: str | Path, facts: RunFacts, rows: RunRows) -> Path:
    """Write the report of a run as one HTML file, and return where it is.

    Parameters
    ----------
    path : path
        The file to write, such as ``run/report.html``. It is put in place whole: a
        reader never sees half of it.
    facts : RunFacts
    rows : RunRows
    """
    path = Path(path)
    page = render(facts, rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.part")
    try:
        half.write_text(page, encoding="utf-8", errors="replace")
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
    return path


def render(facts: RunFacts, rows: RunRows) -> str:
    """Return the page."""
    _check(facts, rows)
    script = (HERE / "run.js").read_text(encoding="utf-8")
    template = _environment().get_template("run.html.jinja")
    return str(
        template.render(
            **_content(facts, rows),
            style=(HERE / "run.css").read_text(encoding="utf-8"),
            script=script,
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        )
    )


def _environment() -> Any:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise MissingDependencyError(
            "Reports need jinja2: pip install 'denspu[report]'"
        ) from error
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "whole": text.whole,
        "number": text.number,
        "percent": text.percent,
        "estimate": text.estimate,
        "plain": text.plain,
        "seconds": text.seconds,
        "readable": text.readable,
        "json": page_json,
    }
    return environment


def _visible(value: Any) -> Any:
    """Clean every text that the template shows, safe parts left out."""
    return text.clean(value) if type(value) is str else value


def page_json(data: Any) -> Any:
    """Return data as JSON that cannot end the script element it stands in.

    Examples
    --------
    >>> print(page_json({"name": "</script>"}))
    {"name":"\\u003c/script\\u003e"}
    """
    from markupsafe import Markup

    dumped = json.dumps(
        data, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    for character in "<>&\u2028\u2029":
        dumped = dumped.replace(character, f"\\u{ord(character):04x}")
    return Markup(dumped)


def _check(facts: RunFacts, rows: RunRows) -> None:
    """Refuse rows that do not belong to the facts."""
    sizes = {
        "score_positive": (len(rows.score_positive), len(rows.positive)),
        "held_out": (len(rows.held_out), len(rows.positive)),
        "score_unlabeled": (len(rows.score_unlabeled), len(rows.unlabeled)),
        "probability": (len(rows.probability), len(rows.unlabeled)),
        "rank": (len(rows.rank), len(rows.unlabeled)),
        "decision": (len(rows.decision), len(rows.unlabeled)),
        "stage": (len(rows.stage), len(rows.unlabeled)),
    }
    wrong = [
        f"rows.{name} has {found:,} entries for {wanted:,} items"
        for name, (found, wanted) in sizes.items()
        if found != wanted
    ]
    if wrong:
        raise InvalidInputError(f"{'; '.join(wrong)}. Give one entry an item.")


# --- what the template shows --------------------------------------------------------


def _content(facts: RunFacts, rows: RunRows) -> dict[str, Any]:
    shower, speaker = Shower(facts, rows), Speaker.of(facts, rows)
    shown = galleries(facts, rows, shower)
    counts = {g.key: len(g.cards) for g in shown}
    skipped, copies = len(facts.skipped), len(facts.copies)
    held = rows.held_out if rows.held_out.any() else np.ones_like(rows.held_out)
    threshold = float(facts.threshold.get("value", 0.0))
    table = item_table(facts, rows, shower)
    return {
        "facts": facts,
        "title": _title(facts),
        "created": text.moment(facts.created),
        "noun": words.noun(facts.kind),
        "noun_one": words.noun(facts.kind, 1),
        "noun_of_unlabeled": words.noun(facts.kind, facts.n_unlabeled),
        "headline": words.headline(facts),
        "calls": words.calls(facts, speaker.say(facts.threshold.get("sentence", ""))),
        "sureness": words.sureness(facts),
        "basis": words.basis(facts),
        "doubts": [speaker.say(t) for t in words.doubts(facts)],
        "checks": checks_in_order(facts, speaker),
        "letters": "" if speaker.spell else LETTERS,
        "lists": [list_words(found, speaker) for found in facts.lists],
        "pointers": words.look_first(facts, counts, skipped, copies),
        "histogram": histogram(
            rows.score_positive[held], rows.score_unlabeled, threshold
        ),
        "seen": not rows.held_out.any(),
        "map": make_map(facts, rows, shower),
        "map_note": speaker.say(rows.map_note),
        "galleries": shown,
        "numeric": shower.numeric,
        "table": table,
        "whiskers": _whiskers(facts),
        "lifts": _lifts(facts),
        "prior": _prior(facts),
        "prior_words": words.prior_words(facts),
        "labelled_words": words.labelled_words(facts),
        "prior_sentence": speaker.say(facts.prior.get("sentence") or ""),
        "interval_of": text.percent_range(
            facts.prior.get("low"), facts.prior.get("high")
        ),
        "sensitivity_keys": _sensitivity_keys(facts),
        "split_path": text.split_path,
        "figure_name": lambda key: words.figure_words(key)[0],
        "sensitivity_words": words.sensitivity_words(facts.sensitivity, facts.kind),
        "sensitivity_chart": sensitivity_chart(facts.sensitivity),
        "stages": [words.stage_words(s) for s in facts.stages],
        "curves": curve_charts(facts.curves),
        "skipped": [
            {"item": short_name(s.get("item", "")), "reason": s.get("reason", "")}
            for s in facts.skipped[:LISTED]
        ],
        "copies": [
            {k: short_name(v) for k, v in c.items()} for c in facts.copies[:LISTED]
        ],
        "settings": words.flat(facts.settings),
        "versions": words.flat(facts.versions),
        "times": [(text.readable(k), v) for k, v in facts.seconds.items()],
    }


def _title(facts: RunFacts) -> str:
    """Return where the items came from, for the top of the page."""
    named = facts.sources.get("unlabeled") or facts.sources.get("table") or facts.kind
    return text.plain(named, 120)


def _figures(facts: RunFacts) -> list[dict[str, Any]]:
    return list((facts.evaluation or {}).get("figures", {}).values())


def _whiskers(facts: RunFacts) -> list[Whisker]:
    """Return the figures between 0 and 1, for the chart."""
    made = []
    for figure in _figures(facts):
        value, low, high = (figure[k] for k in ("value", "low", "high"))
        if figure["name"] == "lift" or not all(map(text.is_number, (value, low, high))):
            continue
        name, meaning = words.figure_words(figure["name"])
        made.append(
            Whisker(
                name=name,
                meaning=meaning,
                dot=round(100 * value, 2),
                left=round(100 * low, 2),
                width=round(100 * (high - low), 2),
                value=text.estimate(value),
                interval=text.percent_range(low, high),
                how=f"{text.readable(figure['name'])} = {figure.get('how', '')}",
                note=figure.get("note", ""),
                main=figure["name"] in MAIN,
            )
        )
    return made


def _sensitivity_keys(facts: RunFacts) -> list[str]:
    known = {key for row in facts.sensitivity for key in row}
    return [k for k in ("precision", "recall", "f1", "accuracy") if k in known]


def _lifts(facts: RunFacts) -> list[str]:
    """Return the figures that are no shares, in words."""
    return [
        f"Positives are {text.number(f['value'], 2)} times as frequent among the "
        f"calls as among all unlabelled {words.noun(facts.kind)} "
        f"({text.number(f['low'], 2)} to {text.number(f['high'], 2)})."
        for f in _figures(facts)
        if f["name"] == "lift" and text.is_number(f["value"])
    ]


@dataclass(frozen=True)
class PriorChart:
    """Estimates of the prior as dots over its interval."""

    left: float
    width: float
    dots: list[tuple[str, float, str]]
    """Estimator, place in percent, value."""
    ticks: list[tuple[float, str]]


def _prior(facts: RunFacts) -> PriorChart | None:
    ends = [facts.prior.get(key) for key in ("value", "low", "high")]
    if not all(map(text.is_number, ends)):
        return None
    value, low, high = (float(v) for v in ends if v is not None)
    found = {
        words.estimator_words(k): float(v)
        for k, v in (facts.prior.get("estimates") or {}).items()
        if text.is_number(v)
    }
    found = {"used in this run": value, **found}
    end = min(1.0, 1.15 * max(high, *found.values(), 1e-6))
    dots = [(k, round(100 * v / end, 2), text.percent(v)) for k, v in found.items()]
    marks = [(t.at, text.percent(end * t.at / 100)) for t in ticks(0.0, end, 4)]
    return PriorChart(
        round(100 * low / end, 2),
        round(100 * (high - low) / end, 2),
        dots,
        marks,
    )
