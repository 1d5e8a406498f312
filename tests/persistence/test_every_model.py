"""Save → load → the same answers, bit by bit, for everything registered."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from tests.small import METHODS, small

from denspu import load, make, make_pu, save
from denspu._registry import registry
from denspu.classifiers import BackboneClassifier
from denspu.encoders import CAEEncoder, ContrastiveEncoder, TextEncoder
from denspu.exceptions import ModelFileError
from denspu.persistence.stored import may_be_saved, others, stored, table
from denspu.refinement import NetworkRefiner, RankingRefiner

pytestmark = pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")

ANSWERS = (
    "decision_function",
    "predict",
    "predict_proba",
    "transform",
    "score_samples",
)


@cache
def rows():
    rng = np.random.default_rng(0)
    y = (np.arange(160) % 2 == 0).astype(int)
    X = rng.normal(size=(160, 6))
    X[:, :3] += 1.5 * (2 * y - 1)[:, None]
    return make_pu(X, y, n_labeled=0.4, random_state=0)


@cache
def images():
    found, digit = load_digits(return_X_y=True)
    found = (16 * found[:100].reshape(-1, 8, 8)).clip(0, 255).astype(np.uint8)
    return make_pu(found, digit[:100] % 2 == 0, n_labeled=0.4, random_state=0)


@cache
def frame():
    pandas = pytest.importorskip("pandas")
    found = pandas.DataFrame(rows().X, columns=list("abcdef"))
    kinds = np.where(np.arange(len(found)) % 3, "x", "y").astype(object)
    kinds[::11] = None
    found["kind"] = pandas.Categorical(kinds)
    found["word"] = np.where(np.arange(len(found)) % 2, "ä", "b")
    found.loc[::17, "a"] = np.nan
    return found


def answers(model, X):
    return {name: getattr(model, name)(X) for name in ANSWERS if hasattr(model, name)}


def again(model, folder, X):
    """Save, load, compare every answer in every bit, and return what was loaded."""
    before = answers(model, X)
    loaded = load(save(model, folder))
    assert type(loaded) is type(model)
    after = answers(loaded, X)
    assert before
    assert list(after) == list(before)
    for name, value in before.items():
        assert after[name].dtype == value.dtype
        assert after[name].tobytes() == value.tobytes(), name
    if not isinstance(getattr(model, "random_state", None), np.random.RandomState):
        assert repr(loaded) == repr(model)
    return loaded


@pytest.mark.parametrize("kind", ["table", "frame", "image"])
@pytest.mark.parametrize("key", METHODS)
def test_every_method_answers_as_before(key, kind, tmp_path):
    data = images() if kind == "image" else rows()
    X = frame() if kind == "frame" else data.X
    short = {"gan_epochs": 3} if key == "gen_pu" else {}
    model = small(key, random_state=0, **short).fit(X, data.y)
    loaded = again(model, tmp_path / "model", X)
    assert set(vars(loaded)) == set(vars(model))
    known, found = (m.get_params(deep=False) for m in (model, loaded))
    assert list(map(repr, known.items())) == list(map(repr, found.items()))
    assert not hasattr(clone(loaded), "classes_")
    if kind == "frame":
        assert list(loaded.feature_names_in_) == list(X.columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded.set_params(random_state=3)
        with pytest.raises(ValueError, match="eature names"):
            loaded.predict(X.rename(columns={"a": "z"}))


def test_a_model_older_than_a_parameter_has_its_default(tmp_path):
    """Methods and their parts: they can be shown, copied and fitted anew."""
    data = rows()
    model = small("dens_pu", random_state=0).fit(data.X, data.y)
    answers = model.decision_function(data.X)
    del model.prior, model.refiner_.tolerance
    loaded = load(save(model, tmp_path / "model"))
    assert (loaded.prior, loaded.refiner_.tolerance) == ("estimate", 0.005)
    assert np.array_equal(loaded.decision_function(data.X), answers)
    assert "DensPU(" in repr(loaded)
    again = clone(loaded).fit(data.X, data.y)
    assert np.array_equal(again.decision_function(data.X), answers)


@pytest.mark.parametrize("key", ["dens_pu", "nnpu", "elkan_noto", "biased_svm"])
def test_evidence_threshold_and_probabilities_are_kept(key, tmp_path):
    data = rows()
    groups = np.arange(len(data.y)) // 2
    model = small(key, random_state=0).fit(data.X, data.y, groups=groups, holdout=0.3)
    plain = model.predict_proba(data.X)
    model.set_threshold(top=17).calibrate()
    loaded = again(model, tmp_path / "model", data.X)
    assert loaded.threshold_ == model.threshold_ != 0.0
    assert not np.array_equal(loaded.predict_proba(data.X), plain)
    assert loaded.threshold_choice_ == model.threshold_choice_
    for name, value in vars(model.evidence_).items():
        found = getattr(loaded.evidence_, name)
        assert type(found) is type(value)
        if isinstance(value, np.ndarray):
            assert found.tobytes() == value.tobytes()
            assert found.dtype == value.dtype
        else:
            assert found == value
    assert loaded.evaluate().to_dict() == model.evaluate().to_dict()
    before = loaded.threshold_
    assert loaded.set_threshold(recall=0.8).threshold_ != before
    assert loaded.threshold_ == model.set_threshold(recall=0.8).threshold_


PARTS = {
    f"{kind} {key}": {kind: key}
    for kind in ("detector", "densifier", "selector")
    for key in registry().of_kind(kind)
} | {f"classifier {key}": {"classifier": key} for key in ("logistic", "svm")}


@pytest.mark.parametrize("name", PARTS)
def test_every_part_of_the_walk(name, tmp_path):
    given = {"refiner": None, "classifier": "logistic", "checks": 0, **PARTS[name]}
    data = rows()
    model = make("dens_pu", encoder="identity", random_state=0, device="cpu", **given)
    for part in ("detector", "densifier"):
        built = given.get(part)
        if built in ("isolation_forest", "extended_isolation_forest"):
            model.set_params(detector=registry().get(built, part).build())
            model.set_params(detector__n_estimators=5)
        elif part == "densifier" and built not in (None, "none"):
            model.set_params(detector="mahalanobis")
    model.fit(data.X, data.y)
    loaded = again(model, tmp_path / "model", data.X)
    if name.startswith("detector"):
        again(loaded.detector_, tmp_path / "part", data.X)


def network(*layers):
    return torch.nn.Sequential(*layers)


DEEP = {
    "cae": lambda: make(
        "dens_pu", encoder=CAEEncoder(epochs=1), refiner=None, classifier="logistic"
    ),
    "contrastive": lambda: make(
        "one_class", prior=0.5, encoder=ContrastiveEncoder(epochs=1, augment="natural")
    ),
    "backbone": lambda: make("elkan_noto", estimator=BackboneClassifier(epochs=1)),
    "network of layers": lambda: make(
        "nnpu",
        prior=0.5,
        epochs=1,
        network=network(
            torch.nn.Conv2d(1, 2, 3),
            torch.nn.BatchNorm2d(2),
            torch.nn.GELU(),
            torch.nn.Flatten(),
            torch.nn.Linear(72, 1),
        ),
    ),
}


@pytest.mark.parametrize("name", DEEP)
def test_networks(name, tmp_path):
    data = images()
    model = DEEP[name]().set_params(random_state=0, device="cpu")
    model.fit(data.X, data.y)
    loaded = again(model, tmp_path / "model", data.X)
    if hasattr(loaded, "encoder_"):
        again(loaded.encoder_, tmp_path / "part", data.X)


def test_the_refiner_of_networks(tmp_path):
    data = images()
    refiner = NetworkRefiner(ratio_epochs=1, risk_epochs=1, rounds=1, epochs=1)
    encoder = ContrastiveEncoder(epochs=1)
    model = make("dens_pu", encoder=encoder, refiner=refiner, checks=0)
    model.set_params(random_state=0, device="cpu").fit(data.X, data.y)
    again(model, tmp_path / "model", data.X)


def test_the_refiner_of_rankings(tmp_path):
    data = rows()
    refiner = RankingRefiner(rounds=1, learner="both", max_iter=5, n_trees=5)
    model = make("dens_pu", refiner=refiner, checks=0, random_state=0, device="cpu")
    again(model.fit(data.X, data.y), tmp_path / "model", data.X)


@pytest.mark.parametrize(
    "settings",
    [
        {"estimator": "gradient_boosting", "calibration": "isotonic"},
        {"estimator": RandomForestClassifier(5)},
        {"estimator": LogisticRegression(), "random_state": np.random.RandomState(0)},
    ],
    ids=["boosting", "forest", "generator"],
)
def test_estimators_of_scikit_learn(settings, tmp_path):
    data = rows()
    model = make("elkan_noto", **{"random_state": 0, "device": "cpu", **settings})
    loaded = again(model.fit(data.X, data.y), tmp_path / "model", data.X)
    state = model.random_state
    if not isinstance(state, int):
        assert loaded.random_state.randint(10**9) == state.randint(10**9)


def test_neighbours_and_their_tree(tmp_path):
    data = rows()
    model = KNeighborsClassifier(5, algorithm="kd_tree").fit(data.X, data.y)
    before = model.predict_proba(data.X)
    loaded = load(save(model, tmp_path / "model"))
    assert np.array_equal(loaded.predict_proba(data.X), before)
    assert np.shares_memory(np.asarray(loaded._tree.data), loaded._fit_X)


@pytest.mark.parametrize("unit", ["word", "character"])
def test_texts(unit, tmp_path):
    words = ["red", "green", "blue", "apple", "sea", "sky", "deep", "late"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 5)) for _ in range(30)]
    model = TextEncoder(unit=unit, n_components=4, random_state=0).fit(texts)
    again(model, tmp_path / "model", texts)


def test_isotonic_regression_interpolates_again(tmp_path):
    x = np.linspace(0, 1, 20)
    model = IsotonicRegression().fit(x, x**2)
    again(model, tmp_path / "model", x)


def test_a_foreign_estimator_of_scikit_learn_is_refused(tmp_path):
    data = rows()
    model = make("elkan_noto", estimator=CalibratedClassifierCV(LogisticRegression()))
    model.fit(data.X, data.y)
    with pytest.raises(ModelFileError, match=r"model\.estimator cannot be saved"):
        save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


NEW_PROCESS = """
import sys, numpy as np, denspu
place = sys.argv[1]
rows = np.load(f"{place}/rows.npy", allow_pickle=False)
for key in sys.argv[2:]:
    model = denspu.load(f"{place}/{key}")
    np.save(f"{place}/{key}.npy", model.decision_function(rows))
