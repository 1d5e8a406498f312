"""The network refiner on small images: better than its start, and honest about it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from denspu import _machine
from denspu._machine import Deadline
from denspu._random import Randomness
from denspu.base import RefinerInput
from denspu.encoders import ContrastiveEncoder, IdentityEncoder, contrastive
from denspu.exceptions import FewRowsWarning, InvalidParameterError
from denspu.networks.backbones import ResNet
from denspu.networks.heads import WithMirror
from denspu.refinement import NetworkRefiner, network_ratio
from denspu.refinement import network as network_module
from denspu.refinement.network_copies import Copies
from denspu.refinement.network_losses import LabelLoss, RatioLoss, RiskLoss
from denspu.refinement.network_training import train_risk

N_LABELED, N = 30, 160


def pictures(n, seed):
    """Return stripes, upright where positive, in any phase and light."""
    rng = np.random.default_rng(seed)
    y, x = 1.6 * np.mgrid[:8, :8]
    positive = np.arange(n) < n // 2
    phase = rng.uniform(0, 2 * np.pi, (n, 1, 1))
    wave = np.where(positive[:, None, None], np.sin(x + phase), np.sin(y + phase))
    light, strength = rng.uniform(0.3, 0.7, (n, 1, 1)), rng.uniform(0.1, 0.3, (n, 1, 1))
    images = light + strength * wave + rng.normal(0, 0.05, (n, 8, 8))
    return (255 * np.clip(images, 0, 1)).astype(np.uint8)[..., None], positive


@pytest.fixture(scope="module")
def encoder():
    X, _ = pictures(N, 0)
    with pytest.MonkeyPatch.context() as patch:
        network = partial(ResNet, widths=(8, 16), depth=1)
        patch.setitem(contrastive.IMAGE_NETWORKS, "small", network)
        return ContrastiveEncoder(
            epochs=5, batch_size=40, lr=0.1, device="cpu", random_state=0
        ).fit(X)


@pytest.fixture
def begin(encoder):
    """Return what the walk would hand over; the first labels are a poor guess."""
    X, truth = pictures(N, 0)
    rng = np.random.default_rng(1)
    positive = np.arange(N) < N_LABELED
    guess = np.clip(np.where(truth, 0.6, 0.4) + rng.normal(0, 0.25, N), 0.02, 0.98)

    def make(**changes):
        start = RefinerInput(
            X=X,
            Z=encoder.transform(X),
            positive=positive,
            known_negative=np.zeros(N, dtype=bool),
            groups=None,
            scores=guess,
            labels=np.where(positive, 1.0, guess),
            prior_in_unlabeled=float(truth[N_LABELED:].mean()),
            prior_interval=(0.0, 1.0),
            encoder=encoder,
            deadline=Deadline(None),
        )
        return replace(start, **changes)

    return make


def small(**changes):
    settings = {
        "ratio_epochs": 4,
        "risk_epochs": 4,
        "rounds": 2,
        "epochs": 4,
        "batch_size": 40,
        "smooth": 5,
        "device": "cpu",
        "random_state": 0,
    }
    return NetworkRefiner(**{**settings, **changes})


def accuracy(labels, rows):
    truth = np.arange(N) < N // 2
    return np.mean((labels > 0.5)[rows] == truth[rows])


# --- labels ---------------------------------------------------------------------------


def test_beats_its_start(begin):
    start = begin()
    refiner = small(tolerance=0.0).refine(start)
    before = accuracy(start.labels, start.unlabeled)
    assert before < 0.8
    assert accuracy(refiner.labels_, start.unlabeled) > max(0.9, before + 0.1)
    assert refiner.path_ == "labels"
    X, truth = pictures(80, 5)
    answers = refiner.decision_function(X)
    assert answers.shape == (80,)
    assert np.mean((answers > 0) == truth) > 0.85


def test_what_is_known_stays(begin):
    """Even where the known labels are wrong on purpose."""
    known = np.zeros(N, dtype=bool)
    known[[40, 41, N - 1]] = True
    start = begin(known_negative=known)
    labels = small(epochs=1, ratio_epochs=1).refine(start).labels_
    assert (labels[start.positive] == 1).all()
    assert (labels[known] == 0).all()
    assert labels.shape == (N,)
    assert ((labels >= 0) & (labels <= 1)).all()


def test_same_seed_same_answers(begin):
    start = begin()
    one, two, other = (
        small(epochs=1, rounds=1, random_state=seed).refine(start) for seed in (1, 1, 2)
    )
    assert np.array_equal(one.labels_, two.labels_)
    assert np.array_equal(
        one.decision_function(start.X), two.decision_function(start.X)
    )
    assert not np.array_equal(one.labels_, other.labels_)


def test_global_random_numbers_are_left_alone(begin):
    state = torch.get_rng_state()
    small(epochs=1, rounds=1).refine(begin())
    assert torch.equal(torch.get_rng_state(), state)


def test_the_encoder_is_left_alone(begin, encoder):
    before = {k: v.clone() for k, v in encoder.module_.state_dict().items()}
    small(epochs=1, rounds=1).refine(begin())
    for name, value in encoder.module_.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_answers_do_not_depend_on_the_batch(begin):
    start = begin()
    refiner = small(epochs=1, rounds=1).refine(start)
    whole = refiner.decision_function(start.X)
    assert np.array_equal(refiner.decision_function(start.X[3:4]), whole[3:4])


def test_rounds_end_when_labels_stand_still(begin):
    start = begin()
    refiner = small(rounds=3, epochs=1, tolerance=1.0).refine(start)
    assert len(refiner.changed_) == 1
    refiner = small(rounds=3, epochs=1, tolerance=0.0).refine(start)
    assert len(refiner.changed_) == 3
    assert all(0 <= share <= 1 for share in refiner.changed_)


@pytest.fixture
def first_labels(monkeypatch):
    """Note the labels with which rounds begin."""
    seen = []
    step = NetworkRefiner._round

    def note(self, number, labels, start, copies):
        seen.append(labels)
        return step(self, number, labels, start, copies)

    monkeypatch.setattr(NetworkRefiner, "_round", note)
    return seen


ONE = {"epochs": 1, "rounds": 1}


def test_without_networks_the_boundary_is_where_it_starts(begin, first_labels):
    start = begin()
    alone = {"ratio_epochs": 0, "risk_epochs": 0, **ONE}
    refiner = small(smooth=0, **alone).refine(start)
    order = np.argsort(start.labels[start.unlabeled], kind="stable")
    assert (np.diff(first_labels[0][start.unlabeled][order]) >= 0).all()
    assert not hasattr(refiner, "prior_")
    assert "prior_interval" not in refiner.facts()
    small(smooth=5, **alone).refine(start)
    assert not np.array_equal(first_labels[1], first_labels[0])
    assert (first_labels[1][start.positive] == 1).all()


@pytest.mark.parametrize("prior", [0.1, 0.3, 0.6])
def test_rounds_begin_with_as_many_positives_as_the_prior_says(
    begin, first_labels, prior
):
    start = begin(prior_in_unlabeled=prior)
    small(ratio_epochs=0, risk_epochs=1, **ONE).refine(start)
    called = np.sum(first_labels[0][start.unlabeled] > 0.5)
    assert called == pytest.approx(prior * start.unlabeled.sum(), abs=1)


def test_the_ratio_has_half_a_say_in_the_prior(begin, first_labels):
    start = begin(prior_in_unlabeled=0.1)
    refiner = small(risk_epochs=1, **ONE).refine(start)
    share = (0.1 + refiner.prior_.prior_in_unlabeled) / 2
    called = np.sum(first_labels[0][start.unlabeled] > 0.5)
    assert called == pytest.approx(share * start.unlabeled.sum(), abs=1.5)


def test_the_ratio_has_no_say_in_a_prior_that_is_known(
    begin, first_labels, networks_say
):
    start = begin(prior_in_unlabeled=0.2, prior_known=True)
    networks_say(start.scores + start.positive)
    refiner = small(risk_epochs=1, **ONE).refine(start)
    assert refiner.facts()["networks_used"]
    assert refiner.prior_.low == refiner.prior_.high == 0.2
    called = np.sum(first_labels[0][start.unlabeled] > 0.5)
    assert called == pytest.approx(0.2 * start.unlabeled.sum(), abs=1)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7])
def test_a_known_prior_is_kept_to_the_end(begin, share):
    """Left to itself the network goes back to the two groups that there are."""
    start = begin(prior_in_unlabeled=share, prior_known=True)
    refiner = small(rounds=2, tolerance=0.0, smooth=0).refine(start)
    free = start.free
    called = refiner.labels_[free] > 0.5
    assert called.sum() == pytest.approx(share * free.sum(), abs=1)
    answers = refiner.decision_function(start.X)[free]
    assert np.array_equal(answers > 0, called)
    assert (refiner.labels_[start.positive] == 1).all()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("ratio_epochs", [0, 1])
def test_so_few_as_are_known_are_called(begin, count, ratio_epochs):
    """Where positives are rare posteriors add up to the share, and few pass 1/2."""
    n = N - N_LABELED
    start = begin(prior_in_unlabeled=count / n, prior_known=True)
    assert start.rare
    refiner = small(ratio_epochs=ratio_epochs, epochs=2).refine(start)
    assert (refiner.labels_[start.free] > 0.5).sum() == count
    assert (refiner.decision_function(start.X)[start.free] > 0).sum() == count
    assert (refiner.labels_[start.positive] == 1).all()


def test_only_labels_on_the_wrong_side_move(begin):
    """Posteriors that add up to what is known stay so, as nearly as can be."""
    n = N - N_LABELED
    start = begin(prior_in_unlabeled=10 / n, prior_known=True)
    labels = np.where(start.positive, 1.0, 10 / n)
    score = np.random.default_rng(0).normal(size=N)
    score[start.positive] = 5.0
    found = network_module._calling_the_known(labels, score, start)
    called = found > 0.5
    top = start.free & (score >= np.sort(score[start.free])[-10])
    assert np.array_equal(called, start.positive | top)
    assert (found[start.free & ~top] == 10 / n).all()
    sure = np.where(np.arange(N) % 2, 0.9, labels)
    few = network_module._calling_the_known(sure, score, start)
    assert (few[start.free] > 0.5).sum() == 10
    assert (few[start.free] > 0.49).sum() == (sure[start.free] == 0.9).sum()


def test_as_many_are_called_as_the_share_says_where_it_was_estimated(begin):
    n = N - N_LABELED
    start = begin(prior_in_unlabeled=2 / n)
    refiner = small(ratio_epochs=0, epochs=2).refine(start)
    share = getattr(refiner, "prior_", None)
    share = start.prior_in_unlabeled if share is None else share.prior_in_unlabeled
    assert refiner.path_ == "ranking"
    called = (refiner.decision_function(start.X)[start.free] > 0).sum()
    assert called == round(share * n)


@pytest.mark.parametrize("hidden", [3, 40])
def test_held_out_positives_are_not_among_the_known(begin, hidden):
    """They lie at the end of the ranking: called or not, ``hidden`` others are."""
    held = (np.arange(N) >= N_LABELED) & (np.arange(N) < N_LABELED + 20)
    n = N - N_LABELED
    start = begin(prior_in_unlabeled=(hidden + 20) / n, prior_known=True, held_out=held)
    refiner = small(smooth=0, risk_epochs=0, **ONE).refine(start)
    mine = start.free & ~held
    assert (refiner.labels_[mine] > 0.5).sum() == hidden
    assert (refiner.decision_function(start.X)[mine] > 0).sum() == hidden


def test_what_networks_say_of_a_known_prior_is_kept(begin, networks_say):
    start = begin(prior_in_unlabeled=0.2, prior_known=True)
    networks_say(start.scores + start.positive)
    known = small(risk_epochs=0, **ONE).refine(start)
    networks_say(start.scores + start.positive)
    alone = small(risk_epochs=0, **ONE).refine(replace(start, prior_known=False))
    assert known.prior_.prior_in_unlabeled == 0.2
    assert known.estimated_.low < known.estimated_.high
    unknown = small(ratio_epochs=0, risk_epochs=0, **ONE).refine(start)
    assert not hasattr(unknown, "estimated_")
    assert alone.estimated_.prior_in_unlabeled == alone.prior_.prior_in_unlabeled


def test_the_risk_alone_finds_the_positives(begin):
    """Start labels say nothing: what is learned comes from P, U and the prior."""
    start = begin(labels=np.where(begin().positive, 1.0, 0.5))
    copies = Copies(start, torch.device("cpu"), Randomness(0))
    refiner = small(risk_epochs=12)
    refiner.encoder_ = start.encoder
    network = train_risk(refiner, start.prior_in_unlabeled, start, copies)
    scores = copies.score(network, np.ones(N, dtype=bool))
    truth = np.arange(N) < N // 2
    assert roc_auc_score(truth[start.unlabeled], scores[start.unlabeled]) > 0.9


def test_ratio_scores_come_from_networks_that_have_not_seen_the_row(begin, monkeypatch):
    seen, scored = {}, {}
    learn, score = network_ratio.train_ratio, Copies.score

    def note(refiner, rows, start, copies, name, epochs):
        found = learn(refiner, rows, start, copies, name, epochs)
        seen[id(found)] = (found, rows)
        return found

    def note_score(self, net, chosen):
        scored[id(net)] = chosen
        return score(self, net, chosen)

    monkeypatch.setattr(network_ratio, "train_ratio", note)
    monkeypatch.setattr(Copies, "score", note_score)
    start = begin()
    copies = Copies(start, torch.device("cpu"), Randomness(0))
    refiner = small(folds=3)
    refiner.encoder_ = start.encoder
    network_ratio.cross_fitted(refiner, start, copies, 1)
    assert len(seen) == 3
    for net, rows in seen.values():
        assert not (rows & scored[id(net)]).any()
        assert (rows | scored[id(net)]).all()
    assert np.sum([scored[key] for key in seen], axis=0).tolist() == [1] * N


@pytest.fixture
def networks_say(monkeypatch):
    """Let the networks of the ratio give chosen scores; train none."""

    def give(scores):
        monkeypatch.setattr(
            network_ratio,
            "cross_fitted",
            lambda refiner, start, copies, epochs: scores,
        )

    return give


def above(start, share):
    """Return scores that put P over a share of U: that share is their AUC."""
    scores = np.empty(N)
    scores[start.unlabeled] = np.linspace(0, 1, start.unlabeled.sum())
    scores[start.positive] = share
    return scores


def test_networks_worse_than_the_boundary_are_not_used(
    begin, first_labels, networks_say
):
    start = begin()
    start = replace(start, scores=above(start, 0.9))
    networks_say(-start.scores)
    refiner = small(**ONE).refine(start)
    small(ratio_epochs=0, risk_epochs=0, **ONE).refine(start)
    assert np.array_equal(*first_labels)
    assert "risk" not in refiner.epochs_
    assert not hasattr(refiner, "prior_")
    assert not refiner.facts()["networks_used"]


@pytest.mark.parametrize(("share", "believed"), [(0.85, False), (0.87, True)])
def test_networks_need_nine_tenths_of_the_lead(begin, networks_say, share, believed):
    """A boundary with an AUC of 0.9 leads by 0.4: networks need 0.86."""
    start = begin()
    start = replace(start, scores=above(start, 0.9))
    networks_say(above(start, share))
    refiner = small(**ONE).refine(start)
    assert ("risk" in refiner.epochs_) is believed
    assert hasattr(refiner, "prior_") is believed
    assert refiner.facts()["networks_used"] is believed
    found = refiner.facts()["held_out_auc"]
    assert found["boundary"] == pytest.approx(0.9, abs=0.01)
    assert found["networks"] == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(("share", "believed"), [(0.31, True), (0.28, False)])
def test_below_chance_the_better_one_is_believed(begin, networks_say, share, believed):
    start = begin()
    start = replace(start, scores=above(start, 0.3))
    networks_say(above(start, share))
    assert small(**ONE).refine(start).networks_used_ is believed


def test_known_negatives_do_not_count_against_either(begin, networks_say):
    known = np.arange(N) >= N - 20
    start = begin(known_negative=known)
    start = replace(start, scores=np.where(known, 2.0, above(start, 0.9)))
    networks_say(start.scores)
    found = small(**ONE).refine(start).held_out_auc_
    kept = start.unlabeled & ~known
    share = np.mean(start.scores[kept] < 0.9)
    assert found == pytest.approx({"boundary": share, "networks": share})


def test_networks_that_diverged_are_not_believed(begin, networks_say):
    start = begin()
    start = replace(start, scores=above(start, 0.9))
    networks_say(np.full(N, np.nan))
    refiner = small(**ONE).refine(start)
    assert not refiner.networks_used_
    assert refiner.held_out_auc_["networks"] == 0.5
    assert np.isfinite(refiner.labels_).all()


def test_quality_is_told_of_what_was_used(begin, networks_say):
    """The cut lies where the boundary's labels pass one half."""
    start = begin()
    start = replace(start, scores=above(start, 0.9))
    called = start.scores > 0.7
    labels = np.where(called, 0.8, 0.2)
    start = replace(start, labels=start.pinned(labels))
    networks_say(-start.scores)
    facts = small(**ONE).refine(start).facts()
    assert facts["held_out_recall"] == 1
    assert facts["held_out_called"] == pytest.approx(called[start.unlabeled].mean())


