"""Parts of all kinds inside DensPU: the user's, scikit-learn's, every detector."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

from denspu import DensPU
from denspu._registry import registry
from denspu.detectors import IsolationForest
from denspu.exceptions import InvalidInputError


@pytest.mark.parametrize("key", sorted(registry().of_kind("detector")))
def test_every_detector_draws_a_boundary(key, blobs):
    detector = registry().get(key, "detector").build()
    if "n_estimators" in detector.get_params():
        detector.set_params(n_estimators=50)
    model = DensPU(detector=detector, refiner=None, random_state=0)
    model.fit(blobs.X, blobs.y)
    unlabeled = blobs.truth[model.unlabeled_index_]
    assert roc_auc_score(unlabeled, model.unlabeled_scores_) > 0.95
    assert model.predict(blobs.X[-3:]).tolist() == [0, 0, 0]


class Plain:
    """Parts with nothing but the methods they need."""

    def fit(self, X, y=None):
        self.mean = np.asarray(X).mean(0)
        return self

    def transform(self, X):
        return np.asarray(X) - self.mean

    def score_samples(self, Z):
        return -np.linalg.norm(Z - self.mean, axis=1)

    def densify(self, Z, rng):
        return Z[:0]

    def select(self, boundary, rng):
        return np.argsort(boundary.scores)[:20]


class PlainClassifier(Plain):
    def fit(self, X, y):
        self.centre = X[y == 1].mean(0) - X[y == 0].mean(0)
        self.middle = (X[y == 1].mean(0) + X[y == 0].mean(0)) / 2
        return self

    def decision_function(self, X):
        return (X - self.middle) @ self.centre


def test_plain_objects_serve_as_all_five_parts(blobs):
    model = DensPU(
        encoder=Plain(),
        densifier=Plain(),
        detector=Plain(),
        selector=Plain(),
        classifier=PlainClassifier(),
        random_state=0,
    ).fit(blobs.X, blobs.y)
    assert np.mean(model.predict(blobs.X) == blobs.truth) > 0.95


def test_sparse_output_of_an_encoder_is_refused_by_name(blobs):
    with pytest.raises(InvalidInputError, match="encoder's output is a sparse"):
        DensPU(encoder=OneHotEncoder()).fit(blobs.X.round(), blobs.y)


def test_the_stage_reports_the_contamination_in_use(blobs):
    detector = IsolationForest(n_estimators=20, contamination=0.3)
    model = DensPU(detector=detector, contamination=0.02, refiner=None, random_state=0)
    facts = model.fit(blobs.X, blobs.y).stages_["boundary"].facts
    assert facts["contamination"] == 0.3


def test_without_checks_the_detector_keeps_its_threshold(blobs):
    model = DensPU(
        detector="local_outlier_factor", checks=0, refiner=None, random_state=0
    ).fit(blobs.X, blobs.y)
    facts = model.stages_["boundary"].facts
    assert facts["threshold"] == -1.5
    assert "no positives were held out" in facts["threshold_from"]
    assert "contamination" not in facts


def test_a_refit_without_checks_forgets_the_held_out_scores(blobs):
    model = DensPU(refiner=None, random_state=0).fit(blobs.X, blobs.y)
    assert len(model.held_out_scores_) == 40
    model.set_params(checks=0).fit(blobs.X, blobs.y)
    assert not hasattr(model, "held_out_scores_")
