"""The call of a user-defined microkernel: the counts of its contract's loops, then each operand with its strides."""

from __future__ import annotations

from codegen.instructions import Call, Value
from codegen.integer import Int, Linear
from codegen.program import Instructions
from microkernels.contract import Access
from microkernels.custom_kernel import CustomKernel
from poly.lowering.calls import Operand, Panel, RoutineCall, taken_bands
from poly.lowering.corners import tile_checks
from poly.lowering.tile import KernelTile


def custom_call(tile: KernelTile, kernel: CustomKernel, left: Panel | None, right: Panel | None) -> RoutineCall:
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
