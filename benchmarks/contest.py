"""The contest for a target: its entrants, their bound, and the measurement of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from benchmarks import report
from benchmarks.case import Case
from benchmarks.contender import Solver
from benchmarks.environment import environment
from benchmarks.issue import issue_rate
from benchmarks.ours import NAME, Poly
from benchmarks.peers import PEERS, NamedPeer
from benchmarks.probe import PeakProbe
from benchmarks.remote import Remote
from benchmarks.roofline import bound
from benchmarks.runner import Announce, Rounds, measure
from microkernels.dtypes import DType, f32
from poly.machine import Measured, machine
from poly.machine.target import parse
from poly.measure import process
from poly.timing.load import Watch

Plan = Sequence[tuple[Case, int]]
"""What to measure, on how many threads."""

SPINNING = {"OPENBLAS_THREAD_TIMEOUT": "24", "KMP_BLOCKTIME": "20"}
"""Spin for 2^24 cycles and for 20 ms, which is less than the runner waits, and more than a loop of calls needs."""


@dataclass(frozen=True)
class Contest:
    """Our solver for a target, the peers by name, the probe of the peak, and a case's roofline bound in GFLOP/s.

    `setting` is the context in which their processes must run; `issue` makes a probe of the issue rate.
    """

    target: str
    ours: Solver
    peers: Mapping[str, Solver]
    probe: Callable[[DType, int], Callable[[], float]]
    bound: Callable[[Case, int, float], float]
    setting: Callable[[], AbstractContextManager[None]] = nullcontext
    issue: Callable[[int], Callable[[], float] | None] = lambda threads: None

    def lines(
        self,
        plan: Plan,
        names: Sequence[str],
        budget: Rounds,
        progress: Callable[[int], AbstractContextManager[Announce]],
    ) -> Iterator[report.ResultLine]:
        """Measure the plan against these peers, with a line for each case as it is done."""
        cpus = process.allowed()
        with ExitStack() as stack:
            stack.enter_context(self.setting())
            solvers = {NAME: self.ours, **{name: self.peers[name] for name in names}}
            entrants = [stack.enter_context(Remote(name, solver, cpus)) for name, solver in solvers.items()]
            announce = stack.enter_context(progress(len(plan)))
            stack.callback(process.release, cpus)
            for case, threads in plan:
                date, watch = datetime.now(UTC), Watch.start()
                probe, issue = self.probe(case.dtype, threads), self.issue(threads)
                result = measure(case, threads, entrants, probe, budget, announce, issue)
                result = replace(result, date=date, load=watch.load())
                announce("")
                yield report.ResultLine(result, self.bound(case, threads, result.peak.median), NAME, self.target)


def in_c(
    target: str, rates: Measured, ours: Solver | None = None, peers: Mapping[str, Solver] | None = None
) -> Contest:
    """The contest of our C target with the libraries for this CPU; the peak is that of the target's instructions.

    `ours` and `peers` are others than our default kernels and these libraries.
    Raises TargetError for a target that is unknown or cannot run here.
    """
    cpus, isa = process.allowed(), parse(target).isa
    return Contest(
        target,
        ours or Poly(target),
        {name: NamedPeer(name) for name in PEERS} if peers is None else peers,
        lambda dtype, threads: PeakProbe(cpus, dtype if dtype.is_float else f32, threads, isa),
        lambda case, threads, peak: bound(case, threads, peak, machine(), rates),
        short_spinning,
        issue_rate,
    )


def short_spinning() -> AbstractContextManager[None]:
    """Have the libraries of processes started meanwhile spin for a shorter time than the runner waits.

    Their threads spin after a call, in case there is another one soon: those of OpenBLAS for a tenth of a second, which
    made the next contender, which shares its CPUs with them, three times slower.
    """
    return environment(SPINNING)
