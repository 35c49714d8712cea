"""Why candidates failed, counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """A sort of failure: how many trials ended so, and the words of the first of them."""

    kind: str
    count: int
    example: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.count})"


def counted(reasons: Iterable[str]) -> tuple[Failure, ...]:
    """The failures by their kinds, the most frequent first."""
    sorts: dict[str, list[str]] = {}
    for reason in reasons:
        sorts.setdefault(kind(reason), []).append(reason)
    found = [Failure(name, len(alike), alike[0]) for name, alike in sorts.items()]
    return tuple(sorted(found, key=lambda failure: -failure.count))


def kind(reason: str) -> str:
    """The first line up to the details: `wrong result: C[0] is 1, not 2` is a wrong result."""
    return reason.strip().partition("\n")[0].partition(":")[0] or "no reason given"


def in_words(failures: tuple[Failure, ...]) -> str:
    """`crashed (2), wrong result (1)`."""
    return ", ".join(map(str, failures))
