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
from tests.refinement.starts import begin

from denspu import _machine
from denspu._machine import Deadline
from denspu.encoders import ContrastiveEncoder, IdentityEncoder, contrastive
from denspu.exceptions import FewRowsWarning, InvalidParameterError
from denspu.networks.backbones import ResNet
from denspu.refinement import NetworkRefiner, network_training
from denspu.refinement.network import TEMPERATURE, Smoother
from denspu.refinement.network_training import Copies, LabelLoss, RatioLoss, RiskLoss

N_LABELED, N = 30, 160
TRUTH = np.arange(N) < N // 2
FREE = N - N_LABELED


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


@pytest.fixture(scope="module")
def walk(encoder):
    """Return what the walk would hand over; the first labels are a poor guess."""
    X, _ = pictures(N, 0)
    Z = encoder.transform(X)
    rng = np.random.default_rng(1)
    positive = np.arange(N) < N_LABELED
    guess = np.clip(np.where(TRUTH, 0.6, 0.4) + rng.normal(0, 0.25, N), 0.02, 0.98)

    def make(**changes):
        known = {"X": X, "encoder": encoder, "labels": np.where(positive, 1.0, guess)}
        known |= {"share": TRUTH[N_LABELED:].mean(), "scores": guess}
        return begin(Z, positive, **{**known, **changes})

    return make


def small(**changes):
    settings = {"ratio_epochs": 4, "risk_epochs": 4, "rounds": 2, "epochs": 4}
    settings |= {"batch_size": 40, "smooth": 5, "device": "cpu", "random_state": 0}
    return NetworkRefiner(**{**settings, **changes})


ONE = {"epochs": 1, "rounds": 1}
ALONE = {"ratio_epochs": 0, "risk_epochs": 0, **ONE}


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


@pytest.fixture
def networks_say(monkeypatch):
    """Let the networks of the ratio give chosen scores; train none."""

    def give(scores):
        monkeypatch.setattr(NetworkRefiner, "_cross_fitted", lambda *_: scores)

    return give


def above(start, share):
    """Return scores that put P over a share of U: that share is their AUC."""
    scores = np.empty(N)
    scores[start.unlabeled] = np.linspace(0, 1, start.unlabeled.sum())
    scores[start.positive] = share
    return scores


# --- labels ---------------------------------------------------------------------------


def test_beats_its_start_and_leaves_all_else_alone(walk, encoder):
    start, state = walk(), torch.get_rng_state()
    weights = {k: v.clone() for k, v in encoder.module_.state_dict().items()}
    refiner = small(tolerance=0.0).refine(start)
    free = start.unlabeled
    before = np.mean((start.labels > 0.5)[free] == TRUTH[free])
    after = np.mean((refiner.labels_ > 0.5)[free] == TRUTH[free])
    assert before < 0.8
    assert after > max(0.9, before + 0.1)
    X, truth = pictures(80, 5)
    answers = refiner.decision_function(X)
    assert np.mean((answers > 0) == truth) > 0.85
    assert np.array_equal(refiner.decision_function(X[3:4]), answers[3:4])
    assert torch.equal(torch.get_rng_state(), state)
    for name, value in encoder.module_.state_dict().items():
        assert torch.equal(value, weights[name]), name
    facts = refiner.facts()
    assert (facts["path"], facts["rounds"]) == ("labels", 2)
    assert facts["changed"] == [round(share, 4) for share in refiner.changed_]
    assert facts["prior_interval"] == [refiner.prior_.low, refiner.prior_.high]
    assert facts["epochs"] == {
        "ratio/0": 4, "ratio/1": 4, "risk": 4, "round/0": 4, "round/1": 4
    }  # fmt: skip
    assert 0 <= facts["held_out_called"] <= facts["held_out_recall"] <= 1


def test_what_is_known_stays_even_where_it_is_wrong(walk):
    known = np.zeros(N, dtype=bool)
    known[[40, 41, N - 1]] = True
    start = walk(known_negative=known)
    labels = small(**ONE, ratio_epochs=1).refine(start).labels_
    assert (labels[start.positive] == 1).all()
    assert (labels[known] == 0).all()
    assert ((labels >= 0) & (labels <= 1)).all()


