"""Losses as pure functions of tensors.

The risk of a classifier estimated from positive and unlabelled rows.

With a margin loss l and the class prior π, the risk π E_P[l(f)] + (1 - π) E_N[l(-f)]
needs negatives. Since the sample that U stands for is a mixture, the second term is
E_U[l(-f)] - π E_P[l(-f)] (du Plessis et al. 2014), so that

    R = A + B,   A = π E_P[l(f)],   B = E_U[l(-f)] - π E_P[l(-f)].

B estimates something that cannot be negative; a flexible network makes it so by
learning P by heart. The first functions below differ in what they do about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F


def sigmoid_loss(margin: Tensor) -> Tensor:
    """Return 1 / (1 + e^t): bounded, and l(t) + l(-t) = 1."""
    return torch.sigmoid(-margin)


def logistic_loss(margin: Tensor) -> Tensor:
    """Return log(1 + e^-t)."""
    return F.softplus(-margin)


def risk_parts(
    positive: Tensor,
    unlabeled: Tensor,
    prior: float,
    loss: Callable[[Tensor], Tensor] = sigmoid_loss,
) -> tuple[Tensor, Tensor]:
    """Return A and B for the logits of P and of U."""
    as_positive = prior * loss(positive).mean()
    as_negative = loss(-unlabeled).mean() - prior * loss(-positive).mean()
    return as_positive, as_negative


def unbiased(as_positive: Tensor, as_negative: Tensor) -> Tensor:
    """Return A + B (uPU)."""
    return as_positive + as_negative


def non_negative(
    as_positive: Tensor, as_negative: Tensor, beta: float = 0.0, gamma: float = 1.0
) -> Tensor:
    """Return what nnPU descends on (Kiryo et al. 2017, algorithm 1).

    A + B while B ≥ -β, else -γ B alone: the step then undoes the overfitting and
    leaves A be. This is not the gradient of A + max(0, B), which goes on lowering A.
    """
    return torch.where(
        as_negative >= -beta, as_positive + as_negative, -gamma * as_negative
    )


def absolute(as_positive: Tensor, as_negative: Tensor) -> Tensor:
    """Return A + |B| (Lu et al. 2020; Hammoudeh and Lowd 2020)."""
    return as_positive + as_negative.abs()


def absolute_risk(positive: Tensor, unlabeled: Tensor, prior: float) -> Tensor:
    """Return A + |B| of logits, with the sigmoid loss."""
    return absolute(*risk_parts(positive, unlabeled, prior))


def balanced_parts(
    positive: Tensor,
    unlabeled: Tensor,
    prior: float,
    target: float = 0.5,
) -> tuple[Tensor, Tensor]:
    """Return the PU risk of a population with another share π' of positives, in parts.

    A = π' E_P[l(f)] and B = (1 - π')/(1 - π) (E_U[l(-f)] - π E_P[l(-f)]) (Su, Chen and
    Xu 2021); ``target`` is π', and with π' = π it is the ordinary risk.
    """
    as_positive, as_negative = risk_parts(positive, unlabeled, prior)
    return target / prior * as_positive, (1 - target) / (1 - prior) * as_negative


CLAMP = 10.0
"""Logits are kept inside ±CLAMP where a logarithm of the answer is taken."""


def label_distribution(positive: Tensor, unlabeled: Tensor, prior: float) -> Tensor:
    """Return (1 - E_P[s]) + |E_U[s] - π| / 2π for the logits of P and of U.

    Dist-PU (Zhao et al. 2022) with s = σ(f): 2π |E_P[s] - 1| + |E_U[s] - π|, divided by
    2π as in the authors' code. A constant s = π is a trivial minimum of the part on U;
    the entropy of the answers keeps away from it.
    """
    on_unlabeled = (torch.sigmoid(unlabeled).mean() - prior).abs()
    return 1 - torch.sigmoid(positive).mean() + on_unlabeled / (2 * prior)


def entropy(logits: Tensor) -> Tensor:
    """Return the mean entropy of the answers, in nats."""
    kept = logits.clamp(-CLAMP, CLAMP)
    return F.binary_cross_entropy_with_logits(kept, torch.sigmoid(kept))


def variational(positive: Tensor, unlabeled: Tensor) -> Tensor:
    """Return log E_U[Φ] - E_P[log Φ] for log Φ on P and on U; no prior is needed.

    Φ(x) = σ(g(x)) stands for P(y = 1 | x) up to a factor (Chen, Liu, Wang, Zhao and Wu
    2020). The loss is least where Φ is proportional to the density of P over that of U,
    and a factor on Φ does not change it. All sums are taken in logarithms.
    """
    log_mean = torch.logsumexp(unlabeled, 0) - math.log(len(unlabeled))
    return log_mean - positive.mean()


def consistency(unlabeled: Tensor, between: Tensor, share: Tensor) -> Tensor:
    """Return how far log Φ on mixed rows is from the mixture of the answers.

    ``between`` is log Φ of ``share`` x_U + (1 - ``share``) x_P, where Φ(x_P) counts as
    1. The gradient flows through both sides, as in the authors' code.
    """
    target = torch.logaddexp(share.log() + unlabeled, torch.log1p(-share))
    return (target - between).square().mean()


def log_phi(logits: Tensor) -> Tensor:
    """Return log Φ; one logit says what a softmax over two would."""
    return F.logsigmoid(logits)


# --- three samples: P, U and another ---
#
# APU (Hammoudeh and Lowd 2020): positives have shifted between training and use. P and
# the first unlabelled set (share π_tr of positives) come from training, the second set
# (share π_te) from use; negatives are the same in both. With κ = (1 - π_te)/(1 - π_tr),
# estimates that cannot be negative are taken in absolute value.
#
# PUbN (Hsieh, Niu and Sugiyama 2019): there are negatives of some kinds only. A row is
# *seen* if it is positive, or a negative of the kind that carries labels (bN); ρ is the
# share of such negatives in the population, and ρ = 0 is plain PU. The first step
# learns σ(x) = P(seen | x); the second trusts rows of U as negatives where σ is small,
# and makes up for the others with P and bN.


def recursive_risk(
    positive: Tensor,
    first: Tensor,
    second: Tensor,
    prior: float,
    second_prior: float,
) -> Tensor:
    """Return PURR's risk |E_2[l(f)] - N⁺| + N⁻ for logits.

    N± = κ |E_1[l(±f)] - π_tr E_P[l(±f)]| is the risk of the negatives, called positive
    or negative.
    """
    kappa = (1 - second_prior) / (1 - prior)

    def of_negatives(sign: int) -> Tensor:
        on_first = sigmoid_loss(sign * first).mean()
        return kappa * (on_first - prior * sigmoid_loss(sign * positive).mean()).abs()

    as_positive = (sigmoid_loss(second).mean() - of_negatives(1)).abs()
    return as_positive + of_negatives(-1)


def reweighted_risk(
    positive: Tensor,
    first: Tensor,
    second: Tensor,
    negative_share: Tensor,
    prior: float,
    second_prior: float,
    rho: float = 1.0,
) -> Tensor:
    """Return aPNU's risk for logits, and wUU's with ρ = 1.

    (1 - ρ) π_te E_P[l(f)] + W⁻ + |ρ (E_2[l(f)] - W⁺)|, where W± = κ E_1[w l(±f)] and
    w = ``negative_share`` is the probability that a row of the first set is negative.
    """
    kappa = (1 - second_prior) / (1 - prior)
    called_positive = kappa * (negative_share * sigmoid_loss(first)).mean()
    called_negative = kappa * (negative_share * sigmoid_loss(-first)).mean()
    on_second = rho * (sigmoid_loss(second).mean() - called_positive)
    on_positive = (1 - rho) * second_prior * sigmoid_loss(positive).mean()
    return on_positive + called_negative + on_second.abs()


def seen_parts(
    positive: Tensor,
    unlabeled: Tensor,
    prior: float,
    negative: Tensor | None = None,
    rho: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Return A and B of the first risk, for the logits of P, U and bN.

    A = π E_P[l(f)] + ρ E_bN[l(f)];  B = E_U[l(-f)] - π E_P[l(-f)] - ρ E_bN[l(-f)].
    """
    as_seen = prior * logistic_loss(positive).mean()
    as_unseen = logistic_loss(-unlabeled).mean()
    as_unseen = as_unseen - prior * logistic_loss(-positive).mean()
    if negative is not None:
        as_seen = as_seen + rho * logistic_loss(negative).mean()
        as_unseen = as_unseen - rho * logistic_loss(-negative).mean()
    return as_seen, as_unseen


