"""Digits: 1,797 grey 8×8 pictures of handwritten digits; comes with scikit-learn.

Small enough for examples and tests: nothing to download. Pixels are floats from 0 to
16, as scikit-learn gives them. The set has no split of its own, so 30 % of each digit
are drawn for testing. By default the even digits are positive.

Source: https://archive.ics.uci.edu/dataset/80 (E. Alpaydin, C. Kaynak, 1998, "Optical
recognition of handwritten digits", test part). Licence: CC BY 4.0.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from denspu._random import Randomness
from denspu.data._spec import Arrays, Spec

TEST_SHARE = 0.3


def _bundled() -> Path:
    """Return scikit-learn's own file, without importing scikit-learn."""
    package = find_spec("sklearn")
    origin = (package and package.origin) or ""  # a core dependency: always there
    return Path(origin).parent / "datasets" / "data" / "digits.csv.gz"


def _split(seed: int) -> Arrays:
    """Split 70/30, stratified by digit."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    X_train, X_test, y_train, y_test = train_test_split(
        digits.images,
        digits.target,
        test_size=TEST_SHARE,
        stratify=digits.target,
        random_state=Randomness(seed).seed("digits"),
    )
    return {"X_train": X_train, "y_train": y_train, "X_test": X_test, "y_test": y_test}


SPEC = Spec(
    name="digits",
    summary="1,797 grey handwritten digits, 8×8; positive: even digits",
    class_names=tuple("0123456789"),
    positive=(0, 2, 4, 6, 8),
    licence="CC BY 4.0 (UCI, Alpaydin and Kaynak, 1998)",
    homepage="https://archive.ics.uci.edu/dataset/80",
    shapes={
        "X_train": (1257, 8, 8),
        "y_train": (1257,),
        "X_test": (540, 8, 8),
        "y_test": (540,),
    },
    bundled=_bundled,
    split=_split,
)
