"""Chunks put together are what ``read_items`` gives, for every kind of source."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from denspu._frame import Frame
from denspu.data import Items, _tables, iter_items, read_items
from denspu.data._reading import lines_of
from denspu.exceptions import InvalidInputError, InvalidParameterError

N = 23
CHUNKS = [1, 7, 23, 1000]


def images(top):
    rng = np.random.default_rng(0)
    for i in range(N):
        path = top / f"{'ab'[i % 2]}" / f"{i:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (6, 5), dtype=np.uint8)).save(path)
    (top / "a" / "04.png").write_bytes(b"")
    (top / "b" / "07.png").write_text("a text")
    cut = top / "b" / "11.png"
    cut.write_bytes(cut.read_bytes()[:-20])
    return top, {}


def image_list(top):
    images(top / "pictures")
    names = sorted(p.relative_to(top).as_posix() for p in top.rglob("*.png"))
    random.Random(0).shuffle(names)
    (top / "list.txt").write_text("\n".join([*names, "pictures/none.png"]))
    return top / "list.txt", {}


def csv_rows():
    """Give a table with quoted line ends, gaps, and rows of the wrong length."""
    rows = ['id,size,"the town",seen,group']
    for i in range(N):
        town = f'"in\nthe ""{"xyz"[i % 3]}"""' if i % 4 else "NA"
        size = "" if i % 5 == 2 else f"{i / 3}"
        rows.append(f"k{i},{size},{town},2024-01-{i + 1:02d},{i % 2}")
        if i % 9 == 4:
            rows.append("too,short")
        if i % 9 == 7:
            rows.append("")
    return rows


def csv_file(top):
    (top / "t.csv").write_bytes("\r\n".join(csv_rows()).encode())
    return top / "t.csv", {"id_column": "id", "aside": ["group"]}


def tsv_file(top):
    text = "\n".join(csv_rows()).replace(",", "\t")
    (top / "t.tsv").write_bytes("\ufeff".encode() + text.encode())
    return top / "t.tsv", {"aside": ["id"]}


def parquet_file(top):
    table = pa.table(
        {
            "id": [f"k{i}" for i in range(N)],
            "size": pa.array([None if i % 5 == 2 else i / 3 for i in range(N)]),
            "town": pa.array([None if i % 4 == 0 else "xyz"[i % 3] for i in range(N)]),
            "code": pa.array(["ab"[i % 2] for i in range(N)]).dictionary_encode(),
            "day": pa.array(range(N), pa.int32()).cast(pa.date32()),
        }
    )
    pq.write_table(table, top / "t.parquet", row_group_size=5)
    return top / "t.parquet", {"id_column": "id"}


def text_lines(top):
    lines = [f"text {i}\u2028part" if i % 6 else "  " for i in range(N)]
    (top / "t.txt").write_bytes("\r\n".join(lines).encode())
    return top / "t.txt", {}


def text_files(top):
    for i in range(N):
        path = top / f"{i:02d}.txt"
        path.write_bytes(b"xyz\xe9" if i == 5 else b"" if i == 9 else b"text %d" % i)
    return top, {}


def text_column(top):
    csv_file(top)
    return top / "t.csv", {"text_column": "the town", "id_column": "id"}


def npy(top):
    array = np.arange(N * 3, dtype=np.float64).reshape(N, 3)
    array[[4, 22], 1] = np.nan
    np.save(top / "e.npy", np.asfortranarray(array))
    (top / "ids.txt").write_text("\n".join(f"name {i}" for i in range(N)))
    return top / "e.npy", {"ids": top / "ids.txt"}


def vector_column(top):
    rows = [[i, i + 0.5] for i in range(N)]
    rows[3], rows[8], rows[9] = None, [1.0], [np.nan, 1.0]
    table = pa.table(
        {
            "id": [f"k{i}" for i in range(N)],
            "v": pa.array(rows, pa.list_(pa.float32())),
            "group": list(range(N)),
        }
    )
    pq.write_table(table, top / "t.parquet", row_group_size=6)
    options = {"vector_column": "v", "id_column": "id", "aside": ["group"]}
    return top / "t.parquet", options


def vectors_of_integers(top):
    """A gap among integers makes doubles of the whole column, or of one chunk."""
    rows = [[i, 2**25 + 1] for i in range(N)]
    rows[2] = [None, 1]
    table = pa.table({"v": pa.array(rows, pa.list_(pa.int64()))})
    pq.write_table(table, top / "t.parquet")
    return top / "t.parquet", {"vector_column": "v"}


