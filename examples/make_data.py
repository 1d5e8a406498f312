"""Make the input of the three walk-throughs in docs/walkthroughs.md.

    python examples/make_data.py images --out images
    python examples/make_data.py table --out table
    python examples/make_data.py text --out text

images: Fashion-MNIST as PNG files, with damaged files and copies among them.
table:  insurance claims that are made up, with gaps, categories, dates and customers.
text:   docstrings of NumPy, SciPy and scikit-learn, one a file.

Each folder gets new items for `denspu predict`, and true labels for `denspu evaluate`
(truth.csv, new-truth.csv), which the fit never sees.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import importlib
import inspect
import io
import shutil
from pathlib import Path

import numpy as np

from denspu import load_dataset

SIZES = {"images": 60_000, "table": 5_000, "text": None}
"""Items by default; None takes all there are."""


def main(kind: str, out: Path, n: int | None = None, seed: int = 0) -> Path:
    n = SIZES[kind] if n is None else n
    if n is not None and n < 100:
        raise SystemExit(f"--n {n} is too few to learn from: take 100 or more.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SystemExit(f"{out} is not an empty folder. Choose another one.")
    out.mkdir(parents=True, exist_ok=True)
    print(MAKERS[kind](out, n, np.random.default_rng(seed)))
    print(out)
    return out


# --- images --------------------------------------------------------------------------

DAMAGED = 100
"""One picture in so many cannot be read."""
COPIED = 20
"""One confirmed picture in so many lies in the archive too."""
BOX = 1_000
"""Pictures in a sub-folder."""


def images(out: Path, n: int, rng: np.random.Generator) -> str:
    """Write pictures: tops are positive, up to 1,000 of them confirmed."""
    data = load_dataset("fashion-mnist")
    n = min(n, len(data.X_train))
    rows = rng.permutation(len(data.X_train))[:n]
    truth = np.isin(data.y_train[rows], data.positive)
    tops = np.flatnonzero(truth)
    confirmed = set(rng.choice(tops, min(1_000, n // 10), replace=False).tolist())
    damaged = set(rng.choice(n, n // DAMAGED, replace=False).tolist())
    known, hurt, labels = [], 0, []
    for place, row in enumerate(rows):
        item = f"box-{place // BOX:02d}/{place:05d}.png"
        folder = "archive"
        if place in confirmed:
            folder, item = "confirmed", f"{place:05d}.png"
        path = out / folder / item
        path.parent.mkdir(parents=True, exist_ok=True)
        content = _encoded(data.X_train[row])
        if place in damaged:
            content = HURT[hurt % len(HURT)](content)
            hurt += 1
        elif folder == "confirmed":
            known.append(path)
        else:
            labels.append((item, int(truth[place])))
        path.write_bytes(content)
    copied = _copy(out, known[: max(2, len(known) // COPIED)], labels)
    n_new = min(len(data.X_test), max(20, n // 6))
    _new_images(out, data, rng.permutation(len(data.X_test))[:n_new])
    _labels(out / "truth.csv", labels)
    return (
        f"{n:,} pictures, {len(confirmed):,} of them confirmed tops, {hurt:,} damaged; "
        f"{copied:,} copies of confirmed ones in the archive; {n_new:,} new ones."
    )


HURT = (
    lambda content: b"",
    lambda content: content[: len(content) // 2],
    lambda content: b"This is no picture, whatever its name says.\n",
)
"""An empty file, one that was cut short, a text with a picture's name."""


def _encoded(pixels, form: str = "PNG") -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(np.asarray(pixels)).save(out, form, quality=90)
    return out.getvalue()


def _copy(out: Path, known: list[Path], labels: list[tuple[str, int]]) -> int:
    """Put copies into the archive: as they are, and every third saved as JPEG."""
    from PIL import Image

    (out / "archive" / "again").mkdir()
    for number, path in enumerate(known):
        item = f"again/{number:03d}.{'jpg' if number % 3 == 2 else 'png'}"
        target = out / "archive" / item
        if target.suffix == ".png":
            shutil.copyfile(path, target)
        else:
            with Image.open(path) as picture:
                target.write_bytes(_encoded(picture, "JPEG"))
        labels.append((item, 1))
    return len(known)


