"""Dens-PU: the paper's preset to the letter, and a walk that learns."""

from __future__ import annotations

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.ensemble
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from denspu import DensPU
from denspu._machine import MOMENT
from denspu._validation import validate_fit
from denspu.base import RARE
from denspu.classifiers import VGG16Classifier
from denspu.density import Midpoint, NoDensity
from denspu.detectors import DensityRatio, IsolationForest
from denspu.encoders import (
    CAEEncoder,
    ContrastiveEncoder,
    IdentityEncoder,
    TabularEncoder,
)
from denspu.exceptions import (
    DegenerateFitWarning,
    DensPUWarning,
    InvalidInputError,
    InvalidParameterError,
    PriorDisagreementWarning,
    UnusedInputWarning,
)
from denspu.methods import dens_pu
from denspu.methods.dens_pu import choose_parts, choose_refiner
from denspu.priors import PriorEstimate
from denspu.refinement import (
    EmbeddingRefiner,
    MembersRefiner,
    NetworkRefiner,
    RankingRefiner,
)
from denspu.selection import ByScore
from denspu.training import in_fixed_batches

WALK = ["encode", "densify", "boundary", "label", "refine"]
PAPER_WALK = ["encode", "densify", "boundary", "select", "classify"]
CHEAP = EmbeddingRefiner(rounds=0, folds=2, n_bags=2)


@pytest.fixture(scope="module")
def data():
    """Blobs for the whole file; positives around 0, negatives around 6."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(80, 3)), rng.normal(loc=6, size=(60, 3))]
    truth = np.r_[np.ones(80), np.zeros(60)].astype(int)
    y = np.r_[np.ones(40), np.zeros(100)].astype(int)
    return X, y, truth


@pytest.fixture(scope="module")
def model(data):
    return DensPU(random_state=0).fit(data[0], data[1])


def quick(**settings):
    """Return a model that fits in a blink: one fold, the paper's ending."""
    parts = {"checks": 0, "refiner": None, "random_state": 0}
    return DensPU(**{**parts, **settings})


# --- the paper's preset ---------------------------------------------------------------

PAPER = [
    ("encoder", "fit_on", "positive"),
    ("encoder", "epochs", 50),
    ("encoder", "batch_size", 64),
    ("encoder", "lr", 1e-4),
    ("encoder", "weight_decay", 1e-3),
    ("encoder", "image_size", 32),
    ("encoder", "channels", 3),
    ("densifier", "k", 0.2),
    ("densifier", "s", 11),
    ("densifier", "n_pairs", "cochran"),
    ("detector", "n_estimators", 1000),
    ("detector", "max_samples", 256),
    ("detector", "contamination", "auto"),
    ("selector", "size", "positives"),
    ("classifier", "epochs", 200),
    ("classifier", "batch_size", 32),
    ("classifier", "lr", 1e-4),
    ("classifier", "weight_decay", 1e-3),
    ("classifier", "momentum", 0.0),
    ("classifier", "patience", 10),
    ("classifier", "max_steps", None),
    ("classifier", "balance", "batches"),
    ("classifier", "image_size", 32),
    ("classifier", "precision", "float32"),
    ("classifier", "validation", 0.0),
]
KINDS = {
    "encoder": CAEEncoder,
    "densifier": Midpoint,
    "detector": IsolationForest,
    "selector": ByScore,
    "classifier": VGG16Classifier,
}


def parts_of(model, X, y):
    return choose_parts(model, validate_fit(model, X, y), "cpu")


@pytest.fixture
def paper(tiny_images):
    return parts_of(DensPU(preset="paper"), *tiny_images)


def test_every_setting_of_the_paper_is_as_printed(paper):
    """A setting that is added later has to be given its place in the table."""
    machine = {"random_state", "device", "verbose", "n_jobs", "engine"}
    named = {(part, name): value for part, name, value in PAPER}
    found = {
        (part, name): value
        for part, kind in KINDS.items()
        for name, value in paper[0][part].get_params(deep=False).items()
        if name not in machine and type(paper[0][part]) is kind
    }
    assert found == named


def test_paper_boundary(paper):
    assert paper[0]["refiner"] is None
    assert paper[1] == {"contamination": "ratio", "checks": 1}
    densifier = paper[0]["densifier"]
    n_dense = densifier.count_pairs(1000) * densifier.s
    assert n_dense == 176_000
    assert 1000 / n_dense == pytest.approx(0.0057, abs=5e-5)


