"""Any schedule as the parts that the model prices, from the functions of its loops; isl is queried once for all blocks.

for i:                    a part: an iteration of `for i`, and inside it
  for j:                  a part: a run of `for j`, which touches three rows of A and one of B
    B[i, j] = A[i-1, j] + A[i, j] + A[i+1, j]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from math import prod

from codegen.ir.expr import Load
from codegen.ir.program import VECTORS
from microkernels.cached import cached_property
from microkernels.dtypes import i32
from microkernels.isa import ISA
from poly.ir.layout import strides
from poly.ir.nest import Nest, Statement
from poly.ir.paths import paths
from poly.ir.strides import accesses, extent
from poly.ir.tree import Band, Copy, Micro, Node, bands, children, only_loops, statements, walk
from poly.lowering.calls import untaken
from poly.model.core import Target
from poly.model.cost import Cost
from poly.model.footprint import ArrayAccesses, Dimension
from poly.model.leaf import PlainStatement, leaf, sides, waiting
from poly.model.parts import CopiedOperand, LoopPart, ScheduleParts, Side
from poly.model.price import price
from poly.model.regions import Accessed, TreePart, regions
from poly.model.tiles import TileCalls
from poly.model.view import Reference, Sizes, View, references, view
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Split

WHOLE = 1 << 30
"""A block that holds all values of any loop."""


class ScheduleModel:
    """Predicts the cost of schedules that differ from a given one only in block sizes; its nest has no open sizes.

    `knobs` maps each of its loops over blocks to the knob that sets their size. The copies of the array `ready` cost
    nothing.
    """

    def __init__(self, made: Schedule, knobs: Mapping[str, str], target: Target, ready: str = "") -> None:
        made = _in_blocks(made, target.isa)
        self._made, self._target, self._ready = made, target, ready
        self._waiting = cache(partial(waiting, made))
        nest = made.nest
        found = {name: path for name, path in paths(made.tree).items() if not untaken(nest, made.tree, name).is_empty()}
        bands = {name: only_loops(path) for name, path in found.items()}
        views = {name: view(nest.statement(name), own, knobs) for name, own in bands.items()}
        micros = {node.statement: node for node in walk(made.tree) if isinstance(node, Micro)}
        self._summed = frozenset(micros)
        self._packs = [node for node in walk(made.tree) if isinstance(node, Copy)]
        served = {name: self._served(nest.statement(name), sides(made, micros.get(name))) for name in views}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._references = {name: references(nest, views[name], served[name]) for name in views}
        self._whole = self._region(made.tree, 0, views)
        self._locals = tuple(self._used())
        self._variables = frozenset(self._single(dict.fromkeys(knobs.values(), WHOLE)))
        self._leaves = tuple(
            self._leaf(one, bands[name], micros.get(name), served[name]) for name, one in views.items()
        )

    def predict(self, sizes: Sizes) -> Cost:
        """The cost of one call with these block sizes, with its arrays wherever the previous call has left them."""
        return price(self.form(sizes), self._target)

    def form(self, sizes: Sizes) -> ScheduleParts:
        """The parts for these block sizes."""
        computed = tuple(one.computed(sizes) for one in self._leaves)
        whole = self._whole.part("", (), sizes, self._below(self._whole, (), sizes))
        copied = frozenset(number for key, number in self._numbers.items() if key[1])
        tiled = (leaf for leaf, tiles in zip(self._leaves, computed, strict=True) if isinstance(tiles, TileCalls))
        known = {n: side for leaf in tiled for n, side in self._sides(leaf)}
        return ScheduleParts(
            whole, computed, copied, known, dict(self._reused(sizes)), self._arrays, self._exchanged(sizes)
        )

    def _exchanged(self, sizes: Sizes) -> dict[int, float]:
        """The bytes of results that threads fetch from each other."""
        shared = (one for one in regions(self._whole) if isinstance(one.node, Band) and one.node.parallel)
        threads = self._target.threads
        return {n: bytes for one in shared for n, bytes in one.exchanged(sizes, threads).items()}

    @cached_property
    def _arrays(self) -> dict[int, tuple[str, float]]:
        nest = self._made.nest
        bytes = {a.name: float(a.dtype.size * prod(extent.constant for extent in a.shape)) for a in nest.arrays}
        names = {number: str(key[0]) for key, number in self._numbers.items() if not key[1]}
        return {number: (name, bytes[name]) for number, name in names.items()}

    def _reused(self, sizes: Sizes) -> Iterator[tuple[int, float]]:
        """The memory of each local: what it has in an iteration of the innermost loop around all of its uses."""
        for own, around in self._locals:
            touched = around.touched(around.depth + isinstance(around.node, Band), sizes)
            yield from ((number, sum(touched[n].bytes for n in own if n in touched)) for number in own)

    def _used(self) -> Iterator[tuple[list[int], TreePart]]:
        """The operands of each local, and the innermost part around all of its uses."""
        arrays = {number: str(key[0]) for key, number in self._numbers.items() if not key[1]}
        for array in (array for array in self._made.nest.arrays if array.kind == "local"):
            own = [number for number, name in arrays.items() if name == array.name]
            users = {s.name for s in self._made.nest.statements if array.name in {load.array for load in accesses(s)}}
            around = [one for one in regions(self._whole) if users <= set(statements(one.node))]
            if own and around:
                yield own, around[-1]

    def _single(self, sizes: Sizes) -> Iterator[str]:
        """The locals that have a single element in each iteration: variables, or vectors in lanes."""
        for own, around in self._locals:
            touched = around.touched(around.depth + isinstance(around.node, Band), sizes)
            if sum(touched[n].elements for n in own if n in touched) == 1:
                yield self._arrays[own[0]][0]

    def _served(self, statement: Statement, operands: Mapping[Side, Load]) -> dict[Load, int]:
        """The copy that serves each read of a statement, counted from 1: its microkernel's operands, or all reads."""
        found: dict[Load, int] = {}
        for number, pack in enumerate(self._packs, 1):
            reads = [load for load in statement.reads if load.array == pack.array]
            taken = [operands[side] for side in ("left", "right") if side in operands and pack.role in (None, side)]
            if statement.name in statements(pack.body) and pack.statement in (None, statement.name):
                found |= {load: number for load in reads if not operands or load in taken}
        return found

    def _region(self, node: Node, depth: int, views: Mapping[str, View]) -> TreePart:
        """The part of a node, with all parts below it."""
        names = [name for name in statements(node) if name in views]
        inner = depth + isinstance(node, Band)
        below = () if isinstance(node, Micro) else tuple(self._region(child, inner, views) for child in children(node))
        below = tuple(region for region in below if region.views)
        found: dict[tuple[object, ...], tuple[Reference, tuple[View, ...]]] = {}
        for name in names:
            for reference in self._references[name].values():
                known = found.get(reference.key)
                own = (views[name],)
                found[reference.key] = (known[0].joined(reference), known[1] + own) if known else (reference, own)
        accessed = tuple(self._accessed(reference, one) for reference, one in found.values())
        return TreePart(node, depth, tuple(views[name] for name in names), accessed, below)

    def _accessed(self, reference: Reference, users: tuple[View, ...]) -> Accessed:
        panels = reference.copy > 0 and self._is_summed(users[0])
        return Accessed(self._number(reference), _operand(self._made.nest, reference), reference, users, panels)

    def _number(self, reference: Reference) -> int:
        return self._numbers.setdefault(reference.key, len(self._numbers))

    def _leaf(
        self, one: View, bands: tuple[Band, ...], micro: Micro | None, served: Mapping[Load, int]
    ) -> PlainStatement:
        own, known = sides(self._made, micro), self._references[one.statement.name]
        operands = {side: _operand(self._made.nest, known[load]) for side, load in own.items()}
        packed = frozenset(side for side, load in own.items() if side != "output" and load in served)
        isa = self._target.isa
        return leaf(self._made, one, bands, micro, operands, packed, self._variables, self._waiting, isa)

    def _sides(self, one: PlainStatement) -> Iterator[tuple[int, Side]]:
        """The operands of a statement's microkernel."""
        known = self._references[one.view.statement.name]
        for side, load in sides(self._made, one.micro).items():
            yield self._number(known[load]), side

    def _below(
        self, region: TreePart, around: tuple[float, ...], sizes: Sizes
    ) -> tuple[tuple[LoopPart, ...], tuple[CopiedOperand, ...]]:
        """The parts of a region, and the copies to make in the part around it; `around` has the trips of its loops."""
        node = region.node
        if not region.views:  # nothing runs
            return (), ()
        if isinstance(node, Copy):
            parts, copies = self._below(region.below[0], around, sizes)
            return parts, (*self._copies(region, node), *copies)
        if isinstance(node, Band):
            return self._iterations(region, node, around, sizes)
        if len(region.below) == 1:
            return self._below(region.below[0], around, sizes)
        return tuple(self._in_turn(child, around, sizes) for child in region.below), ()

    def _iterations(
        self, region: TreePart, node: Band, around: tuple[float, ...], sizes: Sizes
    ) -> tuple[tuple[LoopPart, ...], tuple[CopiedOperand, ...]]:
        """The part for an iteration of a loop; merged into the part around it if the loop has one iteration.

        An innermost loop over plain statements adds no part, nor does one whose lanes run through loops.
        """
        inside = [inner for inner in walk(node.body) if isinstance(inner, Band | Micro | Copy)]
        if not inside or (node.vectorize and all(isinstance(inner, Band) for inner in inside)):
            return (), ()
        (body,) = region.below
        depth = region.depth
        trips = max(one.widths(depth, sizes)[depth] for one in region.views)
        inner = (*around, max(1.0, trips))
        parts, copies = self._below(body, inner, sizes)
        if trips <= 1:
            return parts, copies
        first = region.views[0].enclosing[depth]
        loop = str(depth if first.of is None else first.of)
        return (region.part(loop, inner, sizes, (parts, copies)),), ()

    def _in_turn(self, region: TreePart, around: tuple[float, ...], sizes: Sizes) -> LoopPart:
        """The part for one member of a sequence."""
        return region.part("", around, sizes, self._below(region, around, sizes))

    def _copies(self, region: TreePart, pack: Copy) -> Iterable[CopiedOperand]:
        """The copies made by a node; they are transposed if a microkernel sums along the operand's contiguous axis."""
        if pack.array == self._ready:
            return
        number = 1 + next(at for at, one in enumerate(self._packs) if one is pack)
        for one in region.accessed:
            if one.reference.copy == number:
                yield CopiedOperand(one.number, self._is_summed(one.views[0]) and _is_across(one))

    def _is_summed(self, one: View) -> bool:
        """Whether a microkernel computes a statement."""
        return one.statement.name in self._summed


