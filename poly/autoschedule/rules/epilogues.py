"""Run what follows a contraction on each register tile of its results, while these are in the nearest cache.

    for i: for j: T[i, j] = b[j]                    for i_tile: for j_tile:
    for i: for j: for k:                              for i in the tile: for j in the tile: T[i, j] = b[j]
      T[i, j] += A[i, k] * B[k, j]         ->         microkernel: T for the tile
    for i: for j:                                     for i in the tile: for j in the tile:
      D[i, j] = max(T[i, j], 0)                         D[i, j] = max(T[i, j], 0)

What sets the results before, such as to a bias, runs on each tile, too, unless the microkernel sets them to 0 itself.

A local such as T then needs memory for one tile (poly/lowering/storage.py), if one call sums it up; else the local
would need memory for all tiles, and there may be blocks of rows instead (row_blocks.py). So there may be where what
follows reads an array that is far away: of a tile it would read rows too short for the hardware to fetch ahead. If the
reduction is cut, what follows runs with the last of its blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import takewhile

from codegen.ir.expr import Load
from poly.analysis.contraction import formed
from poly.analysis.roles import expected_bytes, roles
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.isolation import distributed, loops_by_iterator
from poly.errors import ScheduleError
from poly.ir.nest import Nest, Statement
from poly.ir.paths import names_around
from poly.ir.strides import accesses
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Flatten, Fuse, Order, Split, Step, Tensorize


def with_epilogues(
    base: Schedule, statement: Statement, loops: Mapping[str, str], steps: Sequence[Step], near: int
) -> Schedule | None:
    """The schedule with the steps of a contraction, and with what follows it on each of its tiles where that is legal.

    `loops` names the contraction's own loops in `base`, outermost first, by iterator. An array of at most `near` bytes
    is not far away. None if the steps are illegal.
    """
    tiled = _tiled(base, statement, loops, steps, near)
    if tiled is not None:
        followers = list(_followers(base.nest, statement, near))
        for way in (tiled, replace(tiled, first=None)) if tiled.may_leave_first else (tiled,):
            least = 0 if way.may_leave_first else 1
            for count in range(len(followers), least - 1, -1):
                made = way.with_neighbours(followers[:count])
                if made is not None:
                    return made
    return attempt(base, steps)


@dataclass(frozen=True)
class _Neighbour:
    """A statement that accesses an element of the contraction's results in each iteration.

    `iterators` are its own, by the contraction's that count the same.
    """

    statement: Statement
    iterators: Mapping[str, str]


@dataclass(frozen=True)
class _Tiled:
    """The steps of a contraction whose microkernel sums up a tile in one call.

    `loops` are its loops, outermost first, of which `kept` has those over results by iterator. `shared` are the steps
    that order and cut the loops over results, `own` are the others. `first` sets the results, `absorbed` if by the
    microkernel.
    """

    base: Schedule
    statement: Statement
    loops: tuple[str, ...]
    kept: Mapping[str, str]
    reduce: tuple[str, ...]
    shared: tuple[Step, ...]
    own: tuple[Step, ...]
    first: _Neighbour | None
    absorbed: bool

    @property
    def may_leave_first(self) -> bool:
        """Whether what sets the results may also run in loops of its own."""
        return self.first is not None and not self.absorbed

    def with_neighbours(self, followers: Sequence[_Neighbour]) -> Schedule | None:
        """The schedule with what sets the results and these statements on each tile; None if it is illegal."""
        try:
            steps = self._steps(followers)
        except ScheduleError:
            return None
        return attempt(self.base, steps) if steps else None

    def _steps(self, followers: Sequence[_Neighbour]) -> list[Step] | None:
        name, innermost = self.statement.name, [*self.kept.values()][-1]
        made = applied(self.base, _ordered(self.loops, (*self.kept.values(), *self.reduce)))
        before = [self.first] if self.first else []
        for one in (*before, *followers):
            alone = distributed(made, one.statement)
            names = loops_by_iterator(alone, one.statement) if alone is not None else None
            if alone is None or names is None:
                return None
            turned = _ordered(names.values(), [names[one.iterators[iterator]] for iterator in self.kept])
            made = applied(alone, [*turned, Fuse(name, one.statement.name, at=innermost)])
        made = applied(made, self.shared)
        for behind in (*(one.statement.name for one in before), *([name] if followers else [])):
            made = applied(made, [Distribute(self._around(made)[0], behind=behind)])
        made = applied(made, [Order((*self._around(made), *self.reduce)), *self.own])
        return list(made.steps[len(self.base.steps) :])

    def _around(self, made: Schedule) -> list[str]:
        """The names of the loops over rows and columns that the microkernel takes."""
        around = names_around(made.tree, self.statement.name)
        return [name for name in around if name not in self.reduce][-2:]


def _ordered(loops: Iterable[str], wanted: Sequence[str]) -> list[Step]:
    """The step that puts loops in an order; none if they are in it."""
    return [] if list(loops) == list(wanted) else [Order(tuple(wanted))]


def _tiled(
    base: Schedule, statement: Statement, loops: Mapping[str, str], steps: Sequence[Step], near: int
) -> _Tiled | None:
    """The steps of a contraction over a box; None if a tile takes several calls and its results are a local's."""
    contraction, r = formed(base.nest, statement), roles(base.nest, statement)
    last = next((at for at in reversed(range(len(steps))) if isinstance(steps[at], Order)), None)
    kernel = next((step for step in steps if isinstance(step, Tensorize)), None)
    if contraction is None or r is None or not r.rows or last is None or kernel is None:
        return None
    before = steps[: last + 1]
    if not all(isinstance(step, (Order, Split, Flatten)) for step in before):
        return None
    *_, order = before
    assert isinstance(order, Order)
    steps_inside = {loops[axis.iterator] for axis in r.reduce}  # without loops of one iteration
    summed = [loops[iterator] for iterator in contraction.reduce]
    inner = tuple(takewhile(lambda name: name in summed, reversed(order.loops)))[::-1]
    reduce = (*(name for name in summed if name not in inner), *inner)
    if not steps_inside.issubset(inner):
        return None
    cut = {loop for step in before if isinstance(step, Split) for loop, _ in step.sizes}
    if cut & steps_inside and base.nest.array(statement.target.array).kind == "local":
        return None
    shared = tuple(Order(tuple(n for n in s.loops if n not in reduce)) if isinstance(s, Order) else s for s in before)
    kept = {iterator: name for iterator, name in loops.items() if name not in reduce}
    if kernel.initial:
        first = _neighbour(statement, {statement.target}, base.nest.statement(kernel.initial))
    else:
        first = None if cut & steps_inside else _set_before(base.nest, statement, near)
    if kernel.initial and first is None:
        return None
    own, absorbed = tuple(steps[last + 1 :]), bool(kernel.initial)
    return _Tiled(base, statement, tuple(loops.values()), kept, reduce, shared, own, first, absorbed)


