"""What a method hands to its parts."""

from __future__ import annotations

import pytest

from denspu._random import Randomness
from denspu._registry import prepare_part, refuse_kind
from denspu.encoders import CAEEncoder, IdentityEncoder
from denspu.exceptions import InvalidParameterError


def test_prepare_part_hands_down_what_the_part_left_open():
    given = CAEEncoder()
    part = prepare_part(given, Randomness(0), "encoder", device="cpu", verbose=2)
    assert part is not given
    assert part.random_state == Randomness(0).seed("encoder")
    assert (part.device, part.verbose) == ("cpu", 2)
    assert (given.random_state, given.device, given.verbose) == (None, "auto", 0)


def test_prepare_part_keeps_what_the_part_was_given():
    given = CAEEncoder(random_state=7, device="cuda", verbose=1)
    part = prepare_part(given, Randomness(0), "encoder", device="cpu", verbose=2)
    assert (part.random_state, part.device, part.verbose) == (7, "cuda", 1)


def test_prepare_part_copies_objects_without_parameters():
    class Plain:
        state = 0

    given = Plain()
    assert isinstance(prepare_part(given, Randomness(0), "x"), Plain)
    assert prepare_part(given, Randomness(0), "x") is not given


def test_refuse_kind():
    with pytest.raises(
        InvalidParameterError,
        match=r"encoder=CAEEncoder takes image input, and would be given a table",
    ):
        refuse_kind(CAEEncoder(), "table", "encoder")
    refuse_kind(CAEEncoder(), "image", "encoder")
    refuse_kind(IdentityEncoder(), "table", "encoder")
    refuse_kind(object(), "table", "encoder")
