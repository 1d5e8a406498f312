"""Every registered estimator meets scikit-learn's examiner.

Estimators are built from the registry with small parameters. What is not examined,
and which checks an estimator fails on purpose, stands in two tables with the reason.
"""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_estimator

from denspu import DensPU
from denspu._registry import registry
from tests.small import METHODS, small, takes

IMAGES = "takes images; scikit-learn's checks hand over 2-D tables"
TEXTS = "takes texts; scikit-learn's checks hand over 2-D tables"
NOT_OURS = "scikit-learn's own class, checked there"
NEEDS_U = "compares P with U; scikit-learn's outlier checks call fit without labels"
NO_FIT = "has no fit method"
EXEMPT = {
    "cae": IMAGES,
    "vgg16": IMAGES,
    "backbone": IMAGES,
    "text": TEXTS,
    "sentence": TEXTS,
    "density_ratio": NEEDS_U,
    "logistic": NOT_OURS,
    "gradient_boosting": NOT_OURS,
    "svm": NOT_OURS,
    "midpoint": NO_FIT,
    "literal": NO_FIT,
    "mixup": NO_FIT,
    "great_circle": NO_FIT,
    "none": NO_FIT,
    "by_score": NO_FIT,
    "by_distance": NO_FIT,
    "random_leftover": NO_FIT,
    "random_unlabeled": NO_FIT,
    "network": NO_FIT,
    "embedding": NO_FIT,
    "members": NO_FIT,
    "ranking": NO_FIT,
}

ENTRIES = [entry for entry in registry() if entry.kind != "prior"]
"""Estimators of the prior have no fit method, and share keys with parts that do."""

LABELS = "uses labels 1 and 2; PU labels are 1 and 0 or -1, others are refused"
WORDS = "uses the labels 'one' and 'two'; PU labels are 1 and 0 or -1"
PU_LABELS = {
    "check_estimators_dtypes": LABELS,
    "check_classifier_data_not_an_array": LABELS,
    "check_fit2d_1feature": LABELS,
    "check_classifiers_classes": WORDS,
}
EXPECTED_FAILURES = dict.fromkeys(METHODS, PU_LABELS)
EXPECTED_FAILURES["label_propagation"] = {  # its name is on scikit-learn's list
    name: why for name, why in PU_LABELS.items() if why != WORDS
}

SMALL = {
    "contrastive": {"epochs": 1, "positive_weight": 0, "device": "cpu"},
    "isolation_forest": {"n_estimators": 10},
    "extended_isolation_forest": {"n_estimators": 10},
}

EXAMINED = {entry.load(): entry.key for entry in ENTRIES if entry.key not in EXEMPT}
MANY = {"prior": 0.1, "scenario": "two-sample"}
"""scikit-learn's checks label half of the rows or more, and the rest are negative."""

SHORT = {"epochs": 10, "lr": 0.01, "n_estimators": 2, "folds": 2}
SHORT_BY_KEY = {"vpu": {"lr": 0.005}, "gen_pu": {"gan_epochs": 40}}
"""As short as a fit can be that still tells the examiner's clouds apart."""


NO_HIDDEN = {"kldce": {"prior": "estimate"}}


def build(entry):
    if entry.kind != "method":
        return entry.build(**SMALL.get(entry.key, {}))
    asked = SHORT | (MANY if entry.needs_prior else {})
    asked |= NO_HIDDEN.get(entry.key, {}) | SHORT_BY_KEY.get(entry.key, {})
    return small(entry.key, **{k: v for k, v in asked.items() if takes(entry, k)})


ESTIMATORS = [build(entry) for entry in ENTRIES if entry.key not in EXEMPT]
ESTIMATORS.append(DensPU(refiner=None))  # the paper's ending


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: EXAMINED[type(e)])
def test_scikit_learn_examines_it(estimator):
    """All checks pass but those expected to fail, and these for the reason given."""
    expected = EXPECTED_FAILURES.get(EXAMINED[type(estimator)], {})
    results = check_estimator(
        estimator, expected_failed_checks=expected, on_fail=None, on_skip=None
    )
    failed = {r["check_name"]: r["exception"] for r in results}
    assert not [r for r in results if r["status"] == "failed"], failed
    excused = [r for r in results if r["status"] == "xfail"]
    assert {r["check_name"] for r in excused} == set(expected)
    for result in excused:
        assert "PU labels are 1" in str(result["exception"]), result["check_name"]


def test_the_exempt_are_exactly_those_not_examined():
    all_keys = {entry.key for entry in ENTRIES}
    assert set(EXEMPT) == all_keys - set(EXAMINED.values())
    for entry in ENTRIES:
        cls = entry.load()
        if not hasattr(cls, "fit"):
            assert EXEMPT[entry.key] == NO_FIT
        elif entry.target.startswith("sklearn."):
            assert EXEMPT[entry.key] == NOT_OURS
        elif getattr(cls, "needs_unlabeled", False):
            assert EXEMPT[entry.key] == NEEDS_U
        elif entry.inputs == ("image",):
            assert EXEMPT[entry.key] == IMAGES
        elif entry.inputs == ("text",):
            assert EXEMPT[entry.key] == TEXTS
        else:
            assert entry.key not in EXEMPT, f"{entry.key} can be examined"
