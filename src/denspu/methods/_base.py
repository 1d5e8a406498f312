"""What every PU method shares: the gate, the fit, and what a fitted model tells.

A method is a subclass with ``_fit`` and ``_decide``. Everything a user may get wrong is
caught here, and seeds and devices are resolved once a fit.
"""

from __future__ import annotations

import hashlib
import shutil
import warnings
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from safetensors import SafetensorError
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from denspu import __version__
from denspu._frame import Frame
from denspu._machine import resolve_device
from denspu._parameters import (
    About,
    Configured,
    InstanceOf,
    Number,
    OneOf,
    Rule,
    Whole,
    check,
    check_parameters,
    setting,
)
from denspu._progress import many
from denspu._random import Randomness
from denspu._registry import (
    give_time,
    prepare_part,
    refuse_kind,
    resolve_part,
    settings_of,
)
from denspu._share import Counts, HiddenPositive, Share
from denspu._typing import FloatArray, IntArray, RandomState
from denspu._validation import (
    PUInput,
    allows_nan,
    check_embedding,
    take_rows,
    validate_fit,
    validate_X,
)
from denspu.base import forget
from denspu.exceptions import (
    DegenerateFitWarning,
    InvalidInputError,
    InvalidParameterError,
    ModelFileError,
    RunFolderError,
    UnusedInputWarning,
)
from denspu.methods._evidence import (
    FAR_TOO_MANY,
    Evidence,
    choose,
    choose_held_out,
    cross_fitted,
    gather,
    given_share,
    is_folds,
    report,
)
from denspu.methods._why import Explanation, Memory, encoder_of, explain
from denspu.metrics import PUReport

OF_LAST_FIT = (
    *("evidence_", "threshold_", "threshold_choice_", "posterior_"),
    *("encoder_", "table_", "memory_"),
)
"""What a fit forgets before it begins."""

DEGENERACY_SAMPLE = 2_000
"""Unlabelled rows looked at when asking whether a fit is degenerate."""

TAKE_GAPS = ("auto", None, "tabular", "contrastive")
"""Encoders, by name, that take tables with gaps."""

TARGET_RULES: dict[str, tuple[Rule, ...]] = {
    "recall": (Number(0, 1, "right"),),
    "precision": (Number(0, 1, "right"),),
    "top": (Whole(1),),
    "prior": (OneOf(True),),
    "prior_in_unlabeled": (Number(0, 1),),
}


TRAINING, ENCODER = "training", "encoder"
BESIDE = ("checkpoint", "max_seconds", "verbose", "device")
"""Settings of an encoder that may differ when it goes on."""


