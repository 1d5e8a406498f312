"""Every part and method has a torch twin that answers as it does, or a reason."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from tests.small import METHODS, small, takes

from denspu import DensPU, make, make_pu
from denspu._frame import Frame
from denspu._registry import registry
from denspu.classifiers import BackboneClassifier, VGG16Classifier
from denspu.encoders import CAEEncoder, ContrastiveEncoder
from denspu.exceptions import ModelFileError
from denspu.networks.pixels import PixelScale, pack, to_tensor, unpack
from denspu.persistence import onnx_parts as parts
from denspu.persistence.onnx import answers_twin
from denspu.persistence.onnx_rows import as_rows, drawn_rows, input_spec
from denspu.refinement import NetworkRefiner, RankingRefiner

pytestmark = [
    pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
PAGE = Path(__file__).parents[2] / "docs" / "export.md"
NEAR = 1e-5


@cache
def table():
    rng = np.random.default_rng(0)
    y = (np.arange(160) % 2 == 0).astype(int)
    X = rng.normal(size=(160, 6)) * [1, 2, 3, 50, 1, 1] + 4
    X[:, :3] += 1.5 * (2 * y - 1)[:, None]
    return make_pu(X, y, n_labeled=0.4, random_state=0)


@cache
def embeddings():
    rows = table().X - table().X.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return replace(table(), X=rows.astype(np.float32))


@cache
def images():
    found, digit = load_digits(return_X_y=True)
    found = (15 * found[:100].reshape(-1, 8, 8)).astype(np.uint8)
    return make_pu(found, digit[:100] % 2 == 0, n_labeled=0.4, random_state=0)


SETS = {"table": table, "images": images, "embeddings": embeddings}


def twin_answers(model, rows, spec):
    with torch.no_grad():
        found = answers_twin(model, spec.dtype)(torch.from_numpy(rows))
    return [part.numpy() for part in found]


def assert_twin(model, X):
    """Compare a model with its twin on its own rows and on drawn ones."""
    for sample in (X, None):
        spec = input_spec(model, sample)
        rows = drawn_rows(model, spec, 20) if sample is None else as_rows(X, spec)
        score, probability, decision = twin_answers(model, rows, spec)
        given = spec.for_model(rows)
        expected = model.decision_function(given)
        np.testing.assert_allclose(score, expected, rtol=NEAR, atol=NEAR)
        wanted = model.predict_proba(given)[:, 1]
        np.testing.assert_allclose(probability, wanted, atol=NEAR)
        sure = np.abs(expected - model.threshold_) > NEAR
        assert (decision == model.predict(given))[sure].all()


# --- every method, and the table in the docs -----------------------------------------


def cells():
    """Return what the docs say of each method and kind of rows."""
    text = PAGE.read_text(encoding="utf-8")
    rows = re.search(r"<!-- exported -->\n(.*?)<!-- end exported", text, re.DOTALL)
    lines = [line.strip("| ").split(" | ") for line in rows[1].splitlines()[2:]]
    return {
        (cell[0].strip("`"), kind): cell[i + 1]
        for cell in lines
        for i, kind in enumerate(SETS)
    }


def test_the_docs_have_a_cell_for_every_method():
    assert set(cells()) == {(key, kind) for key in METHODS for kind in SETS}


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("key", METHODS)
def test_every_method_has_the_twin_the_docs_say(key, kind):
    pu = SETS[kind]()
    model = small(key, random_state=0).fit(pu.X, pu.y)
    said = cells()[key, kind]
    if said.startswith("no: "):
        with pytest.raises(ModelFileError, match=re.escape(said[4:40])):
            answers_twin(model, input_spec(model, pu.X).dtype)
        return
    assert float(said) < 1e-3
    assert_twin(model, pu.X)


# --- parts ---------------------------------------------------------------------------


@pytest.mark.parametrize("key", registry().of_kind("detector"))
def test_every_detector(key):
    entry = registry().get(key, "detector")
    detector = entry.build(
        **({"n_estimators": 20} if takes(entry, "n_estimators") else {})
    )
    model = make(
        "one_class", detector=detector, prior=0.5, random_state=0, device="cpu"
    )
    assert_twin(model.fit(table().X, table().y), table().X)


@pytest.mark.parametrize(
    "settings",
    [
        {"estimator": "logistic"},
        {"estimator": "gradient_boosting"},
        {"estimator": "svm", "estimator__kernel": "poly"},
        {"variant": "adjusted"},
        {"variant": "adjusted", "calibration": "sigmoid", "scenario": "two-sample"},
    ],
    ids=["logistic", "boosting", "poly", "isotonic", "sigmoid"],
)
def test_classifiers_and_maps(settings):
    model = make("elkan_noto", random_state=0, device="cpu", prior=0.4)
    assert_twin(model.set_params(**settings).fit(table().X, table().y), table().X)


def test_rare_positives_are_screened_first():
    refiner = RankingRefiner(max_hard=30, max_iter=9, learner="both", n_trees=5)
    model = DensPU(refiner=refiner, random_state=0, device="cpu")
    model.fit(table().X, table().y)
    below = model.refiner_.decision_function(model._embed(table().X))
    assert 0 < (below < model.refiner_.floor_ - model.refiner_.cut_).mean() < 1
    assert_twin(model, table().X)


def test_a_wide_embedding_goes_through_its_axes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 200)) + np.where(np.arange(150) < 80, 1, 0)[:, None]
    model = small("dens_pu", random_state=0).fit(X, np.arange(150) < 40)
    assert model.refiner_.axes_.directions is not None
    assert_twin(model, X)


def test_gaps_of_a_table_are_filled_and_marked():
    X = table().X.copy()
    X[::7, 2] = np.nan
    model = small("nnpu", random_state=0).fit(X, table().y)
    spec = input_spec(model, None)
    assert np.isnan(drawn_rows(model, spec, 200)[:, 2]).any()
    assert_twin(model, X)


def test_named_columns_of_numbers_are_taken_and_categories_refused():
    columns = {f"c{i}": table().X[:, i] for i in range(6)}
    model = small("elkan_noto", random_state=0).fit(Frame(columns), table().y)
    assert input_spec(model).columns == tuple(columns)
    assert_twin(model, Frame(columns))
    columns["town"] = np.where(table().X[:, 0] > 4, "A", "B").astype(object)
    model = small("elkan_noto", random_state=0).fit(Frame(columns), table().y)
    assert drawn_rows(model, input_spec(model), 5).shape == (5, 7)
    with pytest.raises(ModelFileError, match="town hold categories"):
        answers_twin(model, "float64")


def test_texts_are_refused_with_the_reason():
    texts = ["red apple", "green apple", "blue sea", "deep sea"] * 10
    model = small("nnpu", random_state=0).fit(texts, [1, 0, 0, 0] * 10)
    with pytest.raises(ModelFileError, match=r"NNPU cannot .* takes texts"):
        answers_twin(model, "float64")


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("shape", [(9, 12, 3), (16, 16, 1), (9, 9, 4)])
def test_pixels_are_scaled_resized_and_rounded_as_for_the_networks(dtype, shape):
    rng = np.random.default_rng(0)
    X = rng.random((5, *shape))
    top = 1 if dtype == "float32" else np.iinfo(dtype).max
    X = (X * top).astype(dtype)
    scale = PixelScale.of(X)
    levels = 255 if dtype == "uint8" else 65535
    for size in (None, 6, 20):
        twin = parts.Pixels(
            scale.low, scale.high, shape, size=size, antialias=True, levels=levels
        )
        found = (twin(torch.from_numpy(X)) * levels).round()
        wanted = (unpack(pack(X, scale, size)) * levels).round()
        assert found.shape == wanted.shape
        assert (found - wanted).abs().max() <= 1  # halfway falls either way
        assert (found != wanted).float().mean() < 0.02
    plain = parts.Pixels(scale.low, scale.high, shape, size=32, channels=3)
    if shape[2] != 1:
        plain.channels = None
    wanted = to_tensor(X, scale, 32, 3)
    torch.testing.assert_close(plain(torch.from_numpy(X)), wanted)


def colours():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (40, 12, 12, 3), dtype=np.uint8)
    X[:20] //= 3
    return X, np.arange(40) < 10


def test_networks_of_images():
    X, y = colours()
    encoder = ContrastiveEncoder(epochs=1, network="small")
    refiner = NetworkRefiner(
        ratio_epochs=1, risk_epochs=1, rounds=1, epochs=1, batch_size=16
    )
    model = DensPU(encoder=encoder, refiner=refiner, random_state=0, device="cpu")
    model.fit(X, y)
    assert model.encoder_.preset_.flip
    assert_twin(model, X)
    backbone = BackboneClassifier(epochs=1, network="cnn", batch_size=16)
    model = make("rank_pruning", estimator=backbone, random_state=0, device="cpu")
    assert_twin(model.fit(X, y), X)


def test_the_papers_ending():
    X, y = (part[8:24] for part in colours())
    model = DensPU(
        preset="paper",
        encoder=CAEEncoder(epochs=1),
        detector=make_forest(),
        classifier=VGG16Classifier(epochs=1),
        random_state=0,
        device="cpu",
    )
    score = twin_answers(model.fit(X, y), X[:4], input_spec(model, X))[0]
    np.testing.assert_allclose(score, model.decision_function(X[:4]), atol=NEAR)
    model.set_params(encoder=CAEEncoder(epochs=1), classifier="logistic")
    assert_twin(model.fit(X, y), X)


def make_forest():
    return registry().get("isolation_forest", "detector").build(n_estimators=5)


def test_a_rising_map_between_and_beyond_its_points():
    x, y = np.array([0.0, 1.0, 1.0, 3.0]), np.array([0.1, 0.2, 0.5, 0.9])
    scores = np.array([-5.0, 0.0, 0.5, 2.0, 3.0, 9.0])
    found = parts.Steps(x, y)(torch.from_numpy(scores)).numpy()
    np.testing.assert_allclose(found, [0.1, 0.1, 0.15, 0.7, 0.9, 0.9])
    one = parts.Steps([2.0], [0.4])(torch.from_numpy(scores)).numpy()
    np.testing.assert_allclose(one, 0.4)


def test_copies_of_a_row_outvote_its_other_neighbours():
    rows = np.array([[0.0], [1.0], [2.0]])
    twin = parts.NearestVotes(parts.Nearest(rows, 3), [1.0, 0.0, 0.0], weighted=True)
    found = twin(torch.tensor([[0.0], [1.5]], dtype=torch.float64)).numpy()
    np.testing.assert_allclose(found, [1.0, (1 / 1.5) / (1 / 1.5 + 4)])
