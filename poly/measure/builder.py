"""Candidates compiled side by side: schedules become C text in this process, and a pool of threads waits for gcc."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from codegen.build import build, precompile
from codegen.errors import ToolchainError
from poly.compiled import translate
from poly.errors import PolyError
from poly.machine.cores import allowed_cores
from poly.spaces.space import Point, Space

SECONDS = 60.0
"""A compiler that takes longer for one candidate is given up."""
WORTH = 4
"""From so many builds on, getting the compiler ready for many pays."""


@dataclass(frozen=True)
class Built:
    """A candidate's library, or why there is none."""

    path: Path | None
    failure: str = ""


class Builder:
    """Compiles the points of a space into a directory."""

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
        """Wait for compilers at work, and start no more."""
        self._pool.shutdown(cancel_futures=True)

    def _start(self, point: Point, many: bool) -> Future[Path] | Built:
        try:
            made = translate(self._space.schedule(point), self._space.isa)
            if many and made.flags not in self._ready:
                precompile(made.flags)
                self._ready.add(made.flags)
        except PolyError as error:
            return Built(None, f"{type(error).__name__}: {error}")
        return self._pool.submit(build, made.source, made.flags, self._directory, SECONDS)


def _finished(building: Future[Path]) -> Built:
    try:
        return Built(building.result())
    except ToolchainError as error:
        return Built(None, f"does not compile: {error}")
