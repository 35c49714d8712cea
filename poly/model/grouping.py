"""Group the axes of a role into loops: flattened if that fills vectors, separate if that suits cache lines.

c, d columns of C[a, c, d], extents 30 and 30       ->      one loop c_d of 900
a, c columns of C[a, b, c], b a row                 ->      two loops, c innermost
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

from codegen.ir.integer import Int
from poly.analysis.roles import Axis
from poly.model import ASSUMED_STRIDE
from poly.model.parts import Side

WASTE = 0.03
"""The share by which whole vectors may exceed the contiguous columns before others are flattened to fill them."""

SCATTERED = 3
"""What a vector of results in several runs costs, in multiply-adds: it is stored, loaded, and stored by its runs."""


@dataclass(frozen=True)
class AxisGroup:
    """Axes that become one loop, the last one varying fastest, and its number of iterations."""

    axes: tuple[Axis, ...]

    @property
    def extent(self) -> int:
        return prod(axis.guess for axis in self.axes)


def _stride(axis: Axis, side: Side) -> int:
    """The stride along the axis in an operand in either direction, or 0 if it is unknown."""
    strides: dict[Side, Int] = {"output": axis.output, "left": axis.left, "right": axis.right}
    return abs(strides[side].number or 0)


def column_group(
    axes: tuple[Axis, ...], lanes: int, steps: int, side: Side, far: bool
) -> tuple[AxisGroup, tuple[Axis, ...]]:
    """The column axes to flatten into one loop, and those that keep their own loops.

    The axes along which the output is contiguous come innermost. The others join them if vectors would otherwise not be
    full; a tile then has several runs of contiguous results, which costs more than idle lanes if the reduction has few
    `steps`. They are ordered as in the operand `side`, so that its cache lines are fully used. `far` tells that the
    right operand does not fit in the second level.
    """
    inner = contiguous(axes)
    alone = turned(axes, inner) if far else None
    if alone is not None:
        group, extra = column_group(tuple(axis for axis in axes if axis is not alone), lanes, steps, side, far)
        return group, (*extra, alone)
    others = sorted((a for a in axes if a not in inner), key=lambda axis: -_stride(axis, side))
    length = prod(axis.guess for axis in inner)
    idle = ceil(length / lanes) * lanes / length - 1
    if all(axis.extent is not None for axis in axes) and idle > max(WASTE, SCATTERED / steps):
        return AxisGroup((*others, *inner)), ()
    return AxisGroup(tuple(inner)), tuple(others)


def turned(axes: Sequence[Axis], inner: Sequence[Axis]) -> Axis | None:
    """The column axis along which the right operand is contiguous, if the output is contiguous along others.

    Panels of its neighbouring values are packed together, so that whole cache lines are read.
    """
    candidates = (a for a in axes if a.right.number == 1 and a not in inner)
    return next((a for a in candidates if a.extent is not None and a.extent >= 8), None)


def contiguous(axes: tuple[Axis, ...]) -> list[Axis]:
    """The axes along which the output is contiguous, outermost first; failing that, the one of least stride."""
    inner = [axis for axis in axes if axis.output.number == 1]
    inner = inner or [min(axes, key=lambda axis: abs(axis.output.number or ASSUMED_STRIDE))]
    while inner[0].extent is not None:
        size = prod(axis.guess for axis in inner) * (inner[-1].output.number or 1)
        outer = next((a for a in axes if a not in inner and a.extent is not None and a.output.number == size), None)
        if outer is None:
            break
        inner.insert(0, outer)
    return inner


def nearest(axes: Sequence[Axis]) -> int:
    """The least stride of the output along any of the axes."""
    return min((abs(axis.output.number or ASSUMED_STRIDE) for axis in axes), default=ASSUMED_STRIDE)


def row_group(axes: tuple[Axis, ...], side: Side) -> tuple[AxisGroup | None, tuple[Axis, ...]]:
    """All row axes as one loop, ordered as in the operand `side`, if sizes are known; else only the innermost."""
    if not axes:
        return None, ()
    if any(axis.extent is None for axis in axes):
        return AxisGroup(axes[-1:]), axes[:-1]
    return AxisGroup(tuple(sorted(axes, key=lambda axis: -_stride(axis, side)))), ()
