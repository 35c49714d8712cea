"""From a nest and the basis of its schedule to C text, which is cached, so that each nest is translated once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from codegen.ir.signature import Signature
from codegen.opencl.values import DeviceProgram
from codegen.opencl.values_json import from_json, to_json
from codegen.system import cache
from microkernels.catalogue import registered
from microkernels.custom_kernel import CustomKernel
from microkernels.errors import TargetError
from microkernels.isa import ISA
from microkernels.kernel import Microkernel
from poly.analysis.bounds import check
from poly.errors import ScheduleError
from poly.ir.nest import Nest
from poly.ir.tree import Micro, has_kernel, walk
from poly.machine.background import calibrate_soon
from poly.model.core import Target
from poly.model.host import calibrated, here, known_rates
from poly.schedules.schedule import Schedule, kernel_names

if TYPE_CHECKING:
    from codegen.ir.program import Program
    from poly.records import Record

Basis: TypeAlias = "Schedule | Record | None"
"""What a kernel's schedule is based on: a given schedule, a tuning record, or None for the model's choice."""


@dataclass(frozen=True)
class Compiled:
    """The cached result of a compilation."""

    source: str
    """The C text."""
    routines: str
    """The microkernels in `source`, which are the same in each kernel that calls them."""
    guard: str
    """The C text of the guard through which Python calls the kernel."""
    flags: tuple[str, ...]
    """The compiler's flags."""
    scratch: bool
    """Whether calls need a workspace."""

    @property
    def library(self) -> str:
        """The C text for calls from Python: the kernel and its guard."""
        return f"{self.source}\n\n{self.guard}"

    @staticmethod
    def from_values(values: dict[str, Any]) -> Compiled:
        """What `asdict` took apart."""
        return Compiled(**values | {"flags": tuple(values["flags"])})


@dataclass(frozen=True)
class Prepacked:
    """The cached texts of a kernel that reads panels of an array, and of the kernel that fills these.

    `panels` are the name, the name of the type, and the number of elements of each.
    """

    reading: Compiled
    filling: Compiled
    panels: tuple[tuple[str, str, int], ...]

    @staticmethod
    def from_values(values: dict[str, Any]) -> Prepacked:
        """What `asdict` took apart."""
        reading, filling = (Compiled.from_values(values[name]) for name in ("reading", "filling"))
        return Prepacked(reading, filling, tuple((name, dtype, count) for name, dtype, count in values["panels"]))


def compiled(nest: Nest, isa: ISA, threads: int, basis: Basis) -> Compiled:
    """The C text, from the cache if this engine has compiled the nest before.

    Raises:
        SpecError: an access outside its array.
        ScheduleError, TargetError: a record's step is illegal, or not for this engine.
        ToolchainError: the cache directory cannot be written.
    """
    custom = _custom_kernels(basis)
    _check_cpu(kernels_of(basis) if isinstance(basis, Schedule) else custom, isa)
    key = _key(nest, isa, threads, basis, custom)
    kept = cache.get(key)
    if kept is not None:
        return Compiled.from_values(json.loads(kept))
    schedule = followed(check(nest), isa, threads, basis)
    _check_cpu(kernels_of(schedule), isa)
    made = translate(schedule, isa)
    cache.put(key, json.dumps(asdict(made)))
    return made


def prepacked(nest: Nest, isa: ISA, threads: int, basis: Schedule, array: str) -> Prepacked:
    """The C texts of a kernel whose panels of an array are filled beforehand, from the cache if they are there.

    Raises:
        SpecError: an access outside its array.
        ScheduleError: the number of panels, or what is in them, depends on open sizes.
        ToolchainError: the cache directory cannot be written.
    """
    key = _key(nest, isa, threads, basis, _custom_kernels(basis)) + f" with {array} packed before"
    kept = cache.get(key)
    if kept is not None:
        return Prepacked.from_values(json.loads(kept))
    made = translate_prepacked(followed(check(nest), isa, threads, basis), isa, array)
    cache.put(key, json.dumps(asdict(made)))
    return made


def device_program(nest: Nest, isa: ISA, threads: int, basis: Basis) -> DeviceProgram:
    """The same for an OpenCL device: its kernels and the plan of launches. Raises the errors of `compiled`."""
    key = _key(nest, isa, threads, basis, ())
    kept = cache.get(key)
    if kept is not None:
        return from_json(kept)
    made = translate_device(followed(check(nest), isa, threads, basis), isa)
    cache.put(key, to_json(made))
    return made


def _key(nest: Nest, isa: ISA, threads: int, basis: Basis, custom: Sequence[CustomKernel]) -> str:
    """The cache key: everything that the result of a compilation depends on."""
    # A record's steps are replayed only to compile it anew; its text identifies the cached result.
    wanted = repr(basis) if basis is None or isinstance(basis, Schedule) else basis.schedule
    model = _text(here(isa, threads)) if basis is None else None
    return repr((engine(), nest.identity, isa, threads, model, wanted, known_rates(isa, 1).ahead, *custom))


