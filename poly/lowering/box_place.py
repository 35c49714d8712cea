"""Where a box lies: which memory, how its rows are apart, and which work-items fill it.

    A_box[x0 - s0, x1 - s1]       of 66 x 34 elements in local memory, rows 1 further apart, 2 boxes in turn:
      ->  A_box[i_tile mod 2, x0 - s0, x1 - s1]       strides 66*35, 35, 1; 2*66*35 elements

A box in local memory is one for a work-group, whose items copy it together; one in private memory is for a work-item.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as combinations
from math import ceil, prod

from codegen.integer import Int, element_count, product
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA
from poly.errors import ScheduleError
from poly.ir.edits import chain
from poly.ir.tree import Band, Copy, Node, bands, statements
from poly.ir.work_groups import LaunchedLoops, item_loops, kernels, width

GUESS = 1024
"""The extent that a side is taken to have, where it is not known."""


@dataclass(frozen=True)
class CopyPlace:
    """What stands around a copy: the loops, outermost first, and the kernel of which a group makes the copy.

    `kernel` is None where the copy is made before the groups start. `items` is how many work-items a group has.
    """

    node: Copy
    above: tuple[Band, ...]
    kernel: LaunchedLoops | None
    items: int

    @staticmethod
    def of(tree: Node, node: Copy) -> CopyPlace:
        above = tuple(n for n in chain(tree, node) if isinstance(n, Band))
        kernel = next((kernel for kernel in kernels(tree) if chain(kernel.body, node)), None)
        return CopyPlace(node, above, kernel, width(kernel.body if kernel else tree))

    @property
    def kernel_name(self) -> str:
        """A name of the kernel: its last statement's, which is no copy."""
        return statements(self.kernel.body)[-1] if self.kernel else ""

    @property
    def is_private(self) -> bool:
        """Whether each thread or work-group has a box of its own."""
        return any(band.parallel for band in self.above) or self.node.memory != "global"

    @property
    def items_above(self) -> int:
        """How many work-items share the loops around the copy."""
        return prod(band.items for band in item_loops(self.above))

    def check(self, isa: ISA) -> None:
        """Refuse a memory that the target lacks, or that not all who read the box can reach.

        Raises:
            ScheduleError: names the copy, and what to do.
        """
        memory, called = self.node.memory, _called(self.node)
        if memory != "global" and not isinstance(isa, DeviceISA):
            raise ScheduleError(
                f"{called}: {isa.name} has one memory only. Remedy: leave memory out, or compile for target='opencl'."
            )
        if memory != "global" and self.kernel is None:
            loops = ", ".join(band.name for band in bands(self.node.body) if band.parallel)
            raise ScheduleError(
                f"{called}: the copy is made before the work-groups start. Remedy: at={loops}, or a loop in it."
            )
        if memory != "private" and self.items_above > 1:
            raise ScheduleError(
                f"{called}: the copy is one for a work-group, and work-items share a loop around it. "
                "Remedy: memory='private', or a loop further out."
            )
        if memory == "private" and self.items_above < self.items:
            raise ScheduleError(
                f"{called}: the copy is one for a work-item, and work-items share a loop inside of it. "
                "Remedy: memory='local', or a loop further in."
            )

    def check_size(self, isa: ISA, count: Int, dtype: DType, taken: int) -> int:
        """The bytes of a box of `count` elements on a device; `taken` bytes of its memory are in use.

        Raises:
            ScheduleError: the size is not known, or there is not so much memory.
        """
        if self.node.memory == "global" or not isinstance(isa, DeviceISA):
            return 0
        called, tiles = _called(self.node), "Remedy: smaller tiles."
        if count.number is None:
            raise ScheduleError(
                f"{called}: the copy has {count} elements, and that must be a number. Remedy: tile the loops that "
                f"read {self.node.array}, and copy at a loop over the tiles."
            )
        wanted, there = count.number * dtype.size, _room(isa, self.node.memory)
        if wanted > there - taken:
            others = f", {taken} of them taken by other copies" * (taken > 0)
            raise ScheduleError(f"{called}: the copy takes {wanted} bytes, and there are {there}{others}. {tiles}")
        return wanted

    def shares(self, extents: tuple[Int, ...]) -> tuple[int, ...]:
        """How many work-items share the copying loop over each dimension, the last one contiguous; 1 for no sharing.

        Together they are as many as share the loops below the copy, and take the fewest turns; neighbours along the
        last dimension come first.
        """
        if self.node.memory == "private" or self.items == 1:
            return (1,) * len(extents)
        sides = [GUESS if extent.number is None else extent.number for extent in extents]
        splits = [s for s in combinations(*[_divisors(self.items)] * len(sides)) if prod(s) == self.items]

        def turns(split: tuple[int, ...]) -> int:
            return prod(ceil(side / count) for side, count in zip(sides, split, strict=True))

        return min(splits, key=lambda split: (turns(split), tuple(-count for count in reversed(split))))


@dataclass(frozen=True)
class BoxLayout:
    """Strides of a box, one for the number of the box first where there are two, and the elements of all."""

    strides: tuple[Int, ...]
    count: Int

    @staticmethod
    def of(node: Copy, extents: tuple[Int, ...]) -> BoxLayout:
        padded = node.pad and len(extents) > 1
        apart = (*extents[:-1], extents[-1] + node.pad) if padded else extents
        strides = tuple(product(apart[d + 1 :]) for d in range(len(apart)))
        if node.buffers == 1:
            return BoxLayout(strides, element_count(apart))
        return BoxLayout((product(apart), *strides), element_count((node.buffers, *apart)))


def _called(node: Copy) -> str:
    return f"pack({node.array}, memory={node.memory})"


def _room(isa: DeviceISA, memory: str) -> int:
    """Bytes that a work-group has in local memory, or that a work-item has in registers."""
    return isa.local_bytes if memory == "local" else isa.registers * isa.vector_bytes


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]
