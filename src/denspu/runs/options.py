"""What a run is asked to do, checked before any file is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from denspu._machine import resolve_device
from denspu._parameters import Number
from denspu._progress import does, many
from denspu._registry import Entry, registry
from denspu._share import HALF_A_ROW, NEAR, Counts, Share, between
from denspu._typing import Scenario
from denspu.exceptions import InvalidParameterError, did_you_mean

Source = str | os.PathLike[str]

SHARE = Number(0, 1, "neither")
RULES = ("prior", "recall", "precision", "top")
SCENARIOS = ("one-sample", "two-sample")
HOW_THRESHOLD = "prior, recall=0.9, precision=0.9 or top=200"

OURS = {
    "random_state": "--seed",
    "device": "--device",
    "max_seconds": "--max-seconds",
    "scenario": "--scenario",
    "prior": "--prior",
    "checkpoint": "--out",
    "verbose": "--quiet",
}
"""Settings of a method that have an option of their own."""


class ThresholdWish(NamedTuple):
    """Where to cut, as asked for."""

    rule: str
    target: float | None

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``set_threshold``."""
        if self.rule == "prior":
            return {"prior": True}
        if self.rule == "top":
            return {"top": int(self.target or 0)}
        return {self.rule: self.target}


@dataclass(frozen=True)
class Reading:
    """How new files are read, where they differ from those of the fit.

    The names are those of :func:`denspu.data.read_items`.
    """

    id_column: str | None = None
    text_column: str | None = None
    vector_column: str | None = None
    ids: Source | None = None
    encoding: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        """Return what differs, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


AS_FITTED = Reading()


@dataclass(frozen=True)
class RunOptions:
    """The options of ``denspu fit``, by the names they have there."""

    out: Source
    """The run folder; it must not exist, unless ``overwrite``."""
    positive: Source | None = None
    unlabeled: Source | None = None
    table: Source | None = None
    """One table with a label column, in place of the two sources."""
    label_column: str | None = None
    id_column: str | None = None
    text_column: str | None = None
    vector_column: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    ids: Source | None = None
    encoding: str = "utf-8"
    kind: str | None = None
    image_size: int | None = None
    scenario: str = "one-sample"
    groups: str | None = None
    """A column of the table, or a pattern over paths."""
    time: str | None = None
    """A column; the latest labelled positives are held out."""
    known_negatives: Source | None = None
    method: str = "dens_pu"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the method."""
    prior: float | None = None
    """What a method's ``prior=`` means: the share of positives among all items, P and U
    together; or among those of U, for a method that takes ``scenario="two-sample"``."""
    prior_in_unlabeled: float | None = None
    """Share of positives inside U, in place of ``prior``."""
    holdout: float = 0.2
    """Share of the labelled positives kept from the fit; 0 for none."""
    threshold: str | None = None
    """``prior``, ``recall=0.9``, ``precision=0.9``, ``top=200``; None: the method's."""
    seed: int = 0
    device: str = "auto"
    max_seconds: float | None = None
    overwrite: bool = False
    verbose: int = 0
    command: str = ""
    """What was typed, for ``run.json``."""

    @property
    def target(self) -> Path:
        """The run folder as a full path."""
        return Path(self.out).resolve()

    @property
    def sources(self) -> dict[str, str]:
        """Return the sources as the user named them."""
        named = {name: getattr(self, name) for name in NAMED_SOURCES}
        return {name: os.fspath(path) for name, path in named.items() if path}

    @property
    def wish(self) -> ThresholdWish | None:
        """Return where to cut, or None for the method's own cut."""
        return None if self.threshold is None else threshold_wish(self.threshold)

    def told(self) -> dict[str, Any]:
        """Return what differs from the defaults, as plain data."""
        given = asdict(self)
        usual = {f.name: f.default for f in type(self).__dataclass_fields__.values()}
        quiet = ("command", "verbose", "overwrite", "out", *NAMED_SOURCES)
        always = ("method", "scenario", "holdout", "seed", "device")
        told = {
            name: os.fspath(value) if isinstance(value, os.PathLike) else value
            for name, value in given.items()
            if name in always or (name not in quiet and value and value != usual[name])
        }
        # in run folders without this word prior was the share inside U
        return told | ({} if self.prior is None else {PRIOR_OF: "all items"})


NAMED_SOURCES = ("positive", "unlabeled", "table")
PRIOR_OF = "prior_of"


def threshold_wish(text: str) -> ThresholdWish:
    """Read ``prior``, ``recall=0.9``, ``precision=0.9`` or ``top=200``."""
    rule, equals, amount = (part.strip() for part in text.partition("="))
    if rule not in RULES:
        raise InvalidParameterError(
            f"threshold={text!r} must be {HOW_THRESHOLD}.{did_you_mean(rule, RULES)}"
        )
    if rule == "prior":
        if equals:
            raise InvalidParameterError(
                f"threshold={text!r}: the rule prior takes no number. Write "
                "threshold=prior; prior= gives the share itself."
            )
        return ThresholdWish(rule, None)
    try:
        target = float(amount)
    except ValueError:
        target = float("nan")
    whole = rule == "top"
    right = target >= 1 and target == int(target) if whole else 0 < target <= 1
    if not right:
        allowed = "a whole number from 1" if whole else "a number above 0 and up to 1"
        raise InvalidParameterError(
            f"threshold={text!r} needs {allowed}, such as {rule}="
            f"{'200' if whole else '0.9'}."
        )
    return ThresholdWish(rule, target)