def test_settings_reach_the_training(begin):
    start = begin()
    cheap = {"epochs": 1, "rounds": 1, "ratio_epochs": 1, "risk_epochs": 1}
    plain = small(**cheap).refine(start).labels_
    for change in ({"lr": 0.01}, {"weight_decay": 0.5}, {"batch_size": 20},
                   {"mixup": False}, {"weighted": False}, {"ema_decay": None},
                   {"smooth": 0}, {"crop": 1.0}, {"erase": 0.0}, {"folds": 3},
                   {"ratio_epochs": 2}, {"risk_epochs": 2}):  # fmt: skip
        labels = small(**{**cheap, **change}).refine(start).labels_
        assert not np.array_equal(labels, plain), change


# --- rare positives -------------------------------------------------------------------


@pytest.fixture
def begin_rare(begin):
    """Few positives inside U: of the hidden ones only five are kept."""
    X, truth = pictures(N, 0)
    keep = (np.arange(N) < N_LABELED + 5) | ~truth
    start = begin()
    return replace(
        start,
        X=X[keep],
        Z=start.Z[keep],
        positive=start.positive[keep],
        known_negative=start.known_negative[keep],
        scores=start.scores[keep],
        labels=start.labels[keep],
        prior_in_unlabeled=0.01,
    )


