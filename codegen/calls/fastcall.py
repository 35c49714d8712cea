"""The Python text of a call's fast path, generated for one kernel's arguments.

    def matmul(A=_MISSING, B=_MISSING, C=_MISSING, /, *_extra, threads=_THREADS, **_keywords):
        try:
            if A.__class__ is _ndarray:
                if (A.dtype is _f32 and A.shape == (64, 64) and …):
                    if not _guarded(_buffer(A), _buffer(B), _buffer(_CHARS, C, True), threads, _NULL):
                        return
            elif (A.dtype is _tensor_f32[A.__class__] and A.shape == (64, 64) and A.is_contiguous() and …):
                if not _guarded_at(A.data_ptr(), B.data_ptr(), C.data_ptr(), threads, _NULL):
                    return
        except (AttributeError, …):
            pass
        _slow((A, B, C), _extra, threads, _keywords)

`_buffer` raises for an array that is not contiguous, or for a read-only output; `_guarded` returns 1 for arrays that
overlap, and 2 for a workspace that is too small. Tensors are arrays that tell their address (`codegen.calls.tensors`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from codegen.ir.integer import Linear
from codegen.ir.program import Buffer
from codegen.ir.promotion import LARGEST_INDEX
from codegen.ir.signature import Signature, SolvedSize
from codegen.names import c_name, function_name

ERRORS = "AttributeError, TypeError, ValueError, BufferError, OverflowError, MemoryError, LookupError, RuntimeError"
"""The errors on the fast path when the arguments do not fit, or when another thread has taken the last free workspace.

The slow path finds the cause, or runs the kernel.
"""


class Arrays(Protocol):
    """How the text asks one library's arrays; each text is a Python expression."""

    @property
    def function(self) -> str:
        """The name of the kernel's function that takes their pointers."""

    def is_array(self, buffer: Buffer) -> str:
        """Whether an argument is such an array, of the buffer's type."""

    def strides(self, buffer: Buffer) -> str:
        """The tuple of its strides, in `unit`s."""

    def unit(self, buffer: Buffer) -> int:
        """The stride from one element to the next; of complex ones, from one part to the other."""

    def pointer(self, buffer: Buffer, strided: bool) -> str:
        """Its pointer; the expression may raise an error if the array isn't contiguous or writable as needed."""

    def fits(self, buffer: Buffer, strided: bool) -> Iterator[str]:
        """More conditions, which `pointer` does not check."""

    def held(self, number: int) -> str:
        """The pointer to an array that the kernel holds."""


class NumpyArrays:
    """NumPy's arrays, whose pointers come from the buffer protocol."""

    function = "_guarded"

    def is_array(self, buffer: Buffer) -> str:
        return f"{buffer.name}.__class__ is _ndarray and {buffer.name}.dtype is _{buffer.element.name}"

    def strides(self, buffer: Buffer) -> str:
        return f"{buffer.name}.strides"

    def unit(self, buffer: Buffer) -> int:
        return buffer.dtype.size

    def pointer(self, buffer: Buffer, strided: bool) -> str:
        part = buffer.name
        if strided and buffer.extents:  # the first element of an array with gaps is a contiguous array
            part += f"[{'0, ' * (len(buffer.extents) - 1)}:1]"
        return f"_buffer({part})" if buffer.kind == "in" else f"_buffer(_CHARS, {part}, True)"

    def fits(self, buffer: Buffer, strided: bool) -> Iterator[str]:
        yield from ()

    def held(self, number: int) -> str:
        return f"_held_{number}"


