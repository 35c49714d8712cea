"""The names of a header's functions: all with one prefix, none declared twice, none reserved in C."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codegen.names import function_name
from microkernels.dtypes import bf16, f16
from microkernels.errors import shown
from poly.errors import SpecError
from poly.ir.nest import Nest

LONGEST = 200
"""The most characters of a prefix, which begins some hundreds of names in a header."""
OWN = ("status", "isa", "status_text", "isa_in_use", "force_isa")
"""The names, after the prefix, that every header declares."""
PLACEHOLDER = "pfx_"
"""The prefix of a header's names before its own prefix is inserted."""
DECLARED = (
    "", "_with_workspace", "_workspace_size", "_call", "_sizes", "_check", "_lookups", "_select", "_need", "_most",
    "_run",
)  # fmt: skip
"""The suffixes of the names that are declared for each function."""


def checked_prefix(name: str) -> str:
    """The prefix, unchanged. Raises SpecError if it is not valid."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise SpecError(
            f"{shown(name)} cannot begin names in C: a prefix is letters, digits and _, and begins with a letter."
        )
    if len(name) > LONGEST:
        raise SpecError(f"the prefix {shown(name)} has {len(name)} characters: give one of at most {LONGEST}.")
    return name


def checked_version(version: object) -> str:
    """The version of a package, unchanged. Raises SpecError if installers would not read it."""
    if not isinstance(version, str) or not re.fullmatch(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?", version):
        raise SpecError(f"{shown(version)} is no version: give one such as 1.0.")
    return version


def check_numbers(nest: Nest) -> None:
    """Check that a nest takes no number of half precision, which C cannot pass. Raises SpecError."""
    halves = [array.name for array in nest.arrays if array.kind == "scalar" and array.dtype in (f16, bf16)]
    if halves:
        raise SpecError(f"{nest.name}: {', '.join(halves)} of half precision, which C cannot pass: make it f32.")


def check_arguments(nest: Nest, prefix: str) -> None:
    """Check that a nest has a result, and that its names can't clash with the header's own functions and macros.

    Raises:
        SpecError: says what is wrong, and what to do.
    """
    if not any(array.kind == "array" and array.name in nest.written for array in nest.arrays):
        raise SpecError(
            f"{nest.name} writes none of its arguments, so a function in C would do nothing. Remedy: make an array "
            "that it writes an argument."
        )
    for name in (*nest.sizes, *(array.name for array in nest.arrays)):
        if name.lower().startswith((f"{prefix.lower()}_", PLACEHOLDER)):
            raise SpecError(
                f"{nest.name}: {name} begins as the header's own names do: rename it, or give another prefix."
            )


def function_names(nests: Sequence[str], prefix: str) -> tuple[str, ...]:
    """The functions' names: `PREFIX_nest`, and just `PREFIX` for a nest with that name.

    Raises:
        SpecError: two functions would have the same name, or one would have a name that is reserved in C.
    """
    names = tuple(prefix if nest == prefix else f"{prefix}_{nest}" for nest in nests)
    taken = [f"{prefix}_{name}" for name in OWN]
    for name in names:
        if function_name(name) != name:
            raise SpecError(f"C has a function or word {name} of its own: give a prefix.")
        for declared in (name + suffix for suffix in DECLARED):
            if declared in taken:
                raise SpecError(f"the header would declare {declared} twice: rename a nest, or give another prefix.")
            taken.append(declared)
    return names