def test_rare_positives_are_ranked(begin_rare):
    refiner = small(ratio_epochs=10).refine(begin_rare)
    assert refiner.facts()["path"] == "ranking"
    assert refiner.facts()["rounds"] == 0
    assert refiner.changed_ == []
    X, truth = pictures(80, 5)
    assert roc_auc_score(truth, refiner.decision_function(X)) > 0.9
    assert (refiner.labels_[begin_rare.positive] == 1).all()


def test_the_zero_of_a_ranking_leaves_the_estimated_share_above(begin_rare):
    refiner = small().refine(begin_rare)
    answers = refiner.decision_function(begin_rare.X[begin_rare.unlabeled])
    share = refiner.prior_.prior_in_unlabeled
    assert np.mean(answers > 0) == pytest.approx(share, abs=1.5 / len(answers))


def test_rare_positives_are_ranked_by_the_boundary_if_it_knows_more(
    begin_rare, networks_say
):
    truth = np.arange(len(begin_rare.positive)) < N_LABELED + 5
    known = np.where(truth, 0.9, 0.1)
    start = replace(begin_rare, scores=known, labels=begin_rare.pinned(known))
    networks_say(-known)
    refiner = small(epochs=10, smooth=0).refine(start)
    assert list(refiner.epochs_) == ["rank"]
    assert np.array_equal(refiner.labels_, start.labels)
    X, truth = pictures(80, 5)
    assert roc_auc_score(truth, refiner.decision_function(X)) > 0.9
    smoothed = small(epochs=1).refine(start).labels_
    assert not np.array_equal(smoothed, start.labels)
    assert (smoothed[start.positive] == 1).all()