class Tensors:
    """Other libraries' arrays of known classes, which tell their address; what is not plain memory of a CPU is not."""

    function = "_guarded_at"

    def is_array(self, buffer: Buffer) -> str:
        return f"{buffer.name}.dtype is _tensor_{buffer.element.name}[{buffer.name}.__class__]"

    def strides(self, buffer: Buffer) -> str:
        strides = f"{buffer.name}.stride()"
        return f"[2*_stride for _stride in {strides}]" if buffer.is_complex else strides

    def unit(self, buffer: Buffer) -> int:
        return 1

    def pointer(self, buffer: Buffer, strided: bool) -> str:
        return f"{buffer.name}.data_ptr()"

    def fits(self, buffer: Buffer, strided: bool) -> Iterator[str]:
        yield f"{buffer.name}.is_cpu and not {buffer.name}.requires_grad and not {buffer.name}.is_neg()"
        if buffer.is_complex:
            yield f"not {buffer.name}.is_conj()"
        if not strided:
            yield f"{buffer.name}.is_contiguous()"

    def held(self, number: int) -> str:
        return f"_held_at_{number}"


@dataclass(frozen=True)
class _Text:
    """The text for one library's arrays."""

    signature: Signature
    of: Arrays
    excluding: bool

    def lines(self) -> Iterator[str]:
        """The sizes, and the call if all arguments fit."""
        yield from self._sizes()
        yield f"if {' and '.join(self._conditions())}:"
        yield from (f"    {line}" for line in self._invocation())

    def _sizes(self) -> Iterator[str]:
        """Lines that put shapes and strides into variables, and compute the sizes from them."""
        for b in self.signature.arrays:
            if self.signature.sizes and b.extents:
                yield f"{_tuple(_extent(b.name, d) for d in range(len(b.extents)))} = {b.name}.shape"
            if b.strides:
                yield f"{_tuple(_stride(b.name, d) for d in range(len(b.extents)))} = {self.of.strides(b)}"
        unit = {b.name: self.of.unit(b) for b in self.signature.arrays}
        for step in self.signature.solved:
            yield f"{step.size} = {_solution(step, unit[step.array])}"

    def _conditions(self) -> Iterator[str]:
        """The conditions of the fast path."""
        for b in self.signature.arrays:
            yield self.of.is_array(b)
            if not self.signature.sizes or not b.extents:
                yield f"{b.name}.shape == {_tuple(map(str, b.extents))}"
            if b.strides:
                yield from _stride_conditions(b, self.of.unit(b))
            yield from self.of.fits(b, self.signature.strided)
        yield from _extent_conditions(self.signature)
        yield from (f"{value} >= 0" for value in self.signature.conditions)
        for size in self.signature.given:
            yield f"{size}.__class__ is int and 0 <= {size} <= {LARGEST_INDEX}"
        if self.excluding:
            yield f"{_tuple(self.signature.sizes)} not in _excluded"
        yield "(threads is _THREADS or threads.__class__ is int and 0 < threads <= 4096)"
        yield "not _extra and not _keywords"

    def _invocation(self) -> Iterator[str]:
        """The call. If the kernel needs a workspace, it takes a free one, and gives it back if it was used."""
        signature, strided = self.signature, self.signature.strided
        data = [b.name if b.kind == "scalar" else self.of.pointer(b, strided) for b in signature.buffers]
        data += [self.of.held(number) for number in range(len(signature.held))]
        memory = ["_memory[1]", "_memory[0]"] if signature.scratch else ["_NULL"]
        if signature.scratch:
            yield "_memory = _free.pop() if _free else _NO_MEMORY"
        yield f"if not {self.of.function}({', '.join([*signature.sizes, *data, 'threads', *memory])}):"
        if signature.scratch:
            yield "    _give(_memory)"
        yield "    return"


def caller_source(signature: Signature, excluding: bool = False) -> str:
    """The text of a caller, with _THREADS threads by default; with `excluding` it leaves out sizes in _excluded."""
    given = "".join(f"{size!r}: {c_name(size)}, " for size in signature.given)
    signature = renamed(signature)
    arguments = [b.name for b in signature.buffers]
    head = [*(f"{a}=_MISSING" for a in arguments), *("/",) * bool(arguments), "*_extra", "threads=_THREADS"]
    head += [*(f"{size}=_MISSING" for size in signature.given), "**_keywords"]
    # A size `lane` is the parameter `lane_`, so `lane=` arrives among the other keywords, which therefore come last.
    keywords = f"{{{given}**_keywords}}" if given else "_keywords"
    lines = [f"def {function_name(signature.name)}({', '.join(head)}):", "    try:"]
    numbers = [b for b in signature.buffers if b.is_complex_value]
    lines += [
        f"        if {b.name}.__class__ is complex: {b.name} = _array({b.name}, _{b.element.name})" for b in numbers
    ]
    lines += [f"        {line}" for line in _branches(signature, excluding)]
    lines += [f"    except ({ERRORS}):", "        pass"]
    lines.append(f"    _slow({_tuple(arguments)}, _extra, threads, {keywords})")
    return "\n".join(lines) + "\n"