def test_explicit_parts_win_over_the_preset(tiny_images):
    own = IdentityEncoder()
    model = DensPU(
        preset="paper", encoder=own, detector="svm", contamination=0.1, checks=3
    )
    parts, settings = parts_of(model, *tiny_images)
    assert parts["encoder"] is own
    assert parts["detector"] == "svm"
    assert isinstance(parts["classifier"], VGG16Classifier)
    assert settings == {"contamination": 0.1, "checks": 3}


def test_the_preset_wants_images(data):
    with pytest.raises(
        InvalidParameterError,
        match="CAEEncoder takes image input, and would be given",
    ):
        DensPU(preset="paper").fit(data[0], data[1])


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_the_papers_walk_on_tiny_images(tiny_images, capsys, monkeypatch):
    monkeypatch.setitem(in_fixed_batches.__kwdefaults__, "batch_size", 8)
    X, y = tiny_images
    states = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    model = DensPU(
        preset="paper",
        encoder=CAEEncoder(epochs=1),
        detector=IsolationForest(n_estimators=10),
        classifier=VGG16Classifier(epochs=1),
        random_state=0,
        device="cpu",
        verbose=1,
    ).fit(X, y)
    assert model.stages_.names == PAPER_WALK
    facts = {stage.name: stage.facts for stage in model.stages_}
    assert facts["encode"]["dimension"] == 512
    assert facts["encode"]["trained_on"] == 6
    assert facts["densify"]["embeddings"] == 15 * 11
    assert facts["boundary"]["contamination"] == 6 / 165
    assert facts["boundary"]["predicted_inlier"] + facts["boundary"]["leftovers"] == 14
    assert facts["select"]["negatives"] == min(6, facts["boundary"]["leftovers"])
    assert facts["classify"]["sees"] == "input"
    assert facts["classify"]["epochs"] == 1
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    told = capsys.readouterr().err
    assert "autoencoder" in told
    assert "classifier" in told
    whole = model.decision_function(X)
    assert np.array_equal(model.decision_function(X[3:5]), whole[3:5])
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.decision_function(X), whole)
    with pytest.raises(InvalidInputError, match="but DensPU was fitted on"):
        model.normality(np.zeros((2, 4)))


# --- parts that suit the data ---------------------------------------------------------


def test_parts_for_a_table(data):
    parts, settings = parts_of(DensPU(), data[0], data[1])
    assert isinstance(parts["encoder"], TabularEncoder)
    assert isinstance(parts["densifier"], NoDensity)
    assert isinstance(parts["detector"], DensityRatio)
    assert parts["detector"].around == "positives"
    assert parts["refiner"] == "auto"
    assert settings == {"contamination": "heldout", "checks": 5}


def test_embeddings_on_the_sphere_are_taken_as_they_are(data):
    X = data[0] / np.linalg.norm(data[0], axis=1, keepdims=True)
    parts = parts_of(DensPU(), X, data[1])[0]
    assert isinstance(parts["encoder"], IdentityEncoder)
    assert parts["detector"].metric == "cosine"
    X[3] *= 1.1
    assert isinstance(parts_of(DensPU(), X, data[1])[0]["encoder"], TabularEncoder)


@pytest.mark.parametrize(("n_positive", "neighbours"), [(40, 17), (2, 35), (130, 10)])
def test_a_ball_on_the_sphere_holds_about_five_positives(data, n_positive, neighbours):
    """5 · 140 / 40 = 17; no more than a quarter of the rows, at least ten."""
    X = data[0] / np.linalg.norm(data[0], axis=1, keepdims=True)
    y = np.arange(140) < n_positive
    assert parts_of(DensPU(), X, y)[0]["detector"].n_neighbors == neighbours


@pytest.mark.parametrize(
    ("shape", "device", "own"),
    [
        ((16, 16, 3), "cpu", True),
        ((16, 17, 3), "cpu", False),
        ((32, 32), "cpu", True),  # small and grey: pixels serve better on a CPU
        ((32, 33), "cpu", False),
        ((16, 17), "cuda", False),
    ],
)
def test_encoder_for_images(shape, device, own):
    model, X = DensPU(), np.zeros((4, *shape), np.uint8)
    data = validate_fit(model, X, [1, 1, 0, 0])
    encoder = choose_parts(model, data, device)[0]["encoder"]
    assert type(encoder) is (IdentityEncoder if own else ContrastiveEncoder)


