"""What is said about a run: each sentence is made here, once, from its facts.

The terminal and the page show the same sentences; words between backticks are code.
Nothing here needs jinja2 or matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from denspu._progress import (
    SPACE,
    count_range,
    digits,
    does,
    estimate,
    is_number,
    many,
    number,
    percent,
    percent_range,
    readable,
    whole,
)
from denspu.data.kinds import kind_of

if TYPE_CHECKING:
    from denspu._progress import Stage
    from denspu._typing import BoolArray
    from denspu.metrics import Figure
    from denspu.runs.folder import IfShare, Prior, Promise, RunFacts
    from denspu.runs.options import RunOptions
    from denspu.runs.reading import RunData

Line = tuple[str, str]
"""A line in the terminal: what it is about, and what is said."""

PARTS = {
    "CAEEncoder": "autoencoder",
    "ContrastiveEncoder": "contrastive",
    "DensityRatio": "density ratio",
    "EmbeddingRefiner": "labels on embeddings",
    "IdentityEncoder": "numbers as they are",
    "IsolationForest": "isolation forest",
    "MembersRefiner": "four kinds of learners",
    "NetworkRefiner": "network",
    "RankingRefiner": "ranking",
    "TabularEncoder": "columns, scaled",
    "TextEncoder": "words (TF-IDF)",
}
"""Parts as people may call them."""

UNSURE, UNKNOWN = 0.4, 0.7
"""Widths of an interval from which only its low end is told, and from which nothing."""
ALL = 0.98
"""An estimate above it is told only where its interval is as narrow."""
FACTOR = 10
"""A share known no better than within this factor is not told as a number."""
TELLING = "labels tell something"
"""The check without which no number holds."""
REVIEWED = 40
"""Items drawn at random whose review tells the share well enough to go on."""

FROM = {
    "given": "by the share you gave",
    "model": "as the method estimates",
    "scores": "as estimated from the scores",
}
"""Who says how many are positive."""


def noun(kind: str, n: float = 2) -> str:
    """Return what the items are called, in singular for one."""
    thing = kind_of(kind).thing
    return thing if n == 1 else f"{thing}s"


# --- in the terminal, step by step --------------------------------------------------


def reading(data: RunData, options: RunOptions) -> str:
    """Return what was read."""
    of_kind = kind_of(data.P).noun
    if options.table is not None:
        rows = many(len(data.P) + len(data.U), of_kind)
        parts = [f"{_last(options.table)} {rows}"]
        parts.append(many(len(data.P), "labelled positive"))
    else:
        parts = [
            f"{_last(options.positive)} {many(len(data.P), of_kind)}",
            f"{_last(options.unlabeled)} {many(len(data.U), of_kind)}",
        ]
    if n := len(data.skipped):
        listed = Path(options.out) / "skipped.csv"
        parts.append(f"{n:,} unreadable (listed in {listed})")
    if n := int(data.is_copy.sum()):
        verb = does(n, "is a copy", "are copies")
        parts.append(f"{many(n, f'unlabelled {of_kind}')} {verb} of labelled positives")
    if n := int(data.known_negative.sum()):
        parts.append(many(n, "known negative"))
    return " · ".join(parts)


def _last(source: Any) -> str:
    return Path(source).name or str(source)


def fitting(method: str, data: RunData, held: BoolArray) -> str:
    """Return what is about to be fitted."""
    n = len(data.P) if held.all() else int((~held).sum())
    rows = len(data.U) - int(data.is_copy.sum())
    parts = [f"{method} on {many(n, 'labelled positive')} and {rows:,} unlabelled"]
    if held.all():
        parts.append("each judges it once")
    elif held.any():
        parts.append(f"{many(int(held.sum()), 'positive')} held out to judge it")
    return " · ".join(parts)


def prior_note(prior: float) -> str:
    """Return which items the share is of that is given as ``prior``."""
    return (
        f"--prior {prior:g} is the share among all items, labelled and not, as "
        "in Python; the share among the unlabelled is --prior-in-unlabeled"
    )


def resuming(going_on: bool, path: Path) -> str:
    """Return whether an earlier try is gone on with."""
    if going_on:
        return f"going on from {path}"
    return f"{path} belongs to other files or settings: starting anew"


def stage_lines(stage: Stage, n: int) -> Iterator[Line]:
    """Yield the line of a step of the fit on ``n`` items, if people ask about it."""
    told, took = stage.facts, f"{stage.seconds:.1f} s"
    if stage.name == "encode":
        dimension = f"{many(told['dimension'], 'number')} an item"
        yield "encoding", f"{part(told['encoder'])} · {dimension} · {took}"
    elif stage.name == "boundary":
        yield "boundary", f"{part(told['detector'])} on {n:,} embeddings · {took}"
    elif stage.name == "refine":
        rounds = f"{many(told['rounds'], 'round')} · " if told.get("rounds") else ""
        yield "refining", f"{part(told['refiner'])} · {rounds}{took}"


def part(name: str) -> str:
    """Return what a part of the method is called."""
    return PARTS.get(name, name)


def share_lines(facts: RunFacts) -> Iterator[Line]:
    """Yield how many of the unlabelled are positive, if that is known."""
    prior = facts.prior
    if (
        labels_look_random(facts)
        or prior.value is None
        or prior.low is None
        or prior.high is None
    ):
        return
    around = f" ({digits(prior.low)} to {digits(prior.high)})"
    if prior.low == prior.high:
        around = ", by the share you gave"
    told = f"about {digits(prior.value)} % of the unlabelled are positive{around}"
    if too_wide(prior):
        told = (
            f"cannot tell yet how many are positive: at most {digits(prior.high)} % of "
            "the unlabelled, if the labelled ones are a random sample of the positives"
        )
    yield "share", told


def too_wide(prior: Prior) -> bool:
    """Tell whether a share is known so roughly that no number stands for it."""
    if prior.given or prior.low is None or prior.high is None:
        return False
    return prior.high - prior.low > UNSURE or prior.high > FACTOR * prior.low


def labels_look_random(facts: RunFacts) -> bool:
    """Tell whether nothing shows that the labels say anything."""
    return any(c.name == TELLING and c.ok is False for c in facts.checks)


def result_lines(facts: RunFacts, report: Path | None) -> Iterator[Line]:
    """Yield the outcome, the warnings, and what to open."""
    parts = [f"{facts.n_called:,} of {facts.n_unlabeled:,} called positive"]
    if labels_look_random(facts):
        parts.append("no number holds, since the labels look random")
    elif facts.evaluation is not None:
        recall, precision = (facts.evaluation[k] for k in ("recall", "precision"))
        parts.append(f"estimated recall {_between(recall)}")
        if not precision.note:
            parts.append(f"precision {_between(precision)}")
    yield "result", " · ".join(parts)
    failed = [f"{c.sentence} {c.detail}".strip() for c in facts.checks if c.ok is False]
    first = [c.sentence for c in facts.checks if c.name == TELLING and c.ok is False]
    for sentence in dict.fromkeys([*first, *facts.warnings, *failed]):
        yield "warning", sentence
    if report is not None:
        yield "open", str(report)


def _between(figure: Figure) -> str:
    around = f"({figure.low:.2f} to {figure.high:.2f})"
    if figure.high - figure.low > UNKNOWN:
        return f"cannot be told yet {around}"
    if _only_low_end(figure):
        return f"at least {figure.low:.2f} {around}"
    return f"about {figure.value:.2f} {around}"


def _only_low_end(figure: Figure) -> bool:
    """Tell whether an estimate says more than is known: nothing is all from few."""
    width = figure.high - figure.low
    return width > UNSURE or (figure.value > ALL and width > 1 - ALL)


# --- on the first screen ------------------------------------------------------------


def headline(facts: RunFacts) -> str:
    """Return how many of the unlabelled are positive, in one sentence."""
    n, things = facts.n_unlabeled, noun(facts.kind)
    if n == 1:
        called = "positive" if facts.n_called else "negative"
        return f"Your one unlabelled {noun(facts.kind, 1)} is called {called}."
    if facts.count is None:
        called = f"{whole(facts.n_called)} of your {whole(n)} unlabelled {things}"
        return f"{called} are called positive."
    if labels_look_random(facts):
        return (
            f"The labels look random: nothing shows which of your {whole(n)} "
            f"unlabelled {things} are positive."
        )
    count = facts.count
    about, between = count_range(count.value, count.low, count.high)
    if round(count.value) < 1:
        return (
            f"Probably none of your {whole(n)} unlabelled {things} is positive "
            f"({between})."
        )
    if too_wide(facts.prior):
        most, least = (whole(round(end)) for end in (count.high, count.low))
        ends = f"at most {most}"
        if round(count.low) >= 1:
            ends += f" and at least {least}"
        return (
            f"Cannot tell yet how many of your {whole(n)} unlabelled {things} are "
            f"positive: {ends}, if the labelled ones are a random sample of the "
            "positives."
        )
    are = does(round(count.value), "is", "are")
    what = f"{about} of your {whole(n)} unlabelled {things} {are} positive"
    if facts.prior.given:
        return f"By the share you gave, about {what}."
    return f"About {what} ({between})."


def calls(facts: RunFacts) -> str:
    """Return how many are called positive, by which rule, and what that means."""
    n, things = facts.n_called, noun(facts.kind, facts.n_positive)
    one = facts.n_positive == 1
    labelled = things if one else f"{whole(facts.n_positive)} {things}"
    means = f"Positive means: like the {labelled} you labelled."
    told = facts.threshold.sentence
    if facts.n_unlabeled == 1:
        return f"{told} {means}".strip()
    if facts.threshold.rule == "own":
        return f"The method itself calls {whole(n)} of them positive. {means}"
    are = does(n, "is", "are")
    return f"{whole(n)} of them {are} called positive. {told} {means}"


def what_helps(facts: RunFacts) -> str:
    """Return what would tell how many are positive, where that is not known."""
    if facts.count is None or not too_wide(facts.prior) or labels_look_random(facts):
        return ""
    n = min(REVIEWED, facts.n_unlabeled)
    return (
        f"What would help: look at {n} unlabelled {noun(facts.kind, n)} drawn at "
        "random, and pass the share of positives among them as "
        "`--prior-in-unlabeled`. Or label more positives."
    )


def sureness(facts: RunFacts) -> list[tuple[str, str, str]]:
    """Return how sure the answers are: value, of what, and interval.

    No estimate stands alone where its interval is wide.
    """
    if facts.evaluation is None or labels_look_random(facts):
        return []
    n = facts.n_called
    called = "of the one call" if n == 1 else f"of the {whole(n)} calls"
    words = {
        "recall": "of the hidden positives are found",
        "precision": f"{called} should be right",
    }
    found = {key: facts.evaluation[key] for key in words}
    return [
        (_as_sure_as(one), words[key], percent_range(one.low, one.high))
        for key, one in found.items()
        if is_number(one.value) and (n or key == "recall")
    ]


def _as_sure_as(figure: Figure) -> str:
    if figure.high - figure.low > UNKNOWN:
        return "cannot tell yet"
    if _only_low_end(figure):
        return f"at least {percent(figure.low)}"
    return estimate(figure.value)


def basis(facts: RunFacts) -> str:
    """Return what the first figures rest on."""
    if labels_look_random(facts):
        return "Not at all: no figure holds while the labels look random."
    if facts.evaluation is None:
        return (
            "No labelled positives were held out, so nobody can say how many of these "
            "calls are right. Run again with a hold-out to find out."
        )
    n = facts.n_held_out
    how = f"{does(n, 'that was', 'that were')} mixed into the unlabelled "
    how += f"{noun(facts.kind)} as a test"
    if facts.in_turn:
        how = "each scored by a model that has not seen it"
    told = f"{many(n, 'labelled positive')}{', ' if facts.in_turn else ' '}{how}"
    given = ", if the share you gave is right" if facts.prior.given else ""
    return (
        f"Estimated from {told}. The ranges should hold the truth "
        f"{round(100 * facts.evaluation.level)} times out of 100{given}."
    )


def doubts(facts: RunFacts) -> list[str]:
    """Return what speaks against trusting the run, each sentence once.

    Failed checks speak for themselves.
    """
    failed = {check.sentence for check in facts.checks if check.ok is False}
    told = dict.fromkeys([*facts.warnings, *facts.shortcuts])
    return [sentence for sentence in told if sentence not in failed]


def look_first(facts: RunFacts, shown: Mapping[str, int]) -> dict[str, str]:
    """Return what to look at first, by where it is on the page.

    ``shown`` says how many items each gallery holds, by its key.
    """
    failed = sum(check.ok is False for check in facts.checks)
    undecided, odd = shown.get("undecided", 0), shown.get("odd", 0)
    copies, skipped = len(facts.copies), len(facts.skipped)
    warnings = len(doubts(facts)) + failed
    told = {
        "checks": (
            warnings,
            f"{many(warnings, 'warning')}: read before you use the answers",
        ),
        "undecided": (
            undecided,
            f"The {undecided} {noun(facts.kind)} that the model is least sure of",
        ),
        "odd": (
            odd,
            f"{many(odd, 'labelled positive')} that {does(odd, 'looks', 'look')} "
            "unlike the others",
        ),
        "copies": (
            copies,
            f"{many(copies, 'unlabelled item')} "
            f"{does(copies, 'is a copy', 'are copies')} of labelled positives",
        ),
        "skipped": (skipped, f"{many(skipped, 'item')} could not be read"),
    }
    return {where: text for where, (n, text) in told.items() if n}


# --- checks and lists ---------------------------------------------------------------

TITLES = {
    "labels tell something": "Do the labels say anything?",
    "given away": "Does a column give the labels away?",
    "ranking": "Is a simpler ranking as good?",
    "labels alike": "Are the labelled positives too alike?",
    "labels at random": "Are the labelled positives typical?",
    "trivial model": "Does the model tell anything apart?",
    "shortcut": "Could the model cheat?",
}
"""What the checks ask."""

GOOD = {
    "labels at random": "Nothing speaks against it: those held out look like the "
    "unlabelled {things} that score highest. This cannot be seen for positives that "
    "score low.",
    "trivial model": "Yes: the labelled positives held out score higher than the rest.",
}
"""What a good outcome means."""

ORDER = {False: "bad", None: "open", True: "good"}
"""Failed checks come first; one that could not be made is open, not good."""


def checks_in_order(facts: RunFacts) -> list[tuple[str, str, str, str]]:
    """Return title, state, sentence, and what folds out of each; failed ones first."""
    made = []
    for check in sorted(facts.checks, key=lambda check: list(ORDER).index(check.ok)):
        told, rest = check.sentence, check.detail
        if check.ok and check.name in GOOD:
            rest = f"{told} {rest}" if rest else ""
            told = GOOD[check.name].format(things=noun(facts.kind))
        made.append((TITLES[check.name], ORDER[check.ok], told, rest))
    return made


LISTS = {
    "sure negatives": (
        "{things} to set aside",
        "",
        "On average at most {level} of them are positive, if the labelled positives "
        "held out are like the hidden ones. This controls the list of declared "
        "negatives; the other {others} carry no promise.",
    ),
    "negatives that lose few positives": (
        "{things} to set aside",
        ", if you can spare some positives",
        "On average at most {level} of the hidden positives are lost with them, if "
        "the labelled positives held out are like the hidden ones. This controls the "
        "list of declared negatives, too.",
    ),
    "positives that let few negatives in": (
        "{things} that score above most negatives",
        "",
        "Of all negatives, on average at most {level} are on this list, if positives "
        "tend to score higher. How many of the list are positive is not said. This "
        "controls the list of declared positives; the unlabelled {others} stand in for "
        "the negatives, which makes it cautious.",
    ),
}
"""What a list is for, under which condition, and its promise."""


def list_words(found: Promise, kind: str) -> tuple[str, str]:
    """Return what a list is for, and its promise."""
    purpose, condition, promise = LISTS[found.name]
    purpose = purpose.format(things=noun(kind, found.n))
    if not found.n:
        told = "No list of them can keep a promise here: the evidence is too thin."
        return f"No {purpose}", told
    level = f"{100 * found.level:g}{SPACE}%"
    promise = promise.format(level=level, others=noun(kind))
    return f"{whole(found.n)} {purpose}{condition}", promise


# --- figures and shares -------------------------------------------------------------

FIGURES = {
    "recall": (
        "Positives found",
        "share of the hidden positives that are called positive",
    ),
    "precision": (
        "Calls that are right",
        "share of those called positive that are positive",
    ),
    "f1": ("Both in one (F1)", "harmonic mean of found and right"),
    "accuracy": ("Right overall", "calls of either kind that are right"),
    "balanced_accuracy": (
        "Right overall, both kinds alike",
        "mean over positives and negatives",
    ),
    "roc_auc": (
        "Ranking (AUC)",
        "chance that a positive scores higher than a negative; 50 % is a coin",
    ),
    "average_precision": (
        "Ranking of the top",
        "average precision over all lengths of the list",
    ),
}


def figure_words(name: str) -> tuple[str, str]:
    """Return a figure's name and meaning for people."""
    if name.startswith("precision_at_"):
        k = int(name.removeprefix("precision_at_"))
        return (
            f"Right among the top {whole(k)}",
            "share of positives in the highest-scoring items",
        )
    return FIGURES[name]


