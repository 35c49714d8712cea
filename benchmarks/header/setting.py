"""The setting that all measurements of a header share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.runner import Announce, Rounds
from benchmarks.toolchain import Compiler


@dataclass(frozen=True)
class Setting:
    """Compilers, time to spend, a folder for files, and the CPUs to run on; `announce` is called with each step.

    `host` builds the Python kernels too; `clang` is a second compiler besides gcc, if there is one. `isas` are the
    headers' instruction sets (None: all).
    """

    host: Compiler
    clang: Compiler | None
    budget: Rounds
    quick: bool
    folder: Path
    cpus: tuple[int, ...]
    announce: Announce
    isas: tuple[str, ...] | None = None

    @property
    def compilers(self) -> tuple[Compiler, ...]:
        return (self.host, self.clang) if self.clang else (self.host,)
