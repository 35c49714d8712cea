"""Calls of routines as statements: what microkernels and packing have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import islpy as isl

from codegen.ir.expr import Load
from codegen.ir.instructions import START, Let, Pointer
from codegen.ir.integer import Int, Linear, product, quotient
from codegen.ir.loop_ir import For, Node
from codegen.ir.program import Instructions, Workspace
from codegen.names import c_name
from microkernels.ctext import GLOBAL, PLAIN, Elements, Space, Spaces
from microkernels.dtypes import DType
from microkernels.kernel import LEVELS
from poly.analysis.contraction import Contraction, exchange, formed
from poly.ir.coordinates import Coordinates
from poly.ir.instances import Instances
from poly.ir.layout import strides
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band, Micro, walk
from poly.ir.tree import Node as TreeNode
from poly.lowering.ctext import value

Loops = tuple[tuple[str, isl.PwAff], ...]
"""Names of loops around a statement, with their functions of its iterators, outermost first."""

Level = tuple[Int, Int, Int]
"""A loop of a reduction: its count, and its strides in two arrays."""
UNUSED: Level = (Linear.of(1), Linear(), Linear())
"""The arguments for a missing loop."""


def joined(levels: Iterable[Level]) -> list[Level]:
    """Loops, innermost first, with each that goes on where the one inside it ends made one loop with that.

    Those of one iteration are left out, unless there is no other.
    """
    given = list(levels)
    found: list[Level] = []
    for count, first, second in [level for level in given if level[0].number != 1] or given[:1]:
        if found and (first, second) == tuple(product([found[-1][0], stride]) for stride in found[-1][1:]):
            found[-1] = (product([found[-1][0], count]), *found[-1][1:])
        else:
            found.append((count, first, second))
    return found


def loop_arguments(levels: Sequence[Level]) -> tuple[Int, ...]:
    """The arguments of a call for `LEVELS` loops."""
    return tuple(argument for level in (*levels, *[UNUSED] * (LEVELS - len(levels))) for argument in level)


@dataclass(frozen=True)
class RoutineCall:
    """A statement that calls a routine once for each point of `domain`; `iterators` are C variables in `body`.

    `routine` is the family's name; `rows` and `columns` are the possible extents of calls (None: any); `spaces` are the
    address spaces of a microkernel's operands; `to` is that of a copy's panels, which have the type `dtype`, and
    `elements` are those of the array and the panels; `workspaces` are scratch arrays that only this statement uses.
    """

    name: str
    iterators: tuple[str, ...]
    domain: isl.Set
    body: Instructions
    routine: str
    rows: frozenset[int] | None = None
    columns: frozenset[int] | None = None
    spaces: Spaces = GLOBAL
    to: Space = "global"
    dtype: DType | None = None
    elements: Elements = PLAIN
    workspaces: tuple[Workspace, ...] = ()


@dataclass(frozen=True)
class Panel:
    """The packed copy of an operand, in panels that hold `width` lanes for each step of the reduction.

    `offset` is the start in the buffer of the panel that a microkernel call reads. The call begins `steps` later in the
    reduction, and with the lane `lane`: a tile that a slanted bound cuts may lack the first. `longer` has the panel's
    number of steps for each inner loop of the reduction of which a call may have fewer, by the loops' names. The buffer
    has `count` elements and is in the address space `space` on an OpenCL device; it is filled inside `depth` loops.
    A panel of words has one row for each word, and `head` rows before the first.
    """

    buffer: str
    offset: Int
    width: int
    count: Int
    depth: int
    space: Space = "global"
    steps: Int = START
    lane: Int = START
    head: int = 0
    longer: Mapping[str, Int] = field(default_factory=dict)

    def start(self, further: Int = START) -> Pointer:
        """The address of the first element that a call reads plus `further`."""
        return Pointer(self.buffer, self.first + self.lane + further)

    @property
    def first(self) -> Int:
        """The position of the first step that a call reads."""
        return self.offset + (self.steps + self.head) * self.width


@dataclass(frozen=True)
class Operand:
    """The addressing of an array in a call: an offset in terms of loops, sizes and the atoms of `coordinates`.

    `places` has the index in each dimension, in the same terms, and the dimension's extent.
    """

    array: str
    offset: Int
    coordinates: Coordinates
    places: tuple[tuple[Int, Int], ...]

    def is_linear(self, loop: str) -> bool:
        """Whether the operand has a constant stride along the loop."""
        return not any(name in self.offset.names for name, (of, _) in self.coordinates.atoms.items() if of == loop)

    def stride(self, loop: str) -> Int:
        return self.offset.factor(loop)

    def part(self, loop: str) -> Int:
        """The part of the offset that depends on one loop."""
        atoms = (atom for atom, (of, _) in self.coordinates.atoms.items() if of == loop)
        return self.offset.part(frozenset({loop, *atoms}))


@dataclass(frozen=True)
class MemoryPart:
    """The part of an array that has memory while the `depth` outer loops are fixed: a box in row-major order.

    `starts` has its first index in each dimension, as a function of these loops, or None for 0.
    """

    depth: int
    starts: tuple[isl.PwAff | None, ...]
    extents: tuple[Int, ...]

    @property
    def strides(self) -> tuple[Int, ...]:
        """The strides of each dimension, in elements."""
        return tuple(product(self.extents[at + 1 :]) for at in range(len(self.extents)))

    def moved(self, op: Operand, loops: Sequence[str]) -> Operand:
        """An operand whose offset has these strides, in this memory; `loops` are the names of the loops around."""
        names = loops[: self.depth]
        starts = [value(start, names) if start is not None else Linear() for start in self.starts]
        first = sum((s * stride for s, stride in zip(starts, self.strides, strict=True)), start=Linear())
        places = ((index - s, n) for (index, _), s, n in zip(op.places, starts, self.extents, strict=True))
        return replace(op, offset=op.offset - first, places=tuple(places))


MemoryParts = Mapping[str, MemoryPart]
"""The parts of arrays that have memory, by the arrays' names; all other arrays have it as a whole."""
WHOLE: MemoryParts = MappingProxyType({})