def _in_blocks(made: Schedule, isa: ISA) -> Schedule:
    """The schedule with loops in blocks whose lanes go through others together, as several vectors at a time do."""
    tree = made.tree
    for band in bands(made.tree):
        whole = extent(made.nest, band)
        size = VECTORS * isa.lanes(i32)
        inner = band.vectorize and any(one.unroll < 2 for one in bands(band.body))
        if inner and (whole is None or whole > size):
            tree = Split(((band.name, size),)).apply(made.nest, tree)
    return made if tree is made.tree else replace(made, tree=tree)


def _is_across(one: Accessed) -> bool:
    """Whether an operand is contiguous along the reduction."""
    own = one.views[0]
    statement = own.statement
    written = {name for index in statement.target.indices for name in index.names}
    reduced = (own.places[name].names for name in statement.iterators if name in own.places.keys() - written)
    return any(one.operand.stride(place) == 1 for places in reduced for place in places)


def predicted(made: Schedule, target: Target) -> Cost:
    """The cost of a schedule without open sizes."""
    return ScheduleModel(made, {}, target).predict({})


def _operand(nest: Nest, reference: Reference) -> ArrayAccesses:
    """The model's operand for a reference: a dimension per index, and one per loop that occurs in several indices.

    Its box has the dimensions of all indices with all their loops.
    """
    array = nest.array(reference.array)
    apart = [stride.number or 0 for stride in strides(array)]
    shape = [extent.constant for extent in array.shape]
    names = [name for terms, _, _ in reference.indices for name, _ in terms]
    several = {name for name in names if names.count(name) > 1}
    whole = [
        Dimension(terms, stride, high - low, extent)
        for (terms, low, high), stride, extent in zip(reference.indices, apart, shape, strict=True)
    ]
    dimensions = [replace(d, loops=tuple(term for term in d.loops if term[0] not in several)) for d in whole]
    for name in sorted(several):
        steps = sum(
            c * s for (terms, _, _), s in zip(reference.indices, apart, strict=True) for n, c in terms if n == name
        )
        dimensions.append(Dimension(((name, 1),), abs(steps)))
    box = tuple(d for d in whole if d.stride) if several else ()
    return ArrayAccesses(tuple(d for d in dimensions if d.stride), array.dtype.size, reference.written, box)
