"""Assertions that a routine's call stays inside its arrays, for the corners of the box of iterations that it covers.

C[i + 1, j] for rows from i and columns from j    ->    PFX_IN(i + 1, M); PFX_IN(i + tile_rows, M); …
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from codegen.ir.instructions import Call, assert_within, index_inside
from codegen.ir.integer import Int, Linear, quotient
from codegen.ir.integer import product as multiplied
from poly.lowering.calls import Operand, Panel, in_words
from poly.lowering.tile import KernelTile


def operand_checks(operands: Iterable[Operand], counts: Mapping[str, Int]) -> tuple[Call, ...]:
    """Assertions for the operands of a call; `counts` has the number of iterations of each loop inside."""
    all_places = ((op, index, extent) for op in operands for index, extent in op.places)
    places = ((corner, extent) for op, index, extent in all_places for corner in _corners(op, index, counts))
    return tuple(dict.fromkeys(check for corner, extent in places for check in index_inside(corner, extent)))


def tile_checks(tile: KernelTile, panels: Iterable[Panel | None]) -> tuple[Call, ...]:
    """Assertions for a tile's operands in their arrays and in panels."""
    node = tile.node
    steps = {band.name: f"steps{level}" for level, band in enumerate(reversed(node.reduce))}
    extents = {band.name: name for band, name in ((node.rows, "tile_rows"), (node.columns, "tile_columns")) if band}
    counts: dict[str, Int] = {loop: Linear.name(name) for loop, name in (extents | steps).items()}
    read = [panel_check(panel, _read(tile, panel)) for panel in panels if panel]
    boxes = (tile.left, tile.right) if tile.ragged else (tile.left, tile.right, tile.output)
    return (*operand_checks(boxes, counts), *read)


def _read(tile: KernelTile, panel: Panel) -> Int:
    """The elements of a panel from the first that a tile reads to the last."""
    if not panel.longer:
        counted = [Linear.name(f"steps{level}") for level in range(len(tile.node.reduce))]
        return multiplied([in_words(counted[0], tile.word), *counted[1:]]) * panel.width
    levels = range(len(tile.node.reduce))
    return sum((multiplied([tile.steps(n) - 1, tile.panel_stride(panel, n)]) for n in levels), Linear.of(panel.width))


def panel_check(panel: Panel, elements: Int) -> Call:
    """The assertion for the first `elements` elements of a panel."""
    return assert_within(panel.first + elements - 1, panel.count)


def _corners(op: Operand, index: Int, counts: Mapping[str, Int]) -> Iterator[Int]:
    """The index at the box's corners: only its least and greatest values, unless it contains quotients."""
    atoms = {atom: of for atom, of in op.coordinates.atoms.items() if atom in index.names}
    loops = [loop for loop in counts if loop in index.names or any(loop == of for of, _ in atoms.values())]
    if not atoms:
        for greatest in (False, True)[: 1 + bool(loops)]:
            ends = {loop: (index.coefficient(loop) > 0) == greatest for loop in loops}
            yield index.substitute({loop: _end(loop, counts, last) for loop, last in ends.items()})
        return
    for chosen in product((False, True), repeat=len(loops)):
        values = {loop: _end(loop, counts, last) for loop, last in zip(loops, chosen, strict=True)}
        quotients = {atom: quotient(values.get(of, Linear.name(of)), divisor) for atom, (of, divisor) in atoms.items()}
        yield index.substitute({**values, **quotients})


def _end(loop: str, counts: Mapping[str, Int], last: bool) -> Int:
    """The loop's first or last value."""
    return Linear.name(loop) + counts[loop] - 1 if last else Linear.name(loop)
