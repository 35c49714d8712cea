"""The self-test of a header: a program that checks every kernel against the plain loops, and measures it.

Most of it is fixed C text, in the files `c/try_*.h`. Between these stands what depends on the header: the plain loops,
and for each routine its arrays, its trials and its calls. It is a program and not a library, so its names begin with
`try_` and not with the header's prefix.
"""

from __future__ import annotations

from codegen.package.header.isas import constant
from codegen.package.header.macros import replaced
from codegen.package.header.sections import level
from codegen.package.selftest import halves, part, plain_loops
from codegen.package.selftest_routine import entry, routine_text
from codegen.package.values import Header

GENERAL = ("call", "speed")
"""The C files that do not depend on the header's routines, in order."""

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
    """The C text: it follows the implementation, and defines `main`."""
    parts = [
        INCLUDES,
        _settings(header),
        replaced(plain_loops(header.routines)),
        part("arrays"),
        *(part(name, "header") for name in GENERAL),
        *(routine_text(routine, header) for routine in header.routines),
        _tables(header),
        part("main", "header"),
    ]
    return "\n\n".join(parts)


def _settings(header: Header) -> str:
    """The header's constants for the C files: the largest counts of any routine, and texts."""
    routines = header.routines
    ranks = [len(b.shape) for routine in routines for b in routine.signature.arrays]
    title = f"{', '.join(routine.name for routine in routines)}, made by poly {header.version}"
    values = {
        "GUARD": 128,
        "RANK": max((2, *ranks)),  # with 1, gcc warns about code for two dimensions
        "ARRAYS": max(len(routine.signature.arrays) for routine in routines),
        "SIZES": max(len(routine.sizes) for routine in routines) or 1,
        "ROUTINES": len(routines),
        "ISAS": len(header.isas),
        "WIDTH": max(len(routine.name) for routine in routines),
        "THREADS": int(header.threads != "none"),
        "TEAMS": f'"{TEAMS[header.threads]}"',
        "TITLE": f'"{title.rstrip()}"',
    }
    defined = (f"#define TRY_{name} {value}" for name, value in values.items())
    return "\n".join([*defined, *halves(routines), COMPILER])


def _tables(header: Header) -> str:
    """The instruction sets and the routines, as C arrays."""
    isas = "".join(f'    {{{constant(isa)}, "{level(isa)}"}},\n' for isa in header.isas)
    rows = "".join(f"    {{{entry(routine)}}},\n" for routine in header.routines)
    return "\n".join(
        [
            f"static const struct {{ pfx_isa isa; const char *name; }} try_isas[] = {{\n{isas}}};",
            "",
            f"static const try_routine try_routines[] = {{\n{rows}}};",
        ]
    )
