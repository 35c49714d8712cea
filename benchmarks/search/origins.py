"""The machine a table is from: told when it is made, and put before the model when it is read anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks.case import Case
from benchmarks.peers.compiler import compiler_version
from benchmarks.search.table import Origin
from microkernels.isa import ISAS
from poly.errors import RecordError
from poly.machine import Bandwidth, Cache, Machine, Measured, Peak, facts, machine, measured
from poly.model import Caches
from poly.model.rates import from_machine
from poly.spaces.derive import derive
from poly.spaces.space import Space
from poly.version import __version__


@dataclass(frozen=True)
class Host:
    """A machine and its rates, as the model takes them."""

    machine: Machine
    measured: Measured

    def caches(self) -> Caches:
        """One core's share of each level; 0 where there is none."""

        def share(level: int) -> int:
            found = self.machine.cache(level)
            return self.machine.share(found) if found else 0

        return Caches(share(1), share(2), share(3))

    def space(self, case: Case, threads: int) -> Space:
        """The small space of a problem, as it is for this machine."""
        nest = case.nest().with_sizes(case.sizes)
        return derive(nest, self.machine.isa, threads, self.caches(), from_machine(self.measured, threads), coarse=True)


def this() -> Host:
    """The machine that this process runs on, its rates measured if they never were."""
    return Host(machine(), measured(machine()))


def origin(host: Host) -> Origin:
    """What a table made now says of itself. Raises ToolchainError where there is no compiler."""
    day = datetime.now(UTC).date().isoformat()
    return Origin(facts(host.machine, host.measured), compiler_version(), __version__, day)


def described(told: Mapping[str, Any]) -> Host:
    """The machine from a table's facts. Raises RecordError where they are not those of a machine."""
    try:
        caches = tuple(Cache(**cache) for cache in told["caches"])
        here = Machine(told["cpu"], ISAS[told["isa"]], told["cores"], caches)
        rates = Measured(
            tuple(Peak(**peak) for peak in told["peaks"]), tuple(Bandwidth(**rate) for rate in told["bandwidths"])
        )
    except (KeyError, TypeError) as error:
        raise RecordError(f"the table's machine cannot be read: {error!r}. Measure the table again.") from error
    return Host(here, rates)