def lift_words(facts: RunFacts) -> str:
    """Return how much better the calls are than picking blindly."""
    lift = None if facts.evaluation is None else facts.evaluation.figures.get("lift")
    if lift is None or not is_number(lift.value):
        return ""
    return (
        f"Positives are {number(lift.value, 2)} times as frequent among the calls as "
        f"among all unlabelled {noun(facts.kind)} ({number(lift.low, 2)} to "
        f"{number(lift.high, 2)})."
    )


def share_words(facts: RunFacts) -> list[str]:
    """Return what is known of the share of positives, sentence by sentence."""
    prior = facts.prior
    if prior.value is None:
        return ["How many of the unlabelled items are positive is not known."]
    around = ""
    wide = too_wide(prior)
    if prior.low != prior.high:
        around = f" ({percent_range(prior.low, prior.high)})"
    told = [
        f"About {percent(prior.value)} of the unlabelled {noun(facts.kind)} are "
        f"positive{around}, {FROM[str(prior.source)]}."
    ]
    if wide:
        told = [
            f"That cannot be told yet: {percent_range(prior.low, prior.high)}, if the "
            f"labelled {noun(facts.kind)} are a random sample of the positives. "
            f"{what_helps(facts)}".strip()
        ]
    values = list(prior.estimates.values())
    if len(values) > 1:
        low, high = min(values), max(values)
        told.append(
            f"{len(values)} ways of estimating it were tried; they say "
            f"{percent_range(low, high)}."
        )
        far = high - low > 0.15 or (high < 0.1 and high > 3 * max(low, 1e-4))
        told.append(
            "They disagree: take the numbers above with care."
            if far
            else "They agree well enough."
        )
        if prior.source == "model" and not low <= prior.value <= high:
            what = "less" if prior.value < low else "more"
            told.append(
                "The share follows what such estimates have meant where the truth was "
                f"known: {what} than they say."
            )
    if facts.scenario == "one-sample" and facts.count is not None and not wide:
        # Nothing in the data tells labels that were not given at random; whoever gave
        # them knows whether this can be.
        labelled = facts.n_positive / (facts.n_positive + facts.count.value)
        told.append(
            f"By that {percent(labelled)} of all positives carry a label already. If "
            "you know that far fewer do, labels were not given at random, and more of "
            "the unlabelled are positive than is said here."
        )
    return told


