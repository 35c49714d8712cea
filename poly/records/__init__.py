"""Tuning records: the results of searches, stored in one SQLite file for all processes and used by `poly.compile`."""

from poly.records.choice import RecordFilter
from poly.records.key import Key, key_for
from poly.records.place import find_point, point_text, read_point
from poly.records.record import Record, StoredTrial
from poly.records.replay import schedule_of
from poly.records.store import Store

__all__ = [
    "Key",
    "Record",
    "RecordFilter",
    "Store",
    "StoredTrial",
    "find_point",
    "key_for",
    "point_text",
    "read_point",
    "schedule_of",
]
