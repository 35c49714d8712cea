"""C libraries as candidates: one process loads them all, and they share one workspace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from codegen.build import Library
from codegen.call import c_arguments
from codegen.clock import CFunction, Timed
from codegen.guard import declarations
from codegen.names import function_name
from codegen.signature import Signature
from poly.measure import process
from poly.measure.bench import Bench, Candidate
from poly.measure.data import Arena
from poly.measure.flush import flusher
from poly.measure.orders import Setup, Trust, result


def trust(order: Trust) -> tuple[str, ...]:
    """Follow the order: the arrays' values go to one file each."""
    process.release(order.cores.cpus)
    arena = Arena(order.data)
    arena.reset()
    load(order.library, order.data.signature, arena, order.cores.threads, dict(order.data.sizes)).timed()(1)
    for name in arena.written:
        np.save(result(order.results, name), arena.values[name])
    return tuple(sorted(name for name in order.data.fresh if np.isnan(arena.values[name]).any()))


def load(path: str, signature: Signature, arena: Arena, threads: int, sizes: dict[str, int]) -> CFunction:
    """A library's kernel on these arrays, with a workspace of its own. Raises OSError where it cannot be loaded."""
    ffi = cffi.FFI()
    ffi.cdef(declarations(signature))
    library = Library(ffi, ffi.dlopen(path), Path(path), "")
    given = {size: sizes[size] for size in signature.given}
    arguments = c_arguments(signature, library, list(arena.values.values()), threads, **given)
    return CFunction.of(getattr(library.lib, function_name(signature.name)), arguments, library)


class CBench(Bench):
    """The bench of C libraries. All share a workspace: where it lies can make a difference of some percent."""

    def __init__(self, setup: Setup) -> None:
        process.release(setup.cores.cpus)
        super().__init__(setup, Arena(setup.data))
        self._flush = flusher(setup.flush, setup.cores.threads)
        self._workspace: Any = b""

    def load(self, path: str) -> Candidate:
        cores, data = self._setup.cores, self._setup.data
        function = load(path, data.signature, self._arena, cores.threads, dict(data.sizes))
        if len(function.arguments[-1]) > len(self._workspace):
            self._workspace = function.arguments[-1]

        def ready() -> Timed:
            return replace(function, arguments=(*function.arguments[:-1], self._workspace)).timed()

        return ready

    def flush(self) -> None:
        self._flush()

    def settle(self) -> None:
        """Threads stay where they are put from then on."""
        process.pin(self._setup.cores.cpus)