def shares_by_name(prior: Prior) -> dict[str, float]:
    """Return the share that was used, and what each estimator says."""
    if prior.value is None:
        return {}
    names = {"model": "by the method itself", "dedpul": "DEDPUL", "bbe": "BBE"}
    found = {names.get(k, readable(k)): v for k, v in prior.estimates.items()}
    return {"used in this run": prior.value, **found}


def sensitivity_words(rows: Sequence[IfShare], kind: str) -> str:
    """Return what the answers would be if the share were another."""
    known = [(r.prior, r.precision) for r in rows if r.precision is not None]
    if not known:
        return ""
    priors, right = zip(*known, strict=True)
    return (
        f"If {percent_range(min(priors), max(priors))} of the unlabelled {noun(kind)} "
        f"are positive, {percent_range(min(right), max(right))} of the calls are right."
    )


# --- how it was made ----------------------------------------------------------------


STAGES = {
    "read": "The files were read.",
    "encode": "{positives} labelled and {unlabeled} unlabelled {things} became "
    "{dimension:number} each ({encoder}).",
    "densify": "{embeddings} points between labelled positives filled the gaps "
    "({densifier}).",
    "boundary": "A boundary was drawn around the positives ({detector}). "
    "{predicted_inlier} unlabelled {things} lie inside, {leftovers} outside.",
    "label": "Where labelled positives are dense along the boundary's score, so are "
    "the others: a first guess says {prior_in_unlabeled} of the unlabelled {things} "
    "are positive.",
    "refine": "The guess was refined by training ({refiner}), {rounds:round}. "
    "{called_positive} of the unlabelled {things} are called positive; the estimate "
    "of how many are is {prior_in_unlabeled} ({prior_interval}).",
    "select": "The {negatives} {things} least like the positives are taken as "
    "negatives.",
    "classify": "A classifier learned to tell the {positives} positives from the "
    "{negatives} negatives ({classifier}).",
    "fit": "The model was trained.",
}
"""What a stage did, by its name: filled with its facts, and with what items are."""
NOTHING_ADDED = "Nothing was added: the boundary is drawn around the positives."


class _Amount(int):
    """A number of things: ``{n}`` is ``1,240``, ``{n:round}`` is ``1,240 rounds``."""

    def __format__(self, noun: str) -> str:
        return many(int(self), noun) if noun else whole(int(self))


def stage_sentence(stage: Stage, kind: str) -> str:
    """Return what a stage did, in one or two sentences; nothing of unknown ones."""
    if stage.name == "densify" and not stage.facts.get("embeddings", 1):
        return NOTHING_ADDED
    told: dict[str, Any] = {"things": noun(kind)}
    for name, value in stage.facts.items():
        if isinstance(value, Integral):
            told[name] = _Amount(value)
        elif isinstance(value, Real):
            told[name] = percent(float(value))
        elif isinstance(value, str):
            told[name] = part(value)
        elif isinstance(value, Sequence) and len(value) == 2:
            told[name] = percent_range(*value)
    try:
        return STAGES.get(stage.name, "").format_map(told)
    except KeyError:  # a stage of that name, but of another method
        return ""