def test_seeds_and_settings_reach_the_training(walk):
    start = walk()
    cheap = {**ONE, "ratio_epochs": 1, "risk_epochs": 1}
    plain = small(**cheap).refine(start)
    again = small(**cheap).refine(start)
    assert np.array_equal(plain.labels_, again.labels_)
    assert np.array_equal(
        plain.decision_function(start.X), again.decision_function(start.X)
    )
    for change in ({"random_state": 1}, {"lr": 0.01}, {"weight_decay": 0.5},
                   {"batch_size": 20}, {"mixup": False}, {"weighted": False},
                   {"ema_decay": None}, {"crop": 1.0}, {"erase": 0.0}):  # fmt: skip
        labels = small(**{**cheap, **change}).refine(start).labels_
        assert not np.array_equal(labels, plain.labels_), change


def test_rounds_end_when_labels_stand_still(walk):
    quick = {**ALONE, "rounds": 3}
    assert len(small(**quick, tolerance=1.0).refine(walk()).changed_) == 1
    assert len(small(**quick, tolerance=0.0).refine(walk()).changed_) == 3


def test_without_networks_the_boundary_is_where_it_starts(walk, first_labels):
    start = walk()
    refiner = small(smooth=0, **ALONE).refine(start)
    order = np.argsort(start.labels[start.unlabeled], kind="stable")
    assert (np.diff(first_labels[0][start.unlabeled][order]) >= 0).all()
    assert not hasattr(refiner, "prior_")
    assert "prior_interval" not in refiner.facts()
    small(smooth=5, **ALONE).refine(start)
    assert not np.array_equal(first_labels[1], first_labels[0])
    assert (first_labels[1][start.positive] == 1).all()


# --- how many -------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0.1, 0.6])
def test_rounds_begin_with_as_many_positives_as_the_prior_says(
    walk, first_labels, networks_say, prior
):
    start = walk(share=prior)
    small(**{**ALONE, "risk_epochs": 1}).refine(start)
    called = np.sum(first_labels[0][start.unlabeled] > 0.5)
    assert called == pytest.approx(prior * FREE, abs=1)
    networks_say(start.scores + start.positive)  # now the ratio has half a say
    refiner = small(risk_epochs=1, **ONE).refine(start)
    low, high = sorted((prior, refiner.prior_.prior_in_unlabeled))
    called = np.sum(first_labels[1][start.unlabeled] > 0.5)
    assert low * FREE - 1 <= called <= high * FREE + 1


@pytest.mark.parametrize("share", [0.1, 0.7])
def test_a_known_prior_is_kept_to_the_end(walk, first_labels, networks_say, share):
    """Left to itself the network goes back to the two groups that there are."""
    start = walk(share=share, prior_known=True)
    networks_say(start.scores + start.positive)
    refiner = small(tolerance=0.0, smooth=0).refine(start)
    assert refiner.prior_.low == refiner.prior_.high == share
    assert refiner.estimated_.low < refiner.estimated_.high
    called = [(labels > 0.5)[start.free] for labels in (*first_labels, refiner.labels_)]
    for rows in called:
        assert rows.sum() == pytest.approx(share * FREE, abs=1)
    answers = refiner.decision_function(start.X)[start.free]
    assert np.array_equal(answers > 0, called[-1])


@pytest.mark.parametrize(("count", "ratio_epochs"), [(1, 0), (2, 1)])
def test_so_few_as_are_known_are_called(walk, count, ratio_epochs):
    """Where positives are rare posteriors add up to the share, and few pass 1/2."""
    start = walk(share=count / FREE, prior_known=True)
    assert start.rare
    refiner = small(ratio_epochs=ratio_epochs, epochs=2).refine(start)
    assert (refiner.labels_[start.free] > 0.5).sum() == count
    assert (refiner.decision_function(start.X)[start.free] > 0).sum() == count
    assert (refiner.labels_[start.positive] == 1).all()


