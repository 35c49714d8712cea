"""Whether a loop tree keeps a nest's dependences, and which of its loops may run in parallel or in vector lanes.

A dependence is kept if the first loop or sequence position in which source and sink differ puts the source first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import inf

import islpy as isl

from poly.analysis.dependences import Dependence, dependences
from poly.analysis.early_reads import reads_first
from poly.analysis.scans import scanned_in
from poly.analysis.selections import selected_in, varies
from poly.ir.budget import QUESTION, kept, limited
from poly.ir.instances import Instances
from poly.ir.nest import Nest
from poly.ir.paths import Path, Position, paths
from poly.ir.sets import first_point
from poly.ir.strides import extent
from poly.ir.tree import Band, Node, bands, only_loops, statements

KNOWN = 1024
"""The answers that are kept of each question: most steps leave most loops around a dependence as they are."""

Ends = tuple[isl.PwAff, isl.PwAff]
"""What a loop counts at the two ends of a dependence."""


@dataclass(frozen=True)
class Witness:
    """Two concrete iterations of a dependence, and the sizes for which they occur."""

    dependence: Dependence
    sizes: tuple[tuple[str, int], ...]
    source: tuple[int, ...]
    sink: tuple[int, ...]

    @property
    def distance(self) -> tuple[int, ...] | None:
        """Sink minus source, if both are of one statement."""
        if self.dependence.source != self.dependence.sink:
            return None
        return tuple(after - before for before, after in zip(self.source, self.sink, strict=True))

    def __str__(self) -> str:
        """`S[2, 5] must run before S[3, 4] (flow on x, distance (1, -1))`."""
        dependence = self.dependence
        notes = ["reduction" if dependence.reduction else f"{dependence.kind} on {dependence.array}"]
        if self.distance is not None:
            notes.append(f"distance ({', '.join(map(str, self.distance))})")
        if self.sizes:
            notes.append("with " + ", ".join(f"{name} = {value}" for name, value in self.sizes))
        source, sink = f"{dependence.source}{list(self.source)}", f"{dependence.sink}{list(self.sink)}"
        if dependence.reduction:
            return f"{source} and {sink} update one element of {dependence.array} ({', '.join(notes)})"
        return f"{source} must run before {sink} ({', '.join(notes)})"


def witness(violated: Dependence) -> Witness:
    """The smallest concrete pair of a non-empty dependence: smallest sizes first, then the earliest source."""
    relation = violated.relation
    sizes, inputs = relation.dim(isl.dim_type.param), relation.dim(isl.dim_type.in_)
    pairs = relation.move_dims(isl.dim_type.in_, 0, isl.dim_type.param, 0, sizes).wrap().flatten()
    values = first_point(pairs)
    names = [relation.get_dim_name(isl.dim_type.param, d) or "" for d in range(sizes)]
    return Witness(
        violated,
        tuple(zip(names, values[:sizes], strict=True)),
        values[sizes : sizes + inputs],
        values[sizes + inputs :],
    )


def violations(nest: Nest, tree: Node) -> Dependence | None:
    """The first dependence that the order of `tree` breaks, restricted to the broken pairs; None if it keeps all."""
    found = paths(tree)
    for dependence in dependences(nest).binding:
        broken = _broken(dependence.relation, found[dependence.source], found[dependence.sink])
        if broken is not None:
            return replace(dependence, relation=broken)
    return None


def is_parallel(nest: Nest, tree: Node, loop: str) -> bool:
    """Whether no two iterations of the loop depend on each other, for fixed values of the loops around it.

    Two iterations that update one element (a reduction) do depend on each other: they would race.
    """
    return race(nest, tree, loop) is None


def race(nest: Nest, tree: Node, loop: str) -> Dependence | None:
    """The first dependence or race between updates that a loop carries, restricted to the carried pairs."""
    known = dependences(nest)
    return _carried((*known.races, *known.binding), paths(tree), loop)


def carried(nest: Nest, tree: Node, loop: str) -> tuple[Dependence, ...]:
    """The dependences that a loop carries, whole."""
    found = paths(tree)
    return tuple(d for d in dependences(nest).binding if _carried((d,), found, loop) is not None)


@limited(QUESTION)
def lane_conflict(nest: Nest, tree: Node, loop: str) -> Dependence | None:
    """The first dependence that keeps the loop from running in vector lanes, restricted to the carried pairs.

    A reduction into one element doesn't, if the nest allows reassociation: each lane has a partial result. But if only
    some of the iterations of an innermost loop share an element, two lanes would update it at once, and nothing else in
    the loop may access it, which other iterations do not forbid where there is only one. A selection, such
    as that of the least key's index, doesn't either: lanes find the iteration whose results last, and it runs alone.
    A scan, whose iterations use the partial results of a reduction, runs a vector at a time. What later iterations
    write may be read first. Loops inside that are written out don't count as loops.
    """
    known = dependences(nest)
    chosen, scanned = selected_in(nest, tree, loop), scanned_in(nest, tree, loop)
    ordered = [d for d in known.binding if not (chosen.covers(d) or scanned.covers(d))]
    found = paths(tree)
    every = (_carried((d,), found, loop) for d in ordered)
    carried = next((d for d in every if d is not None and not reads_first(nest, tree, loop, d)), None)
    if carried is not None or not _is_innermost(nest, tree, loop):
        return carried
    return _colliding(nest, known.races, tree, loop) or _meeting(nest, ordered, tree, loop)


def mark_conflict(nest: Nest, tree: Node, loop: str) -> Dependence | None:
    """The first dependence that forbids the mark `vectorize`, restricted to the carried pairs.

    Lanes that go through loops inside together have nothing to combine: no two iterations may depend on each other.
    """
    return lane_conflict(nest, tree, loop) if _is_innermost(nest, tree, loop) else race(nest, tree, loop)


def _is_innermost(nest: Nest, tree: Node, loop: str) -> bool:
    """Whether all loops inside a loop are written out."""
    inner = (other for band in bands(tree) if band.name == loop for other in bands(band.body))
    return all(is_written_out(nest, tree, other) for other in inner)


def is_written_out(nest: Nest, tree: Node, band: Band) -> bool:
    """Whether a loop is unrolled by at least as many iterations as it has for fixed values of the loops around."""
    if band.unroll < 2:
        return False
    whole = extent(nest, band)
    return (whole is not None and whole <= band.unroll) or _most_iterations(nest, tree, band) <= band.unroll


def _most_iterations(nest: Nest, tree: Node, band: Band) -> float:
    """The most iterations of a loop for fixed values of the loops around; infinite if they depend on sizes."""
    found, most = paths(tree), 0.0
    for name, function in band.functions:
        path = found[name]
        loops = tuple((b.name, b.function(name)) for b in path[: path.index(band)] if isinstance(b, Band))
        count = Instances("around", nest.statement(name).domain, loops).most(function).max_val()
        most = max(most, count.to_python() if count.is_int() else inf)
    return most


def coupled(nest: Nest, tree: Node, loop: str) -> dict[tuple[str, str], bool]:
    """The pairs of statements of which the second needs to run after the first in one run of a loop.

    The value says whether it is so in different iterations, too, and not only in one and the same.
    """
    return _coupled(dependences(nest).binding, tree, loop)


def _coupled(ordered: Iterable[Dependence], tree: Node, loop: str) -> dict[tuple[str, str], bool]:
    found, pairs = paths(tree), dict[tuple[str, str], bool]()
    for dependence in ordered:
        ends = dependence.source, dependence.sink
        source, sink = (found[name] for name in ends)
        if pairs.get(ends) or _in_one_run(dependence.relation, source, sink, loop) is None:
            continue
        pairs[ends] = _differing(dependence.relation, source, sink, loop) is not None
    return pairs


def reachable(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """What follows each name in pairs of one and the next, directly or through others."""
    after: dict[str, set[str]] = {}
    for first, second in pairs:
        after.setdefault(first, set()).add(second)
        after.setdefault(second, set())
    for through, (name, beyond) in product(after, after.items()):
        if through in beyond:
            after[name] |= after[through]
    return after


def chained(nest: Nest, tree: Node, loop: str) -> frozenset[str]:
    """The statements in one run of a loop that need their own results of earlier iterations, perhaps through others."""
    known = dependences(nest)
    flow = _coupled((d for d in (*known.races, *known.binding) if d.kind == "flow"), tree, loop)
    after = reachable([*flow, *((name, name) for ends in flow for name in ends)])
    carried = [(source, sink) for (source, sink), later in flow.items() if later and source in after[sink]]
    return frozenset(n for source, sink in carried for n in after if n in after[sink] and source in after[n])


def recurs(nest: Nest, tree: Node, loop: str) -> bool:
    """Whether iterations of a loop that cannot go into lanes wait for one another in a chain.

    In a chain, an iteration that needs a result is needed in turn. Where all iterations need the result of one, a core
    overlaps them by itself.
    """
    if lane_conflict(nest, tree, loop) is None:
        return False
    known, found = dependences(nest), paths(tree)
    needed, needing = [], []
    for dependence in (d for d in (*known.races, *known.binding) if d.kind == "flow"):
        pairs = _differing(dependence.relation, found[dependence.source], found[dependence.sink], loop)
        if pairs is not None:
            needed.append(_iterations(pairs.domain(), found[dependence.source], loop))
            needing.append(_iterations(pairs.range(), found[dependence.sink], loop))
    return any(not before.is_disjoint(after) for before in needed for after in needing)


def _iterations(instances: isl.Set, path: Path, loop: str) -> isl.Set:
    """The iterations of a loop, and of those around it, in which some instances of a statement run."""
    name, values = instances.get_tuple_name(), isl.Map.from_domain(instances)
    for band in only_loops(path):
        values = values.flat_range_product(isl.Map.from_pw_aff(band.function(name)))
        if band.name == loop:
            break
    return values.intersect_domain(instances).range().reset_tuple_id()


def _colliding(nest: Nest, races: Iterable[Dependence], tree: Node, loop: str) -> Dependence | None:
    """The first reduction in which some, but not all, iterations of a loop update the same element.

    Of loops inside, which are written out, each iteration may have an element of its own.
    """
    found = paths(tree)
    for race in races:
        source, sink = found[race.source], found[race.sink]
        shared = _differing(race.relation, source, sink, loop)
        if shared is None:
            continue
        every = _iteration_pairs(nest, (race.source, race.sink), found, loop)
        if every is None or not (every.is_subset(shared) or _each_its_own(shared, every, source, sink, loop)):
            return replace(race, relation=shared)
    return None


def _each_its_own(shared: isl.Map, every: isl.Map, source: Path, sink: Path, loop: str) -> bool:
    """Whether those of `every` pair that are in one iteration of the loops inside `loop` are the `shared` ones."""
    for before, after in zip(source, sink, strict=False):
        if before != after:
            break
        if isinstance(before, Band) and before.name != loop:
            first, second = _functions(every, before, before)
            every = every.intersect(first.eq_map(second))
    return bool(every.is_equal(shared))


def _meeting(nest: Nest, ordered: Iterable[Dependence], tree: Node, loop: str) -> Dependence | None:
    """The first access, in one iteration, of an element that the loop's iterations reduce into together."""
    found = paths(tree)
    within = [nest.statement(name) for band in bands(tree) if band.name == loop for name in statements(band)]
    shared = {(s.name, s.target.array) for s in within if s.op != "=" and not varies(s, found[s.name], loop)}
    for dependence in ordered:
        if shared.isdisjoint((end, dependence.array) for end in (dependence.source, dependence.sink)):
            continue
        together = _in_one_run(dependence.relation, found[dependence.source], found[dependence.sink], loop)
        if together is None:
            continue
        pairs, (first, second) = together
        met = pairs.intersect(first.eq_map(second))
        if not met.is_empty():
            return replace(dependence, relation=met)
    return None


