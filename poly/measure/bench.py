"""Candidates in the measuring process: loaded, checked against the trusted result, and timed in turn.

This file handles C libraries, `poly.measure.device` device programs.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

import cffi
import numpy as np

from codegen.calls.call import c_arguments
from codegen.calls.clock import CFunction, Timed
from codegen.calls.guard import declarations
from codegen.ir.signature import Signature
from codegen.names import function_name
from codegen.system import waiting
from codegen.toolchain import build
from poly.measure import process
from poly.measure.data import Arena, difference, guarded, overrun
from poly.measure.orders import Check, OrderFailed, Ran, RunFunction, Setup, Time, Trust, result
from poly.timing.benchmark import SAMPLE

INSTANT = 1e-9
"""The least seconds of a call, whatever the clock says."""

FLUSH = """#include <stdint.h>

/* One byte of each cache line is changed, so the line comes in and what was there goes out. */
void flush(char *bytes, int64_t count, int threads)
{
    #pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < count; i += 64) bytes[i]++;
}
"""

Candidate = Callable[[], Timed]
"""Prepares a candidate for timing."""


@dataclass(frozen=True)
class Loaded:
    """A candidate, and its fastest call so far in seconds."""

    ready: Candidate
    seconds: float


class Bench(ABC):
    """The arrays of a nest, and the loaded candidates; subclasses define what a candidate is.

    `flush` empties the caches before each sample, if requested.

    The order within a pair is random. Hence, whatever the noise and its correlation in time, each of two equally fast
    candidates is the faster one of a pair with the same probability, independently of all other pairs (Fisher, The
    Design of Experiments, 1935), as a test on the pairs assumes.
    """

    def __init__(self, setup: Setup, arena: Arena, flush: Callable[[], None]) -> None:
        self._setup = setup
        self._arena = arena
        self._flush = flush
        self._expected = {
            name: np.load(result(setup.results, name), mmap_mode="r").astype(arena.values[name].dtype)
            for name in arena.written
        }
        self._loaded: dict[int, Loaded] = {}
        self._coin = Random(setup.data.seed)

    @abstractmethod
    def load(self, path: str) -> Candidate:
        """Load the candidate in a file."""

    @abstractmethod
    def settle(self) -> None:
        """Called after the first call of a candidate."""

    def check(self, order: Check) -> float | OrderFailed:
        """Carry out the order: load the candidate, run it once, compare its result, estimate its time."""
        ready = self.load(order.library)
        timed = ready()
        self._arena.reset()
        first = timed(1)
        self.settle()
        wrong = self._wrong()
        if wrong:
            return OrderFailed(wrong)
        self._loaded[order.name] = Loaded(ready, self._seconds(timed, first))
        return self._loaded[order.name].seconds

    def time(self, order: Time) -> tuple[tuple[float, ...], ...]:
        """Carry out the order. All samples have the same number of calls, given by the slowest candidate."""
        timed = {name: self._loaded[name].ready() for name in order.names}
        slowest = max(self._loaded[name].seconds for name in order.names)
        calls = max(1, min(self._setup.calls, ceil(SAMPLE / slowest)))
        samples: dict[int, list[float]] = {name: [] for name in order.names}
        for _ in range(order.rounds):
            for name in self._coin.sample(order.names, len(order.names)):
                samples[name].append(self._sample(timed[name], calls))
        for name, found in samples.items():
            self._loaded[name] = replace(self._loaded[name], seconds=min(self._loaded[name].seconds, *found))
        return tuple(tuple(samples[name]) for name in order.names)

    def drop(self, name: int) -> None:
        self._loaded.pop(name, None)

    def _wrong(self) -> str:
        beside = self._arena.overrun()
        if beside:
            return f"wrote beside the array {beside}"
        length = self._setup.length
        found = (difference(n, self._arena.values[n], self._expected[n], length) for n in self._arena.written)
        return next(filter(None, found), "")

    def _seconds(self, timed: Timed, first: float) -> float:
        """An estimate of the seconds of a call."""
        if first >= SAMPLE or self._setup.calls == 1:
            return first
        calls, seconds = 1, self._timed(timed, 1)
        while seconds < SAMPLE / 4 and calls < self._setup.calls:
            calls = min(self._setup.calls, 4 * calls)
            seconds = self._timed(timed, calls)
        return max(seconds / calls, INSTANT)

    def _timed(self, timed: Timed, calls: int) -> float:
        self._arena.restart()
        return timed(calls)

    def _sample(self, timed: Timed, calls: int) -> float:
        self._arena.restart()
        self._flush()
        return max(timed(calls) / calls, INSTANT)


class CBench(Bench):
    """The bench of C libraries. All share one workspace, since its address can make a difference of a few percent."""

    def __init__(self, setup: Setup) -> None:
        process.release(setup.cores.cpus)
        super().__init__(setup, Arena(setup.data), flusher(setup.flush, setup.cores.threads))
        self._workspace: Any = b""

    def load(self, path: str) -> Candidate:
        cores, data = self._setup.cores, self._setup.data
        function = load(path, data.signature, self._arena, cores.threads, dict(data.sizes))
        if len(function.arguments[-1]) > len(self._workspace):
            self._workspace = function.arguments[-1]

        def ready() -> Timed:
            return replace(function, arguments=(*function.arguments[:-1], self._workspace)).timed()

        return ready

    def settle(self) -> None:
        """Pin the threads, which exist from the first call on."""
        process.pin(self._setup.cores.cpus)


def trust(order: Trust) -> tuple[str, ...]:
    """Carry out the order: save each array that the kernel writes to a file, and return the names of those with NaN."""
    process.release(order.cores.cpus)
    arena = Arena(order.data)
    arena.reset()
    load(order.library, order.data.signature, arena, order.cores.threads, dict(order.data.sizes)).timed()(1)
    for name in arena.written:
        np.save(result(order.results, name), arena.values[name])
    return tuple(sorted(name for name in order.data.fresh if np.isnan(arena.values[name]).any()))


def run(order: RunFunction) -> Ran:
    """Carry out the order, on memory with guards."""
    function = getattr(ctypes.CDLL(order.library), order.name)
    memory = {name: guarded(values.shape, values.dtype, at) for at, (name, values) in enumerate(order.values.items())}
    for name, values in order.values.items():
        memory[name][1][...] = values
    pointers = (ctypes.c_void_p * len(memory))(*(values.ctypes.data for _, values in memory.values()))
    bytes_ = (ctypes.c_long * len(memory))(*(values.nbytes for _, values in memory.values()))
    returned = function(order.way, pointers, bytes_)
    outside = any(overrun(whole, values) for whole, values in memory.values())
    return Ran({name: values for name, (_, values) in memory.items()}, returned, outside)


def load(path: str, signature: Signature, arena: Arena, threads: int, sizes: dict[str, int]) -> CFunction:
    """A library's kernel on these arrays, with its own workspace. Raises OSError if it cannot be loaded."""
    ffi = cffi.FFI()
    ffi.cdef(declarations(signature))
    library = build.Library(ffi, waiting.opened(ffi, Path(path)), Path(path), "")
    given = {size: sizes[size] for size in signature.given}
    arguments = c_arguments(signature, library, list(arena.values.values()), threads, **given)
    return CFunction.of(getattr(library.lib, function_name(signature.name)), arguments, library)


def flusher(size: int, threads: int) -> Callable[[], None]:
    """A function that streams `size` bytes, divided among the cores; it does nothing if `size` is 0."""
    if not size:
        return lambda: None
    library = build.load(
        FLUSH, "void flush(char *bytes, int64_t count, int threads);", build.OPENMP if threads > 1 else ()
    )
    memory = cffi.FFI().from_buffer("char[]", np.zeros(size, np.uint8))

    def flush() -> None:
        library.lib.flush(memory, size, threads)

    return flush
