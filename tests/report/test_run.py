"""The report says what the run found, and nothing in a file can break out of it."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from tests.report.run_cases import (
    HOSTILE,
    NASTY,
    RUNS,
    fresh,
    image_run,
    page_of,
    renamed,
    run_of,
    table_run,
)

from denspu.exceptions import InvalidInputError
from denspu.report import run, run_table
from denspu.report.run import page_json, render, write_run_report
from denspu.report.run_charts import histogram, ticks
from denspu.report.run_items import decimals, telling_columns
from denspu.report.run_plain import Speaker, check_words, first_sentences, list_words
from denspu.report.run_text import (
    SPACE,
    chance,
    count_range,
    estimate,
    number,
    percent,
    percent_range,
    seconds,
    shorten,
)
from denspu.report.run_thumbs import SIDE, Brightness, picture
from denspu.report.run_words import headline, stage_words


class Page(HTMLParser):
    """Tags with their attributes, ids, and texts outside scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words, self.scripts = [], [], []
        self._inside = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).replace(SPACE, " ").split())

    def all(self, tag):
        return [attrs for found, attrs in self.tags if found == tag]

    @property
    def ids(self):
        return [attrs["id"] for _, attrs in self.tags if "id" in attrs]


@pytest.fixture(params=sorted(RUNS))
def kind(request):
    return request.param


@pytest.fixture
def finished(kind):
    return run_of(kind)


@pytest.fixture
def pictured():
    return run_of("image")


@pytest.fixture
def tabled():
    """The run whose page is made fastest."""
    return run_of("table")


# --- words --------------------------------------------------------------------------


def test_counts_are_rounded_as_far_as_their_interval_allows():
    assert count_range(1237.2, 1103, 1391) == ("1,240", "1,100 to 1,390")
    assert count_range(376.2, 328.4, 424.0) == ("380", "330 to 420")
    assert count_range(24_123, 14_080, 34_900) == ("24,000", "14,000 to 35,000")
    assert count_range(3.2, 2.1, 5.4) == ("3", "2 to 5")
    assert count_range(3, 3, 3) == ("3", "3 to 3")


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (0, "0 %"),
        (0.00001, "under 0.01 %"),
        (0.0042, "0.42 %"),
        (0.021, "2.1 %"),
        (0.934, "93 %"),
        (0.9996, "over 99.9 %"),
        (1, "100 %"),
        (None, "–"),
        (float("nan"), "–"),
    ],
    ids=str,
)
def test_shares_are_never_rounded_to_none_or_all(share, told):
    assert percent(share).replace(SPACE, " ") == told


def test_estimates_are_not_told_to_a_thousandth():
    assert estimate(0.9996) == percent(1)
    assert estimate(0.0004) == percent(0.0004)
    assert estimate(None) == "–"


@pytest.mark.parametrize(("added", "told"), [(0, "No points"), (40, "The gaps")])
def test_a_stage_says_only_what_it_did(added, told):
    stage = {"name": "densify", "seconds": 0.1, "facts": {"embeddings": added}}
    assert stage_words(stage)["sentence"].startswith(told)


def test_numbers_and_times():
    assert percent_range(0.891, 0.9999).replace(SPACE, " ") == "89 to 100 %"
    assert number(1_234_567) == "1,234,567"
    assert percent_range(0.441, 0.994).replace(SPACE, " ") == "44 to 99 %"
    assert [seconds(s) for s in (0.01, 0.44, 12.2, 192, 7500)] == [
        "under 0.1 s",
        "0.4 s",
        "12 s",
        "3 min 12 s",
        "2 h 5 min",
    ]


@pytest.mark.parametrize(
    ("share", "told"),
    [(0, "0 %"), (0.004, "<1 %"), (0.374, "37 %"), (0.996, ">99 %"), (1, "100 %")],
    ids=str,
)
def test_chances_are_whole_percentages(share, told):
    assert chance(share).replace(SPACE, " ") == told
    assert chance(None) == "–"


