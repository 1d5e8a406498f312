"""The input of the walk-throughs: what it holds, and that it can be made again."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from denspu.data import find_duplicates, read_items, read_pair

SCRIPT = Path(__file__).parents[1] / "examples" / "make_data.py"
POSITIVE = (0, 2)


@pytest.fixture(scope="module")
def made():
    spec = importlib.util.spec_from_file_location("make_data", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.print = lambda *words: None
    module.load_dataset = fake
    return module


def fake(name):
    """Stand in for Fashion-MNIST: the label is written into the picture."""
    assert name == "fashion-mnist"
    rng = np.random.default_rng(0)
    sets = {}
    for part, n in (("train", 500), ("test", 60)):
        y = rng.integers(4, size=n)
        X = rng.integers(60, 200, (n, 12, 12), dtype=np.uint8)
        X[:, :3] = y[:, None, None] * 80
        sets |= {f"X_{part}": X, f"y_{part}": y}
    return SimpleNamespace(**sets, positive=POSITIVE)


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def truth(path):
    return {row["item"]: int(row["label"]) for row in rows(path)}


def files(folder):
    return {p.relative_to(folder).as_posix(): p for p in folder.rglob("*.*")}


# --- images --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def images(made, tmp_path_factory):
    return made.main("images", tmp_path_factory.mktemp("images"), n=400)


def test_pictures_damaged_ones_and_copies(images):
    P, U = read_pair(images / "confirmed", images / "archive")
    skipped = [*P.skipped, *U.skipped]
    assert len(P) + len(U) + len(skipped) == 402  # 400, and two copies
    assert len(skipped) == 4
    told = " ".join(reason for _, reason in skipped)
    assert "empty" in told
    assert "not a readable image" in told
    assert len({reason for _, reason in skipped}) == 3
    copies = find_duplicates(P, U)
    assert {U.ids[u] for _, u in copies.exact} == {"again/000.png", "again/001.png"}


def test_truth_is_that_of_the_pictures_that_can_be_read(images):
    for folder, name in (("archive", "truth.csv"), ("new", "new-truth.csv")):
        U = read_items(images / folder)
        label = np.isin(np.round(U.X[:, 0, 0, 0] / 80), POSITIVE).astype(int)
        assert truth(images / name) == dict(zip(U.ids, label, strict=True))
    P = read_items(images / "confirmed")
    assert np.isin(np.round(P.X[:, 0, 0, 0] / 80), POSITIVE).all()
    assert 36 <= len(P) <= 40


# --- table ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(made, tmp_path_factory):
    return made.main("table", tmp_path_factory.mktemp("table"), n=2_000)


def test_claims_have_labels_gaps_kinds_and_customers(table):
    claims = rows(table / "claims.csv")
    confirmed = [row for row in claims if row["confirmed"] == "1"]
    assert {row["confirmed"] for row in claims} == {"1", ""}
    assert 20 <= len(confirmed) <= 80
    assert {row["kind"] for row in claims} == {"car", "home", "travel", "health"}
    for column in ("policy_years", "days_to_report", "witness", "region"):
        assert 0.02 < np.mean([row[column] == "" for row in claims]) < 0.4
    assert len({row["customer"] for row in claims}) < 510
    assert [row["day"] for row in claims] == sorted(row["day"] for row in claims)
    items = read_items(
        table / "claims.csv", label_column="confirmed", id_column="claim"
    )
    assert items.kind == "table"
    assert not items.skipped


def test_truth_is_in_another_file_and_leaves_out_the_confirmed(table):
    claims = rows(table / "claims.csv")
    known = truth(table / "truth.csv")
    assert set(known) == {row["claim"] for row in claims if row["confirmed"] == ""}
    assert 0.02 < np.mean(list(known.values())) < 0.12
    new = rows(table / "new-claims.csv")
    assert "confirmed" not in new[0]
    assert set(truth(table / "new-truth.csv")) == {row["claim"] for row in new}
    assert min(row["day"] for row in new) > max(row["day"] for row in claims)


def test_frauds_differ_from_honest_claims_and_share_customers(table):
    claims = {row["claim"]: row for row in rows(table / "claims.csv")}
    known = truth(table / "truth.csv")
    fraud = [claims[name] for name, label in known.items() if label]
    honest = [claims[name] for name, label in known.items() if not label]
    assert np.mean([row["kind"] in ("car", "travel") for row in fraud]) == 1
    assert len({row["customer"] for row in fraud}) < 0.8 * len(fraud)
    amount = [np.median([float(r["amount"]) for r in side]) for side in (fraud, honest)]
    assert amount[0] > 1.3 * amount[1]


# --- text ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text(made, tmp_path_factory):
    return made.main("text", tmp_path_factory.mktemp("text"), n=600)


def test_docstrings_by_topic(text):
    about = ("numpy.random.", "scipy.stats.")
    confirmed = files(text / "confirmed")
    assert len(confirmed) > 5
    assert all(name.startswith(about) for name in confirmed)
    for folder, name in (("archive", "truth.csv"), ("new", "new-truth.csv")):
        known = truth(text / name)
        assert set(known) == set(files(text / folder))
        for item, label in known.items():
            package, _, full = item.partition("/")
            assert full.startswith(f"{package}.")
            assert label == full.startswith(about)
    contents = [path.read_text("utf-8") for path in files(text).values()]
    texts = [content for content in contents if not content.startswith("item,")]
    assert len(texts) == len(set(texts)) == 600
    assert not any("\nExamples\n---" in content for content in texts)


# --- all -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["images", "table"])
def test_the_same_seed_makes_the_same_files(made, kind, tmp_path):
    folders = [tmp_path / name for name in ("one", "two", "other")]
    for folder, seed in zip(folders, (3, 3, 4), strict=True):
        made.main(kind, folder, n=120, seed=seed)
    one, two, other = (
        {name: path.read_bytes() for name, path in files(folder).items()}
        for folder in folders
    )
    assert one == two
    assert one != other


def test_few_items_and_a_full_folder_are_refused(made, tmp_path):
    with pytest.raises(SystemExit, match="--n 99"):
        made.main("table", tmp_path / "new", n=99)
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="not an empty folder"):
        made.main("table", tmp_path)