def test_the_zero_of_the_boundarys_ranking(begin_rare, networks_say):
    """As many of the rows not known to be negative lie above it as estimated."""
    known = np.zeros(len(begin_rare.positive), dtype=bool)
    known[-20:] = True
    start = replace(begin_rare, known_negative=known, prior_in_unlabeled=0.0199)
    networks_say(-start.scores)
    refiner = small(epochs=1).refine(start)
    answers = refiner.decision_function(start.X[start.unlabeled & ~known])
    assert np.sum(answers >= 0) == max(1, round(0.0199 * len(answers)))


@pytest.mark.parametrize(("share", "path"), [(0.0199, "ranking"), (0.02, "labels")])
def test_two_percent_parts_the_ways(begin, share, path):
    start = begin(prior_in_unlabeled=share)
    refiner = small(epochs=1, rounds=1, ratio_epochs=1).refine(start)
    assert refiner.facts()["path"] == path


# --- time -----------------------------------------------------------------------------


def test_a_deadline_is_kept_and_the_epochs_are_told(begin):
    start = time.perf_counter()
    refiner = small(epochs=10_000, ratio_epochs=10_000)
    refiner.refine(begin(deadline=Deadline(2.0)))
    assert time.perf_counter() - start < 12
    told = refiner.facts()["epochs"]
    assert set(told) >= {"ratio/0", "ratio/1", "round/0"}
    assert all(1 <= epochs < 10_000 for epochs in told.values())


