"""Kernels of many schedules built as one library: most of a small build's time is the compiler's start and linking.

Each kernel has a function name of its own. Definitions that two texts share (helpers, microkernels) are written once.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import cffi

from codegen import precompiled
from codegen.build import FLAGS, Library, find_compiler, identity
from codegen.guard import declarations
from poly.kernel import Kernel

QUICK = ("-O1", "-w")
"""The public way builds with -O3; a part of the pairs goes by it."""


class BuildFailed(Exception):
    """The compiler refused a text."""


NUMBERS = count()
"""A library that is loaded must not be written over: each has a file of its own."""


def build(kernels: Sequence[Kernel], directory: Path) -> None:
    """Build the kernels' texts and give each kernel its library, so that it can be called. Raises BuildFailed."""
    texts = [kernel.compiled.source for kernel in kernels]
    flags = tuple(
        dict.fromkeys(flag for kernel in kernels for flag in kernel.compiled.flags if not flag.startswith("-l"))
    )
    path = directory / f"kernels{next(NUMBERS)}.so"
    try:
        _compile([merged(texts)], flags, path)
    except BuildFailed:
        _compile(texts, flags, path)
    for kernel in kernels:
        ffi = cffi.FFI()
        ffi.cdef(declarations(kernel.signature))
        kernel.__dict__["_library"] = Library(ffi, ffi.dlopen(str(path)), path, kernel.compiled.source)


def _compile(texts: Sequence[str], flags: tuple[str, ...], path: Path) -> None:
    files = []
    for number, text in enumerate(texts):
        file = path.with_suffix(f".{number}.c")
        file.write_text(text)
        files.append(str(file))
    compiler = find_compiler()
    options = tuple(flag for flag in (*FLAGS, *flags) if flag != "-O3") + QUICK
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
    """One text of all: what is included first, then each definition once."""
    parts: dict[str, None] = {}
    for text in texts:
        parts.update(dict.fromkeys(definitions(text)))
    includes = [p for p in parts if p.startswith("#include")]
    return "\n".join([*includes, *(p for p in parts if not p.startswith("#include"))]) + "\n"


def definitions(text: str) -> Iterator[str]:
    """The top-level parts of a C text; the guards around microkernels are left out, other directives stay alone."""
    part: list[str] = []
    depth = 0
    comment = False
    guards: list[bool] = []
    for line in text.splitlines():
        if not part and not line.strip():
            continue
        if not comment and depth == 0 and not part and line.startswith("#"):
            if line.startswith("#if"):
                guards.append(line.startswith("#ifndef POLY_"))
            keep = not (guards and guards[-1] and line.startswith(("#ifndef POLY_", "#define POLY_", "#endif")))
            if line.startswith("#endif") and guards:
                guards.pop()
            if keep:
                yield line
            continue
        bare, comment = _without_comments(line, comment)
        if not part and not bare.strip():
            continue
        part.append(line)
        depth += bare.count("{") - bare.count("}")
        if depth == 0 and not comment and bare.rstrip().endswith((";", "}")):
            yield "\n".join(part)
            part = []
    if part:
        yield "\n".join(part)


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