class PUClassifier(ClassifierMixin, Configured, ABC):
    """A whole PU method: ``fit(X, y)`` on positives and unlabelled rows.

    Attributes
    ----------
    threshold_ : float
        Rows that score above it are called positive; ``set_threshold`` moves it.
    evidence_ : Evidence
        Scores of held-out positives and of U, after ``fit(holdout=)``.
    memory_ : Memory
        What ``explain`` needs; only where the method has an embedding.
    """

    about = About(
        kind="method", assumption="SCAR", scenario="any", uses_known_negatives=True
    )

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        known_negative: Any = None,
        groups: Any = None,
        holdout: Any = None,
    ) -> Self:
        """Learn from labelled positives and unlabelled rows.

        Parameters
        ----------
        X : array, DataFrame or image array
            One row a sample.
        y : array of shape (n,)
            1 for a labelled positive, 0 (or -1, False) for an unlabelled row.
        known_negative : boolean array of shape (n,), optional
            Unlabelled rows known to be negative. A method that does not learn from
            them says so.
        groups : array of shape (n,), optional
            Patient, customer, ...: no group is split by an internal hold-out.
        holdout : "folds", float or boolean array of shape (n,), optional
            Who judges the model: scores of labelled positives that it has not seen,
            and those of U, become ``evidence_``, for ``evaluate``, ``set_threshold``
            and ``calibrate``. ``"folds"``: every labelled positive is judged once, by
            a model without it. Methods that keep such scores of their rows (``DensPU``
            on tables and texts) need no more time for it, others fit six times. A
            share in (0, 1) or a mask: these labelled positives are learned from as if
            they were unlabelled. A group with one of them has all its labelled
            positives held out; its unlabelled rows stay in U.
        """
        check_parameters(self)
        data = validate_fit(self, X, y, known_negative, groups)
        self._warn_if_unused(data)
        randomness = Randomness(getattr(self, "random_state", None))
        held = None
        folded = is_folds(holdout)
        if holdout is not None and not folded:
            held = choose_held_out(holdout, data, randomness.numpy("holdout"))
            positive = data.positive & ~held
            data = replace(data, positive=positive, held_out=held)
        self._check_prior(data)
        given = None if holdout is None else given_share(self, data)
        for name in OF_LAST_FIT:
            forget(self, name)
        self.classes_ = np.array([0, 1])
        self._fit(data, randomness)
        if (encoder := encoder_of(self)) is not None:
            self.memory_ = Memory.of(encoder, data)
        self.threshold_ = 0.0
        self._warn_if_degenerate(data)
        if held is not None:
            self._correct_priors(data)
        if holdout is not None:
            fair = cross_fitted(self, data, randomness) if folded else None
            self.evidence_ = gather(self, data, given, randomness, fair)
        return self

    def _correct_priors(self, data: PUInput) -> None:
        """Let the priors be about the user's U, in which no row was held out."""
        names = ["prior_in_unlabeled_"]
        if getattr(self, "scenario", None) == "two-sample":
            names.append("prior_")
        seen, given = Counts.seen(data), Counts.given(data)

        def corrected(value: float) -> float:
            share = Share.exactly(value, "unlabeled", seen)
            return share.to("unlabeled", given).value

        for name in names:
            if hasattr(self, name):
                setattr(self, name, corrected(getattr(self, name)))
        if hasattr(self, "prior_interval_"):
            low, high = self.prior_interval_
            self.prior_interval_: tuple[float, float] = corrected(low), corrected(high)

    @abstractmethod
    def _fit(self, data: PUInput, randomness: Randomness) -> None:
        """Learn from checked data."""

    @abstractmethod
    def _decide(self, X: Any) -> FloatArray:
        """Return how positive checked rows are: log-odds, or a margin around 0."""

    def decision_function(self, X: Any) -> FloatArray:
        """Return log-odds or a margin, higher = more positive, 0 = the fit's cut."""
        check_is_fitted(self)
        return self._decide(validate_X(self, X, reset=False))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return columns for negative and positive; rows sum to 1.

        The logistic function of ``decision_function``: a probability where that is a
        log-odds, and an uncalibrated score where it is a margin (kernel machines).
        After ``calibrate`` the chance that a row of U with this score is positive.
        """
        scores = np.asarray(self.decision_function(X), dtype=np.float64)
        known = hasattr(self, "posterior_")
        positive = self.posterior_(scores) if known else expit(scores)
        return np.column_stack([1 - positive, positive])

    def predict(self, X: Any) -> IntArray:
        """Return 1 for rows that score above ``threshold_``, 0 for others."""
        return (self.decision_function(X) > self.threshold_).astype(np.int64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; -1 and False in ``y`` count as 0, as in ``fit``.

        With PU labels this is no measure of quality: calling all of U negative would
        score best. Pass true labels.
        """
        truth = (np.asarray(y) == 1).astype(np.int64)
        return float(
            accuracy_score(truth, self.predict(X), sample_weight=sample_weight)
        )

    # --- what a fitted model decides and tells ---

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
        rules = TARGET_RULES.get(rule, (Number(),))
        if not any(allowed.allows(target) for allowed in rules):
            raise InvalidParameterError(
                f"set_threshold: {rule} must be {rules[0]}. Got {target!r} instead."
            )
        if rule == "value":
            self._forget_choice()
            self.threshold_ = float(target)
            return self
        choice = choose(self._known_evidence(), rule, target)
        if rule == "recall" and choice.n_called == len(self.evidence_.unlabeled):
            warnings.warn(
                f"recall={target:g} calls every unlabelled row positive: with "
                f"{many(len(self.evidence_.positive), 'held-out positive')} no higher "
                "cut can promise it. Ask for a lower recall, give a budget (top), or "
                "label more positives.",
                DegenerateFitWarning,
                stacklevel=2,
            )
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
            None if X is None else np.asarray(self.decision_function(X))
            for X in (X_positive, X_unlabeled)
        ]
        return report(
            self,
            *scores,
            k=k,
            level=level,
            population=population,
            random_state=random_state,
            prior_in_unlabeled=prior_in_unlabeled,
        )

    def explain(self, X: Any, k: int = 3) -> list[Explanation]:
        """Say which labelled positives rows are like, and what moved their scores.

        ``nearest`` are labelled positives: their row numbers among those given to
        ``fit``, and their distance in the embedding. Of more than 2,000 positives 1,000
        or more, evenly spread, are looked at. ``columns``, for a table of up to 500:
        how much lower the score would be with a typical value of U (the median, or the
        most frequent value) in one column. ``words``, for texts by TF-IDF: what each
        term adds to the mean cosine similarity with labelled positives, beyond that
        with U.

        Parameters
        ----------
        X : array, DataFrame, image array or list of texts
        k : int, default=3
            So many positives, columns and words at most.

        Returns
        -------
        list of Explanation
            One a row.
        """
        check_is_fitted(self)
        check("k", k, Whole(1))
        X = validate_X(self, X, reset=False)
        if not hasattr(self, "memory_"):
            raise InvalidInputError(
                f"{type(self).__name__} has no embedding in which rows could be "
                "compared, or was saved by an older denspu: explain has nothing to go "
                "by. Fit again, with DensPU say."
            )
        return explain(self, X, k, columns=k)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Keep the model in a folder; the same as :func:`denspu.save`."""
        from denspu.persistence import save  # it imports every method

        return save(self, folder, overwrite=overwrite)

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

    # --- what a method may override ---

    def _learns_from_known_negatives(self) -> bool:
        """Tell whether a fit with these settings does."""
        return bool(self.about.uses_known_negatives)

    def _keeps_fair_scores(self, kind: str) -> bool:
        """Tell whether a fit on such data scores its rows by models without them."""
        return False

    def _check_prior(self, data: PUInput) -> None:
        """Refuse a given prior that the labels contradict, before anything is lost."""
        if self._learns_from_prior():
            given_share(self, data)

    def _learns_from_prior(self) -> bool:
        """Tell whether a fit with these settings goes by a ``prior`` that is given."""
        return hasattr(self, "prior")

    def _warn_if_unused(self, data: PUInput) -> None:
        """Warn when known negatives are given to a method that has no use for them."""
        known = int(data.known_negative.sum())
        if known and not self._learns_from_known_negatives():
            warnings.warn(
                f"{type(self).__name__} does not learn from known negatives: the "
                f"{known:,} rows of known_negative count as unlabelled in its fit. "
                "dens_pu and pubn learn from them.",
                UnusedInputWarning,
                stacklevel=3,
            )

    def _warn_if_degenerate(self, data: PUInput) -> None:
        """Warn when U is called all one class, or positive far beyond the prior."""
        share = self._positive_share_of_unlabeled(data)
        expected = self._expected_share(data, share)
        if share in (0.0, 1.0):
            verdict = "negative" if share == 0 else "positive"
            warnings.warn(
                f"{type(self).__name__} calls every unlabelled row {verdict}. The "
                "ranking in decision_function may still be useful; look at stages_ "
                "and at the features before trusting predict.",
                DegenerateFitWarning,
                stacklevel=3,
            )
        elif expected is not None and share > FAR_TOO_MANY * expected:
            warnings.warn(
                f"{type(self).__name__} calls {share:.1%} of the unlabelled rows "
                f"positive; the share of positives vouches for {expected:.2%}. Trust "
                "the ranking in decision_function, not predict; a method made for rare "
                "positives (dens_pu) or a threshold of your own serves better.",
                DegenerateFitWarning,
                stacklevel=3,
            )

    def _expected_share(self, data: PUInput, called: float) -> float | None:
        """Return the estimated share of positives inside U, if it is known."""
        return getattr(self, "prior_in_unlabeled_", None)

    def _positive_share_of_unlabeled(self, data: PUInput) -> float:
        """Return the share of U (or of a spread-out sample) called positive."""
        rows = np.flatnonzero(data.unlabeled)
        sample = rows[:: max(1, len(rows) // DEGENERACY_SAMPLE)]
        return float(np.mean(self._decide(take_rows(data.X, sample)) > 0))

    def _embed(self, X: Any) -> FloatArray:
        """Return the embeddings of checked rows, where the method has an encoder."""
        encoder: Any = self.encoder_
        return check_embedding(encoder.transform(X), argument="the encoder's output")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        encoder = getattr(self, "encoder", "identity")
        tags.input_tags.allow_nan = encoder in TAKE_GAPS or (
            not isinstance(encoder, str | type) and allows_nan(encoder)
        )
        return tags


class EncoderPU(PUClassifier):
    """A PU method that may learn an encoder first, and keeps it in a folder."""

    checkpoint: str | Path | None = setting(
        None,
        OneOf(None),
        InstanceOf(str),
        InstanceOf(Path),
        doc="Folder in which the encoder's training is kept, and in the end the "
        "encoder: a second fit on the same rows with the same settings goes on there.",
    )
    random_state: RandomState = setting(None, doc="Makes a fit repeatable.")
    device: str = setting("auto", doc="Where networks are trained, if there are any.")
    verbose: int = setting(0, Whole(0), doc="1 shows what takes long.")

    def _learn_encoder(
        self,
        chosen: Any,
        data: PUInput,
        randomness: Randomness,
        seconds: float | None = None,
    ) -> None:
        """Leave ``encoder_`` behind: built, seeded, fitted or taken from a folder."""
        self.encoder_: Any = prepare_part(
            resolve_part(chosen, "encoder", argument="encoder"),
            randomness,
            "encoder",
            device=str(resolve_device(self.device)),
            verbose=self.verbose,
        )
        refuse_kind(self.encoder_, data.kind, "encoder")
        give_time(self.encoder_, seconds)
        self.encoder_ = fit_encoder(self.encoder_, data, self.checkpoint)


# --- what an encoder has learned stays in a folder: a fit that was cut off goes on ---


def fit_encoder(encoder: Any, data: PUInput, checkpoint: str | Path | None) -> Any:
    """Fit an encoder, or return what an earlier fit on the same rows has learned.

    Encoders that keep no training, or have a folder of their own, are just fitted.
    """
    y = data.positive.astype(np.int64)
    settings = settings_of(encoder)
    if checkpoint is None or settings.get("checkpoint", "") is not None:
        encoder.fit(data.X, y)
        return encoder
    from denspu.persistence import load, load_extra, save

    same = {name: v for name, v in settings.items() if name not in BESIDE}
    key = key_of(data.X, type(encoder).__name__, y, sorted(same.items()))
    place = Path(checkpoint) / ENCODER
    if place.exists():
        try:
            earlier = load(place)
        except ModelFileError:
            shutil.rmtree(place)  # damaged: learned again
        else:
            learned_from = (load_extra(place) or {}).get("learned_from", key)
            if learned_from != key:
                raise InvalidParameterError(
                    f"checkpoint={str(checkpoint)!r} holds an encoder of other rows or "
                    "settings. Choose another folder, or delete it."
                )
            return earlier.set_params(**settings)
    encoder.set_params(checkpoint=str(Path(checkpoint) / TRAINING))
    try:
        encoder.fit(data.X, y)
    except (OSError, SafetensorError) as error:
        for half in Path(checkpoint).rglob("*.part"):
            half.unlink(missing_ok=True)
        raise RunFolderError(
            f"{checkpoint} could not be written while the encoder was trained: "
            f"{error}. Make room, or choose another place."
        ) from error
    finally:
        encoder.set_params(checkpoint=None)
    with suppress(ModelFileError):  # no room: a second try would train again
        save(encoder, place, extra={"input": {"learned_from": key}})
    return encoder


def key_of(X: Any, *others: Any) -> str:
    """Return a hash of rows and settings."""
    digest = hashlib.sha256(__version__.encode())
    if isinstance(X, Frame):
        for name in X.columns:
            digest.update(repr((name, X[name].tolist())).encode())
    elif isinstance(X, np.ndarray):
        digest.update(repr((X.shape, X.dtype.str)).encode())
        for row in X:
            digest.update(np.ascontiguousarray(row).data)
    else:
        digest.update(repr(list(X)).encode("utf-8", "surrogatepass"))
    for other in others:
        plain = other.tolist() if isinstance(other, np.ndarray) else other
        digest.update(repr(plain).encode())
    return digest.hexdigest()
