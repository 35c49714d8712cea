"""Run everything that shares its rows block by block, so that what one leaves is still in the cache for the next.

    for i: for j: for k:                            for i_tile:
      T[i, j] += A[i, k] * B[k, j]                    microkernels: T for the rows of the block
    for i: for j:                          ->         for i in the block: for j:
      T[i, j] = max(T[i, j], 0)                         T[i, j] = max(T[i, j], 0)
    for i: for l: for j:                              microkernels: D for the rows of the block
      D[i, l] += T[i, j] * C[j, l]

A local such as T then needs memory for the rows of a block alone (poly/lowering/storage.py). So run an epilogue behind
a product, products one behind the other, and attention, whose products are joined by a softmax of each row. Where an
iteration of the outermost loop over rows passes on more than fits in the cache, as where heads share keys, the blocks
are of the next loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from math import ceil, gcd, lcm, prod

from microkernels.kernel import OuterProduct
from microkernels.opencl_isa import DeviceISA
from poly.analysis.roles import Roles, enclosing_roles, expected_bytes, roles
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.contraction import Outline, Planner, Tilings, outlined, planned_steps
from poly.autoschedule.rules.isolation import isolated
from poly.autoschedule.rules.triangles import slanted_sum
from poly.ir.nest import Array, Nest, Statement
from poly.ir.strides import accesses
from poly.ir.tree import Band, Node, bands, only_loops, parts, statements
from poly.model import Choice
from poly.model.core import FULL, Target
from poly.schedules.matching import zeroing
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Fuse, Pack, Parallel, Split, Step

LEAST = 192
"""The fewest rows in a block, of all loops that count them: those of the blocks that libraries pack (Low et al., see
poly/model/choice.py)."""

TRIED = 12
"""The most runs of loops that are tried, the longest first."""


@dataclass(frozen=True)
class RowProduct:
    """A contraction, the names of its loops by iterator, outermost first, and its register tile if that is fixed."""

    statement: Statement
    roles: Roles
    loops: Mapping[str, str]
    kernel: OuterProduct | None = None

    @property
    def extents(self) -> dict[str, int]:
        """The iterations of its outer loops, which count batches or rows or have one iteration, by iterator."""
        r = self.roles
        known = {axis.iterator: axis.guess for axis in (*r.batch, *r.rows)}
        others = {axis.iterator for axis in (*r.columns, *r.reduce, *r.overlaps)}
        return {name: known.get(name, 1) for name in takewhile(lambda name: name not in others, self.loops)}

    @property
    def row_loops(self) -> list[int]:
        """For each of the outer loops that counts rows, the number of loops around it."""
        rows = {axis.iterator for axis in self.roles.rows}
        return [at for at, name in enumerate(self.extents) if name in rows]

    def rows_inside(self, depth: int) -> int:
        """The rows in an iteration of the loop at this depth."""
        return prod(list(self.extents.values())[at] for at in self.row_loops if at > depth)

    def inside(self, depth: int) -> RowProduct:
        """The contraction in one iteration of its `depth` outer loops."""
        outer, r = set(islice(self.loops, depth)), self.roles
        rows, batch = (tuple(a for a in axes if a.iterator not in outer) for axes in (r.rows, r.batch))
        loops = {iterator: name for iterator, name in self.loops.items() if iterator not in outer}
        return replace(self, roles=replace(r, rows=rows, batch=batch), loops=loops)


def passes_locals(made: Schedule) -> bool:
    """Whether loops of a schedule pass a local on to others."""
    members = [frozenset(statements(part)) for part in parts(made.tree)]
    return any(array.kind == "local" and _is_passed(made.nest, array, members) for array in made.nest.arrays)


def row_blocked(nest: Nest, target: Target) -> Schedule | None:
    """The schedule in blocks of rows, without lanes; None if no loops pass locals on to others that share their rows.

    None also if these locals stay in the cache anyway.
    """
    if isinstance(target.isa, DeviceISA):
        return None
    base, products = _distributed(nest, target)
    for run in islice(_runs(parts(base.tree)), TRIED) if products else ():
        inside = [one for one in products if any(one.statement.name in statements(band) for band in run)]
        made = _blocked(base, run, inside, target) if inside else None
        if made is not None:
            return _with_others(made, [one for one in products if one not in inside], target)
    return None


def _with_others(made: Schedule, products: Sequence[RowProduct], target: Target) -> Schedule:
    """The schedule with microkernels for contractions outside of the blocks, where that is legal."""
    for one in products:
        nest, dtype = made.nest, made.nest.array(one.statement.target.array).dtype
        initial = None if one.kernel else zeroing(nest, one.statement)
        steps = planned_steps(one.roles, dtype, one.loops, target, initial)
        made = (steps and attempt(made, steps)) or made
    return made


def _distributed(nest: Nest, target: Target) -> tuple[Schedule, list[RowProduct]]:
    """The schedule in which each contraction has its own loops, and these contractions.

    One whose reduction has a slanted bound is parted, as by the rule for such sums.
    """
    made, found = schedule(nest), []
    for statement in nest.statements:
        alone = isolated(made, statement)
        if alone is None:
            continue
        made, loops = alone
        box, dtype = roles(nest, statement), nest.array(statement.target.array).dtype
        slanted = slanted_sum(nest, statement, dtype, target) if box is None and not nest.sizes else None
        parted = slanted and attempt(made, slanted.apart(loops))
        if slanted and parted:
            made = parted
            found.append(RowProduct(statement, slanted.roles, loops, slanted.choice.kernel))
        elif known := box or enclosing_roles(nest, statement):
            found.append(RowProduct(statement, known, loops))
    return made, found


def _runs(nodes: Sequence[Node]) -> Iterator[tuple[Band, ...]]:
    """Consecutive loops, the longest runs first."""
    for length in range(len(nodes), 1, -1):
        for first in range(len(nodes) - length + 1):
            run = only_loops(nodes[first : first + length])
            if len(run) == length:
                yield tuple(run)


def _blocked(base: Schedule, run: Sequence[Band], products: Sequence[RowProduct], target: Target) -> Schedule | None:
    """The schedule with these loops in common blocks of rows, and their contractions in microkernels."""
    found = _block(base.nest, run, products[0], target)
    if found is None:
        return None
    outside, least = found
    loops = [_below(band, outside) for band in run]
    if None in loops or any(outside not in one.row_loops for one in products):
        return None
    members = [one.inside(outside) for one in products]
    plans = [_plan(one, least, base.nest, target) for one in members]
    if None in plans:
        return None
    tiles = [choice.kernel.rows for _, choice in filter(None, plans)]
    fixed = [one.kernel.rows for one in products if one.kernel]
    within = products[0].rows_inside(outside)
    whole = lcm(*tiles) if lcm(*tiles) <= 2 * least * within else lcm(*fixed or tiles[:1])  # slanted ones stay whole
    whole //= gcd(whole, within)
    size = ceil(least / whole) * whole
    names = [band.name for band in loops if band is not None]
    block = f"{names[0]}_tile"
    around = [band.name for depth in range(outside) if (band := _below(run[0], depth)) is not None]
    first, *others = (statements(band)[0] for band in run)
    cuts = [Split(((name, size),)) for name in names]
    made = attempt(base, [*cuts, *(Fuse(first, other, at=block) for other in others)])
    for one in members:
        made = made and attempt(made, _steps(one, size, made, target, around[-1] if around else None))
    several = [name for name, extent in zip(around, products[0].extents.values(), strict=False) if extent > 1]
    shared = [Parallel(next(iter(several), block))] if target.threads > 1 else []
    return made and attempt(made, shared)


def _below(band: Band, depth: int) -> Band | None:
    """The loop `depth` loops inside another, if these are perfectly nested."""
    for _ in range(depth):
        if not isinstance(band.body, Band):
            return None
        band = band.body
    return band


def _block(nest: Nest, run: Sequence[Band], one: RowProduct, target: Target) -> tuple[int, int] | None:
    """The number of loops around the blocks, and the rows of one; None if what is passed on fits in L2, or in no block.

    It has as many rows as fill half of L2 with what is passed on and what the product reads of them, but no fewer than
    a block of a library: each reads all of the right operand. A batch whose rows all fit is one block. The rows are
    those of the outermost loop of which an iteration fits.
    """
    members = [frozenset(statements(band)) for band in run]
    passed = sum(
        expected_bytes(array) for array in nest.arrays if array.kind == "local" and _is_passed(nest, array, members)
    )
    depths, extents = one.row_loops, list(one.extents.values())
    read = expected_bytes(nest.array(one.roles.contraction.left.array))
    half = target.caches.l2 * FULL / 2
    if passed <= half or not depths:
        return None
    room = half * passed / (passed + read)
    outside = next((at for at in depths if passed / prod(extents[: at + 1]) <= room), depths[-1])
    batches, rows = prod(extents[:outside]), extents[outside]
    within = target.threads if batches == 1 else 1
    fewest = LEAST / one.rows_inside(outside)
    blocks = round(rows / max(fewest, room * batches * rows / passed) / within) * within
    if blocks <= 1 and batches == 1:
        return None
    return outside, ceil(rows / max(blocks, 1))


def _is_passed(nest: Nest, array: Array, members: Sequence[frozenset[str]]) -> bool:
    """Whether one member of a run writes an array that another accesses."""
    users = {s.name for s in nest.statements if any(load.array == array.name for load in accesses(s))}
    writers = {s.name for s in nest.statements if s.target.array == array.name}
    within = [member for member in members if member & users]
    return len(within) > 1 and any(member & writers for member in within) and bool(array.shape)


def _plan(one: RowProduct, size: int, nest: Nest, target: Target) -> tuple[Outline, Choice] | None:
    """How one thread computes a contraction in a block of `size` rows; None without columns or a reduction."""
    rows = next(iter(one.loops))
    cut = tuple(replace(axis, extent=size) if axis.iterator == rows else axis for axis in one.roles.rows)
    alone, dtype = replace(target, threads=1), nest.array(one.statement.target.array).dtype
    outline = outlined(replace(one.roles, rows=cut, batch=()), dtype, alone)
    if outline is None:
        return None
    usual = Tilings(outline, alone).usual
    return outline, replace(usual, kernel=one.kernel or usual.kernel, rows_cut=None)


def _steps(one: RowProduct, size: int, made: Schedule, target: Target, around: str | None) -> list[Step]:
    """The steps of a contraction in a block. One that stays in L2 as the right one is packed before, in `around`."""
    nest, right = made.nest, one.roles.contraction.right.array
    plan = _plan(one, size, nest, target)
    if plan is None:
        return []
    outline, choice = plan
    initial = None if one.kernel else zeroing(nest, one.statement)
    steps = Planner(outline, choice, one.loops, initial, frozenset(band.name for band in bands(made.tree))).steps()
    axes = (*one.roles.columns, *one.roles.reduce)
    whole = prod(axis.guess for axis in axes) * nest.array(right).dtype.size
    near = all(axis.extent is not None for axis in axes) and whole <= target.caches.l2 * FULL / 2

    def hoisted(step: Step) -> Step:
        if not (near and isinstance(step, Pack) and step.array == right and step.role in (None, "right")):
            return step
        return replace(step, at=around)

    return [hoisted(step) for step in steps]
