"""Values of knobs: block sizes, and shapes of register tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil

from microkernels.catalogue import fits
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from microkernels.product import MULTIPLY_ADD, OperationPair
from poly.autoschedule.spaces.space import Knob, Value, Values
from poly.machine.tiles import ROWS

APART = 1.2
"""The ratio by which a divisor must differ from all powers of two to become a value."""


def sizes(extent: int | None, least: int, most: int, also: Iterable[int] = ()) -> tuple[int, ...]:
    """Block sizes for a loop: powers of two and divisors of its extent, from `least` to `most` and below the extent.

    Divisors leave no partial block; only multiples of `least` that are not near a power of two count. `also` are sizes
    to include in any case. `extent` is None for a loop of unknown length.
    """
    powers = [1 << exponent for exponent in range(least.bit_length() - 1, most.bit_length())]
    fitting = {p for p in powers if least <= p <= most and (extent is None or p < extent)}
    multiples = range(least, min(most, (extent or 0) - 1) + 1, least)
    divisors = {size for size in multiples if extent is not None and extent % size == 0}
    alone = {d for d in divisors if all(max(d / p, p / d) >= APART for p in powers)}
    return tuple(sorted(fitting | alone | set(also)))


def uncut(values: Iterable[int]) -> tuple[Value, ...]:
    """The values followed by None, which leaves the loop uncut."""
    return (*values, None)


def middle(values: tuple[int, ...]) -> int:
    """The middle value, used to try a form."""
    return values[len(values) // 2]


def tile_knobs(m: int, n: int, usual: OuterProduct) -> tuple[Knob, Knob]:
    """The knobs for rows and vectors of a register tile for m x n results; they include the usual tile."""
    rows = {count for count in ROWS if count <= m} | {usual.rows}
    vectors = {*range(1, min(4, ceil(n / usual.isa.lanes(usual.dtype))) + 1), usual.vectors}
    return Knob("rows", tuple(sorted(rows))), Knob("vectors", tuple(sorted(vectors)))


def fitting(isa: ISA, product: OperationPair = MULTIPLY_ADD) -> Callable[[Values], bool]:
    """A test of whether the register tile at given values fits in the registers."""
    return lambda values: fits(isa, values["rows"] or 1, values["vectors"] or 1, by=product)