def test_parts_for_many_rows(monkeypatch, data):
    monkeypatch.setattr(dens_pu, "CHECKED_ROWS", 139)
    monkeypatch.setattr(dens_pu, "MANY_ROWS", 139)
    monkeypatch.setattr(dens_pu, "KERNEL_ROWS", 139)
    parts, settings = parts_of(DensPU(), data[0], data[1])
    assert parts["detector"].max_unlabeled == 5_000
    assert parts["classifier"] == "gradient_boosting"
    assert settings["checks"] == 1


# --- which ending ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "unused",
    [
        {"classify_on": "embedding"},
        {"selector": "by_score", "classifier": "svm"},
    ],
    ids=str,
)
def test_an_ending_that_a_refiner_replaces_is_named(data, unused):
    wanted = ", ".join(f"{name}={value!r}" for name, value in unused.items())
    with pytest.warns(UnusedInputWarning, match=f"^{wanted} (is|are) not used"):
        DensPU(refiner=CHEAP, checks=1, random_state=0, **unused).fit(*data[:2])


class Slow(IdentityEncoder):
    """Trains in epochs, and knows no limit of time."""

    def __init__(self, *, normalize=False, epochs=1):
        super().__init__(normalize=normalize)
        self.epochs = epochs


def test_parts_without_a_limit_of_time_are_named(data):
    with pytest.warns(UnusedInputWarning, match="not shorten the encoder: it has no"):
        quick(encoder=Slow(), max_seconds=60).fit(*data[:2])


def refiner_for(images=True, device="cuda:0", share=0.3, encoder=None, rows=9):
    kind = "image" if images else "table"
    data = SimpleNamespace(kind=kind, positive=np.zeros(rows, dtype=bool))
    first = SimpleNamespace(rare=share < RARE)
    return type(choose_refiner(data, first, encoder or ContrastiveEncoder(), device))


def test_which_refiner_is_chosen():
    assert refiner_for() is NetworkRefiner
    assert refiner_for(share=0.001) is NetworkRefiner
    assert refiner_for(device="cpu") is EmbeddingRefiner
    assert refiner_for(images=False) is MembersRefiner
    assert refiner_for(images=False, share=0.001) is MembersRefiner
    assert refiner_for(images=False, share=0.001, rows=10**6) is RankingRefiner
    assert refiner_for(encoder=IdentityEncoder()) is EmbeddingRefiner


def test_a_wrong_ending_is_refused_before_the_walk(data):
    class Never(IdentityEncoder):
        def fit(self, X, y=None):
            raise AssertionError("too late")

    for wrong in (
        {"refiner": "embeddings"},
        {"refiner": "network"},
        {"classifier": "logistics"},
        {"classifier": "vgg16"},
        {"selector": Midpoint()},
    ):
        with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
            DensPU(encoder=Never(), **wrong).fit(data[0], data[1])


class Centre:
    """A refiner with nothing but the methods it needs."""

    def refine(self, start):
        self.start = start
        self.centre = start.Z[start.positive].mean(axis=0)
        self.labels_ = start.pinned(start.labels)
        return self

    def decision_function(self, Z):
        return 3 - np.linalg.norm(Z - self.centre, axis=1)


def test_a_plain_object_serves_as_refiner(data):
    X, y, truth = data
    given = Centre()
    fitted = DensPU(encoder="identity", refiner=given, random_state=0).fit(X, y)
    assert fitted.stages_.names == WALK
    assert not hasattr(given, "centre")
    assert np.mean(fitted.predict(X) == truth) > 0.9
    start = fitted.refiner_.start
    assert np.array_equal(start.X, X)
    assert np.array_equal(start.Z, X)
    assert np.array_equal(start.positive, y == 1)
    assert start.encoder is fitted.encoder_
    assert start.deadline.seconds is None


def test_a_refiner_gets_scores_in_which_no_positive_vouches_for_itself(data):
    X, y, _ = data
    fitted = DensPU(refiner=Centre(), random_state=0).fit(X, y)
    start = fitted.refiner_.start
    assert np.array_equal(start.scores[y == 0], fitted.unlabeled_scores_)
    Z = fitted.encoder_.transform(X[y == 1])
    assert np.array_equal(start.scores[y == 1], fitted.detector_._scores_by_others(Z))
    assert not np.array_equal(start.scores[y == 1], fitted.detector_.score_samples(Z))


