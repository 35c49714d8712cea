"""The call of a microkernel for a tile: pointers, strides, extents, and whether to add to the output."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import starmap
from math import prod

import islpy as isl

from codegen.ir.instructions import START, Call, Cell, Let, Pointer, Table, Value, Write
from codegen.ir.integer import Int, Linear, Test, compare, connected
from codegen.ir.loop_ir import For, If, Node, below
from codegen.ir.program import Instructions
from microkernels.contract import Access, Side
from microkernels.ctext import Space, Spaces
from microkernels.custom_kernel import CustomKernel
from microkernels.errors import TargetError
from microkernels.group_kernel import GroupKernel
from microkernels.isa import ISA
from microkernels.kernel import MatrixVector, OuterProduct
from microkernels.opencl_isa import DeviceISA, is_gpu
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band, Micro
from poly.lowering.address_spaces import word
from poly.lowering.calls import (
    MemoryParts,
    Operand,
    Panel,
    RoutineCall,
    along,
    each_row,
    involves,
    joined,
    loop_arguments,
    moved,
    taken_bands,
)
from poly.lowering.corners import operand_checks, tile_checks
from poly.lowering.group_call import group_call
from poly.lowering.scatter import ragged, scattered
from poly.lowering.tile import KernelTile, run_length, tile_of

SHORT, FAR = 96, 4 << 20
"""Limits for prefetching results: the most steps of the reduction, and the fewest bytes of the output."""

WHOLE = "whole"
"""The C variable that tells whether a ragged tile is a box."""


def kernel_call(
    nest: Nest,
    node: Micro,
    isa: ISA,
    loops: tuple[tuple[str, isl.PwAff], ...],
    panels: Mapping[tuple[str, str], Panel],
    parts: MemoryParts,
) -> RoutineCall:
    """The statement that computes all iterations inside the loops around the microkernel by one call.

    Raises TargetError if the kernel is for another instruction set.
    """
    kernel, made_for = node.kernel, node.kernel.isa.name
    if made_for != isa.name:
        raise TargetError(
            f"microkernel({node.kernel}) is made for {made_for}, and the target is 'c:{isa.name}'. "
            f"Remedy: target='c:{made_for}', or a microkernel of {isa.name}."
        )
    left, right = (panels.get((node.statement, role)) for role in ("left", "right"))
    packed: tuple[tuple[Side, Panel | None], ...] = (("left", left), ("right", right))
    tile = tile_of(nest, node, loops, {side: panel.depth for side, panel in packed if panel}, parts)
    match kernel:
        case MatrixVector():
            return _vector_call(tile, kernel)
        case GroupKernel() if is_gpu(isa):
            return group_call(nest, tile, kernel, isa)
        case CustomKernel():
            return _custom_call(tile, kernel, left, right)
        case OuterProduct():
            return _tile_call(tile, kernel, isa, left, right)
    raise TypeError(type(kernel).__name__)


def _vector_call(tile: KernelTile, kernel: MatrixVector) -> RoutineCall:
    """The call of a matrix-vector kernel for all columns and steps of a tile."""
    left, right, output, node = tile.left, tile.right, tile.output, tile.node
    column, reduced = node.columns, node.reduce[0]
    assert column is not None, "a matrix-vector kernel has columns"
    x, matrix, y = map(tile.start, (left, right, output))
    operands: tuple[Value, ...]
    if kernel.contract.contiguous("right") == kernel.contract.columns:
        operands = (x, left.stride(reduced.name), matrix, right.stride(reduced.name), y)
    else:
        operands = (matrix, right.stride(column.name), x, y, output.stride(column.name))
    extents = (tile.count(column), tile.count(reduced))
    call = Call(kernel.function, (*extents, *operands, tile.factor, tile.accumulate))
    definitions = tuple(starmap(Let, tile.lows.items()))
    body = Instructions((call,), operand_checks((left, right, output), tile.values), definitions)
    return RoutineCall(tile.instances.name, tile.instances.names, tile.instances.domain, body, "gemv")


def _custom_call(tile: KernelTile, kernel: CustomKernel, left: Panel | None, right: Panel | None) -> RoutineCall:
    """The call of a user-defined kernel for one tile, on operands in place or in panels."""
    contract, node = kernel.contract, tile.node
    counts = _counts(tile, kernel)
    operands = (
        *_arguments(tile, contract.left, tile.left, left),
        *_arguments(tile, contract.right, tile.right, right),
        *_arguments(tile, contract.output, tile.output, None),
    )
    arguments = (*(counts[loop] for loop in contract.loops), *operands, tile.factor, tile.accumulate)
    instances = tile.instances
    return RoutineCall(
        instances.name,
        instances.names,
        instances.domain,
        Instructions((Call(kernel.function, arguments),), tile_checks(tile, (left, right)), tile.definitions),
        routine=kernel.family,
        rows=tile.extents(node.rows),
        columns=tile.extents(node.columns),
    )


def _counts(tile: KernelTile, kernel: CustomKernel) -> dict[str, Int]:
    """The C variable of each count, by the contract's loops."""
    contract, levels = kernel.contract, reversed(range(len(tile.node.reduce)))
    steps = zip(contract.reduce, (f"steps{level}" for level in levels), strict=True)
    rows = {} if contract.rows is None else {contract.rows: "tile_rows"}
    found = {**rows, contract.columns: "tile_columns", **dict(steps)}
    return {loop: Linear.name(name) for loop, name in found.items()}


