"""The space of a GPU's microkernel for a nest's heaviest contraction: the shapes of a group's tile and an item's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from microkernels.catalogue import group_gemm, group_tiles
from microkernels.dtypes import DType
from microkernels.group_kernel import GroupKernel
from microkernels.opencl_isa import DeviceISA
from poly.analysis.roles import Axis, Roles, roles
from poly.autoschedule.rules.gpu import gpu_schedule
from poly.autoschedule.rules.gpu.contraction import Plan, gpu_contracted
from poly.autoschedule.rules.isolation import isolated
from poly.autoschedule.spaces.space import Knob, Structure, Values
from poly.ir.nest import Nest
from poly.ir.tree import Micro, walk
from poly.model.cost import Cost
from poly.model.gpu_group import Product, group_cost
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Tensorize

TILES, SLABS, PARTS = (32, 64, 128, 256), (8, 16, 32), (2, 4, 8, 16)
"""Rows and columns of a group's tile; steps of a slab; rows and columns of an item's part."""


def group_structures(nest: Nest, isa: DeviceISA, default: Schedule) -> Iterator[tuple[Structure, Values]]:
    """The structure, with the values that the default schedule has, or else the catalogue's first."""
    found = _heaviest(nest)
    if found is None:
        return
    statement, r, dtype = found
    usual = _used(default, statement) or next(iter(group_tiles(isa, dtype)), None)
    if usual is None:
        return
    values = _values(usual)
    made = _Shapes(nest, statement, dtype, isa, r)
    structure = Structure((("microkernel", "of a group"),), _knobs(values), made.allows, made.schedule, made.predict)
    if any(isinstance(step, Tensorize) for step in made.schedule(values).steps):
        yield structure, values


def _heaviest(nest: Nest) -> tuple[str, Roles, DType] | None:
    """The contraction with the most multiply-adds that has rows and columns."""
    written, found = schedule(nest), []
    for statement in nest.statements:
        r = roles(nest, statement) if isolated(written, statement) else None
        if r is not None and r.rows and r.columns and r.reduce:
            found.append((statement.name, r, nest.array(statement.target.array).dtype))
    return max(
        found, key=lambda entry: _extent(entry[1].batch, entry[1].rows, entry[1].columns, entry[1].reduce), default=None
    )


def _extent(*groups: tuple[Axis, ...]) -> int:
    """The iterations of all these axes."""
    return prod(axis.guess for axes in groups for axis in axes)


def _used(made: Schedule, statement: str) -> GroupKernel | None:
    """The microkernel that a schedule has for a statement."""
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
    """Schedules by the numbers of the microkernel."""

    nest: Nest
    statement: str
    dtype: DType
    isa: DeviceISA
    roles: Roles

    def allows(self, values: Values) -> bool:
        """Whether there is such a microkernel, and the device can hold it."""
        kernel = self._kernel(values)
        return kernel.misfit() is None and kernel.fits(self.isa)

    def schedule(self, values: Values) -> Schedule:
        """The default schedule, with this microkernel for the statement."""
        made = gpu_contracted(self.nest, self.isa, {self.statement: self._kernel(values)})
        return gpu_schedule(made, self.isa)

    def predict(self, values: Values) -> Cost:
        kernel = self._kernel(values)
        plan = Plan.of(self.roles, kernel)
        extents = (_extent(axes) for axes in (plan.others, plan.rows, plan.columns, plan.reduce))
        return group_cost(Product(*extents), kernel, self.isa)

    def _kernel(self, values: Values) -> GroupKernel:
        rows, columns, slab, item_rows, item_columns, slabs = (value or 1 for value in values.values())
        return group_gemm(self.dtype, rows, columns, slab, item_rows, item_columns, slabs == 2)