def test_texts_are_cut_between_words():
    assert shorten("a river flows slowly", 14) == "a river flows…"
    assert shorten("a river flows slowly", 16) == "a river flows…"
    assert shorten("a\nriver", 20) == "a river"
    assert shorten(100 * "x", 30) == 29 * "x" + "…"


@pytest.mark.parametrize(
    ("scores", "wanted"),
    [([-20, 14.5], 2), ([0.1, 0.9], 4), ([0, 30_000], 0), ([1, 1], 2), ([], 2)],
    ids=str,
)
def test_scores_have_as_many_decimals_as_tell_them_apart(scores, wanted):
    assert decimals(np.array(scores, dtype=float)) == wanted


def test_letters_are_spelled_out():
    told = Speaker("image").say("30.2% of U, rows in P: 4.44e+03, U.S. and P/a.png.")
    assert told.replace(SPACE, " ") == (
        "30 % of the unlabelled images, images among the labelled positives: 4,440, "
        "U.S. and P/a.png."
    )
    assert Speaker("table").say("P tells").startswith("The labelled positives tells")
    assert Speaker("table").say("So. U is. Not P.") == (
        "So. The unlabelled rows is. Not the labelled positives."
    )
    assert Speaker("table").say("8.21% of rows").replace(SPACE, " ") == "8.2 % of rows"


def test_a_column_named_u_keeps_its_letter():
    facts, rows = fresh("table")
    rows.positive.X["U"] = np.zeros(len(rows.positive))
    rows.unlabeled.X["U"] = np.zeros(len(rows.unlabeled))
    told = "Whether U is missing tells P from U."
    found = Page(render(replace(facts, warnings=[told]), rows)).text
    assert told in found
    assert "U for the unlabelled rows" in found
    assert "U for the unlabelled" not in Page(page_of("table")).text


def test_a_check_that_could_not_be_made_is_open():
    told = {"name": "labels at random", "ok": None, "sentence": "Nothing to compare."}
    found = check_words(told, Speaker("text"))
    assert (found.state, found.sentence) == ("open", "Nothing to compare.")
    told |= {"ok": True, "sentence": "Too few differ to count."}  # only ok decides
    assert check_words(told, Speaker("text")).state == "good"
    bad = check_words(told | {"ok": False, "sentence": "A differs."}, Speaker("text"))
    assert (bad.state, bad.sentence) == ("bad", "A differs.")


def test_long_checks_fold_after_a_sentence():
    assert first_sentences("One is. Two is. Three is.", 16) == (
        "One is. Two is.",
        "Three is.",
    )
    assert first_sentences("One (p = 0.5) is", 3) == ("One (p = 0.5) is", "")


def test_lists_say_what_they_are_for():
    found = {"name": "sure negatives", "n": 893, "level": 0.1, "sentence": ""}
    told = list_words(found, Speaker("image"))
    assert told.title == "893 images to set aside"
    assert f"at most 10{SPACE}% of them are positive" in told.sentence
    none = list_words(found | {"n": 0}, Speaker("image"))
    assert none.title == "No images to set aside"
    assert "promise" in none.sentence
    other = list_words(
        {"name": "new_list", "n": 1, "sentence": "In U."}, Speaker("text")
    )
    assert other.title == "New list: 1 text"


def test_headline_is_the_sentence_of_the_specification(pictured):
    facts = replace(
        pictured[0],
        n_unlabeled=50_000,
        count={"value": 1237.0, "low": 1103.0, "high": 1391.0},
    )
    assert headline(facts) == (
        "About 1,240 of your 50,000 unlabelled images are positive (1,100 to 1,390)."
    )
    told = {"value": 1237.0, "low": 1237.0, "high": 1237.0}
    given = replace(facts, count=told, prior={**facts.prior, "from": "given"})
    assert headline(given) == (
        "As you said, about 1,237 of your 50,000 unlabelled images are positive."
    )
    none = replace(facts, count={"value": 0.2, "low": 0.0, "high": 3.0})
    assert headline(none).startswith("Probably none of your 50,000 unlabelled images")
    unknown = replace(facts, count={}, n_called=77)
    assert headline(unknown).startswith(
        "77 of your 50,000 unlabelled images are called"
    )


