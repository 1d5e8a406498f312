"""Make the screenshots of docs/walkthroughs.md from the runs described there.

    python docs/screenshots.py --images images/run --table table/run --text text/run

Needs Chromium (DENSPU_CHROMIUM names one) and Pillow. Pictures go to docs/images.
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from PIL import Image

HOME = Path(__file__).parents[1]
sys.path.insert(0, str(HOME))

from tests.report.browser import Browser  # noqa: E402

BAR = 64
"""Pixels that the bar at the top of a report covers."""


class Shot(NamedTuple):
    """One picture: which run, what of its report, in which window."""

    name: str
    run: str
    at: str = ""
    """Selector of what stands at the top of the picture; nothing for the page."""
    width: int = 1200
    height: int = 800
    dark: bool = False
    hover: bool = False
    """Point at a dot of the map."""


DOT = """
(() => {
  const box = document.querySelector("#map-svg").getBoundingClientRect();
  const data = JSON.parse(document.querySelector("#map-data").textContent);
  const odd = data.role.flatMap((role, i) => (role === "odd" ? [i] : []));
  const i = odd.sort((a, b) => data.y[a] - data.y[b])[0], scale = box.width / 1000;
  return [box.left + data.x[i] * scale, box.top + data.y[i] * scale];
})()
"""
"""Where the map shows its uppermost labelled positive that looks odd."""

SHOTS = (
    Shot("report-images", "images", height=820),
    Shot("report-images-map", "images", "#map", height=900, hover=True),
    Shot("report-images-galleries", "images", "#undecided", height=820),
    Shot("report-images-dark", "images", "#scores", height=900, dark=True),
    Shot("report-images-phone", "images", width=390, height=844),
    Shot("report-table", "table", height=820),
    Shot("report-table-items", "table", "#items", height=820),
    Shot("report-text", "text", height=900),
    Shot("report-text-texts", "text", "#look", height=900),
)


def take(page: Browser, report: Path, shot: Shot) -> bytes:
    """Return one screenshot as PNG."""
    page.open(report, shot.width, shot.height, dark=shot.dark)
    page.js("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
    top = 0.0
    if shot.at:
        top = page.js(
            f"document.querySelector({shot.at!r}).getBoundingClientRect().top + scrollY"
        )
    page.js(f"scrollTo(0, {top - BAR})")
    page.until("[...document.images].every(i => i.complete)")
    if shot.hover:
        page.mouse(*page.js(DOT))
        page.until("!document.querySelector('#map-card').hidden")
    data = page.call("Page.captureScreenshot", format="png")["data"]
    return base64.b64decode(data)


def save(png: bytes, path: Path) -> None:
    """Keep 256 colours, rare ones too, so that the repository stays small."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    few = picture.quantize(
        256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE
    )
    few.save(path, optimize=True)
    print(f"{path} {path.stat().st_size / 1e3:.0f} kB")


def main() -> None:
    """Take every picture whose run is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for kind in sorted({shot.run for shot in SHOTS}):
        parser.add_argument(f"--{kind}", type=Path, help=f"run folder of {kind}")
    parser.add_argument("--out", type=Path, default=HOME / "docs/images")
    given = vars(parser.parse_args())
    with (
        tempfile.TemporaryDirectory() as folder,
        Browser(Path(folder) / "profile") as page,
    ):
        for shot in SHOTS:
            if given[shot.run] is not None:
                png = take(page, given[shot.run] / "report.html", shot)
                save(png, given["out"] / f"{shot.name}.png")


if __name__ == "__main__":
    main()
