"""What an explanation consists of: levels of memory, measurements."""

from __future__ import annotations

from dataclasses import dataclass

from poly.working_sets import LevelTraffic

ARITHMETIC = "multiply-adds"
"""The resource beside the levels of memory."""


@dataclass(frozen=True)
class Level:
    """One level of memory on the roofline.

    `rate` is the bandwidth that was measured, in bytes a second, all threads together. `fits` names the loops of which
    an iteration stays in the cache before it.
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
        """What its bytes take at the measured bandwidth."""
        return self.bytes / self.rate

    def intensity(self, flop: int) -> float:
        """Operations for each of its bytes."""
        return flop / self.bytes if self.bytes else float("inf")

    def roof(self, flop: int, peak: float) -> float:
        """Operations a second that it allows, at most the peak."""
        return min(peak, self.intensity(flop) * self.rate)


@dataclass(frozen=True)
class Measurement:
    """Seconds of a call as a search measured them, and where they stand; `point` is the text of the space's point."""

    seconds: float
    source: str
    point: str = ""