def _iteration_pairs(nest: Nest, ends: tuple[str, str], found: Mapping[str, Path], loop: str) -> isl.Map | None:
    """All pairs of two statements' instances in different iterations of one run of a loop; None if there are none."""
    first, second = (nest.statement(name).domain for name in ends)
    return _differing(isl.Map.from_domain_and_range(first, second), found[ends[0]], found[ends[1]], loop)


def iterates(nest: Nest, tree: Node, loop: str) -> bool:
    """Whether a loop has more than one iteration, for some sizes and some values of the loops around it."""
    found = paths(tree)
    return any(_iteration_pairs(nest, (name, name), found, loop) is not None for name in found)


def illegal_mark(nest: Nest, tree: Node) -> tuple[Band, Dependence] | None:
    """The first loop that is illegally marked parallel or vectorised, with the dependence that it carries."""
    for band in bands(tree):
        for marked, check in ((band.parallel, race), (band.vectorize, mark_conflict)):
            carried = check(nest, tree, band.name) if marked else None
            if carried is not None:
                return band, carried
    return None


def _carried(candidates: Iterable[Dependence], found: Mapping[str, Path], loop: str) -> Dependence | None:
    for dependence in candidates:
        pairs = _differing(dependence.relation, found[dependence.source], found[dependence.sink], loop)
        if pairs is not None:
            return replace(dependence, relation=pairs)
    return None


