"""A few things stand in one place only, or nowhere."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import denspu

ROOT = Path(denspu.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def names_in(path):
    """Return every module that a file imports, wherever the import stands."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return names


def test_one_backward():
    calls = [path.name for path in FILES for _ in range(calls_of(path, "backward"))]
    assert calls == ["loop.py"]


def calls_of(path, method):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == method
        for node in ast.walk(tree)
    )


def test_no_pickle_and_no_unsafe_load():
    for path in FILES:
        used = {name.split(".")[0] for name in names_in(path)}
        assert not used & {"pickle", "joblib", "dill", "cloudpickle"}, path.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                call = ast.unparse(node.func)
                assert call != "torch.load", path.name
                if call == "np.load":
                    assert "allow_pickle=False" in ast.unparse(node), path.name


def test_no_bare_except():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, f"{path.name}:{node.lineno}"


@pytest.mark.parametrize("seeder", ["manual_seed", "seed", "set_state"])
def test_nobody_seeds_a_global_generator(seeder):
    """``_random.py`` alone seeds torch, inside a fork."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                call = ast.unparse(node.func)
                owner, _, method = call.rpartition(".")
                if method == seeder and owner in ("np.random", "torch", "random"):
                    pytest.fail(f"{path.name} calls {call}")
