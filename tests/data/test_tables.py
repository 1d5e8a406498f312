"""Tables: kinds of columns, gaps, dates, encodings, labels."""

from __future__ import annotations

import csv
import datetime as dt
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from denspu.data import join, read_items, read_pair
from denspu.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    LabelError,
    MissingDependencyError,
)


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def column(items, name):
    return items.X[name].tolist()


@pytest.fixture
def table(tmp_path):
    return write(
        tmp_path / "t.csv",
        "age,town,seen,code\n31,Ulm,2024-01-01,007\n44.5,,1970-01-02T12:00:00Z,012\n"
        'NA,"a, b",,7\n',
    )


# --- CSV ----------------------------------------------------------------------------


def test_numbers_categories_dates_and_gaps(table):
    items = read_items(table)
    assert items.kind == "table"
    assert items.plan["columns"] == {
        "age": "number",
        "town": "category",
        "seen": "date",
        "code": "category",
    }
    assert np.array_equal(column(items, "age"), [31, 44.5, np.nan], equal_nan=True)
    assert column(items, "town") == ["Ulm", None, "a, b"]
    assert np.array_equal(column(items, "seen"), [19723, 1.5, np.nan], equal_nan=True)
    assert column(items, "code") == ["007", "012", "7"]
    assert items.facts["missing"].tolist() == [0, 1, 2]
    assert items.ids == ["1", "2", "3"]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_and_the_decimal_comma(tmp_path, delimiter):
    name = "t.tsv" if delimiter == "\t" else "t.csv"
    text = "a,b\n1,x\n2,y\n".replace(",", delimiter)
    assert column(read_items(write(tmp_path / name, text)), "a") == [1, 2]
    items = read_items(write(tmp_path / "d.csv", "a;b\n1,5;2\n-3;4\n"))
    assert column(items, "a") == [1.5, -3]


@pytest.mark.parametrize(
    ("text", "form", "day"),
    [
        ("31.12.1970", "%d.%m.%Y", 364),
        ("1970/01/03", "%Y/%m/%d", 2),
        ("12/31/1970", "%m/%d/%Y", 364),
        ("31/12/1970", "%d/%m/%Y", 364),
        ("01/02/1970", "%m/%d/%Y", 1),
    ],
)
def test_other_dates(tmp_path, text, form, day):
    path = write(tmp_path / "t.csv", f"a,b\n{text},1\n")
    items = read_items(path)
    assert items.plan["columns"]["a"] == form
    assert column(items, "a") == [day]
    either = text == "01/02/1970"
    assert ("month/day or day/month" in " ".join(items.notes)) == either
    if either:
        assert column(read_items(path, columns={"a": "%d/%m/%Y"}), "a") == [31]


def test_columns_without_use_are_left_out_and_told(tmp_path):
    rows = "".join(f"{i % 7},name{i},\n" for i in range(25))
    items = read_items(write(tmp_path / "t.csv", "a,who,nothing\n" + rows))
    assert items.X.columns == ["a"]
    assert "'who' is different in every row" in items.notes[0]
    assert "'nothing' is empty" in items.notes[1]
    with pytest.raises(InvalidInputError, match="no column to learn from"):
        read_items(tmp_path / "t.csv", columns={"a": "drop"})


def test_a_column_that_counts_the_rows_is_left_out(tmp_path):
    """Rising whole numbers, or all from one on; not those with gaps out of order."""
    rng = np.random.default_rng(0)
    rising, shuffled = np.cumsum(rng.integers(1, 9, 30)), rng.permutation(30)
    columns = [rising, shuffled, shuffled * 2, np.repeat(rising[::2], 2), rising + 0.5]
    lines = [
        "a,b,c,d,e",
        *(",".join(map(str, row)) for row in zip(*columns, strict=True)),
    ]
    path = write(tmp_path / "t.csv", "\n".join(lines))
    items = read_items(path)
    assert items.X.columns == ["c", "d", "e"]
    assert ["'a' counts" in items.notes[0], "'b' counts" in items.notes[1]] == [
        True
    ] * 2
    kept = read_items(path, columns={"a": "number"})
    assert kept.X.columns == ["a", "c", "d", "e"]


