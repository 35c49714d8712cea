"""Contractions on a GPU: each work-group computes a tile of the output with a microkernel.

for i:                      for b:                               (work-groups share these three)
  for j:                      for i_tile:
    for k:           ->         for j_tile:
      C[b, i, j] += …             microkernel over i, j, k

Where there are too few tiles to keep the device busy, groups of their own sum blocks of the reduction, which are added
up behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from codegen.ir.integer import Int, Linear
from microkernels.catalogue import GROUP_TUNED, group_gemm, group_tiles
from microkernels.dtypes import DType
from microkernels.group_kernel import GroupKernel
from microkernels.kernel import LEVELS
from microkernels.opencl_isa import DeviceISA
from microkernels.product import MULTIPLY_ADD
from poly.analysis.contraction import recognise
from poly.analysis.roles import Axis, Roles, roles
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.gpu.apart import added_up, begun_together
from poly.autoschedule.rules.gpu.mapped import gpu_schedule
from poly.autoschedule.rules.gpu.non_rectangular import non_rectangular_group_steps
from poly.autoschedule.rules.gpu.tiles import cost
from poly.autoschedule.rules.inner_boxes import LEAST, inner_box
from poly.autoschedule.rules.isolation import each_contraction, isolated, loops_by_iterator
from poly.autoschedule.spaces.space import Knob, Structure, Values
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Micro, walk
from poly.model import ASSUMED_STRIDE
from poly.model.cost import Cost
from poly.model.gpu import CLOCK, LATENCY, LAUNCH, MEMORY, multiply_adds
from poly.model.gpu_group import Product, group_cost
from poly.schedules.matching import zeroing
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Flatten, Groups, Order, RFactor, Split, SplitIterator, Step, Tensorize

Strides = tuple[Int, ...]

WASTE = 1.2
"""How far whole tiles may exceed a run of contiguous rows or columns before further axes are flattened into it."""

SLABS_EACH = 4
"""The least number of slabs in a block of a reduction: the first one of a group is waited for."""

PAYS = 0.8
"""How much of the time of a whole reduction its blocks may be expected to take: neither is known better."""

SHORT = 8
"""The least number of contiguous reduction steps that are worth reading together."""


TILES, SLABS, PARTS = (32, 64, 128, 256), (8, 16, 32), (2, 4, 8, 16)
"""Rows and columns of a group's tile; reduction steps per slab; rows and columns of an item's part."""

GROUP = (("microkernel", "of a group"),)
"""The traits of a schedule with a work-group's microkernel."""


def gpu_contracted(nest: Nest, isa: DeviceISA, kernels: Mapping[str, GroupKernel]) -> Schedule:
    """The schedule with work-group microkernels for all contractions that dependences and loops allow.

    `kernels` overrides the rule's choice for some statements.
    """

    def steps(statement: Statement, loops: Mapping[str, str]) -> list[Step] | None:
        initial, kernel = zeroing(nest, statement), kernels.get(statement.name)
        return gpu_contraction_steps(nest, statement, loops, isa, initial, kernel)

    def in_blocks_or_whole(
        alone: Schedule, statement: Statement, loops: Mapping[str, str], whole: Sequence[Step]
    ) -> Schedule | None:
        made = attempt(alone, whole)
        kernel = _used(made, statement.name) if made else None
        blocks = kernel and _in_blocks(alone, statement, kernel, isa)
        return blocks or made

    return each_contraction(schedule(nest), steps, in_blocks_or_whole)


def _in_blocks(alone: Schedule, statement: Statement, kernel: GroupKernel, isa: DeviceISA) -> Schedule | None:
    """The schedule with blocks of a contraction's reduction apart; None if that is illegal or hardly pays off."""
    r = roles(alone.nest, statement)
    blocks = r and SplitReduction.of(r, kernel, isa)
    if not blocks or not blocks.size:
        return None
    split = SplitIterator(statement.name, blocks.iterator, blocks.size)
    made = attempt(alone, [split, RFactor(statement.name, split.block, 1)])
    if made is None:
        return None
    sums = made.nest.statement(statement.name)
    loops, own = loops_by_iterator(made, sums), roles(made.nest, sums)
    steps = loops and own and Plan.of(own, kernel).steps(loops, zeroing(made.nest, sums))
    apart = attempt(made, steps) if steps else None
    return apart and begun_together(apart, added_up(apart, statement.name))


