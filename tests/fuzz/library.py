"""Build the kernels of many schedules as one library, since small builds mostly start the compiler and link.

Each kernel has a function name of its own. Definitions that two texts share (helpers, microkernels) are written once.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import cffi

from codegen.calls.guard import declarations
from codegen.toolchain import precompiled
from codegen.toolchain.build import Library, every_flag
from codegen.toolchain.compiler import find_compiler, identity
from poly.kernel import Kernel

LEVELS = {"-Og": 0.7, "-O3": 0.3}
"""The frequencies of optimisation levels. poly's own is -O3, where compilers do most, and have most bugs."""
SMALLER = "-fipa-cp"
"""Builds microkernels in two thirds of the time where a level alone does not have it; -O3 does."""


class BuildFailed(Exception):
    """The compiler rejected a text."""


NUMBERS = count()
"""Numbers for the files of libraries, since a loaded library must not be overwritten."""


def build(kernels: Sequence[Kernel], directory: Path, level: str) -> None:
    """Build the kernels' texts and give each kernel its library, so that it can be called. Raises BuildFailed."""
    texts = [kernel.compiled.library for kernel in kernels]
    flags = tuple(
        dict.fromkeys(flag for kernel in kernels for flag in kernel.compiled.flags if not flag.startswith("-l"))
    )
    path = directory / f"kernels{next(NUMBERS)}.so"
    try:
        _compile([merged(texts)], flags, level, path)
    except BuildFailed:
        _compile(texts, flags, level, path)
    for kernel in kernels:
        ffi = cffi.FFI()
        ffi.cdef(declarations(kernel.signature))
        kernel.__dict__["_library"] = Library(ffi, ffi.dlopen(str(path)), path, kernel.compiled.library)


def _compile(texts: Sequence[str], flags: tuple[str, ...], level: str, path: Path) -> None:
    files = []
    for number, text in enumerate(texts):
        file = path.with_suffix(f".{number}.c")
        file.write_text(text)
        files.append(str(file))
    compiler = find_compiler()
    options = (*(flag for flag in (*every_flag(), *flags) if flag != "-O3"), level, SMALLER, "-w")
    shortcut: tuple[str, ...] = ()
    if any("immintrin.h" in text for text in texts):
        precompiled.make(compiler, identity(compiler), options)
        shortcut = precompiled.options(identity(compiler), options, precompiled.INCLUDE)
    command = [*compiler, *options, *shortcut, "-o", str(path), *files, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    for file in files:
        Path(file).unlink()
    if done.returncode:
        raise BuildFailed(f"{' '.join(command)}\n{done.stderr}")


def merged(texts: Sequence[str]) -> str:
    """All texts as one: the includes first, then each definition once."""
    parts: dict[str, None] = {}
    for text in texts:
        parts.update(dict.fromkeys(definitions(text)))
    includes = [p for p in parts if p.startswith("#include")]
    return "\n".join([*includes, *(p for p in parts if not p.startswith("#include"))]) + "\n"


def definitions(text: str) -> Iterator[str]:
    """The top-level parts of a C text: definitions, directives, and whole blocks from `#if` to `#endif`.

    The guards around microkernels are left out.
    """
    part: list[str] = []
    depth = conditions = 0
    comment = False
    for line in _unguarded(text.splitlines()):
        if not part and not line.strip():
            continue
        bare, comment = _without_comments(line, comment)
        if not part and not bare.strip():
            continue
        part.append(line)
        conditions += bare.startswith("#if") - bare.startswith("#endif")
        depth += bare.count("{") - bare.count("}")
        if depth or comment or conditions:
            continue
        if bare.startswith("#") or bare.rstrip().endswith((";", "}")):
            yield "\n".join(part)
            part = []
    if part:
        yield "\n".join(part)


def _unguarded(lines: Sequence[str]) -> Iterator[str]:
    """The lines without those of `#ifndef POLY_X`, `#define POLY_X`, … `#endif`."""
    guards: list[str] = []
    for line in lines:
        if line.startswith("#if"):
            guards.append(line.removeprefix("#ifndef ") if line.startswith("#ifndef POLY_") else "")
        guard = guards[-1] if guards else ""
        if not guard or line not in (f"#ifndef {guard}", f"#define {guard}", "#endif"):
            yield line
        if line.startswith("#endif") and guards:
            guards.pop()


def _without_comments(line: str, inside: bool) -> tuple[str, bool]:
    """A line's code, and whether a comment goes on after it."""
    code = ""
    while line:
        if inside:
            _, ended, line = line.partition("*/")
            inside = not ended
        else:
            before, opened, line = line.partition("/*")
            code += before
            inside = bool(opened)
    return code.partition("//")[0], inside
