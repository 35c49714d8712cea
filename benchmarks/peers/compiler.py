"""The C compiler: `-O3 -march=native` of the loops as written."""

from __future__ import annotations

import functools
import subprocess

from benchmarks.arrays import Array
from benchmarks.case import Problem
from benchmarks.clock import pointers
from benchmarks.contender import Contender
from benchmarks.problems.loops import LoopsProblem
from codegen.build import load
from codegen.clock import CFunction
from codegen.compiler import find_compiler

FLAGS = ("-O3", "-march=native")


class CompiledLoops:
    """Plain loops, on one thread: a C compiler does not parallelise by itself."""

    name = "gcc"

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        if not isinstance(problem, LoopsProblem) or threads > 1:
            return None
        scalar = {"float32": "float", "float64": "double"}[arrays[0].dtype.name]
        types = (*["int64_t"] * len(problem.sizes), *[f"{scalar} *"] * len(arrays))
        source = f"#include <stdint.h>\n#define T {scalar}\n{problem.c_source}"
        library = load(source, f"void run({', '.join(types)});", FLAGS)
        function = library.ffi.addressof(library.lib, "run")
        arguments = (*(value for _, value in problem.sizes), *pointers(arrays))
        timed = CFunction(function, "void", types, arguments, library).timed()
        result = arrays[problem.written[0]]
        return Contender(self.name, compiler_version(), " ".join(FLAGS), timed, lambda: result)


@functools.cache
def compiler_version() -> str:
    """The first line of the compiler's `--version`."""
    done = subprocess.run([*find_compiler(), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]
