"""What a run is asked to do: stated once, for Python and for the command line.

A field has its default, its meaning, and what its option looks like. Nothing that is
slow to load is imported here, since ``denspu --help`` reads the fields.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from denspu.exceptions import InvalidParameterError, did_you_mean

if TYPE_CHECKING:
    from denspu._registry import Entry
    from denspu._share import Counts, Of, Share
    from denspu._typing import Scenario

Source = str | os.PathLike[str]
HoldOut = str | float
FOLDS, FIFTH = "folds", 0.2

RULES = ("prior", "recall", "precision", "top")
SCENARIOS = ("one-sample", "two-sample")
HOW_THRESHOLD = "prior, recall=0.9, precision=0.9 or top=200"
NAMED_SOURCES = ("positive", "unlabeled", "table")

SETTINGS = {
    "random_state": "seed",
    "device": "device",
    "max_seconds": "max_seconds",
    "scenario": "scenario",
    "verbose": "verbose",
}
"""Settings of a method that are options of their own."""
OURS = {**SETTINGS, "prior": "prior", "checkpoint": "out", "verbose": "quiet"}
"""Further ones, by the option that a user knows."""


def option(default: Any, meaning: str, *names: str, **look: Any) -> Any:
    """State an option; ``look`` is what typer needs to show it, beside its meaning."""
    metadata = {"names": names, "help": meaning, **look}
    if default == {}:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Reading:
    """How new files are read, where they differ from those of the fit.

    The names are those of :func:`denspu.data.read_items`.
    """

    id_column: str | None = option(None, "Column with the names of the rows.")
    text_column: str | None = option(None, "Column with the texts.")
    vector_column: str | None = option(
        None, "Column of a Parquet file with embeddings."
    )
    ids: Source | None = option(None, "File with one id a line, for .npy embeddings.")
    encoding: str | None = option(None, "Encoding of texts and CSV files.")
    workers: int | None = None
    """Threads that decode; all cores by default."""

    @property
    def given(self) -> dict[str, Any]:
        """Return what differs, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


AS_FITTED = Reading()
_MEANING = {one.name: one.metadata.get("help", "") for one in fields(Reading)}


@dataclass(frozen=True)
class RunOptions:
    """The options of ``denspu fit``, by the names they have there."""

    positive: Source | None = option(None, "Folder or file of the labelled positives.")
    unlabeled: Source | None = option(None, "Folder or file of the unlabelled items.")
    out: Source = option("run", "The run folder; it must not exist yet.")
    table: Source | None = option(None, "One table that holds both, with labels.")
    label_column: str | None = option(
        None, "Column with 1 for a labelled positive, 0 or nothing for the rest."
    )
    id_column: str | None = option(None, _MEANING["id_column"])
    text_column: str | None = option(None, _MEANING["text_column"])
    vector_column: str | None = option(None, _MEANING["vector_column"])
    columns: Mapping[str, str] = option(
        {},
        "number, category, date, drop, or a date format; may be repeated.",
        metavar="NAME=KIND",
    )
    ids: Source | None = option(None, _MEANING["ids"])
    encoding: str = option("utf-8", _MEANING["encoding"])
    kind: str | None = option(
        None, "image, table, text or embedding, if it is not clear."
    )
    image_size: int | None = option(None, "Side of the images in pixels.", min=1)
    scenario: str = option(
        "one-sample",
        "one-sample: positives were taken out of the pile; two-sample: they were "
        "collected apart.",
    )
    groups: str | None = option(
        None,
        "Patient, customer, ...: a column, or a pattern over paths such as "
        "'{group}/*', that no hold-out splits.",
        metavar="COLUMN|PATTERN",
    )
    time: str | None = option(None, "Hold out the latest positives.", metavar="COLUMN")
    known_negatives: Source | None = option(
        None, "One item a line, or a table with item (and label)."
    )
    method: str = option("dens_pu", "A key that `denspu list --kind method` shows.")
    settings: Mapping[str, Any] = option(
        {}, "A setting of the method; may be repeated.", "--set", metavar="NAME=VALUE"
    )
    # what a method's prior= means: of U alone, if it takes scenario="two-sample"
    prior: float | None = option(
        None, "Share of positives among all items, labelled and not, if you know it."
    )
    prior_in_unlabeled: float | None = option(
        None, "In its place: the share among the unlabelled alone."
    )
    holdout: HoldOut | None = option(
        None,
        "folds: every positive is judged once, by a model without it; or a share kept "
        "from the fit to judge it; 0 for none. By default folds where the method needs "
        "no second fit for it, and 0.2 elsewhere or with --time.",
        metavar="folds|SHARE",
    )
    threshold: str | None = option(
        None, f"{HOW_THRESHOLD}; by default the method's own cut.", metavar="RULE"
    )
    seed: int = option(0, "Random seed.", min=0)
    device: str = option("auto", "auto, cpu, cuda or cuda:1.")
    max_seconds: float | None = option(
        None, "About how long the fit may take.", min=0.001
    )
    overwrite: bool = option(False, "Replace an older one.", "--overwrite")
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
        usual = {one.name: one.default for one in fields(self)}
        quiet = ("command", "verbose", "overwrite", "out", *NAMED_SOURCES)
        always = ("method", "scenario", "seed", "device")
        told = {
            name: os.fspath(value) if isinstance(value, os.PathLike) else value
            for name, value in asdict(self).items()
            if name in always or (name not in quiet and value and value != usual[name])
        }
        told["holdout"] = self.holdout  # 0 says something too
        # tells run folders of versions whose prior was the share inside U
        return told | ({} if self.prior is None else {"prior_of": "all items"})


