"""Measuring one fit: what is recorded, and that truth stays out of it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict

import numpy as np
import pytest
from benchmarks._shared import peak_memory

from denspu import DensPU, make_pu
from denspu.benchmark import measure
from denspu.benchmark.record import (
    device_name,
    oracle_of_walk,
    quality_of_labels,
)
from denspu.data import Benchmark
from denspu.metrics import oracle_metrics
from denspu.refinement import EmbeddingRefiner


def quick(**settings):
    cheap = EmbeddingRefiner(rounds=0, folds=2, n_bags=4)
    model = DensPU(refiner=cheap, random_state=0)
    return model.set_params(**settings)


@pytest.fixture
def benchmark(make_blobs):
    train, test = make_blobs(0), make_blobs(1)
    return Benchmark(
        name="blobs",
        X_train=train.X,
        y_train=train.truth + 3,
        X_test=test.X,
        y_test=test.truth + 3,
        class_names=("far", "near"),
        positive=(4,),
        licence="none",
    )


@pytest.fixture
def pu(benchmark):
    return make_pu(
        benchmark.X_train,
        benchmark.y_train,
        positive=benchmark.positive,
        n_labeled=40,
        random_state=0,
    )


def test_a_record_holds_test_figures_stages_and_oracle(benchmark, pu):
    model = quick(densifier="midpoint", densifier__n_pairs=30, refiner=None)
    found = measure(model, pu, benchmark, method="dens_pu", variant="v", seed=7)
    assert (found.dataset, found.method, found.variant) == ("blobs", "dens_pu", "v")
    assert (found.n_labeled, found.seed) == (40, 7)
    truth = (benchmark.y_test == 4).astype(int)
    expected = oracle_metrics(truth, model.decision_function(benchmark.X_test))
    assert found.metrics == expected
    assert found.metrics["roc_auc"] > 0.95
    boundary = model.stages_["boundary"].facts
    assert found.estimates == {
        name: boundary[name]
        for name in (
            "auc_held_out_vs_unlabeled", "held_out_inlier_share", "expected_loss",
        )
    }  # fmt: skip
    assert set(found.seconds) == {*model.stages_.names, "total"}
    assert found.extra["oracle"] == oracle_of_walk(model, pu)
    assert found.extra["stages"]["boundary"] == boundary
    json.dumps(asdict(found), allow_nan=False)


def test_a_record_of_refined_labels(benchmark, pu):
    model = quick()
    found = measure(model, pu, benchmark, method="dens_pu", variant="v", seed=7)
    facts = model.stages_["refine"].facts
    known = {"called_positive", "prior_in_unlabeled", "held_out_recall"}
    assert known <= set(found.estimates)
    assert all(found.estimates[name] == facts[name] for name in known)
    right = found.extra["oracle"]["unlabeled_right"]
    hidden = pu.y == 0
    called = (model.labels_ > 0.5).astype(int)
    assert right == np.mean(called[hidden] == pu.oracle.labels[hidden]) > 0.9
    assert "purity" not in found.extra["oracle"]
    assert found.estimates["estimated_accuracy"] == pytest.approx(right, abs=0.1)
    json.dumps(asdict(found), allow_nan=False)


def test_estimated_quality_by_hand():
    """Of 100 rows 40 are positive and 50 called; 0.9 · 40 = 36 of these rightly."""
    facts = {
        "held_out_recall": 0.9,
        "held_out_called": 0.5,
        "prior_in_unlabeled": 0.4,
    }
    assert quality_of_labels(facts) == {
        "estimated_precision": pytest.approx(36 / 50),
        "estimated_f1": pytest.approx(2 * 36 / (50 + 40)),
        "estimated_accuracy": pytest.approx(1 - 14 / 100 - 4 / 100),
    }
    nobody = {"held_out_recall": 0.0, "held_out_called": 0.0, "prior_in_unlabeled": 0.0}
    assert quality_of_labels(nobody)["estimated_precision"] == 0
    more = {"held_out_recall": 1.0, "held_out_called": 0.1, "prior_in_unlabeled": 0.4}
    assert quality_of_labels(more)["estimated_precision"] == 1
    assert quality_of_labels({}) == {}


def test_oracle_of_walk_by_hand(pu):
    class Walked:
        unlabeled_index_ = pu.unlabeled_index
        unlabeled_scores_ = np.where(pu.oracle.unlabeled_labels == 1, 1.0, 0.0)
        negative_index_ = np.r_[
            pu.unlabeled_index[pu.oracle.unlabeled_labels == 0][:3],
            pu.unlabeled_index[pu.oracle.unlabeled_labels == 1][:1],
        ]

    assert oracle_of_walk(Walked(), pu) == {
        "boundary_auc": 1.0,
        "purity": 0.75,
        "negative_share_of_unlabeled": 0.6,
    }
    assert oracle_of_walk(object(), pu) == {}


def test_the_model_never_sees_the_oracle(benchmark, pu):
    seen = {}

    class Spy(DensPU):
        def fit(self, X, y, **more):
            seen.update(X=X, y=y, more=more)
            return super().fit(X, y, **more)

    measure(
        Spy(refiner=None, random_state=0),
        pu,
        benchmark,
        method="m",
        variant="v",
        seed=0,
    )
    assert seen["X"] is pu.X
    assert seen["y"] is pu.y
    assert seen["more"] == {}


def test_a_share_of_the_unlabelled_is_called_where_one_is_asked_for(benchmark, pu):
    def score(X):
        return np.random.default_rng(len(X)).normal(size=len(X)) - 1000.0

    class Guesses:
        """Ranks rows at random, and calls none positive by itself."""

        def fit(self, X, y):
            return self

        def decision_function(self, X):
            return score(X)

    def recall(share):
        found = measure(
            Guesses(),
            pu,
            benchmark,
            method="m",
            variant="v",
            seed=0,
            share_called=share,
        )
        return found.metrics["recall"]

    assert recall(None) == 0.0
    of_unlabeled = np.sort(score(pu.X[pu.y == 0]))
    of_positives = score(benchmark.X_test)[
        np.isin(benchmark.y_test, benchmark.positive)
    ]
    for share in (0.25, 0.5):
        cut = of_unlabeled[-round(share * len(of_unlabeled))]
        wanted = np.mean(of_positives > cut)
        assert recall(share) == pytest.approx(wanted)
        assert abs(wanted - share) < 0.15  # a ranking at random finds as many


def test_peak_memory_is_what_a_block_adds():
    found = {}
    with peak_memory(found):
        block = np.ones(20_000_000)
        time.sleep(0.05)
    assert 100 < found["peak_mb"] < 400
    del block


def test_device_name_counts_threads():
    assert device_name("cpu").startswith("cpu, ")
    assert device_name("cpu").endswith(" threads")