def gpu_contraction_steps(
    nest: Nest,
    statement: Statement,
    loops: Mapping[str, str],
    isa: DeviceISA,
    initial: str | None,
    kernel: GroupKernel | None = None,
) -> list[Step] | None:
    """The steps for a contraction that has its own loops; None if no microkernel serves it.

    That is so without rows, columns or a reduction, for other operations than multiply-adds, and on a device that
    cannot hold any of the tiles.
    `loops` maps its iterators to the names of their loops, outermost first; `initial` names a preceding statement that
    sets the output to 0, which the microkernel absorbs. `kernel` overrides the choice made here.
    """
    dtype = nest.array(statement.target.array).dtype
    kernels = (kernel,) if kernel else _tiles(isa, dtype)
    if not kernels:
        return None
    r, product = roles(nest, statement), recognise(nest, statement)
    if product is None or product.product != MULTIPLY_ADD:
        return None
    if r is None:
        box = inner_box(nest, statement, isa, lambda box: box.least(isa.lanes(box.dtype)) + box.packed + box.is_turned)
        serves = box is not None and not box.packed and box.extent(box.reduce) >= LEAST
        return non_rectangular_group_steps(box, loops, isa, kernels) if box and serves else None
    if not (r.rows and r.columns and r.reduce):
        return None
    best = min(kernels, key=lambda choice: SplitReduction.of(r, choice, isa).rank(choice))
    return Plan.of(r, best).steps(loops, initial)


@dataclass(frozen=True)
class SplitReduction:
    """The blocks of an iterator of the reduction that are summed apart, 0 for none, and what all takes by the model."""

    cost: float
    rounds: int
    iterator: str = ""
    size: int = 0

    def rank(self, kernel: GroupKernel) -> tuple[float, bool]:
        """The cost, and of equal ones first that of two slabs in turn, where a group has its unit for itself."""
        return self.cost, self.rounds == 1 and not kernel.double

    @staticmethod
    def of(r: Roles, kernel: GroupKernel, isa: DeviceISA) -> SplitReduction:
        """The best ones; none if the model does not prefer them clearly.

        They are of equal size, and of several slabs. Partial sums have the results' type, so that is computed in.
        """
        plan, axis = Plan.of(r, kernel), max(r.reduce, key=lambda axis: axis.extent or 0)
        whole = SplitReduction(plan.cost(isa), plan.rounds(isa))
        if axis.extent is None or kernel.panel_dtype != kernel.dtype:
            return whole
        sizes = (size for size in divisors(axis.extent) if size >= SLABS_EACH * kernel.slab)
        plans = ((size, Plan.of(in_blocks(r, axis, size), kernel)) for size in sizes)
        found = (
            SplitReduction(p.cost(isa) + p.combining(isa), p.rounds(isa), axis.iterator, size) for size, p in plans
        )
        best = min(found, key=lambda blocks: blocks.cost, default=whole)
        return best if best.cost < whole.cost * PAYS else whole


