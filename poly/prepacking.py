"""`kernel.prepack`: an operand of a contraction that is packed once, instead of by each call.

for j_tile:                                   for j_tile:
  pack B                                        for i_tile: …       which reads panels that were filled before
  for i_tile: …                      ->
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeGuard

import numpy as np

from codegen.calls.arguments import fit
from codegen.calls.call import make_caller
from codegen.calls.guard import declarations
from codegen.calls.numpy_types import numpy_type
from codegen.ir.prepacking import filling_name, panel_buffer
from codegen.ir.program import Buffer
from codegen.ir.signature import Signature
from codegen.toolchain.build import load
from microkernels.cached import cached_property
from microkernels.dtypes import DTYPES, DType
from microkernels.errors import did_you_mean, plain
from microkernels.kernel import TileKernel
from poly.analysis.contraction import formed
from poly.compiled import Prepacked
from poly.errors import ScheduleError, SpecError
from poly.ir.lookups import index_reads
from poly.ir.nest import Nest
from poly.ir.tree import Copy, Micro, bands, statements, walk
from poly.lowering.arguments import arguments
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Pack, Step

ALIGNMENT = 64
"""Of panels, in bytes, as in a workspace."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Packed:
    """An array in the panels that a kernel reads: a copy, which later changes of the array do not reach.

    `filling` is the C text that filled them; a kernel can read them if it would fill them by the same text.
    """

    array: str
    types: tuple[DType, ...]
    names: tuple[str, ...]
    panels: tuple[Array, ...]
    filling: str

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process may load the panels to any address, so that they are aligned again."""
        return _aligned_again, (self.array, self.types, self.names, self.panels, self.filling)

    @cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        """The panels as arguments of the C function."""
        each = zip(self.names, self.types, self.panels, strict=True)
        return tuple(panel_buffer(name, dtype, len(panel), "in") for name, dtype, panel in each)

    @property
    def bytes(self) -> int:
        """The bytes of all panels."""
        return sum(panel.nbytes for panel in self.panels)


def _aligned_again(
    array: str, types: tuple[DType, ...], names: tuple[str, ...], panels: tuple[Array, ...], filling: str
) -> Packed:
    return Packed(array, types, names, tuple(map(_aligned, panels)), filling)


def _aligned(panel: Array) -> Array:
    """The panel itself if it is aligned, else a copy that is."""
    if panel.ctypes.data % ALIGNMENT == 0:
        return panel
    copy = _new(len(panel), panel.dtype)
    copy[:] = panel
    return copy


def _new(count: int, dtype: np.dtype[Any]) -> Array:
    memory = np.empty(count * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + count * dtype.itemsize].view(dtype)


def told(nest: Nest, array: str, value: Any) -> tuple[Nest, Array]:
    """The nest with the sizes that an array tells, and the array, dense and in row-major order.

    Raises:
        SpecError: no such array.
        ScheduleError: an array that cannot be packed beforehand, or that does not tell all sizes in its shape.
        ArgumentError: the value does not fit.
    """
    buffer = _operand(nest, array)
    sizes = tuple(size for size in nest.sizes if any(size in extent.names for extent in buffer.shape))
    own = Signature(nest.name, sizes, (replace(buffer, strides=None),), fixed=nest.fixed)
    if own.given:
        raise ScheduleError(
            f"prepack({array}): its shape does not tell {own.given[0]}. "
            f"Remedy: fix it before: poly.compile({nest.name}, {own.given[0]}=…)."
        )
    found = fit(own, {array: value}, (), {}, any_strides=True)
    fixed = nest.with_sizes(found.sizes) if found.sizes else nest
    return fixed, np.ascontiguousarray(found.values[array])


def _operand(nest: Nest, array: str) -> Buffer:
    """The array as an argument, if its elements stay the same during a call."""
    known = {a.name: a for a in nest.arguments}
    if not isinstance(array, str) or array not in known:
        hint = did_you_mean(array, list(known)) if isinstance(array, str) else ""
        raise SpecError(f"{nest.name} has no argument {plain(array)}.{hint} Its arguments: {', '.join(known)}.")
    if known[array].kind != "array":
        raise ScheduleError(f"prepack({array}): {array} is a number, which is passed by value. Pass it to each call.")
    if array in nest.written:
        writer = next(s.name for s in nest.statements if s.target.array == array)
        raise ScheduleError(
            f"prepack({array}): {writer} writes {array}, and panels that were filled before would not have what it "
            "writes. Only an operand that a call leaves as it is can be packed before."
        )
    if index_reads(nest):
        raise ScheduleError(f"prepack({array}): {nest.name} looks up indices, which each call checks with all arrays.")
    return next(buffer for buffer in arguments(nest) if buffer.name == array)


def packed_before(made: Schedule, array: str) -> Schedule:
    """The schedule with all copies of an array before its loops; what reads it in place reads such a copy.

    Raises:
        ScheduleError: something other than a microkernel that takes panels reads the array, or the loops around the
            microkernel cannot follow the copy.
    """
    wanted = [
        Pack(array, statement=name, role=role) for name, several in _roles(made, array).items() for role in several
    ]
    steps = [replace(step, at=None) if _copies(step, array) else step for step in made.steps]
    copied = [step for step in steps if _copies(step, array)]
    missing = [pack for pack in wanted if not any(_covers(step, pack) for step in copied)]
    found = schedule(made.nest).apply([*steps, *missing])
    _check_outside(found, array)
    return found


def _covers(copy: Pack, wanted: Pack) -> bool:
    same = copy.role == wanted.role or None in (copy.role, wanted.role)
    return same and copy.statement in (None, wanted.statement)


def _roles(made: Schedule, array: str) -> dict[str, tuple[str | None, ...]]:
    """For each statement that reads an array: the roles of its copies, or None if one copy is enough."""
    kernels = {node.statement: node.kernel for node in walk(made.tree) if isinstance(node, Micro)}
    found: dict[str, tuple[str | None, ...]] = {}
    for statement in made.nest.statements:
        reads = [load for load in statement.reads if load.array == array]
        contraction = formed(made.nest, statement) if reads else None
        if contraction is not None and isinstance(kernels.get(statement.name), TileKernel):
            sides = {"left": contraction.left, "right": contraction.right}
            roles = tuple(side for side, load in sides.items() if load.array == array)
            found[statement.name] = roles if len(roles) > 1 else (None,)
        elif contraction is not None and statement.name in kernels:
            _refuse(
                array,
                f"{kernels[statement.name]}, which runs {statement.name}, reads {array} in place. Call the "
                "kernel without packing, which would not make it faster.",
            )
        elif contraction is not None:
            _refuse(
                array,
                f"this schedule runs {statement.name} by plain loops, which read no panels. "
                "Remedy: poly.compile with a schedule in which microkernel(…) runs it.",
            )
        elif reads:
            _refuse(array, f"{statement.name} reads {array} and is no contraction, and only microkernels read panels.")
    if not found:
        _refuse(array, f"no statement of {made.nest.name} reads {array}.")
    return found


def _refuse(array: str, problem: str) -> NoReturn:
    raise ScheduleError(f"prepack({array}): {problem}")


def _copies(step: Step, array: str) -> TypeGuard[Pack]:
    return isinstance(step, Pack) and step.array == array


def _check_outside(made: Schedule, array: str) -> None:
    """Refuse a copy inside a loop: each iteration might need another one."""
    inside = [(band, copy) for band in bands(made.tree) for copy in walk(band) if isinstance(copy, Copy)]
    for band, copy in inside:
        if copy.array == array:
            _refuse(
                array,
                f"loop {band.name} is around {' and '.join(dict.fromkeys(statements(band)))} together. "
                f"Remedy: a schedule that has distribute({band.name!r}).",
            )


def filled(nest: Nest, array: str, value: Array, made: Prepacked, threads: int) -> Packed:
    """The array's values in the panels that a kernel reads. Raises ToolchainError if the text cannot be compiled."""
    outputs = tuple(panel_buffer(name, DTYPES[dtype], count, "out") for name, dtype, count in made.panels)
    own = Signature(filling_name(nest.name, array), (), (_operand(nest, array), *outputs), made.filling.scratch)
    panels = tuple(_new(count, numpy_type(DTYPES[dtype])) for _, dtype, count in made.panels)
    library = load(made.filling.library, declarations(own), made.filling.flags)
    make_caller(own, library, threads)(value, *panels)
    names, types = tuple(name for name, _, _ in made.panels), tuple(DTYPES[dtype] for _, dtype, _ in made.panels)
    return Packed(array, types, names, panels, made.filling.source)
