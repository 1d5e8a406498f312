"""Texts from lines, files and columns; embeddings from .npy and Parquet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from denspu.data import join, read_items, read_pair
from denspu.exceptions import InvalidInputError, InvalidParameterError

# --- texts --------------------------------------------------------------------------


def test_one_text_a_line(tmp_path):
    (tmp_path / "t.txt").write_text("first text\n\nsecond, ä\n", "utf-8")
    items = read_items(tmp_path / "t.txt")
    assert items.kind == "text"
    assert items.X == ["first text", "second, ä"]
    assert items.ids == ["1", "3"]
    assert items.skipped == [("line 2", "holds no text")]
    assert items.facts["words"].tolist() == [2, 2]
    assert items.facts["characters"].tolist() == [10, 9]


def test_one_text_a_file(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").write_text("two\nlines")
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "c.txt").write_text("  ")
    (tmp_path / "d.txt").write_bytes(b"th\xe9")
    (tmp_path / "e.txt").symlink_to("nowhere")
    items = read_items(tmp_path)
    assert items.ids == ["a.txt", "sub/b.txt"]
    assert items.X == ["one", "two\nlines"]
    why = dict(items.skipped)
    assert why["c.txt"] == "holds no text"
    assert "not UTF-8 at byte 2" in why["d.txt"]
    assert "not there" in why["e.txt"]
    assert "d.txt" in read_items(tmp_path, encoding="latin-1").ids


def test_a_text_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('y,text,g\n1,"a, b",k\n,c,l\n0,,m\n1,d,n\n')
    items = read_items(path, text_column="text", label_column="y", aside=["g"])
    X, y, ids = join(items)
    assert X == ["a, b", "c", "d"]
    assert y.tolist() == [1, 0, 1]
    assert ids == ["1", "2", "4"]
    assert items.aside["g"].tolist() == ["k", "l", "n"]
    assert items.skipped == [("row 3", "holds no text")]
    alone = read_items(path, kind="text", label_column="y", aside=["g"])
    assert alone.X == X
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match="holds number values, not texts"):
        read_items(tmp_path / "t.parquet", text_column="a")


def test_no_text_at_all(tmp_path):
    (tmp_path / "t.txt").write_text("")
    with pytest.raises(InvalidInputError, match="is empty; one text a line"):
        read_items(tmp_path / "t.txt")
    (tmp_path / "t.txt").write_text("\n\n")
    with pytest.raises(InvalidInputError, match="None of the 2 texts"):
        read_items(tmp_path / "t.txt")


def test_a_pair_of_texts(tmp_path):
    (tmp_path / "p.txt").write_text("a\nb\n")
    (tmp_path / "u.txt").write_text("c\n")
    X, y, _ = join(*read_pair(tmp_path / "p.txt", tmp_path / "u.txt"))
    assert X == ["a", "b", "c"]
    assert y.tolist() == [1, 1, 0]


# --- embeddings ---------------------------------------------------------------------


def test_npy(tmp_path):
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    array[1, 1] = np.nan
    np.save(tmp_path / "e.npy", array)
    (tmp_path / "ids.txt").write_text("a\nb\nc\n")
    items = read_items(tmp_path / "e.npy", ids=tmp_path / "ids.txt")
    assert items.kind == "embedding"
    assert np.array_equal(items.X, array[[0, 2]])
    assert items.X.dtype == np.float32
    assert items.ids == ["a", "c"]
    assert items.skipped == [("b", "holds NaN or infinity")]
    assert read_items(tmp_path / "e.npy").ids == ["1", "3"]
    (tmp_path / "ids.txt").write_text("a\na\n")
    with pytest.raises(InvalidInputError, match="2 lines, 1 of them different"):
        read_items(tmp_path / "e.npy", ids=tmp_path / "ids.txt")


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros(3), "2-D array"),
        (np.zeros((0, 4)), "2-D array"),
        (np.array([["a"]]), "2-D array of numbers .* holds <U1 of"),
        (np.array([[{"a": 1}]], dtype=object), "read safely"),
        (None, "read safely"),
    ],
)
def test_other_arrays_are_refused(tmp_path, array, says):
    if array is None:
        (tmp_path / "e.npy").write_bytes(b"")
    else:
        np.save(tmp_path / "e.npy", array, allow_pickle=True)
    with pytest.raises(InvalidInputError, match=says):
        read_items(tmp_path / "e.npy")


@pytest.mark.parametrize("fixed", [False, True])
def test_a_vector_column(tmp_path, fixed):
    kind = pa.list_(pa.float32(), 2) if fixed else pa.list_(pa.float32())
    rows = [[1, 2], None, [3, 4]] if fixed else [[1, 2], None, [3, 4], [5]]
    names = [f"k{i}" for i in range(len(rows))]
    arrow = pa.table({"id": names, "v": pa.array(rows, kind)})
    pq.write_table(arrow, tmp_path / "t.parquet")
    for options in ({"vector_column": "v"}, {"kind": "embedding"}):
        items = read_items(tmp_path / "t.parquet", id_column="id", **options)
        assert items.X.tolist() == [[1, 2], [3, 4]]
        assert items.ids == ["k0", "k2"]
        why = {"k1": "0 numbers, not 2", "k3": "1 numbers, not 2"}
        assert dict(items.skipped) == {n: why[n] for n in names if n in why}


def test_vector_columns_that_are_none(tmp_path):
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match="holds number values, not vectors"):
        read_items(tmp_path / "t.parquet", vector_column="a")
    with pytest.raises(InvalidParameterError, match="0 columns of vectors"):
        read_items(tmp_path / "t.parquet", kind="embedding")


def test_embeddings_of_two_widths(tmp_path):
    np.save(tmp_path / "p.npy", np.zeros((2, 3)))
    np.save(tmp_path / "u.npy", np.zeros((2, 4)))
    with pytest.raises(InvalidInputError, match="4 numbers, the others 3"):
        read_pair(tmp_path / "p.npy", tmp_path / "u.npy")
    P, U = read_items(tmp_path / "p.npy"), read_items(tmp_path / "u.npy")
    with pytest.raises(InvalidInputError, match=r"have 3 numbers, .* 4"):
        join(P, U)
    with pytest.raises(InvalidInputError, match="4 numbers, the others 3"):
        read_items(tmp_path / "u.npy", like=P)
    (tmp_path / "t.txt").write_text("1 2\n")
    with pytest.raises(InvalidInputError, match=r"is no \.npy file"):
        read_items(tmp_path / "t.txt", kind="embedding")
