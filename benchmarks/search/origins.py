"""The machine of a table: described when the table is made, and given to the model when it is read anywhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from benchmarks import toolchain
from benchmarks.case import Case
from benchmarks.search.table import Origin
from microkernels.isa import ISAS
from poly.autoschedule.derive import derive
from poly.autoschedule.spaces.space import Space
from poly.errors import RecordError
from poly.machine import Cache, Machine, Measured, calibration
from poly.machine.measured import parsed
from poly.model import Caches
from poly.model.core import Target
from poly.model.host import caches_of
from poly.model.rates import Rates, from_machine, nominal
from poly.version import __version__


@dataclass(frozen=True)
class Host:
    """A machine and its calibration: what the model knows about it."""

    machine: Machine
    measured: Measured

    def caches(self, threads: int) -> Caches:
        """The share of each cache level that each of so many busy cores has; 0 for a level that does not exist."""
        return caches_of(self.machine, threads)

    def rates(self, threads: int) -> Rates:
        """The rates of each of so many threads, by the calibration."""
        return from_machine(self.measured, self.machine.isa, threads)

    def space(self, case: Case, threads: int, rates: Rates | None = None) -> Space:
        """The small space of a problem on this machine; its costs are by other rates if they are given.

        Its choice does not know that poly describes this machine, if it does.
        """
        nest = case.nest().with_sizes(case.sizes)
        known, similar = rates or self.rates(threads), nearest_other(self.machine).rates(threads)
        caches = self.caches(threads).within(known)
        return derive(nest, Target(self.machine.isa, caches, known, threads, similar=similar), coarse=True)


def origin(machine: Machine) -> Origin:
    """The origin of a table made now, without a calibration. Raises ToolchainError if there is no compiler."""
    day = datetime.now(UTC).date().isoformat()
    caches = [asdict(cache) for cache in machine.caches]
    facts = {"cpu": machine.cpu, "isa": machine.isa.name, "cores": machine.cores, "caches": caches}
    return Origin(facts, toolchain.host().version, __version__, day)


def calibrated(machine: Machine, origin: Origin) -> Origin:
    """The origin with a new calibration, which takes some seconds and is not kept elsewhere."""
    return replace(origin, machine={**origin.machine, **asdict(calibration.measure(machine))})


def described(facts: Mapping[str, Any]) -> Host:
    """The machine from a table's facts. Raises RecordError if they do not describe a machine."""
    try:
        machine = _machine(facts)
        rates = parsed(json.dumps(_with_tiles(facts, machine)))
        if rates is None:
            raise KeyError("its rates")
        return Host(machine, rates)
    except (KeyError, TypeError) as error:
        raise RecordError(f"the table's machine cannot be read: {error!r}. Measure the table again.") from error


def _machine(facts: Mapping[str, Any]) -> Machine:
    caches = tuple(Cache(**cache) for cache in facts["caches"])
    return Machine(facts["cpu"], ISAS[facts["isa"]], facts["cores"], caches)


def _with_tiles(facts: Mapping[str, Any], machine: Machine) -> Mapping[str, Any]:
    """The facts with all costs of register tiles: an older table has only speeds; the rest is a described CPU's."""
    if isinstance(facts["tiles"], Mapping):
        return facts
    known = calibration.described(machine.isa.name, sizes(machine)).tiles
    assert known is not None, "every described CPU has them"
    return {**facts, "tiles": {**asdict(known), "speeds": facts["tiles"]}}


def sizes(machine: Machine) -> tuple[int, ...]:
    """The bytes of each cache."""
    return tuple(cache.bytes for cache in machine.caches)


@cache
def cpus() -> tuple[Host, ...]:
    """The CPUs that poly describes: the model was fitted on them."""
    return tuple(map(described, calibration.cpus()))


def alike(one: Machine, other: Machine) -> bool:
    """Whether two machines are the same CPU, used by the same instruction set."""
    return (one.cpu, one.isa.name) == (other.cpu, other.isa.name)


def nearest_other(machine: Machine) -> Host:
    """The described CPU that the model would use before calibration if it did not describe this one.

    It has the same instruction set if there is one, and the most similar caches.
    """
    others = [facts for facts in calibration.cpus() if not alike(_machine(facts), machine)]
    return described(calibration.nearest(machine.isa.name, sizes(machine), others))


def uncalibrated(machine: Machine) -> Rates:
    """The rates that the model would assume before calibration if poly did not describe the machine's CPU."""
    return nominal(machine.isa, sizes(machine), hidden=machine.cpu)
