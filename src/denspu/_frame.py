"""A small table of named columns, for where pandas is not installed.

It has just the part of a DataFrame's interface that the gate and the tabular encoder
use: ``columns``, ``iloc``, ``frame[name]``, ``to_numpy``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from denspu._typing import BoolArray
from denspu.exceptions import InvalidInputError


class Column(np.ndarray[Any, Any]):
    """One column: a 1-D array of floats, or of texts and None."""

    def isna(self) -> BoolArray:
        """Return where a value is missing: None or NaN."""
        plain = self.to_numpy()
        if plain.dtype.kind == "f":
            return np.isnan(plain)
        if plain.dtype.kind != "O":
            return np.zeros(len(plain), dtype=bool)
        return np.array([v is None or v != v for v in plain], dtype=bool)

    def notna(self) -> BoolArray:
        """Return where a value is present."""
        return ~self.isna()

    def where(self, keep: Any, other: Any) -> Column:
        """Return the values where ``keep`` is true, and ``other`` elsewhere."""
        return np.where(keep, self, other).view(Column)

    def to_numpy(self) -> NDArray[Any]:
        """Return a plain array."""
        return self.view(np.ndarray)


class Frame:
    """Named columns of one length.

    Parameters
    ----------
    columns : mapping of name to values
        Numbers become floats; anything else stays as objects, with None for a gap.

    Examples
    --------
    >>> frame = Frame({"age": [31, 44, None], "town": ["A", None, "B"]})
    >>> frame
    Frame of 3 rows: age (float64), town (object)
    >>> frame.iloc[[0, 2]]["town"].tolist()
    ['A', 'B']
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = {name: _as_column(values) for name, values in columns.items()}
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) > 1:
            raise InvalidInputError(
                f"Columns have different lengths: {sorted(lengths)}. Give each column "
                "one value a row."
            )
        self._length = lengths.pop() if lengths else 0

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._length, len(self._columns)

    @property
    def iloc(self) -> _Locator:
        """Rows by position."""
        return _Locator(self)

    def take(self, positions: Any, axis: int = 0) -> Frame:
        """Return rows or columns (``axis=1``) by position, as scikit-learn asks."""
        if axis == 1:
            return self[[self.columns[i] for i in positions]]
        return self.iloc[positions]

    def to_numpy(self, dtype: Any = None) -> NDArray[Any]:
        """Return a 2-D array: floats where every column holds numbers."""
        kinds = {column.dtype.kind for column in self._columns.values()}
        dtype = dtype or (np.float64 if kinds <= set("biuf") else object)
        table = np.empty(self.shape, dtype=dtype)
        for i, column in enumerate(self._columns.values()):
            table[:, i] = column
        return table

    def copy(self, deep: bool = True) -> Frame:
        """Return a new frame, with the same columns or with copies of them."""
        return Frame({n: c.copy() if deep else c for n, c in self._items()})

    def _items(self) -> list[tuple[str, Column]]:
        return list(self._columns.items())

    def __getitem__(self, key: str | Sequence[str]) -> Any:
        if isinstance(key, str):
            return self._columns[key]
        return Frame({name: self._columns[name] for name in key})

    def __setitem__(self, name: str, values: Any) -> None:
        self._columns[name] = _as_column(values)

    def __len__(self) -> int:
        return self._length

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.to_numpy(dtype)

    def __repr__(self) -> str:
        named = ", ".join(f"{n} ({c.dtype})" for n, c in self._items()[:12])
        more = ", ..." if len(self._columns) > 12 else ""
        return f"Frame of {self._length} rows: {named}{more}"

    @classmethod
    def stacked(cls, frames: Sequence[Frame]) -> Self:
        """Put frames with the same columns below each other."""
        return cls(
            {n: np.concatenate([f[n] for f in frames]) for n in frames[0].columns}
        )


class _Locator:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __getitem__(self, rows: Any) -> Frame:
        return Frame({name: column[rows] for name, column in self._frame._items()})


def _as_column(values: Any) -> Column:
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        array = array.astype(np.float64)
    elif array.dtype.kind != "f":
        array = _as_numbers(np.asarray(values, dtype=object))
    if array.ndim != 1:
        raise InvalidInputError(
            f"A column has shape {array.shape}; give each column one value a row."
        )
    return array.view(Column)


def _as_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return floats where objects are numbers and None, else the objects."""
    present = [v for v in values.ravel() if v is not None]
    numbers = (int, float, np.integer, np.floating)
    if not present or any(
        isinstance(v, bool) or not isinstance(v, numbers) for v in present
    ):
        return values
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
