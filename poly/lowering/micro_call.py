"""A microkernel's tile as a call: pointers, strides, extents, and whether the result is added to what is there."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import islpy as isl

from codegen.definitions import needed
from codegen.integer import Linear, product
from codegen.program import Text
from microkernels.ctext import Space, Spaces
from microkernels.custom_kernel import CustomKernel
from microkernels.errors import TargetError
from microkernels.group_kernel import GroupKernel
from microkernels.isa import ISA
from microkernels.kernel import LEVELS, MatrixVector, OuterProduct
from microkernels.opencl_isa import DeviceISA, is_gpu
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band, Micro
from poly.lowering.address_spaces import word
from poly.lowering.calls import (
    Operand,
    Panel,
    RoutineCall,
    address,
    involves,
    loop_lines,
    moved,
)
from poly.lowering.corners import tile_checks
from poly.lowering.custom_call import custom_call
from poly.lowering.group_call import group_call
from poly.lowering.scatter import run_length, scatter_lines
from poly.lowering.tile import KernelTile, tile_of
from poly.lowering.vector_call import vector_call

SHORT, FAR = 96, 4 << 20
"""Steps of a reduction too few to hide how long the output takes to come, and bytes of an output that lies far away."""


def kernel_call(
    nest: Nest,
    node: Micro,
    isa: ISA,
    loops: tuple[tuple[str, isl.PwAff], ...],
    panels: Mapping[tuple[str, str], Panel],
) -> RoutineCall:
    """The statement that stands for all the iterations below the loops that surround the microkernel.

    Raises TargetError if the kernel is made for another instruction set.
    """
    kernel, made_for = node.kernel, node.kernel.isa.name
    if made_for != isa.name:
        raise TargetError(
            f"microkernel({node.kernel}) is made for {made_for}, and the target is 'c:{isa.name}'. "
            f"Remedy: target='c:{made_for}', or a microkernel of {isa.name}."
        )
    tile = tile_of(nest, node, loops)
    left, right = (panels.get((node.statement, role)) for role in ("left", "right"))
    match kernel:
        case MatrixVector():
            return vector_call(tile, kernel)
        case GroupKernel() if is_gpu(isa):
            return group_call(nest, tile, kernel, isa)
        case CustomKernel():
            return custom_call(tile, kernel, left, right)
        case OuterProduct():
            return _tile_call(tile, kernel, isa, left, right)
    raise TypeError(type(kernel).__name__)


def _tile_call(
    tile: KernelTile, kernel: OuterProduct, isa: ISA, left: Panel | None, right: Panel | None
) -> RoutineCall:
    """The call of an outer-product kernel, whose operands are read in place or from panels."""
    node, output, instances = tile.node, tile.output, tile.instances
    run, accumulate = run_length(output, node), tile.accumulate
    spaces: Spaces = (_space(left), _space(right), "global" if run is None else "private")
    lines = [
        *_pointers(tile, kernel, left, run is not None),
        *(_ahead(tile, kernel) if run is None else []),
        *_call(tile, kernel, left, right, spaces, accumulate if run is None else "0"),
        *(scatter_lines(node, kernel, isa, output, run, accumulate) if run is not None else []),
    ]
    return RoutineCall(
        instances.name,
        instances.names,
        instances.domain,
        Text(tuple(lines), tile_checks(tile, (left, right)), tile.definitions),
        routine="gemm" if run is None else "scatter",
        rows=tile.extents(node.rows),
        columns=tile.extents(node.columns),
        spaces=spaces,
    )


def _space(panel: Panel | None) -> Space:
    """Where an operand lies."""
    return panel.space if panel else "global"


def _ahead(tile: KernelTile, kernel: OuterProduct) -> list[str]:
    """Ask for the lines of the next tile's results, where the sum is short and the output larger than caches nearby."""
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
    row = tile.node.rows
    down = row is not None and _follows(tile.statement, loops[-1][1], row)
    moves = tile.output.stride(row.name) * kernel.rows if row and down else Linear.of(kernel.columns)
    return [
        "for (int64_t row = 0; row < tile_rows; row++)",
        f"    for (int64_t at = 0; at < {kernel.columns}; at += {64 // kernel.dtype.size})",
        f"        __builtin_prefetch(row_c[row] + {moves} + at, 1, 2);",
    ]