def test_a_detector_that_cannot_leave_a_row_out_is_judged_by_folds(data):
    X, y, _ = data
    model = DensPU(
        detector="isolation_forest", checks=1, refiner=Centre(), random_state=0
    ).fit(X, y)
    scores = model.refiner_.start.scores[y == 1]
    assert sorted(scores) == sorted(model.held_out_scores_)
    assert len(model.held_out_scores_) == (y == 1).sum()


@pytest.mark.filterwarnings("ignore::denspu.exceptions.WeakRankingWarning")
def test_known_negatives_count_in_both_priors():
    rng = np.random.default_rng(0)
    truth = np.arange(900) < 300
    X = rng.normal(np.where(truth, 3.0, -3.0)[:, None], 1, (900, 3))
    y = (np.arange(900) < 100).astype(int)
    known = np.arange(900) >= 500
    model = DensPU(random_state=0).fit(X, y, known_negative=known)
    assert abs(model.prior_in_unlabeled_ - 200 / 800) < 0.03
    assert abs(model.prior_ - 300 / 900) < 0.03
    facts = model.stages_["refine"].facts  # of all of U, as the attributes are
    assert facts["prior_in_unlabeled"] == model.prior_in_unlabeled_
    assert tuple(facts["prior_interval"]) == model.prior_interval_


# --- a prior that is known ------------------------------------------------------------


@pytest.fixture(scope="module")
def biased():
    """Two kinds of positives, of which the second has hardly a label."""
    rng = np.random.default_rng(0)
    centre = np.repeat([[4, 0], [-2.5, 2.5], [0, -3]], [300, 300, 600], axis=0)
    X = centre + rng.normal(size=(1200, 2))
    truth = np.arange(1200) < 600
    y = np.zeros(1200, dtype=int)
    y[:95], y[300:305] = 1, 1
    return X, y, truth


def test_a_known_prior_finds_kinds_that_have_hardly_a_label(biased):
    X, y, truth = biased
    hidden = truth & (y == 0)
    alone = DensPU(random_state=0).fit(X, y)
    with pytest.warns(PriorDisagreementWarning, match="given at random"):
        told = DensPU(prior=0.5, random_state=0).fit(X, y)
    recall = [model.predict(X)[hidden].mean() for model in (alone, told)]
    assert recall[0] < 0.6
    assert recall[1] > 0.8
    assert told.predict(X)[y == 0].mean() == pytest.approx(500 / 1100, abs=0.03)
    assert told.prior_ == pytest.approx(0.5)
    inside = pytest.approx(500 / 1100)
    assert (told.prior_in_unlabeled_, *told.prior_interval_) == (inside,) * 3
    assert told.stages_["label"].facts["prior_known"]
    share, low, high = told.stages_["refine"].facts["estimated_prior"]
    assert low < share < high < 0.35


class Stubborn(Centre):
    """A refiner with a share of its own, whatever it was told."""

    def refine(self, start):
        self.prior_ = PriorEstimate(0.2, 0.15, 0.25, 0.9, 0.0, 40, 100)
        return super().refine(start)


def test_a_known_prior_stands_whatever_a_refiner_finds(data):
    X, y, _ = data
    fitted = DensPU(prior=0.6, refiner=Stubborn(), random_state=0).fit(X, y)
    assert fitted.prior_ == pytest.approx(0.6)
    assert fitted.prior_interval_ == pytest.approx((0.44, 0.44))
    found = DensPU(refiner=Stubborn(), random_state=0).fit(X, y)
    assert found.prior_in_unlabeled_ == pytest.approx(0.2)


def test_a_known_prior_counts_held_out_positives_and_known_negatives(data):
    X, y, _ = data
    known = np.arange(140) >= 120
    model = DensPU(prior=80 / 140, random_state=0)
    model.fit(X, y, known_negative=known, holdout=0.25)
    assert model.prior_ == pytest.approx(80 / 140)
    assert model.prior_in_unlabeled_ == pytest.approx(40 / 100)
    share = model.stages_["label"].facts["prior_in_unlabeled"]
    assert share == pytest.approx((40 + 10) / (100 + 10 - 20))
    assert model.evidence_.prior_from == "given"
    assert model.evidence_.prior_in_unlabeled == pytest.approx(40 / 80)


