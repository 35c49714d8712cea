"""The machine of a table: described when the table is made, and given to the model when it is read anywhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks.case import Case
from benchmarks.peers.compiler import compiler_version
from benchmarks.search.table import Origin
from microkernels.isa import ISAS
from poly.autoschedule.derive import derive
from poly.autoschedule.spaces.space import Space
from poly.errors import RecordError
from poly.machine import Cache, Machine, Measured, calibration, facts, machine, measured
from poly.machine.measured import parsed
from poly.model import Caches
from poly.model.core import Target
from poly.model.host import caches_of
from poly.model.rates import from_machine
from poly.version import __version__


@dataclass(frozen=True)
class Host:
    """A machine and its calibration: what the model knows about it."""

    machine: Machine
    measured: Measured

    def caches(self) -> Caches:
        """One core's share of each cache level; 0 for a level that does not exist."""
        return caches_of(self.machine)

    def space(self, case: Case, threads: int) -> Space:
        """The small space of a problem on this machine."""
        nest = case.nest().with_sizes(case.sizes)
        rates = from_machine(self.measured, self.machine.isa, threads)
        return derive(nest, Target(self.machine.isa, self.caches(), rates, threads), coarse=True)


def this() -> Host:
    """The machine that this process runs on; its rates are measured if they never were, which takes some seconds."""
    here = machine()
    return Host(here, measured(here))


def origin(host: Host) -> Origin:
    """The origin of a table made now. Raises ToolchainError if there is no compiler."""
    day = datetime.now(UTC).date().isoformat()
    return Origin(facts(host.machine, host.measured), compiler_version(), __version__, day)


def described(host: Mapping[str, Any]) -> Host:
    """The machine from a table's facts. Raises RecordError if they do not describe a machine."""
    try:
        caches = tuple(Cache(**cache) for cache in host["caches"])
        rates = parsed(json.dumps(_with_tiles(host)))
        if rates is None:
            raise KeyError("its rates")
        return Host(Machine(host["cpu"], ISAS[host["isa"]], host["cores"], caches), rates)
    except (KeyError, TypeError) as error:
        raise RecordError(f"the table's machine cannot be read: {error!r}. Measure the table again.") from error


def _with_tiles(host: Mapping[str, Any]) -> Mapping[str, Any]:
    """The facts with all costs of register tiles: an older table has only speeds; the rest is a described CPU's."""
    if isinstance(host["tiles"], Mapping):
        return host
    sizes = tuple(cache["bytes"] for cache in host["caches"])
    known = calibration.described(host["isa"], sizes).tiles
    assert known is not None, "every described CPU has them"
    return {**host, "tiles": {**asdict(known), "speeds": host["tiles"]}}
