"""Images: the encoder's network is trained on, first P against U, then on labels.

1. *Ratio*: copies of the network learn to tell P from U, each on a part of the rows,
   and score the others. What they learn is the density ratio of the boundary again,
   with features that may move. Along these scores the held-out positives say how
   likely a row of U is positive (:mod:`denspu.refinement.posterior`).
   Where positives are rare this is all: the ranking counts, and hard labels would be
   nearly all negative.
   Where these networks are not believed (``LEAD``)
   nothing of them is used, nor of the risk below, which learns from the same few
   positives: the rounds begin with the boundary's labels, and a ranking is learned
   from these.
2. *Risk*: another copy, trained on all rows, lowers the PU risk at the class prior
   found so far (:func:`denspu.losses.absolute_risk`). Boundary and ratio judge a row by
   its neighbourhood and err together where a kind of negative lies among positives;
   the risk asks that U as a whole come out right, and errs elsewhere.
   The three are joined, and as many rows are called positive as the prior says.
3. *Rounds*: a fresh copy learns the likelier label of every row, unsure rows counting
   little, and labels all rows anew. Each round starts from the encoder, so that no
   label is kept because a network has memorised it. A share of positives that the user
   knows is where each round's labels, and in the end new rows, are cut.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from scipy.special import expit, logit
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from denspu._folds import make_folds
from denspu._machine import resolve_device
from denspu._parameters import About, Number, OneOf, Whole, check_parameters, setting
from denspu._share import cut_at, known_cut, prior_cut
from denspu._typing import BoolArray, FloatArray, RandomState
from denspu.base import Refiner, RefinerInput, forget
from denspu.detectors.neighbours import Neighbours
from denspu.exceptions import FewRowsWarning, InvalidParameterError
from denspu.networks.backbones import WithMirror
from denspu.refinement.network_training import Copies
from denspu.refinement.posterior import cut_between, joined, posterior
from denspu.training import in_fixed_batches

SURE = 0.98
"""Probabilities are kept inside (1 - SURE, SURE) where two are combined."""

FAR = 4.0
"""Largest log-odds that the risk's network may claim; its sigmoid loss is overbold."""

JUST_ABOVE = 0.5 + 1e-6
"""The label of a row that must be called, though no more than that is known of it."""

SHORTEST = 0.5
"""Share of its epochs for which a round after the first must have time.

Every round begins with the encoder's weights, and one long round came out better than
several short ones with as many epochs in all.
"""

LEAD = 0.9
"""Part of the boundary's lead over chance that networks must reach to be believed.

Leads are AUC - 1/2 of held-out positives against U. With few positives the copies of a
network know theirs by heart, and held-out ones stand out less than by the boundary.
"""

TEMPERATURE = 0.1
"""A neighbour whose cosine is this much lower counts 1/e of another."""


