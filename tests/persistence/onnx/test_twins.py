"""A model's twin in torch answers as the model does; what has none is refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from tests.persistence.saved_models import read_rows
from tests.persistence.test_models import MODELS
from tests.small import small
from torch import nn

from denspu import DensPU, load, make
from denspu._frame import Frame
from denspu._registry import registry
from denspu.encoders import CAEEncoder, ContrastiveEncoder
from denspu.exceptions import ModelFileError
from denspu.persistence.onnx.arithmetic import Pixels
from denspu.persistence.onnx.export import as_rows, drawn_rows, input_spec
from denspu.persistence.onnx.twins import Answers
from denspu.refinement import NetworkRefiner, RankingRefiner

pytestmark = [
    pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
NEAR = 1e-5


@cache
def rows():
    pytest.importorskip("pandas")
    return read_rows(MODELS / "rows.npz")


@cache
def saved(name):
    return dict(load(MODELS / name).transformer_list)


def assert_twin(model, X):
    """Compare a model with its twin on its own rows and on drawn ones."""
    for sample in (X, None):
        spec = input_spec(model, sample)
        held = drawn_rows(model, spec, 20) if sample is None else as_rows(X, spec)
        with torch.no_grad():
            answers = Answers(model, spec.dtype)(torch.from_numpy(held))
        score, probability, decision = (part.numpy() for part in answers)
        given = spec.for_model(held)
        expected = model.decision_function(given)
        np.testing.assert_allclose(score, expected, rtol=NEAR, atol=NEAR)
        wanted = model.predict_proba(given)[:, 1]
        np.testing.assert_allclose(probability, wanted, atol=NEAR)
        sure = np.abs(expected - model.threshold_) > NEAR
        assert (decision == model.predict(given))[sure].all()


DEEP = [k for k, e in registry().of_kind("method").items() if e.deep and k != "dens_pu"]


@pytest.mark.parametrize("name", [*DEEP, "kernel", "linear", "judged"])
def test_networks_on_tables(name):
    assert_twin(saved("deep")[name], rows()["table"])


@pytest.mark.parametrize(
    ("name", "kind"),
    [("resnet", "colour"), ("vgg", "large"), ("all conv", "colour")],
)
def test_networks_on_images(name, kind):
    assert_twin(saved("deep")[name], rows()[kind])


@pytest.mark.parametrize("name", ["embedding", "ranking", "judged"])
def test_the_default_on_tables(name):
    assert_twin(saved("walk")[name], rows()["table"])


def test_the_default_on_images():
    assert_twin(saved("parts")["network"], rows()["colour"])
    assert_twin(saved("parts")["vgg16"], rows()["large"])
    small_images = small("dens_pu", random_state=0)
    truth = rows()["truth"]
    assert_twin(small_images.fit(rows()["images"], rows()["y"]), rows()["images"])
    for encoder in (
        CAEEncoder(epochs=1, image_size=16),
        ContrastiveEncoder(epochs=1, network="small", batch_size=32),
    ):
        model = small("dens_pu", encoder=encoder, random_state=0, device="cpu")
        assert_twin(model.fit(rows()["colour"], truth), rows()["colour"])


def test_an_encoder_before_a_network():
    encoder = ContrastiveEncoder(epochs=1)
    model = small("nnpu", encoder=encoder, random_state=0)
    assert_twin(model.fit(rows()["table"], rows()["y"]), rows()["table"])


def test_images_are_turned_and_shrunk_as_networks_take_them():
    refiner = NetworkRefiner(
        ratio_epochs=1, risk_epochs=1, rounds=1, epochs=1, batch_size=16
    )
    encoder = ContrastiveEncoder(
        epochs=1, network="small", augment="natural", batch_size=32
    )
    model = DensPU(encoder=encoder, refiner=refiner, random_state=0, device="cpu")
    X = rows()["colour"][:, ::2, ::2]
    model.fit(X, rows()["y"])
    assert model.encoder_.preset_.flip
    assert_twin(model, X)
    shrink = Pixels(0, 255, (8, 8, 2), size=4, antialias=True, levels=255, channels=3)
    grey = torch.full((1, 8, 8, 2), 102, dtype=torch.uint8)
    found = shrink(grey)
    assert found.shape == (1, 3, 4, 4)
    np.testing.assert_allclose(found, 0.4, atol=1e-6)


def test_rare_positives_are_screened_first():
    refiner = RankingRefiner(max_hard=20, max_iter=9, learner="both", n_trees=5)
    model = DensPU(refiner=refiner, random_state=0, device="cpu")
    model.fit(rows()["table"], rows()["y"])
    below = model.refiner_.decision_function(model._embed(rows()["table"]))
    assert 0 < (below < model.refiner_.floor_ - model.refiner_.cut_).mean() < 1
    assert_twin(model, rows()["table"])


def test_a_wide_embedding_goes_through_its_axes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 200)) + np.where(np.arange(150) < 80, 1, 0)[:, None]
    model = small("dens_pu", random_state=0).fit(X, np.arange(150) < 40)
    assert model.refiner_.axes_.directions is not None
    assert_twin(model, X)


def test_gaps_are_filled_and_marked_and_names_are_kept():
    X = rows()["table"].copy()
    X[::7, 2] = np.nan
    model = small("nnpu", random_state=0).fit(X, rows()["y"])
    spec = input_spec(model, None)
    assert np.isnan(drawn_rows(model, spec, 200)[:, 2]).any()
    assert_twin(model, X)
    frame = Frame({f"c{i}": X[:, i] for i in range(4)})
    model = small("nnpu", random_state=0).fit(frame, rows()["y"])
    assert input_spec(model).columns == ("c0", "c1", "c2", "c3")
    assert_twin(model, frame)


def answered(model):
    spec = input_spec(model)
    drawn_rows(model, spec, 5)
    Answers(model, spec.dtype)


def refused(model, match):
    with pytest.raises(ModelFileError, match=match):
        answered(model)


def test_the_rest_is_refused_by_name_with_the_next_step():
    refused(saved("classical")["spy"], "Spy cannot .* Export DensPU")
    refused(saved("classical")["texts"], "Embed the texts first")
    refused(saved("deep")["frame"], "word, kind hold categories.*as numbers before fit")
    refused(saved("walk")["svm"], "LogisticRegression cannot be exported")

    class Mine(nn.Module):
        pass

    model = make("dens_pu", random_state=0, device="cpu")
    model.fit(rows()["table"], rows()["y"])
    refused(model, "MembersRefiner cannot be exported.*refiner='embedding'")
    model.set_params(refiner="embedding").fit(rows()["table"], rows()["y"])
    model.encoder_ = Mine()
    refused(model, "Mine cannot be exported.*Embed the rows first")
