"""The process that runs and times candidates. If a candidate crashes it, only its arrays are lost and made anew."""

from __future__ import annotations

import resource
import signal
from math import ceil
from multiprocessing.connection import Connection

from codegen.errors import ArgumentError, DeviceError, ToolchainError
from microkernels.errors import TargetError
from poly.measure import process
from poly.measure.bench import Bench, CBench, run, trust
from poly.measure.orders import Check, Drop, Order, OrderFailed, RunFunction, Setup, Time, Trust


def serve(handle: int) -> None:
    """Carry out the orders that come through a pipe until it is closed.

    Each order comes with its time limit in seconds. The other side kills this process when it has expired; if that side
    is gone, too, the alarm does. Keyboard interrupts are left to the other side.
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
    """Carries out orders. It has a bench after `Setup`."""

    def __init__(self) -> None:
        self._bench: Bench | None = None

    def follow(self, order: Order) -> object:
        """The answer to an order. A bug of poly itself ends the process with a traceback."""
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
        if isinstance(order, RunFunction):
            return run(order)
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
    """The bench of C, or that of a device, whose modules are imported only then."""
    if not setup.device:
        return CBench(setup)
    from poly.measure.device import DeviceBench

    return DeviceBench(setup)
