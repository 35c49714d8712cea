"""The parts of an explanation: levels of memory and measurements."""

from __future__ import annotations

from dataclasses import dataclass

from poly.working_sets import LevelTraffic

ARITHMETIC = "multiply-adds"
"""The name of the arithmetic resource, besides the levels of memory."""


@dataclass(frozen=True)
class Level:
    """One level of memory on the roofline.

    `rate` is the measured bandwidth of all threads together, in bytes per second. `fits` names the loops of which an
    iteration fits in the cache before this level.
    """

    name: str
    loaded: float
    stored: float
    rate: float
    fits: tuple[str, ...] = ()

    @staticmethod
    def of(moved: LevelTraffic, rate: float) -> Level:
        return Level(moved.level, moved.loaded, moved.stored, rate, moved.fits)

    @property
    def bytes(self) -> float:
        return self.loaded + self.stored

    @property
    def seconds(self) -> float:
        """The time of the level's bytes at the measured bandwidth."""
        return self.bytes / self.rate

    def intensity(self, flop: int) -> float:
        """Operations per byte of this level."""
        return flop / self.bytes if self.bytes else float("inf")

    def roof(self, flop: int, peak: float) -> float:
        """Operations per second that the level permits, at most the peak."""
        return min(peak, self.intensity(flop) * self.rate)


@dataclass(frozen=True)
class Measurement:
    """Seconds of a call as a search measured them, and their source; `point` is the search space's point as text."""

    seconds: float
    source: str
    point: str = ""