def squared_error(
    positive: Tensor,
    unlabeled: Tensor,
    prior: float,
    negative: Tensor | None = None,
    rho: float = 0.0,
) -> Tensor:
    """Return E[(σ - P(seen | x))²] less a constant: how wrong σ is on held-out rows.

    E_U[σ²] - 2 π E_P[σ] - 2 ρ E_bN[σ], by which the paper chooses the first network.
    """
    error = unlabeled.sigmoid().square().mean() - 2 * prior * positive.sigmoid().mean()
    if negative is not None:
        error = error - 2 * rho * negative.sigmoid().mean()
    return error


def made_up(logits: Tensor, seen: Tensor, eta: float) -> Tensor:
    """Return l(-f) (1 - σ) / σ where σ > η, else 0: what U leaves out beyond η."""
    odds = (1 - seen) / seen.clamp_min(1e-12)
    return torch.where(seen > eta, logistic_loss(-logits) * odds, 0.0)


def partly_trusting_risk(
    positive: tuple[Tensor, Tensor],
    unlabeled: tuple[Tensor, Tensor],
    prior: float,
    eta: float,
    negative: tuple[Tensor, Tensor] | None = None,
    rho: float = 0.0,
) -> Tensor:
    """Return the second risk; each set is a pair of logits f and fixed σ.

    π E_P[l(f) + 1{σ > η} l(-f) (1 - σ)/σ]
    + ρ E_bN[l(-f) + 1{σ > η} l(-f) (1 - σ)/σ]
    + E_U[1{σ ≤ η} l(-f) (1 - σ)].
    """
    logits, seen = unlabeled
    unseen = torch.where(seen <= eta, logistic_loss(-logits) * (1 - seen), 0.0)
    of_positive = logistic_loss(positive[0]) + made_up(*positive, eta)
    risk = prior * of_positive.mean() + unseen.mean()
    if negative is not None:
        of_negative = logistic_loss(-negative[0]) + made_up(*negative, eta)
        risk = risk + rho * of_negative.mean()
    return risk


