"""Lanes and registers over an outer loop: for sums and extremes over pairs, whose operands belong to one loop each.

for i:                                      for i_tile:
  out[i] = 0                                  for i in the tile: out[i] = 0  # vectorize
  for j:                                      for j:
    s = 0                              ->       for i in the tile:  # vectorize
    for k < 3: s += (X[i, k] - Y[j, k])²          s = 0; s += (X[i, 0] - Y[j, 0])²; …
    out[i] += exp(-s)                             out[i] += exp(-s)

The tile's results and operands stay in registers over all of j (codegen/lanes/register_tile.py), each lane has a result
of its own, and an iteration of j loads a few scalars. Lanes along j would load Y at strides, and combine at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microkernels.dtypes import i32
from microkernels.isa import ISA
from poly.analysis.legality import race
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.form import Form, new_loops
from poly.autoschedule.rules.lanes import SHORT, short_loops
from poly.autoschedule.spaces.space import Knob
from poly.ir.paths import paths
from poly.ir.strides import accesses, extent, moved_iterator
from poly.ir.tree import Band, Sequence, bands, only_loops, parts, statements
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Interchange, Split, Step, Unroll, Vectorize

VECTORS = (1, 2, 4, 8)
"""The vectors of a tile that a search tries."""
USUAL = 1
"""By default an iteration of the inner loop computes one vector: cores overlap it with the next one by themselves."""


@dataclass(frozen=True)
class Pairs:
    """A loop over pairs: the loop whose iterations become lanes, the one that they share, and the short ones inside."""

    outer: Band
    inner: Band
    short: tuple[tuple[str, int], ...]
    lanes: int


def register_tiles(form: Form, isa: ISA) -> Form | None:
    """The form with the loops over pairs in register tiles; None if it has none."""
    first, cut = tiled(form.tried, isa)
    if not cut:
        return None
    knob = form.free("vectors")
    return form.then(
        lambda made, values: tiled(made, isa, values[knob] or USUAL)[0],
        first,
        (("tile", "in registers"),),
        (Knob(knob, VECTORS),),
        ((knob, USUAL),),
        new_loops(form.tried, first, dict.fromkeys(cut, knob)),
    )


def tiled(made: Schedule, isa: ISA, vectors: int = USUAL) -> tuple[Schedule, tuple[str, ...]]:
    """The schedule with every loop over pairs in a register tile where that is legal, and the loops that were cut."""
    cut: list[str] = []
    for pairs in tuple(every_pairs(made, isa)):
        found = attempt(made, _steps(made, pairs, vectors * pairs.lanes))
        if found is not None:
            made, cut = found, [*cut, pairs.outer.name]
    return made, tuple(cut)


def _steps(made: Schedule, pairs: Pairs, size: int) -> list[Step]:
    """Blocks of the outer loop, in which the inner one is outside."""
    outer, inner = pairs.outer.name, pairs.inner.name
    steps: list[Step] = [Split(((outer, size),))]
    if isinstance(pairs.outer.body, Sequence):
        steps.append(Distribute(outer))
        made = made.apply(steps)
        outer = next(band.name for band in bands(made.tree) if pairs.inner.name in _children(band))
    steps.append(Interchange(outer, inner))
    return [*steps, *([Unroll(pairs.short)] if pairs.short else []), Vectorize(outer)]


def _children(band: Band) -> list[str]:
    return [child.name for child in only_loops(parts(band.body))]


def every_pairs(made: Schedule, isa: ISA) -> Iterator[Pairs]:
    """The loops over pairs."""
    for outer in bands(made.tree):
        for inner in parts(outer.body):
            found = _pairs(made, isa, outer, inner) if isinstance(inner, Band) else None
            if found is not None:
                yield found
                break


def _pairs(made: Schedule, isa: ISA, outer: Band, inner: Band) -> Pairs | None:
    short = short_loops(made.nest, inner.body)
    whole = extent(made.nest, outer)
    if short is None or _is_short(extent(made.nest, inner)) or outer.unroll > 1 or outer.vectorize or inner.vectorize:
        return None
    if race(made.nest, made.tree, outer.name) is not None:
        return None
    sizes = [made.nest.array(name).dtype.size for name in _kept(made, outer, inner)]
    if not sizes:
        return None
    lanes = isa.vector_bytes // max(i32.size, *sizes)
    if whole is not None and whole < lanes:
        return None
    return Pairs(outer, inner, short, lanes)


def _is_short(whole: int | None) -> bool:
    return whole is not None and whole <= SHORT


def _kept(made: Schedule, outer: Band, inner: Band) -> set[str]:
    """The arrays whose elements an iteration of the outer loop keeps over the inner one; empty if these are no pairs.

    Each access must belong to one of the two loops, and each write to the outer one, except for an iteration's locals.
    """
    found, kept, writes = paths(made.tree), set[str](), False
    for name in statements(inner):
        statement = made.nest.statement(name)
        along, across = (moved_iterator(statement, found[name], band.name) for band in (outer, inner))
        if along is None or across is None:
            return set()
        for access in accesses(statement):
            names = frozenset[str]().union(*(index.names for index in access.indices))
            own = {along, across} <= names
            written = access == statement.target and not own
            if own and made.nest.array(access.array).kind != "local":
                return set()
            if written and (along not in names or across in names):
                return set()
            writes |= written
            if along in names and not own:
                kept.add(access.array)
    return kept if writes else set()
