"""The parameters of generated functions: sizes, arrays, scalars, and the scratch arrays of the workspace."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.names import c_name
from codegen.program import Buffer, Program
from codegen.workspace import Layout, pointers


@dataclass(frozen=True)
class Parameter:
    """A C parameter: what stands before its name, and the name."""

    prefix: str
    name: str

    def __str__(self) -> str:
        return self.prefix + self.name


def size_parameters(sizes: Sequence[str]) -> tuple[Parameter, ...]:
    """`int64_t M`, …"""
    return tuple(Parameter("int64_t ", c_name(size)) for size in sizes)


def buffer_parameter(buffer: Buffer) -> Parameter:
    """`const float *restrict A`, or `float alpha`."""
    if buffer.kind == "scalar":
        return Parameter(f"{buffer.dtype.c_name} ", c_name(buffer.name))
    constant = "const " if buffer.kind == "in" else ""
    return Parameter(f"{constant}{buffer.dtype.c_name} *restrict ", c_name(buffer.name))


def data_parameters(program: Program) -> tuple[Parameter, ...]:
    """Sizes, then arrays and scalars in the order of the program's buffers."""
    arguments = (buffer for buffer in program.buffers if buffer.kind != "local")
    return size_parameters(program.sizes) + tuple(buffer_parameter(buffer) for buffer in arguments)


def call_parameters() -> tuple[Parameter, ...]:
    """What comes last in every kernel: the number of threads, and the workspace."""
    return Parameter("int64_t ", "threads"), Parameter("void *", "workspace")


def scratch_parameters(program: Program) -> tuple[Parameter, ...]:
    """The scratch arrays, as a function that runs inside a parallel loop takes them."""
    layout = Layout.of(program)
    workspaces = layout.shared + layout.private
    return tuple(Parameter(f"{w.dtype.c_name} *restrict ", c_name(w.name)) for w in workspaces)


def shared_setup(program: Program) -> list[str]:
    """C lines that find the shared scratch arrays in the workspace."""
    return pointers(Layout.of(program).shared, "(char *)workspace")


def private_setup(program: Program, thread: str = "") -> list[str]:
    """C lines that find the scratch arrays of one thread, behind the shared ones; `thread` is its number, if not 0."""
    layout = Layout.of(program)
    if not layout.private:
        return []
    terms = ["(char *)workspace"] + [layout.shared_bytes] * bool(layout.shared)
    terms += [f"{thread}*({layout.private_bytes})"] * bool(thread)
    return [f"char *const mine = {' + '.join(terms)};", *pointers(layout.private, "mine")]


def prototype(result: str, name: str, parameters: Sequence[Parameter]) -> str:
    """The head of a C function, over several lines between its parameters where it is long."""
    declared = ", ".join(str(parameter).replace(" ", "\0") for parameter in parameters)
    head = f"{result} {name}(".replace(" ", "\0")
    lines = textwrap.wrap(f"{head}{declared})", 110, subsequent_indent="    ", break_long_words=False)
    return "\n".join(lines).replace("\0", " ")