# --- the page -----------------------------------------------------------------------


def test_how_many_of_all_positives_carry_a_label_is_said(tabled):
    """What a user can hold against what they know of how the labels came about."""
    facts, rows = tabled
    count = {"value": 300.0, "low": 250.0, "high": 350.0}
    facts = replace(facts, n_positive=100, count=count)
    found = Page(render(facts, rows)).text
    assert "By that 25 % of all positives carry a label already." in found
    for silent in ({"scenario": "two-sample"}, {"count": {}}):
        found = Page(render(replace(facts, **silent), rows)).text
        assert "carry a label already" not in found


def test_a_share_that_was_given_is_not_called_an_estimate(tabled):
    facts, rows = tabled
    found = Page(render(facts, rows)).text
    assert "assumes that the estimated share is right within its range." in found
    told = replace(facts, prior={**facts.prior, "from": "given"})
    found = Page(render(told, rows)).text
    assert "assumes that the share you gave is right." in found
    assert "times out of 100, if the share you gave is right." in found
    assert "estimated share" not in found


def test_first_screen_answers_how_many_how_sure_and_what_first(kind):
    facts, _ = run_of(kind)
    found = Page(page_of(kind)).text
    summary = found[: found.index("Warnings and checks")]
    figures = facts.evaluation["figures"]
    value = estimate(figures["recall"]["value"]).replace(SPACE, " ")
    assert headline(facts) in summary
    assert f"{value} of the hidden positives are found" in summary
    assert f"of the {facts.n_called} calls should be right" in summary
    assert "that the model is least sure of" in summary
    assert "labelled positives that look unlike the others" in summary


def test_what_the_threshold_rests_on_is_told(tabled):
    facts, rows = tabled
    assert "As many are called as there should be" in Page(page_of("table")).text
    own = replace(facts, threshold=facts.threshold | {"rule": "own"})
    assert "The method itself calls" in Page(render(own, rows)).text


def test_letters_p_and_u_are_not_on_the_page(kind):
    found = Page(page_of(kind))
    words = re.sub(r"Mann-Whitney U|Kolmogorov", "", found.text)
    assert not re.search(r"\b(in|of|from|tells) [PU]\b", words)
    assert " pile" not in words


def test_a_chance_that_contradicts_the_call_is_explained(tabled):
    facts, rows = tabled
    agreed = replace(rows, probability=rows.decision.astype(float))
    assert "contradict each other" not in render(facts, agreed)
    assert "contradict each other" in render(
        facts, replace(rows, probability=1 - agreed.probability)
    )


def test_every_link_inside_the_page_has_a_place(kind):
    page = Page(page_of(kind))
    targets = [a["href"][1:] for a in page.all("a")]
    assert set(targets) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_nothing_is_loaded_and_no_script_runs_but_ours(kind):
    text = page_of(kind)
    page = Page(text)
    sources = [
        a["src"] for tag in ("img", "script") for a in page.all(tag) if "src" in a
    ]
    assert all(s.startswith("data:image/") for s in sources)
    assert [a["href"] for a in page.all("link")] == ["data:,"]
    policy = page.all("meta")[1]["content"]
    assert "default-src 'none'" in policy
    assert not re.search(r"https?://", text)
    assert not [a for _, a in page.tags if any(k.startswith("on") for k in a)]


def test_every_picture_has_a_text_in_its_place():
    shown = Page(page_of("image")).all("img")
    assert len(shown) > 50
    assert all(a["alt"] for a in shown if a.get("id") != "map-sheet")