# --- networks that train each other: GenPU, PULNS, Self-PU ---


def discriminator_loss(
    real: Tensor, fake: Tensor, other: Tensor | None = None, share: float = 1.0
) -> Tensor:
    """Return the cross-entropy of telling real rows from made ones, from logits.

    With ``other`` the made rows are a mixture: ``share`` of ``fake``, the rest of
    ``other``.
    """
    made = F.softplus(fake).mean()
    if other is not None:
        made = share * made + (1 - share) * F.softplus(other).mean()
    return F.softplus(-real).mean() + made


def positive_generator_loss(
    by_p: Tensor, by_u: Tensor, prior: float, lambda_p: float, lambda_u: float
) -> Tensor:
    """Return π (λ_p E[-log D_p] + λ_u E[-log D_u]) of made positives, from logits."""
    fools_p, fools_u = F.softplus(-by_p).mean(), F.softplus(-by_u).mean()
    return prior * (lambda_p * fools_p + lambda_u * fools_u)


def negative_generator_loss(
    by_n: Tensor, by_u: Tensor, prior: float, lambda_n: float, lambda_u: float
) -> Tensor:
    """Return (1 - π) (λ_u E[-log D_u] + λ_n E[-log(1 - D_n)]) of made negatives.

    D_u is to be fooled, and D_n, which tells them from P, to be helped.
    """
    helps_n, fools_u = F.softplus(by_n).mean(), F.softplus(-by_u).mean()
    return (1 - prior) * (lambda_n * helps_n + lambda_u * fools_u)


