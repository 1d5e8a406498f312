"""The losses of the PU methods: NumPy twins, gradients, and what joins them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from denspu.losses import (
    balanced_parts,
    beta_share,
    consistency,
    entropy,
    label_distribution,
    log_phi,
    mixed,
    mixup_loss,
    non_negative,
    random_order,
    risk_parts,
    unbiased,
    variational,
)
from denspu.losses import three_samples as biased
from denspu.losses import three_samples as shifted
from denspu.losses.risk import CLAMP

logits = st.lists(st.floats(-8, 8), min_size=1, max_size=12)
share = st.floats(0.05, 0.95)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def rows(*sizes, seed=0):
    torch_rng = torch.Generator().manual_seed(seed)
    return [
        torch.randn(n, dtype=torch.float64, generator=torch_rng).requires_grad_()
        for n in sizes
    ]


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x)))


def bounded(margin):
    """Return the sigmoid loss."""
    return sigmoid(-np.asarray(margin))


def logistic(margin):
    return np.log1p(np.exp(-np.asarray(margin)))


def gradient_of(loss, *inputs):
    return torch.autograd.grad(loss, inputs, allow_unused=True)


# --- uPU and nnPU ---------------------------------------------------------------------


@given(logits, logits, share, st.sampled_from([bounded, logistic]))
def test_the_two_parts_equal_their_twin(p, u, prior, of):
    name = "sigmoid" if of is bounded else "logistic"
    found = risk_parts(tensor(p), tensor(u), prior, name)
    negated = -np.array(p), -np.array(u)
    assert found[0].item() == pytest.approx(prior * of(p).mean(), abs=1e-12)
    assert found[1].item() == pytest.approx(
        of(negated[1]).mean() - prior * of(negated[0]).mean(), abs=1e-12
    )


@pytest.mark.parametrize("gamma", [1.0, 0.3])
def test_a_step_back_follows_the_negative_part_alone(gamma):
    """P sure and U called negative throughout: B < 0, and A is dropped."""
    p = torch.full((3,), 10.0, dtype=torch.float64, requires_grad=True)
    u = torch.full((4,), -10.0, dtype=torch.float64, requires_grad=True)
    a, b = risk_parts(p, u, 0.4)
    tail = 1 / (1 + np.exp(10))
    assert b.item() == pytest.approx(tail - 0.4 * (1 - tail), abs=1e-12)
    wanted = gradient_of(-gamma * risk_parts(p, u, 0.4)[1], p, u)
    found = gradient_of(non_negative(a, b, 0.0, gamma), p, u)
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)
    a, b = risk_parts(p, u, 0.4)
    clipped = gradient_of(a + b.clamp_min(0), p)[0]
    assert not torch.allclose(found[0], clipped)


def test_nnpu_is_upu_while_the_negative_part_is_above_the_limit():
    p, u = rows(5, 7)
    parts = risk_parts(p, u, 0.2)
    assert parts[1] > 0
    assert non_negative(*parts) == unbiased(*parts)
    below = risk_parts(p + 4, u - 4, 0.6)
    assert -0.6 < below[1] < 0
    assert non_negative(*below, beta=0.7) == unbiased(*below)
    assert non_negative(*below, gamma=0.5) == -0.5 * below[1]


# --- ImbPU ----------------------------------------------------------------------------


@given(logits, logits, share, share)
def test_balanced_parts_equal_their_twin(p, u, prior, target):
    found = balanced_parts(tensor(p), tensor(u), prior, target)
    as_negative = bounded(-np.array(u)).mean() - prior * bounded(-np.array(p)).mean()
    assert found[0].item() == pytest.approx(target * bounded(p).mean(), abs=1e-12)
    assert found[1].item() == pytest.approx(
        (1 - target) / (1 - prior) * as_negative, abs=1e-11
    )


@given(logits, logits, share)
def test_at_the_class_prior_it_is_nnpu(p, u, prior):
    found = balanced_parts(tensor(p), tensor(u), prior, prior)
    for one, other in zip(found, risk_parts(tensor(p), tensor(u), prior), strict=True):
        assert one.item() == pytest.approx(other.item(), abs=1e-12)


def test_the_balanced_risk_weighs_classes_the_same():
    """With U made of P and N exactly, it is the mean of the two classes' losses."""
    rng = np.random.default_rng(0)
    p, n = rng.normal(1, 1, 100), rng.normal(-1, 1, 900)
    a, b = balanced_parts(tensor(p), tensor(np.r_[p, n]), 0.1)
    wanted = (bounded(p).mean() + bounded(-n).mean()) / 2
    assert (a + b).item() == pytest.approx(wanted, abs=1e-12)


# --- VPU ------------------------------------------------------------------------------


