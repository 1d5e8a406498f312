"""Real data: how sources are split, and how tables become rows and positives."""

from __future__ import annotations

import gzip
import hashlib
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

HOME = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(HOME))
try:
    import real_data
    import real_sources
    import real_tables
    from real_data import FILES, PARTS, declared, kept, labels_for, load, tasks
    from real_sources import SAME, TRIAL, part_of
finally:
    sys.path.remove(str(HOME))

SEALED = PARTS[1:]


def every(kind):
    return [task for part in PARTS for task in tasks(kind, part)]


def table(folder, **entry):
    """Declare a task on a made package and read it."""
    entry = {"name": "made", "source": "made", "package": "made"} | entry
    return real_tables.read_table(declared("table", entry, {}), folder)


# --- the split ------------------------------------------------------------------------


def test_a_source_lies_where_its_hash_says():
    for name in ("nursery", "diamonds", "adult", "affairs", "fars"):
        place = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 5
        assert part_of(name) == ("development", *SEALED * 2)[(0, 1, 1, 2, 2)[place]]
    assert {part_of(name) for name in ("nursery", "diamonds")} == set(SEALED)


def test_sources_of_the_trial_are_development():
    assert {part_of(name) for name in TRIAL.split()} == {"development"}


def test_another_name_leads_to_a_source_that_has_no_other():
    assert not set(SAME) & set(SAME.values())
    assert SAME["spam"] == "spambase"


@pytest.mark.parametrize("kind", list(FILES))
def test_names_are_unique_and_sources_have_one_name(kind):
    found = every(kind)
    assert len({task.name for task in found}) == len(found)
    assert not {task.source for task in found} & set(SAME)


def test_no_source_of_sealed_tables_has_many_tasks():
    for part in SEALED:
        sources = [task.source for task in tasks("table", part)]
        assert max(sources.count(source) for source in sources) <= 2
        assert len(set(sources)) >= 15


def test_tables_have_enough_positives_and_a_share_that_is_asked_for():
    for task in every("table"):
        assert task.rows >= 500, task.name
        assert task.positives >= 80, task.name
        assert 0.008 <= task.positives / task.rows <= 0.6, task.name


def test_tests_of_others_are_left_alone():
    for kind in FILES:
        for task in every(kind):
            words = f"{task.package} {task.options}".lower()
            assert not any(w in words for w in ("openintro", "dplyr", "modeldata"))


# --- rows -----------------------------------------------------------------------------


def test_a_csv_becomes_floats_and_objects(tmp_path):
    (tmp_path / "a.csv").write_text(
        "id,size,colour,open,class\n"
        "1,2.5, red,true,a\n2,?,NA,false,b\n3,4,blue,true,\n4,5,red,false,a\n"
    )
    X, y = table(tmp_path, reader="csv", member="a.csv", positive=["a"], drop=["id"])
    assert y.tolist() == [1, 0, 1]  # a row without a class is no row
    assert [kind.kind for kind in X.dtypes] == ["f", "O", "f"]
    assert X["colour"].tolist() == ["red", None, "red"]
    assert np.isnan(X["size"][1])


def test_arff_of_keel_with_its_own_ways(tmp_path):
    (tmp_path / "a.dat").write_text(
        "@relation made\n@attribute 'my size' real [1, 9]\n"
        "@attribute Colour{red, blue}\n@attribute Class {yes, no}\n"
        "@inputs 'my size', Colour\n#@outputs Class\n% words\n@data\n"
        "1.0, red, yes\n<null>, blue, no\n"
    )
    X, y = table(tmp_path, reader="arff", member="a.dat", positive=["yes"])
    assert list(X.columns) == ["my size", "Colour"]
    assert y.tolist() == [1, 0]
    assert X["my size"].isna().tolist() == [False, True]


def test_a_file_without_names_and_one_for_the_classes(tmp_path):
    (tmp_path / "x.data").write_text("1 2 \n3 4 \n")
    (tmp_path / "x.labels").write_text("-1\n1\n")
    X, y = table(
        tmp_path,
        reader="csv",
        member="x.data",
        labels="x.labels",
        header=False,
        sep=" ",
        positive=[1],
    )
    assert X.to_numpy().tolist() == [[1, 2], [3, 4]]  # the empty last column is gone
    assert y.tolist() == [0, 1]


