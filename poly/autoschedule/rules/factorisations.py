"""Blocked factorisations: all updates of the trailing matrix by a block of eliminated columns are a matrix product.

    for i:                                  for k_tile:
      for j < i:                              …the same loops, for columns in the block k_tile…
        for k < j:                            for i_2, j_2 behind the block, in register tiles:
          A[i, j] -= A[i, k]*A[k, j]   ->       A[i_2, j_2] -= A[i_2, k]*A[k, j_2] for k in the block (a microkernel)
        A[i, j] /= A[j, j]
      for j >= i:
        for k < i:
          A[i, j] -= A[i, k]*A[k, j]

An update belongs to the block of its k, any other statement to the block of one of its iterators, such that the blocks
keep all dependences. The updates of elements that are finished in a later block leave the block's own loops: nothing
in the block needs them. Where they are a triangle, the squares along its diagonal stay loops. Large matrices have
blocks of blocks: the updates of what is finished in a later block of blocks run behind the whole, as a deeper product.
In a block, rows may run side by side. Triangular solves with many right-hand sides and inversions of triangles run in
blocks, too; some go down their pivots. What is summed in a local between a load and a store of the element is summed in
the element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import ceil

from microkernels.catalogue import gemm, sums, tiles
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from microkernels.product import MULTIPLY_ADD
from poly.analysis.contraction import Contraction, formed
from poly.autoschedule.rules.attempt import attempt, has_loops
from poly.autoschedule.rules.contiguous import contiguous
from poly.autoschedule.rules.form import WHOLE, Form, usual_parts
from poly.autoschedule.rules.lanes import vectorized
from poly.autoschedule.rules.pivots import Direction, counting, side_by_side
from poly.autoschedule.rules.sharing import parallelized_around_kernels
from poly.autoschedule.rules.trailing import ABREAST, in_common_strips, in_tiles, parted, tile_loops
from poly.autoschedule.spaces.grids import fitting, tile_knobs, uncut
from poly.autoschedule.spaces.space import Knob, Values
from poly.ir.budget import TooCostly, limited
from poly.ir.edits import fresh
from poly.ir.nest import Array, Nest, Statement
from poly.ir.paths import names_around
from poly.ir.tree import Node, parts, statements
from poly.model.core import Target
from poly.model.price import arithmetic
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Accumulate, Distribute, Enclose, Tensorize
from poly.schedules.steps.formulas import Formula

DEPTH = 24
"""The least number of columns in a block: few, since in a block the updates run without a microkernel."""

TOGETHER = 5
"""Blocks in a block of blocks, behind which one product updates the trailing matrix, so that it is read less often."""

TILES = (2, 3, 4, 6, 8)
"""Columns per block in a search, in rows of the register tile."""

BLOCKS = (3, 5, 8)
"""Blocks in a block of blocks in a search."""

LARGE = 768
"""The least number of columns for which the trailing matrix leaves the caches, so that blocks of blocks pay off."""

SIDE_BY_SIDE = 16
"""Rows that run side by side: enough to wait for no division, and few, so that all lie in the nearest cache."""

GAIN = 1.3
"""How much longer the computation of plain loops must be expected to take, since the model is no more exact."""

AFFORDABLE = 7_000_000
"""The number of isl operations allowed for blocking a factorisation."""


@dataclass(frozen=True)
class Elimination:
    """Statements whose blocks keep all dependences: what counts the blocks, for each of them."""

    counts: Mapping[str, str]
    updates: tuple[Contraction, ...]
    direction: Direction


@dataclass(frozen=True)
class Blocks:
    """The sizes of blocks.

    These are the columns per block, the microkernel of the trailing updates, the columns per block of blocks (0: none),
    and the rows that run side by side in a block (0: one by one), which threads may share.
    """

    depth: int
    kernel: OuterProduct
    around: int = 0
    rows: int = 0
    shared: bool = False


def usual_factorisation(nest: Nest, target: Target, loops: Form) -> Form | None:
    """The blocked factorisation, parallel if there are several threads, with rows side by side if the model likes that.

    None if there is none, or if `loops` are expected to compute about as fast.
    """
    found: list[Form] = []
    with suppress(TooCostly), limited(AFFORDABLE):
        found.extend(_forms(nest, target, target.threads))
    most = _computation(loops.tried, target) / GAIN if found else 0.0
    times = sorted((_computation(form.tried, target), at) for at, form in enumerate(found))
    better = (found[at] for seconds, at in times if seconds <= most)
    return next((form for form in better if not nest.sizes or has_loops(form.tried, target.isa)), None)


def factorisations(nest: Nest, target: Target) -> Iterator[Form]:
    """The forms of a blocked factorisation, sequential and parallel, rows one by one and side by side."""
    for threads in dict.fromkeys((1, target.threads)):
        yield from _forms(nest, target, threads)


def _forms(nest: Nest, target: Target, threads: int) -> Iterator[Form]:
    found = _first(nest, target.isa)
    if found is not None:
        for rows in (0, SIDE_BY_SIDE):
            yield _form(
                nest, target.isa, replace(found, blocks=replace(found.blocks, rows=rows, shared=threads > 1)), threads
            )


def _form(nest: Nest, isa: ISA, blocked: _Blocked, threads: int) -> Form:
    """The form of a factorisation with the sizes of its blocks open; those of `blocked` are the usual ones."""
    usual = blocked.blocks
    most = max(usual.depth, usual.around, _steps(nest, blocked.found) // 2)
    dtype, lanes, fits = usual.kernel.dtype, isa.lanes(usual.kernel.dtype), fitting(isa)

    def finished(made: Schedule) -> Schedule:
        return vectorized(parallelized_around_kernels(made, threads) if threads > 1 else made)

    def make(values: Values) -> Schedule | None:
        kernel = gemm(isa, dtype, values["rows"] or 1, values["vectors"] or 1)
        around = values.get("blocks") or 0
        made = factorised(nest, isa, Blocks(_depth(values), kernel, around * _depth(values), usual.rows, usual.shared))
        return made and finished(made)

    def allows(values: Values) -> bool:
        return fits(values) and _depth(values) * (values.get("blocks") or 1) <= most

    def sizes(values: Values) -> dict[str, int]:
        depth, around = _depth(values), values.get("blocks")
        tile = {"rows": values["rows"] or 1, "columns": (values["vectors"] or 1) * lanes}
        return {
            **tile,
            "strip": ABREAST * tile["columns"],
            "depth": depth,
            "around": around * depth if around else WHOLE,
        }

    several = (Knob("blocks", uncut(BLOCKS)),) if usual.around else ()
    tiles = tuple(sorted({*TILES, usual.depth // usual.kernel.rows}))
    at = {"rows": usual.kernel.rows, "vectors": usual.kernel.vectors, "tiles": usual.depth // usual.kernel.rows}
    return Form(
        (
            ("factorisation", "by blocks"),
            ("rows of a block", "side by side" if usual.rows else "one by one"),
            ("parallel", "around microkernels" if threads > 1 else "none"),
        ),
        make,
        finished(_inside(blocked)),
        (*tile_knobs(WHOLE, WHOLE, usual.kernel), Knob("tiles", tiles), *several),
        (*at.items(), *((("blocks", usual.around // usual.depth),) if several else ())),
        _cuts(blocked),
        allows,
        sizes,
    )


def _steps(nest: Nest, found: Elimination) -> int:
    """The number of steps of an elimination."""
    lengths = (nest.array(one.output.array).shape[at].number for one in found.updates for at in _eliminated(one))
    return min((length for length in lengths if length is not None), default=WHOLE)


def _depth(values: Values) -> int:
    """The columns per block."""
    return (values["rows"] or 1) * (values["tiles"] or 1)


def _computation(made: Schedule, target: Target) -> float:
    """Seconds of a call with all data in the nearest cache: blocks read again less than any other loops."""
    return arithmetic(usual_parts(made, target).computed, target)


def factorised(nest: Nest, isa: ISA, blocks: Blocks | None = None) -> Schedule | None:
    """The schedule of the first factorisation with a microkernel for its trailing updates; None if there is none."""
    found = _first(nest, isa, blocks)
    return None if found is None else _inside(found)


def _first(nest: Nest, isa: ISA, blocks: Blocks | None = None) -> _Blocked | None:
    """The first factorisation with a microkernel for its trailing updates; None if there is none."""
    base = _accumulated(nest)
    for found in eliminations(base.nest):
        updated = nest.array(found.updates[0].output.array)
        if not sums(isa, updated.dtype):
            continue
        made = _blocked(base, found, blocks or usual_blocks(tiles(isa, updated.dtype)[0], updated))
        if made is not None:
            return made
    return None


def _accumulated(nest: Nest) -> Schedule:
    """The loops as written, in which products of an array's elements are summed in the array and not in a local."""
    made = schedule(nest)
    for statement in nest.statements:
        found = formed(nest, statement)
        if found and found.rows and found.columns and nest.array(found.output.array).kind == "local":
            arrays = dict.fromkeys((found.left.array, found.right.array))
            steps = ([Accumulate(found.output.array, name)] for name in arrays)
            made = next((one for step in steps if (one := attempt(made, step)) is not None), made)
    return made


