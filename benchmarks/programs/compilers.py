"""Compilers as peers: each gets the loops as written, and nothing else."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender, Failed, NotInstalled
from benchmarks.problems.c_call import as_written
from benchmarks.problems.c_text import c_text
from benchmarks.toolchain import CLANGS, Compiler
from microkernels.isa import ISA
from poly.ir.nest import Nest
from poly.machine import machine

FAST = "-fast"
"""Ends the name of a peer with `-ffast-math`."""
OPTIMISED = ("-O3",)
TRIAL = "int f(int n) { return n; }\n"
POLYCC = "polycc"
PATIENCE = 30
"""Seconds for a source-to-source compiler."""
TIMED_OUT = 124
"""The exit status of `timeout`, which ends a script's children, too."""


def _mllvm(*options: str) -> tuple[str, ...]:
    return tuple(word for option in options for word in ("-mllvm", option))


@dataclass(frozen=True)
class Toolchain:
    """A way to compile: the programs to look for, in order, its flags, and those for a number of threads.

    `source_to_source` is a compiler whose output these programs compile.
    """

    programs: tuple[str, ...]
    flags: tuple[str, ...] = ()
    threaded: tuple[str, ...] = ()
    source_to_source: str | None = None

    def of_threads(self, threads: int) -> tuple[str, ...]:
        return tuple(flag.format(threads=threads) for flag in self.threaded) if threads > 1 else ()


GRAPHITE = ("-fgraphite-identity", "-floop-nest-optimize")
PARALLEL_GCC = ("-ftree-parallelize-loops={threads}",)
PARALLEL_POLLY = (*_mllvm("-polly-parallel", "-polly-num-threads={threads}"), "-lgomp")
TOOLCHAINS: Mapping[str, Toolchain] = {
    "gcc": Toolchain(("gcc",), (), PARALLEL_GCC),
    "graphite": Toolchain(("gcc",), GRAPHITE, ("-floop-parallelize-all", *PARALLEL_GCC)),
    "clang": Toolchain(CLANGS),
    "polly": Toolchain(CLANGS, _mllvm("-polly"), PARALLEL_POLLY),
    "polly-stripmine": Toolchain(CLANGS, _mllvm("-polly", "-polly-vectorizer=stripmine"), PARALLEL_POLLY),
    "pluto": Toolchain(("gcc",), (), ("-fopenmp",), POLYCC),
}
"""The compilers, by the names of their peers."""


@dataclass(frozen=True)
class CompilerPeer:
    """A compiler on the loops of a case as written, as a solver for a worker: `-O3` for the CPU or an instruction set.

    `-ffast-math` follows if `fast`.
    """

    kind: str
    fast: bool = False
    isa: ISA | None = None

    @property
    def name(self) -> str:
        return self.kind + FAST * self.fast

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender:
        """Compile the case's loops. Raises NotInstalled, and Failed with the compiler's message."""
        toolchain = TOOLCHAINS[self.kind]
        compiler = installed(self.kind)
        flags = (
            *OPTIMISED,
            *self._cpu,
            *toolchain.flags,
            *("-ffast-math",) * self.fast,
            *toolchain.of_threads(threads),
        )
        os.environ["OMP_NUM_THREADS"] = str(threads)
        by_pluto = (partial(transformed, threads=threads),) if toolchain.source_to_source else ()
        nest = case.nest().with_sizes(case.sizes)
        function = as_written(nest, arrays, compiler, flags, *by_pluto)
        config = " ".join(filter(None, (toolchain.source_to_source, *flags)))
        result = arrays[case.problem.written[0]]
        return Contender(self.name, compiler.version, config, function.timed(), lambda: result)

    @property
    def _cpu(self) -> tuple[str, ...]:
        own = self.isa is None or self.isa == machine().isa
        return ("-march=native",) if own or self.isa is None else self.isa.flags


def peers(isa: ISA) -> dict[str, CompilerPeer]:
    """All compilers, without and with fast-math, by the peers' names."""
    made = (CompilerPeer(kind, fast, isa) for kind in TOOLCHAINS for fast in (False, True))
    return {peer.name: peer for peer in made}


@functools.cache
def installed(kind: str) -> Compiler:
    """The first compiler of a kind that takes its flags. Raises NotInstalled."""
    toolchain = TOOLCHAINS[kind]
    if toolchain.source_to_source and shutil.which(toolchain.source_to_source) is None:
        raise NotInstalled(f"{toolchain.source_to_source} is not on the PATH")
    for compiler in _found(toolchain.programs):
        try:
            _try(compiler, toolchain.flags)
            return compiler
        except Failed:
            continue
    raise NotInstalled(f"no {toolchain.programs[0]} here takes {' '.join(toolchain.flags) or 'C'}")


def _found(programs: tuple[str, ...]) -> Iterator[Compiler]:
    for program in programs:
        path = shutil.which(program)
        if path:
            yield Compiler((path,))


def _try(compiler: Compiler, flags: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(prefix="poly-compiler-") as folder:
        source = Path(folder) / "trial.c"
        source.write_text(TRIAL)
        compiler.run(*OPTIMISED, *flags, "-c", source, "-o", Path(folder) / "trial.o")


def transformed(nest: Nest, folder: Path, threads: int) -> str:
    """What Pluto makes of a nest, with its promise of independence as gcc spells it. Raises Failed with its message.

    It loses declarations between the loops. It takes sizes that have names as open, and minutes for some stencils;
    given numbers it is fast there, but wrong on two more kernels.
    """
    for numbers in (False, True):
        try:
            text = _by_pluto(c_text(nest, locals_first=True, numbers=numbers), folder, threads)
            return text.replace("#pragma ivdep", "#pragma GCC ivdep")
        except subprocess.TimeoutExpired:
            continue
    raise Failed(f"{POLYCC} takes more than {PATIENCE} seconds")


def _by_pluto(text: str, folder: Path, threads: int) -> str:
    source, target = folder / "scop.c", folder / "scop.pluto.c"
    source.write_text(text)
    threaded = "--parallel" if threads > 1 else "--noparallel"
    command = ("timeout", str(PATIENCE), POLYCC, "--tile", threaded, str(source), "-o", str(target))
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    if done.returncode == TIMED_OUT:
        raise subprocess.TimeoutExpired(POLYCC, PATIENCE)
    if done.returncode or not target.exists():
        said = (done.stderr.strip() or done.stdout.strip() or "(nothing)").splitlines()[-1]
        raise Failed(f"{POLYCC} failed: {said}")
    return target.read_text()
