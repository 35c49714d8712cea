"""A measurer that ends when time is up or Ctrl-C was pressed, even if the interrupt got lost in a callback from C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Protocol

from poly.search.events import Ask, Trial


class PointSource(Protocol):
    """Measures points one by one."""

    def trials(self, ask: Ask) -> Iterator[Trial]:
        """A trial for each point asked for, in order, each as soon as it is available."""


class Stoppable:
    """A measurer that ends a batch when time is up, and raises KeyboardInterrupt again if Ctrl-C got lost."""

    def __init__(self, source: PointSource, over: Callable[[], bool], interrupts: Interrupts) -> None:
        self._source, self._over, self._interrupts = source, over, interrupts

    def measure(self, ask: Ask) -> Iterator[Trial]:
        self._interrupts.check()
        for trial in self._source.trials(ask):
            yield trial
            self._interrupts.check()
            if self._over():
                return


class Interrupts:
    """Inside this context, `came` tells whether Ctrl-C was pressed; KeyboardInterrupt is raised as usual.

    An exception raised inside a callback from C is lost there; `check` raises it again. Nothing is done outside the
    main thread, or in a program that handles the signal itself.
    """

    def __init__(self) -> None:
        self.came = False
        self._installed = False

    def __enter__(self) -> Interrupts:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.came:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.default_int_handler(number, frame)
