"""The parameter tables: what is allowed, and what the error says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from denspu._parameters import Number, OneOf, Part, Whole, check_parameters
from denspu._registry import registry
from denspu.exceptions import InvalidParameterError


class Thing:
    """An estimator with one rule of each kind."""

    _rules = {  # noqa: RUF012
        "rate": (Number(0, 1, "neither"),),
        "size": (OneOf("all", "half"), Whole(1)),
    }

    def __init__(self, rate=0.5, size="all"):
        self.rate = rate
        self.size = size


@pytest.mark.parametrize(
    ("closed", "low", "high"),
    [
        ("both", True, True),
        ("left", True, False),
        ("right", False, True),
        ("neither", False, False),
    ],
)
def test_number_ends(closed, low, high):
    rule = Number(0, 1, closed)
    assert rule.allows(0) is low
    assert rule.allows(1) is high
    assert rule.allows(0.5)
    assert not rule.allows(-0.1)
    assert not rule.allows(1.1)


@pytest.mark.parametrize("value", [True, np.True_, "1", None, math.nan, 1j, [0.5]])
def test_not_a_number(value):
    assert not Number(0, 2).allows(value)
    assert not Whole(0, 2).allows(value)


def test_numpy_numbers_count():
    assert Number(0, 1).allows(np.float32(0.5))
    assert Whole(0, 5).allows(np.int16(5))


def test_whole():
    rule = Whole(1, 3)
    assert [rule.allows(v) for v in (0, 1, 3, 4, 2.0)] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert [Whole(4, multiple_of=4).allows(v) for v in (4, 6, 8, 0)] == [
        True, False, True, False,
    ]  # fmt: skip


def test_one_of_tells_true_from_one():
    assert OneOf(True, None).allows(True)
    assert OneOf(True, None).allows(None)
    assert not OneOf(True).allows(1)
    assert not OneOf("a").allows(np.array(["a"]))


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Number(0, 1, "neither"), "a number in (0, 1)"),
        (Number(0, 0.5, "right"), "a number in (0, 0.5]"),
        (Number(0), "a number in [0, inf)"),
        (Whole(1), "an integer in [1, inf)"),
        (Whole(0, 5), "an integer in [0, 5]"),
        (Whole(4, multiple_of=4), "a multiple of 4 in [4, inf)"),
        (OneOf("a", None), "'a' or None"),
        (Part("encoder"), "the name of an encoder or such an object"),
        (Part("detector"), "the name of a detector or such an object"),
    ],
)
def test_rules_in_words(rule, text):
    assert str(rule) == text


def test_good_parameters_pass():
    check_parameters(Thing())
    check_parameters(Thing(rate=0.1, size=3))


def test_message_names_parameter_value_and_allowed():
    with pytest.raises(InvalidParameterError) as caught:
        check_parameters(Thing(rate=1.3))
    assert str(caught.value) == (
        "The 'rate' parameter of Thing must be a number in (0, 1). Got 1.3 instead."
    )


def test_all_faults_in_one_error_with_a_suggestion():
    with pytest.raises(InvalidParameterError) as caught:
        check_parameters(Thing(rate=0, size="hallf"))
    assert "'rate'" in str(caught.value)
    assert "Got 'hallf' instead. Did you mean 'half'?" in str(caught.value)


@pytest.mark.parametrize(
    "entry",
    [e for e in registry() if e.target.startswith("denspu.")],
    ids=lambda e: e.key,
)
def test_every_rule_names_a_real_argument_and_allows_its_default(entry):
    part = entry.build()
    assert set(type(part)._rules) <= set(part.get_params(deep=False))
    check_parameters(part)