def test_a_column_of_texts_is_left_out_and_told(tmp_path):
    rows = "".join(f"{i % 3},what a fine long day {3 * i // 4}\n" for i in range(40))
    items = read_items(write(tmp_path / "t.csv", "a,said\n" + rows))
    assert items.X.columns == ["a"]
    assert "--text-column said" in items.notes[0]
    few = "".join(f"{i % 3},what a fine long day {i % 5}\n" for i in range(40))
    items = read_items(write(tmp_path / "few.csv", "a,said\n" + few))
    assert items.X.columns == ["a", "said"]


def test_none_is_a_value_among_words_and_a_gap_among_numbers(tmp_path):
    path = write(tmp_path / "t.csv", "a,b,y\nnone,None,1\nwood,2,none\n,3,0\n")
    items = read_items(path, label_column="y")
    assert items.X["a"].tolist() == ["none", "wood", None]
    assert column(items, "b")[1:] == [2, 3]
    assert np.isnan(items.X["b"].tolist()[0])
    assert items.labels.tolist() == [1, 0, 0]
    again = read_items(write(tmp_path / "new.csv", "a,b\nnone,none\n"), like=items.plan)
    assert again.X["a"].tolist() == ["none"]


def test_kinds_can_be_set(table):
    items = read_items(table, columns={"code": "number", "town": "drop"})
    assert column(items, "code") == [7, 12, 7]
    assert "town" not in items.X.columns
    with pytest.raises(InvalidInputError, match=r"'town'.*row 1 holds 'Ulm'.*category"):
        read_items(table, columns={"town": "number"})
    with pytest.raises(InvalidParameterError, match=r"columns\['town'\]='words' must"):
        read_items(table, columns={"town": "words"})
    with pytest.raises(InvalidParameterError, match=r"'towns'.*Did you mean 'town'"):
        read_items(table, columns={"towns": "number"})


def test_rows_of_another_length_keep_number_and_reason(tmp_path):
    items = read_items(write(tmp_path / "t.csv", "a,b\n1,2\n1,2,3\n\n4,5\n"))
    assert column(items, "a") == [1, 4]
    assert items.skipped == [("row 2", "3 cells, but the header has 2")]
    assert items.ids == ["1", "4"]


def test_encodings(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\nx,1\ncafé,2\n", "latin-1")
    with pytest.raises(
        InvalidInputError,
        match=r"not UTF-8: byte 0xe9 at position 11 \(line 3\).*encoding='latin-1'",
    ):
        read_items(path)
    assert column(read_items(path, encoding="latin-1"), "a") == ["x", "café"]
    wide = write(tmp_path / "w.csv", "a,b\nx,1\n", "utf-16")
    with pytest.raises(InvalidInputError, match="encoding='utf-16'"):
        read_items(wide)
    assert column(read_items(wide, encoding="utf-16"), "b") == [1]
    with pytest.raises(InvalidInputError, match=r"is not UTF-16: .*Pass encoding="):
        read_items(path, encoding="utf-16")
    with pytest.raises(InvalidParameterError, match="encoding='klingon' is not known"):
        read_items(path, encoding="klingon")
    marked = write(tmp_path / "m.csv", "a,b\n1,2\n", "utf-8-sig")
    assert read_items(marked).X.columns == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,b\n", "a header and no rows"),
        ("a,a\n1,2\n", "two columns called 'a'"),
        ("a,b\n1\n2\n", "None of the 2 rows"),
        (f"a\n{'x' * 65 * 1024**2}\n", r"field larger than .* \(line 2\)"),
    ],
    ids=["empty", "header", "twice", "bad", "long"],
)
def test_tables_that_are_none(tmp_path, text, words):
    with pytest.raises(InvalidInputError, match=words):
        read_items(write(tmp_path / "t.csv", text))