KINDS = {
    f.__name__: f
    for f in (
        images,
        image_list,
        csv_file,
        tsv_file,
        parquet_file,
        text_lines,
        text_files,
        text_column,
        npy,
        vector_column,
        vectors_of_integers,
    )
}


def values(X):
    """Return rows that can be compared, gaps included."""
    if isinstance(X, Frame):
        names = X.columns
        rows = zip(*(X[name].tolist() for name in names), strict=True)
        return [tuple("gap" if v is None or v != v else v for v in row) for row in rows]
    return X if isinstance(X, list) else X.tolist()


def assert_same(parts, whole):
    assert [i for part in parts for i in part.ids] == whole.ids
    assert sorted(s for part in parts for s in part.skipped) == sorted(whole.skipped)
    assert [v for part in parts for v in values(part.X)] == values(whole.X)
    for part in parts:
        assert part.kind == whole.kind
        assert part.plan == whole.plan
        if not isinstance(part.X, Frame | list):
            assert part.X.dtype == whole.X.dtype
            assert part.X.shape[1:] == whole.X.shape[1:]
        if isinstance(part.X, Frame):
            assert [part.X[n].dtype for n in part.X.columns] == [
                whole.X[n].dtype for n in whole.X.columns
            ]
    for name, facts in whole.facts.items():
        assert [v for part in parts for v in part.facts[name]] == facts.tolist()
    for name, aside in whole.aside.items():
        assert [v for part in parts for v in part.aside[name]] == aside.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_put_together_are_the_whole(tmp_path, kind):
    source, options = KINDS[kind](tmp_path)
    plan = read_items(source, **options).plan
    whole = read_items(source, like=plan, **options)
    assert whole.skipped or kind == "parquet_file"
    for chunk in CHUNKS:
        parts = list(iter_items(source, like=plan, chunk=chunk, **options))
        assert all(len(part) + len(part.skipped) <= chunk + 1 for part in parts)
        assert len(parts) >= N // chunk
        assert_same(parts, whole)
        assert_same([Items.together(parts)], whole)
    parts = list(iter_items(source, like=plan, max_bytes=1, **options))
    assert len(parts) >= N - 3, "a chunk ends where the memory does"
    assert_same(parts, whole)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    cells=st.lists(
        st.tuples(st.integers(-5, 5), st.text('ab"\n\r,;\u2028 ', max_size=6)),
        min_size=1,
        max_size=12,
    ),
    chunk=st.integers(1, 5),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_any_table_by_pieces(tmp_path, cells, chunk, end):
    quoted = [f'{n},"{word.replace(chr(34), chr(34) * 2)}"' for n, word in cells]
    path = tmp_path / "t.csv"
    path.write_bytes(end.join(["n,word", *quoted]).encode())
    plan = {"kind": "table", "columns": {"n": "number", "word": "category"}}
    whole = read_items(path, like=plan)
    assert len(whole) == len(cells)
    assert_same(list(iter_items(path, like=plan, chunk=chunk)), whole)


def test_lines_are_those_of_splitlines(tmp_path):
    text = "a\r\nb\rc\n\n\u2028d\x0ce\r\r\n\r\nlong line" + "\r\nx\ry" * 9_000
    for ending in ("", "\n", "\r", "\r\n"):
        (tmp_path / "t.txt").write_bytes((text + ending).encode())
        found = list(lines_of(tmp_path / "t.txt", "utf-8"))
        assert found == (text + ending).splitlines()


@pytest.mark.parametrize(("name", "mark"), [("t.csv", b""), ("t.txt", b"\xef\xbb\xbf")])
def test_the_byte_that_is_not_utf8_is_found_far_down(tmp_path, name, mark):
    head = mark + b"a,b\n" + b"some text,1\n" * 20_000
    (tmp_path / name).write_bytes(head + b"xyz\xe9,2\n" + b"x,1\n" * 9)
    where = f"byte 0xe9 at position {len(head) + 3} \\(line 20002\\)"
    plan = {"kind": "table", "columns": {"a": "category"}}
    if name == "t.txt":
        plan = {"kind": "text"}
    with pytest.raises(InvalidInputError, match=where):
        read_items(tmp_path / name, like=plan)
    with pytest.raises(InvalidInputError, match=where):
        list(iter_items(tmp_path / name, like=plan, chunk=100))


