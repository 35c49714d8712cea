"""Vectorise innermost loops, those that go back through memory the other way round; unroll those that cannot be.

for i:                                for i:
  for j: B[i, j] = f(A[i, j])    ->     for j: B[i, j] = f(A[i, j])  # vectorize
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from codegen.ir.expr import Load
from codegen.ir.program import APART
from poly.analysis.legality import lane_conflict, race
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.parting import apart
from poly.autoschedule.rules.rows import with_rows
from poly.autoschedule.rules.shapes import innermost
from poly.autoschedule.spaces.space import Knob, Values
from poly.ir.edits import find_loop, fresh
from poly.ir.layout import step
from poly.ir.nest import Nest
from poly.ir.paths import loops_outside, paths
from poly.ir.strides import (
    accesses,
    extent,
    first_strided,
    is_contiguous,
    is_contiguous_along,
    is_dense,
    lines,
    moved_iterator,
)
from poly.ir.tree import Band, Leaf, Node, Sequence, bands, statements, walk
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Flatten, Reverse, Step, Unroll, Vectorize

WRITTEN_OUT = (2, 4, 8)
"""Unroll factors."""
SHORT = 16
"""The most iterations of inner loops that are written out in a lane: all iterations together."""
FEW = 4
"""Loops with fewer iterations have no lanes: filling and combining these takes longer than the work."""
ROW = 256
"""Loops with fewer iterations are made one with those around them that go on where they end."""
NEAR = 4
"""The elements from one lane's to the next one's that a few loads and shuffles bring together."""


def in_lanes(form: Form) -> Form:
    """The form with its innermost loops vectorised, as far as that is legal and accesses are contiguous."""
    return form.then(lambda made, values: vectorized(made), vectorized(form.tried))


def unrolled(form: Form) -> Form | None:
    """The form with its non-vectorised innermost loops unrolled; None if there are none."""
    loops = [band.name for band in innermost(form.tried.tree) if not band.vectorize]
    if not loops:
        return None

    def unrolled(made: Schedule, values: Values) -> Schedule:
        return made.apply([Unroll(tuple((loop, values["unroll"] or 1) for loop in loops))])

    usual = ("unroll", WRITTEN_OUT[0])
    made = unrolled(form.tried, dict([usual]))
    return form.then(unrolled, made, (("innermost", "written out"),), (Knob("unroll", WRITTEN_OUT),), (usual,))


def vectorized(schedule: Schedule) -> Schedule:
    """The schedule with every innermost loop vectorised that goes from element to element, where that is legal.

    A loop may go forward by two elements, or backwards or by more if it reduces, if it takes all elements. For other
    loops that do, the choice is left to the C compiler, which may not reorder a reduction. Loops inside others with
    lanes have none.
    """
    schedule = _around_short(_forward(_parted(schedule)))
    nest, tree = schedule.nest, schedule.tree
    within = {inner.name for band in bands(tree) if band.vectorize for inner in bands(band.body)}
    candidates = [band for band in innermost(tree) if band.unroll < 2 and band.name not in within]
    loops = [band for band in candidates if lane_conflict(nest, tree, band.name) is None]
    for name in [band.name for band in loops if unpaid(schedule, band) is None]:
        schedule = _with_lanes(schedule, find_loop(schedule.tree, name))
    return schedule


def _with_lanes(schedule: Schedule, band: Band) -> Schedule:
    """The schedule with lanes along an innermost loop, in the form that suits it."""
    flat = flattened(schedule, band)
    if flat is not None:
        made = attempt(schedule, [flat, Vectorize(flattened_name(schedule.tree, flat))])
        if made is not None:
            return made
    if is_short(schedule.nest, band):
        return schedule
    return with_rows(schedule, band) or applied(schedule, [Vectorize(band.name)])


def flattened(schedule: Schedule, band: Band) -> Flatten | None:
    """The step that makes one loop of a loop of few iterations and those around it that go on where it ends.

    for i:                                         for i_j in range(7*H):
      for j in range(7): s += x[c, i, j]     ->      s += x[c, i_j / 7, i_j % 7]
    """
    found, nest = [band], schedule.nest
    steps = _steps(schedule, band)
    whole = extent(nest, band)
    for outer in reversed(loops_outside(paths(schedule.tree)[statements(band)[0]], band.name)):
        if steps is None or whole is None or whole >= ROW or outer.parallel or outer.body is not found[0]:
            break
        beyond, count = _steps(schedule, outer), extent(nest, outer)
        if beyond is None or count is None or any(beyond[at] != by * whole for at, by in steps.items()):
            break
        found.insert(0, outer)
        whole *= count
    return Flatten(tuple(one.name for one in found)) if len(found) > 1 else None


def flattened_name(tree: Node, step: Flatten) -> str:
    """The name that the step gives the loop."""
    return fresh(tree, "_".join(step.loops))


def _steps(schedule: Schedule, band: Band) -> dict[tuple[str, Load], int] | None:
    """The elements by which each access of each statement moves with an iteration; None if that is not known."""
    nest, moved = schedule.nest, _moved(schedule, band, 1)
    if moved is None:
        return None
    found = {
        (name, access): step(nest.array(access.array), access, at).number
        for name, at in moved.items()
        for access in accesses(nest.statement(name))
    }
    return None if None in found.values() else {key: by for key, by in found.items() if by is not None}


def _parted(schedule: Schedule) -> Schedule:
    """The schedule with innermost loops parted where one iteration writes what all others read.

    for j:                                        for j < k: P[i, j] = min(P[i, j], P[i, k] + P[k, j])
      P[i, j] = min(P[i, j],               ->     P[i, k] = min(P[i, k], P[i, k] + P[k, k])
                    P[i, k] + P[k, j])            for j > k: P[i, j] = min(P[i, j], P[i, k] + P[k, j])

    Both loops can then have lanes: all that they read is written before or behind them (index set splitting).
    """
    for band in innermost(schedule.tree):
        found = _apart(schedule, band)
        schedule = (found and attempt(schedule, found)) or schedule
    return schedule


def _apart(schedule: Schedule, band: Band) -> list[Step] | None:
    """The steps that part a loop at the iteration that keeps it from having lanes; None if there is none."""
    names, nest = statements(band), schedule.nest
    if len(names) != 1 or band.parallel or band.unroll > 1 or not _contiguous(schedule, band):
        return None
    conflict = lane_conflict(nest, schedule.tree, band.name)
    moved = _moved(schedule, band, 1)
    if conflict is None or moved is None:
        return None
    return apart(schedule, band, moved[names[0]], conflict)


def _around_short(schedule: Schedule) -> Schedule:
    """The schedule with lanes along loops in which there are only loops of a few iterations, which are written out.

    for x:                                      for x:  # vectorize
      Y[x] = X[2*x]                               Y[x] = X[2*x]
      for s < 3:                          ->      Y[x] = max(Y[x], X[2*x]); Y[x] = max(Y[x], X[2*x + 1]); …
        Y[x] = max(Y[x], X[2*x + s])
    """
    for band in bands(schedule.tree):
        schedule = around_short(schedule, band) or schedule
    return schedule


def around_short(schedule: Schedule, band: Band) -> Schedule | None:
    """The schedule with lanes along one such loop; None if it is none, or has no lanes."""
    short = short_loops(schedule.nest, band.body)
    if not short or band.vectorize or is_short(schedule.nest, band) or not _is_near(schedule, band):
        return None
    return attempt(schedule, [Unroll(short), Vectorize(band.name)])


def short_loops(nest: Nest, body: Node) -> tuple[tuple[str, int], ...] | None:
    """The loops inside a loop's body, with their extents, if they have so few iterations that they may be written out.

    A loop of one iteration gets two, which an unrolled loop has at least.
    """
    found = [(band.name, extent(nest, band)) for band in bands(body)]
    known = tuple((name, whole) for name, whole in found if whole is not None)
    if len(known) < len(found) or prod(whole for _, whole in known) > SHORT:
        return None
    plain = all(isinstance(part, Leaf | Band | Sequence) for part in walk(body))
    return tuple((name, max(2, whole)) for name, whole in known) if plain else None


def _is_near(schedule: Schedule, band: Band) -> bool:
    """Whether, along a loop, writes go from element to element, and reads at most a few elements further."""
    nest, moved = schedule.nest, _moved(schedule, band, 1)
    if moved is None:
        return False
    for name, at in moved.items():
        statement = nest.statement(name)
        target = statement.target
        kept = [access for access in accesses(statement) if access.array not in nest.temporaries]
        if any(lines(nest, access, at) > NEAR for access in kept):
            return False
        if target.array in nest.temporaries:
            continue
        if any(at in index.names for index in target.indices) and not is_contiguous_along(nest, target, at):
            return False
    return True


def is_short(nest: Nest, band: Band) -> bool:
    """Whether a loop is known to have too few iterations for lanes."""
    whole = extent(nest, band)
    return whole is not None and whole < FEW


def unpaid(schedule: Schedule, band: Band) -> str | None:
    """Why lanes are not worth it in a loop in which they are legal; None if they are."""
    if _contiguous(schedule, band):
        return None
    nest, moved = schedule.nest, _moved(schedule, band, 1)
    if moved is None:
        return "with its iterations, not exactly one index of each statement grows by one"
    if _spread(nest, moved) or _either_way(nest, moved):
        return None
    reduces = race(nest, schedule.tree, band.name) is not None
    if reduces and (is_dense(nest, moved) or (_floats(nest, moved) and _steps_within(nest, moved, NEAR))):
        return None
    if is_dense(nest, moved) and _steps_within(nest, moved, 2):
        return None
    strided = ((first_strided(nest, nest.statement(name), at), name) for name, at in moved.items())
    access, name = next((access, name) for access, name in strided if access is not None)
    return f"{access} in {name} does not go from element to element"


def _spread(nest: Nest, moved: Mapping[str, str]) -> bool:
    """Whether a single statement reads neighbours, and writes every second or fourth element of rows."""
    if len(moved) != 1:
        return False
    (name, at), *_ = moved.items()
    statement = nest.statement(name)
    target = statement.target
    reads = [access for access in accesses(statement) if access != target]
    if not target.indices or any(at in index.names for index in target.indices[:-1]):
        return False
    apart = step(nest.array(target.array), target, at).number
    return apart in APART and all(lines(nest, access, at) <= 1 for access in reads)


def _either_way(nest: Nest, moved: Mapping[str, str]) -> bool:
    """Whether each access goes to the next element or to the one before, or stays: compilers turn vectors round."""
    every = ((access, at) for name, at in moved.items() for access in accesses(nest.statement(name)))
    return all(access.array in nest.temporaries or lines(nest, access, at) <= 1 for access, at in every)


def _floats(nest: Nest, moved: Mapping[str, str]) -> bool:
    """Whether each result is a float: compilers may not reorder sums of these, as they do those of integers."""
    return all(nest.array(nest.statement(name).target.array).dtype.is_float for name in moved)


def _steps_within(nest: Nest, moved: Mapping[str, str], most: int) -> bool:
    """Whether each access goes forward by an element or a few, as real and imaginary parts do, or stays at one."""
    every = ((nest.statement(name), at) for name, at in moved.items())
    steps = (
        step(nest.array(access.array), access, at).number
        for statement, at in every
        for access in accesses(statement)
        if any(at in index.names for index in access.indices)
    )
    return all(apart in range(1, most + 1) for apart in steps)


def _forward(schedule: Schedule) -> Schedule:
    """The schedule with the innermost loops reversed that go from element to element backwards, where that is legal."""
    for band in innermost(schedule.tree):
        if _contiguous(schedule, band, by=-1):
            schedule = attempt(schedule, [Reverse(band.name)]) or schedule
    return schedule


def _contiguous(schedule: Schedule, band: Band, by: int = 1) -> bool:
    """Whether all accesses go from element to element, or stay, as the statements' iterators grow `by` each time."""
    moved, nest = _moved(schedule, band, by), schedule.nest
    return moved is not None and all(is_contiguous(nest, nest.statement(name), at) for name, at in moved.items())


def _moved(schedule: Schedule, band: Band, by: int) -> dict[str, str] | None:
    """The iterator of each statement in a loop that grows `by` each time; None if one has no such iterator."""
    found = paths(schedule.tree)
    moved = {n: moved_iterator(schedule.nest.statement(n), found[n], band.name, by) for n in statements(band)}
    return None if None in moved.values() else {name: at for name, at in moved.items() if at is not None}
