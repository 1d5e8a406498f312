"""Classifiers, detectors and maps answer alike as modules."""

from __future__ import annotations

import pytest
from tests.persistence.onnx.twins import QUIET, assert_twin, table
from tests.small import takes

from denspu import make
from denspu._registry import registry

pytestmark = QUIET


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
