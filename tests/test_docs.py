"""README and docs say what is so: tables, links, commands and defaults."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_agree_with_the_records():
    assert load(ROOT / "benchmarks" / "update_docs.py").outdated() == []


def test_links_lead_somewhere():
    for page in PAGES:
        check_links(page)


def check_links(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_example_runs():
    text = (ROOT / "README.md").read_text("utf-8")
    example = re.search(r"```python\n(from denspu.*?)```", text, re.DOTALL)[1]
    names = {}
    exec(compile(example, "README.md", "exec"), names)
    assert names["model"].stages_.names[-1] == "refine"


def test_the_example_of_a_fitted_model_runs(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "evaluation.md").read_text("utf-8")
    example = re.search(r"```python\n(from denspu import.*?)```", text, re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "evaluation.md", "exec"), {})
    assert "precision of at least 0.95" in capsys.readouterr().out
    assert (tmp_path / "run" / "model" / "manifest.json").exists()


def test_make_targets_named_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.M):
        assert re.search(rf"^{target}:", makefile, re.M)


def test_every_method_has_a_page():
    from denspu._registry import registry

    for key in registry().of_kind("method"):
        assert (ROOT / "docs" / "methods" / f"{key}.md").exists()
