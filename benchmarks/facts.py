"""The registry's facts about methods as a table for the docs."""

from __future__ import annotations

from denspu._registry import registry

RECORDS = None
YES = {True: "yes", False: ""}


def table(records: None = RECORDS) -> str:
    """Return the Markdown table, in the order of the registry."""
    lines = [
        "| key | idea | paper | labels | needs a prior | network | known negatives |",
        "|---|---|---|---|---|---|---|",
    ]
    for key, entry in registry().of_kind("method").items():
        lines.append(
            f"| [{key}](methods/{key}.md) | {entry.summary} | {entry.paper} "
            f"| {entry.assumption or ''} | {YES[entry.needs_prior]} "
            f"| {YES[entry.deep]} | {YES[entry.uses_known_negatives]} |"
        )
    return "\n".join(lines)
