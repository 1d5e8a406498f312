"""Facts of a run as short sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from denspu._words import NOUNS
from denspu.report.run_text import (
    count_range,
    estimate,
    is_number,
    percent,
    percent_range,
    plain,
    readable,
    seconds,
    whole,
)
from denspu.runs.facts import RunFacts

PAIR = 2


# --- the first screen ---------------------------------------------------------------


@dataclass(frozen=True)
class Pointer:
    """Something to look at first: a sentence, and where on the page it is."""

    text: str
    where: str


def noun(kind: str, n: float = PAIR) -> str:
    """Return what the items are called, in singular for one.

    Embeddings stand for something that is not on the page: items.
    """
    one = "item" if kind == "embedding" else NOUNS.get(kind, "item")
    return one if n == 1 else f"{one}s"


def headline(facts: RunFacts) -> str:
    """Return how many of U are positive, in one sentence."""
    n = facts.n_unlabeled
    if n == 1:
        called = "positive" if facts.n_called else "negative"
        return f"Your one unlabelled {noun(facts.kind, 1)} is called {called}."
    value, low, high = (facts.count.get(k) for k in ("value", "low", "high"))
    if value is None or low is None or high is None or not is_number(value):
        return (
            f"{whole(facts.n_called)} of your {whole(n)} unlabelled "
            f"{noun(facts.kind)} are called positive."
        )
    about, between = count_range(value, low, high)
    if round(value) < 1:
        return (
            f"Probably none of your {whole(n)} unlabelled {noun(facts.kind)} "
            f"is positive ({between})."
        )
    are = "is" if round(value) == 1 else "are"
    what = f"{about} of your {whole(n)} unlabelled {noun(facts.kind)} {are} positive"
    if _given(facts):
        return f"As you said, about {what}."
    return f"About {what} ({between})."


def _given(facts: RunFacts) -> bool:
    """Tell whether the share of positives is the user's."""
    return facts.prior.get("from") == "given"


def calls(facts: RunFacts, told: str) -> str:
    """Return how many are called positive, and by which rule.

    ``told`` is the sentence on the threshold.
    """
    n, things = facts.n_called, noun(facts.kind, facts.n_positive)
    means = f"Positive means: like the {whole(facts.n_positive)} {things} you labelled."
    if facts.n_positive == 1:
        means = f"Positive means: like the {things} you labelled."
    if facts.n_unlabeled == 1:
        return f"{told} {means}".strip()
    if facts.threshold.get("rule") == "own":
        return f"The method itself calls {whole(n)} of them positive. {means}"
    are = "is" if n == 1 else "are"
    return f"{whole(n)} of them {are} called positive. {told} {means}"


@dataclass(frozen=True)
class Sure:
    """A figure on the first screen."""

    value: str
    what: str
    interval: str


def sureness(facts: RunFacts) -> list[Sure]:
    """Return how sure the answers are: what is found, and what of it is right."""
    if facts.evaluation is None:
        return []
    figures, n = facts.evaluation["figures"], facts.n_called
    called = "of the one call" if n == 1 else f"of the {whole(n)} calls"
    words = {
        "recall": "of the hidden positives are found",
        "precision": f"{called} should be right",
    }
    return [
        Sure(
            estimate(figures[key]["value"]),
            what,
            percent_range(figures[key]["low"], figures[key]["high"]),
        )
        for key, what in words.items()
        if is_number(figures.get(key, {}).get("value")) and (n or key == "recall")
    ]


def basis(facts: RunFacts) -> str:
    """Return what the first figures rest on."""
    if facts.evaluation is None:
        return (
            "No labelled positives were held out, so nobody can say how many of these "
            "calls are right. Run again with a hold-out to find out."
        )
    level, n = facts.evaluation.get("level", 0.9), facts.n_held_out
    mixed = (
        "1 labelled positive that was"
        if n == 1
        else f"{whole(n)} labelled positives that were"
    )
    return (
        f"Estimated from {mixed} mixed into the unlabelled {noun(facts.kind)} as a "
        f"test. The ranges should hold the truth {round(100 * level)} times out of 100"
        f"{', if the share you gave is right' if _given(facts) else ''}."
    )


def doubts(facts: RunFacts) -> list[str]:
    """Return what speaks against trusting the run: each sentence once."""
    told = [*facts.warnings, *facts.shortcuts]
    failed = {str(c.get("sentence", "")) for c in facts.checks if not _ok(c)}
    return list(dict.fromkeys(plain(t, 1_000) for t in told if t not in failed))


def _ok(check: Mapping[str, Any]) -> bool:
    return check.get("ok") is not False


