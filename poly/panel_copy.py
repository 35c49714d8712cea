"""Packing: copy an operand into panels that a microkernel reads from first to last.

A panel holds `width` lanes (the kernel's rows for the left operand, its columns for the right) for every step of the
reduction: `panel[step * width + lane]`. Lanes beyond the operand's edge are zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import islpy as isl

from codegen.names import fresh
from codegen.program import Workspace
from microkernels.catalogue import find
from microkernels.isa import ISA
from poly.calls import Call, Operand, Panel, absorbed, atom_lines, fixed, involves, iterators_of, low_lines, operand
from poly.coordinates import solve
from poly.ctext import constants, text
from poly.errors import ScheduleError
from poly.instances import Instances
from poly.micro_call import LEVELS
from poly.nest import Nest
from poly.tree import Band, Micro, Pack


@dataclass(frozen=True)
class PanelCopy:
    """The copying statement, its loops inside those around it, the buffer, and where the microkernel finds its panel."""

    role: str
    call: Call
    loops: tuple[str, ...]
    workspace: Workspace
    panel: Panel


def panel_copy(
    nest: Nest,
    node: Pack,
    micro: Micro,
    isa: ISA,
    outer: tuple[tuple[str, isl.PwAff], ...],
    between: tuple[Band, ...],
    private: bool,
    taken: frozenset[str],
) -> PanelCopy:
    """The copy of one operand of the microkernel below `between`, made below the loops `outer`.

    `between` are the bands from the copy down to the microkernel; those that the operand depends on number the panels.
    The buffer's name is none of those `taken`.
    """
    statement = nest.statement(micro.statement)
    contraction = absorbed(nest, micro)
    if contraction is None:
        raise ScheduleError(f"pack({node.array}): {statement.name} is not a contraction")
    role = node.role or ("left" if contraction.left.array == node.array else "right")
    access = contraction.left if role == "left" else contraction.right
    kernel = find(micro.kernel, nest.array(node.array).dtype)
    lane_band = micro.rows if role == "left" else micro.columns
    width = kernel.rows if role == "left" else kernel.columns
    used = iterators_of(statement, access)
    numbering = tuple(b for b in between if involves(statement, b.function(statement.name), used))
    name = f"{statement.name}_pack_{role}"
    around = Instances("around", statement.domain, outer)
    inner = tuple(b for b in (lane_band, *micro.reduce) if b is not None)
    functions = [(b.name, b.function(statement.name)) for b in inner]
    coordinates = solve(statement.iterators, statement.domain, (*_all(outer, between, statement.name), *functions, *_rest(micro, inner, statement.name)))
    if coordinates is None:
        raise ScheduleError(f"pack({node.array}): the loops around {statement.name} don't determine its iterators")
    op = operand(nest, access, coordinates)
    turned = _turned(op, numbering, lane_band, micro)
    single = tuple(b for b in numbering if b is not turned)
    loops = (*outer, *((b.name, b.function(statement.name)) for b in single))
    instances = Instances(name, statement.domain, loops)
    steps = [text(instances.most(b.function(statement.name)), ()) for b in micro.reduce]
    buffer = fresh(f"{node.array}_{role}" if node.role else f"{node.array}_panels", taken)
    index, extents = _panel_number(around, numbering, statement.name)
    size = _product([*steps, str(width)])
    start = f"{buffer} + {index} * {size}" if index != "0" else buffer
    group = None
    if turned is not None:
        apart = _product([*extents[numbering.index(turned) + 1 :], size])
        group = Turned(turned, apart, text(instances.count(turned.function(statement.name)), instances.names))
    suffix = f"{nest.array(node.array).dtype.name}_{isa.name}"
    lines = _lines(instances, op, lane_band, micro, statement.name, start, width, suffix, group)
    call = Call(name, instances.names, instances.domain, tuple(lines), "pack")
    workspace = Workspace(buffer, nest.array(node.array).dtype, _product([*extents, size]), private)
    return PanelCopy(role, call, tuple(b.name for b in single), workspace, Panel(buffer, start, width))


@dataclass(frozen=True)
class Turned:
    """The loop along which the source is contiguous from panel to panel: how far apart panels are, and how many one call copies."""

    band: Band
    apart: str
    count: str


def _turned(op: Operand, numbering: tuple[Band, ...], lane_band: Band | None, micro: Micro) -> Band | None:
    """The loop over panels along which the source is contiguous, where it is along no loop within a panel."""
    within = [b.name for b in (lane_band, *micro.reduce) if b is not None]
    if any(op.stride(name).constant == 1 for name in within):
        return None
    return next((b for b in numbering if op.is_linear(b.name) and op.stride(b.name).constant == 1), None)


def _all(outer: tuple[tuple[str, isl.PwAff], ...], between: tuple[Band, ...], statement: str) -> tuple[tuple[str, isl.PwAff], ...]:
    return (*outer, *((b.name, b.function(statement)) for b in between))


def _rest(micro: Micro, inner: tuple[Band, ...], statement: str) -> list[tuple[str, isl.PwAff]]:
    """The loops that the copy doesn't run through: the operand doesn't depend on them."""
    bands = (micro.rows, micro.columns)
    return [(b.name, b.function(statement)) for b in bands if b is not None and b not in inner]


def _panel_number(around: Instances, numbering: tuple[Band, ...], statement: str) -> tuple[str, list[str]]:
    """C text of a panel's number (from the loops' values, counted from their least), and each loop's greatest count."""
    number, extents = "0", []
    for band in numbering:
        function = band.function(statement)
        extent, low = text(around.most(function), ()), text(around.low(function), around.names)
        position = band.name if low == "0" else f"({band.name} - ({low}))"
        number = position if number == "0" else f"({number} * {fixed_text(extent)} + {position})"
        extents.append(extent)
    return number, extents