@pytest.mark.parametrize("hidden", [3, 40])
def test_held_out_positives_are_not_among_the_known(walk, hidden):
    """They lie at the end of the ranking: called or not, ``hidden`` others are."""
    held = (np.arange(N) >= N_LABELED) & (np.arange(N) < N_LABELED + 20)
    start = walk(share=(hidden + 20) / FREE, prior_known=True, held_out=held)
    refiner = small(smooth=0, risk_epochs=0, **ONE).refine(start)
    mine = start.free & ~held
    assert (refiner.labels_[mine] > 0.5).sum() == hidden
    assert (refiner.decision_function(start.X)[mine] > 0).sum() == hidden


# --- whether networks are believed ----------------------------------------------------


def test_the_risk_alone_finds_the_positives(walk):
    """Start labels say nothing: what is learned comes from P, U and the prior."""
    start = walk()
    copies = Copies(small(risk_epochs=12), start)
    network = copies.train_risk(start.prior_in_unlabeled)
    scores = copies.score(network, np.ones(N, dtype=bool))
    free = start.unlabeled
    assert roc_auc_score(TRUTH[free], scores[free]) > 0.9


def test_ratio_scores_come_from_networks_that_have_not_seen_the_row(walk, monkeypatch):
    learned, scored = [], []
    monkeypatch.setattr(
        Copies, "train_ratio", lambda self, rows, *_: learned.append(rows)
    )
    monkeypatch.setattr(
        Copies,
        "score",
        lambda self, net, rows: scored.append(rows) or np.zeros(rows.sum()),
    )
    refiner, start = small(folds=3), walk()
    refiner._cross_fitted(start, Copies(refiner, start), 1)
    assert [np.array_equal(a, ~b) for a, b in zip(learned, scored, strict=True)]
    assert np.sum(scored, axis=0).tolist() == [1] * N
    assert all(not (a & b).any() for a, b in zip(learned, scored, strict=True))


@pytest.mark.parametrize(
    ("boundary", "networks", "believed"),
    [(0.9, 0.85, False), (0.9, 0.87, True), (0.3, 0.31, True)],
)
def test_networks_need_nine_tenths_of_the_lead(
    walk, networks_say, boundary, networks, believed
):
    """A boundary with an AUC of 0.9 leads by 0.4: networks need 0.86."""
    start = walk()
    start = replace(start, scores=above(start, boundary))
    networks_say(above(start, networks))
    refiner = small(**ONE).refine(start)
    assert ("risk" in refiner.epochs_) is believed
    assert hasattr(refiner, "prior_") is believed
    assert refiner.facts()["networks_used"] is believed
    found = refiner.facts()["held_out_auc"]
    assert found["boundary"] == pytest.approx(boundary, abs=0.01)
    assert found["networks"] == pytest.approx(networks, abs=0.01)


def test_of_networks_that_are_not_believed_nothing_is_used(
    walk, first_labels, networks_say
):
    """Quality is then told of the boundary, cut where its labels pass one half."""
    start = walk()
    scores = above(start, 0.9)
    labels = start.pinned(np.where(scores > 0.7, 0.8, 0.2))
    start = replace(start, scores=scores, labels=labels)
    networks_say(np.full(N, np.nan))  # they have diverged
    refiner = small(**ONE).refine(start)
    small(**ALONE).refine(start)
    assert np.array_equal(*first_labels)
    facts = refiner.facts()
    assert facts["held_out_auc"]["networks"] == 0.5
    assert facts["held_out_recall"] == 1
    called = (scores > 0.7)[start.unlabeled].mean()
    assert facts["held_out_called"] == pytest.approx(called)


def test_known_negatives_do_not_count_against_either(walk, networks_say):
    known = np.arange(N) >= N - 20
    start = walk(known_negative=known)
    start = replace(start, scores=np.where(known, 2.0, above(start, 0.9)))
    networks_say(start.scores)
    found = small(**ONE).refine(start).held_out_auc_
    share = np.mean(start.scores[start.free] < 0.9)
    assert found == pytest.approx({"boundary": share, "networks": share})


@pytest.mark.parametrize("prior", [0.4, 0.001])
def test_positives_of_one_group_cannot_be_held_out(walk, prior):
    groups = np.where(np.arange(N) < N_LABELED, 0, np.arange(N))
    start = walk(groups=groups, share=prior)
    refiner = small(**ONE, ratio_epochs=1)
    with pytest.warns(FewRowsWarning, match="one group"):
        refiner.refine(start)
    facts = refiner.facts()
    assert not {"prior_interval", "held_out_auc"} & set(facts)
    assert not facts["networks_used"]
    assert list(refiner.epochs_) == ["rank" if start.rare else "round/0"]
    assert np.isfinite(refiner.decision_function(start.X)).all()


