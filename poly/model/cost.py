"""The predicted cost of a schedule: seconds, where they go, and the bytes moved from each level of memory."""

from __future__ import annotations

from dataclasses import dataclass

from poly.display import Displayed, time_text


@dataclass(frozen=True)
class CostPart:
    """The share of one resource: multiply-adds, a level of memory, copies, the TLB, …

    `bytes` are those moved from a level of memory (0 for other resources).
    """

    name: str
    seconds: float
    bytes: float = 0.0


@dataclass(frozen=True, repr=False)
class Cost(Displayed):
    """The predicted seconds of one call, and their parts, which overlap and may thus add up to more."""

    seconds: float
    parts: tuple[CostPart, ...] = ()

    def __str__(self) -> str:
        return time_text(self.seconds) + (f": {self.shares}" if self.shares else "")

    @property
    def shares(self) -> str:
        """The parts that take any time, longest first: `multiply-adds 1.2 ms, L2 310 µs`."""
        parts = sorted((part for part in self.parts if part.seconds), key=lambda part: -part.seconds)
        return ", ".join(f"{part.name} {time_text(part.seconds)}" for part in parts)

    def _title(self) -> str:
        return f"predicted cost of {time_text(self.seconds)}"

    def part(self, name: str) -> CostPart | None:
        return next((part for part in self.parts if part.name == name), None)
