"""The choices for a contraction: structures, and for each a grid of tile sizes.

    order       rows inside: a panel of the right operand stays near while the rows stream past; or columns inside
    left        the left operand is read in place, or packed into panels
    right       in place, packed whole (one block at a time), or panel by panel just before the rows visit each
    parallel    the role whose outermost loop is parallel

The knobs are the register tile's rows and vectors, and the block sizes of the reduction, the columns and the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product, takewhile
from math import ceil, inf, prod

from microkernels.cached import cached_property
from microkernels.catalogue import fits, gemm
from microkernels.kernel import OuterProduct
from poly.analysis.roles import Axis
from poly.machine.tiles import ROWS
from poly.model.choice import Choice, call_steps, is_scattered, panel_steps, reduction, shared_role, tile_shape
from poly.model.contraction import ContractionView, Model
from poly.model.core import Target
from poly.model.rates import described_rates

Value = int | None
Values = Mapping[str, Value]
"""The value of each knob; None leaves the loop uncut."""

DEPTHS = (64, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096)
"""Upper bounds for the reduction steps of one call; the reduction is cut into equal parts."""

BLOCKS = (96, 192, 384, 768, 1536, 3072, 6144, 12288)
"""Columns or rows per block, rounded down to whole register tiles."""

COARSE_ROWS, COARSE_DEPTHS, COARSE_COLUMNS, COARSE_BLOCKS = (6, 8, 14, 28), (128, 384, 1024), (192, 384, 768), (192,)
"""The same for a grid of some hundreds of points."""

SEVERAL = 4
"""The parts of each thread where their number is open."""

BUSY = 2
"""In a coarse grid, the most registers per vector of a register tile: smaller ones idle, unless they have all rows."""


@dataclass(frozen=True)
class TileStructure:
    """Which operands are packed and how, which loop is inside, and which is parallel."""

    rows_inside: bool
    pack_left: bool
    pack_right: bool
    panel_by_panel: bool
    parallel: str | None

    @property
    def traits(self) -> tuple[tuple[str, str], ...]:
        """The structure as named traits."""
        right = "in place" if not self.pack_right else "by panels" if self.panel_by_panel else "whole"
        return (
            ("order", "rows inside" if self.rows_inside else "columns inside"),
            ("left", "panels" if self.pack_left else "in place"),
            ("right", right),
            ("parallel", self.parallel or "none"),
        )


NEARLY = 1.03
"""How much longer than the fastest a choice may be expected to take: by another calibration, it may be the fastest."""


@dataclass(frozen=True)
class Grid:
    """The structures and knobs of one contraction.

    `coarse` thins the knobs and leaves the parallel loop to a rule. `by_lines` tells that the output continues along
    the rows after a short run of columns, so that the rows must be inside.
    """

    work: ContractionView
    target: Target
    by_lines: bool
    coarse: bool

    def structures(self) -> Iterator[TileStructure]:
        """The structures. The right operand is packed if it cannot be read in place or has an unknown stride, and so is
        each that is converted or made words of.

        With packing panel by panel, all rows visit each panel, so they are not packed if their number is open.
        """
        apart = (axis.right.number for axis in self.work.roles.reduce)
        must_copy = is_scattered(self.work.columns) or None in apart
        orders = (True,) if self.by_lines else (True, False)
        for rows_inside, left, right, parallel in product(orders, (False, True), range(3), self._parallel()):
            by_panels = rows_inside and not (left and self._open(self.work.rows))
            in_place = {side for side, packed in (("left", left), ("right", right)) if not packed}
            if in_place & self.work.copied:
                continue
            if not (must_copy and right == 0) and (by_panels or right < 2):
                yield TileStructure(rows_inside, left, right > 0, right == 2, parallel)

    def knobs(self, structure: TileStructure) -> dict[str, tuple[Value, ...]]:
        """The values of each knob, ascending.

        Rows that leave none over are among them where one more tile takes longer than noise, so of few known rows.
        """
        coarse, usual = self.coarse, self._usual
        all_rows = {m} if (m := self.work.m) <= max(ROWS) else set()
        few = usual.rows > (NEARLY - 1) * m and not self._open(self.work.rows)
        even = {r for r in ROWS if m % r == 0} if few else set()
        rows = {r for r in (COARSE_ROWS if coarse else ROWS) if r < m} | {usual.rows} | all_rows | even
        most = (*(COARSE_DEPTHS if coarse else DEPTHS), panel_steps(usual, self.target.caches))
        return {
            "rows": tuple(sorted(rows)),
            "vectors": tuple(range(1, self._widest + 1)),
            "depth": tuple(sorted({reduction(self.work.roles.reduce, steps)[2] for steps in most})),
            "columns": self._columns(structure),
            "block": self._blocks(structure),
        }

    def allows(self, structure: TileStructure, values: Values) -> bool:
        """Whether the register tile fits, and copies leave half of the caches free or are the smallest possible."""
        rows, vectors = values["rows"] or 1, values["vectors"] or 1
        if not fits(self.work.isa, rows, vectors, self.work.dtype, self.work.by):
            return False
        small = rows * vectors < self.work.isa.registers // BUSY and rows < self.work.m
        if self.coarse and small and (rows, vectors) != (self._usual.rows, self._usual.vectors):
            return False
        copied = self._copied(self.choice(structure, values))
        return copied <= self.target.caches.l2 // 2 + self.target.caches.l3 // 2 or copied <= self._least_copied

    def choice(self, structure: TileStructure, values: Values) -> Choice:
        """The choice for a structure and values."""
        w = self.work
        kernel = gemm(w.isa, w.dtype, values["rows"] or 1, values["vectors"] or 1, w.by)
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
        """All structures with all allowed values."""
        for structure in self.structures():
            knobs = self.knobs(structure)
            for picked in product(*knobs.values()):
                values = dict(zip(knobs, picked, strict=True))
                if self.allows(structure, values):
                    yield structure, values

    def best(self, model: Model) -> tuple[TileStructure, Values]:
        """The point that the model expects to be fastest, or one that hardly takes longer and is better otherwise.

        Calibrations tell such points apart by their noise, so what they agree on decides: copies fit in the second
        level, if those of any do, and the point is the fastest of these on the described CPU that is most similar.
        Most points are not priced, since their arithmetic alone takes longer than the best.
        """
        points = list(self.points())
        choices = [self.choice(*point) for point in points]
        least = [model.least(choice) for choice in choices]
        priced = dict[int, float]()
        for at in sorted(range(len(points)), key=least.__getitem__):
            if least[at] > min(priced.values(), default=inf):
                break
            priced[at] = model.predict(choices[at]).seconds
        most, caches = NEARLY * min(priced.values()), self.target.caches
        sizes, threads = (caches.l1, caches.l2, caches.l3), self.target.threads
        rates = self.target.similar or described_rates(self.target.isa, sizes, threads)
        similar = Model(self.work, replace(self.target, rates=rates))

        def worse(at: int) -> tuple[bool, float, int]:
            return self._copied(choices[at]) > caches.l2, similar.predict(choices[at]).seconds, at

        return points[min((at for at, seconds in priced.items() if seconds <= most), key=worse)]

    def _copied(self, choice: Choice) -> int:
        """Bytes of all copies that exist at one time; private copies count for each thread."""
        w, kernel, steps = self.work, choice.kernel, call_steps(self.work.roles.reduce, choice)
        columns = kernel.columns if choice.panel_by_panel else choice.columns_cut or w.n
        if not (choice.rows_inside or choice.panel_by_panel):
            columns *= prod(axis.guess for axis in w.extra_columns)
        rows = (choice.rows_cut or w.m) * prod(axis.guess for axis in w.extra_rows)
        right, left = columns * choice.pack_right, rows * choice.pack_left
        if choice.parallel == "batch" or (choice.parallel == "columns" and choice.columns_cut is not None):
            right, left = right * self.target.threads, left * self.target.threads
        elif choice.parallel == "rows":
            right, left = right * (self.target.threads if choice.panel_by_panel else 1), left * self.target.threads
        return int((right + left) * w.words(steps) * w.dtype.size)

    @cached_property
    def _least_copied(self) -> int:
        """The bytes of the smallest copies with the usual register tile: no caches are too small for every point."""
        tile: Values = {"rows": self._usual.rows, "vectors": self._usual.vectors}
        first = ((s, {name: values[0] for name, values in self.knobs(s).items()}) for s in self.structures())
        return min(self._copied(self.choice(structure, {**values, **tile})) for structure, values in first)

    @cached_property
    def _usual(self) -> OuterProduct:
        """The register tile that suits the extents best."""
        w = self.work
        return tile_shape(w.m, w.n, w.isa, w.dtype, by=w.by)

    @staticmethod
    def _open(axes: Sequence[Axis]) -> bool:
        """Whether some extent depends on sizes."""
        return any(axis.extent is None for axis in axes)

    @property
    def _widest(self) -> int:
        return min(4, ceil(self.work.n / self.work.isa.lanes(self.work.dtype)))

    def _parallel(self) -> tuple[str | None, ...]:
        w = self.work
        if self.target.threads == 1:
            return (None,)
        if self.coarse:
            return (shared_role(w.roles, w.m, w.n, self._usual, self.target),)
        return (None, *(("batch",) if w.roles.batch else ()), "columns", "rows")

    def _columns(self, structure: TileStructure) -> tuple[Value, ...]:
        """Blocks of columns. If their number is open, they must be cut for a copy to be bounded."""
        shared = structure.parallel == "columns"
        if self.coarse and not shared and (not structure.pack_right or structure.panel_by_panel):
            return (None,)
        blocks = COARSE_COLUMNS if self.coarse else BLOCKS
        open_ended = structure.pack_right and not structure.panel_by_panel and self._open(self.work.columns)
        return self._cuts(self.work.n, blocks, self._part(self.work.n, self.work.columns) * shared, open_ended)

    def _blocks(self, structure: TileStructure) -> tuple[Value, ...]:
        """Blocks of rows. If their number is open, they must be cut for a copy to be bounded."""
        shared = structure.parallel == "rows"
        same_order = self.coarse and not (structure.rows_inside or structure.pack_left)  # with blocks or without
        if not shared and (structure.panel_by_panel or same_order):
            return (None,)
        blocks = COARSE_BLOCKS if self.coarse else BLOCKS
        open_ended = structure.pack_left and self._open(self.work.rows)
        return self._cuts(self.work.m, blocks, self._part(self.work.m, self.work.rows) * shared, open_ended)

    def _part(self, extent: int, axes: Sequence[Axis]) -> int:
        """A thread's part; of an open extent one of several, so that what an unknown extent leaves over is little."""
        return ceil(extent / self.target.threads / (SEVERAL if self._open(axes) else 1))

    def _cuts(self, extent: int, blocks: Sequence[int], part: int, cut: bool) -> tuple[Value, ...]:
        """Blocks smaller than the extent, then None unless it has to be cut; if threads share them, each one's part.

        That may be halved again and again. If it is not shared, `part` is 0.
        """
        if not part:
            return tuple(blocks) if cut else (*sorted(block for block in blocks if block < extent), None)
        halves = takewhile(lambda size: size >= blocks[0], (ceil(part / 2**n) for n in count(1)))
        return (*reversed(list(halves)), part)


def _whole(cut: Value, tile: int, up: bool) -> Value:
    """A block of whole register tiles; a thread's part is rounded up, so that no remainder is left."""
    if cut is None:
        return None
    return ceil(cut / tile) * tile if up else max(tile, cut // tile * tile)
