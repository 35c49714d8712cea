"""Loops with the usual idioms as cases: their sizes and data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import poly
from benchmarks.case import Case
from benchmarks.problems.program import Fill, Program
from benchmarks.programs import fills
from benchmarks.programs import loop_nests as nests
from benchmarks.programs.polybench import SIZES, Values, dtype_of

Sizes = Mapping[str, Values]
Fills = Mapping[str, Fill]

SCALARS = {"alpha": 1.5, "omega": 1.2, "q": 0.5, "r": 0.25, "t": 0.125, "s": 0.25}


@dataclass(frozen=True)
class Loop:
    """A loop nest with the values of its sizes for each data set, and what data it needs."""

    loops: Callable[..., Any]
    sizes: Sizes
    fills: Fills = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.loops.__name__.replace("_", "-")

    def case(self, size: str) -> Case:
        """The case at a data set."""
        nest = partial(poly.nest, self.loops)
        made = nest()
        values = {name: self.sizes[name][SIZES.index(size)] for name in made.sizes}
        program = Program(self.name, nest, values, self.fills, SCALARS)
        return Case("loops", self.name, dtype_of(made), program, nest, values)


def _like(suite: str, sizes: Sizes, data: Mapping[str, Fills]) -> Iterator[Loop]:
    """The loops named after a suite, with the data of those that would grow, vanish or divide by zero on others."""
    for name, loops in vars(nests).items():
        if name.startswith(suite):
            yield Loop(loops, sizes, data.get(name.removeprefix(suite), {}))


SQUARE: Sizes = {"M": (19, 64, 128, 256)}
PASS: Sizes = {"L": (3, 16, 32, 64), "M": (8, 16, 32, 128)}
SEQUENCES: Sizes = {"N": (21, 100, 400, 2000), "M": (33, 150, 500, 3000)}

POPULATIONS = {"F": fills.positive}
LETTERS = dict.fromkeys("ab", fills.bases)
LOCAL = {**LETTERS, **dict.fromkeys("SEF", fills.zeros)}
"""Data of local alignments, which may start anywhere."""

LIVERMORE: Mapping[str, Fills] = {
    "6": {"b": fills.triangle},
    "18": {"zm": fills.positive},
    "19": {"sb": fills.positive},
    "22": {"u": fills.positive, "v": fills.positive},
}
TSVC: Mapping[str, Fills] = {
    "s118": {"bb": fills.triangle},
    "s312": {"a": fills.factors},
    "s321": {"b": fills.small},
    "s322": {"b": fills.small, "c": fills.small},
}

LOOPS = (
    Loop(nests.lbm_d2q9, {"W": (12, 60, 120, 500), "H": (10, 50, 100, 400)}, POPULATIONS),
    Loop(nests.lbm_d3q19, {"W": (8, 16, 32, 96), "H": (6, 12, 24, 64), "D": (5, 8, 20, 48)}, POPULATIONS),
    Loop(nests.smith_waterman, SEQUENCES, LOCAL),
    Loop(nests.gotoh, SEQUENCES, LOCAL),
    Loop(nests.edit_distance, SEQUENCES, {**LETTERS, "S": fills.edits}),
    Loop(nests.fft_radix_2, PASS),
    Loop(nests.fft_radix_4, PASS),
    Loop(nests.fft_interleaved, PASS),
    *_like("livermore_", {"N": (61, 301, 1001, 10001), **SQUARE}, LIVERMORE),
    *_like("tsvc_", {"N": (67, 1000, 4000, 32000), **SQUARE}, TSVC),
    Loop(nests.softmax, SQUARE),
    Loop(nests.n_body, SQUARE, {"m": fills.positive}),
    Loop(nests.transposed, {"M": (19, 100, 400, 2000)}),
    Loop(nests.floyd, {"M": (19, 60, 150, 500)}, {"D": fills.positive}),
)


def cases(size: str) -> Iterator[Case]:
    """All loops at a data set."""
    for loop in LOOPS:
        yield loop.case(size)
