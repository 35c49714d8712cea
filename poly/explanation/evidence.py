"""Earlier measurements of a schedule: its tuning record, or a trial of a search."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from poly.explanation.values import Measurement
from poly.ir.nest import Nest
from poly.machine.target import Backend
from poly.records.key import key_for
from poly.records.store import Store
from poly.schedules.schedule import Schedule


def measurement(
    nest: Nest, schedule: Schedule, target: Backend, threads: int, sizes: Mapping[str, int]
) -> Measurement | None:
    """The time of a call with this schedule, at these values of the sizes that are open in `nest`; None if unknown.

    Raises:
        RecordError: the store cannot be read.
        ToolchainError: there is no C compiler, which is part of a record's key.
    """
    store = Store.open()
    if not store.exists():
        return None
    key, steps = key_for(nest, target.isa, threads, target.device), schedule.to_json()
    best = store.best(key)
    if best is not None and best.schedule == steps and dict(best.at) == dict(sizes):
        return Measurement(best.seconds, str(best), best.point)
    if sizes:
        return None
    trials = [trial for trial in store.trials(key) if trial.schedule == steps and trial.samples]
    if not trials:
        return None
    return Measurement(median(trials[-1].samples), f"a trial of {trials[-1].when:%Y-%m-%d %H:%M} UTC", trials[-1].point)
