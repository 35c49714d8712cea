"""An entrant, poly or a peer, in a process of its own, and the runner's end of the pipe to it.

Libraries for the same job interfere in one process: their symbols have the same names, each brings an OpenMP runtime
with spinning threads, and one that crashes takes all with it. So each runs in its own process, to which the runner
sends orders through a pipe. The clock runs in the worker, so the pipe's cost is not measured.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType

from benchmarks.arrays import Array, Arrays
from benchmarks.case import Case
from benchmarks.clock import renewed
from benchmarks.contender import Contender, Failed, NotInstalled, Solver, Tuned
from benchmarks.problems.program import Program
from poly.measure import process
from poly.measure.process import choose, spread


@dataclass(frozen=True)
class _Prepare:
    """Prepare a case, run it once, and send the result."""

    case: Case
    threads: int
    cpus: tuple[int, ...]


@dataclass(frozen=True)
class _Repeat:
    """Run the case `times` times; the answer is the total in seconds."""

    times: int


@dataclass(frozen=True)
class Ready:
    """The answer to Prepare."""

    version: str
    config: str
    in_c: bool
    result: Arrays
    building: float | None
    workspace: int | None
    first: float
    tuned: Tuned | None = None


@dataclass(frozen=True)
class Refusal:
    """The answer to Prepare if there is no contender. Without a reason, the entrant does not support the case."""

    reason: str = ""
    installed: bool = True


def _serve(solver: Solver, connection: Connection) -> None:
    """Follow orders until the pipe is closed. An interrupt from the keyboard is left to the runner, which closes it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    contender: Contender | None = None
    pinned = False
    while True:
        try:
            order = connection.recv()
        except EOFError:
            return
        match order:
            case _Prepare(case, threads, cpus):
                contender = None  # frees its memory first
                if pinned:  # but a device's threads stay where they are
                    process.release(cpus)
                answer, contender = _prepare(solver, case, threads, cpus)
                pinned = contender is not None and contender.pinned
                connection.send(answer)
            case _Repeat(times) if contender is not None:
                connection.send(contender.run(times))


def _prepare(solver: Solver, case: Case, threads: int, cpus: Sequence[int]) -> tuple[Ready | Refusal, Contender | None]:
    try:
        arrays = case.arrays()
        contender = solver(case, arrays, threads)
        if contender is None:
            return Refusal(), None
        if isinstance(case.problem, Program):
            contender = _whole(contender, case.problem, arrays)
        first = contender.run(1)
        result = contender.result()
    except NotInstalled as error:
        return Refusal(str(error), installed=False), None
    except Failed as error:
        return Refusal(str(error)), None
    except (RuntimeError, AttributeError, OSError, MemoryError) as error:
        return Refusal(f"{type(error).__name__}: {error}".splitlines()[0]), None
    if contender.pinned:
        process.pin(cpus)
    ready = Ready(
        contender.version,
        contender.config,
        contender.in_c,
        result,
        contender.building,
        contender.workspace,
        first,
        contender.tuned,
    )
    return ready, contender


def _whole(contender: Contender, program: Program, arrays: tuple[Array, ...]) -> Contender:
    """The contender for a whole program: so many calls start from the same data, and all results are looked at."""
    run = renewed(contender.run, [arrays[n] for n in program.written], program.calls)
    return replace(contender, run=run, result=lambda: program.results(arrays))


class Remote:
    """An entrant in a process that starts when it is first needed."""

    def __init__(self, name: str, solver: Solver, cpus: tuple[int, ...]) -> None:
        self.name = name
        self.solver = solver
        self.cpus = cpus
        self._connection: Connection | None = None
        self._missing = ""

    def enter(self, case: Case, threads: int) -> Contender | None:
        """A contender that works in the entrant's process.

        Raises NotInstalled if the library is missing, Failed if it raises an error or its process dies.
        """
        if self._missing:
            raise NotInstalled(self._missing)
        answer = self._ask(_Prepare(case, threads, choose(self.cpus, threads)))
        if isinstance(answer, Ready):
            result = answer.result
            return Contender(
                self.name,
                answer.version,
                answer.config,
                self._run,
                lambda: result,
                answer.in_c,
                building=answer.building,
                workspace=answer.workspace,
                first=answer.first,
                tuned=answer.tuned,
            )
        assert isinstance(answer, Refusal), "a worker answers Prepare by Ready or Refusal"
        if not answer.installed:
            self._missing = answer.reason
            raise NotInstalled(answer.reason)
        if answer.reason:
            raise Failed(answer.reason)
        return None

    def _run(self, times: int) -> float:
        seconds = self._ask(_Repeat(times))
        assert isinstance(seconds, float), "a worker answers Repeat by seconds"
        return seconds

    def _ask(self, order: _Prepare | _Repeat) -> object:
        if self._connection is None:
            context = get_context("spawn")
            self._connection, theirs = context.Pipe()
            with spread(self.cpus):
                context.Process(target=_serve, args=(self.solver, theirs), daemon=True).start()
            theirs.close()
        try:
            self._connection.send(order)
            return self._connection.recv()
        except (EOFError, ConnectionError):
            self.close()
            raise Failed("its process died") from None

    def close(self) -> None:
        """End the entrant's process."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Remote:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
