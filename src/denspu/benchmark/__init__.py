"""Measured figures as data: one JSON object a line, written at once.

Benchmarks need pandas and pydantic: ``pip install 'denspu[bench]'``.
"""

from importlib.util import find_spec

from denspu.benchmark.record import (
    Record,
    device_name,
    measure,
    read_records,
    summarize,
    write_record,
)
from denspu.exceptions import MissingDependencyError

if missing := [name for name in ("pandas", "pydantic") if find_spec(name) is None]:
    raise MissingDependencyError(
        f"Benchmarks need {' and '.join(missing)}: pip install 'denspu[bench]'"
    )

__all__ = [
    "Record",
    "device_name",
    "measure",
    "read_records",
    "summarize",
    "write_record",
]