def test_r_objects_lie_in_files_or_in_a_store(tmp_path):
    rdata = pytest.importorskip("rdata")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.Categorical(["x", "y", "x"])})
    one, store = (tmp_path / f"usr/lib/R/library/{name}/data" for name in "pq")
    one.mkdir(parents=True)
    store.mkdir(parents=True)
    rdata.write_rda(one / "frame.rda", {"frame": frame})
    rdata.write_rds(tmp_path / "frame.rds", frame)
    raw = gzip.decompress((tmp_path / "frame.rds").read_bytes())
    block = len(raw).to_bytes(4, "big") + zlib.compress(raw)
    (store / "Rdata.rdb").write_bytes(b"before" + block)
    places = {"variables": {"frame": np.array([6, len(block)], dtype=np.int32)}}
    rdata.write_rds(store / "Rdata.rdx", places)
    for library in "pq":
        X, y = table(
            tmp_path,
            reader="r",
            library=library,
            object="frame",
            target="b",
            positive=["x"],
        )
        assert X["a"].tolist() == [1, 2, 3]
        assert y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ({"positive": [5, 1]}, [1, 0, 0, 0, 1]),
        ({"above": 0.75}, [0, 0, 0, 0, 1]),
        ({"below": 0.5}, [1, 1, 0, 0, 0]),
        ({"over": 3}, [0, 0, 0, 1, 1]),
        ({"known": True}, [1, 1, 1, 1, 1]),
    ],
)
def test_rules_for_positive_rows(rule, wanted):
    target = pd.Series([1, 2, 3, 4, 5])
    assert real_tables.is_positive(target, rule).astype(int).tolist() == wanted


def test_known_counts_gaps_as_negative(tmp_path):
    (tmp_path / "a.csv").write_text("size,died\n1,\n2,1999\n")
    _, y = table(tmp_path, reader="csv", member="a.csv", known=True)
    assert y.tolist() == [0, 1]


def test_a_rule_that_cannot_be_meant_is_named():
    target = pd.Series(["a", "b"])
    with pytest.raises(ValueError, match="no row has"):
        real_tables.is_positive(target, {"positive": ["c"]})
    for rules in ({}, {"above": 0.5, "over": 1}):
        with pytest.raises(ValueError, match="one rule"):
            real_tables.is_positive(target, rules)


def test_only_some_rows(tmp_path):
    (tmp_path / "a.csv").write_text("year,size,class\n1,5,a\n2,6,a\n2,7,b\n")
    X, y = table(
        tmp_path, reader="csv", member="a.csv", only={"year": [2]}, positive=["b"]
    )
    assert X["size"].tolist() == [6, 7]
    assert y.tolist() == [0, 1]


# --- loading --------------------------------------------------------------------------


def made(rows=None, **entry):
    entry = {"name": "made", "source": "made", "package": "pypi:made==1"} | entry
    return declared("table", entry | ({"rows": rows} if rows else {}), {})


def test_load_keeps_a_drawn_part_of_many_rows():
    few, many = made(reader="csv"), made(reader="csv", large=True)
    assert kept(few, 500).tolist() == list(range(500))
    assert len(kept(few, 30_000)) == 20_000
    assert len(kept(many, 30_000)) == 30_000
    assert len(kept(many, 300_000)) == 100_000
    np.testing.assert_array_equal(kept(few, 30_000), kept(few, 30_000))


def test_load_reads_from_the_cache_and_tells_of_a_change(tmp_path):
    folder = tmp_path / "pypi" / "made==1"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("size,class\n1,a\n2,b\n")
    entry = {"reader": "csv", "member": "a.csv", "positive": ["b"]}
    X, y = load(made(**entry), tmp_path)
    assert len(X) == 2
    assert y.tolist() == [0, 1]
    with pytest.raises(ValueError, match="has 2 rows, not 3: pypi:made==1 has changed"):
        load(made(rows=3, **entry), tmp_path)


def test_labels_are_served_where_twice_as_many_are_positive():
    assert labels_for(np.repeat([0, 1], [500, 80])) == [20, 40]
    assert labels_for(np.repeat([0, 1], [500, 300])) == [20, 40, 150]


def test_fetch_asks_the_client_once(tmp_path, monkeypatch):
    asked = []

    def download(command, work):
        asked.append(command)
        with zipfile.ZipFile(work / "made.whl", "w") as packed:
            packed.writestr("made/a.csv", "x")

    monkeypatch.setattr(real_sources, "download", download)
    for _ in range(2):
        folder = real_sources.fetch("pypi:made==1", tmp_path)
        assert (folder / "made" / "a.csv").read_text() == "x"
    assert [command[-1] for command in asked] == ["made==1"]
    assert [path.name for path in folder.iterdir()] == ["made"]


def test_the_list_shows_a_line_a_task(tmp_path, monkeypatch):
    folder = tmp_path / "pypi" / "made==1"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("size,colour,class\n1,red,a\n,blue,b\n")
    task = made(reader="csv", member="a.csv", positive=["b"])
    words = real_data.line(task, tmp_path).split()
    assert words[1:] == ["table", "made", "made", "2", "2", "1", "25.0", "50.00", "1"]
