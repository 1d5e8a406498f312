"""Every example in a docstring runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import warnings

import pytest

import denspu

MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(denspu.__path__, "denspu.")
    if not info.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for test in finder.find(module, name):
            runner.run(test)
    assert runner.failures == 0, f"{runner.failures} example(s) of {name}, see above"


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in ("denspu.methods.dens_pu", "denspu.density", "denspu._random"):
        assert any(t.examples for t in finder.find(importlib.import_module(name)))
