"""A GPU microkernel: a work-group computes a tile of the result, each work-item a small part of it in registers.

`gemm_openclgpu_128x128x8_8x8_db` is a tile of 128 rows and 128 columns in slabs of 8 steps of the reduction, with 8 x 8
sums per work-item and double-buffered panels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from microkernels.ctext import GLOBAL, Spaces, guarded
from microkernels.dtypes import DType
from microkernels.gpu_text import Scalar, common, panel, panel_suffix, specialised
from microkernels.kernel import OUTER_PRODUCT, TileKernel, named
from microkernels.opencl_isa import DeviceISA

FROM_ANYWHERE = replace(OUTER_PRODUCT, anyhow=("left", "right", "output"))

PATCH = (4, 8)
"""Rows and columns of a patch of neighbouring work-items: 32, which most GPUs run in lockstep."""

CROWD = 256
"""The work-items of a group that has a unit to itself if its items use all the registers they can have."""

ADDRESSES = 16
"""Registers of a work-item set aside for addresses."""


@dataclass(frozen=True)
class GroupKernel(TileKernel):
    """A microkernel with which a work-group computes `rows` x `columns` elements of the result.

    Each work-item accumulates `item_rows` x `item_columns` of them. The `__local` panels hold `slab` steps of the
    reduction at a time; with `double` there are two pairs of panels. docs/microkernels.md has the function's arguments.
    """

    slab: int
    item_rows: int
    item_columns: int
    double: bool

    by_group: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return named(self.family, self.isa, self.shape)

    @property
    def shape(self) -> str:
        """`64x64x16_4x4_db`."""
        tile = f"{self.rows}x{self.columns}x{self.slab}_{self.item_rows}x{self.item_columns}"
        return f"{tile}_db" if self.double else tile

    @property
    def c_name(self) -> str:
        """The function: `gemm_f32_openclgpu_64x64x16_4x4`. All operands are in `__global` memory."""
        return f"{self.family}_{self._scalar.suffix}_{self.shape}"

    @property
    def items(self) -> int:
        """The number of work-items in a group."""
        return self.rows // self.item_rows * (self.columns // self.item_columns)

    @property
    def panel_dtype(self) -> DType:
        """The type of the panels' elements, and of alpha."""
        return self._scalar.computed

    @property
    def panel_elements(self) -> int:
        """The length of the `__local` array for the function's last argument, which must be aligned to 16 bytes."""
        width = self._scalar.width
        return self.slab * (self.rows + self.columns + 2 * width) * (2 if self.double else 1)

    @property
    def local_bytes(self) -> int:
        return self.panel_elements * self.panel_dtype.size

    @property
    def registers(self) -> int:
        """Registers of 32 bits that an item needs: sums, a step's operands, its share of the next slab, addresses."""
        elements = self.item_rows * self.item_columns + self.item_rows + self.item_columns
        return (elements + sum(self._shares)) * self.panel_dtype.size // 4 + ADDRESSES

    @property
    def is_crowded(self) -> bool:
        """Whether two groups share a unit only if the compiler uses no more registers than the item needs.

        Those are its `registers` and the operands of one more step, which are read ahead. Smaller groups are several
        anyhow, and where more is needed a limit costs more than it gains.
        """
        ahead = (self.item_rows + self.item_columns) * self.panel_dtype.size // 4
        return self.items >= CROWD and self.registers + ahead < self.isa.registers

    def source(
        self, rows: Iterable[int] | None = None, columns: Iterable[int] | None = None, spaces: Spaces = GLOBAL
    ) -> str:
        """OpenCL C that defines the function and all that it needs; one text serves all `rows` and `columns`."""
        scalar = self._scalar
        panels = (panel(scalar, lanes, self.slab, self.items) for lanes in {self.rows, self.columns})
        return common(scalar) + "".join(sorted(panels)) + guarded(self.c_name, self._text())

    def misfit(self) -> str | None:
        """The reason why no kernel with these numbers exists; None if one does."""
        width = self._scalar.width
        down, across = self.rows // self.item_rows, self.columns // self.item_columns
        if self.item_rows % width or self.item_columns % width:
            return f"rows and columns of an item must be multiples of {width} for {self.dtype}"
        if down * self.item_rows != self.rows or across * self.item_columns != self.columns:
            return "the tile must be a multiple of an item's part"
        if down % PATCH[0] or across % PATCH[1]:
            return f"work-items must form patches of {PATCH[0]} x {PATCH[1]}, and they are {down} x {across}"
        if any(lanes * self.slab % (self.items * width) for lanes in (self.rows, self.columns)) or self.slab % width:
            return f"{self.items} work-items can't share a slab in vectors of {width}"
        if any(
            not _divides(n, m) for n in (self.items, self.items * width) for m in (self.rows, self.columns, self.slab)
        ):
            return f"{self.items} work-items can't share a slab in whole rows"
        if self.registers > self.isa.registers:
            return f"an item needs about {self.registers} of {self.isa.registers} registers. Take fewer rows or columns"
        return None

    def fits(self, device: DeviceISA) -> bool:
        """Whether a device can hold the group and its panels, and computes in the type."""
        able = device.f64 or self.panel_dtype.size < 8
        return able and self.items <= device.max_items and self.local_bytes <= device.local_bytes

    @property
    def _scalar(self) -> Scalar:
        return Scalar(self.dtype)

    @property
    def _shares(self) -> tuple[int, int]:
        """The elements of a slab of A and of B that a work-item loads."""
        return self.rows * self.slab // self.items, self.columns * self.slab // self.items

    def _text(self) -> str:
        """The function, with the parts that are specialised for its shape."""
        scalar, width = self._scalar, self._scalar.width
        across = self.columns // self.item_columns
        left_panel = self.slab * (self.rows + width)
        numbers = {
            "ROWS": self.rows,
            "COLUMNS": self.columns,
            "SLAB": self.slab,
            "ITEMS": self.items,
            "ITEM_ROWS": self.item_rows,
            "ITEM_COLUMNS": self.item_columns,
            "ROW_PITCH": self.rows + width,
            "COLUMN_PITCH": self.columns + width,
            "ROW_JUMP": self.rows // self.item_rows * width,
            "COLUMN_JUMP": across * width,
            "PATCH_ROWS": PATCH[0],
            "PATCH_COLUMNS": PATCH[1],
            "PATCHES": across // PATCH[1],
            "LEFT_SHARE": self._shares[0],
            "RIGHT_SHARE": self._shares[1],
            "LEFT_PANEL": left_panel,
            "PAIR": left_panel + self.slab * (self.columns + width),
        }
        words = scalar.words | {name: str(number) for name, number in numbers.items()} | {"NAME": self.c_name}
        suffixes = {
            "T": scalar.suffix,
            "TILE": f"{scalar.suffix}_{self.shape}",
            "LEFT": panel_suffix(scalar, self.rows, self.slab, self.items),
            "RIGHT": panel_suffix(scalar, self.columns, self.slab, self.items),
        }
        files = ("group_multiply", "group_slabs_db" if self.double else "group_slabs", "gemm_group")
        return "\n".join(specialised(file, words, suffixes) for file in files)


def _divides(a: int, b: int) -> bool:
    """Whether one of the numbers is a multiple of the other."""
    return a % b == 0 or b % a == 0
