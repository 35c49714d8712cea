"""The text of the whole file."""

from __future__ import annotations

import re

from codegen.c import used_helpers
from codegen.package.comments import filled_comments
from codegen.package.header.checks import LIMITS
from codegen.package.header.contract import contract
from codegen.package.header.dispatch import dispatch
from codegen.package.header.entry import functions, prototypes
from codegen.package.header.isas import PUBLIC, choice, enumeration
from codegen.package.header.macros import BOUNDS, OPENMP, PTHREADS, definitions
from codegen.package.header.sections import features, intrinsics, sections
from codegen.package.header.selftest import selftest
from codegen.package.header.status import status_text, status_type
from codegen.package.items import items, renamed
from codegen.package.prefix import prefixed
from codegen.package.values import Header
from codegen.style import wrapped

COMMON = """/* A status in words. */
const char *pfx_status_text(pfx_status status);
/* What calls run on now. */
pfx_isa pfx_isa_in_use(void);
/* From now on, in every thread; AUTO leaves it to the CPU again. PFX_UNSUPPORTED_ISA where it cannot run. */
pfx_status pfx_force_isa(pfx_isa isa);"""

QUIET = """#if defined(__clang__) /* it warns of loops where vectors would not pay, or a sanitizer's check stands */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif"""
LOUD = """#if defined(__clang__)
#pragma clang diagnostic pop
#endif"""

END = "#endif /* PFX_H */"
"""Below the contract and the declarations."""


def header_text(header: Header) -> str:
    """The C text: the same values give the same bytes."""
    return framed(header.prefix, contract(header), declarations(header), implementation(header))


def framed(prefix: str, about: str, public: str, code: str) -> str:
    """A file of one prefix: a comment, declarations, and code that is compiled if PFX_IMPLEMENTATION is defined."""
    parts = [
        about,
        "#ifndef PFX_H\n#define PFX_H\n\n#include <stdint.h>",
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        public,
        "#ifdef __cplusplus\n}\n#endif",
        END,
        "#if defined(PFX_SELFTEST) && !defined(PFX_IMPLEMENTATION)\n#define PFX_IMPLEMENTATION\n#endif",
        "#if defined(PFX_IMPLEMENTATION) && !defined(PFX_IMPLEMENTED)\n#define PFX_IMPLEMENTED",
        QUIET,
        code,
        LOUD,
        "#endif /* PFX_IMPLEMENTATION */",
    ]
    text = shortened(prefixed("\n\n".join(parts), prefix, public)).replace("…", "...")
    declared, end, rest = text.partition(prefixed(END, prefix))
    return wrapped(filled_comments(declared) + end + rest) + "\n"


def shortened(text: str) -> str:
    """A text indented by two spaces instead of four, which makes the file smaller."""
    return re.sub(r"^(?:    )+(?! )", lambda found: " " * (len(found[0]) // 2), text, flags=re.MULTILINE)


def declarations(header: Header) -> str:
    """Types and prototypes."""
    return "\n\n".join([common(header), *(prototypes(routine, header) for routine in header.routines)])


def common(header: Header) -> str:
    """The declarations of every header."""
    return "\n\n".join(
        [
            f'#define PFX_VERSION "{header.version}"',
            LIMITS,
            status_type(),
            enumeration(header.isas),
            COMMON,
        ]
    )


def implementation(header: Header) -> str:
    """Everything else."""
    tests = selftest(header)
    parts = [
        kernels(header, tests),
        functions(header),
        f"#if defined(PFX_SELFTEST)\n{tests}\n#endif /* PFX_SELFTEST */",
    ]
    return "\n\n".join(part for part in parts if part)


def kernels(header: Header, tests: str, public: bool = True) -> str:
    """The kernels by instruction set, and for each routine the functions that choose among them.

    The macros that they need come first, with those of the self-test's text. If `public`, a caller can ask for the
    choice, and force it.
    """
    made = sections(header)
    code = "".join(one.text for one in made)
    functions_of = {variant: name for one in made for variant, name in one.functions.items()}
    calls = "\n\n".join(dispatch(routine, header.isas, functions_of) for routine in header.routines)
    shared = items(used_helpers(calls))
    names = {name: f"pfx_{name}" for item in shared for name in item.names}
    parts = [
        "#include <math.h>\n#include <stddef.h>",
        features(header.isas),
        intrinsics(header.isas),
        definitions(code + tests),
        BOUNDS,
        _runtime(header, code),
        *(one.text for one in made),
        *([status_text()] if public else []),
        choice(header.isas),
        *([PUBLIC] if public else []),
        *(renamed(item, names).text.strip() for item in shared),
        *(renamed(item, names).text.strip() for item in items(calls)),
    ]
    return "\n\n".join(part for part in parts if part)


def _runtime(header: Header, code: str) -> str:
    """The C text that the parallel loops in the code need."""
    if header.threads == "pthreads" and "pfx_parallel(" in code:
        return PTHREADS
    return OPENMP if header.threads == "openmp" and "pfx_thread(" in code else ""