def test_without_a_deadline_all_epochs_are_taken(begin):
    told = small(epochs=2, rounds=2, tolerance=0.0).refine(begin()).facts()["epochs"]
    ratio, rounds = {"ratio/0": 4, "ratio/1": 4}, {"round/0": 2, "round/1": 2}
    assert told == {**ratio, "risk": 4, **rounds}


def test_fewer_epochs_mean_a_shorter_average_and_warm_up(begin, monkeypatch):
    """What follows from the number of epochs follows from the number taken."""
    configs = []

    def note(net, batches, loss, config, **more):
        configs.append(config)

    monkeypatch.setattr("denspu.refinement.network_copies.train", note)
    monkeypatch.setattr("denspu.training.budget._seconds_per_step", lambda *_: 1e9)
    hurried = small(epochs=200, rounds=1, ratio_epochs=0, risk_epochs=0)
    hurried.refine(begin(deadline=Deadline(60.0)))
    (hurried,) = configs
    assert hurried.epochs == 1
    assert hurried.warmup_epochs == pytest.approx(0.1)
    assert hurried.ema_decay == 0.5


@pytest.mark.parametrize(
    ("seconds", "epochs"),
    [(5.0, [5]), (10.9, [10]), (14.0, [10]), (15.5, [10, 5]), (25.5, [10, 10, 5])],
)
def test_one_long_round_comes_before_several_short_ones(
    begin, monkeypatch, seconds, epochs
):
    """An epoch takes a second: the first round may take all, half a round must fit."""
    now, taken = [0.0], []
    clock = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr(_machine, "time", clock)

    def train(net, batches, loss, config, **more):
        now[0] += config.epochs
        taken.append(config.epochs)

    monkeypatch.setattr("denspu.refinement.network_copies.train", train)
    monkeypatch.setattr(
        "denspu.training.budget._seconds_per_step",
        lambda net, batches, *others: 1 / len(batches),
    )
    refiner = small(epochs=10, rounds=3, ratio_epochs=0, risk_epochs=0, tolerance=0.0)
    refiner.refine(begin(deadline=Deadline(seconds, began=0.0)))
    assert taken == epochs
    assert len(refiner.changed_) == len(epochs)


