"""A small instance of a schedule: few iterations a loop and small blocks, so that each iteration can be drawn.

    M = 512, N = 512, K = 512: split(i=6).split(j=256).split(j=64).order(…).pack(…).microkernel(…)
    M = 5,   N = 7,   K = 3:   split(i=2).split(j=4)  .split(j=2) .order(…)

Steps that do not change the order, or that only fit the large blocks, are left out. The extents are such that every
loop over blocks has at least two full blocks and a remainder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

import islpy as isl

from poly.errors import PolyError
from poly.ir.instances import box_extents, coordinate, iterations
from poly.ir.nest import Nest, Statement
from poly.ir.sets import integer
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Enclose, Pack, Part, Split, Step, Tensorize, Tile, Unroll, Vectorize, call_text
from poly.schedules.steps.formulas import Formula

MOST = 320
"""The most iterations of all statements that are drawn."""
UNDRAWN = (Pack, Tensorize, Unroll, Vectorize)
"""Steps that change neither the order nor its loops: a microkernel takes over the loops of one tile."""
BLOCKS = {1: (2,), 2: (4, 2)}
"""The sizes of blocks in blocks, outermost first; deeper ones are doubled on the outside."""
FORMULA_BLOCK = 3
"""The size of blocks in formulas, such as `k // 24`."""
NONE_SMALL = "no small sizes were found at which each of its statements runs a few times."
ALONE = 10
"""The extent of a loop that is in no other loop."""


@dataclass(frozen=True)
class SmallInstance:
    """A schedule that is small enough to be drawn. `left_out` has the steps that it lacks, as text.

    `nest` is as it is before the steps, which may part statements. `window` says that the loops were cut off after a
    few iterations, since no size determines their extents.
    """

    nest: Nest
    schedule: Schedule
    left_out: tuple[str, ...]
    window: bool = False

    @property
    def text(self) -> str:
        """What is drawn, in words: the iterations and the blocks."""
        blocks = [call_text(step) for step in self.schedule.steps if isinstance(step, Split | Tile | Enclose)]
        return ", ".join([self.sizes, *blocks])

    @property
    def sizes(self) -> str:
        """The iterations that are drawn, in words."""
        sizes = ", ".join(f"{name} = {value}" for name, value in self.nest.fixed)
        return "the first iterations of each loop" if self.window or not sizes else f"a small instance: {sizes}"


def small(opened: Nest, steps: Sequence[Step]) -> SmallInstance | None:
    """A small instance of a schedule with these steps; None if there is none that runs all statements.

    `opened` is the nest with its sizes open, as far as they are known to be sizes.
    """
    shrunk = blocks(steps)
    wanted = extents(opened, shrunk)
    nest = _sized(opened, wanted)
    window = nest is None or iterations_of(nest) > MOST
    if window:
        nest = _cut(opened if nest is None else nest, wanted)
    if nest is None or not 0 < iterations_of(nest) <= MOST:
        return None
    made, left_out = schedule(nest), []
    for step, original in zip(shrunk, steps, strict=True):
        if isinstance(step, UNDRAWN):
            left_out.append(call_text(original))
            continue
        try:
            made = made.apply([step])
        except PolyError:
            left_out.append(call_text(original))
    return SmallInstance(nest, made, tuple(left_out), window)


def iterations_of(nest: Nest) -> int:
    """The iterations of all statements, of each in the bounding box of its domain."""
    return sum(iterations(statement.domain) for statement in nest.statements)


def blocks(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with small blocks."""
    depths = Counter(name for step in steps if isinstance(step, Split | Tile) for name, _ in step.sizes)
    seen: Counter[str] = Counter()

    def size(name: str) -> int:
        seen[name] += 1
        depth = depths[name] - seen[name]  # blocks inside of this one
        return BLOCKS[1][0] << depth

    def step(one: Step) -> Step:
        if isinstance(one, Split | Tile):
            return replace(one, sizes=tuple((name, size(name)) for name, _ in one.sizes))
        if isinstance(one, Enclose):
            return replace(one, values=tuple((name, _small_formula(text)) for name, text in one.values))
        if isinstance(one, Part):
            where = None if one.where is None else _small_formula(one.where)
            return replace(one, where=where, size=min(one.size, FORMULA_BLOCK))
        return one

    return tuple(map(step, steps))


def _small_formula(text: Formula) -> Formula:
    """The formula with small numbers in place of large ones."""
    return Formula(re.sub(r"(?<![\w.])\d+(?![\w.])", lambda n: str(min(int(n[0]), FORMULA_BLOCK)), text))


def root(name: str) -> str:
    """The iterator that a loop is named after: `i` of `i_tile2` and of `i_2`."""
    return re.sub(r"(?:_tile\d*|_\d+)+$", "", name)


