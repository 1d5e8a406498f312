"""Sentences hold the figures they are made from, and need no extra."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from tests.report.run_cases import run_of

from denspu import _progress as text
from denspu._progress import Stage
from denspu.data import Items
from denspu.report import words
from denspu.runs import RunOptions
from denspu.runs.folder import Check, Count, Prior, Promise


def plain(told):
    return told.replace(text.SPACE, " ")


# --- numbers ------------------------------------------------------------------------


def test_counts_are_rounded_as_far_as_their_interval_allows():
    assert text.count_range(1237.2, 1103, 1391) == ("1,240", "1,100 to 1,390")
    assert text.count_range(24_123, 14_080, 34_900) == ("24,000", "14,000 to 35,000")
    assert text.count_range(3.2, 2.1, 5.4) == ("3", "2 to 5")
    assert text.count_range(3, 3, 3) == ("3", "3 to 3")


def test_shares_are_never_rounded_to_none_or_all():
    told = {
        0: "0 %",
        0.00001: "under 0.01 %",
        0.0042: "0.42 %",
        0.021: "2.1 %",
        0.934: "93 %",
        0.9996: "over 99.9 %",
        1: "100 %",
        None: "–",
        float("nan"): "–",
    }
    assert {share: plain(text.percent(share)) for share in told} == told
    assert plain(text.percent_range(0.891, 0.9999)) == "89 to 100 %"
    assert plain(text.percent_range(0.441, 0.994)) == "44 to 99 %"
    assert text.percent_range(None, 0.5) == "–"
    assert plain(text.estimate(0.9996)) == "100 %", "nobody knows it to a thousandth"
    chances = {0: "0 %", 0.004: "<1 %", 0.374: "37 %", 0.996: ">99 %", None: "–"}
    assert {share: plain(text.chance(share)) for share in chances} == chances


def test_numbers_and_times():
    found = [text.number(v) for v in (0.012345, 1_234_567, 12345.6, -2.5, None)]
    assert found == ["0.0123", "1,234,567", "12,346", "-2.5", "–"]
    assert [text.seconds(s) for s in (0.01, 0.44, 12.2, 192, 7500, None)] == [
        "under 0.1 s",
        "0.4 s",
        "12 s",
        "3 min 12 s",
        "2 h 5 min",
        "–",
    ]
    assert plain(text.moment("2026-01-31T12:00:00Z")) == "31 Jan 2026, 12:00 UTC"
    assert text.moment("yesterday") == "yesterday"
    assert text.plain({"a": [True, None, 0.5]}) == "a yes, –, 0.5"


def test_texts_are_cut_between_words():
    assert text.shorten("a river flows slowly", 14) == "a river flows…"
    assert text.shorten("a\nriver", 20) == "a river"
    assert text.shorten(100 * "x", 30) == 29 * "x" + "…"


# --- sentences ----------------------------------------------------------------------


def test_headline_says_how_many_and_between_which_ends():
    facts = replace(run_of("image")[0], n_unlabeled=50_000)

    def told(**changes):
        return words.headline(replace(facts, **changes))

    assert told(count=Count(1237.0, 1103.0, 1391.0)) == (
        "About 1,240 of your 50,000 unlabelled images are positive (1,100 to 1,390)."
    )
    given = replace(facts.prior, source="given")
    assert told(count=Count(1237, 1237, 1237), prior=given) == (
        "By the share you gave, about 1,237 of your 50,000 unlabelled images are "
        "positive."
    )
    assert told(count=Count(0.2, 0, 3)).startswith("Probably none of your 50,000")
    assert told(count=None, n_called=77).startswith("77 of your 50,000")


def test_what_the_threshold_rests_on_is_told():
    facts = run_of("table")[0]
    assert facts.threshold.sentence in words.calls(facts)
    own = replace(facts, threshold=replace(facts.threshold, rule="own"))
    assert words.calls(own).startswith(f"The method itself calls {facts.n_called}")


def test_the_share_its_estimates_and_what_it_means_for_labels():
    facts = replace(run_of("table")[0], n_positive=100, count=Count(300, 250, 350))
    estimates = {"bbe": 0.3, "dedpul": 0.6}
    facts = replace(facts, prior=Prior(0.4, 0.3, 0.5, 0.9, "model", estimates))
    told = plain(" ".join(words.share_words(facts)))
    assert "40 % of the unlabelled rows are positive (30 to 50 %)" in told
    assert "2 ways of estimating it were tried; they say 30 to 60 %." in told
    assert "They disagree" in told
    assert "25 % of all positives carry a label already" in told
    apart = words.share_words(replace(facts, scenario="two-sample"))
    assert "carry a label" not in " ".join(apart)
    (unknown,) = words.share_words(replace(facts, prior=Prior(), count=None))
    assert "not known" in unknown
    assert list(words.share_lines(replace(facts, prior=Prior()))) == []


def test_warnings_come_once_and_failed_checks_before_others():
    shortcut = "confirmed/ is 1024×1024, archive/ is mostly 512×512."
    checks = [
        Check("labels at random", None, "Too few to compare."),
        Check("trivial model", True, "The model is not trivial."),
        Check("shortcut", False, shortcut),
    ]
    facts = replace(
        run_of("table")[0],
        warnings=["The estimates disagree."],
        shortcuts=[shortcut],
        checks=checks,
    )
    assert words.doubts(facts) == ["The estimates disagree."]
    states = [state for _, state, _, _ in words.checks_in_order(facts)]
    assert states == ["bad", "open", "good"]
    first = words.look_first(facts, {})
    assert first == {"checks": "2 warnings: read before you use the answers"}
    lines = dict(reversed(list(words.result_lines(facts, Path("run/report.html")))))
    assert lines["warning"] == "The estimates disagree."
    assert lines["open"] == str(Path("run/report.html"))
    assert "open" not in dict(words.result_lines(facts, None))


def test_lists_say_what_they_are_for():
    title, told = words.list_words(Promise("sure negatives", 893, 0.1, ""), "image")
    assert title == "893 images to set aside"
    assert "at most 10 % of them are positive" in plain(told)
    title, _ = words.list_words(Promise("sure negatives", 0, 0.1, ""), "image")
    assert title == "No images to set aside"


def test_a_stage_says_what_it_did_as_far_as_it_tells():
    def told(name, **facts):
        return plain(words.stage_sentence(Stage(name, 0.1, facts), "image"))

    assert told("densify", embeddings=0).startswith("Nothing was added")
    assert told("densify", embeddings=1200, densifier="Midpoint").startswith("1,200")
    assert "The 1,200 images" in told("select", negatives=1200)
    assert "the 125 positives from the 1,200" in told(
        "classify", classifier="SVC", positives=125, negatives=1200
    )
    assert told("boundary", detector="Forest") == "", "of another method"
    assert told("something new", rounds=3) == ""


def test_words_need_neither_jinja2_nor_matplotlib():
    code = (
        "import sys; sys.modules.update(jinja2=None, matplotlib=None);"
        "import denspu.report.words, denspu.runs.fit;"
        "import denspu.report as report\n"
        "try: report.latent_map\n"
        "except ImportError as error: print(error)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "pip install 'denspu[report]'" in done.stdout


# --- in the terminal ----------------------------------------------------------------


def test_lines_of_a_run_name_what_was_read_fitted_and_found():
    data = SimpleNamespace(
        P=items_of(412),
        U=items_of(1000),
        skipped=[None] * 9,
        is_copy=np.arange(1000) < 17,
        known_negative=np.arange(1000) == 99,
    )
    options = RunOptions(out="run", positive="a/confirmed/", unlabeled="archive")
    assert words.reading(data, options) == (
        "confirmed 412 images · archive 1,000 images · 9 unreadable (listed in "
        f"{Path('run/skipped.csv')}) · 17 unlabelled images are copies of labelled "
        "positives · 1 known negative"
    )
    table = replace(options, positive=None, unlabeled=None, table="a/claims.csv")
    told = words.reading(data, table)
    assert told.startswith("claims.csv 1,412 images · 412 labelled positives")
    held = np.arange(412) < 80
    assert words.fitting("dens_pu", data, held) == (
        "dens_pu on 332 labelled positives and 983 unlabelled · 80 positives held out "
        "to judge it"
    )
    encode = Stage("encode", 1.5, {"encoder": "TextEncoder", "dimension": 128})
    boundary = Stage("boundary", 2.0, {"detector": "DensityRatio"})
    refine = Stage("refine", 3.0, {"refiner": "Mine", "rounds": 2})
    lines = [line for one in (encode, boundary, refine) for line in stage_lines(one)]
    assert lines == [
        ("encoding", "words (TF-IDF) · 128 numbers an item · 1.5 s"),
        ("boundary", "density ratio on 1,412 embeddings · 2.0 s"),
        ("refining", "Mine · 2 rounds · 3.0 s"),
    ]
    prior = Prior(0.062, 0.046, 0.078, 0.9, "model")
    (line,) = words.share_lines(replace(run_of("table")[0], prior=prior))
    assert line[1] == "about 6.2 % of the unlabelled are positive (4.6 to 7.8)"


def items_of(n):
    names = [str(i) for i in range(n)]
    return Items(kind="image", X=np.zeros(n), ids=names, source="", plan={})


def stage_lines(stage):
    return words.stage_lines(stage, 1412)


def test_a_share_known_roughly_is_no_number():
    """The most there can be, and what would tell."""
    facts = replace(run_of("table")[0], n_unlabeled=1000, checks=[])
    ends = {
        (0.2, 0.1, 0.45): "About",
        (0.2, 0.1, 0.55): "Cannot tell yet",
        (0.1, 0.01, 0.15): "Cannot tell yet",
    }
    for (value, low, high), start in ends.items():
        prior = Prior(value, low, high, 0.9, "model")
        count = Count(*(1000 * share for share in (value, low, high)))
        one = replace(facts, prior=prior, count=count)
        told, helps = words.headline(one), words.what_helps(one)
        assert told.startswith(start)
        ((_, line),) = words.share_lines(one)
        assert ("at most" in told) == ("at most" in line) == bool(helps)
        if helps:
            assert f"at most {1000 * high:.0f} and at least {1000 * low:.0f}" in told
            assert "40 unlabelled rows" in helps


def test_no_estimate_stands_alone_over_a_wide_interval():
    facts = run_of("table")[0]

    def shown(low, high):
        recall = replace(facts.evaluation["recall"], value=1.0, low=low, high=high)
        figures = {**facts.evaluation.figures, "recall": recall}
        evaluation = replace(facts.evaluation, figures=figures)
        one = replace(facts, evaluation=evaluation)
        line = dict(words.result_lines(one, None))["result"]
        return plain(words.sureness(one)[0][0]), line

    assert shown(0.99, 1.0)[0] == "100 %"
    assert shown(0.7, 1.0)[0] == "at least 70 %"
    large, line = shown(0.5, 1.0)
    assert large == "at least 50 %"
    assert "recall at least 0.50" in line
    large, line = shown(0.2, 1.0)
    assert large == "cannot tell yet"
    assert "recall cannot be told yet" in line