def test_an_id_that_stands_in_two_chunks_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,a\n" + "".join(f"k{i},{i}\n" for i in (*range(9), 3)))
    plan = {"kind": "table", "columns": {"a": "number"}}
    for chunk in (2, 100):
        with pytest.raises(InvalidInputError, match="the id 'k3' stands in several"):
            list(iter_items(path, like=plan, id_column="id", chunk=chunk))


def test_ids_beside_an_array_are_counted_first(tmp_path):
    np.save(tmp_path / "e.npy", np.zeros((3, 2)))
    (tmp_path / "ids.txt").write_text("a\nb\na\n")
    parts = iter_items(
        tmp_path / "e.npy",
        like={"kind": "embedding", "width": 2},
        ids=tmp_path / "ids.txt",
        chunk=1,
    )
    with pytest.raises(InvalidInputError, match="3 lines, 2 of them different"):
        next(parts)


def test_nothing_usable_is_an_error_in_the_end(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "b.png").write_text("text")
    plan = {"kind": "image", "height": 4, "width": 4, "channels": 1, "dtype": "uint8"}
    parts = iter_items(tmp_path, like=plan, chunk=1)
    first = next(parts)
    assert len(first) == 0
    assert first.X.shape == (0, 4, 4, 1)
    assert [name for name, _ in first.skipped] == ["a.png"]
    with pytest.raises(InvalidInputError, match=r"None of the 2 images.*is empty"):
        list(parts)


PLANS = {
    "image": {"height": 4, "width": 4, "channels": 1, "dtype": "uint8"},
    "table": {"columns": {"a": "number"}},
    "text": {},
    "embedding": {"width": 3},
}


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("image", "t.csv", r"a table by its name, and images are wanted \(a folder"),
        ("image", "e.npy", "an array by its name"),
        ("table", "i.png", r"an image by its name, and table rows are wanted \(\.csv"),
        ("table", "", "is a folder; table rows are read from a file"),
        ("table", "e.npy", "an array by its name"),
        ("table", "b.csv", "columns='a': .* has no such column"),
        ("text", "e.npy", "an array by its name, and texts"),
        ("text", "i.png", "an image by its name"),
        ("embedding", "i.png", "an image by its name"),
        ("embedding", "e.npy", "have 2 numbers, the others 3"),
        ("embedding", "t.csv", "0 columns of vectors"),
        ("embedding", "none.npy", "neither a folder nor a file"),
    ],
)
def test_a_source_of_another_kind_is_refused_before_the_first_chunk(
    tmp_path, kind, name, said
):
    (tmp_path / "t.csv").write_text("a\n1\n")
    (tmp_path / "b.csv").write_text("b\n1\n")
    (tmp_path / "i.png").write_bytes(b"png")
    np.save(tmp_path / "e.npy", np.zeros((3, 2)))
    plan = {"kind": kind, **PLANS[kind]}
    for read in (read_items, lambda *a, **k: next(iter_items(*a, **k))):
        with pytest.raises((InvalidInputError, InvalidParameterError), match=said):
            read(tmp_path / name, like=plan)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"chunk": 0}, "chunk must be .* Got 0"),
        ({"chunk": 2.5}, "chunk must be"),
        ({"max_bytes": 0}, "max_bytes must be"),
        ({"label_column": "a"}, "no option 'label_column'"),
        ({"max_pixel": 9}, "Did you mean 'max_pixels'"),
        ({"encoding": "utf-9"}, "encoding='utf-9' is not known"),
        ({"like": None}, "like=None"),
        ({"like": {"kind": "sound"}}, "is no plan"),
    ],
)
def test_wrong_arguments_are_told_at_once(tmp_path, options, said):
    (tmp_path / "t.csv").write_text("a\n1\n")
    like = {"kind": "table", "columns": {"a": "number"}}
    with pytest.raises(InvalidParameterError, match=said):
        iter_items(tmp_path / "t.csv", **{"like": like, **options})


def test_a_long_table_is_not_held(tmp_path, monkeypatch):
    """Between two chunks no more than one of them is alive."""
    import gc
    import weakref

    path = tmp_path / "t.csv"
    path.write_text("a\n" + "1\n" * 40)
    alive = weakref.WeakSet()
    make = _tables.RawTable.__init__

    def noted(self, *args, **kwargs):
        make(self, *args, **kwargs)
        alive.add(self)

    monkeypatch.setattr(_tables.RawTable, "__init__", noted)
    plan = {"kind": "table", "columns": {"a": "number"}}
    for part in iter_items(path, like=plan, chunk=10):
        assert len(part) == 10
        gc.collect()
        assert len(alive) <= 2