def _broken(pairs: isl.Map, source: Path, sink: Path) -> isl.Map | None:
    """The pairs whose sink does not run after their source; None if there are none."""
    loops: list[Ends] = []
    for before, after in zip(source, sink, strict=False):
        if isinstance(before, Position) or isinstance(after, Position):
            if before != after:
                return _backward(pairs, tuple(loops), _index(before) < _index(after))
        else:
            loops.append(_functions(pairs, before, after))
    return _backward(pairs, tuple(loops), False)


@kept(KNOWN)
def _backward(pairs: isl.Map, loops: tuple[Ends, ...], ordered: bool) -> isl.Map | None:
    """The same for common loops, inside which the sink runs later if `ordered`."""
    for depth, (first, second) in enumerate(loops):
        together = _together(pairs, loops[:depth])
        if together is None:
            return None
        backward = _filled(together.intersect(first.gt_map(second)))
        if backward is not None:
            return backward
    return None if ordered else _together(pairs, loops)


@kept(KNOWN)
def _together(pairs: isl.Map, loops: tuple[Ends, ...]) -> isl.Map | None:
    """The pairs at whose ends each of these loops counts the same; None if there are none."""
    if not loops:
        return pairs
    around, (first, second) = _together(pairs, loops[:-1]), loops[-1]
    return None if around is None else _filled(around.intersect(first.eq_map(second)))