def operand(
    nest: Nest, access: Load, coordinates: Coordinates, parts: MemoryParts = WHOLE, loops: Loops = ()
) -> Operand:
    """The addressing of an access, in the part of the array that has memory in an iteration of the loops around."""
    array = nest.array(access.array)
    sizes = {size: c_name(size) for size in (*nest.sizes, *filter(str.isidentifier, map(str, array.strides or ())))}
    names = {size: Linear.name(name) for size, name in sizes.items()}
    indices = [index.substitute(coordinates.iterators).substitute(names) for index in access.indices]
    places = tuple(zip(indices, array.shape, strict=True))
    part = parts.get(array.name)
    apart = part.strides if part else [stride.renamed(sizes) for stride in strides(array)]
    offset = sum((stride * index for stride, index in zip(apart, indices, strict=True)), start=Linear())
    found = Operand(c_name(array.name), offset, coordinates, places)
    return part.moved(found, [name for name, _ in loops]) if part else found


def absorbed(nest: Nest, micro: Micro) -> Contraction:
    """The contraction that the microkernel computes, with the operands exchanged if the microkernel exchanges them.

    Its accesses are those of the statement in `nest`, which are others once a copy serves them.
    """
    contraction = formed(nest, nest.statement(micro.statement))
    assert contraction is not None, "a microkernel stands for a contraction"
    return exchange(contraction) if micro.exchanged else contraction


def untaken(nest: Nest, tree: TreeNode, name: str) -> isl.Set:
    """The instances of a statement except those whose element a microkernel initialises."""
    statement = nest.statement(name)
    for node in walk(tree):
        if isinstance(node, Micro) and node.initial == name:
            other = nest.statement(node.statement)
            written = other.relation(other.target).range()
            taken = statement.relation(statement.target).intersect_range(written).domain()
            return statement.domain.subtract(taken).coalesce()
    return statement.domain


def inner_bands(micro: Micro) -> tuple[Band, ...]:
    """The bands that a microkernel absorbs: rows, columns, then the reduction, outermost first."""
    return tuple(b for b in (micro.rows, micro.columns, *micro.reduce) if b is not None)


def taken_bands(micro: Micro) -> dict[str, Band]:
    """The bands that a microkernel absorbs, by the loops of its contract; loops without a band are left out."""
    contract = micro.kernel.contract
    loops = (
        (contract.rows, micro.rows),
        (contract.columns, micro.columns),
        *zip(contract.reduce, micro.reduce, strict=False),
    )
    return {loop: band for loop, band in loops if loop is not None and band is not None}


def in_words(steps: Int, of: int) -> Int:
    """The number of words, of so many steps each, for the steps of the innermost loop of a reduction."""
    return quotient(steps + (of - 1), of) if of > 1 else steps


def iterators_of(statement: Statement, access: Load) -> frozenset[str]:
    """The iterators that occur in an access."""
    return frozenset(name for index in access.indices for name in index.names) & frozenset(statement.iterators)


def involves(statement: Statement, function: isl.PwAff, iterators: frozenset[str]) -> bool:
    """Whether a loop's value depends on one of the iterators."""
    return any(
        function.involves_dims(isl.dim_type.in_, position, 1)
        for position, name in enumerate(statement.iterators)
        if name in iterators
    )


def lows(instances: Instances, bands: tuple[Band, ...], statement: str) -> dict[str, Int]:
    """The bands' first values in a tile, by the bands' names."""
    names = instances.names
    return {band.name: value(instances.low(band.function(statement)), names) for band in bands}


def quotients(coordinates: Coordinates, used: frozenset[str], loops: frozenset[str]) -> list[Let]:
    """Definitions of the quotients in `used` whose loops are in `loops`."""
    found = coordinates.atoms.items()
    return [_quotient(atom, loop, divisor) for atom, (loop, divisor) in found if atom in used and loop in loops]


def moved(op: Operand, part: Int, loop: str, name: str) -> tuple[list[Let], Int]:
    """A part of an operand's offset with the loop at the value `name`: the quotients there, and the offset."""
    atoms = {atom: divisor for atom, (of, divisor) in op.coordinates.atoms.items() if of == loop and atom in part.names}
    lets = [_quotient(f"{name}__{divisor}", name, divisor) for divisor in atoms.values()]
    return lets, part.renamed({loop: name, **{atom: f"{name}__{divisor}" for atom, divisor in atoms.items()}})


def _quotient(name: str, loop: str, divisor: int) -> Let:
    return Let(name, quotient(Linear.name(loop), divisor))


def each_row(body: Node) -> For:
    """The loop over the numbers of a tile's rows."""
    return For.counted("row", Linear.name("tile_rows"), body)


def along(band: Band | None, steps: str, name: str) -> Let:
    """The definition of a loop's value `steps` after its first, or of `steps` itself if there is no such loop."""
    return Let(name, (Linear.name(band.name) if band else Linear()) + Linear.name(steps))
