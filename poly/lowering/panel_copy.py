"""Packing: copy an operand into panels that a microkernel reads sequentially.

A panel holds `width` lanes (the kernel's rows for the left operand, its columns for the right) for every step of the
reduction: `panel[step * width + lane]`. Lanes beyond the operand's edge are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap

import islpy as isl

from codegen.ir.instructions import Call, Cell, Let, Pointer, Table, Value, Write
from codegen.ir.integer import Int, Linear, element_count, maximum, product, quotient
from codegen.ir.loop_ir import For, Node, below
from codegen.ir.program import Instructions, Workspace
from codegen.names import another, c_name
from microkernels.contract import Side
from microkernels.ctext import Elements, pack_suffix
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.kernel import LEVELS, OuterProduct, TileKernel
from microkernels.opencl_isa import DeviceISA
from poly.errors import ScheduleError
from poly.ir.coordinates import solve
from poly.ir.instances import Instances
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band, Copy, Micro
from poly.lowering.address_spaces import panel_space
from poly.lowering.calls import (
    UNUSED,
    WHOLE,
    Level,
    Loops,
    MemoryParts,
    Operand,
    Panel,
    RoutineCall,
    absorbed,
    along,
    in_words,
    inner_bands,
    involves,
    iterators_of,
    joined,
    lows,
    moved,
    operand,
    quotients,
)
from poly.lowering.corners import operand_checks, panel_check
from poly.lowering.ctext import value
from poly.lowering.ragged import never_exceeds, ranges


@dataclass(frozen=True)
class PanelCopy:
    """The packing statement, its own loops, the buffer, and the panel that the microkernel reads."""

    role: str
    call: RoutineCall
    loops: tuple[str, ...]
    workspace: Workspace
    panel: Panel


def panel_copy(
    nest: Nest,
    node: Copy,
    micro: Micro,
    isa: ISA,
    outer: Loops,
    between: tuple[Band, ...],
    private: bool,
    workspaces: Sequence[Workspace],
    free: Sequence[Workspace],
    parts: MemoryParts,
) -> PanelCopy:
    """The copy of one operand of the microkernel `micro`, made inside the loops `outer`.

    `between` are the bands from the copy down to the microkernel; those that the operand depends on number the panels.
    The buffer is one of those that are `free` there, or has a name that differs from those of arrays, sizes, loops, and
    the other `workspaces`. Raises ScheduleError if the loops don't determine the statement's iterators.
    """
    source = _source(nest, node, micro, outer, between, parts)
    statement, numbering = source.statement, source.numbering
    turned, beside = _along_panels(source, outer), _side_by_side(source, outer, isa)
    counting = (beside if beside and b.name == beside.name else b for b in numbering)
    single = tuple(b for b in counting if b is not turned)
    instances = Instances(
        f"{statement.name}_pack_{source.role}", statement.domain, (*outer, *_functions(single, statement))
    )
    loops = (*(name for name, _ in outer), *(band.name for band in (*between, *inner_bands(micro))))
    names = (*(array.name for array in nest.arrays), *(w.name for w in workspaces))
    taken = frozenset({*nest.integers, *names, *loops})
    number, extents = _panel_number(Instances("around", statement.domain, outer), numbering, statement.name)
    steps = [value(instances.most(b.function(statement.name)), ()) for b in source.reduce]
    rows = product([*steps[:-1], in_words(steps[-1], source.word)]) + source.head
    size = product([rows, source.width])
    count = element_count([*extents, rows, source.width])
    space = panel_space(isa, private, source.dtype, count, workspaces)
    buffer = another(f"{node.array}_{source.role}" if node.role else f"{node.array}_panels", taken)
    own = Workspace(buffer, source.dtype, count, private, space, f"panels of {node.array}", node.array, instances.name)
    memory = next((joined for one in free if (joined := _shared(one, own)) is not None), own)
    buffer = memory.name
    panel = Panel(c_name(buffer), product([number, size]), source.width, count, len(outer), space, head=source.head)
    group = None
    if several := turned or beside:
        inside = [band.name for band in numbering].index(several.name) + 1
        group = PanelGroup(product([*extents[inside:], size]), turned)
    copied = _copied(source, instances, panel, pack_suffix(isa, source.dtype, source.elements, space), group)
    return PanelCopy(
        source.role,
        RoutineCall(
            instances.name,
            instances.names,
            instances.domain,
            copied,
            "pack",
            to=space,
            dtype=source.dtype,
            elements=source.elements,
        ),
        tuple(b.name for b in single),
        memory,
        _begun(source, panel, _read(source, micro, outer, between)),
    )


def _shared(one: Workspace, other: Workspace) -> Workspace | None:
    """The first workspace with room for what the second one holds, too.

    None if their memory is not of one kind, or it is not known which is larger.
    """
    kinds = ((each.dtype, each.private, each.space) for each in (one, other))
    known = all(each.count.number is not None for each in (one, other))
    if len(set(kinds)) > 1 or not (known or one.count == other.count):
        return None
    holds = one.holds if one.holds == other.holds else f"{one.holds}, then {other.holds}"
    return replace(one, count=maximum(one.count, other.count) if known else one.count, holds=holds)


def holds_all_steps(nest: Nest, node: Copy, micro: Micro, outer: Loops, between: tuple[Band, ...]) -> bool:
    """Whether a panel is a box of lanes and steps, or all calls that read it have all its steps of the inner loops.

    Otherwise, to fill the panel would read what no call reads.
    """
    source = _source(nest, node, micro, outer, between)
    read = _read(source, micro, outer, between)
    inside = [band.function(source.statement.name) for band in (source.lanes, *source.reduce) if band is not None]
    return all(read.agree(Instances.count, band) for band in source.reduce[1:]) or read.whole.is_box(inside)


def holds_one_tile(nest: Nest, node: Copy, micro: Micro, outer: Loops, between: tuple[Band, ...]) -> bool:
    """Whether the loops that number the panels tell the tiles apart, so that none has more lanes than the kernel."""
    source = _source(nest, node, micro, outer, between)
    statement = source.statement
    others = frozenset(statement.iterators) - source.iterators
    if source.lanes is None or not any(
        involves(statement, b.function(statement.name), others) for b in source.numbering
    ):
        return True
    whole = _whole(source, outer)
    lanes = whole.count(source.lanes.function(statement.name)).intersect_domain(whole.domain)
    return never_exceeds(lanes, source.width)


def _whole(source: PanelSource, outer: Loops) -> Instances:
    """The instances of each panel."""
    statement = source.statement
    return Instances("panel", statement.domain, (*outer, *_functions(source.numbering, statement)))


Number = Callable[[Instances, isl.PwAff], isl.PwAff]
"""A number of each group of instances, of a function: its least value, or the count of its values."""


def _same(one: Instances, other: Instances, number: Number, function: isl.PwAff) -> bool:
    """Whether each instance has the same number in two ways to group them."""
    first, second = (group.groups.apply_range(isl.Map.from_pw_aff(number(group, function))) for group in (one, other))
    return bool(first.is_equal(second))


@dataclass(frozen=True)
class _Read:
    """What a panel has, and what the calls that read it have of each loop that the kernel absorbs."""

    statement: str
    whole: Instances
    calls: Mapping[str, Instances]

    def agree(self, number: Number, band: Band) -> bool:
        """Whether a number, such as the count of a loop's iterations, is the same for a panel and for its calls."""
        return _same(self.whole, self.calls[band.name], number, band.function(self.statement))


