"""The search's side of the connection to the process that times candidates."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from codegen.system.forks import fork_lock
from codegen.system.processes import PYTHON, with_own_path
from poly.measure.orders import Order

GRACE = 5.0
"""Seconds that a process is given to end by itself."""


class Died(Exception):
    """The process ended or was killed before it answered; the message says why."""


class Child:
    """A process that carries out orders, started on the first one and restarted after it has died.

    Its error output goes to a file in `folder`.
    """

    def __init__(self, folder: Path) -> None:
        self._said = folder / "said.txt"
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None

    def ask(self, order: Order, seconds: float) -> object:
        """The answer to an order. Raises Died if it does not come within these seconds."""
        self.start()
        assert self._connection is not None, "start opens the connection"
        try:
            self._connection.send((order, seconds))
            if not self._connection.poll(seconds):
                self.close(kill=True)
                raise Died(f"hangs: it was stopped after {seconds:.3g} seconds")
            return self._connection.recv()
        except (EOFError, ConnectionError):
            raise Died(self._cause()) from None
        except KeyboardInterrupt:
            self.close(kill=True)  # otherwise the next order would receive this one's answer
            raise

    def start(self) -> None:
        """Start the process unless it runs, ahead of its first order to save time. Raises Died if that fails."""
        if self.alive:
            return
        try:
            self._start()
        except OSError as error:
            self.close()
            raise Died(f"the process that measures cannot be started: {error.strerror or error}") from error

    def _start(self) -> None:
        with fork_lock, self._said.open("wb") as said:
            self._connection, theirs = Pipe()
            command = f"from poly.measure.worker import serve; serve({theirs.fileno()})"
            self._process = subprocess.Popen(
                [*PYTHON, "-c", command],
                env=with_own_path(),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
            theirs.close()

    def close(self, kill: bool = False) -> None:
        """End the process: closing the pipe is enough unless it hangs."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._end(self._process, kill)
        self._process = self._connection = None

    @staticmethod
    def _end(process: subprocess.Popen[bytes], kill: bool) -> None:
        if kill:
            process.kill()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _cause(self) -> str:
        """Why the process ended: the signal or exit status, and its last line of error output."""
        assert self._process is not None, "a process that was asked has been started"
        try:
            status = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            status = 0
        words: list[str] = []
        with suppress(OSError):
            words = self._said.read_text(errors="replace").strip().splitlines()
        self.close(kill=True)
        cause = f"crashed: {_signal_words(-status)}" if status < 0 else f"ended with exit status {status}"
        return f"{cause} ({words[-1]})" if words else cause


def _signal_words(number: int) -> str:
    """`Segmentation fault (SIGSEGV)`."""
    try:
        words = f"{signal.strsignal(number)} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
    return f"{words}, as happens when memory runs out" if number == signal.SIGKILL else words
