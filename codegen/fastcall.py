"""The Python text of a call's fast path, generated for one kernel's arguments.

    def matmul(A=_MISSING, B=_MISSING, C=_MISSING, /, *_extra, threads=1, **_keywords):
        try:
            if (A.__class__ is _ndarray and A.dtype is _f32 and A.shape == (64, 64) and …):
                if not _guarded(_buffer(A), _buffer(B), _buffer(_CHARS, C, True), threads, _NULL):
                    return
        except (AttributeError, …):
            pass
        _slow((A, B, C), _extra, threads, _keywords)

`_buffer` raises for an array that is not contiguous, or for a read-only output; `_guarded` returns 1 for arrays that
overlap, and 2 for a workspace that is too small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from codegen.integer import Linear
from codegen.names import c_name, function_name
from codegen.program import Buffer
from codegen.promotion import LARGEST_INDEX
from codegen.signature import Signature, SolvedSize

ERRORS = "AttributeError, TypeError, ValueError, BufferError, OverflowError, MemoryError, IndexError"
"""The errors on the fast path when the arguments do not fit, or when another thread has taken the last free workspace.

The slow path finds the cause, or runs the kernel.
"""


def caller_source(signature: Signature, threads: int) -> str:
    """The text of a caller that uses `threads` threads by default."""
    given = "".join(f"{size!r}: {c_name(size)}, " for size in signature.given)
    signature = renamed(signature)
    arguments = [b.name for b in signature.buffers]
    head = [*(f"{a}=_MISSING" for a in arguments), *("/",) * bool(arguments), "*_extra", f"threads={threads}"]
    head += [*(f"{size}=_MISSING" for size in signature.given), "**_keywords"]
    # A size `lane` is the parameter `lane_`, so `lane=` arrives among the other keywords, which therefore come last.
    keywords = f"{{{given}**_keywords}}" if given else "_keywords"
    lines = [f"def {function_name(signature.name)}({', '.join(head)}):", "    try:"]
    lines += [f"        {line}" for line in _sizes(signature)]
    lines.append(f"        if {' and '.join(_conditions(signature))}:")
    lines += [f"            {line}" for line in _invocation(signature)]
    lines += [f"    except ({ERRORS}):", "        pass"]
    lines.append(f"    _slow({_tuple(arguments)}, _extra, threads, {keywords})")
    return "\n".join(lines) + "\n"


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
    return replace(signature, sizes=tuple(map(c_name, signature.sizes)), buffers=buffers)


def _sizes(signature: Signature) -> Iterator[str]:
    """Lines that put shapes and strides into variables, and compute the sizes from them."""
    for b in signature.arrays:
        if signature.sizes and b.shape:
            yield f"{_tuple(_extent(b.name, d) for d in range(len(b.shape)))} = {b.name}.shape"
        if b.strides:
            yield f"{_tuple(_stride(b.name, d) for d in range(len(b.shape)))} = {b.name}.strides"
    itemsize = {b.name: b.dtype.size for b in signature.arrays}
    for step in signature.solved:
        yield f"{step.size} = {_solution(step, itemsize[step.array])}"


def _solution(step: SolvedSize, itemsize: int) -> str:
    if step.stride:
        return f"{_stride(step.array, step.dimension)} // {itemsize}"
    extent = _extent(step.array, step.dimension)
    value = f"({extent} - ({step.rest}))" if step.rest.terms or step.rest.constant else extent
    return value if step.coefficient == 1 else f"{value} // {step.coefficient}"


def _conditions(signature: Signature) -> Iterator[str]:
    """The conditions of the fast path."""
    for b in signature.arrays:
        yield f"{b.name}.__class__ is _ndarray and {b.name}.dtype is _{b.dtype.name}"
        if not signature.sizes or not b.shape:
            yield f"{b.name}.shape == {_tuple(map(str, b.shape))}"
        if b.strides:
            yield from _stride_conditions(b)
    yield from _extent_conditions(signature)
    for size in signature.given:
        yield f"{size}.__class__ is int and 0 <= {size} <= {LARGEST_INDEX}"
    yield "threads.__class__ is int and 0 < threads <= 4096 and not _extra and not _keywords"


def _extent_conditions(signature: Signature) -> Iterator[str]:
    """Each extent agrees with the sizes; an extent from which a size was taken unchanged needs no check."""
    if not signature.sizes:
        return
    plain = {(s.array, s.dimension) for s in signature.solved if not s.stride and _is_plain(s)}
    for b in signature.arrays:
        for dimension, extent in enumerate(b.shape):
            if (b.name, dimension) not in plain:
                yield f"{_extent(b.name, dimension)} == {extent}"
    for step in signature.solved:
        if not step.stride and not _is_plain(step):
            yield f"{step.size} >= 0"


def _is_plain(step: SolvedSize) -> bool:
    return step.coefficient == 1 and not step.rest.terms and not step.rest.constant


def _stride_conditions(buffer: Buffer) -> Iterator[str]:
    """Strides are nonnegative whole elements, the last one 1; the rows of an output don't overlap."""
    last = len(buffer.shape) - 1
    yield f"{_stride(buffer.name, last)} == {buffer.dtype.size}"
    for dimension in range(last):
        stride = _stride(buffer.name, dimension)
        inner = f"{_stride(buffer.name, dimension + 1)}*{_extent(buffer.name, dimension + 1)}"
        yield f"{stride} >= {0 if buffer.kind == 'in' else inner}"
        yield f"{stride} % {buffer.dtype.size} == 0"
    if buffer.kind != "in":
        yield f"{buffer.name}.flags.writeable"


def _invocation(signature: Signature) -> Iterator[str]:
    """The lines of the call. If the kernel needs a workspace, it takes a free one, and gives it back if it was used."""
    data = [_pointer(b, signature.strided) for b in signature.buffers]
    memory = ["_memory[1]", "_memory[0]"] if signature.scratch else ["_NULL"]
    if signature.scratch:
        yield "_memory = _free.pop() if _free else _NO_MEMORY"
    yield f"if not _guarded({', '.join([*signature.sizes, *data, 'threads', *memory])}):"
    if signature.scratch:
        yield "    _give(_memory)"
    yield "    return"


def _pointer(buffer: Buffer, strided: bool) -> str:
    if buffer.kind == "scalar":
        return buffer.name
    if strided:
        return f"_cast(_POINTER, {buffer.name}.__array_interface__['data'][0])"
    return f"_buffer({buffer.name})" if buffer.kind == "in" else f"_buffer(_CHARS, {buffer.name}, True)"


def _extent(array: str, dimension: int) -> str:
    return f"_{array}_{dimension}"


def _stride(array: str, dimension: int) -> str:
    return f"_{array}_stride_{dimension}"


def _tuple(items: Iterable[str]) -> str:
    """`(a, b)`, or `(a,)` for one item."""
    texts = list(items)
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
