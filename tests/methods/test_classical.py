"""What the methods on an embedding have in common."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from denspu import make
from denspu._registry import registry
from denspu.exceptions import InvalidParameterError

SMALL = {
    "elkan_noto": {"folds": 3},
    "rank_pruning": {},
    "pu_bagging": {"n_bags": 8, "prior": 0.5},
    "spy": {},
    "rocchio_svm": {},
    "label_propagation": {},
    "density_estimator": {"prior": 0.5},
    "one_class": {"prior": 0.5},
    "kldce": {"prior": 0.5, "n_components": 50, "max_rounds": 3},
}
WITH_ESTIMATOR = [
    key for key in SMALL if "estimator" in registry().get(key).load()._rules
]


def build(key, **parameters):
    return make(key, **{"random_state": 10, **SMALL[key], **parameters})


@pytest.fixture
def overlapping(make_blobs):
    return make_blobs(seed=10, n_labeled=60, n_hidden=60, n_negative=120, far=2.0)


@pytest.mark.parametrize("key", SMALL)
def test_known_negatives_are_used(key, overlapping):
    """Hidden positives that are called negative fall behind the other hidden ones."""
    X, y, truth = overlapping.X, overlapping.y, overlapping.truth
    hidden = (y == 0) & (truth == 1)
    known = hidden & (X[:, 0] > 0)

    def lead(mask):
        scores = build(key).fit(X, y, known_negative=mask).decision_function(X)
        return scores[known].mean() - scores[hidden & ~known].mean(), scores

    told, with_known = lead(known)
    free, without = lead(None)
    assert registry().get(key).uses_known_negatives
    if key == "one_class":  # known negatives leave the rows that the cut is taken from
        assert not np.array_equal(with_known, without)
    else:
        assert told < free


@pytest.mark.parametrize("key", SMALL)
def test_one_group_for_all_rows_still_fits(key, blobs):
    model = build(key).fit(blobs.X, blobs.y, groups=np.zeros(len(blobs.y)))
    assert roc_auc_score(blobs.truth, model.decision_function(blobs.X)) > 0.9


@pytest.mark.parametrize("key", WITH_ESTIMATOR)
def test_the_estimator_that_is_given_answers(key, overlapping):
    given = LogisticRegression(C=0.01)
    model = build(key, estimator=given).fit(overlapping.X, overlapping.y)
    fitted = getattr(model, "estimator_", None) or model.estimators_[0]
    assert isinstance(fitted, LogisticRegression)
    assert fitted is not given
    assert fitted.C == 0.01
    assert not hasattr(given, "coef_")


@pytest.mark.parametrize("key", WITH_ESTIMATOR)
def test_bad_estimators(key, blobs):
    with pytest.raises(InvalidParameterError, match="Did you mean 'logistic'"):
        build(key, estimator="logistics").fit(blobs.X, blobs.y)
    with pytest.raises(InvalidParameterError, match="estimator=VGG16Classifier takes"):
        build(key, estimator="vgg16").fit(blobs.X, blobs.y)


BAD = [
    ("elkan_noto", {"variant": "weighed"}, "Did you mean 'weighted'"),
    ("pu_bagging", {"bag_size": 10_000}, "bag_size=10000 asks for more than the 100"),
    ("pu_bagging", {"prior": 0.1}, "prior=0.1 is the share"),
    ("density_estimator", {"density": "kernl"}, "no detector called 'kernl'"),
    ("one_class", {"detector": "cae"}, "'cae' is an encoder, not a detector"),
]


@pytest.mark.parametrize(("key", "parameters", "words"), BAD)
def test_bad_parameters(key, parameters, words, blobs):
    with pytest.raises(InvalidParameterError, match=words):
        build(key, **parameters).fit(blobs.X, blobs.y)