def _differing(pairs: isl.Map, source: Path, sink: Path, loop: str) -> isl.Map | None:
    """The pairs in one iteration of all loops around `loop` and in different ones of `loop`; None if there are none."""
    loops = _down_to(pairs, source, sink, loop)
    return None if loops is None else _apart(pairs, loops)


@kept(KNOWN)
def _apart(pairs: isl.Map, loops: tuple[Ends, ...]) -> isl.Map | None:
    """The pairs at whose ends only the last of these loops counts differently; None if there are none."""
    together, (first, second) = _together(pairs, loops[:-1]), loops[-1]
    return None if together is None else _filled(together.intersect(first.gt_map(second).union(first.lt_map(second))))


def _filled(pairs: isl.Map) -> isl.Map | None:
    """The pairs; None if there are none."""
    return None if pairs.is_empty() else pairs


def _in_one_run(pairs: isl.Map, source: Path, sink: Path, loop: str) -> tuple[isl.Map, Ends] | None:
    """The pairs in one run of a loop, with what the loop counts at both ends; None if there are none."""
    loops = _down_to(pairs, source, sink, loop)
    together = None if loops is None else _together(pairs, loops[:-1])
    return None if loops is None or together is None else (together, loops[-1])


def _down_to(pairs: isl.Map, source: Path, sink: Path, loop: str) -> tuple[Ends, ...] | None:
    """The loops around both ends, down to the one of that name; None if it does not run both."""
    loops: list[Ends] = []
    for before, after in zip(source, sink, strict=False):
        if isinstance(before, Position) or isinstance(after, Position):
            if before != after:
                return None
        else:
            loops.append(_functions(pairs, before, after))
            if before.name == loop:
                return tuple(loops)
    return None


def _functions(pairs: isl.Map, before: Band, after: Band) -> Ends:
    source, sink = pairs.get_tuple_name(isl.dim_type.in_), pairs.get_tuple_name(isl.dim_type.out)
    return before.function(source), after.function(sink)


def _index(position: Position | Band) -> int:
    assert isinstance(position, Position), "two statements share every loop above the sequence that parts them"
    return position.index
