"""The machines whose records apply here: this CPU and its OpenCL devices."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from poly.errors import RecordError
from poly.records.key import device_name, machine_name
from poly.records.record import Record
from poly.records.store import Store


def machines_here(records: Iterable[Record]) -> tuple[str, ...]:
    """The names of this CPU and, if some record is for a device, of the devices found here.

    Searching for devices takes time, which is saved if nothing was tuned for one.
    """
    if not any(record.key.of_device for record in records):
        return (machine_name(),)
    from codegen.opencl.devices import usable

    return (machine_name(), *(device_name(device) for device in usable()))


def machines_of(store: Store) -> tuple[str, ...]:
    """The same for the records of a store, which may be unsound."""
    with suppress(RecordError):
        return machines_here(store.sound_records())
    return (machine_name(),)
