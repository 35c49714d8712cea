"""The names of a nest as C identifiers."""

from __future__ import annotations

import re

KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof""".split()
)
FUNCTIONS = frozenset("exp expf sqrt sqrtf tanh tanhf fabs fabsf omp_get_thread_num imin imax floord align64 main".split())
VARIABLES = frozenset("threads workspace shared mine INFINITY NULL unix linux".split())
RESERVED = KEYWORDS | FUNCTIONS | VARIABLES


def c_name(name: str) -> str:
    """The C identifier for a size, array, scalar or loop: the name, with `_` appended where C or the generated code needs it.

    Different names stay different: `double` becomes `double_`, `double_` becomes `double__`.
    """
    return name + "_" if name.rstrip("_") in RESERVED else name


def fresh(name: str, taken: frozenset[str]) -> str:
    """`name` as a C identifier, numbered where it is taken: `i`, `i_2`, `i_3`."""
    base = c_name(re.sub(r"\W", "_", name))
    candidate, count = base, 1
    while candidate in taken:
        count += 1
        candidate = f"{base}_{count}"
    return candidate
