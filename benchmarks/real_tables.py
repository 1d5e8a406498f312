"""Readers of tables: a few formats, then one way to columns and a positive class."""

from __future__ import annotations

import bz2
import io
import lzma
import warnings
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from real_data import Task

Options = Mapping[str, Any]
RULES = ("positive", "above", "below", "over", "known")
GAPS = ("?", "<null>", "NA", "")


def read_table(task: Task, folder: Path) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return the columns and the positive rows of a task from an unpacked package."""
    given = task.options
    table = READERS[task.reader](folder, given)
    table.columns = [str(name).strip() for name in table.columns]
    for name, wanted in given.get("only", {}).items():
        table = table[_is_one_of(table[name], wanted)]
    name = given.get("target", table.columns[-1])
    if "known" not in given:
        table = table[table[name].notna()]
    y = is_positive(table[name], given).astype(np.int64)
    table = table.drop(columns=[name, *given.get("drop", [])])
    return plain_columns(table.dropna(axis=1, how="all")), y


# --- which rows are positive ----------------------------------------------------------


def is_positive(target: pd.Series, given: Options) -> NDArray[np.bool_]:
    """Tell the positive rows by the one rule that a task states.

    ``positive`` lists values; ``above`` and ``below`` cut numbers at a quantile,
    ``over`` at a number; ``known`` takes the rows that have a value at all.
    """
    rules = [rule for rule in RULES if rule in given]
    if len(rules) != 1:
        raise ValueError(f"one rule for positive rows is needed, not {rules}")
    (rule,) = rules
    if rule == "positive":
        return _is_one_of(target, given["positive"])
    if rule == "known":
        return target.notna().to_numpy()
    numbers = pd.to_numeric(target).to_numpy(dtype=float)
    if rule == "over":
        return numbers > given["over"]
    cut = np.quantile(numbers, given[rule])
    return numbers > cut if rule == "above" else numbers < cut


def _is_one_of(values: pd.Series, wanted: list[Any]) -> NDArray[np.bool_]:
    """Tell which values are wanted; a value that is nowhere is a mistake."""
    if pd.api.types.is_numeric_dtype(values) and values.dtype != bool:
        found, asked = values.astype(float), [float(value) for value in wanted]
    else:
        found = values.astype(str).str.strip()
        asked = [str(value) for value in wanted]
    strange = set(asked) - set(found)
    if strange:
        raise ValueError(f"no row has {sorted(strange)}; there are {set(found)}")
    return found.isin(asked).to_numpy()


def plain_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return numbers as floats, anything else as text, gaps as NaN and None."""
    columns = {}
    for name in table.columns:
        values = table[name]
        if pd.api.types.is_numeric_dtype(values):
            columns[name] = values.astype(float).to_numpy()
        else:
            text = values.astype(str).str.strip().to_numpy(dtype=object)
            gaps = values.isna().to_numpy() | np.isin(text.astype(str), GAPS)
            columns[name] = pd.Series(np.where(gaps, None, text), dtype=object)
    return pd.DataFrame(columns)


# --- formats --------------------------------------------------------------------------


def read_csv(folder: Path, given: Options) -> pd.DataFrame:
    """Read separated values, packed or not; columns without names are numbered."""
    path = folder / given["member"]
    table = pd.read_csv(
        path,
        sep=given.get("sep", ","),
        decimal=given.get("decimal", "."),
        header=0 if given.get("header", True) else None,
        na_values=[*GAPS, *given.get("gaps", [])],
        keep_default_na=False,
        skipinitialspace=True,
        encoding=given.get("encoding", "utf-8"),
        low_memory=False,
    )
    if "labels" in given:  # the classes have a file of their own
        labels = pd.read_csv(folder / given["labels"], header=None, names=["label"])
        table = pd.concat([table, labels], axis=1)
    return table


def read_arff(folder: Path, given: Options) -> pd.DataFrame:
    """Read ARFF, or KEEL's dialect of it."""
    text = (folder / given["member"]).read_text(encoding="latin-1")
    names, rows = [], []
    for row in text.splitlines():
        words = row.split(None, 1)
        if not words or words[0].startswith(("%", "#")):
            continue
        if words[0].lower() == "@attribute":
            names.append(_attribute(words[1]))
        elif not words[0].startswith("@"):
            rows.append(row)
    return pd.read_csv(
        io.StringIO("\n".join(rows)),
        names=names,
        header=None,
        na_values=list(GAPS),
        keep_default_na=False,
        skipinitialspace=True,
        quotechar="'",
    )


def _attribute(words: str) -> str:
    """Return the name in a declaration, which may be quoted or touch its values."""
    if words[0] in "'\"":
        return words[1:].split(words[0], 1)[0]
    return words.split("{", 1)[0].split(None, 1)[0]


def read_excel(folder: Path, given: Options) -> pd.DataFrame:
    """Read the first sheet of a workbook."""
    return pd.read_excel(folder / given["member"], header=given.get("header", 0))


def read_r(folder: Path, given: Options) -> pd.DataFrame:
    """Read the ``object`` of an R ``library``, or of the R file ``member``.

    Libraries keep each object in a file of its own, or all of them in one store.
    """
    name = given.get("object")
    path = folder / given["member"] if "member" in given else r_file(folder, given)
    raw = stored(path, given["object"]) if path.suffix == ".rdx" else path.read_bytes()
    found = r_object(raw)
    if isinstance(found, dict) and name in found:
        found = found[name]
    return pd.DataFrame(found).reset_index(drop=True)


def r_file(folder: Path, given: Options) -> Path:
    """Return the file in which a library of a Debian package keeps an object."""
    (home,) = folder.glob(f"usr/lib/R/*/{given['library']}/data")
    if (home / "Rdata.rdx").exists():
        return home / "Rdata.rdx"
    own = given.get("file", given["object"])
    return next(path for path in home.glob(f"{own}.*") if path.stem == own)


def r_object(raw: bytes) -> Any:
    """Return what R has serialised; classes unknown here become plain values."""
    import rdata

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rdata.conversion.convert(rdata.parser.parse_data(raw))


def stored(index: Path, name: str) -> bytes:
    """Return one object, still serialised, of the store in which R keeps data."""
    places = r_object(index.read_bytes())["variables"]
    first, length = (int(number) for number in places[name])
    with index.with_suffix(".rdb").open("rb") as file:
        file.seek(first)
        block = file.read(length)
    way, packed = block[4:5], block[5:]  # after four bytes of length
    if way == b"2":
        return bz2.decompress(packed)
    if way == b"Z":
        return lzma.decompress(packed, format=lzma.FORMAT_RAW, filters=R_FILTERS)
    return zlib.decompress(block[4:])


R_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6}]

READERS: dict[str, Callable[[Path, Options], pd.DataFrame]] = {
    "csv": read_csv,
    "arff": read_arff,
    "excel": read_excel,
    "r": read_r,
}
