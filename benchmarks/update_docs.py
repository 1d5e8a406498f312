"""Write the tables of README and docs from the records, or check that they agree.

    python benchmarks/update_docs.py [--check]

A table stands between ``<!-- table: NAME -->`` and ``<!-- end table -->``.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # some scripts use others
PAGES = (
    "README.md",
    "docs/measured.md",
    "docs/paper.md",
    "docs/detectors.md",
    "docs/methods.md",
    "docs/priors.md",
    "docs/evaluation.md",
    "docs/recipe.md",
    "docs/real.md",
    "docs/walkthroughs.md",
    "docs/export.md",
    "docs/persistence.md",
    "docs/gpu-plan.md",
    "docs/methods/dens_pu.md",
    "docs/methods/vpu.md",
)
SOURCES = {
    "headline": "headline.py",
    "digits": "digits.py",
    "paper": "paper_preset.py",
    "detectors": "detectors.py",
    "neighbours": "neighbours.py",
    "recipe": "recipe.py",
    "ablation": "results.py:ablation",
    "ablation-labels": "results.py:ablation_labels",
    "rare": "rare.py",
    "small-tables": "small_tables.py",
    "facts": "facts.py",
    "methods": "methods.py",
    "methods-breast-cancer": "methods.py:shares:breast_cancer",
    "methods-rare": "methods.py:shares:rare",
    "methods-cifar10": "methods.py:shares:cifar10",
    "methods-fashion-mnist": "methods.py:shares:fashion-mnist",
    "methods-fashion-mnist-part": "methods.py:shares:fashion-mnist, 10000 rows",
    "priors": "priors.py",
    "pu-metrics": "pu_metrics.py",
    "speed": "speed_contrastive.py",
    "large-images": "large_images.py",
    "fit-images": "fit_images.py",
    "export": "export_table.py",
    "bench-cost": "bench_cost.py",
    "bench-seconds": "costs.py",
    "bench-missing": "results.py:missing",
    "vpu-settings": "vpu_settings.py",
    "short-rounds": "short_rounds.py",
    "stored": "stored.py",
    "wrong-prior": "wrong_prior.py",
    "real-ranking": "real.py:ranking_table:table/sealed-a/40/random",
    "real-sar": "real.py:ranking_table:table/sealed-a/40/sar",
    "real-easiest": "real.py:ranking_table:table/sealed-a/40/easiest",
    "real-words": "real.py:words_table:table/sealed-a/40/random",
    "real-chances": "real.py:chances_table:table/sealed-a/40/random",
    "real-development": "real.py:ranking_table:table/development/40/random",
}
"""Script and, after colons, the function that makes the table, and its argument."""
MARK = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end table -->)", re.DOTALL)


def table(name: str) -> str:
    """Return the table that a benchmark script makes of its records."""
    title = f"benchmark of {name}"
    script, *function = SOURCES[name].split(":")
    spec = importlib.util.spec_from_file_location(title, HERE / script)
    module = sys.modules[title] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    make: Callable[..., str] = getattr(module, function[0] if function else "table")
    return make(module.RECORDS, *function[1:])


def filled(text: str) -> str:
    """Return a page with its tables made anew."""
    return MARK.sub(lambda m: f"{m[1]}{table(m[2])}\n{m[3]}", text)


def outdated() -> list[str]:
    """Return the pages that disagree with the records."""
    pages = [HERE.parent / page for page in PAGES]
    return [
        p.name for p in pages if filled(p.read_text("utf-8")) != p.read_text("utf-8")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        raise SystemExit(f"out of date: {outdated()}" if outdated() else 0)
    for page in (HERE.parent / page for page in PAGES):
        page.write_text(filled(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
