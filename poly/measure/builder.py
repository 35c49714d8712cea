"""Build candidates in a directory: C libraries, or programs for an OpenCL device.

This process lowers the schedules to text. C is compiled in parallel, with a pool of threads that wait for gcc; a device
program is only written to a file, and the measuring process builds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from codegen.errors import ToolchainError
from codegen.opencl.values_json import to_json
from codegen.toolchain.build import build, precompile
from poly.autoschedule.spaces.space import Point, Space
from poly.compiled import translate, translate_device
from poly.errors import PolyError
from poly.machine.cores import allowed_cores

SECONDS = 60.0
"""The time limit for compiling one candidate."""
WORTH = 4
"""The number of builds from which precompiling the compiler's headers pays off."""


@dataclass(frozen=True)
class Built:
    """The path of a candidate's library or JSON device program, or why there is none."""

    path: Path | None
    failure: str = ""


class Builder:
    """Compiles the points of a space to C libraries in a directory."""

    def __init__(self, space: Space, directory: Path) -> None:
        self._space = space
        self._directory = directory
        self._pool = ThreadPoolExecutor(allowed_cores(), "compile")
        self._ready: set[tuple[str, ...]] = set()

    def build(self, points: Sequence[Point]) -> list[Built]:
        """The points' libraries, in order."""
        waiting = [self._start(point, len(points) >= WORTH) for point in points]
        return [built if isinstance(built, Built) else _finished(built) for built in waiting]

    def close(self) -> None:
        """Wait for running compilers, and start no more."""
        self._pool.shutdown(cancel_futures=True)

    def _start(self, point: Point, many: bool) -> Future[Path] | Built:
        try:
            made = translate(self._space.schedule(point), self._space.isa)
            if many and made.flags not in self._ready:
                precompile(made.flags)
                self._ready.add(made.flags)
        except PolyError as error:
            return Built(None, f"{type(error).__name__}: {error}")
        here = copy_context()  # with the toolchain of the call
        return self._pool.submit(here.run, build, made.library, made.flags, self._directory, SECONDS)


def _finished(building: Future[Path]) -> Built:
    try:
        return Built(building.result())
    except ToolchainError as error:
        return Built(None, f"does not compile: {error}")


class DeviceBuilder:
    """Writes the device programs of the points of a space into a directory."""

    def __init__(self, space: Space, directory: Path) -> None:
        self._space = space
        self._directory = directory
        self._numbers = count()

    def build(self, points: Sequence[Point]) -> list[Built]:
        """The points' programs, in order."""
        return [self._built(point) for point in points]

    def close(self) -> None:
        """Do nothing: no build runs in the background."""

    def _built(self, point: Point) -> Built:
        path = self._directory / f"candidate{next(self._numbers)}.json"
        try:
            path.write_text(to_json(translate_device(self._space.schedule(point), self._space.isa)))
        except (PolyError, OSError) as error:
            return Built(None, f"{type(error).__name__}: {error}")
        return Built(path)