def chosen_risk(
    positive: Tensor, unlabeled: Tensor, chosen: Tensor, prior: float
) -> Tensor:
    """Return the logistic loss of P against the chosen rows of U.

    π mean_P log(1 + e^-f) + (1 - π) mean_chosen log(1 + e^f). ``chosen`` holds 1 for
    chosen rows and 0 for others; where none is chosen the second mean is 0.
    """
    as_negative = (chosen * F.softplus(unlabeled)).sum() / chosen.sum().clamp_min(1.0)
    return prior * F.softplus(-positive).mean() + (1 - prior) * as_negative


def pu_accuracy(positive: Tensor, pool: Tensor, prior: float) -> Tensor:
    """Return 2π mean_P σ(f) + mean_pool (1 - σ(f)), from logits.

    Its expectation is the accuracy of guessing by σ(f), plus π; no true label is
    needed, since the mean over the pool is π times that over the positives and 1 - π
    times that over the negatives.
    """
    return 2 * prior * torch.sigmoid(positive).mean() + torch.sigmoid(-pool).mean()


def reinforce(scores: Tensor, chosen: Tensor, rewards: Tensor) -> Tensor:
    """Return what REINFORCE descends on, for several draws of the same choices.

    - mean_k A_k mean_i log π(a_ik | x_i), with the advantage A_k: the reward of draw k
    less the mean of all, in units of their spread. ``scores`` (n) are logits of being
    chosen; ``chosen`` (draws × n) holds 1 for chosen, 0 for not.
    """
    spread = rewards.std(unbiased=False).clamp_min(1e-12)
    advantage = ((rewards - rewards.mean()) / spread).detach()
    log_chance = -F.binary_cross_entropy_with_logits(
        scores.expand_as(chosen), chosen, reduction="none"
    )
    return -(advantage * log_chance.mean(1)).mean()


def self_paced_risk(
    positive: Tensor,
    pool: Tensor,
    target: Tensor,
    trusted: Tensor,
    prior: Tensor | float,
) -> Tensor:
    """Return cross-entropy on trusted rows of the pool and nnPU on the rest.

    Each part counts by its share τ of the rows: (1 - τ) nnPU(P, rest; π) + τ CE.
    ``positive`` and ``pool`` are logits, ``target`` soft labels of the pool, read where
    ``trusted`` is 1; π is the share of positives in the rest of the pool.
    """
    rest = 1 - trusted
    n_rest = rest.sum()
    of_rest = (rest * sigmoid_loss(-pool)).sum() / n_rest.clamp_min(1.0)
    as_positive = prior * sigmoid_loss(positive).mean()
    as_negative = of_rest - prior * sigmoid_loss(-positive).mean()
    risk = non_negative(as_positive, as_negative)
    entropy = F.binary_cross_entropy_with_logits(pool, target, reduction="none")
    return rest.mean() * risk + (trusted * entropy).mean()


def disagreement(logits: Tensor, others: Tensor) -> Tensor:
    """Return the mean squared difference of two networks' probabilities.

    ``others`` is what the first should agree with, and gets no gradient.
    """
    return F.mse_loss(torch.sigmoid(logits), torch.sigmoid(others.detach()))


def agreeing(loss: Tensor, difference: Tensor, alpha: float) -> Tensor:
    """Return the difference where the loss exceeds α times it, else 0.

    Students that differ much are left to differ: one of them knows better.
    """
    return torch.where(
        loss.detach() > alpha * difference.detach(), difference, 0 * difference
    )


# --- random views of rows: they attract or repel, rows are mixed ---
#
# What mixup needs (Zhang, Cisse, Dauphin and Lopez-Paz 2018) has no branch on values,
# so that a step can be captured.