def test_long_cells_and_the_limit_is_put_back(tmp_path):
    before = csv.field_size_limit()
    text = f"a,t\n1,{'long ' * 60_000}\n"
    assert len(read_items(write(tmp_path / "t.csv", text), text_column="t").X[0]) > 2e5
    assert csv.field_size_limit() == before


def test_an_unknown_file(tmp_path):
    with pytest.raises(InvalidInputError, match=r"'\.xlsx' are not known.*\.csv"):
        read_items(write(tmp_path / "t.xlsx", "PK"))
    path = write(tmp_path / "t.dat", "a,b\n1,2\n")
    assert column(read_items(path, kind="table"), "b") == [2]


# --- labels, ids, columns set aside -------------------------------------------------


def labelled(tmp_path, values):
    rows = "".join(f"{i},{v},g{i % 2}\n" for i, v in enumerate(values))
    return write(tmp_path / "l.csv", "a,label,group\n" + rows)


@pytest.mark.parametrize(
    "values", [["1", "0", "1", "0"], ["True", "False", "1.0", ""], ["1", "-1", "1", ""]]
)
def test_label_columns(tmp_path, values):
    path = labelled(tmp_path, values)
    items = read_items(path, label_column="label", aside=["group"])
    X, y, ids = join(items)
    assert y.tolist() == [1, 0, 1, 0]
    assert X.columns == ["a"]
    assert ids == ["1", "2", "3", "4"]
    assert items.aside["group"].tolist() == ["g0", "g1", "g0", "g1"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1", "2", "3", "3"], r"holds '3' \(2 rows\), '2' \(1 rows\).*1 or true"),
        (["1", "0", "-1", "1"], "both 0 and -1"),
        (["0", "0", "1", "0"], "1 usable labelled positive; at least 2"),
        (["1", "1", "1", "1"], "Every row .* labelled positive"),
    ],
)
def test_bad_labels(tmp_path, values, words):
    path = labelled(tmp_path, values)
    with pytest.raises(LabelError, match=words):
        join(read_items(path, label_column="label"))
    with pytest.raises(InvalidInputError, match=r"read without labels.*label_column="):
        join(read_items(path))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"label_column": "labels"},
            "label_column='labels'.*Did you mean 'label'.*'a'",
        ),
        ({"id_column": "name"}, "id_column='name'.*no such column"),
        ({"aside": ["when"]}, "aside='when'"),
        ({"text_column": "text"}, "text_column='text'"),
        ({"kind": "text"}, "say which one with text_column="),
        ({"text_column": "a", "vector_column": "b"}, "exclude each other"),
    ],
)
def test_missing_columns(tmp_path, options, words):
    with pytest.raises(InvalidParameterError, match=words):
        read_items(labelled(tmp_path, ["1", "0"]), **options)


def test_ids(tmp_path):
    path = write(tmp_path / "t.csv", "id,a\nx7,1\nx9,2\n")
    assert read_items(path, id_column="id").ids == ["x7", "x9"]
    path = write(tmp_path / "t.csv", "id,a\nx7,1\nx7,2\n")
    with pytest.raises(InvalidInputError, match=r"the id 'x7' stands in several rows"):
        read_items(path, id_column="id")


# --- Parquet ------------------------------------------------------------------------


def test_parquet_keeps_its_types(tmp_path):
    arrow = pa.table(
        {
            "n": [1, None, 3],
            "x": pa.array([0.5, 1.5, None]),
            "b": [True, False, None],
            "w": ["1", "2", None],
            "c": pa.array(["u", "v", "u"]).dictionary_encode(),
            "d": [dt.date(1970, 1, 3), None, dt.date(1970, 1, 1)],
            "t": pa.array([dt.datetime(1970, 1, 1, 12)] * 3, pa.timestamp("ms")),
            "m": pa.array([1, 2, None], pa.decimal128(20, 2)),
            "s": [{"k": 1}] * 3,
        }
    )
    pq.write_table(arrow, tmp_path / "t.parquet")
    items = read_items(tmp_path / "t.parquet")
    kinds = dict.fromkeys("nxbm", "number") | dict.fromkeys("wc", "category")
    assert items.plan["columns"] == kinds | dict.fromkeys("dt", "date")
    assert np.array_equal(column(items, "n"), [1, np.nan, 3], equal_nan=True)
    assert np.array_equal(column(items, "b"), [1, 0, np.nan], equal_nan=True)
    assert column(items, "w") == ["1", "2", None]
    assert np.array_equal(column(items, "d"), [2, np.nan, 0], equal_nan=True)
    assert column(items, "t") == [0.5] * 3
    assert "'s' holds neither" in items.notes[0]
    words = read_items(tmp_path / "t.parquet", columns={"n": "category"})
    assert column(words, "n") == ["1", None, "3"]