@pytest.mark.parametrize("refiner", [EmbeddingRefiner(), RankingRefiner()])
@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_as_many_of_the_users_u_are_called_as_they_know(data, refiner):
    """Half of P is held out, and few of U are said to be positive."""
    X, y, _ = data
    model = DensPU(prior=(40 + 7) / 140, refiner=refiner, random_state=0)
    model.fit(X, y, holdout=0.5)
    assert (model.labels_[y == 0] > 0.5).sum() == 7
    assert model.prior_in_unlabeled_ == pytest.approx(7 / 100)


def test_a_prior_that_is_refused_leaves_the_last_fit_as_it_was(data):
    X, y, _ = data
    model = DensPU(prior=0.6, refiner=CHEAP, random_state=0).fit(X, y)
    before = model.predict(X)
    for prior in (0.1, 0.9999):
        with pytest.raises(InvalidParameterError, match=f"prior={prior}"):
            model.set_params(prior=prior).fit(X, y)
        assert np.array_equal(model.predict(X), before)


def test_the_papers_ending_takes_no_prior(data):
    with pytest.warns(UnusedInputWarning, match="prior=0.1 plays no part"):
        quick(prior=0.1).fit(data[0], data[1])


@pytest.mark.parametrize(
    ("settings", "learns"),
    [
        ({}, True),
        ({"preset": "paper", "refiner": CHEAP}, True),
        ({"preset": "paper"}, False),
        ({"refiner": None}, False),
        ({"classifier": "logistic"}, False),
    ],
)
def test_who_learns_from_a_prior_has_a_refiner(data, settings, learns):
    model = DensPU(**settings)
    checked = validate_fit(model, data[0], data[1])
    parts, _ = choose_parts(model, checked, "cpu")
    assert (parts["refiner"] is not None) is learns
    assert model._learns_from_prior() is learns


def test_time_is_handed_down(data):
    class Timed(BaseEstimator):
        def __init__(self, max_seconds=None):
            self.max_seconds = max_seconds

        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return X

    X, y, _ = data
    model = DensPU(encoder=Timed(), refiner=Centre(), max_seconds=50.0, random_state=0)
    model.fit(X, y)
    assert 25 < model.encoder_.max_seconds <= 30
    assert model.encoder.max_seconds is None
    deadline = model.refiner_.start.deadline
    assert deadline.seconds == 50
    assert 0 < deadline.left() < 50
    model.set_params(max_seconds=1e-9).fit(X, y)  # past before it began: not unlimited
    assert model.encoder_.max_seconds == MOMENT
    model.set_params(encoder=Timed(max_seconds=7.0)).fit(X, y)
    assert model.encoder_.max_seconds == 7.0


def test_another_ending_forgets_the_first(data):
    X, y, _ = data
    ends = {
        "refiner": {"refiner_", "labels_", "prior_", "prior_in_unlabeled_",
                    "prior_interval_"},
        "paper": {"selector_", "classifier_", "classify_on_", "negative_index_"},
    }  # fmt: skip
    fitted = quick(refiner=Centre()).fit(X, y)
    assert ends["refiner"] <= set(vars(fitted))
    assert not ends["paper"] & set(vars(fitted))
    fitted.set_params(refiner=None).fit(X, y)
    assert ends["paper"] <= set(vars(fitted))
    assert not ends["refiner"] & set(vars(fitted))


# --- it learns ------------------------------------------------------------------------


def test_it_finds_the_hidden_positives(model, data):
    X, y, truth = data
    hidden = y == 0
    assert roc_auc_score(truth[hidden], model.decision_function(X[hidden])) > 0.95
    assert np.mean(model.predict(X) == truth) > 0.9
    assert np.mean((model.labels_ > 0.5)[hidden] == truth[hidden]) > 0.9
    low, high = model.prior_interval_
    assert low < 0.4 < high  # 40 of the 100 unlabelled rows are positive
    assert low <= model.prior_in_unlabeled_ <= high
    assert model.prior_ == pytest.approx((40 + 100 * model.prior_in_unlabeled_) / 140)