def test_no_round_begins_after_the_deadline(begin):
    refiner = small(rounds=5, epochs=1, ratio_epochs=1, tolerance=0.0)
    refiner.refine(begin(deadline=Deadline(1e-6)))
    assert len(refiner.changed_) == 1


# --- facts and refusals ---------------------------------------------------------------


def test_facts(begin):
    refiner = small(epochs=1, tolerance=0.0).refine(begin())
    facts = refiner.facts()
    assert facts["rounds"] == 2
    assert facts["changed"] == [round(share, 4) for share in refiner.changed_]
    assert facts["prior_interval"] == [refiner.prior_.low, refiner.prior_.high]
    assert 0 <= facts["held_out_called"] <= 1
    assert 0 <= facts["held_out_recall"] <= 1
    assert set(facts["held_out_auc"]) == {"boundary", "networks"}


def test_an_encoder_without_a_network_is_refused(begin):
    other = IdentityEncoder().fit(begin().X)
    with pytest.raises(InvalidParameterError, match="encoder='contrastive'"):
        small().refine(begin(encoder=other))


def test_before_refining():
    with pytest.raises(NotFittedError, match="has not refined anything"):
        NetworkRefiner().decision_function(np.zeros((1, 8, 8, 1)))


@pytest.mark.parametrize(
    "settings",
    [
        {"folds": 1}, {"rounds": 0}, {"epochs": 0}, {"ema_decay": 1.0}, {"crop": 0.0},
        {"erase": 1.0}, {"batch_size": 1}, {"ratio_epochs": -1}, {"mixup": "yes"},
    ],
)  # fmt: skip
def test_bad_parameters(begin, settings):
    with pytest.raises(InvalidParameterError, match=next(iter(settings))):
        small(**settings).refine(begin())


