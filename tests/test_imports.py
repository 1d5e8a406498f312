"""Imports go one way, and a few things stand in one place only.

The order is the plan of the house: a folder may use itself and whatever stands
below it.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import denspu

ROOT = Path(denspu.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

STOREYS = (
    {"gates"},
    {"networks", "losses", "augment", "metrics", "data"},
    {"training"},
    {"encoders", "density", "detectors", "selection", "classifiers"},
    {"priors"},
    {"refinement"},
    {"methods"},
    {"persistence", "benchmark", "scale"},
    {"runs"},
    {"report"},
    {"cli"},
)
LEVEL = {room: level for level, rooms in enumerate(STOREYS) for room in rooms}
GATES = {"base", "exceptions"}
ENTRANCES = {"denspu", "denspu.__main__"}
"""The package itself (it imports names on first use) and ``python -m denspu``."""


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module):
    """Return the folder of a module; single files at the bottom are gates."""
    name = module.split(".")[1]
    return "gates" if name.startswith("_") or name in GATES else name


def is_type_checking(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(tree):
    """Yield every module named in an import that runs."""
    for node in ast.iter_child_nodes(tree):
        if is_type_checking(node):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from imports(node)


def names_in(path):
    return list(imports(ast.parse(path.read_text(encoding="utf-8"))))


def modules():
    return {module_name(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_go_down_only(path):
    module = module_name(path)
    if module in ENTRANCES or module.startswith("denspu.data.kinds."):
        return  # a kind of data names its encoder, when asked
    here = room_of(module)
    assert here in LEVEL, f"{here} has no place in the plan"
    for name in names_in(path):
        if name.startswith("denspu.") and name in modules() - {"denspu"}:
            there = room_of(name)
            assert there == here or LEVEL[there] < LEVEL[here], f"{module} uses {name}"


def test_only_the_top_uses_the_public_front_door():
    """``from denspu import X`` inside the library would hide where X lives."""
    for path in FILES:
        if module_name(path) not in ENTRANCES:
            assert "denspu" not in names_in(path), module_name(path)


def test_the_parser_sees_imports_wherever_they_stand():
    code = (
        "import a\n"
        "if TYPE_CHECKING:\n    import hidden\n"
        "def f():\n    from b import c\n"
        "try:\n    import d\nexcept ImportError:\n    pass\n"
    )
    assert list(imports(ast.parse(code))) == ["a", "b", "b.c", "d"]


UPWARD = {"_decisions.py", "_registry.py"}
"""Below the rooms, only these reach up by name: a table of doors, and the registry."""


def test_names_that_lead_up_stand_in_two_tables():
    gates = [f for f in FILES if f.parent == ROOT and f.name != "__init__.py"]
    reach = {f.name for f in gates if "import_module" in f.read_text(encoding="utf-8")}
    assert reach == UPWARD


def test_no_relative_imports():
    for path in FILES:
        assert not [n for n in names_in(path) if n.startswith(".")], path.name


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
