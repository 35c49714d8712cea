"""The C compiler in words that stay the same for every build of it: `gcc 12.2.0`, `clang 14.0.6 -O2`."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress

from codegen import cache, processes
from codegen.build import find_compiler, identity
from codegen.errors import ToolchainError

FAMILIES = (
    ("clang", ("__clang_major__", "__clang_minor__", "__clang_patchlevel__")),
    ("gcc", ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__")),
)
"""The macros with each family's version. clang defines gcc's too, so it comes first."""


def compiler_name() -> str:
    """Family and version of the compiler that builds, and the options that its command carries.

    The compiler is asked once, and the answer kept where the cache directory can be written.
    Raises ToolchainError where there is no compiler.
    """
    compiler = find_compiler()
    key = f"compiler's name {identity(compiler)}"
    name = cache.get(key)
    if name is None:
        name = " ".join((_ask(compiler), *map(shlex.quote, compiler[1:])))
        with suppress(ToolchainError):
            cache.put(key, name)
    return name


def _ask(compiler: tuple[str, ...]) -> str:
    """Family and version, from the macros that the compiler defines; its file's name where it defines none."""
    command = (*compiler, "-dM", "-E", "-x", "c", os.devnull)
    try:
        done = processes.run(command)
    except OSError as error:
        raise ToolchainError(f"the C compiler {command[0]} cannot be run: {error.strerror}") from error
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    macros = {line[1]: line[2] for line in lines if len(line) == 3}
    for family, names in FAMILIES:
        if names[0] in macros:
            return f"{family} {'.'.join(macros.get(name, '0') for name in names)}"
    return os.path.basename(os.path.realpath(compiler[0]))
