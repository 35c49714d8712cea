"""What all measurements of a header share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.header.toolchain import Compiler
from benchmarks.runner import Announce, Rounds


@dataclass(frozen=True)
class Setting:
    """Compilers, time to spend, a folder for files, the CPUs to run on; `announce` hears what is done next.

    `host` builds the Python kernels too; `clang` is None where there is none beside gcc. `isas` are the
    instruction sets of headers, all where none are named.
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
