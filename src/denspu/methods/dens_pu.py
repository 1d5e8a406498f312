"""Dens-PU: the walk x → z → dense z → boundary → Ñ → classifier.

Sevetlidis, Pavlidis, Mouroutsos and Gasteratos, "Dens-PU: PU Learning with
Density-Based Positive Labeled Augmentation".

The parts are chosen at the end of this file, the boundary is drawn in ``_boundary.py``,
and the walk ends in ``_labels.py`` or, as in the paper, in ``_take_papers_ending``.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from denspu._folds import groups_argument
from denspu._machine import Deadline, resolve_device
from denspu._parameters import About, Number, OneOf, Part, Whole, setting
from denspu._progress import Stages
from denspu._random import Randomness
from denspu._registry import (
    Kind,
    give_time,
    prepare_part,
    refuse_kind,
    registry,
    resolve_part,
    settings_of,
    takes_rows,
)
from denspu._share import Share, known_share
from denspu._typing import FloatArray, IntArray
from denspu._validation import PUInput, take_rows, validate_X
from denspu.base import BoundaryResult, forget, in_fixed_rows
from denspu.classifiers import VGG16Classifier
from denspu.data.kinds import kind_of
from denspu.data.kinds.table import on_sphere
from denspu.density import Midpoint, NoDensity
from denspu.detectors import DensityRatio, IsolationForest
from denspu.encoders import CAEEncoder
from denspu.exceptions import InvalidParameterError, UnusedInputWarning
from denspu.methods._alarms import alarms
from denspu.methods._base import EncoderPU, fit_encoder
from denspu.methods._boundary import (
    FOLDS,
    BoundaryParts,
    FirstLabels,
    bound,
    fair_scores,
    first_labels,
    leaves_itself_out,
    refine,
    sees_input,
    share_of,
    warn_if_few,
    wide_form,
)
from denspu.methods._evidence import PRIOR_RULE
from denspu.refinement import (
    EmbeddingRefiner,
    MembersRefiner,
    NetworkRefiner,
    RankingRefiner,
)
from denspu.selection import ByScore

ENDING = ("selector", "classifier", "classify_on")
"""What the paper's ending is made of."""

PARTS: tuple[Kind, ...] = (
    "encoder",
    "densifier",
    "detector",
    "selector",
    "classifier",
    "refiner",
)

ENCODER_SHARE = 0.6
"""Part of ``max_seconds`` that goes to the encoder."""

CHECKED_ROWS = 5_000
"""Rows up to which the boundary is drawn five times over to judge it."""

KERNEL_ROWS = 10_000
"""Training rows up to which a kernel machine is used."""

MANY_ROWS = 200_000
"""Rows from which a small sample stands for U: scoring all of them takes the time. A
GPU compares every row with as many."""

FORGOTTEN = (
    "held_out_scores_",
    "selector_",
    "classifier_",
    "refiner_",
    "classify_on_",
    "negative_index_",
    "labels_",
    "unseen_scores_",
    "prior_estimates_",
    "checks_",
    "prior_",
    "prior_in_unlabeled_",
    "prior_interval_",
)
"""What an earlier fit may have left and this one may not write again."""


FROM_REFINER = {"unseen_scores_": "unseen_scores_", "prior_estimates_": "estimates_"}
"""What a refiner may have found that the model tells as its own."""


