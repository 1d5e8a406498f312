"""Models with honest sums and hostile content: refused or harmless, never followed."""

from __future__ import annotations

import json
import time
import tracemalloc
from contextlib import suppress
from copy import deepcopy

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier
from tests.persistence.test_files import rewrite

from denspu import load, save
from denspu.detectors import ExtendedIsolationForest, IsolationForest, Mahalanobis
from denspu.encoders import ContrastiveEncoder
from denspu.exceptions import DensPUError, ModelFileError, ModelVersionWarning
from denspu.persistence.allowed import (
    INSIDE,
    LAYERS,
    OWN_RULES,
    SKLEARN,
    current,
    find,
)

rng = np.random.default_rng(0)
Z = rng.normal(size=(60, 3))
y = (Z[:, 0] > 0).astype(int)


def arrays(change, name):
    """Change the array whose name ends so."""

    def apply(found):
        key = next(key for key in found if key.endswith(name))
        found[key] = change(found[key].copy())

    return {"arrays": apply}


def put(value, *place):
    def change(array):
        array[place] = value
        return array

    return change


def records(dtype, field, value):
    """Change a field of the first of some records, which are kept as bytes."""

    def change(array):
        nodes = np.frombuffer(array.tobytes(), dtype).copy()
        nodes[field][0] = value
        return np.frombuffer(nodes.tobytes(), np.uint8)

    return change


def state(**values):
    return {"change": lambda config: config["model"]["state"].update(values)}


FOREST = IsolationForest(n_estimators=3, random_state=0).fit(Z)
TILTED = ExtendedIsolationForest(n_estimators=3, n_directions=2, random_state=0).fit(Z)
TREE = DecisionTreeClassifier(random_state=0).fit(Z, y)
NODES = TREE.tree_.__getstate__()["nodes"].dtype
SVM = SVC().fit(Z, y)
BOOSTED = HistGradientBoostingClassifier(max_iter=2).fit(Z, y)
BOOSTS = BOOSTED._predictors[0][0].nodes.dtype
MEANS = KMeans(2, n_init=1).fit(Z)
NEAR = KNeighborsClassifier(3, algorithm="kd_tree").fit(Z, y)
WORDS = CountVectorizer().fit(["a bc", "cd ef"])
MIX = GaussianMixture(2, random_state=np.random.RandomState(0)).fit(Z)


HARMLESS = (ArithmeticError, AttributeError, LookupError, NameError, TypeError)
HARMLESS += (ValueError, RuntimeWarning, DensPUError)
"""What a model with odd settings may raise in use: Python code looked first."""


def kind(model):
    return type(model).__name__


CASES = {
    "forest: features": (FOREST, arrays(put(10**6, 0, 1), "feature")),
    "forest: columns": (FOREST, state(n_features_in_=99)),
    "forest: weights": (TILTED, arrays(lambda a: a[:, :, :1], "weight")),
    "tree: children": (TREE, arrays(records(NODES, "left_child", 10**6), "nodes")),
    "tree: leaf": (TREE, arrays(records(NODES, "left_child", -1), "nodes")),
    "tree: back": (TREE, arrays(records(NODES, "left_child", 0), "nodes")),
    "tree: features": (TREE, arrays(records(NODES, "feature", -7), "nodes")),
    "tree: owner": (TREE, state(n_features_in_=2)),
    "trees: owner": (
        RandomForestClassifier(2, random_state=0).fit(Z, y),
        state(n_features_in_=2),
    ),
    "svm: precomputed": (SVM, state(kernel="precomputed")),
    "svm: support": (SVM, arrays(put(10**6, 0), "support_")),
    "svm: negative": (SVM, arrays(put(-5, 0), "support_")),
    "svm: columns": (SVM, state(n_features_in_=200)),
    "svm: sparse": (SVM, state(_sparse=True)),
    "svm: kind": (SVM, state(_impl="nu_svr")),
    "one-class svm": (OneClassSVM().fit(Z), state(n_features_in_=1)),
    "boosting: columns": (BOOSTED, state(n_features_in_=0)),
    "boosting: preprocessor": (BOOSTED, state(_preprocessor=3)),
    "boosting: category": (
        BOOSTED,
        arrays(records(BOOSTS, "is_categorical", 1), "nodes"),
    ),
    "boosting: children": (BOOSTED, arrays(records(BOOSTS, "left", 10**6), "nodes")),
    "k-means: width": (MEANS, state(n_features_in_=9)),
    "near: classes": (NEAR, arrays(put(10**6, 0), "_y")),
    "near: columns": (NEAR, state(n_features_in_=9)),
    "density: columns": (KernelDensity().fit(Z), state(n_features_in_=9)),
    "words: file": (WORDS, state(input="filename")),
    "words: slow pattern": (WORDS, state(token_pattern="(a+)+$")),
    "words: columns": (WORDS, state(vocabulary_={"dict": {"a": 0, "b": 10**9}})),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_that_compiled_code_would_follow(name, tmp_path):
    model, change = CASES[name]
    folder = save(model, tmp_path / "model")
    load(folder)
    rewrite(folder, **change)
    with pytest.raises(ModelFileError):
        load(folder)


@pytest.mark.parametrize("place", [-1, 10**6])
def test_positions_of_random_generators(place, tmp_path):
    folder = save(MIX, tmp_path / "model")

    def change(config):
        held = config["model"]["state"]["random_state"]["state"]["state"]
        held["dict"]["state"]["dict"]["pos"] = place

    rewrite(folder, change)
    with pytest.raises(ModelFileError, match="position of a random generator"):
        load(folder)


def test_every_foreign_class_has_a_rule():
    for name, rule in {**SKLEARN, **INSIDE, **LAYERS}.items():
        assert callable(rule), name
    for name in OWN_RULES:  # a class that moves takes its rule along
        assert find(name) is not None
        assert current(name) == name


def test_settings_that_start_processes_or_read_files_are_taken_back(tmp_path):
    folder = save(RandomForestClassifier(2).fit(Z, y), tmp_path / "forest")
    rewrite(folder, **state(n_jobs=10**6))
    assert load(folder).n_jobs is None
    folder = save(MEANS, tmp_path / "means")
    rewrite(folder, **state(_n_threads=10**6))
    assert load(folder)._n_threads == 1
    pipeline = Pipeline([("scale", StandardScaler())]).fit(Z)
    folder = save(pipeline, tmp_path / "pipeline")
    rewrite(folder, **state(memory="/tmp/cache"))
    assert load(folder).memory is None


def test_an_array_is_given_once(tmp_path):
    """A small file must not ask for much memory by naming one array often."""
    model = Mahalanobis().fit(Z)
    model.extra_ = np.zeros(300_000)
    folder = save(model, tmp_path / "model")

    def change(config):
        held = config["model"]["state"]
        held["extra_"] = {"list": [held["extra_"]] * 500}

    rewrite(folder, change)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="lacks the array"):
        load(folder)
    assert tracemalloc.get_traced_memory()[1] < 30e6
    tracemalloc.stop()


