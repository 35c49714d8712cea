"""The values of knobs that are sizes of blocks, and the shapes of register tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil

from microkernels.catalogue import fits
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from poly.autoschedule.spaces.space import Knob, Value, Values
from poly.machine.tiles import ROWS

APART = 1.2
"""How much a divisor must differ from the powers of two to be worth a value of its own."""


def sizes(extent: int | None, least: int, most: int, also: Iterable[int] = ()) -> tuple[int, ...]:
    """Blocks of a loop: powers of two from `least` to `most` that are less than its extent, and its divisors between.

    A divisor leaves no partial block; only multiples of `least` count, and only those that no power of two is near.
    `also` are sizes that belong to it in any case. `extent` None is a loop of unknown length.
    """
    powers = [1 << exponent for exponent in range(least.bit_length() - 1, most.bit_length())]
    fitting = {p for p in powers if least <= p <= most and (extent is None or p < extent)}
    multiples = range(least, min(most, (extent or 0) - 1) + 1, least)
    divisors = {size for size in multiples if extent is not None and extent % size == 0}
    alone = {d for d in divisors if all(max(d / p, p / d) >= APART for p in powers)}
    return tuple(sorted(fitting | alone | set(also)))


def uncut(values: Iterable[int]) -> tuple[Value, ...]:
    """The values, and at last None: the loop may stay whole."""
    return (*values, None)


def middle(values: tuple[int, ...]) -> int:
    """The value in the middle, to try a form with."""
    return values[len(values) // 2]


def tile_knobs(m: int, n: int, usual: OuterProduct) -> tuple[Knob, Knob]:
    """The rows and the vectors of a register tile for m x n results; those of the usual one are among them."""
    rows = {count for count in ROWS if count <= m} | {usual.rows}
    vectors = {*range(1, min(4, ceil(n / usual.isa.lanes(usual.dtype))) + 1), usual.vectors}
    return Knob("rows", tuple(sorted(rows))), Knob("vectors", tuple(sorted(vectors)))


def fitting(isa: ISA) -> Callable[[Values], bool]:
    """Whether the register tile of some values fits in the registers."""
    return lambda values: fits(isa, values["rows"] or 1, values["vectors"] or 1)
