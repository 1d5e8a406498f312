"""Rows as numbers, learned without labels, and out-of-fold scores of P against U.

An encoder that pulled the labelled positives together would make them unlike the
positives inside U, and every estimate too small. So encoders are fitted without ``y``.

A few learners of different kinds are set to tell P from U. Each learner's scores are
put on one scale fold by fold, and averaged with weights that follow how well they tell
held-out positives from U: exp((AUC - best AUC) / 0.02).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from denspu._folds import deal_even_folds
from denspu._random import Randomness
from denspu._registry import give_time, prepare_part, refuse_kind, resolve_part
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu._validation import PUInput, check_embedding
from denspu.data.kinds import kind_of
from denspu.encoders import ContrastiveEncoder, IdentityEncoder, TabularEncoder
from denspu.exceptions import InvalidInputError

SMALL_IMAGE = 32
"""Grey images up to this side are used pixel by pixel."""

FOLDS = 5
TREES = 60
SMALL = 5_000
"""Rows up to which trees are a forest; beyond, boosted trees are faster."""

KERNEL_ROWS = 4_000
"""Rows a kernel machine learns from at most; it sits out above five times as many."""

TRAIN_ROWS = 40_000
"""Rows any learner is trained on at most; P is kept whole up to half of them."""

SURE = 0.995
"""Shares of votes are kept inside (1 - SURE, SURE) before they become log-odds."""

SHARPNESS = 0.02
"""Difference in AUC that divides a learner's weight by e."""

Build = Callable[[int], Any]


# --- rows as numbers ------------------------------------------------------------------


def embed(
    data: PUInput,
    encoder: Any,
    randomness: Randomness,
    device: str,
    max_seconds: float | None = None,
) -> FloatArray:
    """Return one row of numbers a sample."""

    def encoded(part: Any, X: Any) -> FloatArray:
        part = prepare_part(part, randomness, "encoder", device=device)
        give_time(part, max_seconds)
        Z = check_embedding(part.fit(X).transform(X), argument="the encoder's output")
        if len(Z) != len(X):
            raise InvalidInputError(
                f"The encoder returned {len(Z)} rows for {len(X)}; one a sample is "
                "needed."
            )
        return Z

    X = data.X
    if not (isinstance(encoder, str) and encoder == "auto"):
        part = resolve_part(encoder, "encoder", argument="encoder")
        refuse_kind(part, data.kind, "encoder")
        return encoded(part, X)
    part = kind_of(data.kind).plain_encoder()
    if part is not None:
        return encoded(part, X)
    if X.shape[3] > 1 or max(X.shape[1:3]) > SMALL_IMAGE:
        return encoded(ContrastiveEncoder(positive_weight=0), X)
    return encoded(TabularEncoder(), encoded(IdentityEncoder(), X))


# --- scores out of fold ---------------------------------------------------------------


def cross_fit(
    Z: FloatArray,
    positive: BoolArray,
    groups: IntArray | None,
    randomness: Randomness,
) -> dict[str, FloatArray]:
    """Score each row by learners of P against U trained on the other folds.

    Higher = more positive. ``"scores"`` are of all learners together, ``"linear"`` of
    the linear one alone, where it tells P from U as well as any.
    """
    fold = deal_even_folds(positive, groups, FOLDS, randomness.numpy("folds"))
    if fold.max() == 0:
        raise InvalidInputError(
            "P or U is a single row or group, or copies of one, so no row can be "
            "scored by a model that has not seen it. More rows or finer groups are "
            "needed."
        )
    columns = {
        name: _one(Z, positive, fold, build, most, randomness, name)
        for name, (build, most) in learners(len(Z)).items()
    }
    auc = np.array([roc_auc_score(positive, scores) for scores in columns.values()])
    weight = np.exp((auc - auc.max()) / SHARPNESS)
    scores = np.average(list(columns.values()), axis=0, weights=weight)
    linear = weight[list(columns).index("linear")] >= np.exp(-1.0)
    return {"scores": scores, "linear": columns["linear"] if linear else scores}


def learners(n_rows: int) -> dict[str, tuple[Build, int]]:
    """Return how to build each learner from a seed, and the rows it may learn from."""
    found: dict[str, tuple[Build, int]] = {"linear": (_linear, TRAIN_ROWS)}
    if n_rows <= 5 * KERNEL_ROWS:
        found["kernel"] = (_kernel, KERNEL_ROWS)
    found["trees"] = (_forest if n_rows <= SMALL else _boosting, TRAIN_ROWS)
    return found


def _linear(seed: int) -> Any:
    return LogisticRegression(C=0.1, class_weight="balanced", max_iter=200)


def _kernel(seed: int) -> Any:
    return SVC(C=1.0, class_weight="balanced", random_state=0)  # draws nothing


def _forest(seed: int) -> Any:
    return ExtraTreesClassifier(
        TREES, min_samples_leaf=2, class_weight="balanced", random_state=seed
    )


def _boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(
        max_iter=60,
        max_leaf_nodes=15,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )


def _one(
    Z: FloatArray,
    positive: BoolArray,
    fold: IntArray,
    build: Build,
    most: int,
    randomness: Randomness,
    name: str,
) -> FloatArray:
    """Return the out-of-fold scores of one learner."""
    out = np.zeros(len(Z))
    for k in range(int(fold.max()) + 1):
        own = np.flatnonzero(fold == k)
        rows = sample(positive, fold != k, most, randomness.numpy(f"{name}/{k}/rows"))
        model = build(randomness.seed(f"{name}/{k}")).fit(Z[rows], positive[rows])
        if hasattr(model, "decision_function"):
            scores = np.asarray(model.decision_function(Z[own]), dtype=np.float64)
        else:
            votes = model.predict_proba(Z[own])[:, 1]
            scores = logit(np.clip(votes, 1 - SURE, SURE))
        # Of U alone: a fold's scale must not depend on how P was scored.
        centre = scores[~positive[own]]
        out[own] = (scores - centre.mean()) / (centre.std() or 1.0)
    return out


def sample(
    positive: BoolArray, allowed: BoolArray, most: int, rng: np.random.Generator
) -> IntArray:
    """Return at most ``most`` allowed rows: P up to half of them, the rest from U."""
    P, U = np.flatnonzero(positive & allowed), np.flatnonzero(~positive & allowed)
    if len(P) + len(U) <= most:
        return np.concatenate([P, U])
    few_p = min(len(P), max(most // 2, most - len(U)))
    P = rng.choice(P, few_p, replace=False)
    U = rng.choice(U, min(len(U), most - few_p), replace=False)
    return np.concatenate([P, U])
