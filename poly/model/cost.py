"""What the model expects of a schedule: seconds, where they go, and the bytes that each level of memory moves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CostPart:
    """One resource's share: the multiply-adds, a level of memory, the copies, the TLB, …

    `bytes` are those that come from a level of memory (0 for what is no level).
    """

    name: str
    seconds: float
    bytes: float = 0.0


@dataclass(frozen=True)
class Cost:
    """The predicted seconds of one call, and the parts they are made of; parts overlap, so they may add to more."""

    seconds: float
    parts: tuple[CostPart, ...] = ()

    @property
    def bottleneck(self) -> CostPart:
        """The part that takes longest."""
        return max(self.parts, key=lambda part: part.seconds)

    def part(self, name: str) -> CostPart | None:
        return next((part for part in self.parts if part.name == name), None)
