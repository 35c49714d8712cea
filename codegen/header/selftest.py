"""The self-test of a header: a program that checks every kernel against the plain loops, and measures it.

Most of it is C of its own, in the files `c/try_*.h`. What depends on the header stands between these: the plain loops,
and for each routine its arrays, its trials and its calls.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from codegen.affine import Affine
from codegen.c import functions, used_helpers
from codegen.header.api import open_strides
from codegen.header.isas import constant
from codegen.header.items import items, renamed
from codegen.header.macros import replaced
from codegen.header.values import Header, Routine, Trial
from codegen.integer import product
from codegen.names import function_name
from codegen.program import Assign, Buffer
from microkernels.dtypes import DType

GENERAL = ("arrays", "compare", "call", "refuse", "speed")
"""The C files that know nothing of the header's routines, in order."""

INCLUDES = """#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(_OPENMP)
#include <omp.h>
#endif"""

COMPILER = """#if defined(__clang__) || !defined(__GNUC__)
#define PFX_TRY_COMPILER __VERSION__
#else
#define PFX_TRY_COMPILER "gcc " __VERSION__
#endif"""

TYPES = {"f32": "f", "f64": "d", "i8": "b", "i32": "i", "i64": "l"}
"""The types of arrays, as `pfx_try_array` has them."""

TEAMS = {"openmp": "OpenMP's, if built with it", "pthreads": "POSIX threads", "none": "none but the caller's"}


def selftest(header: Header) -> str:
    """The C text: it stands behind the implementation, and defines `main`."""
    parts = [
        INCLUDES,
        _settings(header),
        *map(_part, GENERAL),
        *_plain_loops(header),
        *(_routine(routine, header) for routine in header.routines),
        _tables(header),
        _part("main"),
    ]
    return "\n\n".join(parts)


@cache
def _part(name: str) -> str:
    return (Path(__file__).parent / "c" / f"try_{name}.h").read_text().strip("\n")


def _settings(header: Header) -> str:
    """What the C files want to know of the header: the most that a routine has, and texts."""
    routines = header.routines
    ranks = [len(b.shape) for routine in routines for b in routine.signature.arrays]
    title = " ".join(
        filter(None, [f"{header.prefix}: {', '.join(r.name for r in routines)};", "made by poly", header.version])
    )
    values = {
        "RANK": max(ranks, default=1) or 1,
        "ARRAYS": max(len(routine.signature.arrays) for routine in routines),
        "SIZES": max(len(routine.sizes) for routine in routines) or 1,
        "ROUTINES": len(routines),
        "ISAS": len(header.isas),
        "WIDTH": max(len(routine.name) for routine in routines),
        "THREADS": int(header.threads != "none"),
        "TEAMS": f'"{TEAMS[header.threads]}"',
        "TITLE": f'"{title}"',
    }
    return "\n".join([*(f"#define PFX_TRY_{name} {value}" for name, value in values.items()), COMPILER])


def _plain_loops(header: Header) -> list[str]:
    """The loops as written, a function for each routine, and before them what they call."""
    texts = [functions(routine.reference, "static ") for routine in header.routines]
    helpers = used_helpers("\n".join(texts))
    names = {name: f"pfx_try_{name}" for item in items("\n".join([helpers, *texts])) for name in item.names}
    found = [renamed(item, names).text for text in (helpers, *texts) for item in items(text)]
    return [replaced("\n".join(found))]


def _routine(routine: Routine, header: Header) -> str:
    parts = [_trials(routine), _describe(routine), _need(routine, header), _call(routine, header)]
    return "\n\n".join(parts)


def _trials(routine: Routine) -> str:
    """The names of the sizes, and the trials."""
    name = f"pfx_try_{routine.name}"
    rows = ",\n".join(f"  {{{_row(trial)}}}" for trial in routine.trials or (Trial(()),))
    sizes = ", ".join(f'"{size}"' for size in routine.sizes) or "NULL"
    return "\n".join(
        [
            f"static const char *const {name}_size[] = {{{sizes}}};",
            f"static const int64_t {name}_trial[][{len(routine.sizes) + 2}] = {{",
            rows,
            "};",
        ]
    )


def _row(trial: Trial) -> str:
    return ", ".join(map(str, (trial.flops, trial.length, *(value for _, value in trial.sizes))))


def _describe(routine: Routine) -> str:
    """What the arrays are at given sizes."""
    lines = ["(void)size;"]
    for at, buffer in enumerate(routine.signature.arrays):
        facts = {
            "name": f'"{buffer.name}"',
            "type": f"'{TYPES[buffer.dtype.name]}'",
            "use": _use(routine, buffer),
            "rank": len(buffer.shape),
            "open": len(open_strides(routine, buffer)),
        }
        facts |= {f"extent[{d}]": str(extent) for d, extent in enumerate(_values(routine, buffer))}
        lines += [f"array[{at}].{fact} = {value};" for fact, value in facts.items()]
    head = f"static void pfx_try_{routine.name}_describe(const int64_t *size, pfx_try_array *array)"
    return _function(head, lines)


def _values(routine: Routine, buffer: Buffer) -> tuple[Affine, ...]:
    """The extents, with sizes taken from the array `size`."""
    known = {size: Affine.name(f"size[{at}]") for at, size in enumerate(routine.sizes)}
    return tuple(extent.substitute(known) for extent in buffer.shape)