def _read(source: PanelSource, micro: Micro, outer: Loops, between: tuple[Band, ...]) -> _Read:
    statement, whole = source.statement, _whole(source, outer)
    called = (*outer, *_functions(between, statement))
    return _Read(statement.name, whole, ranges(statement, micro, called, {source.role: len(outer)}))


def _begun(source: PanelSource, panel: Panel, read: _Read) -> Panel:
    """The panel as a call reads it: from the call's first step and lane on."""
    whole, name = read.whole, source.statement.name

    def skipped(band: Band) -> Int:
        begin = value(whole.low(band.function(name)), whole.names)
        return Linear() if read.agree(Instances.low, band) else Linear.name(band.name) - begin

    if source.word > 1 and not all(
        read.agree(one, b) for one in (Instances.low, Instances.count) for b in source.reduce
    ):
        raise ScheduleError(
            f"pack({source.operand.array}): some tiles of {name} begin or end within a panel, and a panel of words is "
            "read as a whole. Remedy: pack it inside all loops over tiles of the reduction."
        )
    steps: Int = Linear()
    for band in source.reduce if source.word == 1 else ():
        steps = product([steps, value(whole.count(band.function(name)), whole.names)]) + skipped(band)
    longer = {
        band.name: value(whole.count(band.function(name)), whole.names)
        for band in source.reduce[1:]
        if not read.agree(Instances.count, band)
    }
    return replace(panel, steps=steps, lane=skipped(source.lanes) if source.lanes else Linear(), longer=longer)


