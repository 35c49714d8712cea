"""What the functions of a header take from their callers, and names that stay clear of the callers'."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codegen.integer import extent
from codegen.names import c_name, fresh
from codegen.package.values import Header, Routine
from codegen.parameters import Parameter, buffer_parameter, size_parameters
from codegen.program import Buffer

THREADS = Parameter("int32_t ", "threads")


def array_parameters(routine: Routine) -> tuple[Parameter, ...]:
    """Arrays and scalars in the nest's order, each array followed by its strides: `const float *A, int64_t A_ld`."""
    return tuple(p for buffer in routine.signature.buffers for p in _with_strides(routine, buffer))


def open_strides(routine: Routine, buffer: Buffer) -> tuple[str, ...]:
    """The strides of an array that a caller gives, outermost first."""
    return tuple(stride for stride in buffer.strides or () if stride in routine.strides)


def thread_parameters(header: Header) -> tuple[Parameter, ...]:
    """The number of threads, where a caller has a say in it."""
    return () if header.threads == "none" else (THREADS,)


def size_arguments(routine: Routine, header: Header) -> tuple[Parameter, ...]:
    """What the workspace's size follows from."""
    return (*size_parameters(routine.sizes), *thread_parameters(header))


def call_arguments(routine: Routine, header: Header) -> tuple[Parameter, ...]:
    """What a call is told, but for its workspace."""
    return (*size_parameters(routine.sizes), *array_parameters(routine), *thread_parameters(header))


def own_name(routine: Routine, name: str) -> str:
    """A name for a variable of the function itself, numbered where the routine has one of that name."""
    signature = routine.signature
    return fresh(name, frozenset(map(c_name, (*signature.sizes, *(b.name for b in signature.buffers)))))


def listed(parameters: Sequence[Parameter]) -> Sequence[Parameter]:
    """A list of parameters as C has it: `void` where there are none."""
    return parameters or (Parameter("", "void"),)


def names(parameters: Sequence[Parameter]) -> str:
    """The same as arguments of a call."""
    return ", ".join(parameter.name for parameter in parameters)


def block(lines: Iterable[str]) -> str:
    """The body of a C function."""
    return "\n".join(["{", *(f"    {line}" for line in lines), "}"])


def _with_strides(routine: Routine, buffer: Buffer) -> tuple[Parameter, ...]:
    plain = buffer_parameter(buffer)
    pointer = Parameter(plain.prefix.replace("restrict ", ""), plain.name)
    return (pointer, *size_parameters(open_strides(routine, buffer)))


def filled(*arrays: Buffer) -> str:
    """C text of whether all of the arrays have elements: `M > 0 && K > 0`; empty where that goes without saying."""
    shape = [size for array in arrays for size in array.shape]
    if any(size.constant == 0 for size in shape if not size.terms):
        return "0"
    return " && ".join(dict.fromkeys(f"{extent(size)} > 0" for size in shape if size.terms))
