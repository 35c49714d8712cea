"""The parameters of a header's functions, and names that do not clash with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codegen.ir.integer import extent
from codegen.ir.program import Buffer
from codegen.names import c_name, fresh
from codegen.package.values import Header, Routine
from codegen.parameters import Parameter, buffer_parameter, size_parameters

THREADS = Parameter("int32_t ", "threads")


def array_parameters(routine: Routine) -> tuple[Parameter, ...]:
    """Arrays and scalars in the nest's order, each array followed by its strides: `const float *A, int64_t A_ld`."""
    return tuple(p for buffer in routine.signature.buffers for p in _with_strides(routine, buffer))


def open_strides(routine: Routine, buffer: Buffer) -> tuple[str, ...]:
    """The strides of an array that a caller passes, outermost first."""
    return tuple(stride for stride in buffer.strides or () if stride in routine.strides)


def thread_parameters(header: Header) -> tuple[Parameter, ...]:
    """The number of threads, if a caller chooses it."""
    return () if header.threads == "none" else (THREADS,)


def size_arguments(routine: Routine, header: Header) -> tuple[Parameter, ...]:
    """The parameters on which the workspace's size depends."""
    return (*size_parameters(routine.sizes), *thread_parameters(header))


def call_arguments(routine: Routine, header: Header) -> tuple[Parameter, ...]:
    """The parameters of a call, except its workspace."""
    return (*size_parameters(routine.sizes), *array_parameters(routine), *thread_parameters(header))


def own_name(routine: Routine, name: str) -> str:
    """A name for a variable of the function itself, numbered if the routine has one of that name."""
    signature = routine.signature
    return fresh(name, frozenset(map(c_name, (*signature.sizes, *(b.name for b in signature.buffers)))))


def listed(parameters: Sequence[Parameter]) -> Sequence[Parameter]:
    """A list of parameters for C: `void` if it is empty."""
    return parameters or (Parameter("", "void"),)


def names(parameters: Sequence[Parameter]) -> str:
    """Parameters as arguments of a call."""
    return ", ".join(parameter.name for parameter in parameters)


def block(lines: Iterable[str]) -> str:
    """The body of a C function."""
    return "\n".join(["{", *(f"    {line}" for line in lines), "}"])


def _with_strides(routine: Routine, buffer: Buffer) -> tuple[Parameter, ...]:
    plain = buffer_parameter(buffer)
    pointer = Parameter(plain.prefix.replace("restrict ", ""), plain.name)
    return (pointer, *size_parameters(open_strides(routine, buffer)))


def filled(*arrays: Buffer) -> str:
    """C text of the condition that all of the arrays have elements: `M > 0 && K > 0`; empty if they always do."""
    shape = [size for array in arrays for size in array.shape]
    if any(size.constant == 0 for size in shape if not size.terms):
        return "0"
    return " && ".join(dict.fromkeys(f"{extent(size)} > 0" for size in shape if size.terms))
