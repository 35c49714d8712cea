"""The module of a package: a function for each routine of a header, with its contract, and the types of all."""

from __future__ import annotations

from keyword import iskeyword

from codegen.ir.program import Buffer
from codegen.ir.signature import describe
from codegen.package.api import open_strides
from codegen.package.comments import DIRECTIONS
from codegen.package.header.isas import NUMBERS
from codegen.package.header.sections import level
from codegen.package.values import Header, Routine
from microkernels.dtypes import bf16

HEAD = '''"""{title}

Made by poly {version}. Instruction sets: {isas}; the CPU is asked once.
"""

from __future__ import annotations

from typing import Any

import {package}.runtime as _runtime

__version__ = {own!r}
__all__ = {names!r}

ArgumentError = _runtime.ArgumentError
_library = _runtime.Library({file!r}, {prefix!r}, {numbers!r})
isa_in_use = _library.isa_in_use
force_isa = _library.force_isa
'''

ROUTINE = '''
_{name} = _runtime.Routine(
    _library,
    {symbol!r},
    {name!r},
    [
{arguments}
    ],
    sizes={sizes!r},
    solved=[
{solved}
    ],
    fixed={fixed!r},
    threaded={threaded!r},
)


def {name}({parameters}) -> None:
    """{doc}"""
    _{name}({{{values}}}, {threads}, {{{given}}})
'''

STUB = '''"""{title}"""

from numpy import {types}
from numpy.typing import NDArray

__version__: str
__all__: list[str]

class ArgumentError(ValueError): ...

def isa_in_use() -> str: ...
def force_isa(name: str | None) -> None: ...
'''

OWN = ("ArgumentError", "force_isa", "isa_in_use")
"""The names in a package's module beside those of its routines."""


def name_of(routine: Routine, header: Header) -> str:
    """The routine's name in Python: without the header's prefix, unless it is that."""
    return routine.name.removeprefix(f"{header.prefix}_") or routine.name


def module_text(header: Header, package: str, library: str, version: str) -> str:
    """The text of `__init__.py`."""
    names = [name_of(routine, header) for routine in header.routines]
    head = HEAD.format(
        title=_title(header),
        version=header.version,
        isas=", ".join(map(level, header.isas)),
        package=package,
        own=version,
        names=sorted([*OWN, *names]),
        file=library,
        prefix=header.prefix,
        numbers={level(isa): NUMBERS[level(isa)] for isa in header.isas},
    )
    return "\n".join([head, *(_function(routine, header) for routine in header.routines)])


def stub_text(header: Header) -> str:
    """The text of `__init__.pyi`."""
    types = sorted({_element(b) for r in header.routines for b in r.signature.arrays})
    lines = [STUB.format(title=_title(header), types=", ".join(types))]
    for routine in header.routines:
        typed = [f"{python_name(b.name)}: {_type(b)}" for b in routine.signature.buffers]
        given = [f"{python_name(size)}: int" for size in given_sizes(routine)]
        threads = ["threads: int | None = None"] * (header.threads != "none")
        lines.append(f"def {name_of(routine, header)}({_listed(typed, [*given, *threads])}) -> None: ...\n")
    return "".join(lines)


def python_name(name: str) -> str:
    """A name of the nest as a parameter in Python, where `lambda` and `threads` are taken."""
    return f"{name}_" if iskeyword(name) or name == "threads" else name


def given_sizes(routine: Routine) -> list[str]:
    """The sizes that no array tells."""
    return [size for size in routine.signature.given if size in routine.sizes]


def _title(header: Header) -> str:
    return f"Compiled kernels: {', '.join(name_of(routine, header) for routine in header.routines)}."


def _function(routine: Routine, header: Header) -> str:
    signature, given, threaded = routine.signature, given_sizes(routine), header.threads != "none"
    solved = [step for step in signature.solved if not step.stride]
    arguments = [_argument(routine, b) for b in signature.buffers]
    sizes = [
        f"_runtime.Size({s.size!r}, {s.array!r}, {s.dimension}, {s.coefficient}, {str(s.rest) or '0'!r})"
        for s in solved
    ]
    positional = [f"{python_name(b.name)}: Any" for b in signature.buffers]
    keywords = [*(f"{python_name(size)}: int" for size in given), *["threads: int | None = None"] * threaded]
    return ROUTINE.format(
        name=name_of(routine, header),
        symbol=routine.name,
        arguments="\n".join(f"        {text}," for text in arguments),
        sizes=routine.sizes,
        solved="\n".join(f"        {text}," for text in sizes),
        fixed=dict(signature.fixed),
        threaded=threaded,
        parameters=_listed(positional, keywords),
        doc=_doc(routine, threaded),
        values=", ".join(f"{b.name!r}: {python_name(b.name)}" for b in signature.buffers),
        threads="threads" if threaded else "None",
        given=", ".join(f"{size!r}: {python_name(size)}" for size in given),
    )


def _argument(routine: Routine, buffer: Buffer) -> str:
    extents = tuple(map(str, buffer.extents))
    strides = len(open_strides(routine, buffer))
    text = describe(buffer)
    values = (buffer.name, buffer.element.numpy_name, buffer.kind, extents, strides, text)
    return f"_runtime.Argument({', '.join(map(repr, values))})"


def _listed(positional: list[str], keywords: list[str]) -> str:
    return ", ".join([*positional, *["*"] * bool(keywords), *keywords])


def _type(buffer: Buffer) -> str:
    if buffer.kind == "scalar":
        return "float" if buffer.dtype.is_float else "int"
    other = " | object" * (buffer.dtype == bf16)  # with a type that is not NumPy's own
    return f"NDArray[{_element(buffer)}]{other}"


def _element(buffer: Buffer) -> str:
    """NumPy's type of an array's elements, of bf16 that of their bits: NumPy has no such type of its own."""
    return "uint16" if buffer.dtype == bf16 else buffer.element.numpy_name


def _doc(routine: Routine, threaded: bool) -> str:
    """The contract: the loops as written, the arguments, what is refused, and the schedules' origin."""
    loops = "\n".join(f"        {line}".rstrip() for line in routine.loops.split("\n"))
    rows = [f"    {describe(b)}: {DIRECTIONS[b.kind]}" for b in routine.signature.buffers]
    rows += [f"    {size}: a size that no array tells" for size in given_sizes(routine)]
    rows += ["    threads: at most so many (default: the cores that this process may use)"] * threaded
    gaps = "Rows may have gaps" if any(open_strides(routine, b) for b in routine.signature.arrays) else "No gaps"
    parts = [
        f"Run the loops\n\n{loops}\n\n    on arrays in row-major order, in place.",
        "\n".join(["    Arguments:", *(f"    {row}" for row in rows)]),
        f"    {gaps}; an output shares no memory with another array.",
        "\n".join(f"    {note}" for note in routine.notes),
        "    Raises ArgumentError if an argument does not fit; then no array has been changed.\n    ",
    ]
    return "\n\n".join(parts).replace("\\", "\\\\").replace('"""', "'''")
