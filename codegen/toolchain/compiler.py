"""The C compiler in use, and its name: that of the call (`using`), of the environment, or the first that is found."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from codegen.errors import ArgumentError, ToolchainError
from codegen.system import cache, processes
from microkernels.errors import shown

FAMILIES = (
    ("clang", ("__clang_major__", "__clang_minor__", "__clang_patchlevel__")),
    ("gcc", ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__")),
)
"""The macros with each family's version. clang defines gcc's too, so clang comes first."""


@dataclass(frozen=True)
class Toolchain:
    """What a caller chose: a compiler's command, or () for the usual one, and flags that follow all others."""

    compiler: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


USUAL = Toolchain()
_CHOSEN: ContextVar[Toolchain] = ContextVar("toolchain", default=USUAL)
OTHER_OUTPUT = ("-c", "-E", "-S", "-M", "-MM", "-o", "-fsyntax-only")
"""Flags with which a compiler makes no library where it is expected."""


def toolchain(compiler: Any = None, flags: Any = ()) -> Toolchain:
    """The toolchain of a caller's arguments: a command, as a text split as in a shell or as its words, and flags.

    Raises ArgumentError if they are something else.
    """
    command = _listed(compiler) if compiler is not None else ()
    if compiler is not None and not command:
        raise ArgumentError(f"compiler must be a command such as 'clang-19', not {shown(compiler)}.")
    if isinstance(flags, str) or not isinstance(flags, Sequence):
        raise ArgumentError(f"flags must be a list of texts such as ['-O2'], not {shown(flags)}.")
    for flag in flags:
        if not _is_word(flag) or not flag.startswith("-") or flag in OTHER_OUTPUT:
            raise ArgumentError(f"{shown(flag)} is no flag for building a library: expected such as '-O2' or '-lm'.")
    return Toolchain(command, tuple(flags))


def _listed(compiler: Any) -> tuple[str, ...]:
    """The words of a command; none if it is no command."""
    if isinstance(compiler, str):
        try:
            compiler = shlex.split(compiler)
        except ValueError:
            return ()
    return tuple(compiler) if isinstance(compiler, Sequence) and all(map(_is_word, compiler)) else ()


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable()


def chosen() -> Toolchain:
    """The toolchain of the present call."""
    return _CHOSEN.get()


@contextmanager
def using(wanted: Toolchain) -> Iterator[None]:
    """Build with this toolchain inside the context; the usual one leaves an outer context's."""
    token = _CHOSEN.set(chosen() if wanted == USUAL else wanted)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def find_compiler() -> tuple[str, ...]:
    """The C compiler's command: that of the call, else POLY_CC, CC, or the first of cc, gcc and clang on the PATH.

    Raises ToolchainError if there is none.
    """
    given = chosen().compiler
    if given:
        program = shutil.which(given[0])
        if program is None:
            raise ToolchainError(
                f"the C compiler {shown(given[0])} was not found. Give another compiler=, or leave it out to use the "
                "usual one."
            )
        return (program, *given[1:])
    for variable in ("POLY_CC", "CC"):
        command = _words(variable)
        if command:
            program = shutil.which(command[0])
            if program is None:
                raise ToolchainError(
                    f"the C compiler {shown(command[0])} that {variable} names was not found. "
                    f"Correct {variable}, or unset it to use cc, gcc or clang."
                )
            return (program, *command[1:])
    for name in ("cc", "gcc", "clang"):
        program = shutil.which(name)
        if program is not None:
            return (program,)
    raise ToolchainError(
        "no C compiler was found: neither cc, gcc nor clang is on the PATH. "
        "Install gcc or clang, or set POLY_CC to a compiler."
    )


def _words(variable: str) -> list[str]:
    """The words of an environment variable, split as in a shell; none if it isn't set. Raises ToolchainError."""
    text = os.environ.get(variable, "")
    try:
        return shlex.split(text)
    except ValueError as error:
        problem = f"{variable} is no command: {shown(text)} ({error})"
        raise ToolchainError(f"{problem}. Correct {variable}, or unset it to use cc, gcc or clang.") from error


def identity(compiler: tuple[str, ...]) -> str:
    """A text that changes with the compiler behind a command: the resolved path, its size and time, and the options."""
    real = os.path.realpath(compiler[0])
    found = os.stat(real)
    return shlex.join((real, str(found.st_size), str(found.st_mtime_ns), *compiler[1:]))


def compiler_name(seconds: float | None = None) -> str:
    """The compiler's family and version, and the options of its command and call: `gcc 12.2.0`, `clang 14.0.6 -O2`.

    The name is the same for all builds of a compiler version. The compiler is asked once, and the answer is kept if the
    cache directory can be written.
    Raises ToolchainError if there is no compiler, or if it takes longer than `seconds` to answer.
    """
    compiler = find_compiler()
    key = f"compiler's name {identity(compiler)}"
    name = cache.get(key)
    if name is None:
        name = " ".join((_ask(compiler, seconds), *map(shlex.quote, compiler[1:])))
        with suppress(ToolchainError):
            cache.put(key, name)
    return " ".join((name, *map(shlex.quote, chosen().flags)))


def is_gcc(seconds: float | None = None) -> bool:
    """Whether the compiler is gcc, and not clang, which defines gcc's macros too. Raises as `compiler_name`."""
    return compiler_name(seconds).startswith("gcc ")


def _ask(compiler: tuple[str, ...], seconds: float | None) -> str:
    """Family and version, from the macros that the compiler defines; its file's name if it defines none of them."""
    command = (*compiler, "-dM", "-E", "-x", "c", os.devnull)
    try:
        done = processes.run(command, seconds)
    except OSError as error:
        raise ToolchainError(f"the C compiler {command[0]} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        problem = f"the C compiler did not end within {error.timeout:g} seconds.\nCommand: {shlex.join(command)}"
        raise ToolchainError(problem) from error
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    macros = {line[1]: line[2] for line in lines if len(line) == 3}
    for family, names in FAMILIES:
        if names[0] in macros:
            return f"{family} {'.'.join(macros.get(name, '0') for name in names)}"
    return os.path.basename(os.path.realpath(compiler[0]))
