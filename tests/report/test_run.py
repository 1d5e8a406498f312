"""The report says what the run found, and nothing in a file can break out of it."""

from __future__ import annotations

import json
import re
import sys
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

from denspu._progress import SPACE, Stage
from denspu.exceptions import MissingDependencyError
from denspu.report import parts, run
from denspu.report.run import page_json, render, write_run_report
from denspu.report.words import headline
from denspu.runs.folder import Check, Copy, Count, Curve, SkippedItem


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


@pytest.fixture(scope="module", params=sorted(RUNS))
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def page(kind):
    return Page(page_of(kind))


@pytest.fixture(scope="module")
def tabled():
    """The run whose page is made fastest."""
    return run_of("table")


def text_of(facts, rows, **changes):
    """Return the words of the page of a changed run."""
    return Page(render(replace(facts, **changes), rows)).text


# --- the page of every kind ---------------------------------------------------------


def test_first_screen_answers_how_many_how_sure_and_what_first(kind, page):
    facts, _ = run_of(kind)
    summary = page.text[: page.text.index("Warnings and checks")]
    assert headline(facts).replace(SPACE, " ") in summary
    assert "of the hidden positives are found" in summary
    assert f"of the {facts.n_called} calls should be right" in summary
    assert "that the model is least sure of" in summary
    assert "labelled positives that look unlike the others" in summary


def test_letters_p_and_u_are_not_on_the_page(page):
    words = re.sub(r"Mann-Whitney U|Kolmogorov", "", page.text)
    assert not re.search(r"\b(in|of|from|tells) [PU]\b", words)


