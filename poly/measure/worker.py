"""The process that runs and times candidates. It may die of them: nothing is lost but its arrays, which come back."""

from __future__ import annotations

import resource
import signal
from math import ceil
from multiprocessing.connection import Connection

from codegen.errors import ArgumentError, DeviceError, ToolchainError
from microkernels.errors import TargetError
from poly.measure import process
from poly.measure.bench import Bench, CBench, trust
from poly.measure.orders import Check, Drop, Order, OrderFailed, Setup, Time, Trust


def serve(handle: int) -> None:
    """Follow the orders that come through a pipe until it is closed.

    An order comes with the seconds that it may take. The other side kills this process when they are over; the alarm
    does where that side is gone too. An interrupt from the keyboard is for the other side.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    process.clear_environment()
    connection = Connection(handle)
    worker = Worker()
    while True:
        try:
            order, seconds = connection.recv()
        except EOFError:
            return
        signal.alarm(ceil(seconds) + 1)
        answer = worker.follow(order)
        signal.alarm(0)
        connection.send(answer)


class Worker:
    """Follows orders. It has a bench once it was set up."""

    def __init__(self) -> None:
        self._bench: Bench | None = None

    def follow(self, order: Order) -> object:
        """The answer. What no candidate can help, a fault of ours, ends the process with a trace."""
        try:
            return self._answer(order)
        except MemoryError:
            return OrderFailed("out of memory")
        except (ArgumentError, ToolchainError, OSError) as error:
            return OrderFailed(f"cannot be loaded: {error}")
        except (DeviceError, TargetError) as error:
            return OrderFailed(f"the device failed: {error}")

    def _answer(self, order: Order) -> object:
        if isinstance(order, Trust):
            return trust(order)
        if isinstance(order, Setup):
            self._bench = bench(order)
            return None
        assert self._bench is not None, "arrays are set up first"
        match order:
            case Check():
                return self._bench.check(order)
            case Time():
                return self._bench.time(order)
            case Drop(name):
                self._bench.drop(name)
        return None


def bench(setup: Setup) -> Bench:
    """The bench of C, or that of the device. What the device's needs is loaded where it is asked for."""
    if not setup.device:
        return CBench(setup)
    from poly.measure.device import DeviceBench

    return DeviceBench(setup)
