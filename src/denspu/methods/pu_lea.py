"""PU-LEA: rows of U that look positive leave it, round by round.

Hernández Fusilier, Guzmán Cabrera, Montes-y-Gómez and Rosso, "Using PU-Learning to
Detect Deceptive Opinion Spam", WASSA 2013; Hernández Fusilier, Montes-y-Gómez, Rosso
and Guzmán Cabrera, "Detecting Positive and Negative Deceptive Opinions Using
PU-Learning", Information Processing & Management 2015.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from denspu._parameters import About, OneOf, Whole, setting
from denspu.methods._classical import EstimatorPU, EstimatorTask


class PULEA(EstimatorPU):
    """Rows of U that look positive leave it, round by round.

    A classifier learns P against U. The rows of U that it calls positive leave, the
    others are the negatives of the next round.

    Attributes
    ----------
    negative_index_ : array
        Numbers of the rows that the last classifier learned as negatives.
    left_ : list of int
        How many rows left in each round.
    """

    about = About(key="pu_lea", paper="Hernández Fusilier et al. 2013, 2015, PU-LEA")

    variant: Literal["modified", "original"] = setting(
        "modified",
        OneOf("modified", "original"),
        doc='``"original"`` (2013): rounds go on while more negatives than positives '
        'are left. ``"modified"`` (2015): they also end when more rows would leave '
        "than in the round before.",
    )
    max_rounds: int = setting(100, Whole(1), doc="Rounds at most.")

    def _train(self, task: EstimatorTask) -> None:
        n_positive = int(task.positive.sum())
        free = np.flatnonzero(task.free)
        known = np.flatnonzero(task.data.known_negative)
        self.left_: list[int] = []
        self.negative_index_ = np.union1d(free, known)
        self.estimator_ = task.positives_against(self.negative_index_, "round/0")
        while len(self.left_) < self.max_rounds and len(free):
            stays = task.scores(self.estimator_, free) <= 0
            leaving = int((~stays).sum())
            too_few = int(stays.sum()) + len(known) <= n_positive
            more = bool(self.left_) and leaving > self.left_[-1]
            if not leaving or too_few or (more and self.variant == "modified"):
                break
            self.left_.append(leaving)
            free = free[stays]
            self.negative_index_ = np.union1d(free, known)
            name = f"round/{len(self.left_)}"
            self.estimator_ = task.positives_against(self.negative_index_, name)