def test_a_page_loads_nothing_runs_our_script_alone_and_links_lead_somewhere(
    kind, page
):
    sources = [
        a["src"] for tag in ("img", "script") for a in page.all(tag) if "src" in a
    ]
    assert all(s.startswith("data:image/") for s in sources)
    assert [a["href"] for a in page.all("link")] == ["data:,"]
    assert "default-src 'none'" in page.all("meta")[1]["content"]
    assert not re.search(r"https?://", page_of(kind))
    assert not [a for _, a in page.tags if any(k.startswith("on") for k in a)]
    assert {a["href"][1:] for a in page.all("a")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert all(a["alt"] for a in page.all("img") if a.get("id") != "map-sheet")


def test_hostile_names_and_contents_stay_text(kind):
    facts, rows = fresh(kind)
    rows = renamed(rows, NASTY, "positive", int(rows.odd_positive[0]))
    top = int(np.argmin(rows.rank))
    rows = renamed(renamed(rows, NASTY), NASTY, at=top)
    if kind == "text":
        rows.unlabeled.X[top] = f"{HOSTILE}\r\n\u202e{5_000 * 'long '}"
    if kind == "table":
        frame = rows.unlabeled.X
        for table in (frame, rows.positive.X):
            word = HOSTILE if table is frame else "other"
            table[HOSTILE] = np.array([word] * len(table), dtype=object)
    facts = replace(
        facts,
        warnings=[NASTY],
        reading=[NASTY],
        command=NASTY,
        skipped=[SkippedItem(NASTY, NASTY)],
        copies=[Copy(NASTY, f"b{NASTY}", "exact")],
        settings={NASTY: {NASTY: NASTY}},
        sources={"unlabeled": NASTY},
        checks=[Check("shortcut", False, NASTY, NASTY)],
        stages=[Stage(NASTY, 1.0, {NASTY: NASTY})],
        curves=[Curve(NASTY, NASTY, [1, 2], [1.0, 2.0])],
    )
    text = render(facts, rows)
    found = Page(text)
    assert not [a for a in found.all("img") if a.get("src") == "x"]
    assert not [a for _, a in found.tags if any(k.startswith("on") for k in a)]
    kinds = [a.get("type", "ours") for a in found.all("script")]
    assert sorted(kinds) == ["application/json", "application/json", "ours"]
    assert HOSTILE not in text
    assert not {"\x07", "\u202e"} & set(text)
    assert any(HOSTILE in name for name in items_of(text)["item"])


def test_json_cannot_end_its_script_and_is_still_the_same_data():
    data = {"name": "</script><!--\u2028&'\"", "more": [1, None, 0.5]}
    text = str(page_json(data))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == data


# --- runs of which less is known ----------------------------------------------------


def test_without_evaluation_the_page_says_so():
    found = text_of(*table_run(evaluated=False))
    assert "No labelled positives were held out" in found
    assert "--holdout folds" in found
    assert "the model has seen them" in found


def test_a_share_that_was_given_is_not_called_an_estimate(tabled):
    facts, _ = tabled
    found = text_of(*tabled, prior=replace(facts.prior, source="given"))
    assert "assumes that the share you gave is right." in found
    assert "times out of 100, if the share you gave is right." in found
    assert "estimated share" not in found


def test_what_is_empty_is_not_shown(tabled):
    facts, rows = tabled
    none = rows.chosen[:0]
    bare = replace(
        rows, odd_positive=none, chosen=none, map_positive=None, map_unlabeled=None
    )
    facts = replace(facts, curves=[], lists=[], sensitivity=[], stages=[])
    found = Page(render(facts, bare))
    hidden = {"odd", "chosen", "skipped", "copies", "lists", "sensitivity", "map"}
    assert not hidden & {*found.ids}
    assert "items" in found.ids
    assert "Training curves" not in found.text
    assert "No unlabelled row is a copy of a labelled positive." in found.text
    assert "Every item could be read." in found.text


def test_one_unlabelled_item():
    facts, rows = run_of("image")
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
    found = text_of(facts, one, n_unlabeled=1, n_called=1, count=Count(1, 1, 1))
    assert "Your one unlabelled image is called positive." in found
    assert "least sure" not in found


def test_skipped_items_are_counted_and_named_up_to_a_limit(tabled):
    n = 3 * run.LISTED
    found = text_of(
        *tabled, skipped=[SkippedItem(f"bad-{i}.png", "is empty") for i in range(n)]
    )
    assert f"could not be read ({n:,})" in found
    assert "bad-0.png" in found
    assert "all of them are in skipped.csv" in found
    assert f"bad-{run.LISTED}.png" not in found


def test_names_are_cut_in_the_middle_and_scores_may_be_infinite(tabled):
    facts, rows = tabled
    scores = rows.score_unlabeled.copy()
    scores[:2] = np.inf, -np.inf
    name = "start/" + 300 * "very-long-" + "end.png"
    rows = renamed(rows, name, at=int(np.argmin(rows.rank)))
    text = render(facts, replace(rows, score_unlabeled=scores))
    assert "Infinity" not in Page(text).scripts[1]
    assert "start/very-long-" in text
    assert "end.png" in text
    assert 30 * "very-long-" not in text
    alike = np.zeros(len(scores))
    render(facts, replace(rows, score_unlabeled=alike, score_positive=alike[:60]))


# --- galleries, table, map ----------------------------------------------------------


def gallery(page_text, key):
    start = page_text.index(f'<section class="gallery" id="{key}"')
    return page_text[start : page_text.index("</section>", start)]


def items_of(text):
    return next(json.loads(s) for s in Page(text).scripts if s.startswith('{"rank"'))


def test_galleries_hold_the_items_they_name():
    facts, rows = run_of("image")
    text = page_of("image")
    ids, best = rows.unlabeled.ids, np.argsort(rows.rank)
    gap = np.abs(rows.score_unlabeled - facts.threshold.value)
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


def test_copies_are_told_and_not_shown_as_surest_positives(tabled):
    facts, rows = tabled
    best = rows.unlabeled.ids[int(np.argmin(rows.rank))]
    text = render(replace(facts, copies=[Copy("a.png", best, "exact")]), rows)
    assert f">{best}<" not in gallery(text, "sure")
    assert "1 unlabelled item is a copy of labelled positives" in Page(text).text


def test_a_chance_that_contradicts_the_call_is_explained(tabled):
    facts, rows = tabled
    agreed = replace(rows, probability=rows.decision.astype(float))
    assert "contradict each other" not in render(facts, agreed)
    odd = replace(rows, probability=1 - agreed.probability)
    assert "contradict each other" in render(facts, odd)


def test_table_holds_all_items_by_rank(kind):
    _, rows = run_of(kind)
    data = items_of(page_of(kind))
    assert data["rank"] == list(range(1, len(rows.unlabeled) + 1))
    at = int(np.argmin(rows.rank))
    assert data["item"][0] == rows.unlabeled.ids[at]
    assert data["decision"][0] == 1
    assert data["stages"][data["stage"][0]] == rows.stage[at]


def test_a_long_table_keeps_the_top_and_the_threshold(monkeypatch):
    monkeypatch.setattr(parts, "MOST_ROWS", 40)
    text = render(*run_of("embedding"))
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


def test_map_tells_what_each_kind_is(kind, page):
    data = json.loads(page.scripts[0])
    assert ("map-sheet" in page.ids) == (kind == "image")
    assert any(data["text"]) == (kind == "text")
    assert bool(data["cells"][0]) == (kind == "table")


def test_texts_are_excerpts_with_the_whole_text_folded():
    shown = gallery(page_of("text"), "sure")
    assert "<summary>Whole text</summary>" in shown
    assert "…" in shown


def test_a_table_shows_telling_columns_dates_and_gaps():
    facts, rows = fresh("table")
    named = parts.telling_columns(rows)
    assert "seen on" in named
    assert "ward" not in named
    assert len(named) == 6
    rows.unlabeled.X["seen on"][0] = np.nan
    shown = gallery(render(facts, rows), "sure")
    assert re.search(r"<bdi>2022-0\d-\d\d</bdi>", shown)
    assert "19040" not in shown


def test_embeddings_name_their_nearest_positives():
    _, rows = run_of("embedding")
    at = int(np.argmin(rows.rank))
    gap = np.linalg.norm(rows.positive.X - rows.unlabeled.X[at], axis=1)
    nearest = rows.positive.ids[int(np.argmin(gap))]
    near = gallery(page_of("embedding"), "sure")
    near = near.split("Nearest labelled positives:")[1]
    assert re.search(r'<bdi class="name">([^<]+)', near)[1] == nearest


# --- pictures and charts ------------------------------------------------------------


def test_images_of_more_bits_are_as_bright_as_others():
    facts, rows = image_run(20, 100, dtype=np.uint16)
    text = render(facts, rows)
    uri = re.search(r'<img class="tiny" src="([^"]+)"', gallery(text, "sure"))[1]
    shown = np.asarray(Image.open(BytesIO(b64decode(uri.split(",")[1]))))
    best = rows.unlabeled.X[int(np.argmin(rows.rank)), :, :, 0]
    assert shown.max() == 255
    assert np.corrcoef(shown.ravel(), best.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("dtype", [np.uint8, np.float64], ids=str)
@pytest.mark.parametrize("shape", [(20, 30, 1), (20, 30, 3), (256, 384)], ids=str)
def test_thumbnails_of_every_form(dtype, shape):
    image = np.zeros(shape, dtype=dtype)
    image[:, : shape[1] // 2] = 255 if dtype is np.uint8 else 0.5
    ends = parts.brightness_of(image[None])
    shown = parts.picture(parts.in_8_bits(image, *ends))
    made = Image.open(BytesIO(b64decode(shown["uri"].split(",")[1])))
    assert made.size == (shown["width"], shown["height"])
    assert max(made.size) == min(shape[1], parts.SIDE)
    grey = np.asarray(made.convert("L"))
    assert grey[10, 3] > 250
    assert grey[10, -3] < 5


def test_histogram_counts_each_score_once_on_its_side_of_the_threshold():
    U = np.r_[np.linspace(-1, 1, 201), -50.0, 50.0]
    found = parts.histogram(np.array([0.5, 0.6]), U, 0.0)
    counted = [
        [
            int(n.replace(",", ""))
            for n in re.findall(r"([\d,]+) (?:lab|unlab)", b["words"])
        ]
        for b in found["bins"]
    ]
    above = [b["left"] >= found["threshold"] - 1e-6 for b in found["bins"]]
    assert sum(c[0] for c in counted) == 2
    assert sum(c[1] for c in counted) == len(U)
    assert sum(c[1] for c, right in zip(counted, above, strict=True) if right) == 101


def test_ticks_are_round_numbers_inside():
    marks = [t["label"] for t in parts.ticks(-0.03, 0.41)]
    assert marks == ["0.0", "0.1", "0.2", "0.3", "0.4"]
    assert len(parts.ticks(1.0, 1.0)) == 1


def test_scores_have_as_many_decimals_as_tell_them_apart():
    cases = {(-20, 14.5): 2, (0.1, 0.9): 4, (0, 30_000): 0, (1, 1): 2, (): 2}
    for scores, wanted in cases.items():
        assert parts.decimals(np.array(scores, dtype=float)) == wanted


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


def test_words_and_marks_stand_out_in_light_in_dark_and_on_paper():
    """WCAG: 4.5 for words, 3 for what charts and controls are drawn with."""
    css = (run.HERE / "run.css").read_text(encoding="utf-8")
    blocks = re.findall(r"\{([^{}]*--paper:[^{}]*)\}", css)
    themes = [dict(re.findall(r"--(\w+): (#\w{6})", b)) for b in blocks]
    assert len(themes) == 4
    assert themes[1] == themes[2], "dark is the same by system and by switch"
    words = ("ink", "soft", "link", "blue")
    drawn = ("sky", "grey", "dot", "pink", "orange", "green")
    for colours in themes:
        for ground in ("paper", "band", "bad"):
            for name in (*words, *drawn):
                found = contrast(colours[name], colours[ground])
                assert found >= (4.5 if name in words else 3), (name, ground)


# --- the file -----------------------------------------------------------------------


def test_the_file_is_put_in_place_whole(tabled, tmp_path, monkeypatch):
    path = write_run_report(tmp_path / "new" / "report.html", *tabled)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    before = path.read_bytes()
    monkeypatch.setattr(run, "render", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_run_report(path, *tabled)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]


def test_without_jinja2_the_line_to_type_is_given(tabled, monkeypatch):
    assert run.missing_for_pages() == ""
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'denspu\[report\]'"):
        render(*tabled)