@dataclass(frozen=True)
class PanelSource:
    """The operand to copy, with its lanes and its steps of the reduction.

    Its panels have the type `dtype`; `elements` are those of the array and the panels. The loops `numbering` count its
    panels. A panel has `width` lanes, which the loop `lanes` counts (None: one lane).
    """

    role: Side
    statement: Statement
    operand: Operand
    elements: Elements
    dtype: DType
    width: int
    lanes: Band | None
    reduce: tuple[Band, ...]
    numbering: tuple[Band, ...]
    iterators: frozenset[str]
    """Those on which the operand and its lanes depend."""

    @property
    def word(self) -> int:
        """The steps of the innermost reduction loop in an element of a panel."""
        return self.elements.words.steps if self.elements.words else 1

    @property
    def head(self) -> int:
        """The rows of a panel before its first step."""
        return int(bool(self.elements.words and self.elements.words.head))


def role_of(nest: Nest, node: Copy, micro: Micro) -> Side:
    """The role of the microkernel's operand that a copy packs into panels.

    Raises:
        ScheduleError: the kernel does not read the array in the role that the copy names.
    """
    contraction = absorbed(nest, micro)
    role: Side = "right" if contraction.left.array != node.array or node.role == "right" else "left"
    operand_ = contraction.right if role == "right" else contraction.left
    if operand_.array != node.array or node.role not in (None, role):
        raise ScheduleError(
            f"pack({node.array}, role={node.role}): {node.array} is not the {node.role} operand of {micro.kernel}. "
            "Remedy: leave role out."
        )
    return role


def _source(
    nest: Nest, node: Copy, micro: Micro, outer: Loops, between: tuple[Band, ...], parts: MemoryParts = WHOLE
) -> PanelSource:
    statement = nest.statement(micro.statement)
    contraction = absorbed(nest, micro)
    role = role_of(nest, node, micro)
    stored, kernel = nest.array(node.array).dtype, micro.kernel
    assert isinstance(kernel, TileKernel), "copies are made for kernels with panels"
    dot = kernel.dot if isinstance(kernel, OuterProduct) else None
    source = stored if dot or stored != kernel.dtype else None
    elements = Elements(source, dot.words(role) if dot else None, dot)
    if role == "left":
        access, width, lanes, other = contraction.left, kernel.rows, micro.rows, micro.columns
    else:
        access, width, lanes, other = contraction.right, kernel.columns, micro.columns, micro.rows
    inside = tuple(b for b in (lanes, *micro.reduce, other) if b is not None)
    loops = (*outer, *_functions((*between, *inside), statement))
    coordinates = solve(statement.iterators, statement.domain, loops)
    if coordinates is None:
        raise ScheduleError(f"pack({node.array}): the loops around {statement.name} don't determine its iterators")
    used = iterators_of(statement, access) | _iterators_of_lanes(statement, lanes)
    numbering = tuple(b for b in between if involves(statement, b.function(statement.name), used))
    return PanelSource(
        role,
        statement,
        operand(nest, access, coordinates, parts, outer),
        elements,
        kernel.dtype,
        width,
        lanes,
        micro.reduce,
        numbering,
        used,
    )


def _iterators_of_lanes(statement: Statement, lanes: Band | None) -> frozenset[str]:
    """The iterators of the loop over an operand's lanes, even if the operand does not depend on them."""
    if lanes is None:
        return frozenset()
    function = lanes.function(statement.name)
    return frozenset(name for name in statement.iterators if involves(statement, function, frozenset({name})))


