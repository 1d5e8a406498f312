"""The registry: unique keys, real targets, helpful refusals, cheap to import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import denspu
from denspu import DensPU, make
from denspu._registry import (
    KINDS,
    PART_METHODS,
    Entry,
    Registry,
    registry,
    resolve_part,
)
from denspu.base import (
    Densifier,
    Detector,
    Encoder,
    PUClassifier,
    Refiner,
    Selector,
)
from denspu.density import Midpoint
from denspu.encoders import IdentityEncoder
from denspu.exceptions import InvalidParameterError, UnknownPartError
from denspu.priors import PriorEstimator

ENTRIES = list(registry())
BASES = {
    "method": PUClassifier,
    "encoder": Encoder,
    "densifier": Densifier,
    "detector": Detector,
    "selector": Selector,
    "refiner": Refiner,
    "prior": PriorEstimator,
}


def ids(entry):
    return f"{entry.kind}-{entry.key}"


def test_the_walk_is_complete():
    assert {e.kind for e in ENTRIES} == set(KINDS)


@pytest.mark.parametrize("entry", registry().of_kind("method").values(), ids=ids)
def test_the_class_knows_its_use_for_known_negatives(entry):
    assert entry.load().uses_known_negatives == entry.uses_known_negatives


def test_keys_are_unique_within_a_kind():
    names = [(e.kind, e.key) for e in ENTRIES]
    assert len(names) == len(set(names))


def test_registering_twice_is_refused():
    entry = ENTRIES[0]
    with pytest.raises(ValueError, match=f"{entry.key!r} is registered twice"):
        Registry((entry, entry))


@pytest.mark.parametrize("entry", ENTRIES, ids=ids)
def test_target_imports_is_of_its_kind_and_builds(entry):
    cls = entry.load()
    assert cls.__name__ == entry.target.partition(":")[2]
    if entry.target.startswith("denspu.") and entry.kind in BASES:
        assert issubclass(cls, BASES[entry.kind])
    part = entry.build()
    assert type(part) is cls
    for name, value in entry.defaults.items():
        assert getattr(part, name) == value
    for method in PART_METHODS.get(entry.kind, ("fit", "predict")):
        assert any(callable(getattr(part, m, None)) for m in method.split(" or "))


@pytest.mark.parametrize("entry", ENTRIES, ids=ids)
def test_inputs_agree_with_the_class(entry):
    cls = entry.load()
    told = getattr(cls, "inputs", None)
    if getattr(cls, "sees", None) == "embedding":  # whatever the rows were before
        assert entry.inputs == ("embedding",)
    elif told is not None:
        assert tuple(told) == entry.inputs


@pytest.mark.parametrize("entry", ENTRIES, ids=ids)
def test_facts_are_plain_data(entry):
    facts = json.loads(json.dumps(entry.facts()))
    assert facts["key"] == entry.key
    assert facts["kind"] == entry.kind
    assert facts["inputs"] == list(entry.inputs)
    assert facts["summary"]
    assert {"paper", "needs_prior", "scenario"} <= set(facts)


@pytest.mark.parametrize("entry", registry().of_kind("method").values(), ids=ids)
def test_a_method_lives_in_a_file_of_its_key(entry):
    assert entry.target.startswith(f"denspu.methods.{entry.key}:")
    assert (Path(denspu.__file__).parent / "methods" / f"{entry.key}.py").is_file()


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


def test_entries_are_frozen():
    with pytest.raises(AttributeError):
        ENTRIES[0].key = "other"
    assert Entry("a", "method", "b:C", "words").defaults == {}


def test_listing_needs_neither_torch_nor_scikit_learn():
    code = (
        "import sys, json, denspu, denspu._catalogue as c\n"
        "json.dumps([e.facts() for e in c.REGISTRY])\n"
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