def usual_blocks(kernel: OuterProduct, updated: Array) -> Blocks:
    """The smallest block with whole register tiles that is deep enough, in blocks of blocks if the array is large."""
    depth = kernel.rows * ceil(DEPTH / kernel.rows)
    is_large = all((extent.number or 0) >= LARGE for extent in updated.shape)
    return Blocks(depth, kernel, TOGETHER * depth if is_large else 0)


def eliminations(nest: Nest) -> Iterator[Elimination]:
    """The consecutive loops of a nest that update an array by products of its own elements."""
    for part in parts(schedule(nest).tree):
        updates = {name: c for name in statements(part) if (c := _update(nest, nest.statement(name)))}
        if any(c.rows and c.columns for c in updates.values()):
            for direction in _directions(nest, updates.values()):
                counts = _counts(nest, part, updates, direction)
                if counts is not None:
                    yield Elimination(counts, tuple(updates.values()), direction)
                    break


def _update(nest: Nest, statement: Statement) -> Contraction | None:
    """A contraction with one reduction that reads the array it writes."""
    found = formed(nest, statement)
    if found is None or len(found.reduce) != 1 or found.product != MULTIPLY_ADD:
        return None
    return found if found.output.array in (found.left.array, found.right.array) else None


def _directions(nest: Nest, updates: Iterable[Contraction]) -> Iterator[Direction]:
    """The ways in which the pivots of an elimination may be counted."""
    yield Direction("", "0")
    lengths = {nest.array(one.output.array).shape[at] for one in updates for at in _eliminated(one)}
    if len(lengths) == 1:
        yield Direction("-", f"-({lengths.pop()})")


