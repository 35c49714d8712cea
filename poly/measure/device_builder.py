"""Candidates for an OpenCL device: schedules become device programs here, and the process that times builds them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from codegen.opencl.values_json import to_json
from poly.compiled import translate_device
from poly.errors import PolyError
from poly.measure.builder import Built
from poly.spaces.space import Point, Space


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
        """Nothing is under way."""

    def _built(self, point: Point) -> Built:
        path = self._directory / f"candidate{next(self._numbers)}.json"
        try:
            path.write_text(to_json(translate_device(self._space.schedule(point), self._space.isa)))
        except (PolyError, OSError) as error:
            return Built(None, f"{type(error).__name__}: {error}")
        return Built(path)
