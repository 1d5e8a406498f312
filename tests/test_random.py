"""One seed in, no footprints out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu import DensPU
from denspu._parameters import setting
from denspu._random import Randomness
from denspu.classifiers import NetworkClassifier
from denspu.detectors import IsolationForest
from denspu.encoders import CAEEncoder
from denspu.exceptions import InvalidParameterError
from denspu.networks.backbones import pack, unpack
from denspu.refinement import EmbeddingRefiner
from denspu.training import TrainingConfig

CPU = torch.device("cpu")
any_quality = pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
"""One epoch on 20 images: how good that is differs from processor to processor."""


class TinyNet(NetworkClassifier):
    """The smallest network that trains on images."""

    batch_size: int = setting(4)
    balance: str = setting("batches")
    device: str = setting("cpu")

    def _build(self):
        return torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(192, 1), torch.nn.Flatten(0)
        )

    def _config(self):
        return TrainingConfig(epochs=30, lr=0.01)

    def _to_tensor(self, images):
        return unpack(pack(images, self.scale_))


def image_model(seed=0):
    return DensPU(
        encoder=CAEEncoder(epochs=1, image_size=8, device="cpu"),
        classifier=TinyNet(),
        random_state=seed,
    )


def random_model(seed):
    """Return a model in which every part that can draws random numbers."""
    return DensPU(
        detector=IsolationForest(n_estimators=10),
        selector="random_leftover",
        random_state=seed,
    )


def global_states():
    _, key, place, *_ = np.random.get_state()  # noqa: NPY002
    return key.tolist(), place, torch.get_rng_state().tolist()


# --- streams --------------------------------------------------------------------------


def test_same_seed_and_name_give_the_same_stream():
    one, two = Randomness(3), Randomness(3)
    assert one.seed("a") == two.seed("a")
    assert one.numpy("a").random() == two.numpy("a").random()
    draws = [torch.rand(3, generator=r.generator("a")) for r in (one, two)]
    assert torch.equal(*draws)


def test_names_and_seeds_tell_streams_apart():
    seeds = {Randomness(s).seed(n) for s in range(10) for n in ("a", "b", "folds")}
    assert len(seeds) == 30


def test_asking_twice_does_not_move_a_stream():
    randomness = Randomness(0)
    first = randomness.numpy("a").random()
    randomness.numpy("b").random(100)
    assert randomness.numpy("a").random() == first


def test_seeds_fit_scikit_learn():
    assert all(0 <= Randomness(s).seed("x") < 2**32 for s in range(50))


def test_none_draws_fresh_entropy():
    assert Randomness(None).entropy != Randomness(None).entropy


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_moves_on(make):
    generator = make(0)
    first, second = Randomness(generator), Randomness(generator)
    assert first.entropy != second.entropy
    assert first.entropy == Randomness(make(0)).entropy


def test_numpy_integers_are_seeds():
    assert Randomness(np.int64(5)).entropy == Randomness(5).entropy == 5


@pytest.mark.parametrize("bad", [-1, True, "0", 1.5, [1]])
def test_what_cannot_seed(bad):
    with pytest.raises(InvalidParameterError, match="cannot seed anything"):
        Randomness(bad)


def test_torch_scope_seeds_inside_and_restores_outside():
    before = torch.get_rng_state()
    with Randomness(0).torch_scope("w", CPU):
        first = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(1)
    with Randomness(0).torch_scope("w", CPU):
        assert torch.equal(torch.rand(3), first)
    with Randomness(0).torch_scope("other", CPU):
        assert not torch.equal(torch.rand(3), first)


def test_torch_scope_restores_after_an_error():
    before = torch.get_rng_state()

    def fail_inside():
        with Randomness(0).torch_scope("w", CPU):
            torch.rand(1)
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert torch.equal(torch.get_rng_state(), before)


# --- whole fits -----------------------------------------------------------------------


@pytest.mark.parametrize("detector", ["auto", "one_class_svm", "knn"])
@pytest.mark.parametrize("refiner", [None, "ranking"])
def test_fit_on_a_table_leaves_global_states_alone(blobs, refiner, detector):
    before = global_states()
    DensPU(detector=detector, refiner=refiner, random_state=0).fit(blobs.X, blobs.y)
    assert global_states() == before


def test_random_parts_leave_global_states_alone(blobs):
    before = global_states()
    random_model(seed=None).fit(blobs.X, blobs.y)
    assert global_states() == before


def test_the_embedding_refiner_leaves_global_states_alone(blobs):
    before = global_states()
    cheap = EmbeddingRefiner(rounds=1, folds=2, n_bags=1)
    DensPU(refiner=cheap, random_state=0).fit(blobs.X, blobs.y)
    assert global_states() == before


@any_quality
def test_fit_on_images_leaves_global_states_alone(tiny_images):
    before = global_states()
    image_model().fit(*tiny_images).predict(tiny_images[0])
    assert global_states() == before


def test_same_seed_same_answers_on_a_table(blobs):
    a, b, c = (random_model(seed).fit(blobs.X, blobs.y) for seed in (0, 0, 1))
    assert np.array_equal(a.decision_function(blobs.X), b.decision_function(blobs.X))
    assert np.array_equal(a.negative_index_, b.negative_index_)
    assert not np.array_equal(
        a.decision_function(blobs.X), c.decision_function(blobs.X)
    )


def test_same_seed_same_refined_labels(blobs):
    a, b, c = (
        DensPU(
            refiner=EmbeddingRefiner(rounds=1, folds=2, n_bags=2), random_state=seed
        ).fit(blobs.X, blobs.y)
        for seed in (0, 0, 1)
    )
    assert np.array_equal(a.labels_, b.labels_)
    assert np.array_equal(a.decision_function(blobs.X), b.decision_function(blobs.X))
    assert not np.array_equal(a.labels_, c.labels_)


@any_quality
def test_same_seed_same_answers_on_images(tiny_images):
    X, y = tiny_images
    answers = [image_model(s).fit(X, y).decision_function(X) for s in (0, 0, 1)]
    assert np.array_equal(answers[0], answers[1])
    assert not np.array_equal(answers[0], answers[2])


@any_quality
def test_global_state_does_not_steer_a_seeded_fit(tiny_images):
    X, y = tiny_images
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        first = image_model().fit(X, y).decision_function(X)
        torch.manual_seed(2)
        second = image_model().fit(X, y).decision_function(X)
    assert np.array_equal(first, second)


def test_one_generator_gives_two_different_fits(blobs):
    generator = np.random.default_rng(0)
    model = DensPU(
        refiner=EmbeddingRefiner(rounds=0, folds=2, n_bags=2), random_state=generator
    )
    first = model.fit(blobs.X, blobs.y).decision_function(blobs.X)
    second = model.fit(blobs.X, blobs.y).decision_function(blobs.X)
    assert not np.array_equal(first, second)