def check_options(options: RunOptions) -> Entry:
    """Refuse what cannot work before files are read; return the method's entry."""
    entry = registry().get(options.method, "method")
    _check_sources(options)
    if options.scenario not in SCENARIOS:
        raise InvalidParameterError(
            f"scenario={options.scenario!r} must be {' or '.join(SCENARIOS)}."
            f"{did_you_mean(options.scenario, SCENARIOS)}"
        )
    if entry.scenario not in ("any", options.scenario):
        raise InvalidParameterError(
            f"scenario={options.scenario!r} is not for {entry.key}: it holds for "
            f"{entry.scenario} data alone. Choose another method; `denspu list "
            "--kind method` names them."
        )
    if options.holdout != 0 and not SHARE.allows(options.holdout):
        raise InvalidParameterError(
            f"holdout={options.holdout!r} must be a share above 0 and below 1, or 0 to "
            "hold nothing out."
        )
    if None not in (options.prior, options.prior_in_unlabeled):
        raise InvalidParameterError(
            f"prior={options.prior!r} and prior_in_unlabeled="
            f"{options.prior_in_unlabeled!r} say the same thing. Give one of them."
        )
    for name, of in (("prior", "all"), ("prior_in_unlabeled", "the unlabelled")):
        value = getattr(options, name)
        if value is not None and not SHARE.allows(value):
            raise InvalidParameterError(
                f"{name}={value!r} must be a share above 0 and below 1: how many of "
                f"{of} items are positive."
            )
    if options.wish is not None and options.holdout == 0:
        raise InvalidParameterError(
            f"threshold={options.threshold!r} is chosen with held-out positives, and "
            "holdout=0 keeps none. Leave out one of the two."
        )
    for name in options.settings:
        if name in OURS:
            raise InvalidParameterError(
                f"{name!r} has an option of its own. Use {OURS[name]}."
            )
    resolve_device(options.device)  # refuses one that is not here
    build_method(entry, options)  # refuses settings that it does not have
    return entry


def _check_sources(options: RunOptions) -> None:
    pair, table = (options.positive, options.unlabeled), options.table
    column = options.label_column
    named = "" if table is None else os.fspath(table)
    missing = "--positive" if not options.positive else "--unlabeled"
    wrong = {
        "Give either one table with a label column, or --positive and --unlabeled, not "
        "both.": table is not None and any(pair),
        f"{named} is a folder, not a table. Folders come as --positive DIR and "
        "--unlabeled DIR.": table is not None and Path(table).is_dir(),
        f"{named} is one table: name the column that marks labelled positives with 1, "
        "as --label-column NAME.": table is not None and column is None,
        f"{missing} is missing. Give --positive and --unlabeled (a folder or a file "
        "each), or one table with --label-column.": table is None and not all(pair),
        f"label_column={column!r} is for one table. With --positive and --unlabeled "
        "the source says who is who; leave it out.": table is None
        and column is not None,
    }
    for sentence, holds in wrong.items():
        if holds:
            raise InvalidParameterError(sentence)


def given_share(options: RunOptions, counts: Counts, entry: Entry) -> Share | None:
    """Return the share of positives among the open items, if the options give one.

    One that leaves no open item positive, or none negative, is refused.
    """
    name, value = "prior_in_unlabeled", options.prior_in_unlabeled
    of: Literal["all", "unlabeled"] = "unlabeled"
    if options.prior is not None:
        name, value = "prior", options.prior
        of = "all" if scenario_of(options, entry) == "one-sample" else "unlabeled"
    if value is None:
        return None
    share = Share.exactly(value, of, counts)
    hidden = share.positives - counts.known_positive
    least = HALF_A_ROW - NEAR / 2  # what passes here passes in the fit
    if least <= hidden <= counts.open - least:
        return share.to("open")
    n, whole = counts.known_positive, counts.unlabeled
    known = [
        f"{n:,} {does(n, 'copy', 'copies')} of labelled positives",
        many(counts.known_negative, "known negative"),
    ]
    ends = [n + HALF_A_ROW, n + counts.open - HALF_A_ROW]
    among = f"{counts.unlabeled:,} unlabelled"
    if of == "all":
        whole, among = counts.all, f"all {counts.all:,}"
        known.insert(0, many(counts.labeled, "labelled positive"))
        ends = [counts.labeled + end for end in ends]
    raise InvalidParameterError(
        f"{name}={value!r} cannot be the share of positives among the {among} items: "
        f"with {', '.join(known)} it means {hidden:,.4g} of the other {counts.open:,}. "
        f"Pass {between(*(end / whole for end in ends))}, or leave it out."
    )


def scenario_of(options: RunOptions, entry: Entry) -> Scenario:
    """Return the scenario as the method sees it; one that asks for none takes one."""
    asked: Scenario = "two-sample" if options.scenario == "two-sample" else "one-sample"
    return asked if "scenario" in entry.takes() else "one-sample"


def build_method(
    entry: Entry,
    options: RunOptions,
    prior: float | None = None,
    checkpoint: Path | None = None,
) -> Any:
    """Return the method with what the options say."""
    takes = entry.takes()
    wanted = {
        "random_state": options.seed,
        "device": options.device,
        "max_seconds": options.max_seconds,
        "scenario": options.scenario,
        "prior": prior,
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "verbose": options.verbose or None,
    }
    ours = {k: v for k, v in wanted.items() if k in takes and v is not None}
    method = entry.build(**{**ours, **options.settings})
    if "prior" in ours and not method._learns_from_prior():
        method.set_params(prior="estimate")
    return method