# --- rare positives -------------------------------------------------------------------


@pytest.fixture
def rare(walk):
    """Few positives inside U: of the hidden ones only five are kept."""
    start = walk(share=0.01)
    keep = (np.arange(N) < N_LABELED + 5) | ~TRUTH
    names = ("X", "Z", "positive", "known_negative", "scores", "labels")
    return replace(start, **{name: getattr(start, name)[keep] for name in names})


def test_rare_positives_are_ranked(rare):
    refiner = small(ratio_epochs=10).refine(rare)
    assert refiner.facts()["path"] == "ranking"
    assert refiner.changed_ == []
    X, truth = pictures(80, 5)
    assert roc_auc_score(truth, refiner.decision_function(X)) > 0.9
    assert (refiner.labels_[rare.positive] == 1).all()
    answers = refiner.decision_function(rare.X[rare.unlabeled])
    share = refiner.prior_.prior_in_unlabeled
    assert np.mean(answers > 0) == pytest.approx(share, abs=1.5 / len(answers))


def test_rare_positives_are_ranked_by_the_boundary_if_it_knows_more(rare, networks_say):
    known = np.zeros(len(rare.positive), dtype=bool)
    known[-20:] = True
    truth = np.arange(len(known)) < N_LABELED + 5
    score = np.where(truth, 0.9, 0.1)
    start = replace(rare, scores=score, known_negative=known, prior_in_unlabeled=0.0199)
    start = replace(start, labels=start.pinned(score))
    networks_say(-score)
    refiner = small(epochs=10, smooth=0).refine(start)
    assert list(refiner.epochs_) == ["rank"]
    assert np.array_equal(refiner.labels_, start.labels)
    X, truth = pictures(80, 5)
    assert roc_auc_score(truth, refiner.decision_function(X)) > 0.9
    answers = refiner.decision_function(start.X[start.free])
    assert np.sum(answers >= 0) == max(1, round(0.0199 * len(answers)))
    smoothed = small(epochs=1).refine(start).labels_
    assert not np.array_equal(smoothed, start.labels)


@pytest.mark.parametrize(("share", "path"), [(0.0199, "ranking"), (0.02, "labels")])
def test_two_percent_parts_the_ways(walk, share, path):
    refiner = small(**ONE, ratio_epochs=1).refine(walk(share=share))
    assert refiner.facts()["path"] == path


# --- time -----------------------------------------------------------------------------


def test_a_deadline_is_kept_and_the_epochs_are_told(walk):
    began = time.perf_counter()
    refiner = small(epochs=10_000, ratio_epochs=10_000, rounds=5, tolerance=0.0)
    refiner.refine(walk(deadline=Deadline(1.0)))
    assert time.perf_counter() - began < 12
    told = refiner.facts()["epochs"]
    assert set(told) >= {"ratio/0", "ratio/1", "round/0"}
    assert all(1 <= epochs < 10_000 for epochs in told.values())
    late = small(**ONE, ratio_epochs=1, tolerance=0.0)
    assert len(late.refine(walk(deadline=Deadline(1e-6))).changed_) == 1


def test_fewer_epochs_mean_a_shorter_average_and_warm_up(walk, monkeypatch):
    """What follows from the number of epochs follows from the number taken."""
    configs = []
    monkeypatch.setattr(
        network_training,
        "train",
        lambda net, batches, loss, config, **_: configs.append(config),
    )
    monkeypatch.setattr("denspu.training.loop._seconds_per_step", lambda *_: 1e9)
    start = walk(deadline=Deadline(60.0))
    small(**{**ALONE, "epochs": 200}).refine(start)
    (hurried,) = configs
    assert hurried.epochs == 1
    assert hurried.warmup_epochs == pytest.approx(0.1)
    assert hurried.ema_decay == 0.5