def test_hostile_names_and_contents_stay_text(kind):
    facts, rows = fresh(kind)
    rows = renamed(renamed(rows, NASTY), NASTY, "positive", int(rows.odd_positive[0]))
    top = int(np.argmin(rows.rank))
    rows = renamed(rows, NASTY, at=top)
    if kind == "text":
        rows.unlabeled.X[top] = f"{HOSTILE}\r\n\u202e{5_000 * 'long '}"
    if kind == "table":
        frame = rows.unlabeled.X
        for table in (frame, rows.positive.X):
            word = HOSTILE if table is frame else "other"
            table[HOSTILE] = np.array([word] * len(table), dtype=object)
    names = {"item": NASTY, "reason": NASTY}
    facts = replace(
        facts,
        warnings=[NASTY],
        reading=[NASTY],
        command=NASTY,
        skipped=[names],
        copies=[{"positive": NASTY, "unlabeled": f"b{NASTY}", "kind": "exact"}],
        settings={NASTY: {NASTY: NASTY}},
        sources={"unlabeled": NASTY},
        checks=[{"name": NASTY, "ok": False, "sentence": NASTY}],
        lists=[{"name": NASTY, "n": 3, "level": 0.1, "sentence": NASTY}],
        stages=[{"name": NASTY, "seconds": 1.0, "facts": {NASTY: NASTY}}],
        curves=[{"name": NASTY, "label": NASTY, "x": [1, 2], "y": [1, 2]}],
    )
    text = render(facts, rows)
    page = Page(text)
    assert not [a for a in page.all("img") if a.get("src") == "x"]
    assert not [a for _, a in page.tags if any(k.startswith("on") for k in a)]
    kinds = [a.get("type", "ours") for a in page.all("script")]
    assert sorted(kinds) == ["application/json", "application/json", "ours"]
    assert HOSTILE not in text
    assert not {"\x07", "\u202e"} & set(text)
    data = json.loads(page.scripts[kinds.index("application/json", 1)])
    assert any(HOSTILE in name for name in data["item"])


def test_json_cannot_end_its_script_and_is_still_the_same_data():
    data = {"name": "</script><!--\u2028&'\"", "more": [1, None, 0.5]}
    text = str(page_json(data))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == data


def test_without_evaluation_the_page_says_so():
    found = Page(render(*table_run(evaluated=False))).text
    assert "No labelled positives were held out" in found
    assert "--holdout 0.2" in found
    assert "the model has seen them" in found


def test_warnings_and_failed_checks_come_first(tabled):
    facts, rows = tabled
    shortcut = "confirmed/ is 1024×1024, archive/ is mostly 512×512."
    facts = replace(
        facts,
        warnings=[shortcut, "The estimates disagree."],
        shortcuts=[shortcut],
        checks=[
            {"name": "copies", "ok": True, "sentence": "No copies."},
            {"name": "trivial", "ok": False, "sentence": "All rows score the same."},
        ],
    )
    found = Page(render(facts, rows)).text
    assert found.count(shortcut) == 1
    assert "3 warnings: read before you use the answers" in found
    assert found.index("All rows score the same.") < found.index("No copies.")


@pytest.mark.parametrize("n", [0, 3, 5_000])
def test_skipped_items_are_counted_and_named_up_to_a_limit(tabled, n):
    facts, rows = tabled
    skipped = [{"item": f"bad-{i}.png", "reason": "is empty"} for i in range(n)]
    text = render(replace(facts, skipped=skipped), rows)
    found = Page(text).text
    assert (f"could not be read ({n:,})" in found) == (n > 0)
    assert ("Every item could be read." in found) == (n == 0)
    assert ("bad-0.png" in found) == (n > 0)
    assert ("all of them are in skipped.csv" in found) == (n > run.LISTED)
    assert f"bad-{run.LISTED}.png" not in found


