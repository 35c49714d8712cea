"""From a nest to a kernel: a compiled function of NumPy arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from codegen.errors import ArgumentError
from codegen.names import function_name
from codegen.signature import Signature
from microkernels.errors import TargetError
from microkernels.isa import ISA, parse_target
from poly.compiled import Compiled, Told, compiled
from poly.errors import RecordWarning, ScheduleError, SpecError
from poly.lower import arguments, c_sizes
from poly.nest import Nest
from poly.recorded import recorded
from poly.schedule import Schedule
from poly.scheduled import Scheduled
from poly.strided import with_strides
from poly.target import checked_threads

if TYPE_CHECKING:
    from pathlib import Path

    from codegen.program import Threading


@dataclass(frozen=True, repr=False)
class Kernel(Scheduled):
    """A compiled nest.

    Call it on the arrays and scalars, in the order of the nest's arguments: `kernel(A, B, C)`, with `threads=` for this
    call and by keyword the sizes that no array tells. The outputs are updated in place. It may be called from several
    threads at once.

    Raises (when called):
        ArgumentError: an argument does not fit; nothing has been changed.
    """

    compiled: Compiled
    _strided: bool = False

    def __repr__(self) -> str:
        return f"<kernel {self.nest.name}({', '.join(map(str, self.nest.arguments))}) for {self.isa.name}>"

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        self._caller(*arguments, **keywords)

    @property
    def source(self) -> str:
        """The C text."""
        return self.compiled.source

    @property
    def workspace_bytes(self) -> int:
        """Bytes that one call takes beside the arrays (packed panels, local arrays).

        Raises:
            ArgumentError: the sizes are symbolic; ask `workspace(M=…, …)` instead.
        """
        if self.nest.sizes:
            sizes = ", ".join(f"{size}=…" for size in self.nest.sizes)
            raise ArgumentError(
                f"the workspace of {self.nest.name} depends on its sizes: ask kernel.workspace({sizes})."
            )
        return self.workspace()

    def workspace(self, threads: int | None = None, **sizes: int) -> int:
        """Bytes that one call takes for these sizes.

        Raises:
            ArgumentError: the sizes are not those of the nest.
        """
        if set(sizes) != set(self.nest.sizes):
            raise ArgumentError(
                f"give the sizes {', '.join(self.nest.sizes) or '(none)'}, not {', '.join(sizes) or 'none'}."
            )
        function = getattr(self._library.lib, f"{function_name(self.signature.name)}_workspace")
        return int(function(*(sizes[name] for name in self.nest.sizes), threads or self.threads))

    @cached_property
    def signature(self) -> Signature:
        """The C function's sizes and arguments."""
        return signature(self.nest, self.compiled.scratch)

    @cached_property
    def function(self) -> Any:
        """The C function, as cffi sees it. `arguments` makes what it takes."""
        return getattr(self._library.lib, function_name(self.signature.name))

    def arguments(self, *arrays: Any, threads: int | None = None) -> tuple[Any, ...]:
        """Arguments for `function`, ready to be passed again and again; they keep the arrays alive.

        Raises:
            ArgumentError: as a call.
        """
        from codegen.call import c_arguments

        return c_arguments(self.signature, self._library, arrays, threads or self.threads)

    def write_header(
        self,
        path: str | Path,
        *,
        prefix: str | None = None,
        isas: Sequence[str] | None = None,
        threads: Threading | None = None,
        dense: bool = False,
    ) -> Path:
        """Write the kernel as one C header to embed, for several instruction sets. See `poly.write_header`."""
        from poly.embed import write_header

        return write_header(path, self, prefix=prefix, isas=isas, threads=threads, dense=dense)

    @cached_property
    def _library(self) -> Any:
        from codegen.build import load
        from codegen.guard import declarations

        return load(self.compiled.source, declarations(self.signature), self.compiled.flags)

    @cached_property
    def _caller(self) -> Any:
        from codegen.call import make_caller

        strided = None if self._strided else lambda: self.strided._caller
        return make_caller(self.signature, self._library, self.threads, strided)

    @cached_property
    def strided(self) -> Kernel:
        """The kernel for arrays that are not dense: it takes strides and follows the same schedule.

        Only where that schedule's microkernels cannot read such arrays, it follows the default.
        """
        nest = with_strides(self.nest)
        if self.told is not None:
            with suppress(ScheduleError):
                return self._with_strides(nest, self.told.on(nest) if isinstance(self.told, Schedule) else self.told)
        return self._with_strides(nest, None)

    def _with_strides(self, nest: Nest, told: Told) -> Kernel:
        return Kernel(nest, self.isa, self.threads, told, compiled(nest, self.isa, self.threads, told), True)


def compile_nest(
    nest: Nest,
    *,
    schedule: Schedule | None = None,
    target: str = "c",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    records: bool = True,
    **more: int,
) -> Kernel:
    """Compile a nest. Nothing is measured: without a schedule, the model picks one from the sets and the caches.

    Sizes are fixed by keyword (`M=512`) or as `sizes={"M": 512}`; those left out stay symbolic, and one kernel serves
    them all. `target` is `"c"` (the host's best instruction set) or `"c:avx512"`, `"c:avx2"`, `"c:neon"`,
    `"c:portable"`. `threads` is how many a call uses unless it says otherwise (default: the cores that this process
    may use). Where a tuning record holds for this nest, machine and compiler, its schedule is followed instead of the
    model's; not with `records=False`. `kernel.origin` and `kernel.record` tell.

    Raises:
        SpecError: an unknown size, or an access outside of its array.
        ScheduleError: the schedule is for another nest.
        TargetError: an unknown target, or one that this CPU can't run.
        ToolchainError: the C compiler is missing or fails, or the cache directory can't be written.
    """
    isa = parse_target(target)
    threads = checked_threads(threads)
    fixed = dict(sizes or {}, **more)
    if not isinstance(nest, Nest):
        raise SpecError(f"{nest!r} is no nest. Make one with @poly.nest or poly.einsum.")
    if schedule is not None:
        if not isinstance(schedule, Schedule):
            raise ScheduleError(f"{schedule!r} is no schedule. Make one with poly.schedule({nest.name}).")
        if (schedule.nest.name, schedule.nest.source) != (nest.name, nest.source):
            told = f"this is a schedule of {schedule.nest.name}, not of {nest.name}"
            raise ScheduleError(f"{told}. Make it with poly.schedule({nest.name}).")
        nest = schedule.nest
    if fixed:
        nest = nest.with_sizes(fixed)
        schedule = schedule.on(nest) if schedule else None
    found = _from_record(nest, isa, threads) if records and schedule is None else None
    return found or Kernel(nest, isa, threads, schedule, compiled(nest, isa, threads, schedule))


def _from_record(nest: Nest, isa: ISA, threads: int) -> Kernel | None:
    """The kernel that follows the nest's tuning record; None where there is none, or it does not fit any more."""
    record = recorded(nest, isa, threads)
    if record is None:
        return None
    try:
        return Kernel(nest, isa, threads, record, compiled(nest, isa, threads, record))
    except (ScheduleError, TargetError) as error:
        told = f"{record} does not fit this poly: {error}"
        warnings.warn(f"{told} The model chooses the schedule; tune again to replace it.", RecordWarning, stacklevel=3)
    return None


def signature(nest: Nest, scratch: bool) -> Signature:
    """What the nest's C function takes."""
    return Signature(nest.name, c_sizes(nest), arguments(nest), scratch)
