"""One routine for the self-test's C files: its arrays, its trials, and its calls."""

from __future__ import annotations

import textwrap
from dataclasses import replace

from codegen.ir.integer import C, Int, Linear, element_count
from codegen.ir.program import Assign, Buffer, Workspace
from codegen.names import function_name
from codegen.package.api import open_strides
from codegen.package.values import Header, Routine, SelfTestSizes
from codegen.workspace import total_bytes
from microkernels.dtypes import DType

TYPES = {
    "f32": "f", "f64": "d", "u8": "B", "u16": "H", "i8": "b", "i16": "s", "i32": "i", "i64": "l", "f16": "h",
    "bf16": "e",
}  # fmt: skip
"""The types of arrays, as `try_argument` encodes them."""

TRIED = replace(C, calls={name: f"try_{function}" for name, function in C.calls.items()})
"""C with the self-test's names for the functions that expressions call."""


def routine_text(routine: Routine, header: Header) -> str:
    """Tables and functions of a routine."""
    parts = [sizes_table(routine), arrays_table(routine), trials_table(routine), shape_function(routine)]
    return "\n\n".join(["\n".join(parts), _need(routine, header), _call(routine, header)])


def entry(routine: Routine) -> str:
    """The routine as a `try_routine`."""
    numbers = [len(routine.sizes), len(routine.signature.arrays), len(_all_trials(routine))]
    flags = [int(routine.delicate), int(routine.drifts)]
    head = ", ".join(map(str, [f'"{routine.name}"', *numbers, *flags]))
    parts = [f"try_{routine.name}_{what}" for what in ("size", "array", "trial[0]", "shape", "need", "call")]
    return f"{head},\n   {', '.join(parts)}"


def sizes_table(routine: Routine) -> str:
    names = ", ".join(f'"{size}"' for size in routine.sizes) or "NULL"
    return f"static const char *const try_{routine.name}_size[] = {{{names}}};"


def arrays_table(routine: Routine) -> str:
    """The arrays, each as a `try_argument`."""
    rows = "".join(f"    {_argument(routine, buffer)},\n" for buffer in routine.signature.arrays)
    return f"static const try_argument try_{routine.name}_array[] = {{\n{rows}}};"


def _argument(routine: Routine, buffer: Buffer) -> str:
    numbers = f"{len(buffer.shape)}, {len(open_strides(routine, buffer))}"
    return f"{{\"{buffer.name}\", '{TYPES[buffer.dtype.name]}', {_use(routine, buffer)}, {numbers}}}"


def _use(routine: Routine, buffer: Buffer) -> str:
    """How the routine uses an array."""
    if buffer.name in routine.indices:
        return "TRY_INDEX"
    if buffer.kind != "inout":
        return "TRY_READ" if buffer.kind == "in" else "TRY_SET"
    bodies = (statement.body for statement in routine.reference.statements.values())
    assigned = any(isinstance(b, Assign) and b.op == "=" and b.target.array == buffer.name for b in bodies)
    return "TRY_MAYBE_SET" if assigned and buffer.dtype.is_float else "TRY_UPDATED"


def _all_trials(routine: Routine) -> tuple[SelfTestSizes, ...]:
    return routine.trials or (SelfTestSizes(tuple((size, 1) for size in routine.sizes)),)


def trials_table(routine: Routine) -> str:
    rows = [(trial.flops, trial.length, *(value for _, value in trial.sizes)) for trial in _all_trials(routine)]
    text = ", ".join(f"{{{','.join(map(str, row))}}}" for row in rows)
    lines = textwrap.fill(text, 118, initial_indent="  ", subsequent_indent="  ", break_long_words=False)
    return f"static const int64_t try_{routine.name}_trial[][{len(rows[0])}] = {{\n{lines}\n}};"


def shape_function(routine: Routine) -> str:
    """The function that stores the extents of all arrays, one array after the other; after indices, their range."""
    every = [
        TRIED.integer(value)
        for buffer in routine.signature.arrays
        for value in (*_extents(routine, buffer), *_range(routine, buffer))
    ]
    return function(
        f"static void try_{routine.name}_shape(const int64_t *size, int64_t *extent)",
        [*unused("size", "extent"), *(f"extent[{at}] = {extent};" for at, extent in enumerate(every))],
    )


def _extents(routine: Routine, buffer: Buffer) -> tuple[Int, ...]:
    """An array's shape, with the sizes taken from the C array `size`."""
    known = {size: Linear.name(f"size[{at}]") for at, size in enumerate(routine.sizes)}
    return tuple(extent.substitute(known) for extent in buffer.shape)