def _branches(signature: Signature, excluding: bool) -> Iterator[str]:
    """The text for NumPy's arrays, and that for tensors: the first array tells which they are."""
    numpy = _Text(signature, NumpyArrays(), excluding).lines()
    if not signature.arrays:
        yield from numpy
        return
    yield f"if {signature.arrays[0].name}.__class__ is _ndarray:"
    yield from (f"    {line}" for line in numpy)
    yield "else:"
    yield from (f"    {line}" for line in _Text(signature, Tensors(), excluding).lines())


def renamed(signature: Signature) -> Signature:
    """The signature with names that do not clash with the text's own: an array `threads` is `threads_`."""
    names = {size: Linear.name(c_name(size)) for size in signature.sizes}
    buffers = tuple(
        replace(
            b,
            name=c_name(b.name),
            shape=tuple(extent.substitute(names) for extent in b.shape),
            strides=b.strides and tuple(c_name(s) if s in names else s for s in b.strides),
        )
        for b in signature.buffers
    )
    conditions = tuple(value.substitute(names) for value in signature.conditions)
    return replace(signature, sizes=tuple(map(c_name, signature.sizes)), buffers=buffers, conditions=conditions)


def _solution(step: SolvedSize, unit: int) -> str:
    if step.stride:
        return f"{_stride(step.array, step.dimension)} // {unit}"
    extent = _extent(step.array, step.dimension)
    value = f"({extent} - ({step.rest}))" if step.rest.terms or step.rest.constant else extent
    return value if step.coefficient == 1 else f"{value} // {step.coefficient}"


def _extent_conditions(signature: Signature) -> Iterator[str]:
    """Each extent agrees with the sizes; an extent from which a size was taken unchanged needs no check."""
    if not signature.sizes:
        return
    plain = {(s.array, s.dimension) for s in signature.solved if not s.stride and _is_plain(s)}
    for b in signature.arrays:
        for dimension, extent in enumerate(b.extents):
            if (b.name, dimension) not in plain:
                yield f"{_extent(b.name, dimension)} == {extent}"
    for step in signature.solved:
        if not step.stride and not _is_plain(step):
            yield f"{step.size} >= 0"


def _is_plain(step: SolvedSize) -> bool:
    return step.coefficient == 1 and not step.rest.terms and not step.rest.constant


def _stride_conditions(buffer: Buffer, unit: int) -> Iterator[str]:
    """Strides are nonnegative whole elements, 1 along rows of several elements; the rows of an output don't overlap."""
    last = len(buffer.extents) - 1
    single = buffer.extents[last].number == 1
    step = 2 * unit if buffer.is_complex else unit
    if not single:
        yield f"{_stride(buffer.name, last)} == {step}"
    for dimension in range(last):
        stride = _stride(buffer.name, dimension)
        inner = f"{_stride(buffer.name, dimension + 1)}*{_extent(buffer.name, dimension + 1)}"
        if single and dimension + 1 == last:
            inner = f"{step}"
        yield f"{stride} >= {0 if buffer.kind == 'in' else inner}"
        if unit > 1:
            yield f"{stride} % {unit} == 0"


def _extent(array: str, dimension: int) -> str:
    return f"_{array}_{dimension}"


def _stride(array: str, dimension: int) -> str:
    return f"_{array}_stride_{dimension}"


def _tuple(items: Iterable[str]) -> str:
    """`(a, b)`, or `(a,)` for one item."""
    texts = list(items)
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