def extents(nest: Nest, steps: Iterable[Step]) -> dict[str, int]:
    """The wanted extent of each iterator: two outermost blocks and a part of one, or a few iterations."""
    depth = max((len(statement.iterators) for statement in nest.statements), default=0)
    few = {0: 1, 1: ALONE, 2: 5, 3: 4}.get(depth, 3 if depth < 5 else 2)
    found = {name: few for statement in nest.statements for name in statement.iterators}
    sizes: dict[str, list[int]] = {}
    for step in steps:
        if isinstance(step, Split | Tile):
            for name, size in step.sizes:
                sizes.setdefault(root(name), []).append(size)
        if isinstance(step, Enclose):
            found = dict.fromkeys(found, max(few, 2 * FORMULA_BLOCK))
    for name, own in sizes.items():
        if name in found:
            found[name] = max(own) * (2 if len(own) == 1 else 1) + (sum(own) - max(own) or 0) + 1
    if depth == 1:
        found = {name: max(ALONE, extent) for name, extent in found.items()}
    return _fitted(nest, found, frozenset(sizes))


def _fitted(nest: Nest, wanted: dict[str, int], blocked: frozenset[str]) -> dict[str, int]:
    """The extents, less where there would be too many iterations: first of the loops that are not `blocked`."""
    while sum(prod(wanted[name] for name in statement.iterators) for statement in nest.statements) > MOST:
        longest = max(wanted, key=lambda name: (wanted[name] > 2, name not in blocked, wanted[name]))
        wanted = wanted | {longest: wanted[longest] - 1}
    return wanted


def _sized(nest: Nest, wanted: Mapping[str, int]) -> Nest | None:
    """The nest at the least sizes at which its loops have the wanted extents, as far as there is room for them.

    None if it has no open sizes, or some statement does not run at small sizes.
    """
    if not nest.sizes:
        return None
    values = dict.fromkeys(nest.sizes, 1)
    best = None
    while True:
        made = _at(nest, values)
        if made is not None and iterations_of(made) <= MOST and all(not s.domain.is_empty() for s in made.statements):
            best = made
        if made is not None and iterations_of(made) > MOST:
            return best
        short = _short(made, wanted) if made is not None else None
        if made is not None and short is None:
            return best
        grown = _grown(nest, values, short)
        if grown is None:
            return best
        values = grown


LARGEST = 24
"""The largest value of a size that is tried."""


def _at(nest: Nest, values: Mapping[str, int]) -> Nest | None:
    """The nest at these sizes; None if they violate its conditions."""
    made = nest.with_sizes(values)
    return None if made.context.is_empty() else made


def _short(nest: Nest, wanted: Mapping[str, int]) -> tuple[str, int] | None:
    """The statement and iterator that are furthest from the wanted extent; None if there is none."""
    found: dict[tuple[str, int], float] = {}
    for statement in nest.statements:
        rank = len(statement.iterators)
        own = (0,) * rank if statement.domain.is_empty() else box_extents(statement.domain)
        found |= {(statement.name, at): own[at] / wanted[statement.iterators[at]] for at in range(rank)}
    least = min(found, key=lambda place: found[place], default=None)
    return None if least is None or found[least] >= 1 else least


def _grown(nest: Nest, values: dict[str, int], short: tuple[str, int] | None) -> dict[str, int] | None:
    """One size larger: the first that makes this loop longer, else all of them; None if they are large already."""
    if max(values.values()) >= LARGEST:
        return None
    if short is not None:
        statement, at = nest.statement(short[0]), short[1]
        now = _extent(statement, at, values)
        for name in values:
            more = values | {name: values[name] + 1}
            if _extent(statement, at, more) > now:
                return more
    return {name: value + 1 for name, value in values.items()}


def _extent(statement: Statement, at: int, values: Mapping[str, int]) -> int:
    domain = statement.domain
    for name, value in values.items():
        position = domain.find_dim_by_name(isl.dim_type.param, name)
        if position >= 0:
            domain = domain.fix_val(isl.dim_type.param, position, isl.Val(value))
    return 0 if domain.is_empty() else box_extents(domain)[at]


def _cut(nest: Nest, wanted: Mapping[str, int]) -> Nest | None:
    """The nest with only the first iterations of each loop; None if a statement has none of them."""
    if nest.sizes:
        return None
    statements = tuple(_first(statement, wanted) for statement in nest.statements)
    return None if any(s.domain.is_empty() for s in statements) else replace(nest, statements=statements)


def _first(statement: Statement, wanted: Mapping[str, int]) -> Statement:
    def kept(domain: isl.Set, at: int) -> isl.Set:
        if domain.is_empty():
            return domain
        low = integer(domain.dim_min_val(at))
        end = isl.Val(low + wanted[statement.iterators[at]] - 1)
        return domain.intersect(coordinate(domain, at).le_set(_constant(domain, end)))

    return replace(statement, domain=reduce(kept, range(len(statement.iterators)), statement.domain))


def _constant(domain: isl.Set, value: isl.Val) -> isl.PwAff:
    return isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(domain.get_space())).add_constant_val(value)
