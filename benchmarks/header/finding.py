"""Figures and their goals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Goal:
    """A goal: its name for `--only`, a title, and the figure to reach."""

    name: str
    title: str
    wanted: float
    unit: str = ""
    at_least: bool = False

    def met(self, value: float) -> bool:
        return value >= self.wanted if self.at_least else value <= self.wanted

    @property
    def text(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.wanted:g}{' ' * bool(self.unit)}{self.unit}"


SPEED = Goal("speed", "header's kernel, of the Python kernel's speed", 0.98, at_least=True)
DISPATCH = Goal("dispatch", "choice of the kernel, a call", 5.0, "ns")
COMPILE = Goal("compile", "compile time at -O2, four instruction sets", 3.0, "s")
BYTES = Goal("bytes", "header of a tuned product", 120.0, "KB")
CLANG = Goal("clang", "built by clang, of gcc's speed", 0.95, at_least=True)
OPENBLAS = Goal("openblas", "of OpenBLAS's speed, in a C program", 1.03, at_least=True)
CODE = Goal("code", "code of one 16x16x16 kernel", 4.0, "KB")

NO_CLANG = "no clang is installed beside gcc"

GOALS = {goal.name: goal for goal in (SPEED, DISPATCH, COMPILE, BYTES, CLANG, OPENBLAS, CODE)}


@dataclass(frozen=True)
class GoalFigure:
    """One figure for a goal. One that isn't `judged` explains another; without a `value`, the note says why.

    `spread` is half the interquartile range, relative to the figure; `details` are further figures, for JSON.
    """

    goal: Goal
    what: str
    value: float | None
    spread: float | None = None
    note: str = ""
    judged: bool = True
    wrong: bool = False
    details: tuple[tuple[str, float], ...] = ()

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None if the figure does not decide it."""
        if self.wrong:
            return False
        return self.goal.met(self.value) if self.judged and self.value is not None else None

    def row(self) -> dict[str, Any]:
        """The figure for JSON."""
        return {
            "goal": self.goal.name,
            "what": self.what,
            "found": self.value,
            "unit": self.goal.unit,
            "wanted": self.goal.wanted,
            "at_least": self.goal.at_least,
            "met": self.met,
            "spread": self.spread,
            "note": self.note,
            **dict(self.details),
        }