# --- losses ---------------------------------------------------------------------------


def same(x):
    return x


def test_label_loss_by_hand():
    rows, label, weight = torch.tensor([[0.5], [-1.0]]), [1.0, 0.0], [0.2, 1.0]
    found = LabelLoss(same, same, False)(
        lambda x: x[:, 0], (rows, torch.tensor(label), torch.tensor(weight))
    )
    losses = np.log1p(np.exp([-0.5, -1.0]))
    assert found.item() == pytest.approx(np.average(losses, weights=weight), abs=1e-6)


def test_mixup_mixes_rows_and_labels_alike():
    """The network sees what the labels say: a mixture of both ends."""
    seen = []
    rows = torch.tensor([[1.0], [0.0]])

    def note(x):
        seen.append(x)
        return x[:, 0]

    LabelLoss(same, same, True)(note, (rows, rows[:, 0], torch.ones(2)))
    share = seen[0][0, 0].item()
    assert 0 < share < 1
    assert seen[0].flatten().tolist() == pytest.approx([share, 1 - share])


def test_ratio_loss_by_hand():
    """Both sides count the same, however many rows they have."""
    loss = RatioLoss(same, same, torch.full((3, 1), 2.0))
    unlabeled = torch.tensor([[0.0], [1.0], [-1.0], [3.0]])
    found = loss(lambda x: x[:, 0], (unlabeled,))
    side_p = np.log1p(np.exp(-2.0))
    side_u = np.log1p(np.exp([0.0, 1.0, -1.0, 3.0])).mean()
    assert found.item() == pytest.approx((side_p + side_u) / 2, abs=1e-6)


def test_risk_loss_by_hand():
    """The bracket is negative here: too few of U are called positive for the prior."""
    loss = RiskLoss(same, same, torch.full((3, 1), 2.0), prior=0.6)
    unlabeled = torch.tensor([[0.0], [1.0], [-1.0], [-3.0]])
    found = loss(lambda x: x[:, 0], (unlabeled,))
    right = 1 / (1 + np.exp(-2.0))
    called = np.mean(1 / (1 + np.exp(-unlabeled.numpy())))
    assert called < 0.6 * right
    expected = 2 * (0.6 * (1 - right) + 0.6 * right - called)
    assert found.item() == pytest.approx(expected, abs=1e-6)


def test_mirror_images_get_the_mean():
    x = torch.arange(4.0).reshape(1, 1, 1, 4)

    def first(images):
        return images[:, 0, 0, 0]

    first_ = torch.nn.Module()
    first_.forward = first
    assert WithMirror(first_, True)(x).item() == 1.5
    assert WithMirror(first_, False)(x).item() == 0


@pytest.mark.parametrize("prior", [0.4, 0.001])
def test_positives_of_one_group_cannot_be_held_out(begin, prior):
    groups = np.where(np.arange(N) < N_LABELED, 0, np.arange(N))
    start = begin(groups=groups, prior_in_unlabeled=prior)
    refiner = small(rounds=1, epochs=1, ratio_epochs=1)
    with pytest.warns(FewRowsWarning, match="one group"):
        refiner.refine(start)
    facts = refiner.facts()
    assert "prior_interval" not in facts
    assert "held_out_auc" not in facts
    assert not facts["networks_used"]
    assert list(refiner.epochs_) == ["rank" if start.rare else "round/0"]
    assert np.isfinite(refiner.decision_function(start.X)).all()
