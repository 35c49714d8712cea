"""gcc's precompiled form of <immintrin.h>: reading that header takes longer than compiling a kernel.

Making it takes about four times what it saves in one build, so only who builds many kernels makes it (`make`); whoever
finds it uses it (`options`). The library that comes out is the same, byte for byte.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from codegen.cache import TEMPORARY, cache_dir, digest, private_directory, write_atomically
from codegen.errors import ToolchainError

INCLUDE = "#include <immintrin.h>\n"
SECONDS = 60
"""A compiler that takes longer is given up."""


def options(identity: str, flags: tuple[str, ...], source: str) -> tuple[str, ...]:
    """What to tell the compiler to use the header that was made for it with these flags.

    Nothing where there is none, or where the C text does not include it. `identity` tells compilers apart.
    """
    header = _header(identity, flags)
    return ("-include", str(header)) if INCLUDE in source and _compiled(header).exists() else ()


def make(compiler: tuple[str, ...], identity: str, flags: tuple[str, ...]) -> bool:
    """Precompile the header for later builds; False where that cannot be done, and builds are as before.

    Two processes that make the same write under temporary names, and each renames its own file into place.
    """
    header = _header(identity, flags)
    if _compiled(header).exists():
        return True
    try:
        private_directory("headers")
        write_atomically(header, INCLUDE)
        return _is_gcc(compiler) and _precompile(compiler, flags, header)
    except (OSError, ToolchainError, subprocess.TimeoutExpired):
        return False


def _header(identity: str, flags: tuple[str, ...]) -> Path:
    return cache_dir() / "headers" / f"{digest(identity, *flags)}.h"


def _compiled(header: Path) -> Path:
    """Where gcc looks for a header's precompiled form."""
    return header.with_suffix(".h.gch")


def _is_gcc(compiler: tuple[str, ...]) -> bool:
    """clang has precompiled headers too, but not by this way."""
    command = (*compiler, "-dM", "-E", "-x", "c", os.devnull)
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    return "__GNUC__" in done.stdout and "__clang__" not in done.stdout


def _precompile(compiler: tuple[str, ...], flags: tuple[str, ...], header: Path) -> bool:
    """Whether it went well. Flags for the linker are left out, or gcc links the header."""
    flags = tuple(flag for flag in flags if flag != "-shared" and not flag.startswith("-Wl,"))
    handle, temporary = tempfile.mkstemp(dir=header.parent, prefix=TEMPORARY, suffix=".gch")
    os.close(handle)
    try:
        command = (*compiler, *flags, "-x", "c-header", str(header), "-o", temporary)
        if subprocess.run(command, capture_output=True, timeout=SECONDS).returncode:
            return False
        os.replace(temporary, _compiled(header))
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    return True
