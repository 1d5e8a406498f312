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
from denspu.runs.folder import Copy, SkippedItem

pytestmark = pytest.mark.skipif(
    find_browser() is None,
    reason="no Chromium found: install chromium, or name one in DENSPU_CHROMIUM",
)

ROWS = "[...document.querySelectorAll('#items-table tbody tr')]"
NAMES = f"{ROWS}.map(r => r.querySelector('th').textContent)"
CALLS = f"{ROWS}.map(r => r.querySelector('.tag').textContent)"
RANKS = f"{ROWS}.map(r => Number(r.querySelector('td').textContent.replace(',', '')))"
PAPER = "getComputedStyle(document.body).backgroundColor"
CARD = "document.querySelector('#map-card')"
INSIDE = (
    "(() => { const b = document.querySelector('#map-card').getBoundingClientRect();"
    "return b.left >= 0 && b.right <= innerWidth && b.height > 0; })()"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of every kind, with names that try to break out of it."""
    folder = tmp_path_factory.mktemp("reports")
    for kind in RUNS:
        facts, rows = run_of(kind)
        facts = replace(
            facts,
            warnings=[NASTY],
            skipped=[SkippedItem(NASTY, "is empty")],
            copies=[Copy(NASTY, "b", "near")],
        )
        rows = renamed(rows, NASTY, at=int(np.argmin(rows.rank)))
        write_run_report(folder / f"{kind}.html", facts, rows)
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures") / "report.html"
    path.write_text(page_of("image"), encoding="utf-8")
    return path


def set_value(page, selector, value, event):
    page.js(
        f"(() => {{ const s = document.querySelector('{selector}');"
        f"s.value = '{value}'; s.dispatchEvent(new Event('{event}')); }})()"
    )


@pytest.mark.parametrize("width", [390, 1440])
def test_opens_in_peace(page, pages, width):
    for path in sorted(pages.iterdir()):
        page.open(path, width=width)
        page.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert page.complaints() == []
        assert page.requests() == [path.resolve().as_uri()]
        assert page.js("window.hacked") is None
        assert page.js("document.documentElement.scrollWidth") == width, path.name
        broken = "[...document.images].filter(i => i.complete && !i.naturalWidth)"
        assert page.js(f"{broken}.length") == 0


def test_table_sorts_and_turns_pages(page, pictures):
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
    page.js("document.querySelector('[data-step=last]').click()")
    assert page.js("document.querySelector('[data-step=next]').disabled")
    assert len(page.js(NAMES)) == 540 - 21 * 25


def test_table_is_filtered_by_words_and_by_call(page, pictures):
    page.open(pictures)
    set_value(page, "#items-decision", "0", "change")
    assert set(page.js(CALLS)) == {"negative"}
    set_value(page, "#items-find", "PNG /3/", "input")
    page.until(f"{NAMES}.every(name => name.includes('/3/'))")
    assert set(page.js(CALLS)) == {"negative"}
    set_value(page, "#items-find", "nix", "input")
    status = "document.querySelector('#items-status').textContent"
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


def test_on_a_phone_a_text_stands_under_its_name(page, pages):
    under = f"{ROWS}[1].querySelector('.under').getClientRects().length"
    page.open(pages / "text.html", width=390)
    assert page.js(under) == 1
    page.open(pages / "text.html", width=1440)
    assert page.js(under) == 0


def test_theme_follows_the_system_and_the_switch(page, pictures):
    page.open(pictures, dark=True)
    page.js("localStorage.clear()")
    page.open(pictures, dark=True)
    dark = page.js(PAPER)
    page.open(pictures)
    light = page.js(PAPER)
    assert light == "rgb(255, 255, 255)" != dark
    page.js("document.querySelector('#theme').click()")
    page.open(pictures)
    assert page.js(PAPER) == dark, "the choice is kept"
    page.js("document.querySelector('#theme').click()")
    assert page.js(PAPER) == light
    page.js("localStorage.clear()")


def test_map_shows_an_item_by_pointer_keys_and_legend(page, pages):
    for kind in RUNS:
        page.open(pages / f"{kind}.html", width=800)
        page.js("document.querySelector('#map').scrollIntoView({behavior: 'instant'})")
        x, y, name = page.js(
            "(() => {"
            "const d = JSON.parse(document.querySelector('#map-data').textContent);"
            "const b = document.querySelector('#map-svg').getBoundingClientRect();"
            "const i = d.y.indexOf(Math.min(...d.y)), s = b.width / 1000;"
            "return [b.left + d.x[i] * s, b.top + d.y[i] * s, d.name[i]]; })()"
        )
        page.mouse(x, y)
        page.until(f"!{CARD}.hidden")
        assert page.js(f"{CARD}.querySelector('b').textContent") == name
        page.mouse(5, 5)
        page.until(f"{CARD}.hidden")
        page.js("document.querySelector('#map-svg').focus()")
        seen = set()
        for key in ["ArrowRight"] * 6 + ["ArrowLeft"] * 12:
            page.press(key)
            assert page.js(INSIDE)
            seen.add(page.js(f"{CARD}.textContent"))
        assert len(seen) > 5
        page.press("Escape")
        assert page.js(f"{CARD}.hidden")
        page.js("document.querySelector('#map-legend [data-role=called]').click()")
        layer = "document.querySelector('#map-svg .role-called')"
        assert page.js(f"getComputedStyle({layer}).display") == "none"
        assert page.complaints() == []
        assert page.js("window.hacked") is None


def test_map_card_comes_and_goes_by_touch(page, pictures):
    page.open(pictures, width=390, height=844)
    page.js(
        "document.querySelector('#map-svg')"
        ".scrollIntoView({block: 'center', behavior: 'instant'})"
    )
    x, y = page.js(
        "(() => {"
        "const d = JSON.parse(document.querySelector('#map-data').textContent);"
        "const b = document.querySelector('#map-svg').getBoundingClientRect();"
        "const s = b.width / 1000;"
        "return [b.left + d.x[0] * s, b.top + d.y[0] * s]; })()"
    )
    page.tap(x, y)
    page.until(f"!{CARD}.hidden")
    assert page.js(INSIDE)
    down = "new PointerEvent('pointerdown', {bubbles: true})"
    page.js(f"document.querySelector('h1').dispatchEvent({down})")
    assert page.js(f"{CARD}.hidden"), "also where a tap takes no focus away"


def test_focus_is_outlined_and_nothing_moves_for_those_who_want_it_still(
    page, pictures
):
    page.open(pictures)
    for _ in range(3):
        page.press("Tab")
    style = "getComputedStyle(document.activeElement)"
    assert page.js("document.activeElement.tagName") == "A"
    assert page.js(f"{style}.outlineStyle") == "solid"
    smooth = "getComputedStyle(document.documentElement).scrollBehavior"
    assert page.js(smooth) == "smooth"
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    page.call("Emulation.setEmulatedMedia", features=[still])
    assert page.js(smooth) == "auto"


def test_links_and_paper_open_the_folds(page, pages):
    page.open(pages / "text.html")
    assert not page.js("document.querySelector('#skipped').open")
    page.js("document.querySelector('.pointers a[href=\"#skipped\"]').click()")
    page.until("document.querySelector('#skipped').open")
    page.js("dispatchEvent(new Event('beforeprint'))")
    folded = "[...document.querySelectorAll('main details:not([open])')]"
    assert page.js(f"{folded}.filter(d => !d.closest('.card')).length") == 0
    page.js("dispatchEvent(new Event('afterprint'))")
    assert page.js(f"{folded}.length") > 0
    found = page.call(
        "Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69
    )
    sheets = len(re.findall(rb"/Type\s*/Page\b", b64decode(found["data"])))
    assert 4 <= sheets <= 12
