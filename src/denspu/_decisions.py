"""What a fitted model can tell of itself, and decide: short ways to functions above.

``base.py`` stands below the rooms whose functions do the work. ``DOORS`` is the one
table of names that lead up; they are imported when they are called.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from denspu._evidence import Evidence
from denspu._parameters import Number, OneOf, Rule, Whole
from denspu._rising import HiddenPositive
from denspu._typing import FloatArray, RandomState
from denspu.exceptions import InvalidInputError, InvalidParameterError

if TYPE_CHECKING:
    from denspu.metrics import PUReport, ThresholdChoice

DOORS = {
    "gather": "denspu.methods._judging",
    "given_share": "denspu.methods._judging",
    "choose": "denspu.methods._judging",
    "report": "denspu.methods._judging",
    "save": "denspu.persistence",
}

RULES: dict[str, tuple[Rule, ...]] = {
    "recall": (Number(0, 1, "right"),),
    "precision": (Number(0, 1, "right"),),
    "top": (Whole(1),),
    "prior": (OneOf(True),),
    "prior_in_unlabeled": (Number(0, 1),),
}


def through(name: str) -> Any:
    """Return the function of that name from the room where it lives."""
    return getattr(import_module(DOORS[name]), name)


class Decisions:
    """Threshold, probabilities, evaluation and saving of a fitted PU classifier."""

    evidence_: Evidence
    threshold_: float
    threshold_choice_: ThresholdChoice
    posterior_: HiddenPositive

    def set_threshold(
        self,
        value: float | None = None,
        *,
        recall: float | None = None,
        precision: float | None = None,
        top: int | None = None,
        prior: bool | None = None,
        prior_in_unlabeled: float | None = None,
    ) -> Self:
        """Move the cut of ``predict`` without fitting again; give one argument.

        All but ``value`` look at ``evidence_``: fit with ``holdout=``. What to expect
        of the cut is kept in ``threshold_choice_``. Where the fit kept scores of its
        rows by models that have not seen them, the cut is of these; to decide on rows
        of the fit compare ``evidence_.unlabeled``, not ``predict``, which knows them.

        Parameters
        ----------
        value : float, optional
            Rows that score above it are called positive; 0 is the fit's own cut.
        recall : float, optional
            A positive passes with at least this chance.
        precision : float, optional
            The lowest cut estimated to be this pure.
        top : int, optional
            So many of the highest rows of U: a review budget.
        prior : True, optional
            As many rows of U as there should be positives.
        prior_in_unlabeled : float, optional
            The same, if you know the share of positives inside U better than the
            model does: where labels are biased it cannot tell.
        """
        check_is_fitted(self)
        given = {"value": value, "recall": recall, "precision": precision}
        given |= {"top": top, "prior": prior}
        given |= {"prior_in_unlabeled": prior_in_unlabeled}
        asked = {name: v for name, v in given.items() if v is not None}
        if len(asked) != 1:
            told = ", ".join(f"{k}={v!r}" for k, v in asked.items()) or "none"
            raise InvalidParameterError(
                "set_threshold takes exactly one of a value, recall=, precision=, "
                f"top=, prior=True or prior_in_unlabeled=. Got {told}."
            )
        rule, target = next(iter(asked.items()))
        rules = RULES.get(rule, (Number(),))
        if not any(allowed.allows(target) for allowed in rules):
            raise InvalidParameterError(
                f"set_threshold: {rule} must be {rules[0]}. Got {target!r} instead."
            )
        if rule == "value":
            self._forget_choice()
            self.threshold_ = float(target)
            return self
        choice = through("choose")(self._known_evidence(), rule, target)
        self.threshold_choice_ = choice
        self.threshold_ = choice.threshold
        return self

    def calibrate(self) -> Self:
        """Let ``predict_proba`` answer P(y = 1) of a row of U, learned from its score.

        A rising map from ``decision_function`` is learned from ``evidence_``: fit with
        ``holdout=``. Its mean over U is the share of positives there. A higher score
        never gets a lower probability, but neighbouring scores may share one.
        ``predict`` goes on cutting the score at ``threshold_``.
        """
        evidence = self._known_evidence()
        self.posterior_ = HiddenPositive(
            evidence.positive, evidence.unlabeled, evidence.prior_in_unlabeled
        )
        return self

    def evaluate(
        self,
        X_positive: Any = None,
        X_unlabeled: Any = None,
        *,
        k: int = 100,
        level: float = 0.9,
        population: Literal["unlabeled", "population"] = "unlabeled",
        random_state: RandomState = 0,
        prior_in_unlabeled: float | None = None,
    ) -> PUReport:
        """Estimate recall, precision and the rest at the current threshold.

        No negative is needed. Without rows, ``evidence_`` answers: fit with
        ``holdout=``.

        Parameters
        ----------
        X_positive : array or DataFrame, optional
            Positives that ``fit`` has not seen as positives.
        X_unlabeled : array or DataFrame, optional
            Rows to decide on; best others than in ``fit``.
        k : int, default=100
            For the precision among the k highest rows (all, if there are fewer).
        level : float, default=0.9
            Of the intervals.
        population : {"unlabeled", "population"}, default="unlabeled"
            What the figures are about; see :func:`denspu.metrics.pu_metrics`.
        random_state : int, generator or None, default=0
        prior_in_unlabeled : float, optional
            Share of positives inside the unlabelled rows. By default that of
            ``evidence_``, or, for rows given here, estimated from their scores.
        """
        check_is_fitted(self)
        known = getattr(self, "evidence_", None)
        if known is None and (X_positive is None or X_unlabeled is None):
            raise self._no_evidence(" or pass X_positive and X_unlabeled")
        scores: list[FloatArray | None] = [
            None if X is None else np.asarray(self.decision_function(X))  # type: ignore[attr-defined]
            for X in (X_positive, X_unlabeled)
        ]
        return through("report")(
            self,
            *scores,
            k=k,
            level=level,
            population=population,
            random_state=random_state,
            prior_in_unlabeled=prior_in_unlabeled,
        )

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Keep the model in a folder; the same as :func:`denspu.save`."""
        return through("save")(self, folder, overwrite=overwrite)

    def _known_evidence(self) -> Evidence:
        check_is_fitted(self)
        if not hasattr(self, "evidence_"):
            raise self._no_evidence()
        return self.evidence_

    def _no_evidence(self, or_else: str = "") -> InvalidInputError:
        return InvalidInputError(
            f"{type(self).__name__} has no held-out positives to judge by. Fit with "
            f"fit(X, y, holdout=0.2){or_else}."
        )

    def _forget_choice(self) -> None:
        self.__dict__.pop("threshold_choice_", None)
