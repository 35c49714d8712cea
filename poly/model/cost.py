"""The predicted cost of a schedule: seconds, where they go, and the bytes moved from each level of memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CostPart:
    """The share of one resource: multiply-adds, a level of memory, copies, the TLB, …

    `bytes` are those moved from a level of memory (0 for other resources).
    """

    name: str
    seconds: float
    bytes: float = 0.0


@dataclass(frozen=True)
class Cost:
    """The predicted seconds of one call, and their parts, which overlap and may thus add up to more."""

    seconds: float
    parts: tuple[CostPart, ...] = ()

    @property
    def bottleneck(self) -> CostPart:
        """The part that takes longest."""
        return max(self.parts, key=lambda part: part.seconds)

    def part(self, name: str) -> CostPart | None:
        return next((part for part in self.parts if part.name == name), None)