@pytest.mark.parametrize(
    "parts",
    [
        {"refiner": CHEAP, "detector": "knn", "densifier": "great_circle"},
        {"refiner": None, "detector": "one_class_svm",
         "densifier": Midpoint(n_pairs=30)},
        {"contamination": "ratio", "selector": "random_leftover"},
        {"classifier": sklearn.ensemble.RandomForestClassifier(n_estimators=20)},
    ],
    ids=lambda parts: "-".join(parts),
)  # fmt: skip
def test_every_part_can_be_replaced(parts, data):
    X, y, truth = data
    fitted = DensPU(random_state=0, **parts).fit(X, y)
    hidden = y == 0
    assert roc_auc_score(truth[hidden], fitted.decision_function(X[hidden])) > 0.9


# --- what it tells --------------------------------------------------------------------


def test_stages(model, data):
    facts = {stage.name: stage.facts for stage in model.stages_}
    assert list(facts) == WALK
    assert facts["encode"]["encoder"] == "TabularEncoder"
    assert facts["encode"]["positives"] == 40
    assert facts["encode"]["unlabeled"] == 100
    assert facts["encode"]["dimension"] == 3
    assert facts["densify"]["encodings"] == 40
    assert facts["densify"]["embeddings"] == 0
    bound = facts["boundary"]
    assert bound["predicted_inlier"] + bound["leftovers"] == 100
    assert bound["predicted_inlier"] == model.unlabeled_inlier_.sum()
    assert bound["threshold"] == model.detector_.threshold_
    assert bound["held_out_positives"] == 40
    assert bound["auc_held_out_vs_unlabeled"] > 0.7
    label = facts["label"]
    assert label["path"] == "labels"
    assert label["low"] <= label["prior_in_unlabeled"] <= label["high"]
    refine = facts["refine"]
    assert refine["refiner"] == "MembersRefiner"
    assert refine["called_positive"] == np.mean(model.labels_[data[1] == 0] > 0.5)
    assert refine["prior_in_unlabeled"] == model.prior_in_unlabeled_


@pytest.mark.parametrize("refiner", [None, CHEAP], ids=["paper", "refined"])
def test_indices_and_scores(data, refiner):
    X, y, _ = data
    model = DensPU(refiner=refiner, random_state=0).fit(X, y)
    assert np.array_equal(model.unlabeled_index_, np.flatnonzero(y == 0))
    Z = model.encoder_.transform(X)
    scores = model.detector_.score_samples(Z[y == 0])
    assert np.array_equal(model.unlabeled_scores_, scores)
    inlier = scores >= model.detector_.threshold_
    assert np.array_equal(model.unlabeled_inlier_, inlier)
    assert np.array_equal(model.normality(X[y == 0]) >= 0, inlier)
    if refiner is not None:
        return
    assert not y[model.negative_index_].any()
    assert not set(model.negative_index_) & set(np.flatnonzero(y == 0)[inlier])
    order = model.unlabeled_scores_[np.searchsorted(model.unlabeled_index_,
                                                    model.negative_index_)]  # fmt: skip
    assert (np.diff(order) >= 0).all()


def test_a_later_choice_does_not_move_an_earlier_stage(data):
    """Each stage draws from its own stream."""
    one = quick(detector=IsolationForest(n_estimators=5)).fit(data[0], data[1])
    two = quick(
        detector=IsolationForest(n_estimators=5), selector="random_leftover"
    ).fit(data[0], data[1])
    assert np.array_equal(one.unlabeled_scores_, two.unlabeled_scores_)
    assert not np.array_equal(one.negative_index_, two.negative_index_)


# --- known negatives and groups -------------------------------------------------------


def test_known_negatives_are_always_among_the_negatives(data):
    X, y, _ = data
    plain = quick().fit(X, y)
    inside = plain.unlabeled_index_[plain.unlabeled_inlier_][:3]
    chosen = plain.negative_index_[:2]
    known = np.zeros(len(y), bool)
    known[[*inside, *chosen]] = True
    fitted = quick().fit(X, y, known_negative=known)
    negatives = fitted.negative_index_.tolist()
    assert set(np.flatnonzero(known)) <= set(negatives)
    assert len(set(negatives)) == len(negatives) == len(plain.negative_index_) + 3
    assert fitted.stages_["select"].facts["known_negatives"] == 5
    before, after = (m.decision_function(X[inside]) for m in (plain, fitted))
    assert (after < before).all()


