"""What there is to choose from for a contraction: structures, and for each a grid of tile sizes.

    order       rows inside: a panel of the right operand stays near while the rows go by; or columns inside
    left        the left operand is read in place, or copied into panels
    right       in place, copied whole (one block of it at a time), or panel by panel just before the rows go by
    parallel    the role whose outermost loop the threads share

The knobs are the register tile's rows and vectors, and how many steps of the reduction, columns and rows make a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import ceil, prod

from microkernels.catalogue import fits, gemm
from microkernels.kernel import OuterProduct
from poly.analysis.roles import Axis
from poly.machine.tiles import ROWS
from poly.model.choice import Choice, call_steps, is_scattered, panel_steps, reduction, shared_role, tile_shape
from poly.model.contraction import ContractionView, Model
from poly.model.core import Caches

Value = int | None
Values = Mapping[str, Value]
"""The value of each knob; None is a loop that stays uncut."""

DEPTHS = (64, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096)
"""The most steps of the reduction in one call; equal parts of at most so many are made."""

BLOCKS = (96, 192, 384, 768, 1536, 3072, 6144, 12288)
"""Columns and rows of a block, rounded down to whole register tiles."""

COARSE_ROWS, COARSE_DEPTHS, COARSE_COLUMNS, COARSE_BLOCKS = (6, 8, 14, 28), (128, 384, 1024), (768, 6144), (192,)
"""The same for a grid of some hundreds of points."""

BUSY = 2
"""Registers for each vector of a register tile, at most, in such a grid: smaller tiles keep no core busy."""


@dataclass(frozen=True)
class TileStructure:
    """What is copied, which loop is inside, and what the threads share."""

    rows_inside: bool
    pack_left: bool
    pack_right: bool
    panel_by_panel: bool
    parallel: str | None

    @property
    def traits(self) -> tuple[tuple[str, str], ...]:
        """In words: the choice of each kind."""
        right = "in place" if not self.pack_right else "by panels" if self.panel_by_panel else "whole"
        return (
            ("order", "rows inside" if self.rows_inside else "columns inside"),
            ("left", "panels" if self.pack_left else "in place"),
            ("right", right),
            ("parallel", self.parallel or "none"),
        )


@dataclass(frozen=True)
class Grid:
    """The structures and knobs of one contraction.

    `coarse` thins the knobs, and leaves the parallel loop to a rule. `by_lines` says that the output's next neighbours
    after a short run of columns are rows: these come first then.
    """

    work: ContractionView
    caches: Caches
    threads: int
    by_lines: bool
    coarse: bool

    def structures(self) -> Iterator[TileStructure]:
        """Where the right operand can't be read in place, or its rows lie an unknown way apart, it is copied.

        Panel by panel, so that all rows pass by each: these are then not copied where their number is open.
        """
        apart = (axis.right.number for axis in self.work.roles.reduce)
        must_copy = is_scattered(self.work.columns) or None in apart
        orders = (True,) if self.by_lines else (True, False)
        for rows_inside, left, right, parallel in product(orders, (False, True), range(3), self._parallel()):
            by_panels = rows_inside and not (left and self._open(self.work.rows))
            if not (must_copy and right == 0) and (by_panels or right < 2):
                yield TileStructure(rows_inside, left, right > 0, right == 2, parallel)

    def knobs(self, structure: TileStructure) -> dict[str, tuple[Value, ...]]:
        """The values of each knob, ascending."""
        coarse, usual = self.coarse, self._usual
        rows = {r for r in (COARSE_ROWS if coarse else ROWS) if r <= self.work.m} | {usual.rows}
        most = (*(COARSE_DEPTHS if coarse else DEPTHS), panel_steps(usual, self.caches))
        return {
            "rows": tuple(sorted(rows)),
            "vectors": tuple(range(1, self._widest + 1)),
            "depth": tuple(sorted({reduction(self.work.roles.reduce, steps)[2] for steps in most})),
            "columns": self._columns(structure),
            "block": self._blocks(structure),
        }

    def allows(self, structure: TileStructure, values: Values) -> bool:
        """Whether a register tile fits, and copies leave half of the caches to everything else."""
        rows, vectors = values["rows"] or 1, values["vectors"] or 1
        if not fits(self.work.isa, rows, vectors):
            return False
        small = rows * vectors < self.work.isa.registers // BUSY
        if self.coarse and small and (rows, vectors) != (self._usual.rows, self._usual.vectors):
            return False
        return self._copied(self.choice(structure, values)) <= self.caches.l2 // 2 + self.caches.l3 // 2

    def choice(self, structure: TileStructure, values: Values) -> Choice:
        """The choice that a structure and values stand for."""
        kernel = gemm(self.work.isa, self.work.dtype, values["rows"] or 1, values["vectors"] or 1)
        inner, cut, _ = reduction(self.work.roles.reduce, values["depth"] or 1)
        return Choice(
            kernel,
            reduce_cut=cut,
            inner=inner,
            columns_cut=_whole(values["columns"], kernel.columns, structure.parallel == "columns"),
            rows_cut=_whole(values["block"], kernel.rows, structure.parallel == "rows"),
            pack_left=structure.pack_left,
            pack_right=structure.pack_right,
            rows_inside=structure.rows_inside,
            panel_by_panel=structure.panel_by_panel,
            parallel=structure.parallel,
        )

    def points(self) -> Iterator[tuple[TileStructure, Values]]:
        """All of them."""
        for structure in self.structures():
            knobs = self.knobs(structure)
            for picked in product(*knobs.values()):
                values = dict(zip(knobs, picked, strict=True))
                if self.allows(structure, values):
                    yield structure, values

    def best(self, model: Model) -> tuple[TileStructure, Values]:
        """The point that the model expects to be the fastest."""
        return min(self.points(), key=lambda point: model.predict(self.choice(*point)).seconds)

    def _copied(self, choice: Choice) -> int:
        """Bytes of the copies that exist at one time, a thread's own ones counted for each."""
        w, kernel, steps = self.work, choice.kernel, call_steps(self.work.roles.reduce, choice)
        columns = kernel.columns if choice.panel_by_panel else choice.columns_cut or w.n
        if not (choice.rows_inside or choice.panel_by_panel):
            columns *= prod(axis.guess for axis in w.extra_columns)
        rows = (choice.rows_cut or w.m) * prod(axis.guess for axis in w.extra_rows)
        right, left = columns * choice.pack_right, rows * choice.pack_left
        if choice.parallel == "batch" or (choice.parallel == "columns" and choice.columns_cut is not None):
            right, left = right * self.threads, left * self.threads
        elif choice.parallel == "rows":
            right, left = right * (self.threads if choice.panel_by_panel else 1), left * self.threads
        return (right + left) * steps * w.dtype.size

    @cached_property
    def _usual(self) -> OuterProduct:
        """The register tile that suits the extents."""
        return tile_shape(self.work.m, self.work.n, self.work.isa, self.work.dtype)

    @staticmethod
    def _open(axes: Sequence[Axis]) -> bool:
        """Whether some extent depends on sizes."""
        return any(axis.extent is None for axis in axes)

    @property
    def _widest(self) -> int:
        return min(4, ceil(self.work.n / self.work.isa.lanes(self.work.dtype)))

    def _parallel(self) -> tuple[str | None, ...]:
        w = self.work
        if self.threads == 1:
            return (None,)
        if self.coarse:
            return (shared_role(w.roles, w.m, w.n, self._usual, self.threads),)
        return (None, *(("batch",) if w.roles.batch else ()), "columns", "rows")

    def _columns(self, structure: TileStructure) -> tuple[Value, ...]:
        """Blocks of columns. Where their number is open, a copy of all of them at a time has no bound."""
        shared = structure.parallel == "columns"
        if self.coarse and not shared and (not structure.pack_right or structure.panel_by_panel):
            return (None,)
        blocks = COARSE_COLUMNS if self.coarse else BLOCKS
        open_ended = structure.pack_right and not structure.panel_by_panel and self._open(self.work.columns)
        return self._cuts(self.work.n, blocks, shared) if not open_ended else blocks

    def _blocks(self, structure: TileStructure) -> tuple[Value, ...]:
        """Blocks of rows. Where their number is open, a copy of all of them has no bound."""
        shared = structure.parallel == "rows"
        if structure.panel_by_panel and not shared:
            return (None,)
        blocks = COARSE_BLOCKS if self.coarse else BLOCKS
        open_ended = structure.pack_left and self._open(self.work.rows)
        return self._cuts(self.work.m, blocks, shared) if not open_ended else blocks

    def _cuts(self, extent: int, blocks: Sequence[int], shared: bool) -> tuple[Value, ...]:
        """Blocks that are less than all; where threads share them, each thread's part among them."""
        part = ceil(extent / self.threads)
        cuts = sorted({block for block in blocks if block < (part if shared else extent)})
        return (*cuts, part) if shared else (*cuts, None)


def _whole(cut: Value, tile: int, up: bool) -> Value:
    """A block of whole register tiles; a thread's part is rounded up, so that no thread is left with the rest."""
    if cut is None:
        return None
    return ceil(cut / tile) * tile if up else max(tile, cut // tile * tile)