def _functions(bands: tuple[Band, ...], statement: Statement) -> Loops:
    return tuple((b.name, b.function(statement.name)) for b in bands)


@dataclass(frozen=True)
class PanelGroup:
    """Panels that one call copies; `apart` is the number of elements from panel to panel.

    The source is contiguous along the loop over panels `turned`; if that is None, their lanes lie side by side in it.
    """

    apart: Int
    turned: Band | None


def _along_panels(source: PanelSource, outer: Loops) -> Band | None:
    """The loop over panels along which the source is contiguous; None if a loop within a panel is, or if none is."""
    op = source.operand
    if source.word > 1 or any(op.stride(b.name).number == 1 for b in (source.lanes, *source.reduce) if b is not None):
        return None
    found = next((b for b in source.numbering if op.is_linear(b.name) and op.stride(b.name).number == 1), None)
    if found is None:
        return None
    counting = tuple(b for b in source.numbering if b is not found)
    inside = (*((source.lanes,) if source.lanes else ()), *source.reduce)
    return found if _are_alike(source, outer, counting, inside) else None


def _are_alike(source: PanelSource, outer: Loops, counting: tuple[Band, ...], inside: tuple[Band, ...]) -> bool:
    """Whether all panels that a call copies have the same iterations of loops `inside`; `counting` count the calls."""
    domain, name = source.statement.domain, source.statement.name
    panels, calls = (
        Instances("alike", domain, (*outer, *_functions(bands, source.statement)))
        for bands in (source.numbering, counting)
    )
    return all(
        _same(panels, calls, number, band.function(name))
        for number in (Instances.low, Instances.count)
        for band in inside
    )


BESIDE = (4, 3, 2)
"""Numbers of panels that are copied together if their lanes lie side by side in the source, the best first."""


def _side_by_side(source: PanelSource, outer: Loops, isa: ISA) -> Band | None:
    """The loop over panels whose lanes lie side by side in the source, counting only the first panel of each group.

    None if there is no such loop, if panels are no whole vectors, or on a device, whose items share single panels.
    """
    op, lanes, statement = source.operand, source.lanes, source.statement
    if isinstance(isa, DeviceISA) or lanes is None or source.width % isa.lanes(source.dtype) or source.word > 1:
        return None
    if not op.is_linear(lanes.name) or op.stride(lanes.name).number != 1:
        return None
    lane = lanes.function(statement.name)
    panel = lane.scale_down_val(isl.Val(source.width)).floor()
    counted = (b for b in source.numbering if statement.domain.is_subset(b.function(statement.name).eq_set(panel)))
    band = next(counted, None)
    if band is None:
        return None
    others = tuple(b for b in source.numbering if b is not band)
    first = Instances("around", statement.domain, (*outer, *_functions(others, statement))).low(lane)
    group = next((n for n in BESIDE if _is_multiple(first, n * source.width)), None)
    if group is None:
        return None
    starts = panel.scale_down_val(isl.Val(group)).floor().scale_val(isl.Val(group))
    grouped = replace(band, functions=((statement.name, starts),))
    return grouped if _are_alike(source, outer, (*others, grouped), source.reduce) else None


def _is_multiple(function: isl.PwAff, of: int) -> bool:
    """Whether all values of a function are multiples of a number."""
    rest = function.mod_val(isl.Val(of))
    return bool(rest.domain().is_subset(rest.eq_set(rest.scale_val(isl.Val(0)))))


def _panel_number(around: Instances, numbering: tuple[Band, ...], statement: str) -> tuple[Int, list[Int]]:
    """A panel's number, from the loops' values relative to their least, and the greatest count of each loop."""
    number: Int = Linear()
    extents: list[Int] = []
    for band in numbering:
        function = band.function(statement)
        extents.append(value(around.most(function), ()))
        number = product([number, extents[-1]]) + Linear.name(band.name) - value(around.low(function), around.names)
    return number, extents


OFFSETS = Pointer("offsets")
"""The table of the lanes' offsets in the source."""