@lru_cache
def _text(model: Target) -> str:
    """What the model knows of the machine, as a text."""
    return repr(model)


def _custom_kernels(basis: Basis) -> tuple[CustomKernel, ...]:
    """The users' microkernels in the schedule; their text belongs in the key, since their names do not identify it."""
    if basis is None:
        return ()
    if isinstance(basis, Schedule):
        return custom_kernels(basis)
    return tuple(kernel for name in kernel_names(basis.schedule) for kernel in registered(name))


def custom_kernels(made: Schedule) -> tuple[CustomKernel, ...]:
    """The users' microkernels in a schedule, sorted by name."""
    return tuple(kernel for kernel in kernels_of(made) if isinstance(kernel, CustomKernel))


def kernels_of(made: Schedule) -> tuple[Microkernel, ...]:
    """The microkernels in a schedule, sorted by name."""
    kernels = {node.kernel for node in walk(made.tree) if isinstance(node, Micro)}
    return tuple(sorted(kernels, key=lambda kernel: (kernel.name, kernel.dtype.name)))


def _check_cpu(kernels: Iterable[Microkernel], isa: ISA) -> None:
    """Raises TargetError if this CPU lacks a feature that a microkernel needs beside the instruction set."""
    for kernel in kernels:
        missing = kernel.isa.missing() if kernel.isa.name == isa.name else ()
        if missing:
            raise TargetError(f"microkernel({kernel}) cannot run here: this CPU lacks {', '.join(missing)}.")


def followed(nest: Nest, isa: ISA, threads: int, basis: Basis) -> Schedule:
    """The schedule that the basis stands for; steps that were not proven for exactly this nest are proven again."""
    if isinstance(basis, Schedule):
        return basis if basis.nest is nest else basis.on(nest)
    if basis is not None:
        return Schedule.from_json(nest, basis.schedule)
    from poly.autoschedule.default import default_schedule  # not needed for a kernel from the cache

    made = default_schedule(nest, here(isa, threads))
    where = calibrated(isa)
    if where is not None and has_kernel(made.tree):
        calibrate_soon(where.isa)
    return made


def known_schedule(nest: Nest, isa: ISA, threads: int, basis: Basis) -> Schedule:
    """The same for a kernel that was compiled: if that was here and not long ago, the model is not asked again."""
    if basis is not None:
        return followed(nest, isa, threads, basis)
    from poly.autoschedule.default import known_default

    return known_default(nest, here(isa, threads))


def translate(schedule: Schedule, isa: ISA) -> Compiled:
    """The C text of a schedule whose nest has been checked; nothing is built or kept."""
    from poly.lowering.lower import lower

    return _printed(lower(schedule.nest, schedule.tree, isa), schedule, isa)


def translate_prepacked(schedule: Schedule, isa: ISA, array: str) -> Prepacked:
    """The C texts of a schedule that packs an array before all loops. Raises ScheduleError, as `prepacked` does."""
    from codegen.ir.prepacking import filling, open_sizes, panels_of, reading
    from poly.lowering.lower import lower

    program = lower(schedule.nest, schedule.tree, isa, ahead=array)
    if unknown := open_sizes(program, array):
        raise ScheduleError(
            f"the panels of {array} depend on {', '.join(unknown)}, which {array} does not tell. "
            f"Remedy: fix it before: poly.compile({schedule.nest.name}, {unknown[0]}=…)."
        )
    panels = tuple((panel.name, panel.dtype.name, panel.count.number or 0) for panel in panels_of(program, array))
    texts = [_printed(part(program, array), schedule, isa) for part in (reading, filling)]
    return Prepacked(texts[0], texts[1], panels)


def _printed(program: Program, schedule: Schedule, isa: ISA) -> Compiled:
    from codegen.c import kernel_source, link_flags, routines
    from codegen.calls.guard import guard

    program = replace(program, ahead=known_rates(isa, 1).ahead)
    text, signature = kernel_source(program), Signature.of(program)
    more = dict.fromkeys(flag for kernel in kernels_of(schedule) for flag in kernel.isa.flags)
    flags = (*isa.flags, *(flag for flag in more if flag not in isa.flags), *link_flags(program))
    return Compiled(text, routines(program), guard(signature), flags, signature.scratch)


def translate_device(schedule: Schedule, isa: ISA) -> DeviceProgram:
    """The program for an OpenCL device of a schedule whose nest has been checked; nothing is built or kept."""
    from codegen.opencl.plan import device_program as planned
    from poly.lowering.lower import lower

    return planned(lower(schedule.nest, schedule.tree, isa))


@lru_cache
def engine() -> str:
    """A digest of the engine's source files, so that results cached by another version are not used."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for folder in ("poly", "codegen", "microkernels"):
        for path in sorted((root / folder).rglob("*.*")):
            if path.suffix in (".py", ".h", ".cl"):
                digest.update(path.read_bytes())
    return digest.hexdigest()
