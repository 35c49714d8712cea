"""The space of a contraction: copies, the order of the tile loops, the register tile and the cache tiles.

    order       rows inside: a panel of the right operand stays near while the rows go by; or columns inside
    left        the left operand is read in place, or copied into panels
    right       in place, copied whole (one block of it at a time), or panel by panel just before the rows go by
    parallel    the role whose outermost loop the threads share

The knobs are the register tile's rows and vectors, and how many steps of the reduction, columns and rows make a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import ceil, prod

from microkernels.catalogue import fits, gemm
from microkernels.isa import ISA
from poly.default import contracted, isolated
from poly.microkernel import zeroing
from poly.model import Caches, Choice
from poly.model.choice import is_scattered, reduction
from poly.model.contraction import Model, Work
from poly.model.rates import Rates
from poly.nest import Nest, Statement
from poly.plan import Planner, planner
from poly.roles import roles
from poly.schedule import Schedule, schedule
from poly.spaces.space import Family, Knob, Point, Structure, Value, Values
from poly.steps import Microkernel

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28)
"""Rows of a register tile; those that need more registers than there are, or than the contraction has, are left out."""

DEPTHS = (64, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096)
"""The most steps of the reduction in one call; equal parts of at most so many are made."""

BLOCKS = (96, 192, 384, 768, 1536, 3072, 6144, 12288)
"""Columns and rows of a block, rounded down to whole register tiles."""

COARSE_ROWS, COARSE_DEPTHS, COARSE_COLUMNS, COARSE_BLOCKS = (6, 8, 14, 28), (128, 384, 1024), (768, 6144), (192,)
"""The same for a space that is to be measured as a whole."""

BUSY = 16
"""Vectors of a register tile, at least, in such a space: fewer don't hide a multiply-add's latency and its loads."""


@dataclass(frozen=True)
class Trait:
    """What tells structures apart."""

    rows_inside: bool
    pack_left: bool
    pack_right: bool
    panel_by_panel: bool
    parallel: str | None

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        right = "in place" if not self.pack_right else "by panels" if self.panel_by_panel else "whole"
        return (
            ("order", "rows inside" if self.rows_inside else "columns inside"),
            ("left", "panels" if self.pack_left else "in place"),
            ("right", right),
            ("parallel", self.parallel or "none"),
        )


def contraction_family(
    nest: Nest, isa: ISA, caches: Caches, rates: Rates, threads: int, coarse: bool = False
) -> Family | None:
    """The structures of the heaviest contraction of a nest; None where it has none with a space of its own.

    The other statements follow their default schedule. `coarse` thins the grids to some hundreds of points.
    """
    found = _heaviest(nest, isa, caches, threads)
    if found is None:
        return None
    statement, planned = found
    grid = _Grid(nest, statement, planned, isa, caches, rates, threads, coarse)
    return grid.family()


def _heaviest(nest: Nest, isa: ISA, caches: Caches, threads: int) -> tuple[Statement, Planner] | None:
    """The contraction with the most multiply-adds that has rows, and its plan; others stream a matrix without tiles."""
    made, found = schedule(nest), []
    for statement in nest.statements:
        alone = isolated(made, statement)
        r = roles(nest, statement) if alone else None
        if alone is None or r is None or not r.rows:
            continue
        dtype = nest.array(statement.target.array).dtype
        planned = planner(r, dtype, alone[1], isa, caches, threads, zeroing(nest, statement))
        if planned is not None:
            found.append((prod(a.guess for a in (*r.batch, *r.rows, *r.columns, *r.reduce)), statement, planned))
    return max(found, key=lambda entry: entry[0])[1:] if found else None


@dataclass(frozen=True)
class _Grid:
    """Derives the structures of one contraction."""

    nest: Nest
    statement: Statement
    planned: Planner
    isa: ISA
    caches: Caches
    rates: Rates
    threads: int
    coarse: bool

    def family(self) -> Family:
        model = Model(self._work(), self.caches, self.rates, self.threads)
        structures = tuple(self._structure(trait, model) for trait in self._traits())
        return Family(structures, self._choice(structures))

    def _work(self) -> Work:
        p = self.planned
        rows = p.rows.axes if p.rows else ()
        return Work(p.roles, rows, p.extra_rows, p.columns.axes, p.extra_columns, self.isa, p.choice.kernel.dtype)

    @property
    def m(self) -> int:
        return self.planned.rows.extent if self.planned.rows else 1

    @property
    def n(self) -> int:
        return self.planned.columns.extent

    def _traits(self) -> list[Trait]:
        """The structures there are: where the right operand can't be read in place, it is copied."""
        must_copy = is_scattered(self.planned.columns.axes)
        return [
            Trait(rows_inside, left, right > 0, right == 2, parallel)
            for rows_inside, left, right, parallel in product((True, False), (False, True), range(3), self._parallel())
            if not (must_copy and right == 0) and (rows_inside or right < 2)
        ]

    def _parallel(self) -> list[str | None]:
        if self.threads == 1:
            return [None]
        batch = ["batch"] if self.planned.roles.batch else []
        return [None, *batch, "columns", "rows"]

    def _structure(self, trait: Trait, model: Model) -> Structure:
        return Structure(
            trait.named,
            self._knobs(trait),
            partial(self._allows, trait),
            lambda values: self._schedule(trait, values),
            lambda values: model.predict(self._made(trait, values)),
        )

    def _knobs(self, trait: Trait) -> tuple[Knob, ...]:
        own, lanes = self.planned.choice, self.isa.lanes(self.planned.choice.kernel.dtype)
        many = range(1, min(4, ceil(self.n / lanes)) + 1)
        rows = {r for r in (COARSE_ROWS if self.coarse else ROWS) if r <= self.m} | {own.kernel.rows}
        depths = COARSE_DEPTHS if self.coarse else DEPTHS
        steps = {reduction(self.planned.roles.reduce, most)[2] for most in (*depths, self._own_depth())}
        return (
            Knob("rows", tuple(sorted(rows))),
            Knob("vectors", tuple(many)),
            Knob("depth", tuple(sorted(steps))),
            Knob("columns", self._columns(trait)),
            Knob("block", self._blocks(trait)),
        )

    def _own_depth(self) -> int:
        """Steps of a call in the default choice."""
        own, axes = self.planned.choice, self.planned.roles.reduce
        return prod(axis.guess for axis in axes[len(axes) - own.inner :]) * (own.reduce_cut or 1)

    def _columns(self, trait: Trait) -> tuple[Value, ...]:
        """Blocks of columns; a thread's share, where threads share them."""
        if self.coarse and (not trait.pack_right or trait.panel_by_panel):
            return (None,)
        return self._cuts(self.n, COARSE_COLUMNS if self.coarse else BLOCKS, trait.parallel == "columns")

    def _blocks(self, trait: Trait) -> tuple[Value, ...]:
        """Blocks of rows; a thread's share, where threads share them."""
        if trait.panel_by_panel and trait.parallel != "rows":
            return (None,)
        return self._cuts(self.m, COARSE_BLOCKS if self.coarse else BLOCKS, trait.parallel == "rows")

    def _cuts(self, extent: int, blocks: Sequence[int], shared: bool) -> tuple[Value, ...]:
        cuts = {block for block in blocks if block < extent}
        if not shared:
            return (*sorted(cuts), None)
        return tuple(sorted(cuts | {ceil(extent / self.threads)}))

    def _allows(self, trait: Trait, values: Values) -> bool:
        rows, vectors = values["rows"], values["vectors"]
        assert rows is not None and vectors is not None, "a register tile has both"
        if not fits(self.isa, rows, vectors):
            return False
        widest = min(4, ceil(self.n / self.isa.lanes(self.planned.choice.kernel.dtype)))
        return not self.coarse or rows * vectors >= min(BUSY, self.m * widest)

    def _made(self, trait: Trait, values: Values) -> Choice:
        """The choice that values stand for."""
        rows, vectors, depth = (values[name] or 1 for name in ("rows", "vectors", "depth"))
        kernel = gemm(self.isa, self.planned.choice.kernel.dtype, rows, vectors)
        inner, cut, _ = reduction(self.planned.roles.reduce, depth)
        return Choice(
            kernel,
            cut,
            inner,
            _whole(values["columns"], kernel.columns),
            _whole(values["block"], kernel.rows),
            trait.pack_left,
            trait.pack_right,
            trait.rows_inside,
            trait.panel_by_panel,
            trait.parallel,
        )

    def _schedule(self, trait: Trait, values: Values) -> Schedule:
        choice = self._made(trait, values)
        made = contracted(self.nest, self.isa, self.caches, self.threads, {self.statement.name: choice})
        kernels = [step for step in made.steps if isinstance(step, Microkernel)]
        assert any(step.kernel == choice.kernel.name for step in kernels), "every point of the space is legal"
        return made

    def _choice(self, structures: tuple[Structure, ...]) -> Point:
        """The point with the least predicted time."""
        points = [Point(number, at) for number, structure in enumerate(structures) for at in structure.points()]

        def seconds(point: Point) -> float:
            structure = structures[point.structure]
            return structure.predict(structure.values(point.at)).seconds

        return min(points, key=seconds)


def _whole(cut: Value, tile: int) -> Value:
    """A block of whole register tiles."""
    return None if cut is None else max(tile, cut // tile * tile)
