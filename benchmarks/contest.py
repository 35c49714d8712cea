"""The contest for a target: its entrants, their bound, and the measurement of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import numpy as np

from benchmarks import report
from benchmarks.case import Case
from benchmarks.contender import Solver
from benchmarks.environment import environment
from benchmarks.issue import issue_rate
from benchmarks.ours import NAME, Poly
from benchmarks.peers import PEERS, NamedPeer
from benchmarks.peers.compiler import NO_WIDER, CompiledLoops
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

WIDER = ("X86_V4", "AVX512")
"""The first letters of NumPy's features beyond AVX2."""


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

    On a wider CPU, the target AVX2 holds the libraries to AVX2, too, as if it were a CPU of that kind. `ours` and
    `peers` are others than our default kernels and these libraries.
    Raises TargetError for a target that is unknown or cannot run here.
    """
    cpus, isa = process.allowed(), parse(target).isa
    narrow = isa.name == "avx2" and machine().isa.name == "avx512"
    known: dict[str, Solver] = {name: NamedPeer(name) for name in PEERS}
    if narrow:
        known[CompiledLoops.name] = CompiledLoops(NO_WIDER)
    return Contest(
        target,
        ours or Poly(target),
        known if peers is None else peers,
        lambda dtype, threads: PeakProbe(cpus, dtype if dtype.is_float else f32, threads, isa),
        lambda case, threads, peak: bound(case, threads, peak, machine(), rates),
        partial(setting, within_avx2() if narrow else {}),
        issue_rate,
    )


def within_avx2() -> dict[str, str]:
    """The variables by which the libraries take AVX2 for all that the CPU has."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return {
        "ATEN_CPU_CAPABILITY": "avx2",
        "BLIS_ARCH_TYPE": "3",
        "LIBXSMM_TARGET": "hsw",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in found if name.startswith(WIDER)),
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    }


def setting(further: Mapping[str, str]) -> AbstractContextManager[None]:
    """Have the libraries of processes started meanwhile spin for a shorter time than the runner waits; and `further`.

    Their threads spin after a call, in case there is another one soon: those of OpenBLAS for a tenth of a second, which
    made the next contender, which shares its CPUs with them, three times slower.
    """
    return environment({**SPINNING, **further})