def look_first(
    facts: RunFacts, shown: Mapping[str, int], skipped: int, copies: int
) -> list[Pointer]:
    """Return what to look at first, the most urgent first.

    ``shown`` says how many items each gallery holds, by its key.
    """
    pointers = []
    n = len(doubts(facts)) + sum(not _ok(c) for c in facts.checks)
    if n:
        what = "1 warning" if n == 1 else f"{n} warnings"
        pointers.append(Pointer(f"{what}: read before you use the answers", "checks"))
    if n := shown.get("undecided", 0):
        text = f"The {n} {noun(facts.kind)} that the model is least sure of"
        pointers.append(Pointer(text, "undecided"))
    if n := shown.get("odd", 0):
        words = "positive that looks" if n == 1 else "positives that look"
        pointers.append(Pointer(f"{n} labelled {words} unlike the others", "odd"))
    if copies:
        words = "item is a copy" if copies == 1 else "items are copies"
        text = f"{whole(copies)} unlabelled {words} of labelled positives"
        pointers.append(Pointer(text, "copies"))
    if skipped:
        words = "item" if skipped == 1 else "items"
        text = f"{whole(skipped)} {words} could not be read"
        pointers.append(Pointer(text, "skipped"))
    return pointers


# --- further down -------------------------------------------------------------------

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
    "lift": ("Better than picking blindly", "times as many positives among the calls"),
}


def figure_words(name: str) -> tuple[str, str]:
    """Return a figure's name and meaning for people."""
    if name.startswith("precision_at_"):
        k = name.removeprefix("precision_at_")
        k = whole(int(k)) if k.isdigit() else k
        return (
            f"Right among the top {k}",
            "share of positives in the highest-scoring items",
        )
    return FIGURES.get(name, (readable(name), ""))


STAGES = {
    "encode": "Every item became a list of numbers, so that like items lie close.",
    "densify": "The gaps between labelled positives were filled with points between.",
    "detect": "A boundary was drawn around the positives.",
    "bound": "A boundary was drawn around the positives.",
    "boundary": "A boundary was drawn around the positives.",
    "label": "Each unlabelled item got a first chance of being positive.",
    "refine": "The labels were improved by rounds of training.",
    "select": "The items least like the positives were chosen as sure negatives.",
    "classify": "A classifier learned positives against negatives.",
    "read": "The files were read.",
    "reading": "The files were read.",
    "prior": "The share of positives among the unlabelled was estimated.",
    "fit": "The model was trained.",
    "train": "The model was trained.",
    "score": "Every item got its score.",
    "evaluate": "The quality was estimated from the positives held out.",
    "calibrate": "Scores were turned into probabilities.",
    "threshold": "The threshold was chosen.",
}


def stage_words(stage: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stage as title, sentence, time and pairs of words."""
    name = str(stage.get("name", ""))
    facts = stage.get("facts") or {}
    return {
        "title": readable(name).capitalize(),
        "sentence": _stage_sentence(name.lower(), facts),
        "seconds": seconds(stage.get("seconds")),
        "facts": [(readable(k), plain(v)) for k, v in facts.items()],
    }


def _stage_sentence(name: str, facts: Mapping[str, Any]) -> str:
    if name == "densify" and facts.get("embeddings") == 0:
        return "No points were added between the positives."
    return STAGES.get(name, "")


def labelled_words(facts: RunFacts) -> str:
    """Return how many of all positives the share leaves labelled.

    Whoever gave the labels knows whether that can be: nothing in the data tells labels
    that were not given at random.
    """
    found = facts.count.get("value")
    if facts.scenario != "one-sample" or found is None or not is_number(found):
        return ""
    share = facts.n_positive / (facts.n_positive + found)
    return (
        f"By that {percent(share)} of all positives carry a label already. If you know "
        "that far fewer do, labels were not given at random, and more of the "
        "unlabelled are positive than is said here."
    )


def prior_words(facts: RunFacts) -> str:
    """Return whether the estimators of the prior agree."""
    values = [v for v in (facts.prior.get("estimates") or {}).values() if is_number(v)]
    if len(values) < PAIR:
        return ""
    low, high = min(values), max(values)
    text = (
        f"{len(values)} ways of estimating it were tried; they say "
        f"{percent_range(low, high)}."
    )
    far = high - low > 0.15 or (high < 0.1 and high > 3 * max(low, 1e-4))
    if far:
        return f"{text} They disagree: take the numbers above with care."
    return f"{text} They agree well enough."


ESTIMATORS = {"model": "by the method itself", "dedpul": "DEDPUL", "bbe": "BBE"}


def estimator_words(name: Any) -> str:
    """Return what an estimate of the share is called."""
    return ESTIMATORS.get(str(name), readable(name))


def sensitivity_words(rows: Sequence[Mapping[str, float]], kind: str) -> str:
    """Return what the answers would be if the prior were another."""
    known = [r for r in rows if is_number(r.get("precision"))]
    if not known:
        return ""
    priors = [r["prior"] for r in known]
    right = [r["precision"] for r in known]
    return (
        f"If {percent_range(min(priors), max(priors))} of the unlabelled {noun(kind)} "
        f"are positive, {percent_range(min(right), max(right))} of the calls are right."
    )


def flat(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested settings as pairs, ``a.b`` for b inside a."""
    pairs: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            pairs += flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", plain(value, 600)))
    return pairs
