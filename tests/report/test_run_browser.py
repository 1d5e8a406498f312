"""The report in a real browser: no error, no request, and everything moves."""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest
from tests.report.browser import Browser, find_browser
from tests.report.run_cases import NASTY, RUNS, page_of, renamed, run_of

from denspu.report.run import write_run_report

pytestmark = pytest.mark.skipif(
    find_browser() is None,
    reason="no Chromium found: install chromium, or name one in DENSPU_CHROMIUM",
)

ROWS = "[...document.querySelectorAll('#items-table tbody tr')]"
NAMES = f"{ROWS}.map(r => r.querySelector('th').textContent)"
CALLS = f"{ROWS}.map(r => r.querySelector('.tag').textContent)"
RANKS = f"{ROWS}.map(r => Number(r.querySelector('td').textContent.replace(',', '')))"
PAPER = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as browser:
        yield browser


@pytest.fixture(scope="module", params=sorted(RUNS))
def report(request, tmp_path_factory):
    facts, rows = run_of(request.param)
    best = int(np.argmin(rows.rank))
    rows = renamed(rows, NASTY, at=best)
    facts = replace(
        facts,
        warnings=[NASTY],
        skipped=[{"item": NASTY, "reason": "is empty"}],
        copies=[{"positive": NASTY, "unlabeled": "b", "kind": "near"}],
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_run_report(path, facts, rows)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return written("image", tmp_path_factory)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return written("text", tmp_path_factory)


def written(kind, tmp_path_factory):
    path = tmp_path_factory.mktemp(kind) / "report.html"
    path.write_text(page_of(kind), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [390, 1440])
def test_opens_in_peace(page, report, width):
    page.open(report, width=width)
    page.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.complaints() == []
    assert page.requests() == [report.resolve().as_uri()]
    assert page.js("window.hacked") is None
    assert page.js("document.documentElement.scrollWidth") == width
    broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).length"
    assert page.js(broken) == 0


def test_table_sorts_filters_and_turns_pages(page, pictures):
    page.open(pictures)
    assert page.js(RANKS) == list(range(1, 26))
    page.js("document.querySelector('#items-table thead button').click()")
    assert page.js(RANKS) == list(range(540, 515, -1))
    sort = "document.querySelector('#items-table thead th').ariaSort"
    assert page.js(sort) == "descending"
    page.js("document.querySelectorAll('#items-table thead button')[1].click()")
    names = page.js(NAMES)
    assert names == sorted(names)
    page.js("document.querySelector('[data-step=next]').click()")
    assert page.js(NAMES)[0] > names[-1]
    assert (
        page.js("document.querySelector('#items-page').textContent") == "page 2 of 22"
    )
    page.js("document.querySelector('[data-step=last]').click()")
    assert page.js("document.querySelector('[data-step=next]').disabled")
    assert len(page.js(NAMES)) == 540 - 21 * 25