def test_groups_reach_the_refiner(data):
    X, y, _ = data
    groups = np.arange(len(y)) // 7
    start = quick(refiner=Centre()).fit(X, y, groups=groups).refiner_.start
    assert np.array_equal(start.groups, groups)


# --- warnings -------------------------------------------------------------------------


def test_one_answer_for_everything_warns(data):
    constant = DummyClassifier(strategy="constant", constant=1)
    with pytest.warns(
        DegenerateFitWarning, match="calls every unlabelled row positive"
    ):
        quick(classifier=constant).fit(data[0], data[1])


# --- inputs ---------------------------------------------------------------------------


def test_the_classifier_can_see_the_input(data):
    X, y, truth = data
    wide = np.c_[X, X]
    seen = make_pipeline(StandardScaler(), LogisticRegression())
    fitted = quick(encoder="tabular", classifier=seen, classify_on="input")
    fitted.fit(wide, y)
    assert fitted.stages_["classify"].facts["sees"] == "input"
    expected = clone(seen).fit(
        np.r_[wide[y == 1], wide[fitted.negative_index_]],
        np.r_[np.ones(40), np.zeros(len(fitted.negative_index_))],
    )
    assert np.allclose(fitted.decision_function(wide), expected.decision_function(wide))
    assert np.mean(fitted.predict(wide) == truth) > 0.9


# --- scikit-learn's habits ------------------------------------------------------------


def test_fit_leaves_the_given_parts_alone(data):
    part = IsolationForest(n_estimators=5)
    model = quick(detector=part)
    model.fit(data[0], data[1])
    assert model.detector is part
    assert (part.random_state, hasattr(part, "forest_")) == (None, False)
    assert model.detector_.random_state is not None


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_grid_search_over_a_nested_parameter(data):
    X, y, _ = data
    search = GridSearchCV(
        quick(densifier="midpoint"),
        {"densifier__k": [0.1, 0.9], "densifier__n_pairs": [30]},
        cv=2,
        scoring="roc_auc",
        error_score="raise",
    ).fit(X, y)
    assert search.best_estimator_.densifier_.k == search.best_params_["densifier__k"]
    assert search.best_estimator_.densifier_.n_pairs == 30


def test_set_params_on_a_part_named_by_key():
    model = DensPU(densifier="midpoint").set_params(densifier__k=0.4)
    assert isinstance(model.densifier, Midpoint)
    assert model.densifier.k == 0.4
    both = DensPU().set_params(detector__n_estimators=7, detector="isolation_forest")
    assert both.detector.n_estimators == 7
    assert model.set_params(contamination=0.2).contamination == 0.2
    with pytest.raises(InvalidParameterError, match=r"densifier='auto'. Name the part"):
        DensPU().set_params(densifier__k=0.4)


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "papers"}, {"contamination": 0.6}, {"checks": 6}, {"refiner": 7},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters(settings, data):
    with pytest.raises(InvalidParameterError, match=next(iter(settings))):
        DensPU(**settings).fit(data[0], data[1])


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_very_few_positives(data):
    X, y, _ = data
    rows = np.r_[np.arange(2), np.arange(40, 140)]
    fitted = DensPU(random_state=0).fit(X[rows], y[rows])
    assert fitted.stages_.names == WALK
    assert np.isfinite(fitted.decision_function(X)).all()


def test_a_group_does_not_vouch_for_its_own_rows():
    """Near-copies of a row must not decide how positive it looks."""
    rng = np.random.default_rng(0)
    n_groups, size = 150, 6
    truth = np.arange(n_groups) < 75
    centre = rng.normal(np.where(truth, 1.5, -1.5)[:, None], 1, (n_groups, 4))
    X = np.repeat(centre, size, axis=0) + rng.normal(0, 0.01, (n_groups * size, 4))
    groups = np.repeat(np.arange(n_groups), size)
    y = np.isin(groups, rng.choice(75, 30, replace=False)).astype(int)
    model = DensPU(refiner=Centre(), random_state=0).fit(X, y, groups=groups)
    true_share = 45 / 120
    assert abs(model.prior_in_unlabeled_ - true_share) < 0.15
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)
        alone = DensPU(refiner=Centre(), random_state=0).fit(X, y)
    assert abs(alone.prior_in_unlabeled_ - true_share) > 0.2  # what groups are for
