"""Dens-PU: the walk x → z → dense z → boundary → Ñ → classifier.

Sevetlidis, Pavlidis, Mouroutsos and Gasteratos, "Dens-PU: PU Learning with
Density-Based Positive Labeled Augmentation".
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from denspu._device import resolve_device
from denspu._parameters import Number, OneOf, Part, Whole
from denspu._random import Randomness
from denspu._registry import Kind, registry, resolve_part
from denspu._stages import Stages
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu._validation import (
    PUInput,
    allows_nan,
    check_embedding,
    take_rows,
    validate_X,
)
from denspu.base import (
    BoundaryResult,
    PUClassifier,
    Rules,
    forget,
    prepare_part,
    refuse_kind,
)
from denspu.exceptions import InvalidParameterError
from denspu.methods._boundary import (
    FOLDS,
    densified,
    fit_boundary,
    held_out_scores,
    held_out_threshold,
    judge,
)
from denspu.methods._presets import choose_parts

PART_KINDS: dict[str, Kind] = {
    "encoder": "encoder",
    "densifier": "densifier",
    "detector": "detector",
    "selector": "selector",
    "classifier": "classifier",
}


class DensPU(PUClassifier):
    """Learn from labelled positives and unlabelled rows by density.

    The six steps: an encoder is learned (1) and applied (2), the positives' embeddings
    are made denser (3), a detector draws a boundary around them (4), unlabelled rows
    outside it are ranked and the surest become negatives Ñ (5), and an ordinary
    classifier separates P from Ñ (6). Every step is a part that can be replaced, by
    key or by an object, and nested parameters are set with ``part__name``.

    Parameters
    ----------
    preset : {None, "paper"}, default=None
        ``"paper"`` takes every part and number from the paper (for images); ``None``
        chooses parts that suit the data. Parts given explicitly win.
    encoder, densifier, detector, selector, classifier : str or object, default="auto"
        The parts; ``denspu list`` names those that exist.
    contamination : "auto", "ratio", "heldout" or float, default="auto"
        Where the boundary lies. ``"ratio"`` is the paper's C = |Z_L| / |Z_ν|;
        ``"heldout"`` leaves a tenth of held-out positives outside; a number is the
        share of the training embeddings left outside. ``"auto"`` is ``"ratio"`` in the
        paper's preset and ``"heldout"`` otherwise.
    classify_on : {"auto", "input", "embedding"}, default="auto"
        What the classifier sees. ``"auto"``: images for networks, else embeddings.
    checks : int from 0 to 5 or "auto", default="auto"
        How many fifths of the positives are held out in turn to judge the boundary.
    random_state : int, generator or None, default=None
    device : str, default="auto"
    verbose : int, default=0

    Attributes
    ----------
    stages_ : Stages
        What each stage did: seconds, sizes, contamination, threshold, checks.
    encoder_, densifier_, detector_, selector_, classifier_
        The fitted parts.
    unlabeled_index_, unlabeled_scores_, unlabeled_inlier_ : arrays
        Row numbers of U, their normality, and whether they lie inside the boundary.
    held_out_scores_ : array
        Normality of labelled positives, each judged by a boundary drawn without it.
    negative_index_ : array
        Row numbers chosen as Ñ, surest first.
    classes_ : array
        ``[0, 1]``.

    Examples
    --------
    >>> from denspu import DensPU, load_dataset, make_pu
    >>> digits = load_dataset("digits")
    >>> pu = make_pu(digits.X_train, digits.y_train, positive=digits.positive,
    ...              n_labeled=0.2, random_state=0)
    >>> model = DensPU(random_state=0).fit(pu.X, pu.y)
    >>> model.stages_.names
    ['encode', 'densify', 'boundary', 'select', 'classify']
    """

    _rules: ClassVar[Rules] = {
        "preset": (OneOf(None, "paper"),),
        **{name: (Part(kind),) for name, kind in PART_KINDS.items()},
        "contamination": (
            OneOf("auto", "ratio", "heldout"),
            Number(0, 0.5, "right"),
        ),
        "classify_on": (OneOf("auto", "input", "embedding"),),
        "checks": (OneOf("auto"), Whole(0, FOLDS)),
        "verbose": (Whole(0),),
    }

    def __init__(
        self,
        *,
        preset: Literal["paper"] | None = None,
        encoder: Any = "auto",
        densifier: Any = "auto",
        detector: Any = "auto",
        selector: Any = "auto",
        classifier: Any = "auto",
        contamination: float | Literal["auto", "ratio", "heldout"] = "auto",
        classify_on: Literal["auto", "input", "embedding"] = "auto",
        checks: int | Literal["auto"] = "auto",
        random_state: RandomState = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.preset = preset
        self.encoder = encoder
        self.densifier = densifier
        self.detector = detector
        self.selector = selector
        self.classifier = classifier
        self.contamination = contamination
        self.classify_on = classify_on
        self.checks = checks
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # --- the walk --------------------------------------------------------------------

    def _fit(self, data: PUInput, randomness: Randomness) -> None:
        self.device_ = str(resolve_device(self.device))
        parts, settings = choose_parts(self, data)
        for name, kind in PART_KINDS.items():
            part = resolve_part(parts[name], kind, argument=name)
            parts[name] = prepare_part(
                part, randomness, name, device=self.device_, verbose=self.verbose
            )
        self.encoder_: Any = parts["encoder"]
        self.densifier_: Any = parts["densifier"]
        self.detector_: Any = parts["detector"]
        self.selector_: Any = parts["selector"]
        self.classifier_: Any = parts["classifier"]
        self.classify_on_ = self._sees(data.kind)
        refuse_kind(self.encoder_, data.kind, "encoder")
        sees = data.kind if self.classify_on_ == "input" else "table"
        refuse_kind(self.classifier_, sees, "classifier")
        forget(self, "held_out_scores_")
        self.stages_ = Stages()
        Z = self._encode(data)
        self._bound(Z, data, settings, randomness)
        self._select(Z, data, randomness)
        self._classify(Z, data)

    def _encode(self, data: PUInput) -> FloatArray:
        with self.stages_.stage("encode") as facts:
            self.encoder_.fit(data.X, data.positive.astype(np.int64))
            Z = self._embed(data.X)
            facts["encoder"] = type(self.encoder_).__name__
            facts["positives"] = int(data.positive.sum())
            facts["unlabeled"] = int(data.unlabeled.sum())
            facts["dimension"] = Z.shape[1]
            facts.update(_facts_of(self.encoder_))
        return Z

    def _embed(self, X: Any) -> FloatArray:
        return check_embedding(
            self.encoder_.transform(X), argument="the encoder's output"
        )

    def _bound(
        self,
        Z: FloatArray,
        data: PUInput,
        settings: dict[str, Any],
        randomness: Randomness,
    ) -> None:
        positive, unlabeled = Z[data.positive], Z[data.unlabeled]
        contamination = settings["contamination"]
        with self.stages_.stage("densify") as facts:
            dense = densified(positive, self.densifier_, randomness)
            facts["densifier"] = type(self.densifier_).__name__
            facts["encodings"] = len(positive)
            facts["embeddings"] = len(dense)
        with self.stages_.stage("boundary") as facts:
            boundary = fit_boundary(
                positive,
                dense,
                self.detector_,
                contamination,
                randomness,
                unlabeled=unlabeled,
            )
            checks = held_out_scores(
                positive,
                unlabeled,
                self.densifier_,
                self.detector_,
                contamination,
                None if data.groups is None else data.groups[data.positive],
                settings["checks"],
                randomness,
            )
            self.detector_ = boundary.detector
            facts["detector"] = type(self.detector_).__name__
            threshold = None
            if contamination == "heldout" and checks:
                threshold = self.detector_.threshold_ = held_out_threshold(checks)
            self.unlabeled_index_ = np.flatnonzero(data.unlabeled)
            self.unlabeled_scores_ = self.detector_.score_samples(unlabeled)
            self.unlabeled_inlier_: BoolArray = (
                self.unlabeled_scores_ >= self.detector_.threshold_
            )
            facts["threshold"] = float(self.detector_.threshold_)
            facts["threshold_from"] = _threshold_source(contamination, threshold)
            if facts["threshold_from"] == "contamination":
                facts["contamination"] = boundary.contamination
            facts["predicted_inlier"] = int(self.unlabeled_inlier_.sum())
            facts["leftovers"] = int((~self.unlabeled_inlier_).sum())
            if checks:
                facts.update(judge(checks, boundary, threshold))
                self.held_out_scores_ = np.concatenate([c.positive for c in checks])

    def _select(self, Z: FloatArray, data: PUInput, randomness: Randomness) -> None:
        with self.stages_.stage("select") as facts:
            chosen = self.selector_.select(
                BoundaryResult(
                    scores=self.unlabeled_scores_,
                    inlier=self.unlabeled_inlier_,
                    n_positive=int(data.positive.sum()),
                    Z_unlabeled=Z[data.unlabeled],
                    Z_positive=Z[data.positive],
                ),
                randomness.numpy("select"),
            )
            self.negative_index_: IntArray = _with_known(
                self.unlabeled_index_[chosen], data.known_negative
            )
            facts["selector"] = type(self.selector_).__name__
            facts["negatives"] = len(self.negative_index_)
            facts["known_negatives"] = int(data.known_negative.sum())

    def _classify(self, Z: FloatArray, data: PUInput) -> None:
        positive = np.flatnonzero(data.positive)
        rows = np.concatenate([positive, self.negative_index_])
        target = np.r_[np.ones(len(positive)), np.zeros(len(rows) - len(positive))]
        source = data.X if self.classify_on_ == "input" else Z
        with self.stages_.stage("classify") as facts:
            self.classifier_.fit(take_rows(source, rows), target.astype(np.int64))
            facts["classifier"] = type(self.classifier_).__name__
            facts["sees"] = self.classify_on_
            facts["positives"] = len(positive)
            facts["negatives"] = len(self.negative_index_)
            facts.update(_facts_of(self.classifier_))

    def _sees(self, kind: str) -> str:
        if self.classify_on != "auto":
            return self.classify_on
        takes = getattr(self.classifier_, "inputs", ())
        return "input" if kind in takes and kind == "image" else "embedding"

    # --- answers ---------------------------------------------------------------------

    def _decide(self, X: Any) -> FloatArray:
        seen = X if self.classify_on_ == "input" else self._embed(X)
        if hasattr(self.classifier_, "decision_function"):
            return np.asarray(self.classifier_.decision_function(seen))
        column = list(self.classifier_.classes_).index(1)
        proba = np.clip(self.classifier_.predict_proba(seen)[:, column], 1e-12, 1)
        return np.log(proba) - np.log1p(-np.minimum(proba, 1 - 1e-12))

    def normality(self, X: Any) -> FloatArray:
        """Return how far inside the boundary rows lie; below 0 is outside."""
        check_is_fitted(self)
        Z = self._embed(validate_X(self, X, reset=False))
        return self.detector_.score_samples(Z) - self.detector_.threshold_

    # --- parameters ------------------------------------------------------------------

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of parts that are still named by their key."""
        nested = {name: value for name, value in params.items() if "__" in name}
        super().set_params(**{k: v for k, v in params.items() if k not in nested})
        for name in nested:
            part = name.partition("__")[0]
            value = getattr(self, part, None)
            if not isinstance(value, str) or part not in PART_KINDS:
                continue
            if value == "auto":
                raise InvalidParameterError(
                    f"{name} cannot be set while {part}='auto'. Name the part first: "
                    f"{part}='{next(iter(registry().of_kind(PART_KINDS[part])))}', say."
                )
            setattr(self, part, registry().get(value, PART_KINDS[part]).build())
        return super().set_params(**nested)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        encoder = self.encoder
        tags.input_tags.allow_nan = encoder in ("auto", "tabular") or (
            not isinstance(encoder, str | type) and allows_nan(encoder)
        )
        return tags


def _threshold_source(contamination: str | float, threshold: float | None) -> str:
    if threshold is not None:
        return "held-out positives"
    if contamination == "heldout":
        return "the detector itself: no positives were held out"
    return "contamination"


def _facts_of(part: Any) -> dict[str, Any]:
    return part.facts() if hasattr(part, "facts") else {}


def _with_known(chosen: IntArray, known_negative: BoolArray) -> IntArray:
    """Add rows known to be negative behind the chosen ones, each row once."""
    known = np.flatnonzero(known_negative)
    return np.concatenate([chosen, known[~np.isin(known, chosen)]])