class NetworkRefiner(Refiner):
    """The encoder's network trained on, first P against U, then on labels.

    Attributes
    ----------
    labels_ : array
        P(y = 1) of every training row.
    module_ : nn.Module
        The network of the last round.
    changed_ : list of float
        Share of U that changed its label in each round.
    epochs_ : dict
        Epochs of each training by its name; fewer than asked for where time is short.
    held_out_auc_ : dict
        How well the boundary and the networks of the ratio rank held-out positives
        over U; empty without these networks, or where none could be held out.
    networks_used_ : bool
        Whether these networks had a say.
    estimated_ : PriorEstimate
        What these networks say of the share of positives inside U, also where it is
        known; only where they had a say.
    """

    sees = "input"
    about = About(
        key="network", deep=True, inputs=("image",), uses_known_negatives=True
    )

    ratio_epochs: int = setting(5, Whole(0), doc="Epochs of P against U; 0: none.")
    folds: int = setting(
        2, Whole(2), doc="Parts of the rows there; each is scored by the others' nets."
    )
    risk_epochs: int = setting(
        8,
        Whole(0),
        doc="Epochs on the PU risk; none if 0 or if the ratio is not believed.",
    )
    rounds: int = setting(
        3,
        Whole(1),
        doc="Rounds of training on labels, at most. The first may take all the time\n"
        "there is, others begin if half of their epochs fit.",
    )
    epochs: int = setting(20, Whole(1), doc="Epochs of a round.")
    tolerance: float = setting(
        0.002, Number(0, 1), doc="Stop when a smaller share of U changes its label."
    )
    weighted: bool = setting(
        True, OneOf(True, False), doc="Rows count by how sure their label is, |2p - 1|."
    )
    mixup: bool = setting(
        True, OneOf(True, False), doc="Train on mixtures of two images and labels."
    )
    ema_decay: float | None = setting(
        0.998,
        OneOf(None),
        Number(0, 1, "neither"),
        doc="Of the moving average of the weights that is kept; None keeps the last.",
    )
    smooth: int = setting(
        20, Whole(0), doc="Neighbours over which first labels are averaged; 0: none."
    )
    lr: float = setting(
        0.1, Number(0, closed="neither"), doc="Of SGD with Nesterov momentum."
    )
    weight_decay: float = setting(5e-4, Number(0))
    batch_size: int = setting(512, Whole(2))
    crop: float = setting(
        0.5, Number(0, 1, "right"), doc="Smallest part of an image that a view shows."
    )
    erase: float = setting(
        0.375, Number(0, 1, "left"), doc="Side of the hole in a view."
    )
    random_state: RandomState = setting(None)
    device: str = setting("auto")
    verbose: int = setting(0)

    def refine(self, start: RefinerInput) -> Self:
        """Train on the boundary's labels and what follows from them."""
        check_parameters(self)
        self.encoder_ = start.encoder
        if not hasattr(start.encoder, "packed"):
            raise InvalidParameterError(
                f"refiner={type(self).__name__} goes on training the encoder's "
                f"network, and encoder={type(start.encoder).__name__} has none that it "
                "knows. Use encoder='contrastive' or another refiner."
            )
        copies = Copies(self, start)
        self.epochs_ = copies.epochs
        for name in ("prior_", "estimated_", "held_out_recall_", "held_out_called_"):
            forget(self, name)
        self.held_out_auc_: dict[str, float] = {}
        self.networks_used_ = False
        self.changed_: list[float] = []
        self.cut_ = 0.0
        self.path_ = "ranking" if start.rare else "labels"
        if start.rare:
            self.labels_ = self._rank(start, copies)
            return self
        labels = self._first_labels(start, copies)
        for number in range(self.rounds):
            before = start.deadline.left()
            labels = self._round(number, labels, start, copies)
            took = before - start.deadline.left()  # not a number without a deadline
            an_epoch = took / copies.epochs[f"round/{number}"]
            if (
                self.changed_[-1] < self.tolerance
                or start.deadline.left() <= SHORTEST * self.epochs * an_epoch
            ):
                break
        self.labels_ = labels
        return self

    # --- rare positives --------------------------------------------------------------

    def _rank(self, start: RefinerInput, copies: Copies) -> FloatArray:
        """Tell P from U with one network for new rows; cross-fitted ones place 0.

        Where these are not believed the network learns the boundary's labels instead.
        """
        epochs = max(1, self.ratio_epochs)
        learned = self._learned_ratio(start, copies, epochs)
        if learned is None:
            labels, prior = start.labels, start.prior_in_unlabeled
            labels = self._smoothed(labels, start, copies)
            alike = np.ones_like(labels)
            self.module_ = copies.train_labels(labels, alike, "rank")
        else:
            labels, prior = learned, self.prior_.prior_in_unlabeled
            everything = np.ones(len(labels), dtype=bool)
            self.module_ = copies.train_ratio(everything, "ratio", epochs)
        if not start.free.any():
            return labels
        score = copies.score(self.module_, np.ones(len(labels), dtype=bool))
        if not start.prior_known:
            self.cut_ = cut_at(score[start.free], prior)
            return labels
        self.cut_ = known_cut(score, start)
        # As many labels as are known to be positive pass 1/2: those on its wrong side
        # move. Of rows with equal labels those with the higher score come first.
        order = np.argsort(np.lexsort((score, labels))).astype(np.float64)  # ranks
        called = order > known_cut(order, start)
        return start.pinned(
            np.where(
                called,
                np.maximum(labels, JUST_ABOVE),
                np.minimum(labels, 1 - JUST_ABOVE),
            )
        )

    # --- where the rounds begin ------------------------------------------------------

    def _first_labels(self, start: RefinerInput, copies: Copies) -> FloatArray:
        """Join the boundary's labels with those of networks that know P and U only."""
        labels, prior = start.labels, start.prior_in_unlabeled
        believed = True
        if self.ratio_epochs:
            learned = self._learned_ratio(start, copies, self.ratio_epochs)
            believed = learned is not None
            if learned is not None:
                both = _log_odds(labels) + _log_odds(learned)
                labels = start.pinned(expit(both / 2))
                prior = joined(self.prior_, (prior, start.prior_interval))
        labels = self._smoothed(labels, start, copies)
        score = _log_odds(labels)
        if self.risk_epochs and believed:
            network = copies.train_risk(prior)
            risk = copies.score(network, np.ones(len(labels), dtype=bool))
            score = (score + np.clip(risk, -FAR, FAR)) / 2
        if not start.free.any():
            return start.pinned(labels)
        # Where many rows are equal the cut falls on them: they stay undecided.
        return start.pinned(expit(score - prior_cut(score[start.free], prior)))

    def _smoothed(
        self, labels: FloatArray, start: RefinerInput, copies: Copies
    ) -> FloatArray:
        if not self.smooth:
            return labels
        smoother = Smoother(start.Z, self.smooth, copies.device)
        return smoother(start.pinned(labels), rounds=2, pin=start.pinned)

    def _learned_ratio(
        self, start: RefinerInput, copies: Copies, epochs: int
    ) -> FloatArray | None:
        """Return P(y = 1) by networks that tell P from U, None if not believed."""
        scores = self._cross_fitted(start, copies, epochs)
        if scores is None:
            return None
        free = start.free
        judged = start.positive | free
        boundary, networks = (
            _auc(start.positive[judged], found[judged])
            for found in (start.scores, scores)
        )
        self.held_out_auc_ = {"boundary": boundary, "networks": networks}
        self.networks_used_ = networks >= min(boundary, 0.5 + LEAD * (boundary - 0.5))
        if not self.networks_used_:
            cut = cut_between(start.scores[free], start.labels[free])
            self._note_quality(start.scores > cut, start)
            return None
        found = posterior(
            scores[start.positive],
            scores[free],
            rng=copies.randomness.numpy("prior"),
            earlier=(start.prior_in_unlabeled, start.prior_interval),
            known=start.prior_in_unlabeled if start.prior_known else None,
        )
        self._note_quality(scores > found.cut, start)
        self.prior_ = found.prior
        self.estimated_ = found.estimated or found.prior
        labels = np.ones(len(scores))
        labels[free] = found.unlabeled
        return start.pinned(labels)

    def _note_quality(self, called: BoolArray, start: RefinerInput) -> None:
        self.held_out_recall_ = float(np.mean(called[start.positive]))
        self.held_out_called_ = float(np.mean(called[start.free]))

    def _cross_fitted(
        self, start: RefinerInput, copies: Copies, epochs: int
    ) -> FloatArray | None:
        """Return scores by networks that have not seen the row.

        None where nothing can be held out.
        """
        rng = copies.randomness.numpy("folds")
        fold = make_folds(start.positive, start.groups, self.folds, rng)
        if not all(
            start.positive[fold != part].any()
            and start.unlabeled[fold != part].sum() > 1
            for part in range(self.folds)
        ):
            warnings.warn(
                "There are too few labelled or unlabelled rows, or one group holds "
                "them, so that nothing can be held out to judge networks that tell one "
                "from the other. Neither they nor the PU risk are used: training "
                "begins with the boundary's labels.",
                FewRowsWarning,
                stacklevel=3,
            )
            return None
        scores = np.empty(len(fold))
        for part in range(self.folds):
            rows = fold == part
            module = copies.train_ratio(~rows, f"ratio/{part}", epochs)
            found = copies.score(module, rows)
            if self.smooth:  # among rows that this network has not seen
                near = min(self.smooth // 2, int(rows.sum()) - 1)
                found = Smoother(start.Z[rows], max(1, near), copies.device)(found)
            scores[rows] = found
        return scores

    # --- the rounds ------------------------------------------------------------------

    def _round(
        self, number: int, labels: FloatArray, start: RefinerInput, copies: Copies
    ) -> FloatArray:
        target = (labels > 0.5).astype(np.float64)
        weight = np.abs(2 * labels - 1) if self.weighted else np.ones(len(labels))
        self.module_ = copies.train_labels(target, weight, f"round/{number}")
        score = copies.score(self.module_, np.ones(len(labels), dtype=bool))
        if start.prior_known and start.free.any():
            self.cut_ = known_cut(score, start)
        found = start.pinned(expit(score - self.cut_))
        free = start.unlabeled
        self.changed_.append(
            float(np.mean((found > 0.5)[free] != (labels > 0.5)[free]))
        )
        return found

    # --- answers ---------------------------------------------------------------------

    def decision_function(self, X: Any) -> FloatArray:
        """Return log-odds for checked images."""
        if not hasattr(self, "module_"):
            raise NotFittedError(f"{type(self).__name__} has not refined anything yet.")
        encoder = self.encoder_
        return (
            in_fixed_batches(
                WithMirror(self.module_, encoder.preset_.flip),
                X,
                lambda rows: encoder.as_float(encoder.packed(rows)),
                device=resolve_device(self.device),
                batch_size=256,
            ).astype(np.float64)
            - self.cut_
        )

    def facts(self) -> dict[str, Any]:
        """Return the rounds, how many labels each changed, and what was held out."""
        found = {
            "path": self.path_,
            "networks_used": self.networks_used_,
            "rounds": len(self.changed_),
            "epochs": self.epochs_,
            "changed": [round(share, 4) for share in self.changed_],
        }
        if self.held_out_auc_:
            found["held_out_auc"] = self.held_out_auc_
            found["held_out_recall"] = self.held_out_recall_
            found["held_out_called"] = self.held_out_called_
        if hasattr(self, "prior_"):
            found["prior_interval"] = [self.prior_.low, self.prior_.high]
        return found


def _log_odds(labels: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(labels, 1 - SURE, SURE)), dtype=np.float64)