def test_nothing_empty_is_shown(tabled):
    facts, rows = tabled
    bare = replace(rows, odd_positive=rows.chosen[:0], chosen=rows.chosen[:0])
    facts = replace(facts, curves=[], lists=[], sensitivity=[], stages=[])
    page = Page(render(facts, bare))
    assert not {"odd", "chosen", "skipped", "copies", "lists", "sensitivity"} & {
        *page.ids
    }
    assert "Training curves" not in page.text
    assert "No unlabelled row is a copy of a labelled positive." in page.text


def test_one_unlabelled_item(pictured):
    facts, rows = pictured
    one = replace(
        rows,
        unlabeled=rows.unlabeled.take([3]),
        score_unlabeled=rows.score_unlabeled[[3]],
        probability=rows.probability[[3]],
        rank=np.array([1]),
        decision=np.array([1]),
        stage=rows.stage[[3]],
        map_unlabeled=rows.map_unlabeled[[3]],
        chosen=np.array([], dtype=int),
    )
    facts = replace(facts, n_unlabeled=1, n_called=1, count={"value": 1.0})
    found = Page(render(facts, one)).text
    assert "Your one unlabelled image is called positive." in found
    assert "least sure" not in found


def test_very_long_names_are_cut_in_the_middle(tabled):
    facts, rows = tabled
    name = "start/" + 300 * "very-long-" + "end.png"
    text = render(facts, renamed(rows, name, at=int(np.argmin(rows.rank))))
    assert "start/very-long-" in text
    assert "end.png" in text
    assert 30 * "very-long-" not in text


def test_rows_that_do_not_belong_together_are_refused(pictured):
    facts, rows = pictured
    with pytest.raises(InvalidInputError, match=r"rows\.rank has 3 entries for 540"):
        render(facts, replace(rows, rank=rows.rank[:3]))


def test_no_map_without_places(tabled):
    facts, rows = tabled
    page = Page(render(facts, replace(rows, map_positive=None, map_unlabeled=None)))
    assert "map" not in page.ids
    assert "items" in page.ids


def test_scores_that_are_infinite_or_all_alike(tabled):
    facts, rows = tabled
    scores = np.zeros(len(rows.unlabeled))
    render(facts, replace(rows, score_unlabeled=scores, score_positive=scores[:60]))
    scores = rows.score_unlabeled.copy()
    scores[:2] = np.inf, -np.inf
    text = render(facts, replace(rows, score_unlabeled=scores))
    assert "Infinity" not in Page(text).scripts[1]


def test_the_file_is_put_in_place_whole(tabled, tmp_path, monkeypatch):
    path = write_run_report(tmp_path / "new" / "report.html", *tabled)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    before = path.read_bytes()
    monkeypatch.setattr(run.Path, "replace", _fail)
    with pytest.raises(OSError, match="disk full"):
        write_run_report(path, *tabled)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]


def _fail(*_):
    raise OSError("disk full")


# --- galleries, table, map ----------------------------------------------------------


def gallery(page_text, key):
    start = page_text.index(f'<section class="gallery" id="{key}"')
    return page_text[start : page_text.index("</section>", start)]


def test_galleries_hold_the_items_they_name(pictured):
    facts, rows = pictured
    text = page_of("image")
    ids, best = rows.unlabeled.ids, np.argsort(rows.rank)
    gap = np.abs(rows.score_unlabeled - facts.threshold["value"])
    wanted = {
        "sure": ids[best[0]],
        "negatives": ids[best[-1]],
        "undecided": ids[int(np.argmin(gap))],
        "odd": rows.positive.ids[rows.odd_positive[0]],
        "chosen": ids[min(rows.chosen, key=lambda i: rows.rank[i])],
    }
    for key, name in wanted.items():
        first = re.search(r'class="path" title="([^"]+)"', gallery(text, key))
        assert first[1] == name, key