def in_blocks(r: Roles, axis: Axis, size: int) -> Roles:
    """The roles with an axis of the reduction in blocks, which become another one of the results."""
    results = prod(one.guess for one in (*r.rows, *r.columns, *r.batch))
    left, right = axis.left * size, axis.right * size
    block = Axis(f"{axis.iterator}_block", axis.guess // size, Linear.of(results), left, right)
    inner = tuple(replace(one, extent=size) if one is axis else one for one in r.reduce)
    return replace(r, reduce=inner, batch=(block, *r.batch))


def divisors(number: int) -> Iterator[int]:
    """All divisors of a number but itself, the greatest first."""
    return (number // parts for parts in range(2, number + 1) if number % parts == 0)


@dataclass(frozen=True)
class Plan:
    """The axes of a contraction that become the rows and the columns of a kernel's tiles, the fastest last.

    `others` index the results, too: each of their values has its own tiles.
    """

    roles: Roles
    kernel: GroupKernel
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]

    @staticmethod
    def of(r: Roles, kernel: GroupKernel) -> Plan:
        rows = sorted(r.rows, key=lambda axis: (-_size(axis.left), -_size(axis.output)))
        columns = sorted(r.columns, key=lambda axis: (-_size(axis.output), -_size(axis.right)))
        down = [(axis, (axis.output, axis.left)) for axis in rows]
        across = [(axis, (axis.output, axis.right)) for axis in columns]
        return Plan(r, kernel, _together(down, kernel.rows), _together(across, kernel.columns))

    @property
    def others(self) -> tuple[Axis, ...]:
        """The other axes; open extents come first, since only the first of flattened loops may have one."""
        taken = (*self.rows, *self.columns)
        rest = [axis for axis in (*self.roles.batch, *self.roles.rows, *self.roles.columns) if axis not in taken]
        return tuple(sorted(rest, key=lambda axis: axis.extent is not None))

    @property
    def reduce(self) -> tuple[Axis, ...]:
        """The reduction's axes in loop order.

        An operand that is not contiguous along rows or columns is read along the reduction, in its memory order.
        """
        axes = self.roles.reduce
        sides = (
            ([axis.left for axis in self.rows], [axis.left for axis in axes]),
            ([axis.right for axis in self.columns], [axis.right for axis in axes]),
        )
        for lanes, strides in sides:
            along = sorted(zip(strides, axes, strict=True), key=lambda pair: -_size(pair[0]))
            if Linear.of(1) not in lanes and _run(along) >= SHORT:
                return tuple(axis for _, axis in along)
        return tuple(sorted(axes, key=lambda axis: axis.guess))

    def cost(self, isa: DeviceISA) -> float:
        """The cost of the kernel's tiles for these extents."""
        rows, columns, steps, copies = (
            prod(axis.guess for axis in axes) for axes in (self.rows, self.columns, self.reduce, self.others)
        )
        return cost(self.kernel, isa, (rows, columns, steps), copies)

    def combining(self, isa: DeviceISA) -> float:
        """What begins the groups of blocks and adds these up, beside the products, in the same unit."""
        results = (*self.others, *self.rows, *self.columns)
        moved = 3 * prod(axis.guess for axis in results) * self.kernel.dtype.size
        cycles = 2 * LAUNCH * CLOCK + moved / (MEMORY * isa.units) + 2 * LATENCY * self.rounds(isa)
        return cycles * multiply_adds(self.kernel.dtype)

    def rounds(self, isa: DeviceISA) -> int:
        """The number of groups that a unit runs one after the other."""
        rows, columns, copies = (prod(axis.guess for axis in axes) for axes in (self.rows, self.columns, self.others))
        return ceil(copies * ceil(rows / self.kernel.rows) * ceil(columns / self.kernel.columns) / isa.units)

    def steps(self, loops: Mapping[str, str], initial: str | None) -> list[Step]:
        """The steps: flatten, split, reorder, tensorize, map to groups; `loops` names the loop of each iterator."""

        def names(axes: Sequence[Axis]) -> tuple[str, ...]:
            return tuple(loops[axis.iterator] for axis in axes)

        first = max((at for at, axis in enumerate(self.others) if axis.extent is None), default=0)
        serial, beside, sums = names(self.others[:first]), names(self.others[first:]), [*map(names, self._chains())]
        rows, columns = names(self.rows), names(self.columns)
        inside = [*serial, *(name for axes in (*sums, beside, rows, columns) for name in axes)]
        idle = [loop for loop in loops.values() if loop not in inside]
        row, column, *reduced = map("_".join, (rows, columns, *sums))
        groups = (*(("_".join(beside),) if beside else ()), f"{row}_tile", f"{column}_tile")
        outer, inner = reduced[:-LEVELS], reduced[-LEVELS:]
        return [
            Order((*idle, *inside)),
            *(Flatten(axes) for axes in (*sums, beside, rows, columns) if len(axes) > 1),
            Split(((row, self.kernel.rows),)),
            Split(((column, self.kernel.columns),)),
            Order((*idle, *groups, *serial, *outer, row, column, *inner)),
            Tensorize(self.kernel.name, self.roles.contraction.statement, initial),
            Groups(groups),
        ]

    def _chains(self) -> list[tuple[Axis, ...]]:
        """The reduction's axes in chains that are contiguous in both operands and can be flattened."""
        axes = [(axis, (axis.left, axis.right)) for axis in self.reduce]
        chains: list[tuple[Axis, ...]] = []
        while axes:
            chains.insert(0, _together(axes, 1))
            axes = axes[: -len(chains[0])]
        return chains


def _together(axes: Sequence[tuple[Axis, Strides]], tile: int) -> tuple[Axis, ...]:
    """The axes to flatten into one loop: the fastest, and those outside it that continue it or fill its tiles.

    Each comes with its strides in the operands that have it. Only the first may have an open extent.
    """
    found = [axes[-1]]
    for outer in reversed(axes[:-1]):
        inner, strides = found[0]
        extents = [axis.extent for axis, _ in found]
        if inner.extent is None:
            break
        length = prod(extent for extent in extents if extent is not None)
        continues = all(there == here * inner.extent for here, there in zip(strides, outer[1], strict=True))
        if not continues and ceil(length / tile) * tile <= length * WASTE:
            break
        found.insert(0, outer)
    return tuple(axis for axis, _ in found)


def _run(axes: Sequence[tuple[Int, Axis]]) -> int:
    """The number of contiguous reduction steps in an operand, whose strides come with the axes."""
    length = 1
    for stride, axis in reversed(axes):
        if stride.number != length:
            break
        length *= axis.guess
    return length


def _size(stride: Int) -> int:
    """The length of a stride; an open one is assumed to be long."""
    return abs(stride.number) if stride.number is not None else ASSUMED_STRIDE


def group_structure(nest: Nest, isa: DeviceISA, default: Schedule) -> tuple[Structure, Values | None] | None:
    """The structure of microkernel shapes for a nest's heaviest contraction; None if no microkernel serves it.

    It comes with the default schedule's values, if that has a microkernel for this contraction.
    """
    found = _heaviest(nest, isa)
    if found is None:
        return None
    statement, r, dtype = found
    used = _used(default, statement)
    values = _values(used or _tiles(isa, dtype)[0])
    made = _Shapes(nest, statement, dtype, isa, r)
    structure = Structure(GROUP, _knobs(values), made.allows, made.schedule, made.predict)
    if used is not None:
        return structure, values
    served = any(isinstance(step, Tensorize) for step in made.schedule(values).steps)
    return (structure, None) if served else None


def _tiles(isa: DeviceISA, dtype: DType) -> tuple[GroupKernel, ...]:
    """The microkernels worth choosing from; none of types that a work-group's do not compute."""
    return group_tiles(isa, dtype) if dtype in GROUP_TUNED else ()


def _heaviest(nest: Nest, isa: DeviceISA) -> tuple[str, Roles, DType] | None:
    """The contraction with rows, columns and a microkernel that has the most multiply-adds."""
    written, found = schedule(nest), []
    for statement in nest.statements:
        r = roles(nest, statement) if isolated(written, statement) else None
        dtype = nest.array(statement.target.array).dtype
        if r is not None and r.rows and r.columns and r.reduce and _tiles(isa, dtype):
            found.append((statement.name, r, dtype))
    return max(
        found, key=lambda entry: _extent(entry[1].batch, entry[1].rows, entry[1].columns, entry[1].reduce), default=None
    )


def _extent(*groups: tuple[Axis, ...]) -> int:
    """The product of all the axes' extents."""
    return prod(axis.guess for axes in groups for axis in axes)


def _used(made: Schedule, statement: str) -> GroupKernel | None:
    """The microkernel that a schedule uses for a statement."""
    kernels = (node.kernel for node in walk(made.tree) if isinstance(node, Micro) and node.statement == statement)
    return next((kernel for kernel in kernels if isinstance(kernel, GroupKernel)), None)


def _values(kernel: GroupKernel) -> dict[str, int]:
    return {
        "rows": kernel.rows,
        "columns": kernel.columns,
        "slab": kernel.slab,
        "item rows": kernel.item_rows,
        "item columns": kernel.item_columns,
        "slabs": 2 if kernel.double else 1,
    }


def _knobs(usual: Values) -> tuple[Knob, ...]:
    grid = {"rows": TILES, "columns": TILES, "slab": SLABS, "item rows": PARTS, "item columns": PARTS, "slabs": (1, 2)}
    return tuple(Knob(name, tuple(sorted({*values, usual[name] or 1}))) for name, values in grid.items())


@dataclass(frozen=True)
class _Shapes:
    """Schedules by the shape of the microkernel."""

    nest: Nest
    statement: str
    dtype: DType
    isa: DeviceISA
    roles: Roles

    def allows(self, values: Values) -> bool:
        """Whether the microkernel exists and fits the device."""
        kernel = self._kernel(values)
        return kernel.misfit() is None and kernel.fits(self.isa)

    def schedule(self, values: Values) -> Schedule:
        """The default schedule with this microkernel for the statement."""
        made = gpu_contracted(self.nest, self.isa, {self.statement: self._kernel(values)})
        return gpu_schedule(made, self.isa)

    def predict(self, values: Values) -> Cost:
        kernel = self._kernel(values)
        blocks = SplitReduction.of(self.roles, kernel, self.isa)
        cut = next((axis for axis in self.roles.reduce if axis.iterator == blocks.iterator), None)
        plan = Plan.of(in_blocks(self.roles, cut, blocks.size) if cut else self.roles, kernel)
        extents = (_extent(axes) for axes in (plan.others, plan.rows, plan.columns, plan.reduce))
        return group_cost(Product(*extents), kernel, self.isa)

    def _kernel(self, values: Values) -> GroupKernel:
        rows, columns, slab, item_rows, item_columns, slabs = (value or 1 for value in values.values())
        return group_gemm(self.dtype, rows, columns, slab, item_rows, item_columns, slabs == 2)
