"""The tree of errors is the one drawn in the docstring."""

from __future__ import annotations

import inspect
import re

import pytest

from denspu import exceptions

DRAWN = re.findall(
    r"([│├└─ ]*)(\w+(?:Error|Warning))(?: \((\w+)\))?", exceptions.__doc__
)
CLASSES = {
    name: cls
    for name, cls in inspect.getmembers(exceptions, inspect.isclass)
    if issubclass(cls, Exception)
}


def test_everything_is_drawn():
    assert {name for _, name, _ in DRAWN if name in CLASSES} == set(CLASSES)


@pytest.mark.parametrize(
    ("name", "builtin"), [(n, b) for _, n, b in DRAWN if n in CLASSES and b]
)
def test_each_inherits_its_builtin(name, builtin):
    assert builtin in [cls.__name__ for cls in CLASSES[name].__mro__]


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_one_root_for_errors_and_one_for_warnings(name):
    root = "DensPUWarning" if name.endswith("Warning") else "DensPUError"
    assert issubclass(CLASSES[name], CLASSES[root])
