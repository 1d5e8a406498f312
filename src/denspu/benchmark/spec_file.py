"""A spec's TOML file, read with nothing left to guess.

Unknown keys are refused with the nearest known one: a misspelt setting must not run as
a default. What keys mean to each other is checked in ``spec_checks.py``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, cast

from denspu.benchmark.spec import Row, Spec, Task
from denspu.benchmark.spec_checks import check_spec
from denspu.data._sets import find_set
from denspu.exceptions import InvalidParameterError, did_you_mean

WORDS: dict[str, tuple[str, ...]] = {
    "scenario": ("one-sample", "two-sample"),
    "mechanism": ("scar", "sar"),
    "share_of": ("positives", "training set"),
    "prior": ("none", "true", "estimate"),
    "encoder": ("own", "shared"),
    "oracle": ("no", "negatives", "all"),
    "cut": ("own", "true prior"),
    "device": ("any", "cpu"),
    "selection": ("last", "label-free"),
    "layout": ("metrics", "tasks"),
}
FROM_THE_FILE = ("name", "path")
"""What a spec does not say of itself."""


def load_spec(path: str | Path) -> Spec:
    """Read and check a spec.

    Raises
    ------
    InvalidParameterError
        If the file is missing, is no TOML, or holds a key or value that is not known;
        the message names it and what is allowed.
    """
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidParameterError(
            f"There is no spec at {path}. Those that come with denspu are in "
            "benchmarks/specs."
        ) from None
    except OSError as error:
        raise InvalidParameterError(
            f"The spec {path} cannot be read: {error.strerror}. Name a TOML file."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidParameterError(f"{path} is not a TOML file: {error}.") from None
    return replace(parse_spec(table, path.stem), path=str(path))


def parse_spec(table: Mapping[str, Any], name: str) -> Spec:
    """Return the spec a table of settings describes."""
    where = f"spec {name!r}"
    for key in FROM_THE_FILE:
        if key in table:
            raise InvalidParameterError(
                f"{where} gives itself a {key}. That of its file is meant: leave it "
                "out."
            )
    given = {"name": name, **table}
    given["tasks"] = tuple(
        _in_order(_part(Task, t, f"task {i + 1} of {where}"))
        for i, t in enumerate(_tables(given, "tasks", where))
    )
    given["rows"] = tuple(
        _part(Row, r, f"row {i + 1} of {where}")
        for i, r in enumerate(_tables(given, "rows", where))
    )
    spec = cast(Spec, _part(Spec, given, where))
    check_spec(spec, where)
    return spec


def _in_order(task: Task) -> Task:
    """Return a task with its classes in order, and not named where they are usual."""
    if task.positive is None:
        return task
    positive = tuple(sorted(set(task.positive)))
    usual = tuple(sorted(find_set(task.dataset).positive))
    return replace(task, positive=None if positive == usual else positive)


def _tables(given: Mapping[str, Any], key: str, where: str) -> list[Any]:
    found = given.get(key)
    if isinstance(found, Mapping):
        raise InvalidParameterError(
            f"{where} has [{key}] as one table. There may be several: write [[{key}]]."
        )
    if not isinstance(found, list) or not found:
        raise InvalidParameterError(
            f"{where} has no {key}. Write at least one [[{key}]] table."
        )
    return found


def _part(kind: type, given: Mapping[str, Any], where: str) -> Any:
    """Build one dataclass from a table, refusing what it does not know."""
    if not isinstance(given, Mapping):
        raise InvalidParameterError(f"{where} must be a table, not {given!r}.")
    known = {f.name: f for f in fields(kind)}
    for key in given:
        if key not in known:
            words = [k for k in known if kind is not Spec or k not in FROM_THE_FILE]
            raise InvalidParameterError(
                f"{where} has no setting {key!r}.{did_you_mean(key, words)} "
                f"It takes: {', '.join(words)}."
            )
    for key, f in known.items():
        required = f.default is MISSING and f.default_factory is MISSING
        if required and key not in given:
            raise InvalidParameterError(f"{where} lacks {key!r}.")
    checked = {k: _value(k, str(known[k].type), v, where) for k, v in given.items()}
    return kind(**checked)


def _value(key: str, kind: str, value: Any, where: str) -> Any:
    """Check one value by the type its field declares; lists become tuples."""
    if key in WORDS:
        if value not in WORDS[key]:
            allowed = " or ".join(repr(word) for word in WORDS[key])
            raise InvalidParameterError(
                f"{key}={value!r} of {where} must be {allowed}."
                f"{did_you_mean(str(value), WORDS[key])}"
            )
        return value
    if kind.startswith("tuple"):
        if not isinstance(value, list | tuple):
            example = '["one", "two"]' if "str" in kind else "[0, 1]"
            raise InvalidParameterError(
                f"{key}={value!r} of {where} must be a list, such as {example}."
            )
        of = str if "str" in kind else int if "int" in kind else object
        if not all(isinstance(v, of) and not isinstance(v, bool) for v in value):
            raise InvalidParameterError(
                f"{key}={value!r} of {where} must hold {of.__name__} values only."
            )
        return tuple(value)
    if kind.startswith("Mapping"):
        if not isinstance(value, Mapping):
            raise InvalidParameterError(f"{key} of {where} must be a table.")
        return dict(value)
    if kind == "bool":
        if not isinstance(value, bool):
            raise InvalidParameterError(
                f"{key}={value!r} of {where} must be true or false."
            )
        return value
    wanted: tuple[type, ...] = (str,)
    if "float" in kind:
        wanted = (int, float)
    elif kind.startswith("int"):
        wanted = (int,)
    if not isinstance(value, wanted) or isinstance(value, bool):
        names = " or ".join(t.__name__ for t in wanted)
        raise InvalidParameterError(f"{key}={value!r} of {where} must be {names}.")
    return value
