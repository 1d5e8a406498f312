"""Every example in a docstring runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import warnings

import denspu


def test_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for info in pkgutil.walk_packages(denspu.__path__, "denspu."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for test in finder.find(module, info.name):
                runner.run(test)
    assert runner.failures == 0, f"{runner.failures} example(s) failed, see above"
    assert runner.tries > 50