def test_copies_are_not_shown_as_surest_positives(pictured):
    facts, rows = pictured
    best = rows.unlabeled.ids[int(np.argmin(rows.rank))]
    copies = [{"positive": "a.png", "unlabeled": best, "kind": "exact"}]
    text = render(replace(facts, copies=copies), rows)
    assert best not in gallery(text, "sure")
    assert "1 unlabelled item is a copy of labelled positives" in Page(text).text


def items_of(text):
    scripts = Page(text).scripts
    return next(json.loads(s) for s in scripts if s.startswith('{"rank"'))


def test_table_holds_all_items_by_rank(kind):
    _, rows = run_of(kind)
    data = items_of(page_of(kind))
    assert data["rank"] == list(range(1, len(rows.unlabeled) + 1))
    at = int(np.argmin(rows.rank))
    assert data["item"][0] == rows.unlabeled.ids[at]
    assert data["decision"][0] == 1
    assert data["stages"][data["stage"][0]] == rows.stage[at]


def test_a_long_table_keeps_the_top_and_the_threshold(monkeypatch):
    facts, rows = run_of("embedding")
    monkeypatch.setattr(run_table, "MOST", 40)
    text = render(facts, rows)
    data = items_of(text)
    assert len(data["rank"]) == 40
    assert data["rank"][:20] == list(range(1, 21))
    assert {0, 1} == set(data["decision"][20:])
    assert "This page holds 40 of 540 unlabelled items" in Page(text).text


def test_map_draws_at_most_2000_points_and_says_so():
    facts, rows = run_of("embedding")
    again = np.arange(3_000) % len(rows.unlabeled)
    rows = replace(
        rows,
        unlabeled=rows.unlabeled.take(again),
        score_unlabeled=rows.score_unlabeled[again],
        probability=rows.probability[again],
        rank=np.arange(1, 3_001),
        decision=rows.decision[again],
        stage=rows.stage[again],
        map_unlabeled=rows.map_unlabeled[again],
    )
    text = render(facts, rows)
    data = json.loads(Page(text).scripts[0])
    assert len(data["x"]) == len(data["name"]) == 2_000
    assert data["role"].count("odd") == len(rows.odd_positive)
    assert "Drawn by lot: 60 of 60 labelled positives and 1,940 of 3,000" in text


def test_map_tells_what_each_kind_is(kind):
    page = Page(page_of(kind))
    data = json.loads(page.scripts[0])
    assert ("map-sheet" in page.ids) == (kind == "image")
    assert any(data["text"]) == (kind == "text")
    assert bool(data["cells"][0]) == (kind == "table")


def test_texts_are_excerpts_with_the_whole_text_folded():
    shown = gallery(page_of("text"), "sure")
    assert "<summary>Whole text</summary>" in shown
    assert "…" in shown


def test_telling_columns_are_those_that_differ():
    _, rows = run_of("table")
    named = telling_columns(rows)
    assert "seen on" in named
    assert "ward" not in named
    assert len(named) == 6


def test_dates_and_gaps_of_a_table():
    facts, rows = fresh("table")
    rows.unlabeled.X["seen on"][0] = np.nan
    text = render(facts, rows)
    assert re.search(r"<bdi>2022-0\d-\d\d</bdi>", gallery(text, "sure"))
    assert "19040" not in gallery(text, "sure")


def test_embeddings_name_their_nearest_positives():
    _, rows = run_of("embedding")
    at = int(np.argmin(rows.rank))
    gap = np.linalg.norm(rows.positive.X - rows.unlabeled.X[at], axis=1)
    nearest = rows.positive.ids[int(np.argmin(gap))]
    near = gallery(page_of("embedding"), "sure")
    near = near.split("Nearest labelled positives:")[1]
    assert re.search(r'<bdi class="name">([^<]+)', near)[1] == nearest


