"""Write src/denspu/catalogue.json from the facts that the classes state, or check it.

    python benchmarks/catalogue.py [--check]

``make catalogue`` runs it. Nobody edits the file by hand.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import denspu
from denspu._parameters import About, Configured
from denspu._registry import KINDS
from denspu.classifiers import FROM_SKLEARN

FILE = Path(denspu.__file__).with_name("catalogue.json")


def described() -> list[type[Configured]]:
    """Return every class of the library that states a key."""
    for module in pkgutil.walk_packages(denspu.__path__, "denspu."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, queue = [], [Configured]
    while queue:
        cls = queue.pop()
        queue += cls.__subclasses__()
        if cls.about.key and "about" in vars(cls):
            found.append(cls)
    return [cls for cls in found if cls.__module__.startswith("denspu.")]


def line(target: str, summary: str, about: About, defaults: dict[str, Any]) -> Any:
    """Return one line of the catalogue."""
    facts = asdict(about) | {"target": target, "summary": summary}
    return facts | {"defaults": defaults}


def catalogue() -> str:
    """Return the text of the file: the library's own method, then by kind and key."""
    lines = [
        line(f"{cls.__module__}:{cls.__qualname__}", summary_of(cls), cls.about, {})
        for cls in described()
    ]
    lines += [line(*described) for described in FROM_SKLEARN]
    said = {(row["kind"], row["key"]) for row in lines}
    for row in json.loads(FILE.read_text(encoding="utf-8")):
        if (row["kind"], row["key"]) not in said:
            lines.append(row)
    lines.sort(
        key=lambda row: (
            KINDS.index(row["kind"]),
            row["key"] != "dens_pu",
            not row["deep"],
            row["key"],
        )
    )
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in lines)
    return f"[\n{rows}\n]\n"


def summary_of(cls: type) -> str:
    """Return the first line of a class's docstring, without its full stop."""
    return (inspect.getdoc(cls) or "").splitlines()[0].rstrip(".")


def main() -> None:
    text = catalogue()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text:
        raise SystemExit(f"{FILE.name} is out of date: run `make catalogue`")


if __name__ == "__main__":
    main()
