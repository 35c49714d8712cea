"""Processes that try cases and pairs. A crash or hang ends one of them, and is attributed to its current pair."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fuzz.cases import Report, run_case
from fuzz.pairs import Failure, Pair, tried

PATIENCE = 150.0
"""Seconds after which a silent process is assumed to hang."""
MEMORY = 6 << 30
"""Bytes of address space that a process may use, so that excessive allocations fail and do not strain the machine."""


def serve(connection: Connection) -> None:
    """Answer requests, `("case", …)` or `("pair", …)`, until the connection is closed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("POLY_RECORDS", str(Path(tempfile.gettempdir()) / "poly-fuzz-has-no-records"))
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    while True:
        try:
            kind, *asked = connection.recv()
        except (EOFError, OSError):
            return
        folder = Path(tempfile.mkdtemp(prefix="poly-fuzz-"))
        try:
            if kind == "case":
                seed, number, routes = asked
                answer: Any = run_case(seed, number, routes, folder, lambda pair: connection.send(("at", pair)))
            else:
                answer = tried(asked[0])
            connection.send(("done", answer))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Worker:
    """One process, and its current pair."""

    process: Any = field(init=False)
    connection: Connection = field(init=False)
    at: Pair | None = None
    asked: tuple[Any, ...] | None = None
    since: float = 0.0

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, *asked: Any) -> None:
        self.asked, self.at, self.since = asked, None, time.monotonic()
        self.connection.send(asked)

    @property
    def overdue(self) -> bool:
        return self.asked is not None and time.monotonic() - self.since > PATIENCE

    def read(self) -> Any:
        """The answer, or None after a message that announces the current pair. A crash is an answer too."""
        try:
            kind, value = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            return self._ended("crash", f"the process ended with exit code {self.process.exitcode}")
        self.since = time.monotonic()
        if kind == "at":
            self.at = value
            return None
        self.asked = None
        return value if value is not None else Report()

    def give_up(self) -> Any:
        """End a process that hangs."""
        self.process.kill()
        self.process.join()
        return self._ended("hang", f"nothing was heard for {PATIENCE:g} s")

    def _ended(self, kind: str, text: str) -> Failure:
        self.connection.close()
        pair = self.at or (self.asked[1] if self.asked and self.asked[0] == "pair" else None)
        self.asked = None
        self._start()
        return Failure(kind, text, pair)

    def wait(self) -> Any:
        """The answer to a request."""
        while True:
            if self.connection.poll(1.0):
                answer = self.read()
                if answer is not None:
                    return answer
            elif self.overdue:
                return self.give_up()

    def stop(self) -> None:
        if self.asked is not None:
            self.process.kill()
        self.connection.close()
        self.process.join(timeout=2)
        if self.process.is_alive():
            self.process.kill()


Say = Callable[[str], None]