@given(logits, logits)
def test_variational_equals_its_twin(p, u):
    found = variational(log_phi(tensor(p)), log_phi(tensor(u)))
    wanted = np.log(sigmoid(u).mean()) - np.log(sigmoid(p)).mean()
    assert found.item() == pytest.approx(wanted, abs=1e-12)


def test_a_factor_on_phi_changes_nothing():
    p, u = (log_phi(x) for x in rows(5, 7))
    factor = np.log(0.3)
    found = variational(p + factor, u + factor)
    assert found.item() == pytest.approx(variational(p, u).item(), abs=1e-12)


def test_variational_has_no_overflow():
    p, u = tensor([-800.0, 5.0]), tensor([-900.0, -800.0])
    assert torch.isfinite(variational(log_phi(p), log_phi(u)))


def test_variational_is_least_at_the_density_ratio():
    """Three cells with P = (.6, .4, 0) and U = (.3, .3, .4): Φ ~ P / U."""
    p_share, u_share = np.array([0.6, 0.4, 0.0]), np.array([0.3, 0.3, 0.4])

    def loss(phi):
        return np.log(u_share @ phi) - p_share[:2] @ np.log(phi[:2])

    best = np.array([0.6 / 0.3, 0.4 / 0.3, 1e-12])
    p = np.repeat(best, [6, 4, 0])
    u = np.repeat(best, [3, 3, 4])
    found = variational(tensor(np.log(p)), tensor(np.log(u))).item()
    assert found == pytest.approx(loss(best), abs=1e-9)
    for other in ([2.0, 1.0, 0.1], [1.0, 1.0, 1e-12], [2.2, 1.3, 1e-12]):
        assert loss(np.array(other)) > found


@given(logits, share)
def test_consistency_equals_its_twin(u, mix):
    between = np.linspace(-3, 2, len(u))
    found = consistency(log_phi(tensor(u)), log_phi(tensor(between)), tensor(mix))
    target = np.log(mix * sigmoid(u) + (1 - mix))
    wanted = ((target - np.log(sigmoid(between))) ** 2).mean()
    assert found.item() == pytest.approx(wanted, abs=1e-10)


def test_the_gradient_flows_through_the_target():
    u, between = rows(4, 4)
    loss = consistency(log_phi(u), log_phi(between).detach(), tensor(0.5))
    assert gradient_of(loss, u)[0].abs().min() > 0


# --- mixup ----------------------------------------------------------------------------


def test_beta_shares_have_the_moments_of_their_law():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for alpha in (0.3, 6.0):
            drawn = torch.stack([beta_share(alpha, torch.device("cpu"))
                                 for _ in range(4000)])  # fmt: skip
            assert drawn.mean().item() == pytest.approx(0.5, abs=0.03)
            wanted = 1 / (4 * (2 * alpha + 1))
            assert drawn.var().item() == pytest.approx(wanted, rel=0.15)
            assert 0 < drawn.min() <= drawn.max() < 1


def test_rows_are_mixed_by_the_share_of_the_first():
    found = mixed(tensor([4.0, 0.0]), tensor([0.0, 8.0]), tensor(0.25))
    assert found.tolist() == [1.0, 6.0]


def test_a_random_order_holds_each_number_once():
    found = random_order(50, torch.device("cpu"))
    assert sorted(found.tolist()) == list(range(50))
    assert found.tolist() != list(range(50))


# --- Dist-PU --------------------------------------------------------------------------


def histogram_distance(answers, share_of_positives):
    """Return the L1 distance of a soft two-bin histogram from the wanted one."""
    found = np.array([1 - answers.mean(), answers.mean()])
    return np.abs(found - [1 - share_of_positives, share_of_positives]).sum()


@given(logits, logits, share)
def test_label_distribution_is_a_histogram_loss(p, u, prior):
    found = label_distribution(tensor(p), tensor(u), prior).item()
    p, u = sigmoid(p), sigmoid(u)
    direct = (1 - p.mean()) + abs(u.mean() - prior) / (2 * prior)
    paper = 2 * prior * histogram_distance(p, 1) / 2 + histogram_distance(u, prior) / 2
    assert found == pytest.approx(direct, abs=1e-12)
    assert found == pytest.approx(paper / (2 * prior), abs=1e-10)


@given(logits)
def test_entropy_equals_its_twin(x):
    s = sigmoid(x)
    wanted = -(s * np.log(s) + (1 - s) * np.log(1 - s)).mean()
    assert entropy(tensor(x)).item() == pytest.approx(wanted, abs=1e-10)