def _follows(statement: Statement, function: isl.PwAff, band: Band) -> bool:
    """Whether a loop over tiles moves along a band's iterators."""
    own = band.function(statement.name)
    counted = frozenset(name for name in statement.iterators if involves(statement, own, frozenset({name})))
    return involves(statement, function, counted)


def _pointers(tile: KernelTile, kernel: OuterProduct, panel: Panel | None, scattered: bool) -> list[str]:
    """C arrays with a pointer for each row of the left operand, and of the output or a tile in its place."""
    left, output = tile.left, tile.output
    row = tile.node.rows.name if tile.node.rows else ""
    c_type = kernel.dtype.c_name
    from_type = f"{word(kernel.isa, _space(panel))}const {c_type}"
    to_type = c_type if scattered else f"{word(kernel.isa, 'global')}{c_type}"
    count = range(kernel.rows)
    lines = [f"{c_type} tile[{kernel.rows * kernel.columns}] __attribute__((aligned(64)));"] if scattered else []
    if (panel or left.is_linear(row)) and (scattered or output.is_linear(row)):
        sources = [f"{panel.start} + {r}" if panel else _row(tile, left, row, r) for r in count]
        results = [f"tile + {r * kernel.columns}" if scattered else _row(tile, output, row, r) for r in count]
        return [
            *lines,
            f"{from_type} *const row_a[{kernel.rows}] = {{{', '.join(sources)}}};",
            f"{to_type} *const row_c[{kernel.rows}] = {{{', '.join(results)}}};",
        ]
    (left_atoms, left_offset), (output_atoms, output_offset) = (
        moved(op, op.offset, row, "this_row") for op in (left, output)
    )
    definitions = dict.fromkeys([f"const int64_t this_row = {row} + row;", *left_atoms, *output_atoms])
    source = f"{panel.start} + row" if panel else f"{left.array} + {left_offset}"
    result = f"tile + row * {kernel.columns}" if scattered else f"{output.array} + {output_offset}"
    return [
        *lines,
        f"{from_type} *row_a[{kernel.rows}];",
        f"{to_type} *row_c[{kernel.rows}];",
        *loop_lines(
            "for (int64_t row = 0; row < tile_rows; row++)",
            needed(list(definitions), [f"row_a[row] = {source};", f"row_c[row] = {result};"]),
        ),
    ]


def _row(tile: KernelTile, op: Operand, row: str, number: int) -> str:
    """C text of where a row of a tile begins."""
    return address(op.array, tile.start(op) + op.stride(row) * number)


def _call(
    tile: KernelTile,
    kernel: OuterProduct,
    left: Panel | None,
    right: Panel | None,
    spaces: Spaces,
    accumulate: str,
) -> list[str]:
    """The kernel's call, with the extents and strides of the reduction's loops from inside out."""
    inward = tuple(reversed(tile.node.reduce))
    levels = ["1, 0, 0"] * LEVELS
    for level, band in enumerate(inward):
        before = product(Linear.name(f"steps{inner}") for inner in range(level))
        strides = [
            before * panel.width if panel else op.stride(band.name)
            for panel, op in ((left, tile.left), (right, tile.right))
        ]
        levels[level] = f"steps{level}, {strides[0]}, {strides[1]}"
    start = right.start if right else address(tile.right.array, tile.start(tile.right))
    operands = f"row_a, {start}, row_c, {', '.join(levels)}, {tile.factor}, {accumulate}"
    return [f"{kernel.function(spaces)}(tile_rows, tile_columns, {operands});"]
