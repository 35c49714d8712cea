"""Lanes along a loop without dependences, with iterations of another one jammed inside, and short loops written out.

for p: for q: for c:                        for p: for q_tile:
  Y[p, q, c] = 0                              for c:  # vectorize
  for r < 3: for s < 3:              ->         for q in the tile: for r: for s:  # all written out
    Y[p, q, c] += X[p+r, q+s, c]*W[r, s, c]       Y[p, q, c] += X[p+r, q+s, c]*W[r, s, c]

What the jammed iterations share, such as weights and the overlap of their neighbourhoods, is loaded once, and results
stay in registers over the short loops (Allen, Cocke, "A catalogue of optimizing transformations", 1972).

Where images have 1024 channels, the lines of all pixels share a set of the first-level cache. If lanes take a line in
several turns, fewer iterations are jammed, and short loops go around the lanes, so that the ways of the set suffice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, inf, prod
from operator import mul

from codegen.ir.signature import ZERO
from poly.analysis.legality import race
from poly.analysis.roles import expected_bytes
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.lanes import FEW
from poly.autoschedule.rules.sharing import usual_sharing
from poly.autoschedule.spaces.space import Knob, Values
from poly.ir.layout import offset, step
from poly.ir.nest import Nest
from poly.ir.paths import paths
from poly.ir.strides import accesses, extent, is_contiguous, is_contiguous_along, moved_iterator
from poly.ir.tree import Band, Leaf, Sequence, bands, statements, walk
from poly.machine.description import LINE
from poly.model.core import Target
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Order, Split, Step, Unroll, Vectorize

SHORT = 32
"""The most iterations of the short loops together."""
WRITTEN = 64
"""The most instances of a statement that are written out."""
SECOND = 2
"""How far apart elements may be that lanes read: an operation makes a vector of two that are loaded under masks. Few
rows are shared then, and from behind the second level they come faster one after the other."""
JAMMED = 8
"""The most iterations jammed: each has results in a register."""


def usual_jam(nest: Nest, target: Target) -> Form | None:
    """The form of a nest of loops without dependences around short ones; None if it is none.

    How many iterations are jammed is a knob; usually as many as registers, written-out text and the
    sets of the first-level cache allow.
    """
    base = schedule(nest)
    near = sum(expected_bytes(array) for array in nest.arrays) <= target.caches.l2 // 2
    widest = _jam(base, SECOND if near and target.isa.has_masked_stores else 1)
    if widest is None:
        return None
    jam, size = _within_sets(base, widest, target)
    tried = attempt(base, jam.steps(size))
    if tried is None:
        return None
    knob = Knob("jam", jam.sizes)

    def make(values: Values) -> Schedule | None:
        return attempt(base, jam.steps(values["jam"] or size))

    usual = (("jam", size),)
    form = Form((("order", "jammed"),), make, tried, (knob,), usual, {f"{jam.name}_tile": "jam"})
    return usual_sharing(form, target.threads)


@dataclass(frozen=True)
class Jam:
    """The loop whose iterations are jammed inside that in lanes, with its sizes that cut it evenly, ascending."""

    name: str
    sizes: tuple[int, ...]
    around: tuple[str, ...]
    lanes: str
    short: tuple[tuple[str, int], ...]
    outside: tuple[str, ...] = ()
    """The short loops that are around the tiles and the lanes."""

    def steps(self, size: int) -> tuple[Step, ...]:
        order = Order((*self.around, *self.outside, f"{self.name}_tile", self.lanes, self.name))
        written = Unroll(((self.name, max(2, size)), *self.short))
        return Split(((self.name, size),)), order, written, Vectorize(self.lanes)

    def variants(self) -> Iterator[Jam]:
        """It as it is, then with the first of its short loops around the lanes, with the first two, and so on."""
        for count in range(len(self.short)):
            yield replace(self, outside=tuple(name for name, _ in self.short[:count]), short=self.short[count:])

    def written(self, size: int) -> dict[str, int]:
        """The extents of the loops that are written out in lanes."""
        return {self.name: size, **dict(self.short)}


Vectors = Counter[tuple[str, int]]
"""What an iteration in lanes loads and stores: how often a vector of an array, by the bytes from its beginning."""


def _within_sets(made: Schedule, jam: Jam, target: Target) -> tuple[Jam, int]:
    """The loops, and how many iterations to jam: as many as there are if each turn of the lanes takes whole lines.

    Otherwise no set of the first-level cache may have more lines than ways: each turn would fetch them all again, and
    write results back. Of what fits, that is taken which moves the fewest vectors; a single iteration if nothing does.
    """
    most = jam, jam.sizes[-1]
    if target.isa.vector_bytes >= LINE:
        return most
    fewest, found = inf, (jam, jam.sizes[0])
    for one in jam.variants():
        for size in reversed(one.sizes):
            loops = one.written(size)
            vectors = _vectors(made, one.lanes, loops)
            if vectors is None:
                return most
            moved = vectors.total() / prod(loops.values())
            fits = _crowd(vectors, target) <= target.caches.ways[0]
            if fits and moved < fewest and attempt(made, one.steps(size)) is not None:
                fewest, found = moved, (one, size)
    return found


def _vectors(made: Schedule, lanes: str, loops: Mapping[str, int]) -> Vectors | None:
    """What an iteration in lanes moves in these loops, which are written out; None if it is not known."""
    found = dict[tuple[str, int], int]()
    for name, path in paths(made.tree).items():
        statement = made.nest.statement(name)
        along, *inside = (moved_iterator(statement, path, loop) for loop in (lanes, *loops))
        for access in accesses(statement):
            array = made.nest.array(access.array)
            if array.kind == "local" or not any(along in index.names for index in access.indices):
                continue
            first = offset(array, access, dict.fromkeys(statement.iterators, ZERO)).number
            apart = [step(array, access, at).number if at else 0 for at in inside]
            known = [each for each in apart if each is not None]
            if first is None or len(known) < len(apart):
                return None
            for at in product(*map(range, loops.values())):
                place = first + sum(map(mul, known, at))
                key = array.name, array.dtype.size * place
                found[key] = max(found.get(key, 0), 1 + (access == statement.target))
    return Counter(found)


def _crowd(vectors: Iterable[tuple[str, int]], target: Target) -> int:
    """The most lines in a set of the first-level cache; arrays begin in the first set, as large ones do."""
    sets = max(1, target.caches.l1 // (target.caches.ways[0] * LINE))
    lines = {(array, place // LINE) for array, place in vectors}
    return max(Counter(line % sets for _, line in lines).values(), default=0)


def _jam(made: Schedule, most: int) -> Jam | None:
    """The loops of a schedule for lanes and for jammed iterations of the next one; None if there are none.

    What lanes read is at most `most` elements apart.
    """
    outer, inner = _outer(made), dict[str, int]()
    for band in bands(made.tree)[len(outer) :]:
        inner[band.name] = extent(made.nest, band) or SHORT + 1
    if len(outer) < 2 or not 1 < prod(inner.values()) <= SHORT:
        return None
    lanes = next((band for band in reversed(outer) if _suits_lanes(made, band, most)), None)
    rest = [band for band in outer if band is not lanes]
    whole = extent(made.nest, rest[-1])
    if lanes is None or (whole is not None and whole < 2):
        return None
    most = min(JAMMED, WRITTEN // prod(inner.values()))
    sizes = sorted({size if whole is None else ceil(whole / ceil(whole / size)) for size in range(1, most + 1)})
    short = tuple((name, max(2, whole)) for name, whole in inner.items())
    return Jam(rest[-1].name, tuple(sizes), tuple(band.name for band in rest[:-1]), lanes.name, short)


def _outer(made: Schedule) -> list[Band]:
    """The loops around all statements, from the outermost one on, whose iterations do not depend on each other."""
    found: list[Band] = []
    node = made.tree
    if not all(isinstance(part, Leaf | Band | Sequence) for part in walk(node)):
        return []
    while isinstance(node, Band) and race(made.nest, made.tree, node.name) is None:
        found.append(node)
        node = node.body
    return found


def _suits_lanes(made: Schedule, band: Band, most: int) -> bool:
    """Whether a loop has iterations for lanes, and goes from element to element in all that it moves in.

    It may leave out elements of what it only reads, if it goes at most `most` further.
    """
    whole = extent(made.nest, band)
    if whole is not None and whole < FEW:
        return False
    found = paths(made.tree)
    for name in statements(band):
        statement = made.nest.statement(name)
        moved = moved_iterator(statement, found[name], band.name)
        if moved is None or not is_contiguous_along(made.nest, statement.target, moved):
            return False
        if not is_contiguous(made.nest, statement, moved, most):
            return False
    return True