def _auc(positive: BoolArray, scores: FloatArray) -> float:
    """Return the AUC; a network that has diverged is at chance."""
    if not np.isfinite(scores).all():
        return 0.5
    return float(roc_auc_score(positive, scores))


# --- means over nearest neighbours --------------------------------------------------


class Smoother:
    """Replace values of rows by weighted means over each row's nearest other rows.

    ``device`` is where neighbours are searched.
    """

    def __init__(
        self, Z: FloatArray, n_neighbors: int, device: torch.device | str = "cpu"
    ) -> None:
        k = min(n_neighbors, len(Z) - 1)
        self.index = np.empty((len(Z), k), dtype=np.int64)
        self.weight = np.empty((len(Z), k))
        for found in Neighbours(Z, "cosine", device).search(Z, k, exclude_self=True):
            nearest = found.distance[:, :1]
            weight = np.exp((nearest - found.distance) / TEMPERATURE)
            self.index[found.rows] = found.index
            self.weight[found.rows] = weight / weight.sum(axis=1, keepdims=True)

    def __call__(
        self,
        values: FloatArray,
        rounds: int = 1,
        pin: Callable[[FloatArray], FloatArray] | None = None,
    ) -> FloatArray:
        """Return the means; ``pin`` restores known values after each round."""
        for _ in range(rounds):
            values = np.einsum("nk,nk->n", self.weight, values[self.index])
            values = pin(values) if pin is not None else values
        return values
