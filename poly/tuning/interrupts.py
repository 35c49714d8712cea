"""Ctrl-C that is never lost: an exception raised inside of a callback from C ends there, and nobody hears of it."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupts:
    """While it is entered, `came` tells whether Ctrl-C was pressed; KeyboardInterrupt is raised as always.

    Another thread than the main one, or a program that handles the signal itself, is left as it is.
    """

    def __init__(self) -> None:
        self.came = False
        self._installed = False

    def __enter__(self) -> Interrupts:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._heard)
            self._installed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.default_int_handler(number, frame)