def _use(routine: Routine, buffer: Buffer) -> str:
    """What the routine does to an array, as `pfx_try_array` has it."""
    if buffer.kind != "inout":
        return "PFX_TRY_READ" if buffer.kind == "in" else "PFX_TRY_SET"
    bodies = (statement.body for statement in routine.reference.statements.values())
    assigned = any(isinstance(b, Assign) and b.op == "=" and b.target.array == buffer.name for b in bodies)
    return "PFX_TRY_MAYBE_SET" if assigned and buffer.dtype.is_float else "PFX_TRY_UPDATED"


def _need(routine: Routine, header: Header) -> str:
    """The bytes of a call's workspace; the plain loops have the nest's local arrays in theirs."""
    local = [b for b in routine.reference.buffers if b.kind == "local"]
    bytes_ = [f"({product(_values(routine, b), b.dtype.size)} + 63)/64*64" for b in local]
    told = ", ".join([*(f"size[{at}]" for at in range(len(routine.sizes))), *_team(header)])
    return _function(
        f"static int64_t pfx_try_{routine.name}_need(const int64_t *size, int how, int32_t threads)",
        [
            "(void)size;",
            "(void)threads;",
            f"return how == PFX_TRY_PLAIN ? {' + '.join(bytes_) or '0'} : {routine.name}_workspace_size({told});",
        ],
    )


def _call(routine: Routine, header: Header) -> str:
    """A call of one of the routine's functions or of its plain loops, with arguments as a case has them."""
    sizes = [f"c->size[{at}]" for at in range(len(routine.sizes))]
    public = [*sizes, *_public_data(routine), *_team(header)]
    given = ", ".join([*public, "c->workspace", "c->bytes"])
    plain = ", ".join([*sizes, *_strides(routine), *_data(routine), "1", "c->workspace"])
    return _function(
        f"static pfx_status pfx_try_{routine.name}_call(const pfx_try_case *c, int how, int32_t threads)",
        [
            "(void)threads;",
            f"if (how == PFX_TRY_ALLOCATING) return {routine.name}({', '.join(public)});",
            f"if (how == PFX_TRY_GIVEN) return {routine.name}_with_workspace({given});",
            f"return pfx_try_{function_name(routine.reference.name)}({plain}) ? PFX_OUT_OF_MEMORY : PFX_OK;",
        ],
    )


def _team(header: Header) -> list[str]:
    return [] if header.threads == "none" else ["threads"]


def _strides(routine: Routine) -> list[str]:
    """The strides as the plain loops take them, in the signature's order."""
    places = {
        stride: f"c->array[{at}].stride[{d}]"
        for at, buffer in enumerate(routine.signature.arrays)
        for d, stride in enumerate(open_strides(routine, buffer))
    }
    return [places[size] for size in routine.signature.sizes if size in places]


def _data(routine: Routine) -> list[str]:
    """Arrays and scalars as the plain loops take them."""
    places = {buffer.name: at for at, buffer in enumerate(routine.signature.arrays)}
    return [_argument(buffer, places.get(buffer.name)) for buffer in routine.signature.buffers]


def _public_data(routine: Routine) -> list[str]:
    """Arrays, each followed by its strides, and scalars."""
    result: list[str] = []
    places = {buffer.name: at for at, buffer in enumerate(routine.signature.arrays)}
    for buffer in routine.signature.buffers:
        at = places.get(buffer.name)
        result.append(_argument(buffer, at))
        result += [f"c->array[{at}].told[{d}]" for d, _ in enumerate(open_strides(routine, buffer))]
    return result


def _argument(buffer: Buffer, place: int | None) -> str:
    if place is None:
        return _scalar(buffer.dtype)
    constant = "const " if buffer.kind == "in" else ""
    return f"({constant}{buffer.dtype.c_name} *)c->array[{place}].data"


def _scalar(dtype: DType) -> str:
    """The value of every scalar: one and a half, or one."""
    return {"f32": "1.5f", "f64": "1.5"}.get(dtype.name, "1")


def _tables(header: Header) -> str:
    """The instruction sets and the routines, as C arrays."""
    isas = ", ".join(f'{{{constant(isa)}, "{isa.name}"}}' for isa in header.isas)
    rows = ",\n".join(f"  {{{_entry(routine)}}}" for routine in header.routines)
    return "\n".join(
        [
            f"static const struct {{ pfx_isa isa; const char *name; }} pfx_try_isas[] = {{{isas}}};",
            "",
            f"static const pfx_try_routine pfx_try_routines[] = {{\n{rows}\n}};",
        ]
    )


def _entry(routine: Routine) -> str:
    name = f"pfx_try_{routine.name}"
    numbers = [len(routine.sizes), len(routine.signature.arrays), int(routine.delicate), int(routine.drifts)]
    called = [f"{name}_{what}" for what in ("describe", "need", "call")]
    parts = [f'"{routine.name}"', *numbers, f"{name}_size", len(routine.trials), f"{name}_trial[0]", *called]
    return ", ".join(map(str, parts))


def _function(head: str, lines: list[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"{head}\n{{\n{body}\n}}"
