"""gcc's precompiled form of <immintrin.h>: parsing that header takes longer than compiling a kernel.

Precompiling takes about four times what it saves in one build, so it is worth it only for many kernels (`make`); every
build uses the result if there is one (`options`). The library built is the same, byte for byte.
"""

from __future__ import annotations

import functools
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from codegen.errors import ToolchainError
from codegen.system import processes
from codegen.system.cache import cache_dir, digest, get_file, private_directory, put_file, sweep
from codegen.system.files import temporary_name, write_file
from codegen.toolchain.compiler import is_gcc

INCLUDE = "#include <immintrin.h>\n"
SECONDS = 60
"""The compiler's time limit."""


def options(identity: str, flags: tuple[str, ...], source: str) -> tuple[str, ...]:
    """The compiler's options to use the header that was precompiled with these flags.

    There are none if no such header exists, or if the C text does not include it. `identity` tells compilers apart.
    """
    header = _header(identity, flags)
    return ("-include", str(header)) if INCLUDE in source and _is_there(header) else ()


def make(compiler: tuple[str, ...], identity: str, flags: tuple[str, ...]) -> bool:
    """Precompile the header for later builds; False if that fails, which leaves builds as they were.

    Processes that do so at the same time each write a temporary file and rename it into place.
    """
    header = _header(identity, flags)
    if _is_there(header):
        return True
    try:
        sweep(private_directory("headers"))
        write_file(header, INCLUDE, mode=0o600)
        return is_gcc(SECONDS) and _precompile(compiler, flags, header)
    except (OSError, ToolchainError, subprocess.TimeoutExpired):
        return False


def _header(identity: str, flags: tuple[str, ...]) -> Path:
    return cache_dir() / "headers" / f"{digest(identity, *flags)}.h"


def _compiled(header: Path) -> Path:
    """The path at which gcc looks for a header's precompiled form."""
    return header.with_suffix(".h.gch")


def _is_there(header: Path) -> bool:
    """Whether there is a complete precompiled form."""
    try:
        found = os.stat(_compiled(header))
    except OSError:
        return False
    return _is_whole(_compiled(header), found.st_ino, found.st_size, found.st_mtime_ns)


@functools.lru_cache(maxsize=16)
def _is_whole(compiled: Path, *version: int) -> bool:
    """Whether this version of a file is complete: a process reads its tens of megabytes once, not for each build."""
    return get_file(compiled) is not None


def _precompile(compiler: tuple[str, ...], flags: tuple[str, ...], header: Path) -> bool:
    """Whether gcc succeeded. Linker flags are left out, as gcc would link the header."""
    flags = tuple(flag for flag in flags if flag != "-shared" and not flag.startswith("-Wl,"))
    temporary = temporary_name(header.parent)
    try:
        command = (*compiler, *flags, "-x", "c-header", str(header), "-o", temporary)
        if processes.run(command, SECONDS).returncode:
            return False
        put_file(_compiled(header), Path(temporary).read_bytes())
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    return True