def test_keys_that_would_take_for_ever_to_hash(tmp_path):
    folder = save(Mahalanobis().fit(Z), tmp_path / "model")
    node = {"tuple": []}
    for i in range(60):
        node["id"] = i
        node = {"tuple": [node, {"same": i}]}

    def change(config):
        config["model"]["state"]["extra_"] = {"dict": [[node, 1]]}

    rewrite(folder, change)
    start = time.perf_counter()
    with pytest.raises(ModelFileError, match="key"):
        load(folder)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("name", ["load", "float32.__class__", "Tensor", 3, None])
def test_names_of_types_come_from_a_list(name, tmp_path):
    folder = save(Mahalanobis().fit(Z), tmp_path / "model")
    for node in ({"torch": name}, {"type": name}, {"number": name, "value": 1}):
        rewrite(folder, **state(extra_=node))
        with pytest.raises(ModelFileError):
            load(folder)


def test_sizes_of_images_are_bounded(tmp_path):
    encoder = ContrastiveEncoder(image_size=16)
    encoder.module_ = None
    folder = save(encoder, tmp_path / "model")
    rewrite(folder, **state(image_size=10**7))
    with pytest.raises(ModelFileError, match="image_size"):
        load(folder)


def test_versions_are_shown_without_control_characters(tmp_path):
    folder = save(Mahalanobis().fit(Z), tmp_path / "model")
    rewrite(folder, lambda c: c["versions"].update(torch="\x1b[2J\n1.0" + "x" * 999))
    with pytest.warns(ModelVersionWarning) as told:
        load(folder)
    text = str(told[0].message)
    assert text.isprintable()
    assert len(text) < 500


@pytest.mark.parametrize("model", [SVM, TREE, BOOSTED, FOREST, NEAR, MIX], ids=kind)
def test_damaged_trees(model, tmp_path):
    """Every answer to a damaged tree is a model or one kind of error."""
    folder = save(model, tmp_path / "model")
    path = folder / "config.json"
    whole = json.loads(path.read_text("utf-8"))
    draws = np.random.default_rng(1)
    odd = [None, -1, 10**30, 1.5, "x", [], {}, {"tuple": []}, {"float": "nan"}, True]
    odd += [{"slice": [1]}, {"same": 1}, {"device": 3}, {"torch": []}, {"type": {}}]
    refused = 0
    for _ in range(150):
        config = json.loads(json.dumps(whole))
        node = config["model"]["state"]
        while True:
            keys = list(node) if isinstance(node, dict) else range(len(node))
            key = keys[draws.integers(len(keys))] if len(keys) else None
            child = None if key is None else node[key]
            if not isinstance(child, dict | list) or not child or draws.random() < 0.3:
                break
            node = child
        if key is None:
            continue
        node[key] = deepcopy(odd[draws.integers(len(odd))])
        rewrite(folder, lambda c, new=config: (c.clear(), c.update(new)))
        try:
            loaded = load(folder)
        except ModelFileError:
            refused += 1
            continue
        with suppress(*HARMLESS):
            answer = getattr(loaded, "predict", None) or loaded.score_samples
            answer(Z)
    assert refused > 70
