"""From C text to a loaded library: calls of the compiler, and a content-addressed cache of the libraries.

A library's file name is a hash of everything that it depends on, and its seal shows whether it is complete: a complete
file is valid, and is never rewritten.
"""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import cffi

from codegen.errors import ToolchainError
from codegen.system import forks, processes, waiting
from codegen.system.cache import digest, get_file, private_directory, put_file, sweep, unusable
from codegen.system.files import temporary_name, write_file
from codegen.toolchain import precompiled
from codegen.toolchain.compiler import chosen, find_compiler, identity, is_gcc

logger = logging.getLogger("poly.cache")
"""What the compiler is run for, and what the cache has."""

FLAGS = (
    "-O3",
    "-std=gnu11",
    "-fPIC",
    "-shared",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-Wl,-Bsymbolic",
)
"""Flags of every build. Each operation rounds as IEEE 754 says, but a product and a sum may be fused into one rounding
(-ffp-contract=fast), unless a nest's sums keep their order. Without errno and floating-point traps, a square root is
one instruction and a select needs no branch. A library calls its own functions (-Bsymbolic) even if a kernel has the
name of a C function, such as `index`."""

OPENMP = ("-fopenmp", "-Wl,-z,nodelete")
"""The flags of a library with threads. It stays loaded, since they sleep in code that is otherwise unloaded with it."""


@dataclass(frozen=True)
class Library:
    """A loaded library: cffi's `ffi` and `lib`, its path, and its C text."""

    ffi: cffi.FFI
    lib: Any
    path: Path
    source: str


NOT_BY_GCC = ("-fno-tree-loop-distribution", "-fno-loop-interchange")
"""Schedules distribute and interchange loops themselves, and gcc 12 has miscompiled nests in these passes."""


def every_flag(seconds: float | None = None) -> tuple[str, ...]:
    """The flags of every build by the present compiler.

    Raises ToolchainError if there is none, or if it does not identify itself within `seconds`.
    """
    return (*FLAGS, *NOT_BY_GCC) if is_gcc(seconds) else FLAGS


def load(source: str, cdef: str, flags: tuple[str, ...] = (), seconds: float | None = None) -> Library:
    """Build a C text unless the cache has it, and load the library; `cdef` declares its functions for cffi.

    A file that is damaged or can't be loaded is built again.

    Raises ToolchainError, also if the compiler takes longer than `seconds`.
    """
    threaded = "-fopenmp" in flags
    ffi = cffi.FFI()
    with forks.fork_lock:
        ffi.cdef(cdef + forks.PAUSE * threaded)
    lib, path = _opened(ffi, source, flags, seconds)
    if threaded:
        with forks.fork_lock:
            forks.ends_threads(ffi, lib)
    return Library(ffi, lib, path, source)


def _opened(ffi: cffi.FFI, source: str, flags: tuple[str, ...], seconds: float | None) -> tuple[Any, Path]:
    path = build(source, flags, seconds=seconds)
    try:
        return waiting.opened(ffi, path), path
    except OSError:
        with suppress(OSError):
            path.unlink()
        build(source, flags, seconds=seconds)
    try:
        return waiting.opened(ffi, path), path
    except OSError as error:
        raise ToolchainError(f"the library that the C compiler built cannot be loaded: {error}") from error


def build(
    source: str, flags: tuple[str, ...] = (), directory: Path | None = None, seconds: float | None = None
) -> Path:
    """The shared library for a C text, from the cache if it is there; `flags` follow FLAGS, `-l…` the source.

    Those of the call's toolchain come last. The text is written beside it with the suffix `.c`. Processes that build
    the same library at the same time each write a temporary file and rename it into place. A library not worth keeping
    goes into the caller's `directory`.

    Raises ToolchainError, also if the compiler takes longer than `seconds`.
    """
    compiler, flags = find_compiler(), (*flags, *chosen().flags)
    lasting = directory is None
    every = (*every_flag(seconds), *_options(flags))
    name = digest(source, *every, *_libraries(flags), identity(compiler))
    directory = directory or private_directory("kernels")
    library = directory / f"{name}.so"
    if get_file(library) is not None:
        logger.debug("%s is in the cache", library)
    else:
        sweep(directory)
        began = monotonic()
        text = directory / f"{name}.c"
        _write_text(text, source)
        shortcut = precompiled.options(identity(compiler), every, source)
        made = _compile((*compiler, *every), shortcut, text, _libraries(flags), seconds)
        put_file(library, made, mode=0o700, sync=lasting)
        logger.debug("%s was built in %.2f s from %s", library, monotonic() - began, text)
    return library


def precompile(flags: tuple[str, ...] = ()) -> None:
    """Prepare the compiler for many builds with these flags: each then takes half the time.

    It does nothing if the compiler cannot do so. Raises ToolchainError if there is no compiler.
    """
    compiler, flags = find_compiler(), (*flags, *chosen().flags)
    precompiled.make(compiler, identity(compiler), (*every_flag(), *_options(flags)))


def _write_text(path: Path, source: str) -> None:
    """Write the C text for the compiler and for people; poly never reads it back."""
    try:
        write_file(path, source, mode=0o600, sync=False)
    except OSError as error:
        raise unusable(error) from error


def _compile(
    command: tuple[str, ...], shortcut: tuple[str, ...], text: Path, libraries: tuple[str, ...], seconds: float | None
) -> bytes:
    """The library, built under a temporary name; without `shortcut` if it fails with it."""
    temporary = temporary_name(text.parent)
    rest = ("-o", temporary, str(text), *libraries)
    try:
        try:
            _run((*command, *shortcut, *rest), text, seconds)
        except ToolchainError:
            if not shortcut:
                raise
            _run((*command, *rest), text, seconds)
        return Path(temporary).read_bytes()
    except OSError as error:
        raise unusable(error) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _options(flags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(flag for flag in flags if not flag.startswith("-l"))


def _libraries(flags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(flag for flag in flags if flag.startswith("-l"))


def _run(command: tuple[str, ...], text: Path, seconds: float | None) -> None:
    try:
        done = processes.run(command, seconds, {**os.environ, "LC_ALL": "C"})
    except OSError as error:
        raise ToolchainError(f"the C compiler {command[0]} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(
            f"the C compiler did not end within {error.timeout:g} seconds.\n"
            f"Command: {shlex.join(command)}\nSource: {text}"
        ) from error
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip() or "(nothing)"
        raise ToolchainError(
            f"the C compiler failed with exit status {done.returncode}.\nCommand: {shlex.join(command)}\n"
            f"Source: {text}\nIt said:\n{said}"
        )