def nt_xent(
    z: Tensor,
    temperature: float = 0.2,
    positive: Tensor | None = None,
    positive_weight: float = 0.0,
) -> Tensor:
    """Return the normalised-temperature cross-entropy (Chen et al. 2020).

    ``z`` holds the projections of 2·B views, row i and row i + B of the same sample:

    L = mean_i −log( exp(s_ij/τ) / Σ_{k≠i} exp(s_ik/τ) ),  j the other view of i,

    with cosine similarities s. Where ``positive`` marks labelled positives among the B
    samples, ``positive_weight`` times the same cross-entropy among all their views is
    added (Khosla et al. 2020), scaled by the share of positives in the batch.
    """
    z = F.normalize(z.float(), dim=1)
    n = len(z)
    similarity = (z @ z.T) / temperature
    own = torch.eye(n, dtype=torch.bool, device=z.device)
    log_p = similarity.masked_fill(own, -torch.inf).log_softmax(1)
    other = torch.arange(n, device=z.device).roll(n // 2)
    loss = -log_p.gather(1, other[:, None]).mean()
    if positive is None or positive_weight == 0:
        return loss
    among = positive.repeat(2).float()
    pairs = among[:, None] * among[None, :]
    pairs = pairs.masked_fill(own, 0.0)
    # The mean over pairs times the share of positives among the rows.
    term = -(pairs * log_p.masked_fill(own, 0.0)).sum() / pairs.sum().clamp_min(1.0)
    return loss + positive_weight * term * among.mean()


NEAREST = 1e-6
"""1 - cos is kept above it: the square root is infinitely steep at 0."""


def class_alignment(
    online: Tensor,
    target: Tensor,
    probability: Tensor,
    *,
    class_weight: Tensor | float = 1.0,
    agree: float = 0.5,
) -> Tensor:
    """Return how far views of a row, and rows of a class, are from each other.

        mean_i 2 (1 - s_ii) + w · mean_{i≠j, c_i·c_j ≥ a} 2 √(1 - s_ij),

    with the cosine s_ij of an online view of row i and a target view of row j, and
    c = (1 - p, p). The square root makes far pairs, which may be wrong, pull less.

    ``online`` and ``target`` (n × d) are predictions of one view and projections of
    another, ``probability`` the predicted p, ``class_weight`` w (0 leaves the views of
    a row alone, as BYOL does), and ``agree`` a.
    """
    cosine = F.normalize(online, dim=1) @ F.normalize(target, dim=1).T
    own = 2 * (1 - cosine.diagonal()).mean()
    vectors = torch.stack([1 - probability, probability], dim=1)
    pairs = (vectors @ vectors.T >= agree).to(cosine.dtype)
    pairs = pairs * (1 - torch.eye(len(pairs), dtype=pairs.dtype, device=pairs.device))
    distance = 2 * (1 - cosine).clamp_min(NEAREST).sqrt()
    others = (pairs * distance).sum() / pairs.sum().clamp_min(1.0)
    return own + class_weight * others


EDGE = 1e-6
"""A share is kept inside [EDGE, 1 - EDGE]: its logarithm is taken."""


def beta_share(alpha: float, device: torch.device) -> Tensor:
    """Draw one number from Beta(α, α)."""
    pair = torch._standard_gamma(torch.full((2,), alpha, device=device))
    return (pair[0] / pair.sum()).nan_to_num(0.5).clamp(EDGE, 1 - EDGE)


def mixed(first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """Return ``share`` of the first rows and the rest of the second."""
    return share * first + (1 - share) * second


def random_order(n: int, device: torch.device) -> Tensor:
    """Return the numbers 0 to n - 1 in random order."""
    return torch.rand(n, device=device).argsort()


def mixup_loss(between: Tensor, first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """Return the cross-entropy of mixed rows with the labels of both parents."""
    of = F.binary_cross_entropy_with_logits
    return share * of(between, first) + (1 - share) * of(between, second)