def _range(routine: Routine, buffer: Buffer) -> tuple[Int, ...]:
    """The least value and the end of those of an array of indices."""
    known = {size: Linear.name(f"size[{at}]") for at, size in enumerate(routine.sizes)}
    return tuple(value.substitute(known) for value in routine.indices.get(buffer.name, ()))


def plain_workspace(routine: Routine) -> str:
    """C text of the bytes of the plain loops' workspace, with the names of the self-test."""
    return TRIED.integer(workspace_bytes(routine))


def workspace_bytes(routine: Routine) -> Int:
    """The bytes of the plain loops' workspace, which holds the nest's local arrays."""
    local = [b for b in routine.reference.buffers if b.kind == "local"]
    counts = [(b, element_count(_extents(routine, b))) for b in local]
    return total_bytes([Workspace(b.name, b.dtype, count) for b, count in counts])


def _need(routine: Routine, header: Header) -> str:
    """The bytes of a call's workspace."""
    asked = ", ".join([*(f"size[{at}]" for at in range(len(routine.sizes))), *_team(header)])
    return function(
        f"static int64_t try_{routine.name}_need(const int64_t *size, int how, int32_t threads)",
        [
            *unused("size", "threads"),
            f"return how == TRY_PLAIN ? {plain_workspace(routine)} : {routine.name}_workspace_size({asked});",
        ],
    )


def _call(routine: Routine, header: Header) -> str:
    """A call of one of the routine's functions or of its plain loops, with a case's arguments."""
    sizes = [f"c->size[{at}]" for at in range(len(routine.sizes))]
    public = [*sizes, *data(routine, as_called=True), *_team(header)]
    plain = [*sizes, *_strides(routine), *data(routine), "1", "c->workspace"]
    calls = [
        call_line("if (how == TRY_ALLOCATING) return", routine.name, public),
        call_line(
            "if (how == TRY_GIVEN) return", f"{routine.name}_with_workspace", [*public, "c->workspace", "c->bytes"]
        ),
        call_line("return", f"try_{function_name(routine.reference.name)}", plain, " ? PFX_OUT_OF_MEMORY : PFX_OK"),
    ]
    head = f"static pfx_status try_{routine.name}_call(const try_case *c, int how, int32_t threads)"
    return function(head, [*unused("threads"), *calls])


def call_line(keyword: str, function: str, arguments: list[str], rest: str = "") -> str:
    """A call on several lines, broken only between arguments."""
    call = ", ".join(argument.replace(" ", "\0") for argument in arguments)
    text = f"{keyword} {function}({call}){rest};"
    lines = textwrap.fill(text, 118, subsequent_indent="      ", break_long_words=False)
    return lines.replace("\0", " ")


def _team(header: Header) -> list[str]:
    return [] if header.threads == "none" else ["threads"]


def _strides(routine: Routine) -> list[str]:
    """The strides for the plain loops, in the signature's order."""
    places = {
        stride: f"c->array[{at}].stride[{d}]"
        for at, buffer in enumerate(routine.signature.arrays)
        for d, stride in enumerate(open_strides(routine, buffer))
    }
    return [places[size] for size in routine.signature.sizes if size in places]


def data(routine: Routine, as_called: bool = False) -> list[str]:
    """Arrays and scalars in order; with `as_called`, each array is followed by its strides as a caller passes them."""
    found: list[str] = []
    arrays = [buffer.name for buffer in routine.signature.arrays]
    for buffer in routine.signature.buffers:
        if buffer.kind == "scalar":
            found.append(scalar(buffer.dtype))
            continue
        constant, at = "const " if buffer.kind == "in" else "", arrays.index(buffer.name)
        found.append(f"({constant}{buffer.dtype.c_name} *)c->array[{at}].data")
        found += [f"c->array[{at}].told[{d}]" for d in range(len(open_strides(routine, buffer)) if as_called else 0)]
    return found


def scalar(dtype: DType) -> str:
    """The value of every scalar: 1.5, or 1 for integers."""
    return {"f32": "1.5f", "f64": "1.5"}.get(dtype.name, "1")


def unused(*parameters: str) -> list[str]:
    """C lines for parameters that a routine may not use."""
    return [f"(void){parameter};" for parameter in parameters]


def function(head: str, lines: list[str]) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"{head}\n{{\n{body}\n}}"