class DensPU(EncoderPU):
    """Boundary around densified positives; P against the surest outside it.

    An encoder is learned (1) and applied (2), the positives' embeddings may be made
    denser (3), and a detector draws a boundary around them (4). The paper then ranks
    unlabelled rows outside it, takes the surest as negatives Ñ (5), and lets an
    ordinary classifier separate P from Ñ (6). By default a refiner takes the last two
    steps: it starts from a label for every row of U and goes on in rounds. Every step
    is a part that can be replaced, by key or by an object, and nested parameters are
    set with ``part__name``.

    Attributes
    ----------
    stages_ : Stages
        What each stage did: seconds, sizes, contamination, threshold, checks.
    encoder_, densifier_, detector_, refiner_ (or selector_, classifier_)
        The fitted parts.
    labels_ : array
        P(y = 1) of every row given to ``fit``, after refinement.
    unseen_scores_ : array
        Log-odds of every row given to ``fit`` by models that have not seen it, where
        the refiner has such (``members``, ``embedding``).
    prior_estimates_ : dict
        What each estimator read off these scores, where the refiner asked them.
    checks_ : tuple
        What speaks against the fit, or does not: ``name``, ``ok`` and ``sentence``.
        What failed has also warned.
    prior_, prior_in_unlabeled_, prior_interval_ : float, float, pair
        Share of positives in all rows, and inside U with its interval, estimated or as
        given.
    unlabeled_index_, unlabeled_scores_, unlabeled_inlier_ : arrays
        Row numbers of U, their normality, and whether they lie inside the boundary.
    held_out_scores_ : array
        Normality of labelled positives, each judged by a boundary drawn without it.
    negative_index_ : array
        Row numbers chosen as Ñ, surest first (the paper's ending only).
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
    ['encode', 'densify', 'boundary', 'label', 'refine']
    """

    about = About(
        key="dens_pu",
        paper="Sevetlidis et al. 2023, Dens-PU",
        deep=True,
        inputs=("table", "image", "text"),
    )

    preset: Literal["paper"] | None = setting(
        None,
        OneOf(None, "paper"),
        doc='``"paper"`` takes every part and number from the paper (for images); '
        "``None`` chooses parts that suit the data. Parts given explicitly win.",
    )
    encoder: Any = setting(
        "auto",
        Part("encoder"),
        doc="The first part of the boundary; ``denspu list`` names those that exist.",
    )
    densifier: Any = setting("auto", Part("densifier"), doc="The second part.")
    detector: Any = setting("auto", Part("detector"), doc="The third part.")
    refiner: Any = setting(
        "auto",
        OneOf(None),
        Part("refiner"),
        doc='How first labels of U become a classifier. ``"auto"`` looks at the data '
        "and at how many of U seem positive. ``None`` takes the paper's ending.",
    )
    selector: Any = setting(
        "auto",
        Part("selector"),
        doc="Which of U are negatives; giving it asks for the paper's ending.",
    )
    classifier: Any = setting(
        "auto",
        Part("classifier"),
        doc="What learns P against the negatives; asks for the paper's ending too.",
    )
    contamination: float | Literal["auto", "ratio", "heldout"] = setting(
        "auto",
        OneOf("auto", "ratio", "heldout"),
        Number(0, 0.5, "right"),
        doc='Where the boundary lies. ``"ratio"`` is the paper\'s C = |Z_L| / |Z_ν|; '
        '``"heldout"`` leaves a tenth of held-out positives outside; a number is the '
        'share of the training embeddings left outside. ``"auto"`` is ``"ratio"`` in '
        'the paper\'s preset and ``"heldout"`` otherwise.',
    )
    classify_on: Literal["auto", "input", "embedding"] = setting(
        "auto",
        OneOf("auto", "input", "embedding"),
        doc='``"auto"``: a classifier sees embeddings, a network images.',
    )
    checks: int | Literal["auto"] = setting(
        "auto",
        OneOf("auto"),
        Whole(0, FOLDS),
        doc="Fifths of the positives held out in turn to judge the boundary.",
    )
    prior: float | Literal["estimate"] = setting(
        "estimate",
        *PRIOR_RULE,
        doc="Share of positives in all rows, P and U together. A number is taken as "
        "known: it helps where labels are not given at random. The paper's ending has "
        "no use for it.",
    )
    max_seconds: float | None = setting(
        None,
        OneOf(None),
        Number(0, closed="neither"),
        doc="About how long ``fit`` may take: networks train fewer epochs, and "
        "``stages_`` says how many, so that the run can be repeated without the clock.",
    )

    # --- the walk --------------------------------------------------------------------

    def _fit(self, data: PUInput, randomness: Randomness) -> None:
        deadline = Deadline(self.max_seconds)
        self.device_ = str(resolve_device(self.device))
        chosen, settings = choose_parts(self, data, self.device_)
        known = self._known_share(data)
        for name in FORGOTTEN:
            forget(self, name)
        self._prepare(chosen, data, randomness)
        self._warn_of_unused(chosen)
        give_time(self.encoder_, deadline.part(ENCODER_SHARE).seconds)
        self.stages_ = Stages()
        Z = self._encode(data)
        parts = BoundaryParts(
            self.densifier_, self.detector_, settings["contamination"], randomness
        )
        checks = settings["checks"]
        if chosen["refiner"] is not None and not leaves_itself_out(self.detector_):
            checks = FOLDS  # first labels need every positive held out once
        bounded = bound(Z, data, parts, checks, self.stages_)
        self.detector_: Any = bounded.detector
        self.unlabeled_index_ = np.flatnonzero(data.unlabeled)
        self.unlabeled_scores_, self.unlabeled_inlier_ = bounded.scores, bounded.inlier
        if bounded.checks:
            held_out = [check.positive for check in bounded.checks]
            self.held_out_scores_ = np.concatenate(held_out)
        if chosen["refiner"] is None:
            self._take_papers_ending(Z, data, randomness)
            return
        warn_if_few(data, known is not None)
        with self.stages_.stage("label") as facts:
            scores = fair_scores(Z, data, parts, bounded)
            first = first_labels(*scores, data, randomness.numpy("label"), known)
            facts.update(first.facts())
        self._remember(share_of(first.prior, data))
        if not hasattr(self, "refiner_"):
            refiner = choose_refiner(data, first, self.encoder_, self.device_)
            self._prepare_refiner(refiner, data, randomness)
        share = refine(
            self.refiner_, self.encoder_, Z, data, first, deadline, self.stages_
        )
        self.labels_ = self.refiner_.labels_
        for name, own in FROM_REFINER.items():
            if hasattr(self.refiner_, own):
                setattr(self, name, getattr(self.refiner_, own))
        self._remember(share)
        self.checks_ = alarms(
            self.refiner_,
            Z,
            data,
            getattr(self, "unseen_scores_", None),
            share.to("open").value,
            randomness.numpy("alarms"),
        )

    def _learns_from_prior(self) -> bool:
        return not takes_papers_ending(self)

    def _keeps_fair_scores(self, kind: str) -> bool:
        if takes_papers_ending(self):
            return False
        if _is_given(self, "refiner"):
            refiner = resolve_part(self.refiner, "refiner", argument="refiner")
            return isinstance(refiner, MembersRefiner | EmbeddingRefiner)
        on_gpu = str(resolve_device(self.device)).startswith("cuda")
        return not (on_gpu and kind_of(kind).input_kind == "image")

    def _check_prior(self, data: PUInput) -> None:
        self._known_share(data)

    def _known_share(self, data: PUInput) -> float | None:
        """Return what a given prior means among the rows whose label is open."""
        if self.prior == "estimate" or not self._learns_from_prior():
            return None
        return known_share(float(self.prior), data)

    def _prepare(
        self, chosen: dict[str, Any], data: PUInput, randomness: Randomness
    ) -> None:
        """Build what is known before the walk, so that a wrong part costs no time."""
        self.encoder_ = self._part("encoder", chosen["encoder"], randomness)
        self.densifier_ = self._part("densifier", chosen["densifier"], randomness)
        self.detector_ = self._part("detector", chosen["detector"], randomness)
        refuse_kind(self.encoder_, data.kind, "encoder")
        refiner = chosen["refiner"]
        if refiner is None:
            self.selector_ = self._part("selector", chosen["selector"], randomness)
            self.classifier_ = self._part(
                "classifier", chosen["classifier"], randomness
            )
            self.classify_on_ = self.classify_on
            if self.classify_on == "auto":
                whole = takes_rows(self.classifier_, data.kind)
                self.classify_on_ = "input" if whole else "embedding"
            sees = data.kind if self.classify_on_ == "input" else "table"
            refuse_kind(self.classifier_, sees, "classifier")
        elif not (isinstance(refiner, str) and refiner == "auto"):
            self._prepare_refiner(refiner, data, randomness)

    def _prepare_refiner(
        self, value: Any, data: PUInput, randomness: Randomness
    ) -> None:
        refiner = self._part("refiner", value, randomness)
        sees = data.kind if sees_input(refiner) else "table"
        refuse_kind(refiner, sees, "refiner")
        self.refiner_ = refiner

    def _warn_of_unused(self, chosen: dict[str, Any]) -> None:
        """Warn of what was given and plays no part in this fit."""
        given = {name: getattr(self, name) for name in ENDING if _is_given(self, name)}
        told = []
        if given and chosen["refiner"] is not None:
            named = ", ".join(f"{name}={value!r}" for name, value in given.items())
            told.append(
                f"{named} {'is' if len(given) == 1 else 'are'} not used: a refiner "
                "takes the place of the paper's ending. Pass refiner=None to have it."
            )
        if not isinstance(self.prior, str) and takes_papers_ending(self):
            told.append(
                f"prior={float(self.prior):.4g} plays no part in learning: the paper's "
                "ending takes no class prior. Where positives are held out (holdout=) "
                "it counts in the estimate of quality and in the threshold that goes "
                "by the prior."
            )
        untimed = []
        for name in ("encoder", "classifier"):
            known = settings_of(getattr(self, f"{name}_", None))
            if "epochs" in known and "max_seconds" not in known:
                untimed.append(name)
        if untimed and self.max_seconds is not None:
            have = "they have" if untimed[1:] else "it has"
            told.append(
                f"max_seconds={self.max_seconds!r} does not shorten the "
                f"{' and the '.join(untimed)}: {have} no limit of time. Give fewer "
                "epochs instead."
            )
        for text in told:
            warnings.warn(text, UnusedInputWarning, stacklevel=4)

    def _part(self, name: Kind, value: Any, randomness: Randomness) -> Any:
        """Return a part ready to be fitted: named or given, seeded, on the device."""
        part = resolve_part(value, name, argument=name)
        return prepare_part(
            part, randomness, name, device=self.device_, verbose=self.verbose
        )

    def _encode(self, data: PUInput) -> FloatArray:
        with self.stages_.stage("encode") as facts:
            self.encoder_ = fit_encoder(self.encoder_, data, self.checkpoint)
            Z = self._embed(data.X)
            facts["encoder"] = type(self.encoder_).__name__
            facts["positives"] = int(data.positive.sum())
            facts["unlabeled"] = int(data.unlabeled.sum())
            facts["dimension"] = Z.shape[1]
            if hasattr(self.encoder_, "facts"):
                facts.update(self.encoder_.facts())
        return Z

    def _remember(self, share: Share) -> None:
        inside = share.to("unlabeled")
        self.prior_in_unlabeled_, self.prior_interval_ = inside.value, inside.interval
        self.prior_ = share.to("all").value

    # --- the paper's ending ----------------------------------------------------------

    def _take_papers_ending(
        self, Z: FloatArray, data: PUInput, randomness: Randomness
    ) -> None:
        """Take sure negatives, and fit a classifier of P against them."""
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
            # Surest first, known ones behind them, each row once.
            negative = self.unlabeled_index_[chosen]
            known: IntArray = np.flatnonzero(data.known_negative)
            known = known[~np.isin(known, negative)]
            self.negative_index_ = np.concatenate([negative, known])
            facts["selector"] = type(self.selector_).__name__
            facts["negatives"] = len(self.negative_index_)
            facts["known_negatives"] = int(data.known_negative.sum())
        positive = np.flatnonzero(data.positive)
        rows = np.concatenate([positive, self.negative_index_])
        target = (np.arange(len(rows)) < len(positive)).astype(np.int64)
        source = data.X if self.classify_on_ == "input" else Z
        with self.stages_.stage("classify") as facts:
            together = groups_argument(self.classifier_, data.groups, rows)
            self.classifier_.fit(take_rows(source, rows), target, **together)
            facts["classifier"] = type(self.classifier_).__name__
            facts["sees"] = self.classify_on_
            facts["positives"] = len(positive)
            facts["negatives"] = len(self.negative_index_)
            if hasattr(self.classifier_, "facts"):
                facts.update(self.classifier_.facts())

    # --- answers ---------------------------------------------------------------------

    def _decide(self, X: Any) -> FloatArray:
        if hasattr(self, "refiner_"):
            seen = X if sees_input(self.refiner_) else self._embed(X)
            if getattr(self.refiner_, "takes_wide_", False):
                wide = wide_form(self.encoder_, X)
                return np.asarray(self.refiner_.decision_function(seen, wide))
            return np.asarray(self.refiner_.decision_function(seen))
        if self.classify_on_ == "input":
            return classified(self.classifier_, X)
        return in_fixed_rows(partial(classified, self.classifier_), self._embed(X))

    def _positive_share_of_unlabeled(self, data: PUInput) -> float:
        """Count the labels of U where there are any: a sample misses rare positives."""
        if hasattr(self, "labels_"):
            return float(np.mean(self.labels_[data.unlabeled] > 0.5))
        return super()._positive_share_of_unlabeled(data)

    def normality(self, X: Any) -> FloatArray:
        """Return how far inside the boundary rows lie; below 0 is outside."""
        check_is_fitted(self)
        Z = self._embed(validate_X(self, X, reset=False))
        return np.asarray(self.detector_.score_samples(Z) - self.detector_.threshold_)

    # --- parameters ------------------------------------------------------------------

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of parts that are still named by their key."""
        nested = {name: value for name, value in params.items() if "__" in name}
        super().set_params(**{k: v for k, v in params.items() if k not in nested})
        for name in nested:
            part = next((p for p in PARTS if p == name.partition("__")[0]), None)
            value = None if part is None else getattr(self, part)
            if part is None or not (value is None or isinstance(value, str)):
                continue
            if value is None or value == "auto":
                example = next(iter(registry().of_kind(part)))
                raise InvalidParameterError(
                    f"{name} cannot be set while {part}={value!r}. Name the part "
                    f"first: {part}='{example}', say."
                )
            setattr(self, part, registry().get(value, part).build())
        return super().set_params(**nested)


def classified(classifier: Any, rows: Any) -> FloatArray:
    """Return how positive a fitted classifier calls rows: its margin, or log-odds."""
    if hasattr(classifier, "decision_function"):
        return np.asarray(classifier.decision_function(rows))
    column = list(classifier.classes_).index(1)
    proba = np.clip(classifier.predict_proba(rows)[:, column], 1e-12, 1)
    return np.log(proba) - np.log1p(-np.minimum(proba, 1 - 1e-12))


# --- which parts: the paper's, or those that suit the data ---


def choose_parts(
    model: DensPU, data: PUInput, device: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parts, and the settings of boundary and checks.

    Whatever the user set explicitly wins over the preset. A selector or classifier
    that is given asks for the paper's ending: chosen negatives, then one classifier.
    """
    chosen = paper() if model.preset == "paper" else sensible(data, device)
    given = (name for name in chosen if _is_given(model, name))
    chosen |= {name: getattr(model, name) for name in given}
    if takes_papers_ending(model):
        chosen["refiner"] = None
    settings = {name: chosen.pop(name) for name in ("contamination", "checks")}
    return chosen, settings