def _arguments(tile: KernelTile, access: Access, operand: Operand, panel: Panel | None) -> tuple[Value, ...]:
    """A pointer to an operand, and its strides along all indices except the last."""
    bands = taken_bands(tile.node)
    strides = [_panel_stride(tile, loop, panel) if panel else operand.stride(bands[loop].name) for loop in access.loops]
    return (panel.start() if panel else tile.start(operand), *strides[:-1])


def _panel_stride(tile: KernelTile, loop: str, panel: Panel) -> Int:
    """The stride of a loop in a panel: 1 for lanes, and a multiple of the panel's width for steps of the reduction."""
    inward = list(reversed(tile.node.reduce))
    level = next((at for at, band in enumerate(inward) if band is taken_bands(tile.node)[loop]), None)
    return Linear.of(1) if level is None else tile.panel_stride(panel, level)


def _tile_call(
    tile: KernelTile, kernel: OuterProduct, isa: ISA, left: Panel | None, right: Panel | None
) -> RoutineCall:
    """The call of an outer-product kernel, which reads its operands in place or from panels."""
    node, output, instances = tile.node, tile.output, tile.instances
    run, accumulate = run_length(output, node), tile.accumulate
    own = run is not None or tile.ragged
    cut = tile.row_columns
    spaces: Spaces = (_space(left), _space(right), "private" if own else "global")
    nodes = [
        *_pointers(tile, kernel, left, own),
        *([] if own else _ahead(tile, kernel)),
        _call(tile, kernel, left, right, spaces, _in_place(tile) if own else accumulate),
        *(scattered(tile, kernel, isa, run, accumulate) if run is not None and not cut else []),
        *([_cut(tile, ragged(tile, kernel, isa, *cut, accumulate))] if cut else []),
    ]
    return RoutineCall(
        instances.name,
        instances.names,
        instances.domain,
        Instructions(tuple(nodes), tile_checks(tile, (left, right)), tile.definitions),
        routine="scatter" if own else "gemm",
        rows=tile.extents(node.rows),
        columns=tile.extents(node.columns),
        spaces=spaces,
    )


def _in_place(tile: KernelTile) -> Int | Test:
    """Whether the call of a tile with memory on the stack adds to results, which are those in place."""
    accumulate, is_whole = tile.accumulate, compare(Linear.name(WHOLE), "!=", Linear())
    if tile.in_place is None or accumulate == Linear():
        return Linear()
    return is_whole if isinstance(accumulate, Linear) else connected("&&", [is_whole, accumulate])


def _cut(tile: KernelTile, stored: Node) -> Node:
    """What stores the rows of a tile on the stack, where it is not whole."""
    return stored if tile.in_place is None else If(compare(Linear.name(WHOLE), "==", Linear()), stored)


def _space(panel: Panel | None) -> Space:
    """The address space of an operand."""
    return panel.space if panel else "global"


def _ahead(tile: KernelTile, kernel: OuterProduct) -> list[Node]:
    """Prefetch the next tile's results if the reduction is short and the output is larger than the nearer caches."""
    steps = [tile.extents(band) for band in tile.node.reduce]
    shape = tile.target.shape
    extents = [extent.constant for extent in shape if not extent.terms]
    known = len(extents) == len(shape) and all(value is not None for value in steps)
    depth = prod(max(value) for value in steps if value)
    loops = tile.instances.loops
    if isinstance(kernel.isa, DeviceISA) or not known or not loops:
        return []
    if depth > SHORT or prod(extents) * kernel.dtype.size < FAR:
        return []
    ahead = Pointer(Cell("row_c", Linear.name("row")), _next_tile(tile, kernel) + Linear.name("at"))
    columns = For.counted(
        "at",
        Linear.of(kernel.columns),
        Call("__builtin_prefetch", (ahead, Linear.of(1), Linear.of(2))),
        step=64 // kernel.dtype.size,
    )
    return [For.counted("row", Linear.name("tile_rows"), columns)]