def _levels(source: PanelSource, counts: Mapping[str, Int]) -> list[Level]:
    """The loops of the reduction, sorted by their strides in the source if these are known, or else innermost first."""
    found: list[Level] = []
    pitch: Int = Linear.of(source.width)
    for band in reversed(source.reduce):
        count = counts[band.name]
        pitch, own = product([pitch, count if found else in_words(count, source.word)]), pitch
        found.append((count, source.operand.stride(band.name), own))
    if source.word > 1:  # the steps of a word are those of the innermost loop
        return found + [UNUSED] * (LEVELS - len(found))
    if all(step.number is not None for _, step, _ in found):
        found.sort(key=lambda level: level[1].constant)
    found = joined(found)
    return found + [UNUSED] * (LEVELS - len(found))


def _copied(
    source: PanelSource, instances: Instances, panel: Panel, ending: str, group: PanelGroup | None
) -> Instructions:
    """One call of a packing routine, for lanes with a constant stride or at offsets in a table."""
    op, statement = source.operand, source.statement.name
    turned = group.turned if group else None
    lane = source.lanes.name if source.lanes else ""
    bands = tuple(b for b in (source.lanes, *source.reduce, turned) if b is not None)
    counts = {b.name: value(instances.count(b.function(statement)), instances.names) for b in bands}
    every = frozenset(loop for loop, _ in op.coordinates.atoms.values())
    linear = op.is_linear(lane)
    definitions = (
        *starmap(Let, lows(instances, bands, statement).items()),
        *quotients(op.coordinates, op.offset.names, every if linear else every - {lane}),
        Let("lanes", counts[lane] if lane else Linear.of(1)),
    )
    panels = (*((group.apart,) if group else ()), *((counts[turned.name],) if turned else ()))
    read = Pointer(op.array, op.offset if linear else Linear())
    apart = (op.stride(lane) if lane else Linear()) if linear else None
    routine, where = _routine(apart, _levels(source, counts), group)
    lanes: tuple[Int, Int] = (Linear.of(source.width), Linear.name("lanes"))
    call = Call(f"{routine}_{ending}", (panel.start(), *panels, *lanes, read, *where))
    nodes = (*([] if linear else _gathered(source)), call)
    return Instructions(nodes, _checks(source, counts, panel, group), definitions)


def _checks(source: PanelSource, counts: Mapping[str, Int], panel: Panel, group: PanelGroup | None) -> tuple[Call, ...]:
    """Assertions that a call stays inside the source and the buffer."""
    steps = [counts[b.name] for b in source.reduce]
    elements = product([*steps[:-1], in_words(steps[-1], source.word), source.width])
    if group:
        panels = (
            counts[group.turned.name]
            if group.turned
            else quotient(Linear.name("lanes") + source.width - 1, source.width)
        )
        elements = product([panels - 1, group.apart]) + elements
    named = {source.lanes.name: Linear.name("lanes")} if source.lanes else {}
    return (*operand_checks((source.operand,), {**counts, **named}), panel_check(panel, elements))


def _routine(apart: Int | None, levels: list[Level], group: PanelGroup | None) -> tuple[str, tuple[Value, ...]]:
    """The routine and its arguments after the source; lanes have the stride `apart`, or offsets in a table if None.

    A source known to be contiguous along the lanes or along the first loop has a shorter routine.
    """
    steps = [argument for level in levels for argument in level]
    (count, step, pitch), *rest = levels
    if group and not group.turned:
        return "pack_beside", tuple(steps)
    if group:
        return "pack_turned", (Linear(), OFFSETS, *steps) if apart is None else (apart, Linear(), *steps)
    if apart is None:
        return "pack_gather", (OFFSETS, *steps)
    if apart.number == 1:
        return "pack_across", tuple(steps)
    if step.number == 1:
        return "pack_along", (apart, count, pitch, *(part for level in rest for part in level))
    return "pack", (apart, *steps)


def _gathered(source: PanelSource) -> list[Node]:
    """The table `offsets`, and the loop that stores each lane's offset in the source there."""
    band = source.lanes
    atoms, offset = moved(source.operand, source.operand.offset, band.name if band else "", "this_lane")
    store = Write(Cell("offsets", Linear.name("lane")), offset)
    lanes = For.counted("lane", Linear.name("lanes"), below([along(band, "lane", "this_lane"), *atoms], [store]))
    return [Table("int64_t ", "offsets", source.width), lanes]
