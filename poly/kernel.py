"""From a nest to a kernel: a compiled function of NumPy arrays."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codegen.calls.arguments import check_threads
from codegen.errors import ArgumentError
from codegen.ir.signature import Signature
from codegen.names import function_name
from codegen.toolchain.compiler import USUAL, Toolchain, chosen, using
from microkernels.cached import cached_property
from microkernels.errors import plain
from microkernels.isa import ISA, moving_bytes
from poly.checks import checked_size
from poly.compiled import Basis, Compiled, compiled, known_schedule, prepacked
from poly.errors import ScheduleError
from poly.ir.budget import CALL, limited
from poly.ir.lookups import IndexRead, are_inside, check_indices, index_reads
from poly.ir.nest import Nest
from poly.ir.sizes import fitted
from poly.ir.strided import with_strides
from poly.ir.turned import can_turn, turned
from poly.lowering.arguments import signature
from poly.model.host import here
from poly.records.followed import RECORD_SECONDS, check_source
from poly.scheduled import Scheduled
from poly.schedules.schedule import Schedule

if TYPE_CHECKING:
    from pathlib import Path

    from codegen.calls.call import Caller, Otherwise, Pool
    from codegen.calls.clock import Timed
    from codegen.calls.turning import Views
    from codegen.ir.program import Threading
    from poly.prepacking import Packed
    from poly.timing.benchmark import Benchmark


@dataclass(frozen=True, repr=False)
class Kernel(Scheduled):
    """A compiled nest.

    Call it on the arrays and scalars, in the order of the nest's arguments: `kernel(A, B, C)`. Keywords are `threads=`,
    for this call alone, and the sizes that do not follow from the arrays' shapes, as in `kernel(x, T=3)`; other sizes
    may be given too, and must agree with the arrays. The outputs are updated in place. An output may be the same array
    as an input if the nest reads each element before it writes it. Several threads may call a kernel at once.

    Raises (when called):
        ArgumentError: an argument does not fit; no array has been changed.
    """

    compiled: Compiled
    _strided: bool = False
    toolchain: Toolchain = USUAL
    """The compiler and the flags that the caller chose."""
    packed: Packed | None = None
    """The operand that `prepack` packed, which calls leave out."""

    def __getstate__(self) -> dict[str, Any]:
        """What another process gets: not the loaded library, which its first call builds or finds in the cache."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __dask_tokenize__(self) -> tuple[str, ...]:
        return *super().__dask_tokenize__(), *(sha256(panel).hexdigest() for panel in self._panels)

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        if keywords:
            self._call(*arguments, **keywords)
        else:  # Python would make a dictionary
            self._call(*arguments)

    @property
    def packed_before(self) -> str | None:
        return self.packed.array if self.packed else None

    @property
    def source(self) -> str:
        """The C text."""
        return self.compiled.source

    @property
    def routines(self) -> str:
        """The microkernels and packing routines in `source`, which are the same in each kernel that calls them."""
        return self.compiled.routines

    @property
    def workspace_bytes(self) -> int:
        """Bytes of memory that a call needs besides the arrays, for packed panels and local arrays.

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
        """Bytes of workspace that a call with these sizes needs.

        Raises:
            ArgumentError: the sizes are not those of the nest, or the number of threads is invalid.
        """
        if set(sizes) != set(self.nest.sizes):
            given = ", ".join(map(plain, sizes)) or "none"
            raise ArgumentError(f"give the sizes {', '.join(self.nest.sizes) or '(none)'}, not {given}.")
        values = [checked_size(f"the size {name}", sizes[name], ArgumentError) for name in self.nest.sizes]
        function = getattr(self._library.lib, f"{function_name(self.signature.name)}_workspace")
        return int(function(*values, self._checked(threads)))

    @cached_property
    def signature(self) -> Signature:
        """The C function's sizes and arguments."""
        found = signature(self.nest, self.compiled.scratch)
        if self.packed is None:
            return found
        given = tuple(buffer for buffer in found.buffers if buffer.name != self.packed.array)
        return replace(found, buffers=given, held=self.packed.buffers)

    @cached_property
    def function(self) -> Any:
        """The C function, as a cffi object; `arguments` makes its arguments."""
        return getattr(self._library.lib, function_name(self.signature.name))

    def arguments(self, *arrays: Any, threads: int | None = None, **sizes: int) -> tuple[Any, ...]:
        """Arguments for `function`, which can be passed any number of times; they keep the arrays alive.

        `sizes` are those that do not follow from the arrays' shapes.

        Raises:
            ArgumentError: an argument does not fit, as in a call.
        """
        from codegen.calls.call import c_arguments

        if self._index_reads:
            self._check_indices(arrays, sizes)
        return c_arguments(self.signature, self._library, arrays, self._checked(threads), self._panels, **sizes)

    def benchmark(self, *arrays: Any, threads: int | None = None, seconds: float = 2.0, **sizes: int) -> Benchmark:
        """Measure calls with these arguments, for up to `seconds`; `print` shows the result.

        The arrays are used as they lie in memory, by a loop in C; calls with arrays that are not contiguous are made
        from Python. Arrays that the nest writes are copied before, put back before each sample, and hold the same as
        before at the end. `sizes` are those that do not follow from the arrays' shapes. Nothing is stored.

        Raises:
            ArgumentError: an argument does not fit, as in a call, or `seconds` is not positive.
            ToolchainError: the kernel could not be built.
        """
        from codegen.calls.arguments import fit
        from codegen.calls.clock import CFunction
        from poly.timing.benchmark import python_timed
        from poly.timing.kernels import KernelCall, benchmark_kernel, named

        count = self._checked(threads)
        found = fit(self.signature, named(self.signature, arrays), arrays[len(self.signature.buffers) :], sizes, True)
        written = [found.values[buffer.name] for buffer in self.signature.outputs]

        def timed() -> Timed:
            if found.contiguous:
                return CFunction.of(self.function, self.arguments(*arrays, threads=count, **sizes), self).timed()
            return python_timed(lambda: self(*arrays, threads=count, **sizes))

        return benchmark_kernel(self, KernelCall(found.sizes, written, timed, count), seconds)

    def prepack(self, array: str, value: Any) -> Kernel:
        """The kernel with an operand of its contractions, such as weights, packed now instead of in each call.

            layer = poly.compile(dense).prepack("W", weights)
            layer(x, y)                 # as dense(x, weights, y)

        `value` is the array: it may have any strides. It is copied: what is written to it later has no effect, so
        that new weights need a new `prepack`. Sizes in its shape are fixed. The new kernel is called without it. It
        follows the schedule of this kernel with all copies of the array before the loops, and a copy of what is read
        in place here; where the model chose that schedule, it chooses anew, as copies cost nothing. It can be
        pickled, with the panels.

        Raises:
            SpecError: no such argument.
            ScheduleError: the nest writes the array, something other than a microkernel reads it, or its panels
                depend on sizes that are still open.
            ArgumentError: the value does not fit, or an operand of this kernel was packed before.
            ToolchainError: the kernel could not be built.
        """
        from poly.autoschedule.default import with_ready  # not needed for a kernel from the cache
        from poly.prepacking import filled, packed_before, told

        if self.packed is not None:
            raise ArgumentError(f"{self.packed.array} is packed before, and a kernel has one such operand")
        nest, values = told(self.nest, array, value)
        pack = partial(packed_before, array=array)
        schedule = pack(known_schedule(nest, self.isa, self.threads, self.basis))
        if self.basis is None:
            schedule = with_ready(nest, array, schedule, pack, here(self.isa, self.threads))
        made = prepacked(nest, self.isa, self.threads, schedule, array)
        with using(self.toolchain):
            packed = filled(nest, array, values, made, self.threads)
        return Kernel(nest, self.isa, self.threads, schedule, made.reading, toolchain=self.toolchain, packed=packed)

    def torch_op(self, name: str, *, backward: Nest | Kernel | None = None) -> Any:
        """The kernel as an operator of PyTorch, `namespace::name`, for torch.compile and autograd.

            relu = poly.compile(relu_loops).torch_op("mine::relu", backward=relu_gradient)
            y = relu(x)

        It takes what the kernel reads, in order, then the sizes that no input tells, and returns what the kernel
        writes, in new tensors. An output whose values before a call matter, as of `C[i, j] += …`, is taken too, and
        left as it is. Inputs that are not contiguous are copied. `backward` computes the gradients: its arguments are
        those of this nest by name (of an output, its result), `dY` for the gradient of an output `Y`, which it reads,
        and `dX` for that of an input `X`, which it writes, or adds to from 0 on. Only CPU tensors are taken.

        Raises:
            ArgumentError: the name is no `namespace::name`, or PyTorch is not installed.
            SpecError: `backward` is no nest or kernel, or has other arguments.
        """
        from poly.torch_op import operator, registered

        return registered(name, operator(self), None if backward is None else operator(backward))

    def write_header(
        self,
        path: str | Path,
        *,
        prefix: str | None = None,
        isas: Sequence[str] | None = None,
        threads: Threading | None = None,
        dense: bool = False,
    ) -> Path:
        """Write the kernel as a single C header, for several instruction sets. See `poly.write_header`."""
        from poly.embed import write_header

        return write_header(path, self, prefix=prefix, isas=isas, threads=threads, dense=dense)

    def build(self) -> None:
        """Run the C compiler now instead of at the first call. Raises ToolchainError."""
        _ = self._library

    @property
    def _panels(self) -> tuple[Any, ...]:
        """The panels of an operand that was packed before."""
        return self.packed.panels if self.packed else ()

    def _checked(self, threads: int | None) -> int:
        return self.threads if threads is None else check_threads(threads)

    @cached_property
    def _index_reads(self) -> tuple[IndexRead, ...]:
        return index_reads(self.nest)

    def _check_indices(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        check_indices(self.nest, self._index_reads, fitted(self.nest, arguments, keywords))

    @cached_property
    def _call(self) -> Caller:
        """What a call does: it also checks indices if the nest looks any up."""
        return self._checked_call if self._index_reads else self._caller

    def _checked_call(self, *arguments: Any, **keywords: Any) -> None:
        if not self._index_ranges or not are_inside(self._index_ranges, arguments):
            self._check_indices(arguments, {name: value for name, value in keywords.items() if name != "threads"})
        self._caller(*arguments, **keywords)

    @cached_property
    def _index_ranges(self) -> tuple[tuple[int, str, int, int], ...]:
        """What `are_inside` takes, for known sizes; nothing if some are open."""
        if self.nest.sizes:
            return ()
        places = {buffer.name: place for place, buffer in enumerate(self.signature.buffers)}
        reads = ((read.index.array, read.range(dict(self.nest.fixed))) for read in self._index_reads)
        return tuple((places[name], self.nest.array(name).dtype.numpy_name, *ends) for name, ends in reads)

    @property
    def _flags(self) -> tuple[str, ...]:
        """The compiler's flags. Loops over colours and the like bring every third or fourth byte together."""
        bytes_there = any(array.dtype.size == 1 for array in self.nest.arrays)
        return (*self.compiled.flags, *moving_bytes(self.isa)) if bytes_there else self.compiled.flags

    @cached_property
    def _library(self) -> Any:
        from codegen.calls.guard import declarations
        from codegen.toolchain.build import load

        limit = RECORD_SECONDS if self.record is not None else None
        with using(self.toolchain):
            return load(self.compiled.library, declarations(self.signature), self._flags, limit)

    @cached_property
    def _pool(self) -> Pool:
        """The workspaces of this kernel's callers."""
        from codegen.calls.call import Pool

        return Pool(self.signature, self._library)

    @cached_property
    def _caller(self) -> Caller:
        return caller(self)

    @cached_property
    @limited(CALL)
    def strided(self) -> Kernel:
        """The kernel for arrays that are not dense: it takes strides, and follows the same schedule.

        If the schedule's microkernels cannot read strided arrays, it follows the model's schedule instead.
        """
        if self.packed is not None:
            return self._with_strides_and_panels(self.packed)
        return self._following(with_strides(self.nest), strided=True)

    @limited(CALL)
    def _in_place(self, read: str, written: str) -> Caller | str:
        """The caller of the kernel in which an input and an output are one array, or why they may not be."""
        from poly.analysis.in_place import in_place  # few calls need it

        if self.packed is not None:
            return f"{self.packed.array} was packed for arrays that are apart"
        nest = in_place(self.nest, read, written)
        return nest if isinstance(nest, str) else self._following(nest, self._strided)._caller

    def _following(self, nest: Nest, strided: bool) -> Kernel:
        """The kernel of a variant of this nest that follows the same schedule, or the model's if that does not fit."""
        if isinstance(self.basis, Schedule):
            with suppress(ScheduleError):
                return self._variant(nest, strided, self.basis.on(nest))
        elif self.basis is not None:
            with suppress(Exception):  # a schedule from a file can fail in any way
                return checked(self._variant(nest, strided, self.basis))
        return self._variant(nest, strided, None)

    def _turned_caller(self, views: Views) -> Caller | None:
        """The caller of the kernel that takes views of arrays; None if one of them cannot be turned."""
        return self.turned(views)._caller if can_turn(self.nest, views) else None

    @limited(CALL)
    def turned(self, views: Views) -> Kernel:
        """The kernel that takes views in place of arrays: with `{"A": ArrayView((1, 0))}`, A's transpose is passed.

        It follows the same schedule if it was given and is possible for these arrays, otherwise the model's.
        """
        nest = turned(self.nest, views)
        if isinstance(self.basis, Schedule):
            with suppress(ScheduleError):
                return self._of(nest, self.basis.on(nest))
        return self._of(nest, None)

    def _of(self, nest: Nest, basis: Basis) -> Kernel:
        return Kernel(
            nest, self.isa, self.threads, basis, compiled(nest, self.isa, self.threads, basis), toolchain=self.toolchain
        )

    def _variant(self, nest: Nest, strided: bool, basis: Basis) -> Kernel:
        made = compiled(nest, self.isa, self.threads, basis)
        return Kernel(nest, self.isa, self.threads, basis, made, strided, self.toolchain)

    def _with_strides_and_panels(self, packed: Packed) -> Kernel:
        nest = with_strides(self.nest, dense=(packed.array,))
        assert isinstance(self.basis, Schedule), "prepack makes a schedule"
        basis = self.basis.on(nest)
        made = prepacked(nest, self.isa, self.threads, basis, packed.array)
        if made.filling.source != packed.filling:
            problem = f"{self.nest.name} would need {packed.array} packed in another way for arrays with gaps"
            raise ArgumentError(f"{problem}. Remedy: pass contiguous arrays")
        return Kernel(nest, self.isa, self.threads, basis, made.reading, True, self.toolchain, packed)


def c_kernel(nest: Nest, isa: ISA, threads: int, basis: Basis) -> Kernel:
    """The kernel of a nest, with a schedule from `basis`.

    Raises SpecError, ScheduleError, TargetError and ToolchainError, as `poly.compile` does.
    """
    return Kernel(nest, isa, threads, basis, compiled(nest, isa, threads, basis), toolchain=chosen())


def checked(kernel: Kernel) -> Kernel:
    """A kernel that follows a record, built.

    Raises ToolchainError, and ScheduleError if the record's text or workspace is unreasonably large.
    """
    check_source(kernel.source)
    kernel.build()
    bytes_there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if not kernel.signature.sizes and not 0 <= kernel.workspace() <= bytes_there:
        raise ScheduleError(f"its workspace takes {kernel.workspace()} bytes, and there are {bytes_there}.")
    return kernel


def caller(kernel: Kernel, otherwise: Otherwise | None = None, excluded: Container[Any] | None = None) -> Caller:
    """A function that calls a kernel; `otherwise` takes the calls that do not fit at first sight, or whose sizes are
    `excluded` (see `codegen.calls.call`).
    """
    from codegen.calls.call import make_caller

    strided = None if kernel._strided else lambda: kernel.strided._caller
    turn = None if kernel._strided or kernel.packed else kernel._turned_caller
    return make_caller(
        kernel.signature,
        kernel._library,
        kernel.threads,
        strided,
        otherwise,
        excluded,
        pool=kernel._pool,
        held=kernel._panels,
        turned=turn,
        in_place=kernel._in_place,
    )
