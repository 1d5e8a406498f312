"""Measured figures as data: one JSON object a line, written at once."""

from denspu.benchmark.measure import device_name, measure, peak_memory
from denspu.benchmark.record import Record, read_records, summarize, write_record

__all__ = [
    "Record",
    "device_name",
    "measure",
    "peak_memory",
    "read_records",
    "summarize",
    "write_record",
]