def takes_papers_ending(model: DensPU) -> bool:
    """Tell whether a model ends as in the paper: chosen negatives, then a classifier.

    Not with a refiner that is given.
    """
    if _is_given(model, "refiner"):
        return model.refiner is None
    given = any(_is_given(model, name) for name in ("selector", "classifier"))
    return model.preset == "paper" or given


def choose_refiner(data: PUInput, first: FirstLabels, encoder: Any, device: str) -> Any:
    """Return the refiner for ``"auto"``, which depends on what the boundary found.

    A network is trained on where the encoder has one (see :class:`NetworkRefiner`).
    """
    has_network = data.kind == "image" and hasattr(encoder, "packed")
    if has_network and device.startswith("cuda"):
        return NetworkRefiner()
    # Among millions of rows with few positives a screen saves most of the time.
    screened = first.rare and len(data.positive) > MANY_ROWS
    if data.kind != "image" and not screened:
        return MembersRefiner()
    return RankingRefiner() if first.rare else EmbeddingRefiner()


def _is_given(model: DensPU, name: str) -> bool:
    value = getattr(model, name)
    return not (isinstance(value, str) and value == "auto")


def paper() -> dict[str, Any]:
    """Return the configuration of section 4.1, every number as printed."""
    return {
        "encoder": CAEEncoder(
            fit_on="positive", epochs=50, batch_size=64, lr=1e-4, weight_decay=1e-3
        ),
        "densifier": Midpoint(k=0.2, s=11, n_pairs="cochran"),
        "detector": IsolationForest(n_estimators=1000, max_samples=256, n_jobs=-1),
        "selector": ByScore(size="positives"),
        "classifier": VGG16Classifier(
            epochs=200, batch_size=32, lr=1e-4, weight_decay=1e-3
        ),
        "refiner": None,
        "contamination": "ratio",
        "checks": 1,
    }