"""


def test_in_a_new_process(tmp_path):
    data = rows()
    np.save(tmp_path / "rows.npy", data.X)
    before = {}
    for key in ("dens_pu", "nnpu"):
        model = small(key, random_state=0).fit(data.X, data.y)
        save(model, tmp_path / key)
        before[key] = model.decision_function(data.X)
    command = [sys.executable, "-c", NEW_PROCESS, str(tmp_path), *before]
    subprocess.run(command, check=True)
    for key, value in before.items():
        found = np.load(tmp_path / f"{key}.npy", allow_pickle=False)
        assert found.tobytes() == value.tobytes()


def test_saving_twice_writes_the_same_bytes(tmp_path):
    data = rows()
    model = small("dens_pu", random_state=0).fit(data.X, data.y)
    one = save(model, tmp_path / "one")
    two = save(load(one), tmp_path / "two")
    for path in one.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes(), path.name


def test_the_loaded_model_fits_again(tmp_path):
    data = rows()
    model = small("spy", random_state=0).fit(data.X, data.y)
    before = model.decision_function(data.X)
    loaded = load(save(model, tmp_path / "model")).fit(data.X, data.y)
    assert np.array_equal(loaded.decision_function(data.X), before)


def test_a_device_that_is_not_here_becomes_the_cpu(tmp_path):
    data = images()
    encoder = ContrastiveEncoder(epochs=1, device="cpu")
    model = make("nnpu", prior=0.5, epochs=1, network="mlp", encoder=encoder)
    model.set_params(device="cpu", random_state=0).fit(data.X, data.y)
    before = model.decision_function(data.X)
    model.device_ = model.encoder_.device = "cuda:7"
    model.device = "auto"
    folder = save(model, tmp_path / "model")
    loaded = load(folder)
    assert (loaded.device, loaded.device_, loaded.encoder_.device) == (
        "auto",
        "cpu",
        "cpu",
    )
    chosen = load(folder, device="cpu")
    assert (chosen.device, chosen.encoder_.device) == ("cpu", "cpu")
    assert np.array_equal(chosen.decision_function(data.X), before)


def test_the_page_names_everything(request):
    page = (request.config.rootpath / "docs" / "persistence.md").read_text("utf-8")
    assert table() in page, "put denspu.persistence.stored.table() into the page"
    assert others() in page, "put denspu.persistence.stored.others() into the page"
    for entry in registry():
        assert stored(entry)
        assert may_be_saved(entry), entry.key
        assert f"| {entry.kind} | `{entry.key}` |" in page


def test_the_tree_is_plain_json_without_code(tmp_path):
    data = rows()
    model = small("nnpu", random_state=0).fit(data.X, data.y)
    folder = save(model, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    assert config["model"]["object"] == "denspu.methods.nnpu:NNPU"
    assert config["versions"]["torch"] == str(torch.__version__)
    assert {p.name for p in folder.iterdir()} == {
        "config.json",
        "arrays.safetensors",
        "manifest.json",
    }