def test_labels_and_ids_from_parquet(tmp_path):
    arrow = pa.table({"i": [7, 8, 9], "y": [1, None, 1], "a": [1.0, 2.0, 3.0]})
    pq.write_table(arrow, tmp_path / "t.parquet")
    items = read_items(tmp_path / "t.parquet", label_column="y", id_column="i")
    assert items.labels.tolist() == [1, 0, 1]
    assert items.ids == ["7", "8", "9"]


def test_a_broken_or_empty_parquet(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InvalidInputError, match="not a Parquet file"):
        read_items(tmp_path / "t.parquet")
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match="no rows or no columns"):
        read_items(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'denspu\[data\]'"):
        read_items(tmp_path / "t.parquet")


# --- pairs --------------------------------------------------------------------------


def test_p_and_u_are_read_alike(tmp_path):
    p = write(tmp_path / "p.csv", "a,b,c\n1,2,\n3,4,\n")
    u = write(tmp_path / "u.csv", "c,b,a\nx,7,1\ny,red,2\n")
    P, U = read_pair(p, u)
    X, y, _ = join(P, U)
    assert P.plan == U.plan
    assert X.columns == ["a", "b", "c"]
    assert X["b"].tolist() == ["2", "4", "7", "red"]
    assert X["c"].tolist() == [None, None, "x", "y"]
    assert y.tolist() == [1, 1, 0, 0]


def test_a_csv_and_a_parquet_make_a_pair_if_their_types_agree(tmp_path):
    p = write(tmp_path / "p.csv", "a,w\n1,x\n3,y\n")
    pq.write_table(pa.table({"a": [1.5, 2.5], "w": ["x", "z"]}), tmp_path / "u.parquet")
    P, U = read_pair(p, tmp_path / "u.parquet", columns={"w": "category"})
    assert join(P, U).X["a"].tolist() == [1, 3, 1.5, 2.5]
    p = write(tmp_path / "p.csv", "a,w\nred,x\n3,y\n")
    with pytest.raises(InvalidInputError, match="'a' is number in one file and some"):
        read_pair(p, tmp_path / "u.parquet", columns={"w": "category"})


def test_new_rows_in_the_form_of_the_first(tmp_path):
    first = read_items(write(tmp_path / "p.csv", "a,b\n1,x\n3,7\n"))
    new = read_items(write(tmp_path / "n.csv", "z,b,a\n0,4,5\n"), like=first.plan)
    assert new.X.columns == ["a", "b"]
    assert column(new, "b") == ["4"]
    with pytest.raises(InvalidParameterError, match=r"'a'.*no such column"):
        read_items(write(tmp_path / "n.csv", "b\n1\n"), like=first)


def test_other_columns_and_kinds_are_refused(tmp_path):
    p = write(tmp_path / "p.csv", "a,b\n1,2\n3,4\n")
    u = write(tmp_path / "u.csv", "a,c\n1,2\n3,4\n")
    words = r"only in the first \['b'\], only in the second \['c'\]"
    with pytest.raises(InvalidInputError, match=words):
        read_pair(p, u)
    with pytest.raises(InvalidInputError, match=words):
        join(read_items(p), read_items(u))
    u = write(tmp_path / "u.csv", "a,b\nx,2\ny,4\n")
    with pytest.raises(InvalidInputError, match=r"'a' is a number .* category.*read_p"):
        join(read_items(p), read_items(u))