# --- colours ------------------------------------------------------------------------


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
    ]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def themes():
    css = (run.HERE / "run.css").read_text(encoding="utf-8")
    blocks = re.findall(r"\{([^{}]*--paper:[^{}]*)\}", css)
    return [dict(re.findall(r"--(\w+): (#\w{6})", b)) for b in blocks]


def test_dark_is_the_same_by_system_and_by_switch():
    assert len(themes()) == 4
    assert themes()[1] == themes()[2]


@pytest.mark.parametrize("ground", ["paper", "band", "bad"])
@pytest.mark.parametrize("theme", [0, 1, 3], ids=["light", "dark", "paper"])
def test_words_and_marks_stand_out(theme, ground):
    """WCAG: 4.5 for words, 3 for what charts and controls are drawn with."""
    colours = themes()[theme]
    found = {
        name: contrast(colours[name], colours[ground])
        for name in ("ink", "soft", "link", "blue")
    }
    assert min(found.values()) >= 4.5, found
    drawn = {
        name: contrast(colours[name], colours[ground])
        for name in ("sky", "grey", "dot", "pink", "orange", "green")
    }
    assert min(drawn.values()) >= 3, drawn


# --- pictures and charts ------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint16, np.float64], ids=["16 bits", "float"])
def test_images_of_more_bits_are_as_bright_as_others(dtype):
    _, rows = image_run(20, 100, dtype=dtype)
    text = render(*image_run(20, 100, dtype=dtype))
    uri = re.search(r'<img class="tiny" src="([^"]+)"', gallery(text, "sure"))[1]
    shown = np.asarray(Image.open(BytesIO(b64decode(uri.split(",")[1]))))
    best = rows.unlabeled.X[int(np.argmin(rows.rank)), :, :, 0]
    assert shown.max() == 255
    assert np.corrcoef(shown.ravel(), best.ravel())[0, 1] > 0.99


def decoded(shown):
    return Image.open(BytesIO(b64decode(shown.uri.split(",")[1])))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float64], ids=str)
@pytest.mark.parametrize("shape", [(20, 30, 1), (20, 30, 3), (20, 30)], ids=str)
def test_thumbnails_of_every_form(dtype, shape):
    top = {np.uint8: 255, np.uint16: 4095}.get(dtype, 1.0)
    image = np.zeros(shape, dtype=dtype)
    image[:, :15] = top
    shown = decoded(picture(image, Brightness.of(image[None])))
    assert shown.size == (30, 20)
    grey = np.asarray(shown.convert("L"))
    assert grey[10, 3] > 250, "12 bits in a 16-bit file are not black"
    assert grey[10, 27] < 5


def test_large_images_become_small():
    image = np.random.default_rng(0).integers(0, 255, (256, 128, 3)).astype(np.uint8)
    shown = picture(image, Brightness.of(image[None]))
    assert (shown.width, shown.height) == (SIDE // 2, SIDE)
    assert decoded(shown).size == (SIDE // 2, SIDE)


def test_histogram_counts_each_score_once_on_its_side_of_the_threshold():
    U = np.r_[np.linspace(-1, 1, 201), -50.0, 50.0]
    found = histogram(np.array([0.5, 0.6]), U, 0.0)
    counted = [
        [
            int(n.replace(",", ""))
            for n in re.findall(r"([\d,]+) (?:lab|unlab)", b.words)
        ]
        for b in found.bins
    ]
    above = [b.left >= found.threshold - 1e-6 for b in found.bins]
    assert sum(c[0] for c in counted) == 2
    assert sum(c[1] for c in counted) == len(U)
    assert sum(c[1] for c, right in zip(counted, above, strict=True) if right) == 101
    assert found.n_above == 101


def test_ticks_are_round_numbers_inside():
    assert [t.label for t in ticks(-0.03, 0.41)] == ["0.0", "0.1", "0.2", "0.3", "0.4"]
    assert [t.label for t in ticks(0, 12_000)] == ["0", "5,000", "10,000"]
    assert len(ticks(1.0, 1.0)) == 1
