"""The classes of other packages that a saved model may hold, as a list for the docs."""

from __future__ import annotations

from pathlib import Path

from denspu.persistence.allowed import INSIDE, LAYERS, SKLEARN

RECORDS = Path()
"""There are none: the list is the code's."""


def table(_: Path) -> str:
    """Return the list, one line a package."""
    groups = {
        "Estimators of scikit-learn": SKLEARN,
        "What they are made of": INSIDE,
        "Layers of torch": LAYERS,
    }
    lines = []
    for title, names in groups.items():
        held = ", ".join(f"`{name.replace(':', '.')}`" for name in names)
        lines.append(f"- {title}: {held}.")
    return "\n".join(lines)
