"""The self-test of a header: a program that checks every kernel against the plain loops, and measures it.

Most of it is C of its own, in the files `c/try_*.h`. What depends on the header stands between these: the plain loops,
and for each routine its arrays, its trials and its calls. It is a program and no library, so its names begin with
`try_` and not with the header's prefix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from codegen.c import functions, used_helpers
from codegen.header.isas import constant
from codegen.header.items import items, renamed
from codegen.header.macros import replaced
from codegen.header.selftest_routine import entry, routine_text, workspace_bytes
from codegen.header.values import Header, Routine

GENERAL = ("arrays", "call", "speed")
"""The C files that know nothing of the header's routines, in order."""

INCLUDES = """#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(_OPENMP)
#include <omp.h>
#endif"""

COMPILER = """#if defined(__clang__)
#define TRY_COMPILER __VERSION__
#else
#define TRY_COMPILER "gcc " __VERSION__
#endif"""

TEAMS = {"openmp": "OpenMP's, if built with it", "pthreads": "POSIX threads", "none": "none but the caller's"}


def selftest(header: Header) -> str:
    """The C text: it stands behind the implementation, and defines `main`."""
    parts = [
        INCLUDES,
        _settings(header),
        *map(part, GENERAL),
        replaced(plain_loops(header.routines)),
        *(routine_text(routine, header) for routine in header.routines),
        _tables(header),
        part("main"),
    ]
    return "\n\n".join(parts)


@cache
def part(name: str) -> str:
    """A C file, of its comments only the one atop: a header carries many bytes already."""
    text = (Path(__file__).parent / "c" / f"try_{name}.h").read_text()
    end = text.index("*/") + 2
    return text[:end] + re.sub(r"(?m)^/\*.*?\*/\n| */\*.*?\*/", "", text[end:], flags=re.DOTALL).rstrip()


def _settings(header: Header) -> str:
    """What the C files want to know of the header: the most that a routine has, and texts."""
    routines = header.routines
    ranks = [len(b.shape) for routine in routines for b in routine.signature.arrays]
    title = f"{', '.join(routine.name for routine in routines)}, made by poly {header.version}"
    values = {
        "GUARD": 128,
        "RANK": max((2, *ranks)),  # with 1, gcc warns of what is read where there are two
        "ARRAYS": max(len(routine.signature.arrays) for routine in routines),
        "SIZES": max(len(routine.sizes) for routine in routines) or 1,
        "ROUTINES": len(routines),
        "ISAS": len(header.isas),
        "WIDTH": max(len(routine.name) for routine in routines),
        "THREADS": int(header.threads != "none"),
        "TEAMS": f'"{TEAMS[header.threads]}"',
        "TITLE": f'"{title.rstrip()}"',
    }
    return "\n".join([*(f"#define TRY_{name} {value}" for name, value in values.items()), COMPILER])


def plain_loops(routines: Sequence[Routine]) -> str:
    """The loops as written, a function for each routine, and before them what these and their workspaces call."""
    texts = [functions(routine.reference, "static ") for routine in routines]
    texts.insert(0, used_helpers("\n".join([*texts, *map(str, map(workspace_bytes, routines))])))
    found = [item for text in texts for item in items(text)]
    names = {name: f"try_{name}" for item in found for name in item.names}
    return "\n".join(renamed(item, names).text for item in found)


def _tables(header: Header) -> str:
    """The instruction sets and the routines, as C arrays."""
    isas = "".join(f'    {{{constant(isa)}, "{isa.name}"}},\n' for isa in header.isas)
    rows = "".join(f"    {{{entry(routine)}}},\n" for routine in header.routines)
    return "\n".join(
        [
            f"static const struct {{ pfx_isa isa; const char *name; }} try_isas[] = {{\n{isas}}};",
            "",
            f"static const try_routine try_routines[] = {{\n{rows}}};",
        ]
    )
