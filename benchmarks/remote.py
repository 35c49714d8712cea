"""The runner's end of the pipe to an entrant's process."""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType

from benchmarks.case import Case
from benchmarks.contender import Contender, Failed, NotInstalled, Solver
from benchmarks.worker import Prepare, Ready, Refusal, Repeat, serve
from poly.measure.process import choose, spread


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
        answer = self._ask(Prepare(case, threads, choose(self.cpus, threads)))
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
        seconds = self._ask(Repeat(times))
        assert isinstance(seconds, float), "a worker answers Repeat by seconds"
        return seconds

    def _ask(self, order: Prepare | Repeat) -> object:
        if self._connection is None:
            context = get_context("spawn")
            self._connection, theirs = context.Pipe()
            with spread(self.cpus):
                context.Process(target=serve, args=(self.solver, theirs), daemon=True).start()
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
