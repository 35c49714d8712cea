"""The call of a GPU microkernel by a whole work-group: pointers and strides, or tables if there is no constant stride.

rows p_q of A[p, q, k], which has 30 columns, 28 values of q
    ->      S_a_rows[row] = 30*(this_row / 28) + … for the rows of the tile, by all work-items
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd

from codegen.ir.instructions import ITEM, Call, Cell, Let, Pointer, Value, Write
from codegen.ir.integer import Linear
from codegen.ir.loop_ir import For, Node, below
from codegen.ir.program import Instructions, Workspace
from codegen.names import c_name, fresh
from microkernels.dtypes import i64
from microkernels.errors import TargetError
from microkernels.group_kernel import GroupKernel
from microkernels.opencl_isa import DeviceISA
from poly.ir.nest import Nest
from poly.lowering.address_spaces import LOCAL_BARRIER
from poly.lowering.calls import Operand, RoutineCall, along, inner_bands, loop_arguments, moved
from poly.lowering.tile import KernelTile


@dataclass(frozen=True)
class OperandLine:
    """The addressing of an operand's rows or columns: a stride, or a table of their part of the offset."""

    operand: Operand
    loop: str
    table: str

    @property
    def is_tabled(self) -> bool:
        return not self.operand.is_linear(self.loop)

    @property
    def arguments(self) -> tuple[Value, Value]:
        """The table and a common divisor of its entries, or a null pointer and the stride."""
        if not self.is_tabled:
            return Linear(), self.operand.stride(self.loop)
        return Pointer(self.table), Linear.of(gcd(*(count for _, count in self.operand.part(self.loop).terms)))

    def entry(self, at: str, this: str) -> tuple[list[Let], Write]:
        """The quotients that a table's entry needs, and the write that stores the entry."""
        lets, offset = moved(self.operand, self.operand.part(self.loop), self.loop, this)
        return lets, Write(Cell(self.table, Linear.name(at)), offset)


@dataclass(frozen=True)
class Lines:
    """The addressing of a tile's rows and columns in each array that has them."""

    a_rows: OperandLine
    b_columns: OperandLine
    c_rows: OperandLine
    c_columns: OperandLine

    @staticmethod
    def of(tile: KernelTile, taken: frozenset[str]) -> Lines:
        node = tile.node
        row, column = (band.name if band else "" for band in (node.rows, node.columns))

        def line(operand: Operand, loop: str, name: str) -> OperandLine:
            return OperandLine(operand, loop, fresh(f"{node.statement}_{name}", taken))

        return Lines(
            line(tile.left, row, "a_rows"),
            line(tile.right, column, "b_columns"),
            line(tile.output, row, "c_rows"),
            line(tile.output, column, "c_columns"),
        )

    @property
    def rows(self) -> tuple[OperandLine, ...]:
        """The rows with tables."""
        return tuple(line for line in (self.a_rows, self.c_rows) if line.is_tabled)

    @property
    def columns(self) -> tuple[OperandLine, ...]:
        """The columns with tables."""
        return tuple(line for line in (self.b_columns, self.c_columns) if line.is_tabled)


def group_call(nest: Nest, tile: KernelTile, kernel: GroupKernel, isa: DeviceISA) -> RoutineCall:
    """The call of a GPU microkernel by all work-items of a group.

    Raises ScheduleError if an operand has no constant stride along the reduction, TargetError if the device cannot hold
    the group or its panels and tables.
    """
    node, instances = tile.node, tile.instances
    loops = (*instances.names, *(band.name for band in inner_bands(node)))
    taken = frozenset({*loops, *(c_name(name) for name in (*nest.sizes, *(a.name for a in nest.arrays)))})
    lines, panels = Lines.of(tile, taken), fresh(f"{node.statement}_panels", taken)
    nodes = (*_filled(tile, kernel, lines), _call(tile, kernel, lines, panels))
    workspaces = (
        Workspace(panels, kernel.panel_dtype, Linear.of(kernel.panel_elements), space="local"),
        *_tables(lines.rows, kernel.rows),
        *_tables(lines.columns, kernel.columns),
    )
    _check_device(kernel, sum(w.count.constant * w.dtype.size for w in workspaces), isa)
    return RoutineCall(
        instances.name,
        instances.names,
        instances.domain,
        Instructions(nodes, definitions=tile.definitions, items=kernel.items),
        routine="gemm",
        rows=tile.extents(node.rows),
        columns=tile.extents(node.columns),
        workspaces=workspaces,
    )


def _tables(lines: Iterable[OperandLine], count: int) -> list[Workspace]:
    return [Workspace(line.table, i64, Linear.of(count), space="local") for line in lines]


def _check_device(kernel: GroupKernel, local_bytes: int, isa: DeviceISA) -> None:
    if not kernel.fits(isa) or local_bytes > isa.local_bytes:
        f64 = "" if isa.f64 else ", no f64"
        raise TargetError(
            f"microkernel({kernel.name}) needs {kernel.items} work-items and {local_bytes} bytes of local "
            f"memory for {kernel.dtype}; the device has {isa.max_items} and {isa.local_bytes}{f64}. "
            "Remedy: a smaller tile."
        )


def _filled(tile: KernelTile, kernel: GroupKernel, lines: Lines) -> list[Node]:
    """The loops in which all work-items fill the tables; empty if all rows and columns have a constant stride."""
    rows, columns = tile.node.rows, tile.node.columns
    filled = [
        *_entries(lines.rows, "row", "tile_rows", kernel.items, along(rows, "row", "this_row")),
        *_entries(lines.columns, "at", "tile_columns", kernel.items, along(columns, "at", "this_column")),
    ]
    return [LOCAL_BARRIER, *filled, LOCAL_BARRIER] if filled else []


def _entries(lines: Sequence[OperandLine], at: str, count: str, items: int, this: Let) -> list[Node]:
    """The loop that fills the tables of the rows or of the columns."""
    if not lines:
        return []
    entries = [line.entry(at, this.name) for line in lines]
    quotients = (quotient for own, _ in entries for quotient in own)
    body = below([this, *quotients], [store for _, store in entries])
    return [For.counted(at, Linear.name(count), body, Linear.name(ITEM), items)]


def _call(tile: KernelTile, kernel: GroupKernel, lines: Lines, panels: str) -> Call:
    """The kernel's call: the operands with their rows and columns, then the loops of the reduction."""
    arguments = (
        *(Linear.name("tile_rows"), Linear.name("tile_columns")),
        *(_start(tile.left, lines.rows), *lines.a_rows.arguments),
        *(_start(tile.right, lines.columns), *lines.b_columns.arguments),
        *(_start(tile.output, (*lines.rows, *lines.columns)), *lines.c_rows.arguments, *lines.c_columns.arguments),
        *(*loop_arguments(tile.reduction()), tile.factor, tile.accumulate, Pointer(panels)),
    )
    return Call(kernel.c_name, arguments)


def _start(operand: Operand, tabled: Iterable[OperandLine]) -> Pointer:
    """The address of an operand's first element, without the parts of the offset that its tables add."""
    offset = operand.offset
    for line in tabled:
        if line.operand is operand:
            offset = offset - line.operand.part(line.loop)
    return Pointer(operand.array, offset)