class ThresholdWish(NamedTuple):
    """Where to cut, as asked for."""

    rule: str
    target: float | None

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``set_threshold``."""
        values = {"prior": True, "top": int(self.target or 0)}
        return {self.rule: values.get(self.rule, self.target)}


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


# --- checks --------------------------------------------------------------------------


def check_options(options: RunOptions) -> Entry:
    """Refuse what cannot work before files are read; return the method's entry."""
    from denspu._machine import resolve_device
    from denspu._parameters import Number
    from denspu._registry import registry

    entry = registry().get(options.method, "method")
    share, threshold = Number(0, 1, "neither"), options.threshold
    scenario, holdout = options.scenario, options.holdout
    shares = {"prior": options.prior, "prior_in_unlabeled": options.prior_in_unlabeled}
    if scenario not in SCENARIOS:
        raise InvalidParameterError(
            f"scenario={scenario!r} must be {' or '.join(SCENARIOS)}."
            f"{did_you_mean(scenario, SCENARIOS)}"
        )
    wrong = {
        **_wrong_sources(options),
        f"scenario={scenario!r} is not for {entry.key}: it holds for {entry.scenario} "
        "data alone. Choose another method; `denspu list --kind method` names "
        "them.": entry.scenario not in ("any", scenario),
        f"holdout={holdout!r} must be 'folds', a share above 0 and below 1, or 0 to "
        "hold nothing out.": holdout not in (None, FOLDS, 0)
        and not share.allows(holdout),
        f"holdout='folds' judges every positive once, and time={options.time!r} asks "
        "for the latest. Give a share, or leave out one of the two.": holdout == FOLDS
        and options.time is not None,
        f"prior={options.prior!r} and prior_in_unlabeled="
        f"{options.prior_in_unlabeled!r} say the same thing. Give one of "
        "them.": None not in shares.values(),
        **{
            f"{name}={value!r} must be a share above 0 and below 1: how many of the "
            "items are positive.": value is not None and not share.allows(value)
            for name, value in shares.items()
        },
        f"threshold={threshold!r} is chosen with held-out positives, and holdout=0 "
        "keeps none. Leave out one of the two.": options.wish and holdout == 0,
        **{
            f"{name!r} has an option of its own. Use "
            f"--{OURS[name].replace('_', '-')}.": True
            for name in options.settings
            if name in OURS
        },
    }
    for sentence, holds in wrong.items():
        if holds:
            raise InvalidParameterError(sentence)
    resolve_device(options.device)  # refuses one that is not here
    build_method(entry, options)  # refuses settings that it does not have
    return entry


def _wrong_sources(options: RunOptions) -> dict[str, bool]:
    """Return what may be wrong with the sources, and whether it is."""
    pair, table = (options.positive, options.unlabeled), options.table
    column = options.label_column
    named = "" if table is None else os.fspath(table)
    missing = "--positive" if not options.positive else "--unlabeled"
    return {
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


def settled(
    options: RunOptions, method: Any, kind: str, can_fold: bool = True
) -> RunOptions:
    """Return the options with who judges the fit, chosen where it was left open.

    Folds cost nothing where the method keeps scores of its rows by models that have not
    seen them; others would be fitted six times. With times the latest judge.
    """
    if options.holdout is not None:
        return options
    folds = can_fold and options.time is None and method._keeps_fair_scores(kind)
    return replace(options, holdout=FOLDS if folds else FIFTH)


def given_share(options: RunOptions, counts: Counts, entry: Entry) -> Share | None:
    """Return the share of positives among the open items, if the options give one.

    One that leaves no open item positive, or none negative, is refused.
    """
    from denspu._progress import does, many
    from denspu._share import HALF_A_ROW, NEAR, Share, between

    name, value = "prior_in_unlabeled", options.prior_in_unlabeled
    of: Of = "unlabeled"
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
    wanted = {name: getattr(options, option) for name, option in SETTINGS.items()}
    wanted["verbose"] = options.verbose or None
    wanted["prior"] = prior
    wanted["checkpoint"] = None if checkpoint is None else str(checkpoint)
    takes = entry.takes()
    ours = {k: v for k, v in wanted.items() if k in takes and v is not None}
    method = entry.build(**{**ours, **options.settings})
    if "prior" in ours and not method._learns_from_prior():
        method.set_params(prior="estimate")
    return method