def sensible(data: PUInput, device: str) -> dict[str, Any]:
    """Return parts that suit the data and the machine."""
    on_gpu, kind = device.startswith("cuda"), kind_of(data.kind)
    n, n_positive = len(data.positive), int(data.positive.sum())
    sphere = data.kind == "table" and on_sphere(data.X)
    if kind.is_own_embedding(data.X, on_gpu) and not sphere:
        detector = DensityRatio(
            around="positives",
            n_positives=5,
            # A smaller sample stands for a large U: scoring all rows takes the time.
            max_unlabeled=20_000 if n <= MANY_ROWS else 5_000,
        )
    else:  # on the sphere, with about five positives in a ball
        detector = DensityRatio(
            metric="cosine",
            n_neighbors=int(np.clip(5 * n / n_positive, 10, min(500, max(10, n // 4)))),
            max_unlabeled=MANY_ROWS if on_gpu else DensityRatio().max_unlabeled,
        )
    kernel = SVC(C=10, class_weight="balanced")
    return {
        "encoder": kind.default_encoder(data.X, on_gpu),
        "densifier": NoDensity(),
        "detector": detector,
        "refiner": "auto",
        "selector": ByScore(size=0.7),
        "classifier": kernel if n <= KERNEL_ROWS else "gradient_boosting",
        "contamination": "heldout",
        "checks": FOLDS if n <= CHECKED_ROWS else 1,
    }