def test_entropy_of_sure_answers_is_finite_with_its_gradient():
    x = tensor([500.0, -500.0, 0.0]).requires_grad_()
    value = entropy(x)
    assert torch.isfinite(gradient_of(value, x)[0]).all()
    rest = entropy(tensor([CLAMP]))
    assert value.item() == pytest.approx((np.log(2) + 2 * rest.item()) / 3, abs=1e-12)


def test_mixup_loss_equals_its_twin():
    between, first, second = np.array([0.5, -2.0]), np.array([1.0, 0.3]), np.zeros(2)

    def cross_entropy(label):
        return (label * logistic(between) + (1 - label) * logistic(-between)).mean()

    found = mixup_loss(tensor(between), tensor(first), tensor(second), tensor(0.7))
    wanted = 0.7 * cross_entropy(first) + 0.3 * cross_entropy(second)
    assert found.item() == pytest.approx(wanted, abs=1e-12)


# --- PUbN -----------------------------------------------------------------------------


def test_the_squared_error_is_the_true_one_less_a_constant():
    """A population of three kinds of rows, and any σ on them."""
    weight = np.array([0.5, 0.3, 0.2])
    positive, known = np.array([0.9, 0.4, 0.0]), np.array([0.0, 0.5, 0.3])
    seen = positive + known  # P(seen | kind)
    prior, rho = weight @ positive, weight @ known
    counts = 1000 * np.array([weight, weight * positive, weight * known])
    constant = weight @ seen**2
    for logits in ([0.0, 0.0, 0.0], [2.0, -1.0, 3.0], [-4.0, 0.3, 0.1]):
        u, p, n = (
            tensor(np.repeat(logits, count.round().astype(int))) for count in counts
        )
        found = biased.squared_error(p, u, prior, n, rho).item()
        sigma = 1 / (1 + np.exp(-np.array(logits)))
        assert found + constant == pytest.approx(weight @ (sigma - seen) ** 2, abs=1e-9)


def test_the_squared_error_without_known_negatives():
    p, u = tensor([0.0, 2.0]), tensor([-1.0, 0.0, 1.0])
    sigma = 1 / (1 + np.exp(-np.array([-1.0, 0.0, 1.0])))
    of_p = 1 / (1 + np.exp(-np.array([0.0, 2.0])))
    wanted = np.mean(sigma**2) - 2 * 0.3 * of_p.mean()
    assert biased.squared_error(p, u, 0.3).item() == pytest.approx(wanted)


@given(logits, logits, logits, share)
def test_seen_parts_equal_their_twin(p, u, n, prior):
    found = biased.seen_parts(tensor(p), tensor(u), prior, tensor(n), 0.2)
    p, u, n = map(np.array, (p, u, n))
    a = prior * logistic(p).mean() + 0.2 * logistic(n).mean()
    b = logistic(-u).mean() - prior * logistic(-p).mean() - 0.2 * logistic(-n).mean()
    assert found[0].item() == pytest.approx(a, abs=1e-10)
    assert found[1].item() == pytest.approx(b, abs=1e-10)


def test_without_known_negatives_the_first_risk_is_nnpus():
    p, u = rows(4, 6)
    for one, other in zip(
        biased.seen_parts(p, u, 0.3), risk_parts(p, u, 0.3, "logistic"), strict=True
    ):
        assert one.item() == pytest.approx(other.item(), abs=1e-12)


@given(logits, logits, logits, share, st.integers(0, 99))
def test_weighted_risk_equals_its_twin(p, u, n, eta, seed):
    rng = np.random.default_rng(seed)
    sets = [(np.array(x), rng.uniform(0.01, 0.99, len(x))) for x in (p, u, n)]
    (p, sp), (u, su), (n, sn) = sets
    odds = [(s > eta) * (1 - s) / s for s in (sp, sn)]
    wanted = 0.4 * np.mean(logistic(p) + logistic(-p) * odds[0])
    wanted += 0.1 * np.mean(logistic(-n) * (1 + odds[1]))
    wanted += np.sum((logistic(-u) * (1 - su))[su <= eta]) / len(u)
    pairs = [(tensor(g), tensor(s)) for g, s in sets]
    found = biased.partly_trusting_risk(pairs[0], pairs[1], 0.4, eta, pairs[2], 0.1)
    assert found.item() == pytest.approx(wanted, rel=1e-10)


def test_with_perfect_answers_the_second_risk_is_supervised():
    """σ = 1 on P and 0 on N: P as positives, rows of N as negatives."""
    p, u = rows(4, 6)
    positive_in_u = torch.tensor([True, False, True, False, False, False])
    seen = positive_in_u.double()
    found = biased.partly_trusting_risk((p, torch.ones_like(p)), (u, seen), 0.3, 0.5)
    p, negative = p.detach().numpy(), u.detach().numpy()[~positive_in_u.numpy()]
    wanted = 0.3 * logistic(p).mean() + logistic(-negative).sum() / 6
    assert found.item() == pytest.approx(wanted, abs=1e-12)