def test_table_is_filtered_by_words_and_by_call(page, pictures):
    page.open(pictures)
    page.js(
        "(() => { const s = document.querySelector('#items-decision'); s.value = '0';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    assert set(page.js(CALLS)) == {"negative"}
    page.js(
        "(() => { const s = document.querySelector('#items-find'); s.value = 'PNG /3/';"
        "s.dispatchEvent(new Event('input')); })()"
    )
    status = "document.querySelector('#items-status').textContent"
    page.until(f"!{status}.startsWith('291 ')")
    assert page.js(NAMES)
    assert all("/3/" in name for name in page.js(NAMES))
    assert set(page.js(CALLS)) == {"negative"}
    assert page.js(status).endswith(" of 540 items")
    page.js(
        "(() => { const s = document.querySelector('#items-find'); s.value = 'nix';"
        "s.dispatchEvent(new Event('input')); })()"
    )
    page.until(f"{status} === '0 of 540 items'")
    body = "document.querySelector('#items-table tbody').textContent"
    assert page.js(body) == "No item matches."
    assert page.complaints() == []


@pytest.mark.parametrize("width", [390, 1440])
def test_heading_of_the_table_stays_in_sight(page, pictures, width):
    page.open(pictures, width=width)
    page.js(f"{ROWS}[12].scrollIntoView({{block: 'center', behavior: 'instant'}})")
    top = "document.querySelector('.top').getBoundingClientRect().bottom"
    head = "document.querySelector('#items-table th').getBoundingClientRect().top"
    assert abs(page.js(f"{top} - {head}")) <= 1


def test_on_a_phone_a_text_stands_under_its_name(page, texts):
    page.open(texts, width=390)
    under = f"{ROWS}[0].querySelector('.under')"
    assert page.js(f"{under}.getClientRects().length") == 1
    assert page.js(f"{ROWS}[0].offsetHeight") < 150
    page.open(texts, width=1440)
    assert page.js(f"{under}.getClientRects().length") == 0
    assert page.js(f"{ROWS}[0].offsetHeight") < 80


def test_theme_follows_the_system_and_the_switch(page, pictures):
    page.open(pictures, dark=True)
    page.js("localStorage.clear()")
    page.open(pictures, dark=True)
    dark = page.js(PAPER)
    page.open(pictures)
    light = page.js(PAPER)
    assert light == "rgb(255, 255, 255)" != dark
    page.js("document.querySelector('#theme').click()")
    assert page.js(PAPER) == dark
    page.open(pictures)
    assert page.js(PAPER) == dark, "the choice is kept"
    page.js("document.querySelector('#theme').click()")
    assert page.js(PAPER) == light
    page.js("localStorage.clear()")


def test_map_shows_an_item_under_the_pointer_and_by_keys(page, report):
    page.open(report)
    page.js("document.querySelector('#map-svg').scrollIntoView({behavior: 'instant'})")
    spot = page.js(
        "(() => {"
        "const d = JSON.parse(document.querySelector('#map-data').textContent);"
        "const b = document.querySelector('#map-svg').getBoundingClientRect();"
        "const i = d.y.indexOf(Math.min(...d.y)), s = b.width / 1000;"
        "return [b.left + d.x[i] * s, b.top + d.y[i] * s, d.name[i]]; })()"
    )
    card = "document.querySelector('#map-card')"
    assert page.js(f"{card}.hidden")
    page.mouse(spot[0], spot[1])
    page.until(f"!{card}.hidden")
    assert page.js(f"{card}.querySelector('b').textContent") == spot[2]
    page.mouse(5, 5)
    page.until(f"{card}.hidden")
    page.js("document.querySelector('#map-svg').focus()")
    page.press("ArrowRight")
    first = page.js(f"{card}.textContent")
    page.press("ArrowLeft")
    assert page.js(f"{card}.textContent") != first
    page.press("Escape")
    assert page.js(f"{card}.hidden")
    assert page.complaints() == []
    assert page.js("window.hacked") is None


INSIDE = (
    "(() => { const b = document.querySelector('#map-card').getBoundingClientRect();"
    "return b.left >= 0 && b.right <= innerWidth && b.height > 0; })()"
)


def test_map_card_stays_on_the_page(page, pictures):
    page.open(pictures, width=800)
    page.js("document.querySelector('#map-svg').scrollIntoView({behavior: 'instant'})")
    page.js("document.querySelector('#map-svg').focus()")
    for key in ["ArrowRight"] * 12 + ["ArrowLeft"] * 24:
        page.press(key)
        assert page.js(INSIDE)


def test_map_card_comes_and_goes_by_touch(page, pictures):
    page.open(pictures, width=390, height=844)
    page.js(
        "document.querySelector('#map-svg')"
        ".scrollIntoView({block: 'center', behavior: 'instant'})"
    )
    x, y, bare, name = page.js(
        "(() => {"
        "const d = JSON.parse(document.querySelector('#map-data').textContent);"
        "const b = document.querySelector('#map-svg').getBoundingClientRect();"
        "const s = b.width / 1000;"
        "return [b.left + d.x[0] * s, b.top + d.y[0] * s, b.top - 25, d.name]; })()"
    )
    card = "document.querySelector('#map-card')"
    page.tap(x, y)
    page.until(f"!{card}.hidden")
    assert page.js(f"{card}.querySelector('b').textContent") in name
    assert page.js(INSIDE)
    assert page.js(f"{card}.getBoundingClientRect().bottom <= innerHeight")
    page.tap(20, bare)
    page.until(f"{card}.hidden")
    page.tap(x, y)
    page.until(f"!{card}.hidden")
    down = "new PointerEvent('pointerdown', {bubbles: true})"
    page.js(f"document.querySelector('h1').dispatchEvent({down})")
    assert page.js(f"{card}.hidden"), "also where a tap takes no focus away"


def test_what_has_the_focus_is_outlined(page, pictures):
    page.open(pictures)
    for _ in range(3):
        page.press("Tab")
    style = "getComputedStyle(document.activeElement)"
    assert page.js("document.activeElement.tagName") == "A"
    assert page.js(f"{style}.outlineStyle") == "solid"
    assert page.js(f"parseFloat({style}.outlineWidth)") >= 2


def test_nothing_moves_for_those_who_want_it_still(page, pictures):
    page.open(pictures)
    smooth = "getComputedStyle(document.documentElement).scrollBehavior"
    assert page.js(smooth) == "smooth"
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    page.call("Emulation.setEmulatedMedia", features=[still])
    assert page.js(smooth) == "auto"


def test_map_legend_hides_a_role(page, pictures):
    page.open(pictures)
    page.js("document.querySelector('#map-legend [data-role=called]').click()")
    layer = "document.querySelector('#map-svg .role-called')"
    assert page.js(f"getComputedStyle({layer}).display") == "none"


def test_a_link_opens_the_fold_it_leads_into(page, report):
    page.open(report)
    assert not page.js("document.querySelector('#skipped').open")
    page.js("document.querySelector('.pointers a[href=\"#skipped\"]').click()")
    page.until("document.querySelector('#skipped').open")


def test_on_paper_the_folds_are_open(page, pictures):
    page.open(pictures)
    page.js("dispatchEvent(new Event('beforeprint'))")
    folded = "document.querySelectorAll('main details:not([open])').length"
    assert page.js(folded) == 0
    page.js("dispatchEvent(new Event('afterprint'))")
    assert page.js(folded) > 0
    assert page.complaints() == []


def test_a_page_of_texts_takes_few_sheets(page, texts):
    page.open(texts)
    found = page.call(
        "Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69
    )
    sheets = len(re.findall(rb"/Type\s*/Page\b", b64decode(found["data"])))
    assert 4 <= sheets <= 12
