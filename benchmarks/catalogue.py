"""Write what the classes state into src/denspu/catalogue.json and docs/api.md.

    python benchmarks/catalogue.py [--check]

``make catalogue`` runs it. Nobody edits the two files by hand. The public names are
those that README, docs and examples import.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

import denspu
from denspu._parameters import About, Configured
from denspu._registry import KINDS
from denspu.classifiers import FROM_SKLEARN

ROOT = Path(__file__).parent.parent
CATALOGUE = Path(denspu.__file__).with_name("catalogue.json")
API = ROOT / "docs" / "api.md"


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
    for row in json.loads(CATALOGUE.read_text(encoding="utf-8")):
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


def summary_of(thing: Any) -> str:
    """Return the first line of a docstring, without its full stop."""
    return (inspect.getdoc(thing) or "").splitlines()[0].rstrip(".")


IMPORT = re.compile(
    r"^\s*(?:>>> )?from (denspu[\w.]*) import (\([^)]*\)|.+)$", re.MULTILINE
)
API_HEAD = """# Public names

The import paths that README, docs and examples show. They keep working; all else is
private and may move. `make catalogue` writes this page.
"""


def api_page() -> str:
    """Return the page of public names: module, name, what it is for."""
    found: dict[str, set[str]] = defaultdict(set)
    pages = [
        ROOT / "README.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*.py"),
    ]
    for page in pages:
        for module, names in IMPORT.findall(page.read_text(encoding="utf-8")):
            names = re.sub(r"#.*|[()]", "", names)
            found[module] |= {n.split(" as ")[0].strip() for n in names.split(",")}
    found["denspu"] |= set(denspu.__all__)
    lines = [API_HEAD]
    for module in sorted(found):
        lines += [f"## {module}\n", "| name | |", "|---|---|"]
        home = importlib.import_module(module)
        for name in sorted(found[module] - {""}, key=str.casefold):
            thing = getattr(home, name)
            told = callable(thing) or inspect.ismodule(thing)
            lines.append(f"| `{name}` | {summary_of(thing) if told else ''} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    written = {CATALOGUE: catalogue(), API: api_page()}
    for path, text in written.items():
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{path.name} is out of date: run `make catalogue`")


if __name__ == "__main__":
    main()
