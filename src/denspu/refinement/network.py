"""Images: the encoder's network is trained on, first P against U, then on labels.

1. *Ratio*: copies of the network learn to tell P from U, each on a part of the rows,
   and score the others. What they learn is the density ratio of the boundary again,
   with features that may move. Along these scores the held-out positives say how
   likely a row of U is positive (:mod:`denspu.refinement.posterior`).
   Where positives are rare this is all: the ranking counts, and hard labels would be
   nearly all negative.
   Where these networks are not believed (:mod:`denspu.refinement.network_ratio`)
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

from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.exceptions import NotFittedError

from denspu._machine import resolve_device
from denspu._parameters import Number, OneOf, Whole, check_parameters
from denspu._random import Randomness
from denspu._scores import prior_cut
from denspu._typing import FloatArray, RandomState
from denspu.base import Refiner, RefinerInput, Rules, forget
from denspu.exceptions import InvalidParameterError
from denspu.networks.heads import WithMirror
from denspu.refinement.margins import cut_at, known_cut
from denspu.refinement.network_copies import Copies
from denspu.refinement.network_ratio import learn_ratio
from denspu.refinement.network_training import train_labels, train_ratio, train_risk
from denspu.refinement.posterior import joined
from denspu.refinement.smoothing import Smoother
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


class NetworkRefiner(Refiner):
    """Rounds of ordinary training with the encoder's network.

    Parameters
    ----------
    ratio_epochs : int, default=5
        Epochs of P against U; 0 leaves this step out.
    folds : int, default=2
        Parts of the rows in the ratio step; each is scored by the others' networks.
    risk_epochs : int, default=8
        Epochs on the PU risk; 0 leaves this step out, as do networks of the ratio
        that are not believed.
    rounds : int, default=3
        Rounds of training on labels, at most; fewer where time is short. The first one
        may take all the time there is, others begin if half of their epochs fit.
    epochs : int, default=20
        Epochs of a round.
    tolerance : float, default=0.002
        Stop when a smaller share of U changes its label in a round.
    weighted : bool, default=True
        Rows count by how sure their label is, |2p - 1|.
    mixup : bool, default=True
        Train on random mixtures of two images and their labels.
    ema_decay : float or None, default=0.998
        Decay of the moving average of the weights that is kept; None keeps the last.
    smooth : int, default=20
        Neighbours over which first labels are averaged; 0 switches that off.
    lr, weight_decay, batch_size
        Of stochastic gradient descent with Nesterov momentum.
    crop, erase : float
        Smallest part of an image a view shows, and the side of the hole in it.
    random_state, device, verbose
        As everywhere.

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

    inputs: ClassVar[tuple[str, ...]] = ("image",)
    sees = "input"
    _rules: ClassVar[Rules] = {
        "ratio_epochs": (Whole(0),),
        "folds": (Whole(2),),
        "risk_epochs": (Whole(0),),
        "rounds": (Whole(1),),
        "epochs": (Whole(1),),
        "tolerance": (Number(0, 1),),
        "weighted": (OneOf(True, False),),
        "mixup": (OneOf(True, False),),
        "ema_decay": (OneOf(None), Number(0, 1, "neither")),
        "smooth": (Whole(0),),
        "lr": (Number(0, closed="neither"),),
        "weight_decay": (Number(0),),
        "batch_size": (Whole(2),),
        "crop": (Number(0, 1, "right"),),
        "erase": (Number(0, 1, "left"),),
    }

    def __init__(
        self,
        *,
        ratio_epochs: int = 5,
        folds: int = 2,
        risk_epochs: int = 8,
        rounds: int = 3,
        epochs: int = 20,
        tolerance: float = 0.002,
        weighted: bool = True,
        mixup: bool = True,
        ema_decay: float | None = 0.998,
        smooth: int = 20,
        lr: float = 0.1,
        weight_decay: float = 5e-4,
        batch_size: int = 512,
        crop: float = 0.5,
        erase: float = 0.375,
        random_state: RandomState = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.ratio_epochs = ratio_epochs
        self.folds = folds
        self.risk_epochs = risk_epochs
        self.rounds = rounds
        self.epochs = epochs
        self.tolerance = tolerance
        self.weighted = weighted
        self.mixup = mixup
        self.ema_decay = ema_decay
        self.smooth = smooth
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.crop = crop
        self.erase = erase
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

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
        copies = Copies(
            start, resolve_device(self.device), Randomness(self.random_state)
        )
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
            self.module_ = train_labels(self, labels, alike, copies, "rank")
        else:
            labels, prior = learned, self.prior_.prior_in_unlabeled
            everything = np.ones(len(labels), dtype=bool)
            self.module_ = train_ratio(self, everything, start, copies, "ratio", epochs)
        if not start.free.any():
            return labels
        score = copies.score(self.module_, np.ones(len(labels), dtype=bool))
        if not start.prior_known:
            self.cut_ = cut_at(score[start.free], prior)
            return labels
        self.cut_ = known_cut(score, start)
        return _calling_the_known(labels, score, start)

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
            network = train_risk(self, prior, start, copies)
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
        ratio = learn_ratio(self, start, copies, epochs)
        if ratio is None:
            return None
        self.held_out_auc_ = ratio.auc
        self.networks_used_ = ratio.labels is not None
        if ratio.prior is not None:
            self.prior_ = ratio.prior
        if ratio.estimated is not None:
            self.estimated_ = ratio.estimated
        self.held_out_recall_, self.held_out_called_ = ratio.recall, ratio.called
        return ratio.labels

    # --- the rounds ------------------------------------------------------------------

    def _round(
        self, number: int, labels: FloatArray, start: RefinerInput, copies: Copies
    ) -> FloatArray:
        target = (labels > 0.5).astype(np.float64)
        weight = np.abs(2 * labels - 1) if self.weighted else np.ones(len(labels))
        self.module_ = train_labels(self, target, weight, copies, f"round/{number}")
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


def _calling_the_known(
    labels: FloatArray, score: FloatArray, start: RefinerInput
) -> FloatArray:
    """Return labels of which as many pass 1/2 as rows are known to be positive.

    Only those on the wrong side of it move. Of rows with equal labels those with the
    higher score come first.
    """
    order = np.argsort(np.lexsort((score, labels))).astype(np.float64)  # ranks
    called = order > known_cut(order, start)
    moved = np.where(
        called, np.maximum(labels, JUST_ABOVE), np.minimum(labels, 1 - JUST_ABOVE)
    )
    return start.pinned(moved)


def _log_odds(labels: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(labels, 1 - SURE, SURE)), dtype=np.float64)