def _eliminated(update: Contraction) -> set[int]:
    """The dimensions of the updated array along which its elements are finished one after the other."""
    own = (load for load in (update.left, update.right) if load.array == update.output.array)
    return {at for load in own for at, index in enumerate(load.indices) if update.reduce[0] in index.names}


def _counts(nest: Nest, part: Node, updates: Mapping[str, Contraction], direction: Direction) -> dict[str, str] | None:
    """What counts the blocks of each statement, such that none needs a later block; None if nothing does.

    An update is in the block of its step. What nothing comes before, such as a copy to the array, may come first.
    """

    def choices(name: str) -> list[str]:
        if name in updates:
            return direction.counts(updates[name].reduce)
        return [*direction.counts(nest.statement(name).iterators), direction.first]

    return next(counting(nest, {name: choices(name) for name in statements(part)}), None)


@dataclass(frozen=True)
class _Blocked:
    """A schedule with microkernels for the trailing updates; `loops` are those over blocks, outermost first."""

    made: Schedule
    found: Elimination
    loops: tuple[str, ...]
    blocks: Blocks


def _blocked(made: Schedule, found: Elimination, blocks: Blocks) -> _Blocked | None:
    """The blocked loops; None if no trailing update becomes a microkernel."""
    loops: tuple[str, ...] = ()
    trailing: list[tuple[str, int]] = []
    for size in (blocks.around, blocks.depth) if blocks.around else (blocks.depth,):
        level = _level(made, found, size, loops[-1] if loops else None)
        if level is None:
            return None
        made, loops = level.made, (*loops, level.loop)
        trailing.extend((name, size) for name in level.trailing)
    for name, size in trailing:
        made = in_tiles(made, name, size, blocks.kernel) or made
    for (first, size), (second, other) in pairwise(trailing):
        made = (in_common_strips(made, first, second) if size == other else None) or made
    has_kernel = any(isinstance(step, Tensorize) for step in made.steps)
    return _Blocked(made, found, loops, blocks) if has_kernel else None


