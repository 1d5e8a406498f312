"""The report of a run: one HTML file that needs nothing else.

Everything that comes from the user's files reaches the page through jinja2's escaping
or, as data for the script, through :func:`page_json`. A content security policy forbids
the page to load anything, and to run any script but its own.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import denspu.report.words as words
from denspu import _progress as text
from denspu._files import write_text
from denspu.exceptions import MissingDependencyError
from denspu.report.parts import (
    Shower,
    curve_charts,
    galleries,
    histogram,
    item_table,
    make_map,
    percent_ticks,
    sensitivity_chart,
    typical_positives,
)
from denspu.runs.folder import RunFacts, RunRows

HERE = Path(__file__).parent
LISTED = 200
"""Skipped items and copies named in the page; the files hold all."""


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
    write_text(path, page, errors="replace")
    return path


def missing_for_pages() -> str:
    """Return what to install for a page, or nothing if all is there."""
    try:
        import_module("jinja2")
    except ImportError:
        return "No page is written: it needs jinja2, pip install 'denspu[report]'."
    return ""


def render(facts: RunFacts, rows: RunRows) -> str:
    """Return the page."""
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
    if missing := missing_for_pages():
        raise MissingDependencyError(missing)
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = "whole percent estimate plain seconds readable short_name"
    environment.filters |= {name: getattr(text, name) for name in shown.split()}
    environment.filters |= {"json": page_json}
    environment.filters["marked"] = lambda told: Markup(text.marked(told))
    return environment


def _visible(value: Any) -> Any:
    """Clean every text that the template shows, safe parts left out."""
    return text.clean(value) if type(value) is str else value


def page_json(data: Any) -> Any:
    """Return data as JSON that cannot end the script element it stands in."""
    from markupsafe import Markup

    dumped = json.dumps(
        data, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    for character in "<>&\u2028\u2029":
        dumped = dumped.replace(character, f"\\u{ord(character):04x}")
    return Markup(dumped)


def _content(facts: RunFacts, rows: RunRows) -> dict[str, Any]:
    """Return what the template shows."""
    shower = Shower(facts, rows)
    shown = galleries(facts, rows, shower)
    shares = words.shares_by_name(facts.prior)
    most = min(1.0, 1.15 * max(facts.prior.high or 0, *shares.values(), 1e-6))
    table, sentence = item_table(facts, rows, shower)
    held = rows.held_out if rows.held_out.any() else np.ones_like(rows.held_out)
    named = facts.sources.get("unlabeled") or facts.sources.get("table") or facts.kind
    return {
        "facts": facts,
        "words": words,
        "noun": words.noun(facts.kind),
        "created": text.moment(facts.created),
        "name_parts": name_parts,
        "title": text.plain(named, 120),
        "checks": words.checks_in_order(facts),
        "lists": [words.list_words(found, facts.kind) for found in facts.lists],
        "pointers": words.look_first(facts, {g["key"]: len(g["cards"]) for g in shown}),
        "histogram": histogram(
            rows.score_positive[held], rows.score_unlabeled, facts.threshold.value
        ),
        "seen": not rows.held_out.any(),
        "map": make_map(rows, shower),
        "map_note": rows.map_note,
        "galleries": shown,
        "typical": typical_positives(rows, shower),
        "shows": shower.shows,
        "columns": [text.clean(str(name)) for name in shower.columns],
        "numeric": shower.numeric,
        "table": table,
        "table_sentence": sentence,
        "whiskers": [
            figure
            for figure in facts.evaluation or ()
            if figure.name != "lift"
            and all(map(text.is_number, (figure.value, figure.low, figure.high)))
        ],
        "percent_range": text.percent_range,
        "shares": shares,
        "most": most,
        "share_ticks": percent_ticks(0.0, most),
        "sensitivity_chart": sensitivity_chart(facts.sensitivity),
        "curves": curve_charts(facts.curves),
        "listed": LISTED,
        "settings": dict(_flat(facts.settings)),
    }


def name_parts(name: str) -> tuple[str, str]:
    """Return the folder and the file of a name."""
    cut = max(name.rfind("/"), name.rfind("\\")) + 1
    return (name[:cut], name[cut:]) if cut < len(name) else ("", name)


def _flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested settings as pairs, ``a.b`` for b inside a."""
    pairs: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", text.plain(value, 600)))
    return pairs
