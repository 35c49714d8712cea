"""C compilers as users call them; a header by `cc -O2 -std=c99`, and no other flag."""

from __future__ import annotations

import functools
import re
import resource
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contender import Failed
from codegen.toolchain.compiler import find_compiler

FLAGS = ("-O2", "-std=c99")
SHARED = ("-fPIC", "-shared")
CLANGS = ("clang", *(f"clang-{version}" for version in range(30, 10, -1)))
"""The names of clang on a PATH: the default one, then the newest first."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler's command, and its version."""

    command: tuple[str, ...]

    @functools.cached_property
    def version(self) -> str:
        done = subprocess.run([*self.command, "--version"], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[0]

    @property
    def family(self) -> str:
        return "clang" if "clang" in self.version else "gcc"

    def run(self, *arguments: str | Path) -> float:
        """Compile, and return the CPU seconds that it took. Raises Failed with the compiler's message."""
        start = _children()
        done = subprocess.run([*self.command, *map(str, arguments)], capture_output=True, text=True, errors="replace")
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            raise Failed(f"{' '.join(self.command)} failed: {(errors or ['(it did not say why)'])[0]}")
        return _children() - start

    def object(self, source: Path, target: Path, *flags: str) -> float:
        """Make an object file, and return the CPU seconds that it took."""
        return self.run(*FLAGS, *flags, "-c", source, "-o", target)

    def shared(self, source: Path, target: Path) -> None:
        """Make a shared library."""
        self.run(*FLAGS, *SHARED, source, "-o", target, "-lm")

    def program(self, sources: Iterable[Path], target: Path, *libraries: str | Path) -> None:
        """Make a program from sources and objects."""
        self.run(*FLAGS, *sources, "-o", target, *libraries, "-lm")


def host() -> Compiler:
    """The compiler that builds kernels. Raises ToolchainError if there is none."""
    return Compiler(find_compiler())


def clang(name: str | None = None) -> Compiler | None:
    """The clang of this name, or the first of CLANGS; None if it is not installed."""
    found = next(filter(None, map(shutil.which, (name,) if name else CLANGS)), None)
    return Compiler((found,)) if found else None


def _children() -> float:
    """The CPU seconds of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def code_sizes(program: Path) -> dict[str, int]:
    """The bytes of each function in an object file, by name. Raises Failed if binutils' nm is missing."""
    if shutil.which("nm") is None:
        raise Failed("binutils' nm is not installed")
    done = subprocess.run(["nm", "-S", str(program)], capture_output=True, text=True, check=True)
    lines = re.findall(r"^[0-9a-f]+ ([0-9a-f]+) [tT] (\S+)$", done.stdout, re.MULTILINE)
    return {name: int(size, 16) for size, name in lines}
