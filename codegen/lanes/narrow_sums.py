"""Sums of small integers, of whose types a vector has more than of the results': a block of iterations at a time.

                                          while (i_first + 255 < n)  // a block at a time
for (i…)  // vectorize                      uint16_t s_part = 0;
  s += x[i];                 ->             for (i…) s_part += x[i];
                                            s += s_part;
                                          for (i…) s += x[i];

A block has so few iterations that its sum surely fits the narrow type. Integers wrap around, so the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import cgen

from codegen import style
from codegen.arithmetic import unsigned
from codegen.ir.expr import OF_MORE, Binary, FunctionCall, Unary, loads, looked_up, walk
from codegen.ir.integer import Compare, Int, Linear
from codegen.ir.loop_ir import For
from codegen.ir.program import Assign, Program
from codegen.ir.promotion import limits
from codegen.ir.ranges import Interval
from codegen.ir.value_ranges import ValueRanges
from codegen.lanes.reductions import Partial
from codegen.lanes.simd import LaneReduction
from codegen.macros import EACH_VECTOR
from codegen.names import fresh
from codegen.style import Line, around
from microkernels.dtypes import DType, i16, i32, u16

SHORTEST = 256
"""The least iterations in a block: some vectors of the smallest elements, as their lanes are combined after each."""
LONGEST = 1024
"""The most, since the iterations behind the last whole block are summed in the wide type."""
KINDS = (i16, u16, i32)
"""The types that sums of a block may have."""


@dataclass(frozen=True)
class NarrowSums:
    """The types of the sums of a block, in the order of a loop's reductions, and the iterations in a block."""

    kinds: tuple[DType, ...]
    block: int


def narrow_sums(found: Sequence[LaneReduction], loop: For, program: Program) -> NarrowSums | None:
    """The narrow types in which a loop's sums, and nothing else, may be; None if there are none for some of them."""
    if loop.end is None or loop.step != 1 or any(one.op != "+" for one in found):
        return None
    made = [_narrow(one, program) for one in found]
    kinds = tuple(each[0] for each in made if each is not None)
    block = min((each[1] for each in made if each is not None), default=0)
    is_short = loop.most_span is not None and loop.most_span < block
    return NarrowSums(kinds, block) if len(kinds) == len(found) and not is_short else None


def _narrow(reduction: LaneReduction, program: Program) -> tuple[DType, int] | None:
    """The smallest type for a sum of a block, no smaller than what is summed, and the iterations in a block.

    Compilers have instructions for sums of products and of differences, which are wide: only those of elements, of the
    greatest or least, and of choices are narrow.
    """
    body = program.statements[reduction.statement].body
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    if not isinstance(body, Assign) or reduction.dtype.size < i32.size:
        return None
    nodes = list(walk(body.expr))
    functions = {node.function for node in nodes if isinstance(node, FunctionCall)}
    computed = any(isinstance(node, Binary | Unary) for node in nodes) or functions - OF_MORE
    read = loads(body.expr)
    if computed or any(map(looked_up, read)):
        return None
    found = ValueRanges(dtypes.__getitem__).of(body.expr, reduction.dtype)
    least = max((dtypes[load.array].size for load in read), default=reduction.dtype.size)
    fitting = ((kind, _iterations(found, kind)) for kind in KINDS if least <= kind.size < reduction.dtype.size)
    return next(((kind, block) for kind, block in fitting if block >= SHORTEST), None)


def _iterations(found: Interval, kind: DType) -> int:
    """The largest power of two, up to a limit, of values in an interval that a type has the sum of."""
    low, high = limits(kind)
    block = LONGEST
    while block and not low <= block * min(found[0], 0) <= block * max(found[1], 0) <= high:
        block //= 2
    return block


def in_narrow_sums(
    loop: For,
    end: Int,
    narrow: NarrowSums,
    own: Sequence[Partial],
    taken: frozenset[str],
    body: Callable[[Sequence[str], Mapping[str, DType]], list[cgen.Generable]],
) -> list[cgen.Generable]:
    """The loop in whole blocks and a rest, given its body for some variables to sum into, and the narrow ones' types.

    Each block's sums are added to `own`; the rest is summed there.
    """
    names: list[str] = []
    for one in own:
        names.append(fresh(f"{one.reduction.root}_part", taken.union(names)))
    every = list(zip(own, names, narrow.kinds, strict=True))
    first = Linear.name(fresh(f"{loop.variable}_first", taken.union(names)))
    smaller = {one.reduction.statement: kind for one, _, kind in every}

    def part(past: Int, lines: list[cgen.Generable]) -> list[cgen.Generable]:
        return [Line(EACH_VECTOR), around(replace(loop, start=first, test=Compare(variable, "<", past)), lines)]

    variable, test = Linear.name(loop.variable), Compare(first + (narrow.block - 1), "<", end)
    block = [
        *(Line(f"{unsigned(kind)} {name} = 0;") for _, name, kind in every),
        *part(first + narrow.block, body(names, smaller)),
        *(Line(one.added(name, kind)) for one, name, kind in every),
        Line(f"{first} += {narrow.block};"),
    ]
    return [
        Line(f"int64_t {first} = {loop.start};", loop.start.names),
        style.WhileStatement(Line(str(test), test.names), style.Braces(block)),
        *part(end, body([one.one for one in own], {})),
    ]
