"""Lanes along a loop without dependences, with iterations of another one jammed inside, and short loops written out.

for p: for q: for c:                        for p: for q_tile:
  Y[p, q, c] = 0                              for c:  # vectorize
  for r < 3: for s < 3:              ->         for q in the tile: for r: for s:  # all written out
    Y[p, q, c] += X[p+r, q+s, c]*W[r, s, c]       Y[p, q, c] += X[p+r, q+s, c]*W[r, s, c]

What the jammed iterations share, such as weights and the overlap of their neighbourhoods, is loaded once, and results
stay in registers over the short loops (Allen, Cocke, "A catalogue of optimizing transformations", 1972).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from poly.analysis.legality import race
from poly.analysis.roles import expected_bytes
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.lanes import FEW
from poly.autoschedule.rules.sharing import usual_sharing
from poly.autoschedule.spaces.space import Knob, Values
from poly.ir.nest import Nest
from poly.ir.paths import paths
from poly.ir.strides import extent, is_contiguous, is_contiguous_along, moved_iterator
from poly.ir.tree import Band, Leaf, Sequence, bands, statements, walk
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

    How many iterations are jammed is a knob; usually as many as registers and written-out text allow.
    """
    base = schedule(nest)
    near = sum(expected_bytes(array) for array in nest.arrays) <= target.caches.l2 // 2
    jam = _jam(base, SECOND if near and target.isa.has_masked_stores else 1)
    if jam is None:
        return None
    tried = attempt(base, jam.steps(jam.sizes[-1]))
    if tried is None:
        return None
    knob = Knob("jam", jam.sizes)

    def make(values: Values) -> Schedule | None:
        return attempt(base, jam.steps(values["jam"] or jam.sizes[-1]))

    usual = (("jam", jam.sizes[-1]),)
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

    def steps(self, size: int) -> tuple[Step, ...]:
        order = Order((*self.around, f"{self.name}_tile", self.lanes, self.name))
        written = Unroll(((self.name, max(2, size)), *self.short))
        return Split(((self.name, size),)), order, written, Vectorize(self.lanes)


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
    if lanes is None or whole is None or whole < 2:
        return None
    most = min(JAMMED, WRITTEN // prod(inner.values()))
    sizes = sorted({ceil(whole / ceil(whole / size)) for size in range(1, most + 1)})
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
    if whole is None or whole < FEW:
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