def test_a_positive_that_looks_unseen_does_not_explode():
    p, u = rows(2, 3)
    seen = torch.tensor([0.0, 1e-30], dtype=torch.float64)
    zeros = torch.zeros(3, dtype=torch.float64)
    loss = biased.partly_trusting_risk((p, seen), (u, zeros), 0.3, 0.1)
    assert all(torch.isfinite(g).all() for g in gradient_of(loss, p, u))


# --- aPU ------------------------------------------------------------------------------


@given(logits, logits, logits, share, share)
def test_the_recursive_risk_equals_its_twin(p, first, second, prior, later):
    found = shifted.recursive_risk(*map(tensor, (p, first, second)), prior, later)
    p, first, second = map(np.array, (p, first, second))
    kappa = (1 - later) / (1 - prior)
    called_positive = abs(kappa * (bounded(first).mean() - prior * bounded(p).mean()))
    called_negative = abs(kappa * (bounded(-first).mean() - prior * bounded(-p).mean()))
    wanted = abs(bounded(second).mean() - called_positive) + called_negative
    assert found.item() == pytest.approx(wanted, abs=1e-10)


@given(logits, logits, logits, share, share, share)
def test_the_weighted_shift_risk_equals_its_twin(p, first, second, prior, later, rho):
    weight = np.linspace(0.1, 0.9, len(first))
    found = shifted.reweighted_risk(
        *map(tensor, (p, first, second, weight)), prior, later, rho
    )
    p, first, second = map(np.array, (p, first, second))
    kappa = (1 - later) / (1 - prior)
    w_positive = kappa * (weight * bounded(first)).mean()
    w_negative = kappa * (weight * bounded(-first)).mean()
    wanted = (1 - rho) * later * bounded(p).mean() + w_negative
    wanted += abs(rho * (bounded(second).mean() - w_positive))
    assert found.item() == pytest.approx(wanted, abs=1e-10)


def test_apnu_with_rho_one_does_not_look_at_p():
    p, first, second = rows(3, 5, 6)
    weight = torch.full((5,), 0.5, dtype=torch.float64)
    loss = shifted.reweighted_risk(p, first, second, weight, 0.3, 0.4)
    assert gradient_of(loss, p)[0].abs().max() == 0


def test_both_are_the_risk_after_a_shift_of_the_positives():
    """Exact mixtures and exact weights: both give the supervised risk in use."""
    rng = np.random.default_rng(0)
    before, after, n = (rng.normal(m, 1, 300) for m in (2, 1, -1))
    first = np.r_[before, np.tile(n, 2)]  # a third is positive
    second = np.r_[np.tile(after, 3), n]  # three quarters are
    wanted = 0.75 * bounded(after).mean() + 0.25 * bounded(-n).mean()
    args = [tensor(x) for x in (before, first, second)]
    found = shifted.recursive_risk(*args, 1 / 3, 0.75).item()
    assert found == pytest.approx(wanted, abs=1e-12)
    weight = tensor(np.r_[np.zeros(300), np.ones(600)])
    found = shifted.reweighted_risk(*args, weight, 1 / 3, 0.75).item()
    assert found == pytest.approx(wanted, abs=1e-12)


# --- gradients ------------------------------------------------------------------------

HALF = torch.tensor(0.5, dtype=torch.float64)
SEEN = torch.tensor([0.1, 0.4, 0.8, 0.6], dtype=torch.float64)
LOSSES = {
    "imb_pu": lambda p, u, n: sum(balanced_parts(p, u, 0.3)),
    "vpu": lambda p, u, n: variational(log_phi(p), log_phi(u)),
    "vpu mixup": lambda p, u, n: consistency(log_phi(p), log_phi(n), HALF),
    "dist_pu": lambda p, u, n: label_distribution(p, u, 0.3) + entropy(n),
    "dist_pu mixup": lambda p, u, n: mixup_loss(p, SEEN, SEEN.flip(0), HALF),
    "pubn first": lambda p, u, n: sum(biased.seen_parts(p, u, 0.3, n, 0.2)),
    "pubn second": lambda p, u, n: biased.partly_trusting_risk(
        (p, SEEN), (u[:4], SEEN), 0.3, 0.5, (n, SEEN), 0.2
    ),
    "purr": lambda p, u, n: shifted.recursive_risk(p, u, n, 0.3, 0.4),
    "apnu": lambda p, u, n: shifted.reweighted_risk(p, n, u, SEEN, 0.3, 0.4, 0.5),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name):
    assert torch.autograd.gradcheck(LOSSES[name], rows(4, 6, 4, seed=1))