@pytest.mark.parametrize(
    ("seconds", "epochs"),
    [(5.0, [5]), (14.0, [10]), (15.5, [10, 5]), (25.5, [10, 10, 5])],
)
def test_one_long_round_comes_before_several_short_ones(
    walk, monkeypatch, seconds, epochs
):
    """An epoch takes a second: the first round may take all, half a round must fit."""
    now, taken = [0.0], []
    clock = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr(_machine, "time", clock)

    def train(net, batches, loss, config, **more):
        now[0] += config.epochs
        taken.append(config.epochs)

    monkeypatch.setattr(network_training, "train", train)
    monkeypatch.setattr(
        "denspu.training.loop._seconds_per_step",
        lambda net, batches, *others: 1 / len(batches),
    )
    refiner = small(**{**ALONE, "epochs": 10, "rounds": 3}, tolerance=0.0)
    refiner.refine(walk(deadline=Deadline(seconds, began=0.0)))
    assert taken == epochs
    assert len(refiner.changed_) == len(epochs)


# --- losses, neighbours, refusals -----------------------------------------------------


def same(x):
    return x


def first_column(x):
    return x[:, 0]


def test_label_loss_by_hand():
    batch = torch.tensor([[0.5], [-1.0]]), torch.tensor([1.0, 0.0])
    weight = torch.tensor([0.2, 1.0])
    found = LabelLoss(same, same, False)(first_column, (*batch, weight))
    losses = np.log1p(np.exp([-0.5, -1.0]))
    assert found.item() == pytest.approx(np.average(losses, weights=weight), abs=1e-6)


def test_mixup_mixes_rows_and_labels_alike():
    """The network sees what the labels say: a mixture of both ends."""
    seen = []
    rows = torch.tensor([[1.0], [0.0]])
    LabelLoss(same, same, True)(
        lambda x: seen.append(x) or x[:, 0], (rows, rows[:, 0], torch.ones(2))
    )
    share = seen[0][0, 0].item()
    assert 0 < share < 1
    assert seen[0].flatten().tolist() == pytest.approx([share, 1 - share])


def test_ratio_and_risk_loss_by_hand():
    """Of P and U both sides count the same in the one; the other is negative here."""
    positive, u = torch.full((3, 1), 2.0), np.array([0.0, 1.0, -1.0, -3.0])
    batch = (torch.tensor(u[:, None], dtype=torch.float32),)
    ratio = RatioLoss(same, same, positive)(first_column, batch)
    sides = np.log1p(np.exp(-2.0)), np.log1p(np.exp(u)).mean()
    assert ratio.item() == pytest.approx(sum(sides) / 2, abs=1e-6)
    risk = RiskLoss(same, same, positive, prior=0.6)(first_column, batch)
    right, called = 1 / (1 + np.exp(-2.0)), np.mean(1 / (1 + np.exp(-u)))
    assert called < 0.6 * right  # too few of U are called positive
    expected = 2 * (0.6 * (1 - right) + 0.6 * right - called)
    assert risk.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("k", [5, 100])
def test_means_over_neighbours_equal_a_loop(k):
    """A row does not vouch for itself, whatever its length; more than all is all."""
    rng = np.random.default_rng(0)
    Z, values = rng.normal(size=(30, 3)), rng.random(30)
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -np.inf)

    def twin(values):
        near = np.argsort(-cosine, axis=1)[:, : min(k, 29)]
        weight = np.exp(np.take_along_axis(cosine, near, 1) / TEMPERATURE)
        return np.average(values[near], weights=weight, axis=1)

    smoother = Smoother(Z, k)
    assert np.allclose(smoother(values), twin(values), atol=1e-6)

    def pin(v):
        return np.where(np.arange(30) < 10, 1.0, v)

    twice = smoother(values, 2, pin)
    assert np.allclose(twice, pin(twin(pin(twin(values)))), atol=1e-6)


def test_refusals(walk):
    other = IdentityEncoder().fit(walk().X)
    with pytest.raises(InvalidParameterError, match="encoder='contrastive'"):
        small().refine(walk(encoder=other))
    with pytest.raises(NotFittedError, match="has not refined anything"):
        NetworkRefiner().decision_function(np.zeros((1, 8, 8, 1)))
    with pytest.raises(InvalidParameterError, match=r"'ema_decay'.*'crop'"):
        small(ema_decay=1.0, crop=0.0).refine(walk())