def _new_images(out: Path, data, rows) -> None:
    (out / "new").mkdir()
    labels = []
    for number, row in enumerate(rows):
        item = f"{number:05d}.png"
        (out / "new" / item).write_bytes(_encoded(data.X_test[row]))
        labels.append((item, int(data.y_test[row] in data.positive)))
    _labels(out / "new-truth.csv", labels)


# --- table ---------------------------------------------------------------------------

FRAUD = 0.08
CONFIRMED = 0.3
"""Share of the frauds that somebody confirmed."""
FIRST_DAY = dt.date(2024, 1, 1)
DAYS = 730
NEW_DAYS = 91


def table(out: Path, n: int, rng: np.random.Generator) -> str:
    """Write claims, and those of the quarter after them."""
    crooked = rng.random(max(10, n // 4)) < FRAUD
    claims, fraud = _claims(n, crooked, 0, DAYS, rng)
    known = fraud & (rng.random(n) < CONFIRMED)
    for row, one in zip(claims, known, strict=True):
        row["confirmed"] = 1 if one else ""
    _rows(out / "claims.csv", claims)
    open_ = [(c["claim"], int(f)) for c, f in zip(claims, fraud, strict=True)]
    _labels(
        out / "truth.csv", [pair for pair, k in zip(open_, known, strict=True) if not k]
    )
    n_new = max(20, n // 8)
    new, is_fraud = _claims(n_new, crooked, DAYS, NEW_DAYS, rng)
    _rows(out / "new-claims.csv", new)
    labels = [(c["claim"], int(f)) for c, f in zip(new, is_fraud, strict=True)]
    _labels(out / "new-truth.csv", labels)
    return (
        f"{n:,} made-up claims, {fraud.sum():,} frauds, {known.sum():,} of them "
        f"confirmed; {n_new:,} new ones."
    )


def _claims(n: int, crooked, first: int, days: int, rng: np.random.Generator):
    """Draw claims and whether they are frauds, most of them of crooked customers.

    Half of the frauds are staged accidents (young policy, large round sum, no
    witness), half are inflated travel claims (many earlier ones, reported late, at
    night). Honest claims do all of this too, only less often.
    """
    customer = rng.integers(len(crooked), size=n)
    fraud = rng.random(n) < np.where(crooked[customer], 0.75, 0.02)
    staged, inflated = fraud & (customer % 2 == 0), fraud & (customer % 2 == 1)
    kind = rng.choice(["car", "home", "travel", "health"], n, p=[0.4, 0.25, 0.2, 0.15])
    kind = np.where(staged, "car", np.where(inflated, "travel", kind))
    amount = np.exp(rng.normal(6.6, 0.8, n) + 0.9 * staged + 0.5 * inflated)
    rounded = rng.random(n) < np.where(staged, 0.7, 0.15)
    amount = np.where(rounded, np.maximum(100, amount.round(-2)), amount.round(2))
    policy = rng.exponential(np.where(staged, 0.6, 4.0)).round(2)
    earlier = rng.poisson(np.where(inflated, 3.2, 0.8))
    delay = rng.poisson(np.where(inflated, 16, 5))
    hour = np.where(
        inflated & (rng.random(n) < 0.6), rng.integers(0, 6, n), rng.integers(7, 23, n)
    )
    witness = np.where(rng.random(n) < np.where(staged, 0.1, 0.5), "yes", "no")
    channel = rng.choice(["web", "phone", "broker"], n, p=[0.5, 0.3, 0.2])
    region = rng.choice(["north", "east", "south", "west"], n)
    day = np.sort(rng.integers(first, first + days, n))
    rows = []
    for i in range(n):
        gap = rng.random(4)
        rows.append(
            {
                "claim": f"C{first + 1:03d}-{i:05d}",
                "day": (FIRST_DAY + dt.timedelta(days=int(day[i]))).isoformat(),
                "customer": f"K{customer[i]:05d}",
                "kind": kind[i],
                "amount": f"{amount[i]:.2f}",
                "policy_years": "" if gap[0] < 0.08 else policy[i],
                "earlier_claims": earlier[i],
                "days_to_report": "" if gap[1] < 0.05 else delay[i],
                "hour": hour[i],
                "witness": "" if gap[2] < 0.25 else witness[i],
                "channel": channel[i],
                "region": "" if gap[3] < 0.1 else region[i],
            }
        )
    return rows, fraud


# --- text ----------------------------------------------------------------------------

MODULES = (
    *("numpy", "numpy.fft", "numpy.linalg", "numpy.polynomial", "numpy.random"),
    *("scipy.cluster.hierarchy", "scipy.fft", "scipy.integrate", "scipy.interpolate"),
    *("scipy.io", "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal"),
    *("scipy.sparse", "scipy.sparse.linalg", "scipy.spatial", "scipy.special"),
    *("scipy.stats", "sklearn.cluster", "sklearn.compose", "sklearn.covariance"),
    *("sklearn.datasets", "sklearn.decomposition", "sklearn.ensemble"),
    *("sklearn.feature_extraction", "sklearn.feature_selection", "sklearn.impute"),
    *("sklearn.inspection", "sklearn.linear_model", "sklearn.manifold"),
    *("sklearn.metrics", "sklearn.mixture", "sklearn.model_selection"),
    *("sklearn.naive_bayes", "sklearn.neighbors", "sklearn.neural_network"),
    *("sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm", "sklearn.tree"),
    "sklearn.utils",
)
TOPIC = ("numpy.random", "scipy.stats")
"""Statistics: the positive class."""
SHORT = 200
"""Characters below which a docstring says too little."""
LABELLED = 0.3
NEW = 0.2


def text(out: Path, n: int | None, rng: np.random.Generator) -> str:
    """Write one file a docstring, without its examples."""
    found = _docstrings()
    names = [str(name) for name in rng.permutation(sorted(found))[:n]]
    labels: dict[str, list[tuple[str, int]]] = {"archive": [], "new": []}
    n_known = 0
    for name in names:
        module, content = found[name]
        positive = module in TOPIC
        draw = rng.random(2)
        folder = "new" if draw[0] < NEW else "archive"
        if folder == "archive" and positive and draw[1] < LABELLED:
            folder, item = "confirmed", f"{name}.txt"
            n_known += 1
        else:
            item = f"{name.partition('.')[0]}/{name}.txt"
            labels[folder].append((item, int(positive)))
        path = out / folder / item
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    _labels(out / "truth.csv", labels["archive"])
    _labels(out / "new-truth.csv", labels["new"])
    hidden = sum(label for _, label in labels["archive"])
    return (
        f"{len(names):,} docstrings: {n_known:,} confirmed ones about statistics, "
        f"{hidden:,} more of them in the archive; {len(labels['new']):,} new ones."
    )


def _docstrings() -> dict[str, tuple[str, str]]:
    """Return module and text of public functions and classes, by their full name."""
    found: dict[str, tuple[str, str]] = {}
    seen: set[str] = set()
    for module in MODULES:
        home = importlib.import_module(module)
        for name in sorted(set(getattr(home, "__all__", ()))):
            thing = vars(home).get(name)
            if name.startswith("_") or not (
                inspect.isroutine(thing) or isinstance(thing, type | np.ufunc)
            ):
                continue
            content = inspect.getdoc(thing) or ""
            content = content.partition("\nExamples\n---")[0].strip()
            if len(content) >= SHORT and content not in seen:
                seen.add(content)
                found[f"{module}.{name}"] = (module, content + "\n")
    return found


# --- files ---------------------------------------------------------------------------


def _rows(path: Path, rows: list[dict]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _labels(path: Path, labels: list[tuple[str, int]]) -> None:
    _rows(path, [{"item": item, "label": label} for item, label in sorted(labels)])


MAKERS = {"images": images, "table": table, "text": text}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=list(MAKERS))
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--n", type=int, help="how many items (images: 60,000)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    main(given.kind, given.out, given.n, given.seed)
