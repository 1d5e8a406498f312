"""The registry: true facts, real targets, helpful refusals, cheap to import."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import denspu
from denspu import DensPU, make
from denspu._random import Randomness
from denspu._registry import (
    PART_METHODS,
    prepare_part,
    refuse_kind,
    registry,
    resolve_part,
)
from denspu.density import Midpoint
from denspu.encoders import CAEEncoder, IdentityEncoder
from denspu.exceptions import InvalidParameterError, UnknownPartError

ROOT = Path(__file__).parent.parent
ENTRIES = list(registry())


def test_the_written_facts_and_public_names_are_those_of_the_classes():
    """``make catalogue`` writes them; nobody edits them by hand."""
    script = ROOT / "benchmarks" / "catalogue.py"
    spec = importlib.util.spec_from_file_location("catalogue", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.catalogue() == module.CATALOGUE.read_text("utf-8")
    assert module.api_page() == module.API.read_text("utf-8")


def test_every_entry_builds_what_it_names():
    for entry in ENTRIES:
        part = entry.build()
        assert type(part) is entry.load()
        for methods in PART_METHODS.get(entry.kind, ("fit", "predict")):
            found = [callable(getattr(part, m, None)) for m in methods.split(" or ")]
            assert any(found), entry.key


def test_make_builds_by_key():
    model = make("dens_pu", random_state=3, contamination="ratio")
    assert type(model) is DensPU
    assert (model.random_state, model.contamination) == (3, "ratio")


def test_make_sets_nested_parameters():
    model = make("dens_pu", densifier="midpoint", densifier__k=0.4)
    assert isinstance(model.densifier, Midpoint)
    assert model.densifier.k == 0.4


def test_unknown_key_suggests_the_nearest():
    with pytest.raises(UnknownPartError, match=r"no method called 'denspu'.*'dens_pu'"):
        make("denspu")


def test_unknown_parameter_suggests_the_nearest():
    with pytest.raises(
        InvalidParameterError, match=r"no parameter 'detecter'\. Did you mean 'detector"
    ):
        make("dens_pu", detecter="isolation_forest")


def test_key_of_another_kind_says_so():
    with pytest.raises(UnknownPartError, match="'cae' is an encoder, not a detector"):
        resolve_part("cae", "detector", argument="detector")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Midpoint(), r"is not an encoder: .*fit and transform"),
        (IdentityEncoder, r"is not an encoder"),
        (
            7,
            r"encoder=7 is not an encoder: it must be one of cae, contrastive, ",
        ),
    ],
)
def test_a_part_of_the_wrong_kind(value, words):
    with pytest.raises(InvalidParameterError, match=words):
        resolve_part(value, "encoder", argument="encoder")


def test_an_object_passes_through_and_a_key_is_built_afresh():
    part = Midpoint()
    assert resolve_part(part, "densifier", argument="densifier") is part
    first = resolve_part("midpoint", "densifier", argument="densifier")
    assert first is not resolve_part("midpoint", "densifier", argument="densifier")


@pytest.mark.parametrize(
    ("argument", "value", "words"),
    [
        ("encoder", "tabullar", "no encoder called 'tabullar'. Did you mean 'tabular'"),
        ("densifier", "cae", "'cae' is an encoder, not a densifier"),
        ("detector", "isolation", "Did you mean 'isolation_forest'"),
        ("selector", Midpoint(), "is not a selector"),
        ("classifier", "logistics", "Did you mean 'logistic'"),
        ("refiner", "network_", "Did you mean 'network'"),
        ("refiner", Midpoint(), "is not a refiner"),
        ("encoder", None, "the name of an encoder or such an object"),
    ],
)
def test_methods_ask_the_registry(blobs, argument, value, words):
    with pytest.raises(InvalidParameterError, match=words.replace(".", r"\.")):
        DensPU(**{argument: value}).fit(blobs.X, blobs.y)


def test_part_without_a_suggestion_lists_what_exists():
    with pytest.raises(UnknownPartError) as caught:
        registry().get("qqq", "densifier")
    assert "Did you mean" not in str(caught.value)
    assert "Known: great_circle, literal, midpoint, mixup, none." in str(caught.value)


def test_listing_needs_neither_torch_nor_scikit_learn():
    code = (
        "import sys, json\n"
        "from denspu._registry import registry\n"
        "json.dumps([e.facts() for e in registry()])\n"
        "heavy = {'torch', 'sklearn', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_public_names_are_real_and_listed():
    assert dir(denspu) == denspu.__all__
    for name in denspu.__all__:
        assert getattr(denspu, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        denspu.nonsense  # noqa: B018


def test_defaults_of_an_entry_reach_the_fit(blobs):
    model = DensPU(classifier="logistic", random_state=0).fit(blobs.X, blobs.y)
    assert model.classifier_.max_iter == 1000
    assert np.mean(model.predict(blobs.X) == blobs.truth) > 0.9


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
