"""The kernels of a header as static functions, for a C file of somebody else's to call.

The text may stand anywhere at file scope. Macros of the file whose names it uses are put aside while it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from codegen.names import c_name
from codegen.package.comments import comment
from codegen.package.header.checks import LIMITS, check, helpers
from codegen.package.header.entry import ALLOCATION, TEAM, checked_call
from codegen.package.header.isas import enumeration
from codegen.package.header.status import status_type
from codegen.package.header.text import LOUD, QUIET, kernels, shortened
from codegen.package.prefix import WORD, prefixed
from codegen.package.values import Header, Routine
from codegen.style import wrapped
from microkernels.dtypes import i64

NEEDS = "__STDC_VERSION__ + 0 >= 199901L && defined(__GNUC__) && defined(__LP64__) && !defined(POLY_PLAIN)"
"""Other compilers, languages and sizes of long, and any with -DPOLY_PLAIN, compile the file without the kernels."""
UNWARNED = ("-Wshadow", "-Wdeclaration-after-statement")
"""Warnings for which the names of the file's variables, and its style, would give a reason in the kernels."""
INCLUDES = "#include <stddef.h>\n#include <stdint.h>\n#include <math.h>"
"""Read before macros are put aside."""

TEAM_SIZE = """#if defined(_OPENMP)
#include <omp.h>
#define PFX_TEAM_SIZE (omp_get_max_threads() < PFX_MAX_THREADS ? omp_get_max_threads() : PFX_MAX_THREADS)
#else
#define PFX_TEAM_SIZE 1
#endif"""
"""The threads of a call."""

EXPANDED = """/* What the preprocessor makes of a text, as a string. */
#define PFX_TEXT(...) #__VA_ARGS__
#define PFX_EXPANDED(...) PFX_TEXT(__VA_ARGS__)"""

APART = """/* Whether a variable shares no bytes with an array. */
#define PFX_APART(value, array, bytes) \\
  ((const char *)&(array) - (const char *)&(value) >= (ptrdiff_t)sizeof(value) || \\
   (double)((const char *)&(value) - (const char *)&(array)) >= (bytes))"""


def inside_text(header: Header, about: str, macros: Collection[str]) -> str:
    """The C text; `macros` are those that may be defined where it stands."""
    checks = [check(routine, header) for routine in header.routines]
    # inlined in the file's functions, the kernels would get the warnings and the options of these
    calls = [checked_call(routine, header, "PFX_NOINLINE", _hidden(routine)) for routine in header.routines]
    team = [TEAM, TEAM_SIZE] if header.threads == "openmp" else []
    code = "\n\n".join(
        [
            LIMITS,
            status_type(),
            enumeration(header.isas),
            QUIET,
            kernels(header, "", public=False),
            ALLOCATION,
            *team,
            helpers("\n".join([*checks, *calls])),
            *checks,
            *calls,
            LOUD,
            EXPANDED,
            APART,
        ]
    )
    code = wrapped(shortened(prefixed(code, header.prefix)).replace("…", "..."))
    hidden = sorted(set(macros) & set(WORD.findall(code)))
    aside = [f'#pragma push_macro("{name}")\n#undef {name}' for name in hidden]
    back = [f'#pragma pop_macro("{name}")' for name in hidden]
    present = f"#define {header.prefix.upper()}_PRESENT"
    quiet = ["#pragma GCC diagnostic push", *(f'#pragma GCC diagnostic ignored "{name}"' for name in UNWARNED)]
    loud = "#pragma GCC diagnostic pop"
    lines = [comment(about), f"#if {NEEDS}", INCLUDES, *aside, *quiet, code, loud, *back, present]
    return "\n".join([*lines, f"#endif /* {NEEDS} */"]) + "\n"


def _hidden(routine: Routine) -> tuple[str, ...]:
    """C that hides from the compiler what the kernel does with data that may be of type `long long`.

    A kernel has it as `long`, by which C doesn't allow to access it: a compiler that knew would move the caller's own
    accesses across the call.
    """
    names = [c_name(buffer.name) for buffer in routine.signature.arrays if buffer.dtype == i64]
    return tuple(f'__asm__ volatile("" : "+r"({name}) : : "memory");' for name in names)


def called(routine: Routine, header: Header, values: Mapping[str, str]) -> str:
    """C text of a call that gets its memory itself, and of the test that it did its work.

    `values` are C texts of sizes, scalars, and pointers to arrays.
    """
    given = [f"(int64_t)({values[size]})" for size in routine.sizes]
    for buffer in routine.signature.buffers:
        pointer = f"({'const ' * (buffer.kind == 'in')}{buffer.dtype.c_name} *)"
        given.append(f"{pointer * (buffer.kind != 'scalar')}{values[buffer.name]}")
    if header.threads != "none":
        given.append(f"{header.prefix.upper()}_TEAM_SIZE")
    return f"{routine.name}_call({', '.join([*given, '1', 'NULL', '0'])}) == {header.prefix.upper()}_OK"
