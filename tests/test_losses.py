"""Each loss beside an independent NumPy twin, its gradient, and what it is for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from denspu import losses
from denspu.losses import CLAMP

# --- twins ----------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def bounded(margin):
    """Return the sigmoid loss."""
    return sigmoid(-margin)


def logistic(margin):
    return np.log1p(np.exp(-margin))


def cross_entropy(logits, label):
    return label * logistic(logits) + (1 - label) * logistic(-logits)


def twin_non_negative(r):
    a = 0.4 * bounded(r.p).mean()
    b = bounded(-r.u).mean() - 0.4 * bounded(-r.p).mean()
    return a + b if b >= -0.05 else -0.3 * b


def twin_nt_xent(r):
    z = r.z / np.linalg.norm(r.z, axis=1, keepdims=True)
    n, half = len(z), len(z) // 2

    def log_share(i, j):
        others = [np.exp(z[i] @ z[k] / 0.5) for k in range(n) if k != i]
        return z[i] @ z[j] / 0.5 - np.log(sum(others))

    loss = -np.mean([log_share(i, (i + half) % n) for i in range(n)])
    views = [i for i in range(n) if r.chosen[i % half]]
    pairs = [log_share(i, j) for i in views for j in views if i != j]
    return loss - 0.7 * np.mean(pairs) * len(views) / n if pairs else loss


def twin_class_alignment(r):
    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    online, target, chance = r.z, r.others, np.r_[r.sp, r.sp]
    n = len(online)
    own = np.mean([2 * (1 - cosine(online[i], target[i])) for i in range(n)])
    pairs = [
        2 * np.sqrt(1 - cosine(online[i], target[j]))
        for i in range(n)
        for j in range(n)
        if i != j and chance[i] * chance[j] + (1 - chance[i]) * (1 - chance[j]) >= 0.5
    ]
    return own + 3 * (np.mean(pairs) if pairs else 0.0)


def twin_chosen(r):
    of_chosen = logistic(-r.n[r.chosen == 1]).mean() if r.chosen.any() else 0.0
    return 0.4 * logistic(r.p).mean() + 0.6 * of_chosen


def twin_reinforce(r):
    draws, rewards = np.stack([r.chosen, 1 - r.chosen, r.chosen]), r.u[:3]
    advantage = (rewards - rewards.mean()) / rewards.std()
    chance = np.where(draws == 1, sigmoid(r.p), 1 - sigmoid(r.p))
    return -np.mean(advantage * np.log(chance).mean(axis=1))


def twin_self_paced(r):
    trusted = r.chosen == 1
    of_rest = bounded(-r.n[~trusted]).mean() if (~trusted).any() else 0.0
    b = of_rest - 0.4 * bounded(-r.p).mean()
    risk = 0.4 * bounded(r.p).mean() + b if b >= 0 else -b
    return (~trusted).mean() * risk + (trusted * cross_entropy(r.n, r.sp)).mean()


def twin_recursive(r):
    kappa = 0.3 / 0.6
    as_positive = abs(kappa * (bounded(r.n).mean() - 0.4 * bounded(r.p).mean()))
    as_negative = abs(kappa * (bounded(-r.n).mean() - 0.4 * bounded(-r.p).mean()))
    return abs(bounded(r.u).mean() - as_positive) + as_negative


def twin_reweighted(r):
    kappa = 0.3 / 0.6
    w_positive = kappa * (r.sp * bounded(r.n)).mean()
    w_negative = kappa * (r.sp * bounded(-r.n)).mean()
    on_second = abs(0.2 * (bounded(r.u).mean() - w_positive))
    return 0.8 * 0.7 * bounded(r.p).mean() + w_negative + on_second


def twin_seen(r):
    a = 0.4 * logistic(r.p).mean() + 0.2 * logistic(r.n).mean()
    b = logistic(-r.u).mean() - 0.4 * logistic(-r.p).mean()
    return a - 2 * (b - 0.2 * logistic(-r.n).mean())


def twin_partly_trusting(r):
    odds = (r.sp > 0.5) * (1 - r.sp) / r.sp
    risk = 0.4 * np.mean(logistic(r.p) + logistic(-r.p) * odds)
    risk += 0.1 * np.mean(logistic(-r.n) * (1 + odds))
    return risk + np.sum((logistic(-r.u) * (1 - r.su))[r.su <= 0.5]) / len(r.u)


HALF = torch.tensor(0.5, dtype=torch.float64)

TWINS = {
    "A of the risk": (
        lambda r: losses.risk_parts(r.p, r.u, 0.4, losses.logistic_loss)[0],
        lambda r: 0.4 * logistic(r.p).mean(),
    ),
    "B of the risk": (
        lambda r: losses.risk_parts(r.p, r.u, 0.4, losses.logistic_loss)[1],
        lambda r: logistic(-r.u).mean() - 0.4 * logistic(-r.p).mean(),
    ),
    "unbiased": (
        lambda r: losses.unbiased(*losses.risk_parts(r.p, r.u, 0.4)),
        lambda r: 0.4 * (bounded(r.p) - bounded(-r.p)).mean() + bounded(-r.u).mean(),
    ),
    "non_negative": (
        lambda r: losses.non_negative(*losses.risk_parts(r.p, r.u, 0.4), 0.05, 0.3),
        twin_non_negative,
    ),
    "absolute_risk": (
        lambda r: losses.absolute_risk(r.p, r.u, 0.4),
        lambda r: (
            0.4 * bounded(r.p).mean()
            + abs(bounded(-r.u).mean() - 0.4 * bounded(-r.p).mean())
        ),
    ),
    "balanced_parts": (
        lambda r: sum(losses.balanced_parts(r.p, r.u, 0.4, 0.7)),
        lambda r: (
            0.7 * bounded(r.p).mean()
            + 0.3 / 0.6 * (bounded(-r.u).mean() - 0.4 * bounded(-r.p).mean())
        ),
    ),
    "label_distribution": (
        lambda r: losses.label_distribution(r.p, r.u, 0.4),
        lambda r: 1 - sigmoid(r.p).mean() + abs(sigmoid(r.u).mean() - 0.4) / 0.8,
    ),
    "entropy": (
        lambda r: losses.entropy(r.u),
        lambda r: cross_entropy(r.u, sigmoid(r.u)).mean(),
    ),
    "variational": (
        lambda r: losses.variational(losses.log_phi(r.p), losses.log_phi(r.u)),
        lambda r: np.log(sigmoid(r.u).mean()) - np.log(sigmoid(r.p)).mean(),
    ),
    "consistency": (
        lambda r: losses.consistency(losses.log_phi(r.p), losses.log_phi(r.n), HALF),
        lambda r: np.mean(
            (np.log(0.5 * sigmoid(r.p) + 0.5) - np.log(sigmoid(r.n))) ** 2
        ),
    ),
    "mixup_loss": (
        lambda r: losses.mixup_loss(r.p, r.sp, r.chosen, 0.6 * HALF),
        lambda r: np.mean(
            0.3 * cross_entropy(r.p, r.sp) + 0.7 * cross_entropy(r.p, r.chosen)
        ),
    ),
    "nt_xent": (
        lambda r: losses.nt_xent(r.z, 0.5, r.chosen, 0.7),
        twin_nt_xent,
    ),
    "class_alignment": (
        lambda r: losses.class_alignment(
            r.z, r.others, torch.cat([r.sp, r.sp]), class_weight=3.0
        ),
        twin_class_alignment,
    ),
    "recursive_risk": (
        lambda r: losses.recursive_risk(r.p, r.n, r.u, 0.4, 0.7),
        twin_recursive,
    ),
    "reweighted_risk": (
        lambda r: losses.reweighted_risk(r.p, r.n, r.u, r.sp, 0.4, 0.7, 0.2),
        twin_reweighted,
    ),
    "seen_parts": (
        lambda r: (lambda a, b: a - 2 * b)(*losses.seen_parts(r.p, r.u, 0.4, r.n, 0.2)),
        twin_seen,
    ),
    "squared_error": (
        lambda r: losses.squared_error(r.p, r.u, 0.4, r.n, 0.2),
        lambda r: (
            (sigmoid(r.u) ** 2).mean()
            - 0.8 * sigmoid(r.p).mean()
            - 0.4 * sigmoid(r.n).mean()
        ),
    ),
    "partly_trusting_risk": (
        lambda r: losses.partly_trusting_risk(
            (r.p, r.sp), (r.u, r.su), 0.4, 0.5, (r.n, r.sp), 0.1
        ),
        twin_partly_trusting,
    ),
    "discriminator_loss": (
        lambda r: losses.discriminator_loss(r.p, r.u, r.n, 0.3),
        lambda r: (
            logistic(r.p).mean()
            + 0.3 * logistic(-r.u).mean()
            + 0.7 * logistic(-r.n).mean()
        ),
    ),
    "discriminator_loss of one": (
        lambda r: losses.discriminator_loss(r.p, r.u),
        lambda r: logistic(r.p).mean() + logistic(-r.u).mean(),
    ),
    "positive_generator_loss": (
        lambda r: losses.positive_generator_loss(r.p, r.u, 0.4, 2.0, 5.0),
        lambda r: 0.4 * (2 * logistic(r.p).mean() + 5 * logistic(r.u).mean()),
    ),
    "negative_generator_loss": (
        lambda r: losses.negative_generator_loss(r.p, r.u, 0.4, 2.0, 5.0),
        lambda r: 0.6 * (2 * logistic(-r.p).mean() + 5 * logistic(r.u).mean()),
    ),
    "chosen_risk": (
        lambda r: losses.chosen_risk(r.p, r.n, r.chosen, 0.4),
        twin_chosen,
    ),
    "pu_accuracy": (
        lambda r: losses.pu_accuracy(r.p, r.u, 0.4),
        lambda r: 0.8 * sigmoid(r.p).mean() + (1 - sigmoid(r.u)).mean(),
    ),
    "reinforce": (
        lambda r: losses.reinforce(
            r.p, torch.stack([r.chosen, 1 - r.chosen, r.chosen]), r.u[:3].detach()
        ),
        twin_reinforce,
    ),
    "self_paced_risk": (
        lambda r: losses.self_paced_risk(r.p, r.n, r.sp, r.chosen, 0.4),
        twin_self_paced,
    ),
    "disagreement": (
        lambda r: losses.disagreement(r.p, r.n),
        lambda r: np.mean((sigmoid(r.p) - sigmoid(r.n)) ** 2),
    ),
}


def draw(seed):
    """Return logits p, u, n, chances sp, su, choices and embeddings as NumPy arrays."""
    rng = np.random.default_rng(seed)
    p, u, n = (3 * rng.normal(size=size) for size in (4, 6, 4))
    sp, su = rng.uniform(0.02, 0.98, 4), rng.uniform(0.02, 0.98, 6)
    chosen = (rng.random(4) < [0.5, 0.0, 1.0][seed % 3]).astype(float)
    z, others = rng.normal(size=(2, 8, 3))
    return SimpleNamespace(
        p=p, u=u, n=n, sp=sp, su=su, chosen=chosen, z=z, others=others
    )


def as_tensors(r):
    return SimpleNamespace(**{k: torch.tensor(v) for k, v in vars(r).items()})


@pytest.mark.parametrize("name", TWINS)
def test_it_equals_its_twin(name):
    of, twin = TWINS[name]
    for seed in range(12):
        rows = draw(seed)
        # nt_xent computes in single precision whatever it is given
        within = 1e-5 if name == "nt_xent" else 1e-10
        assert of(as_tensors(rows)).item() == pytest.approx(twin(rows), abs=within)


STILL = {"disagreement": ("n",), "reinforce": ("u",)}
"""What gets no gradient: others to agree with, rewards."""


@pytest.mark.parametrize("name", TWINS)
def test_its_gradient_is_the_slope_of_its_twin(name):
    of, twin = TWINS[name]
    rows, step = draw(3), 1e-6
    leaves = as_tensors(rows)
    moved = [leaf for leaf in ("p", "u", "n", "z") if leaf not in STILL.get(name, ())]
    for leaf in moved:
        getattr(leaves, leaf).requires_grad_()
    found = torch.autograd.grad(
        of(leaves), [getattr(leaves, leaf) for leaf in moved], materialize_grads=True
    )
    for leaf, slope in zip(moved, found, strict=True):
        values = getattr(rows, leaf)
        for place in np.ndindex(*values.shape):
            ends, kept = [], values[place]
            for values[place] in (kept + step, kept - step):
                ends.append(twin(rows))
            values[place] = kept
            wanted = (ends[0] - ends[1]) / (2 * step)
            assert slope[place].item() == pytest.approx(wanted, abs=1e-5)


# --- what each is for -----------------------------------------------------------------


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def slopes(loss, *inputs):
    return torch.autograd.grad(loss, inputs, materialize_grads=True)


@pytest.fixture(scope="module")
def mixture():
    """Return P, N and U = 0.3 P + 0.7 N exactly, as logits, and the supervised risk."""
    rng = np.random.default_rng(0)
    p, n = rng.normal(1, 1, 300), rng.normal(-1, 1, 700)
    risk = 0.3 * bounded(p).mean() + 0.7 * bounded(-n).mean()
    return SimpleNamespace(p=p, n=n, u=np.r_[p, n], risk=risk)


def test_pu_risks_are_the_supervised_risk(mixture):
    p, u = tensor(mixture.p), tensor(mixture.u)
    assert losses.absolute_risk(p, u, 0.3).item() == pytest.approx(mixture.risk)
    balanced = sum(losses.balanced_parts(p, u, 0.3)).item()
    equal = (bounded(mixture.p).mean() + bounded(-mixture.n).mean()) / 2
    assert balanced == pytest.approx(equal)
    right = 0.3 * sigmoid(mixture.p).mean() + 0.7 * (1 - sigmoid(mixture.n)).mean()
    reward = losses.pu_accuracy(p, u, 0.3).item()
    assert reward == pytest.approx(right + 0.3)  # the accuracy, without a true label


def test_risks_follow_a_shift_of_the_positives():
    """Exact mixtures and exact weights: both give the supervised risk in use."""
    rng = np.random.default_rng(0)
    before, after, n = (rng.normal(m, 1, 300) for m in (2, 1, -1))
    first = np.r_[before, np.tile(n, 2)]  # a third is positive
    second = np.r_[np.tile(after, 3), n]  # three quarters are
    wanted = 0.75 * bounded(after).mean() + 0.25 * bounded(-n).mean()
    rows = [tensor(x) for x in (before, first, second)]
    found = losses.recursive_risk(*rows, 1 / 3, 0.75).item()
    assert found == pytest.approx(wanted)
    weight = tensor(np.r_[np.zeros(300), np.ones(600)])
    found = losses.reweighted_risk(*rows, weight, 1 / 3, 0.75).item()
    assert found == pytest.approx(wanted)


def test_the_squared_error_is_the_true_one_less_a_constant():
    """A population of three kinds of rows, and any σ on them."""
    weight = np.array([0.5, 0.3, 0.2])
    positive, known = np.array([0.9, 0.4, 0.0]), np.array([0.0, 0.5, 0.3])
    seen = positive + known  # P(seen | kind)
    counts = 1000 * np.array([weight, weight * positive, weight * known])
    logits = np.array([2.0, -1.0, 3.0])
    u, p, n = (tensor(np.repeat(logits, c.round().astype(int))) for c in counts)
    found = losses.squared_error(p, u, weight @ positive, n, weight @ known).item()
    wanted = weight @ (sigmoid(logits) - seen) ** 2
    assert found + weight @ seen**2 == pytest.approx(wanted)
    without = losses.squared_error(p, u, 0.3).item()
    squared = (sigmoid(u.numpy()) ** 2).mean()
    assert without == pytest.approx(squared - 0.6 * sigmoid(p.numpy()).mean())


@pytest.mark.parametrize("gamma", [1.0, 0.3])
def test_a_step_back_follows_the_negative_part_alone(gamma):
    """P sure and U called negative throughout: B < 0, and A is dropped."""
    p = torch.full((3,), 10.0, dtype=torch.float64, requires_grad=True)
    u = torch.full((4,), -10.0, dtype=torch.float64, requires_grad=True)
    a, b = losses.risk_parts(p, u, 0.4)
    tail = 1 / (1 + np.exp(10))
    assert b.item() == pytest.approx(tail - 0.4 * (1 - tail), abs=1e-12)
    wanted = slopes(-gamma * losses.risk_parts(p, u, 0.4)[1], p, u)
    found = slopes(losses.non_negative(a, b, 0.0, gamma), p, u)
    assert all(map(torch.equal, found, wanted))
    a, b = losses.risk_parts(p, u, 0.4)
    assert not torch.allclose(found[0], slopes(a + b.clamp_min(0), p)[0])
    zeros = torch.zeros(4, dtype=torch.float64)
    risk = losses.self_paced_risk(p, u, zeros, zeros, 0.4)
    wanted = slopes(-losses.risk_parts(p, u, 0.4)[1], p, u)
    assert all(map(torch.equal, slopes(risk, p, u), wanted))


def test_variational_is_least_at_the_density_ratio():
    """Three cells with P = (.6, .4, 0) and U = (.3, .3, .4): Φ ~ P / U."""

    def loss(phi):
        of_p, of_u = np.repeat(phi, [6, 4, 0]), np.repeat(phi, [3, 3, 4])
        return losses.variational(tensor(np.log(of_p)), tensor(np.log(of_u))).item()

    best = np.array([0.6 / 0.3, 0.4 / 0.3, 1e-12])
    assert loss(0.3 * best) == pytest.approx(loss(best))
    for other in ([2.0, 1.0, 0.1], [1.0, 1.0, 1e-12], [2.2, 1.3, 1e-12]):
        assert loss(np.array(other)) > loss(best)


def test_sure_answers_stay_finite():
    p, u = tensor([-800.0, 5.0]), tensor([-900.0, -800.0])
    assert losses.variational(losses.log_phi(p), losses.log_phi(u)).isfinite()
    x = tensor([500.0, -500.0, 0.0]).requires_grad_()
    value, rest = losses.entropy(x), losses.entropy(tensor([CLAMP])).item()
    assert slopes(value, x)[0].isfinite().all()
    assert value.item() == pytest.approx((np.log(2) + 2 * rest) / 3)
    x = tensor([0.5, 1.0]).requires_grad_()
    seen, zeros = tensor([0.0, 1e-30]), tensor([0.0, 0.0])
    risk = losses.partly_trusting_risk((x, seen), (x, zeros), 0.3, 0.1)
    assert slopes(risk, x)[0].isfinite().all()
    z = torch.ones(3, 2, requires_grad=True)
    alignment = losses.class_alignment(z, z.detach(), torch.ones(3))
    assert slopes(alignment, z)[0].isfinite().all()  # the root is steep at 0


def test_nt_xent_at_its_ends():
    z = torch.ones(8, 3)  # every other view is as likely
    assert losses.nt_xent(z).item() == pytest.approx(np.log(7), abs=1e-5)
    pairs = torch.eye(4).repeat(2, 1)
    assert losses.nt_xent(pairs, 0.05).item() < 1e-6
    assert losses.nt_xent(torch.cat([pairs[:4], pairs[:4].roll(1, 0)]), 0.05) > 10
    assert losses.nt_xent(pairs.bfloat16()).dtype == torch.float32
    positive = torch.tensor([True, False, True, True])
    assert losses.nt_xent(z, 0.2, positive, 0.0) == losses.nt_xent(z, 0.2)


def test_who_pushes_where_in_gen_pu():
    """Made negatives help D_n to tell them from P, everything else is to be fooled."""
    one, by_u = (torch.zeros(3, requires_grad=True) for _ in range(2))
    of_n, of_u = slopes(losses.negative_generator_loss(one, by_u, 0.4, 1, 1), one, by_u)
    assert (of_n > 0).all()
    assert (of_u < 0).all()
    found = slopes(losses.positive_generator_loss(one, by_u, 0.4, 1, 1), one, by_u)
    assert all((slope < 0).all() for slope in found)


def test_choices_of_the_better_draw_become_likelier():
    scores, draws = torch.zeros(2, requires_grad=True), torch.eye(2)
    better = losses.reinforce(scores, draws, torch.tensor([1.0, 0.2]))
    first, second = slopes(better, scores)[0]
    assert first < 0 < second
    assert not slopes(losses.reinforce(scores, draws, torch.ones(2)), scores)[0].any()


@pytest.mark.parametrize(("loss", "kept"), [(1.1, 1.0), (0.9, 0.0)])
def test_students_that_differ_much_are_left_alone(loss, kept):
    difference = torch.tensor(0.1, requires_grad=True)
    found = losses.agreeing(torch.tensor(loss), difference, 10.0)
    assert slopes(found, difference)[0].item() == kept
    assert found.item() == pytest.approx(0.1 * kept)


def test_mixup_draws_shares_and_orders():
    device = torch.device("cpu")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for alpha in (0.3, 6.0):
            drawn = torch.stack([losses.beta_share(alpha, device) for _ in range(4000)])
            assert drawn.mean().item() == pytest.approx(0.5, abs=0.03)
            wanted = 1 / (4 * (2 * alpha + 1))
            assert drawn.var().item() == pytest.approx(wanted, rel=0.15)
            assert 0 < drawn.min() <= drawn.max() < 1
        order = losses.random_order(50, device).tolist()
    assert sorted(order) == list(range(50)) != order
    found = losses.mixed(tensor([4.0, 0.0]), tensor([0.0, 8.0]), tensor(0.25))
    assert found.tolist() == [1.0, 6.0]
