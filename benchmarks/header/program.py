"""A C program that measures: its arguments, and its output.

core Zen                    a word and its value
shape 512                   the shape of the lines that follow
error special 1.2e-06       the error of a contender's result
times special 1e-3 1.1e-3   a contender's samples, in seconds per call
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.contender import Failed
from benchmarks.runner import Rounds


@dataclass
class ShapeResult:
    """A program's results for one shape, by contender: samples in seconds per call, and the result's error."""

    name: str
    times: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)


@dataclass
class ProgramOutput:
    """The whole output of a program."""

    words: dict[str, str] = field(default_factory=dict)
    shapes: list[ShapeResult] = field(default_factory=list)


def words(budget: Rounds) -> list[str]:
    """A budget as a program's arguments: seconds, fewest and most rounds."""
    return [str(budget.seconds), *map(str, budget.rounds)]


def run(program: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> ProgramOutput:
    """Run a program and read its output. Raises Failed if it ends with an error."""
    done = subprocess.run([str(program), *arguments], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{program.name} ended with status {done.returncode}: {done.stderr.strip()}")
    return read(done.stdout)


def read(text: str) -> ProgramOutput:
    """A program's output as values."""
    said = ProgramOutput()
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        name, _, values = rest.partition(" ")
        if kind == "shape":
            said.shapes.append(ShapeResult(rest))
        elif kind == "error":
            said.shapes[-1].errors[name] = float(values)
        elif kind == "times":
            said.shapes[-1].times[name] = [float(value) for value in values.split()]
        else:
            said.words[kind] = rest.strip()
    return said
