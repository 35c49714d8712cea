"""Whether code can be generated for the microkernels and copies in a loop tree.

This is checked after each step, so that an accepted schedule compiles. Only checks that depend on the target are left
to the compilation: its instruction set, its memories and their sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

import islpy as isl

from codegen.ir.expr import Load, loads
from microkernels.contract import Side
from microkernels.kernel import Microkernel, OuterProduct
from poly.analysis.contraction import formed
from poly.analysis.dependences import dependences
from poly.errors import ScheduleError
from poly.ir.instances import Instances, loop_values
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band, Copy, Micro, Node, Sequence, statements, walk
from poly.lowering.box_copy import boxed_reads, reading_kernels
from poly.lowering.calls import Loops, Operand, inner_bands, taken_bands
from poly.lowering.ctext import constants
from poly.lowering.panel_copy import holds_all_steps, holds_one_tile, role_of
from poly.lowering.tile import checked_operands


@dataclass(frozen=True)
class _Above:
    """The loops above a node, and the operands (statement and role) that copies above it lay out in panels."""

    bands: tuple[Band, ...] = ()
    panels: Mapping[tuple[str, str], _Packed] = field(default_factory=dict)


@dataclass(frozen=True)
class _Packed:
    """A copy, and the number of loops around it."""

    node: Copy
    depth: int


def check_makeable(nest: Nest, tree: Node) -> None:
    """Refuse a tree with a microkernel or a copy for which no code can be generated.

    Raises:
        ScheduleError: says which one, why, and what to do.
    """
    if any(isinstance(node, Micro | Copy) for node in walk(tree)):
        _check(nest, tree, _Above())


def _check(nest: Nest, node: Node, above: _Above) -> None:
    match node:
        case Sequence(nodes):
            for child in nodes:
                _check(nest, child, above)
        case Band(body=body):
            _check(nest, body, replace(above, bands=(*above.bands, node)))
        case Copy(body=body):
            _check_unchanged(nest, node, above.bands)
            _check(nest, body, replace(above, panels={**above.panels, **_panels(nest, node, above)}))
        case Micro() if not nest.statement(node.statement).domain.is_empty():
            _check_kernel(nest, node, above)


def _check_unchanged(nest: Nest, node: Copy, around: tuple[Band, ...]) -> None:
    """Refuse a copy of elements that the loops below it write before they are read, since it has the old values."""
    below = [nest.statement(name) for name in statements(node)]
    written = [(s, _touched(s, around, s.target)) for s in below if s.target.array == node.array]
    readers = [s for s in below if node.statement in (None, s.name)] if written else []
    copied = [(s, load, _touched(s, around, load)) for s in readers for load in _served(nest, s, node)]
    for (writer, new), (reader, load, old) in product(written, copied):
        if not new.intersect(old).is_empty() and _passes_on(nest, writer, reader, load, around):
            raise ScheduleError(
                f"pack({node.array}): the same loops write elements of {node.array} that {reader.name} reads "
                "after that; their copy would be too old."
            )


def _passes_on(nest: Nest, writer: Statement, reader: Statement, load: Load, around: Iterable[Band]) -> bool:
    """Whether an access of a statement reads what another writes in the same iteration of the loops around.

    An update is always of what it writes.
    """
    if writer is reader and load == writer.target and writer.op != "=":
        return True
    same = writer.relation(writer.target).apply_range(reader.relation(load).reverse())
    for band in around:
        same = same.intersect(band.function(writer.name).eq_map(band.function(reader.name)))
    flows = (d for d in dependences(nest) if d.kind == "flow" and (d.source, d.sink) == (writer.name, reader.name))
    return any(not d.relation.intersect(same).is_empty() for d in flows if d.array == load.array)


def _served(nest: Nest, statement: Statement, node: Copy) -> list[Load]:
    """The reads of a statement that a copy may serve; one with a role serves operands, never the sum."""
    of_operands = node.role is not None and formed(nest, statement) is not None
    reads = loads(statement.expr) if of_operands else statement.reads
    return [load for load in reads if load.array == node.array]


def _touched(statement: Statement, around: Iterable[Band], access: Load) -> isl.Map:
    """The elements that a statement accesses, by the values of the loops around."""
    values = loop_values(statement.domain, (band.function(statement.name) for band in around))
    return values.reverse().apply_range(statement.relation(access))


def _panels(nest: Nest, node: Copy, above: _Above) -> dict[tuple[str, str], _Packed]:
    """The operand that a copy lays out in panels; empty for a copy that is a box."""
    micros = reading_kernels(nest, node)
    if not micros:
        if node.role is not None and not boxed_reads(nest, nest, node):
            raise ScheduleError(
                f"pack({node.array}, role={node.role}): no contraction reads {node.array} as its {node.role} operand "
                "here. Remedy: leave role out."
            )
        return {}
    micro = micros[0]
    kernel = micro.kernel
    if kernel.in_place or kernel.by_group:
        way = "packs its operands into its own panels" if kernel.by_group else "reads its operands in place"
        raise ScheduleError(f"pack({node.array}): {kernel} {way}. Remedy: leave this step out.")
    if node.label != node.array:
        raise ScheduleError(
            f"pack({node.array}): {kernel} lays its panels out itself. Remedy: leave memory, pad and buffers out."
        )
    role = role_of(nest, node, micro)
    _check_panel(node, kernel, role)
    panel = (micro.statement, role)
    if panel in above.panels:
        raise ScheduleError(
            f"pack({node.array}): the microkernel of {micro.statement} reads a copy of {node.array} already. "
            "Remedy: pack it once."
        )
    return {panel: _Packed(node, len(above.bands))}


def _check_panel(node: Copy, kernel: Microkernel, role: Side) -> None:
    """Refuse a panel whose lanes (rows of the left operand, columns of the right) are not contiguous for the kernel."""
    contract = kernel.contract
    along = contract.rows if role == "left" else contract.columns
    if contract.contiguous(role) not in (None, along):
        raise ScheduleError(
            f"pack({node.array}): {kernel} reads {contract.access(role)} contiguous along {contract.contiguous(role)}, "
            f"and panels are contiguous along {along or 'rows'}. Remedy: leave this step out."
        )


def _check_kernel(nest: Nest, node: Micro, above: _Above) -> None:
    """Refuse operands without constant strides along the reduction, or not contiguous where the contract wants it."""
    loops = tuple((band.name, band.function(node.statement)) for band in above.bands)
    left, right, output = checked_operands(nest, node, loops)
    kernel = node.kernel
    if kernel.is_whole or kernel.in_place:
        _check_strides(node, (left, right, output), inner_bands(node))
    else:
        _check_strides(node, (left, right), node.reduce)
    operands: dict[Side, Operand] = {"left": left, "right": right, "output": output}
    for side, operand in operands.items():
        if (node.statement, side) not in above.panels:
            twice = side != "output" and left.array == right.array
            which = f"{operand.array}, role={side}" if twice else operand.array
            _check_contiguous(nest, node, loops, side, operand, which)
        else:
            _check_panels(nest, node, above, above.panels[node.statement, side])


def _check_panels(nest: Nest, node: Micro, above: _Above, packed: _Packed) -> None:
    """Refuse panels of several tiles, and a panel that is no box, if the tiles which read it have different steps."""
    outer = tuple((band.name, band.function(node.statement)) for band in above.bands[: packed.depth])
    between = above.bands[packed.depth :]
    array = packed.node.array
    if not holds_one_tile(nest, packed.node, node, outer, between):
        raise ScheduleError(
            f"pack({array}): a panel would hold several tiles of {node.statement}, which the loops around do not tell "
            f"apart. Remedy: don't skew the loops over tiles, or pack({array}) at loop {above.bands[-1].name}."
        )
    if not holds_all_steps(nest, packed.node, node, outer, between):
        raise ScheduleError(
            f"pack({array}): the tiles of {node.statement} that read one panel have different steps of the reduction. "
            f"Remedy: pack({array}) at loop {above.bands[-1].name}, or leave this step out."
        )


def _check_strides(node: Micro, operands: Iterable[Operand], bands: Iterable[Band]) -> None:
    for operand, band in product(operands, bands):
        if not operand.is_linear(band.name):
            raise ScheduleError(
                f"microkernel({node.kernel}): {operand.array} has no constant stride along {band.name}. "
                f"Remedy: don't flatten {'the loops of the reduction' if band in node.reduce else 'its loops'}."
            )


def _check_contiguous(nest: Nest, node: Micro, loops: Loops, side: Side, operand: Operand, which: str) -> None:
    """Refuse an operand that isn't contiguous along the contract's loop; `which` names it in a proposed `pack`."""
    contract = node.kernel.contract
    band = taken_bands(node).get(contract.contiguous(side) or "")
    if band and not (operand.is_linear(band.name) and operand.stride(band.name).number == 1):
        if not isinstance(node.kernel, OuterProduct) and _runs_once(nest, node, loops, band):
            return
        lanes = {"left": contract.rows, "right": contract.columns}.get(side)
        packable = not node.kernel.in_place and lanes == contract.contiguous(side)
        raise ScheduleError(
            f"microkernel({node.kernel}): {operand.array} is not contiguous along {band.name}. "
            f"Remedy: {f'pack({which}) before' if packable else 'another kernel, or another order of its elements'}."
        )


def _runs_once(nest: Nest, node: Micro, loops: Loops, band: Band) -> bool:
    """Whether a tile has a single iteration of a loop, so that the stride along it does not matter."""
    domain = nest.statement(node.statement).domain
    tiles = Instances("tile", domain, loops)
    return constants(tiles.count(band.function(node.statement)), tiles.domain) == frozenset({1})
