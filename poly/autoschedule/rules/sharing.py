"""Choose the loops to run in parallel on threads.

for i:                              for i:  # parallel
  for j: B[i, j] = f(A[i, j])  ->     for j: B[i, j] = f(A[i, j])

On each path of the tree, it is the outermost loop that may be parallel and has enough work for several threads, or the
parts of one before and behind the iteration that its others depend on. A loop of one iteration is none. If its
iterations do not divide evenly, as three images among eight threads, it is a loop directly inside, where what that
saves is more than waking the threads more often costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from poly.analysis.legality import is_parallel, race
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.parting import apart
from poly.autoschedule.rules.shapes import INNER_GUESS, Chain, chains, heaviest
from poly.ir.nest import Nest
from poly.ir.paths import names_around, paths
from poly.ir.strides import extent, moved_iterator, summed_iterator
from poly.ir.tree import Band, Copy, Micro, Node, Sequence, bands, children, has_kernel, only_loops, parts, statements
from poly.lowering.calls import inner_bands
from poly.machine.description import LINE, PAGE
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Order, Parallel, RFactor, Split, Step

WORTH = 50_000
"""Statement instances for which waking a thread pays off: about ten microseconds of work."""


def sharings(form: Form, threads: int) -> Iterator[Form]:
    """The form without parallel loops, with the usual ones, in shares, and with each other of the heaviest chain."""
    usual = usual_sharing(form, threads)
    shared = parallel_loops(usual.tried)
    if threads > 1 and shared:
        yield unshared(form)
    yield usual
    if threads > 1:
        yield from filter(None, (in_shares(form, threads), summed_apart(form, threads)))
    chain = heaviest(form.tried) if shared else None
    for band in chain.bands[:-1] if chain else ():
        several = extent(form.tried.nest, band) != 1
        if several and band.name not in shared and is_parallel(form.tried.nest, form.tried.tree, band.name):
            yield _with(form, form.tried.apply([Parallel(band.name)]))


def usual_sharing(form: Form, threads: int) -> Form:
    """The form with the outermost suitable loops made parallel, if there are several threads."""
    return _with(form, parallelized(form.tried, threads)) if threads > 1 else form


def in_shares(form: Form, threads: int) -> Form | None:
    """The form whose threads take a share of an inner loop each through all iterations of the loops around it.

    for j:                                  for i_tile:  # parallel
      for i: A[j, i] += A[j-1, i]    ->       for j:
                                                for i in the share: A[j, i] += A[j-1, i]

    None if there is no such loop of known size.
    """
    made = form.tried
    for chain in chains(made.tree):
        outer = next((band for band in chain.bands if extent(made.nest, band) != 1), chain.bands[0])
        if _is_sequential(made, outer):
            made = next((found for band in chain.bands[1:] if (found := _in_shares(made, chain, band, threads))), made)
    return _with(form, made) if made is not form.tried else None


def _is_sequential(made: Schedule, outer: Band) -> bool:
    """Whether a loop has enough work for threads, and may not be parallel."""
    return lacking_work(made.nest, outer, WORTH) is None and not is_parallel(made.nest, made.tree, outer.name)


def summed_apart(form: Form, threads: int) -> Form | None:
    """The form whose threads take a block of a loop's iterations each, with sums of their own that are added up behind.

    None if there is no outermost loop of known size whose iterations only sums keep in order.
    """
    made = form.tried
    for outer in only_loops(parts(made.tree)):
        if _is_sequential(made, outer):
            made = _summed_apart(made, outer, threads) or made
    return _with(form, made) if made is not form.tried else None


def _summed_apart(made: Schedule, outer: Band, threads: int) -> Schedule | None:
    whole, found = extent(made.nest, outer), paths(made.tree)
    if whole is None or whole < threads:
        return None
    work = _work(made.nest, outer, WORTH)
    if work < threads * (WORTH + 2 * threads * work // whole):  # beginning and ending all sums is work, too
        return None
    size = -(-whole // threads)
    sums = (s for s in map(made.nest.statement, statements(outer)) if s.op == "+")
    moved = ((s, summed_iterator(s, found[s.name], outer.name)) for s in sums)
    steps: list[Step] = [RFactor(s.name, iterator, size) for s, iterator in moved if iterator]
    return attempt(made, [*steps, Split(((outer.name, size),)), Parallel(f"{outer.name}_tile")]) if steps else None


def _in_shares(made: Schedule, chain: Chain, band: Band, threads: int) -> Schedule | None:
    """The schedule with equal shares of one loop, of whole lines if it goes along any.

    Prefetchers run ahead within a page: they would fetch lines of a shorter share that another thread writes.
    """
    written = (made.nest.array(made.nest.statement(name).target.array) for name in chain.statements)
    least = PAGE // min(array.dtype.size for array in written)
    whole = extent(made.nest, band)
    if whole is None or whole < threads * least:
        return None
    share, names = -(-whole // (threads * LINE)) * LINE, tuple(one.name for one in chain.bands)
    loop = f"{band.name}_tile"
    return attempt(made, [Split(((band.name, share),)), Order((loop, *names)), Parallel(loop)])


def unshared(form: Form) -> Form:
    """The form without parallel loops."""
    return _with(form, form.tried)


def starts_inside(made: Schedule) -> bool:
    """Whether threads start in each iteration of a loop of several around a parallel one."""
    several = (band for band in bands(made.tree) if extent(made.nest, band) != 1)
    return any(band.parallel for outer in several for band in bands(outer.body))


def _with(form: Form, made: Schedule) -> Form:
    return Form.fixed((*form.traits, ("parallel", " ".join(parallel_loops(made)) or "none")), made)


def parallel_loops(made: Schedule) -> tuple[str, ...]:
    """The names of the parallel loops."""
    return tuple(band.name for band in bands(made.tree) if band.parallel)


def parallelized(schedule: Schedule, threads: int) -> Schedule:
    """The schedule with the most suitable loop on each path made parallel, for several threads."""
    return _parallelized(schedule, schedule.tree, WORTH, threads)


def parallelized_beside_kernels(schedule: Schedule) -> Schedule:
    """The same for the loops without a microkernel: the plan of one says what its threads share."""
    for part in parts(schedule.tree):
        if not has_kernel(part):
            schedule = _parallelized(schedule, part, WORTH, 2)
    return schedule


def parallelized_around_kernels(schedule: Schedule, threads: int) -> Schedule:
    """The schedule with parallel loops that are outermost or have microkernels inside.

    What else a block of a factorisation has is too little work to start threads for at each of its pivots.
    """
    shared = parallelized(schedule, threads)
    inside = {band.name for outer in bands(shared.tree) for band in bands(outer.body)}
    small = {band.name for band in bands(shared.tree) if band.name in inside and not has_kernel(band)}
    steps = shared.steps[len(schedule.steps) :]
    return applied(schedule, [one for one in steps if not (isinstance(one, Parallel) and one.loop in small)])


def _parallelized(schedule: Schedule, node: Node, guess: int, threads: int) -> Schedule:
    """The same below a node; `guess` is the extent of loops of unknown size."""
    if isinstance(node, Sequence):
        for child in node.children:
            schedule = _parallelized(schedule, child, guess, threads)
        return schedule
    if isinstance(node, Copy):
        return _parallelized(schedule, node.body, guess, threads)
    if not isinstance(node, Band):
        return schedule
    shared = _shared(schedule, node, guess, threads)
    if shared is not None:
        return applied(schedule, [Parallel(shared.name)])
    parted = _parted(schedule, node, guess)
    if parted is not None:
        return parted
    below = guess if extent(schedule.nest, node) == 1 else INNER_GUESS
    return _parallelized(schedule, node.body, below, threads)


def _shared(schedule: Schedule, band: Band, guess: int, threads: int) -> Band | None:
    """The loop to share, out of one and of those directly inside; None if the first is not suitable.

    The share of the busiest thread, and what it takes to wake all for each run, decide: both count in instances.
    """
    nest, tree = schedule.nest, schedule.tree
    work, runs = _work(nest, band, guess), 1
    best: tuple[float, Band] | None = None
    inner: Node = band
    while isinstance(inner, Band):
        known = extent(nest, inner)
        busiest = 1 / threads if known is None else -(-known // threads) / max(known, 1)
        expected = work * busiest + runs * WORTH
        better = best is None or expected < best[0]
        if known != 1 and better and lacking_work(nest, inner, guess) is None and is_parallel(nest, tree, inner.name):
            best = expected, inner
        if best is None:
            return None
        runs *= INNER_GUESS if known is None else known
        inner, guess = inner.body, INNER_GUESS
    return best and best[1]


def _parted(schedule: Schedule, band: Band, guess: int) -> Schedule | None:
    """The schedule with a loop parted at the iteration that others depend on, and shared; None if it cannot be."""
    nest, names = schedule.nest, statements(band)
    conflict = race(nest, schedule.tree, band.name)
    if len(names) != 1 or conflict is None or lacking_work(nest, band, guess) is not None:
        return None
    own = moved_iterator(nest.statement(names[0]), paths(schedule.tree)[names[0]], band.name)
    steps = apart(schedule, band, own, conflict) if own else None
    made = attempt(schedule, steps) if steps else None
    if made is None:
        return None
    depth = names_around(schedule.tree, names[0]).index(band.name)
    old = {statement.name for statement in nest.statements} - {*names}
    parted = [one.name for one in made.nest.statements if one.name not in old]
    before, _, behind = (names_around(made.tree, name)[depth] for name in parted)
    shared = [loop for loop in (before, behind) if is_parallel(made.nest, made.tree, loop)]
    return applied(made, map(Parallel, shared)) if shared else None


def lacking_work(nest: Nest, band: Band, guess: int) -> int | None:
    """The most instances in one run of a loop if these are too few for threads; None if they are enough."""
    work = _work(nest, band, guess)
    return work if work < WORTH else None


def _work(nest: Nest, node: Node, guess: int) -> int:
    """An upper bound of the instances in one run of a node."""
    below = sum(_work(nest, child, guess) for child in children(node)) or 1
    absorbed = inner_bands(node) if isinstance(node, Micro) else (node,) if isinstance(node, Band) else ()
    return below * prod(extent(nest, band) or guess for band in absorbed)
