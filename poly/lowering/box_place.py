"""The placement of a box: its memory, its layout, and the work-items that fill it.

    A_box[x0 - s0, x1 - s1]       of 66 x 34 elements in local memory, rows padded by 1, double-buffered:
      ->  A_box[i_tile mod 2, x0 - s0, x1 - s1]       strides 66*35, 35, 1; 2*66*35 elements

A box in local memory belongs to a work-group, whose items fill it together; one in private memory to a work-item.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as combinations
from math import ceil, prod

from codegen.ir.integer import Int, element_count, product
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA
from poly.errors import ScheduleError
from poly.ir.edits import chain
from poly.ir.tree import Band, Copy, Node, bands, only_loops, statements
from poly.ir.work_groups import LaunchedLoops, item_loops, kernels, width

GUESS = 1024
"""The assumed extent of a side whose extent is not known."""


@dataclass(frozen=True)
class CopyPlace:
    """The surroundings of a copy: the loops above it, outermost first, and the kernel that contains it.

    `kernel` is None if the copy is made before the work-groups start. `items` is the number of work-items of a group.
    """

    node: Copy
    above: tuple[Band, ...]
    kernel: LaunchedLoops | None
    items: int

    @staticmethod
    def of(tree: Node, node: Copy) -> CopyPlace:
        above = only_loops(chain(tree, node))
        kernel = next((kernel for kernel in kernels(tree) if chain(kernel.body, node)), None)
        return CopyPlace(node, above, kernel, width(kernel.body if kernel else tree))

    @property
    def kernel_name(self) -> str:
        """A name for the kernel: its last statement, which is not a copy."""
        return statements(self.kernel.body)[-1] if self.kernel else ""

    @property
    def is_private(self) -> bool:
        """Whether each thread or work-group has its own box."""
        return any(band.parallel for band in self.above) or self.node.memory != "global"

    @property
    def items_above(self) -> int:
        """The number of work-items that share the loops around the copy."""
        return prod(band.items for band in item_loops(self.above))

    def check(self, isa: ISA) -> None:
        """Refuse a memory that the target lacks, or that is not accessible to all readers of the box.

        Raises:
            ScheduleError: names the copy and the remedy.
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
                f"{called}: the copy belongs to a work-group, but work-items share a loop around it. "
                "Remedy: memory='private', or a loop further out."
            )
        if memory == "private" and self.items_above < self.items:
            raise ScheduleError(
                f"{called}: the copy belongs to a work-item, but work-items share a loop inside it. "
                "Remedy: memory='local', or a loop further in."
            )

    def check_size(self, isa: ISA, count: Int, dtype: DType, taken: int) -> int:
        """The bytes of a box of `count` elements on a device, of whose memory `taken` bytes are in use.

        0 if the box is not in a device's local or private memory.

        Raises:
            ScheduleError: the size is not a known number, or exceeds the memory that is left.
        """
        if self.node.memory == "global" or not isinstance(isa, DeviceISA):
            return 0
        called, tiles = _called(self.node), "Remedy: smaller tiles."
        if count.number is None:
            raise ScheduleError(
                f"{called}: the copy has {count} elements, which must be a known number. Remedy: tile the loops that "
                f"read {self.node.array}, and copy at a loop over the tiles."
            )
        wanted, there = count.number * dtype.size, _room(isa, self.node.memory)
        if wanted > there - taken:
            others = f", {taken} of them taken by other copies" * (taken > 0)
            raise ScheduleError(f"{called}: the copy takes {wanted} bytes, and there are {there}{others}. {tiles}")
        return wanted

    def shares(self, extents: tuple[Int, ...]) -> tuple[int, ...]:
        """The number of work-items that share the copying loop over each dimension, of which the last is contiguous.

        Their product is the size of the group (all are 1 if the items don't share the copy). The split takes the fewest
        turns; among equals it favours the last dimension, in which neighbouring items access neighbouring elements.
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
    """The strides of a box, after the stride between buffers if there are several, and the element count of all."""

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
    """The bytes of a work-group's local memory, or of a work-item's registers."""
    return isa.local_bytes if memory == "local" else isa.registers * isa.vector_bytes


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]
