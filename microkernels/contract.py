"""A contract: the small nest that a microkernel computes, as the matcher reads it.

    C[i, j] += A[i, k] * B[k, j]        rows i, columns j, the reduction k

Arrays are contiguous along their last index, and may have any stride along the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from microkernels.product import MULTIPLY_ADD, OperationPair

Side = Literal["left", "right", "output"]


@dataclass(frozen=True)
class Access:
    """An array with one loop for each of its indices: `A[i, k]`."""

    array: str
    loops: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.array}[{', '.join(self.loops)}]"


@dataclass(frozen=True)
class Contract:
    """`output += left * right`, or another pair of operations, over all values of the loops in them.

    The rows are a loop of `output` and `left`, the columns one of `output` and `right`, the reduction the others.
    Operands on the sides `anyhow` may have any stride along their last index, too.
    """

    output: Access
    left: Access
    right: Access
    anyhow: tuple[Side, ...] = ()
    product: OperationPair = MULTIPLY_ADD

    def __str__(self) -> str:
        return self.product.text(str(self.output), str(self.left), str(self.right))

    @property
    def loops(self) -> tuple[str, ...]:
        """Rows and columns, then the reduction from outside in."""
        return (*self.output.loops, *self.reduce)

    @property
    def rows(self) -> str | None:
        """The loop over rows; None for a vector times a matrix."""
        return next(_both(self.output, self.left), None)

    @property
    def columns(self) -> str:
        """The loop over columns."""
        return next(_both(self.output, self.right))

    @property
    def reduce(self) -> tuple[str, ...]:
        """The loops of the reduction, from outside in."""
        return tuple(_both(self.left, self.right))

    def access(self, side: Side) -> Access:
        return {"left": self.left, "right": self.right, "output": self.output}[side]

    def contiguous(self, side: Side) -> str | None:
        """The loop along which an operand must be contiguous; None if any stride will do."""
        return None if side in self.anyhow else self.access(side).loops[-1]


def _both(one: Access, other: Access) -> Iterator[str]:
    return (loop for loop in one.loops if loop in other.loops)