def _set_before(nest: Nest, statement: Statement, near: int) -> _Neighbour | None:
    """The statement that sets the results of a contraction before it, one in each iteration; None if there is none."""
    before = nest.statements[: nest.statements.index(statement)]
    last = next((one for one in reversed(before) if one.target.array == statement.target.array), None)
    found = _neighbour(statement, {statement.target}, last) if last is not None and last.op == "=" else None
    return None if found is None or _reads_far(nest, found, {statement.target}, near) else found


def _followers(nest: Nest, statement: Statement, near: int) -> Iterator[_Neighbour]:
    """The statements behind a contraction that access its results, or those of the ones before, element by element."""
    results = {statement.target}
    for other in nest.statements[nest.statements.index(statement) + 1 :]:
        one = _neighbour(statement, results, other) if formed(nest, other) is None else None
        if one is not None and not _reads_far(nest, one, results, near):
            back = {own: iterator for iterator, own in one.iterators.items()}
            target = other.target
            results.add(Load(target.array, tuple(index.renamed(back) for index in target.indices)))
            yield one


def _reads_far(nest: Nest, one: _Neighbour, results: Set[Load], near: int) -> bool:
    """Whether a statement reads another element in each iteration, of an array larger than `near`."""
    own, known = one.statement, {result.array for result in results}
    read = [load for load in own.reads if load.array not in known]
    moved = (load.array for load in read if set(own.iterators) <= {n for index in load.indices for n in index.names})
    return any(expected_bytes(nest.array(array)) > near for array in moved)


def _neighbour(statement: Statement, results: Set[Load], other: Statement) -> _Neighbour | None:
    """A statement that accesses one of the elements `results`, and has one iteration for each; None if it does not."""
    kept = {name for index in statement.target.indices for name in index.names}
    for load in accesses(other):
        for result in results:
            matched = _matched(result, load) if load.array == result.array else None
            if matched is not None and set(matched) == kept and set(matched.values()) == set(other.iterators):
                return _Neighbour(other, matched)
    return None


def _matched(result: Load, load: Load) -> dict[str, str] | None:
    """The iterators of an access by those of another at the same place; None if an index is no iterator."""
    found: dict[str, str] = {}
    for own, other in zip(result.indices, load.indices, strict=True):
        ours, theirs = list(own.names), list(other.names)
        if len(ours) != len(theirs) or len(ours) > 1 or (ours and own != other.renamed({theirs[0]: ours[0]})):
            return None
        found |= dict(zip(ours, theirs, strict=True))
    return found
