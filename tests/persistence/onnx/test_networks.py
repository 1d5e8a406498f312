"""Networks of images answer alike as modules."""

from __future__ import annotations

from tests.persistence.onnx.twins import QUIET, assert_twin, colours

from denspu import DensPU, make
from denspu.classifiers import BackboneClassifier
from denspu.encoders import ContrastiveEncoder
from denspu.refinement import NetworkRefiner

pytestmark = QUIET


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