def _next_tile(tile: KernelTile, kernel: OuterProduct) -> Int:
    """How far the next tile's results are, in elements, as long as the loop around the tile goes on."""
    row, columns, (innermost, function) = tile.node.rows, tile.node.columns, tile.instances.loops[-1]
    if row is not None and _follows(tile.statement, function, row):
        return tile.output.stride(row.name) * kernel.rows
    if columns is not None and _follows(tile.statement, function, columns):
        return Linear.of(kernel.columns)
    return tile.output.stride(innermost)


def _follows(statement: Statement, function: isl.PwAff, band: Band) -> bool:
    """Whether a loop over tiles depends on the iterators of a band."""
    own = band.function(statement.name)
    counted = frozenset(name for name in statement.iterators if involves(statement, own, frozenset({name})))
    return involves(statement, function, counted)


def _pointers(tile: KernelTile, kernel: OuterProduct, panel: Panel | None, has_own: bool) -> list[Node]:
    """Tables of pointers to the rows of the left operand, and of the output or (`has_own`) a tile on the stack."""
    left, output = tile.left, tile.output
    band = tile.node.rows
    row = band.name if band else ""
    c_type, count = kernel.dtype.c_name, kernel.rows
    from_type = f"{word(kernel.isa, _space(panel))}const {c_type} *"
    to_type = f"{c_type} *" if has_own else f"{word(kernel.isa, 'global')}{c_type} *"
    own = [Table(f"{c_type} ", "tile", count * kernel.columns, aligned=True)] if has_own else []
    either = _where_whole(tile, kernel, to_type)
    if (panel or left.is_linear(row)) and (has_own or output.is_linear(row)):
        source = (panel.start(), Linear.of(1)) if panel else (tile.start(left), left.stride(row))
        result = (Pointer("tile"), Linear.of(kernel.columns)) if has_own else (tile.start(output), output.stride(row))
        return [*own, *_rows("a", from_type, *source, count), *(either or _rows("c", to_type, *result, count))]
    (left_atoms, left_offset), (output_atoms, output_offset) = (
        moved(op, op.offset, row, "this_row") for op in (left, output)
    )
    number = Linear.name("row")
    from_row = panel.start(number) if panel else Pointer(left.array, left_offset)
    to_row = Pointer("tile", number * kernel.columns) if has_own else Pointer(output.array, output_offset)
    stores = (Write(Cell("row_a", number), from_row), Write(Cell("row_c", number), to_row))
    return [
        *own,
        Table(from_type, "row_a", count),
        *(either or [Table(to_type, "row_c", count)]),
        each_row(below([along(band, "row", "this_row"), *left_atoms, *output_atoms], stores[: 1 if either else 2])),
    ]


def _where_whole(tile: KernelTile, kernel: OuterProduct, type_: str) -> list[Node]:
    """Pointers to the output's rows where a ragged tile is whole, else to those of the tile on the stack.

    Nothing if none is whole.
    """
    if tile.in_place is None:
        return []
    band, number, output = tile.node.rows, Linear.name("row"), tile.output
    quotients, offset = moved(output, output.offset, band.name if band else "", "this_row")
    there = below(
        [along(band, "row", "this_row"), *quotients], [Write(Cell("row_c", number), Pointer(output.array, offset))]
    )
    here = Write(Cell("row_c", number), Pointer("tile", number * kernel.columns))
    return [
        Let(WHOLE, tile.in_place),
        Table(type_, "row_c", kernel.rows),
        If(compare(Linear.name(WHOLE), "!=", Linear()), each_row(there), each_row(here)),
    ]


def _rows(name: str, type_: str, first: Pointer, apart: Int, count: int) -> list[Node]:
    """A table of pointers to rows so far `apart`; what the first one adds to its array is computed once."""
    lets: list[Node] = []
    if count > 1 and first.offset != START:
        lets = [Let(f"first_{name}", first, f"{type_}const ")]
        first = Pointer(f"first_{name}")
    pointers = tuple(Pointer(first.base, apart * row) for row in range(count)) if count > 1 else (first,)
    return [*lets, Table(f"{type_}const ", f"row_{name}", count, pointers)]


def _call(
    tile: KernelTile,
    kernel: OuterProduct,
    left: Panel | None,
    right: Panel | None,
    spaces: Spaces,
    accumulate: Int | Test,
) -> Call:
    """The kernel's call: extents, pointers, and the loops of the reduction."""
    operands = (Pointer("row_a"), right.start() if right else tile.start(tile.right), Pointer("row_c"))
    extents = (Linear.name("tile_rows"), Linear.name("tile_columns"))
    loops = loop_arguments(joined(tile.reduction(left, right)))
    return Call(kernel.function(spaces), (*extents, *operands, *loops, tile.factor, accumulate))