def fixed_text(value: str) -> str:
    return value if value.isalnum() else f"({value})"


def _product(factors: list[str]) -> str:
    known = prod(int(f) for f in factors if f.isdigit())
    symbolic = [fixed_text(f) for f in factors if not f.isdigit()]
    return "*".join(symbolic + ([str(known)] if known != 1 or not symbolic else []))


def _levels(instances: Instances, op: Operand, micro: Micro, statement: str, width: int) -> list[str]:
    """For each loop of the copy its count, and its steps in the source and in the panel; the shortest step in the source first."""
    found: list[tuple[int, str]] = []
    pitch = [str(width)]
    for band in reversed(micro.reduce):
        count, stride = text(instances.count(band.function(statement)), instances.names), op.stride(band.name)
        far = stride.constant if stride.constant is not None else FAR
        found.append((far, f"{count}, {fixed(stride)}, {_product(pitch)}"))
        pitch.append(count)
    if all(far < FAR for far, _ in found):
        found.sort(key=lambda level: level[0])
    return [level for _, level in found] + ["1, 0, 0"] * (LEVELS - len(found))


FAR = 1 << 62
"""A step whose length is not known."""


def _lines(
    instances: Instances,
    op: Operand,
    lane_band: Band | None,
    micro: Micro,
    statement: str,
    start: str,
    width: int,
    suffix: str,
    group: Turned | None,
) -> list[str]:
    """The C lines of one copying call."""
    lane = lane_band.name if lane_band else ""
    bands = tuple(b for b in (lane_band, *micro.reduce, group.band if group else None) if b is not None)
    count = text(instances.count(lane_band.function(statement)), instances.names) if lane_band else "1"
    levels = ", ".join(_levels(instances, op, micro, statement, width))
    every = frozenset(loop for loop, _ in op.coordinates.atoms.values())
    lines = [*low_lines(instances, bands, statement), f"const int64_t lanes = {count};"]
    panels = f"{group.apart}, {group.count}, " if group else ""
    routine = "pack_turned" if group else "pack"
    if op.is_linear(lane):
        where = f"{fixed(op.stride(lane)) if lane else '0'}, " + ("0, " if group else "")
        return [
            *lines,
            *atom_lines(op.coordinates, op.offset.names, every),
            f"{routine}_{suffix}({start}, {panels}{width}, lanes, {op.array} + {op.offset}, {where}{levels});",
        ]
    routine, where = ("pack_turned", "0, offsets, ") if group else ("pack_gather", "offsets, ")
    return [
        *lines,
        *atom_lines(op.coordinates, op.offset.names, every - {lane}),
        f"int64_t offsets[{width}];",
        f"const int64_t first_{lane} = {lane};",
        "for (int64_t lane = 0; lane < lanes; lane++) {",
        f"    const int64_t {lane} = first_{lane} + lane;",
        *(f"    {line}" for line in atom_lines(op.coordinates, op.offset.names, frozenset({lane}))),
        f"    offsets[lane] = {op.offset};",
        "}",
        f"{routine}_{suffix}({start}, {panels}{width}, lanes, {op.array}, {where}{levels});",
    ]