def _inside(blocked: _Blocked) -> Schedule:
    """The schedule with loops in the order that suits what is left to a block."""
    made, blocks, found = blocked.made, blocked.blocks, blocked.found
    if not blocks.rows:
        return contiguous(made)
    beside = partial(side_by_side, made, found.updates, found.direction, blocked.loops[-1])
    below = {name: f"{text} // {blocks.depth}" for name, text in found.counts.items()}
    shared = beside(blocks.depth, below) if blocks.shared and not made.nest.sizes else None
    return contiguous(shared or beside(blocks.rows) or made)


def _cuts(blocked: _Blocked) -> dict[str, str]:
    """The loops over blocks and over tiles of the trailing updates, and what each has the size of."""
    levels = ("around", "depth") if blocked.blocks.around else ("depth",)
    cuts = dict(zip(blocked.loops, levels, strict=True))
    for strip, row_tile, column_tile in tile_loops(blocked.made).values():
        cuts |= {strip: "strip", row_tile: "rows", column_tile: "columns"}
    return cuts


@dataclass(frozen=True)
class _Level:
    """A schedule with a loop over blocks, and the updates that run behind each block."""

    made: Schedule
    loop: str
    trailing: tuple[str, ...]


def _level(made: Schedule, found: Elimination, size: int, around: str | None) -> _Level | None:
    """The schedule with a loop over blocks of this size in the loop `around`; None if that is illegal."""
    loop = fresh(made.tree, f"{found.updates[0].reduce[0]}_tile")
    values = tuple((name, Formula(f"{text} // {size}")) for name, text in found.counts.items())
    enclosed = attempt(made, [Enclose(loop, values, around)])
    if enclosed is None:
        return None
    level = _Level(enclosed, loop, ())
    for update in found.updates:
        name = f"{update.statement}_far{2 if around else ''}"
        apart = _trailing(level.made, update, found.direction.sign, loop, size, name)
        if apart is not None:
            level = _Level(apart, loop, (*level.trailing, name))
    return level


def _trailing(made: Schedule, update: Contraction, sign: str, loop: str, size: int, name: str) -> Schedule | None:
    """The schedule with the updates of later blocks' elements behind all else in a block; None if that is illegal."""
    places = [update.output.indices[at] for at in _eliminated(update)]
    iterators = made.nest.statement(update.statement).iterators
    own = [name for name in iterators if any(name in index.names for index in places)]
    later = " and ".join(f"{sign}{update.reduce[0]} // {size} < {sign}{name} // {size}" for name in own)
    cut = parted(made, update.statement, later, name)
    if cut is None:
        return None
    around = names_around(cut.tree, name)
    return attempt(cut, [Distribute(around[around.index(loop) + 1], last=name)])
