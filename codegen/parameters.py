"""The parameters of generated functions: sizes, arrays, scalars, and the scratch arrays of the workspace."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from codegen.ir.integer import primary
from codegen.ir.program import Buffer, Program
from codegen.names import c_name
from codegen.style import Line
from codegen.workspace import Layout, pointers


@dataclass(frozen=True)
class Parameter:
    """A C parameter: the text before its name, and the name."""

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
    """The last parameters of every kernel: the number of threads, and the workspace."""
    return Parameter("int64_t ", "threads"), workspace_parameter()


def workspace_parameter() -> Parameter:
    """The parameter for the memory of the scratch arrays."""
    return Parameter("void *", "workspace")


def scratch_parameters(program: Program) -> tuple[Parameter, ...]:
    """The scratch arrays as parameters of a function that runs inside a parallel loop."""
    layout = Layout.of(program)
    workspaces = layout.shared + layout.private
    return tuple(Parameter(f"{w.dtype.c_name} *restrict ", c_name(w.name)) for w in workspaces)


def needed(parameters: Sequence[Parameter], names: Container[str]) -> tuple[Parameter, ...]:
    """The parameters that are among the names that statements use."""
    return tuple(parameter for parameter in parameters if parameter.name in names)


def unused(parameters: Sequence[Parameter], names: Container[str]) -> list[str]:
    """C lines for the other parameters, which keep compilers from warning that they are unused."""
    return [f"(void){parameter.name};" for parameter in parameters if parameter.name not in names]


def serial_setup(program: Program, names: Container[str]) -> list[Line]:
    """Lines that declare the scratch arrays that statements name, with the first thread's private ones."""
    layout = Layout.of(program)
    wanted = {parameter.name: parameter.name for parameter in needed(scratch_parameters(program), names)}
    return pointers(layout.shared + layout.private, "(char *)workspace", wanted)


def private_setup(program: Program, names: Mapping[str, str], thread: str) -> list[Line]:
    """Lines that declare a thread's scratch arrays, after the shared ones; `names` maps their C names to new ones."""
    layout = Layout.of(program)
    shared = [str(layout.shared_bytes)] * bool(layout.shared)
    terms = ["(char *)workspace", *shared, f"{thread}*{primary(layout.private_bytes)}"]
    used = {"workspace"} | layout.shared_bytes.names | layout.private_bytes.names
    return [Line(f"char *const mine = {' + '.join(terms)};", used), *pointers(layout.private, "mine", names)]


def prototype(result: str, name: str, parameters: Sequence[Parameter]) -> str:
    """The head of a C function, without a semicolon."""
    return f"{result} {name}({', '.join(map(str, parameters)) or 'void'})"
