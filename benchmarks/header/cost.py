"""The cost of a header: its compile time, its size, and the machine code of one small kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.case import Case
from benchmarks.header.embedded import Embedded, write
from benchmarks.header.finding import BYTES, CODE, COMPILE, NO_CLANG, GoalFigure
from benchmarks.header.setting import Setting
from benchmarks.header.speed import compiled
from benchmarks.header.workloads import convolution, product
from benchmarks.toolchain import Compiler, code_sizes
from microkernels.dtypes import f32
from microkernels.isa import host
from poly.timing.summary import summarize

TUNED = 512
"""The size for which the tuned product has a special kernel."""
THREADS = 2
"""The threads that it is tuned for."""
SMALL = 16
KILO = 1000
ROUNDS = {False: 7, True: 3}
"""The compilations by each compiler, in the full run and with `--quick` (True)."""


def compile_time(setting: Setting) -> Iterator[GoalFigure]:
    """CPU seconds from a header to an object file: the elapsed time on an idle machine."""
    yield from _compile_times("tuned product", tuned(product(TUNED, f32), setting), setting)
    yield from _compile_times("tuned convolution", tuned(convolution(f32), setting), setting)
    if setting.clang is None:
        yield GoalFigure(COMPILE, "by clang", None, note=NO_CLANG)


def size(setting: Setting) -> Iterator[GoalFigure]:
    """The size of a tuned product's header."""
    count = tuned(product(TUNED, f32), setting).path.stat().st_size
    yield GoalFigure(BYTES, f"product, all sizes and {TUNED}", count / KILO, note=f"{count} bytes")


def code(setting: Setting) -> Iterator[GoalFigure]:
    """The size of the machine code of the kernel for one small product and one instruction set."""
    case, isa = product(SMALL, f32), host().name
    embedded = write([compiled(case, case.sizes)], "small", setting.folder, isas=[isa])
    target = embedded.path.with_suffix(".o")
    setting.host.object(source(embedded), target)
    sizes = code_sizes(target)
    kernel = {name: count for name, count in sizes.items() if isa in name}
    note = f"{', '.join(kernel)}; with checks and all else {sum(sizes.values())} bytes"
    yield GoalFigure(CODE, f"{SMALL}x{SMALL}x{SMALL} {isa}", sum(kernel.values()) / KILO or None, note=note)


def tuned(case: Case, setting: Setting) -> Embedded:
    """A header with all features: a kernel for any size and a special one, instruction sets, strides and threads."""
    prefix = case.workload
    path = setting.folder / f"{prefix}.h"
    kernels = compiled(case, {}, threads=THREADS), compiled(case, case.sizes, threads=THREADS)
    if path.exists():
        return Embedded(path, prefix, kernels)
    return write(kernels, prefix, setting.folder, setting.isas, threads="openmp")


def source(embedded: Embedded) -> Path:
    """A C file with the header's implementation."""
    path = embedded.path.with_suffix(".c")
    path.write_text(embedded.source)
    return path


def _compile_times(what: str, embedded: Embedded, setting: Setting) -> Iterator[GoalFigure]:
    """The times of both compilers in turn, so that other load slows both."""
    file, target = source(embedded), embedded.path.with_suffix(".o")
    samples: dict[Compiler, list[float]] = {compiler: [] for compiler in setting.compilers}
    for _ in range(ROUNDS[setting.quick]):
        for compiler, seconds in samples.items():
            setting.announce(f"{what}: {compiler.version}")
            seconds.append(compiler.object(file, target))
    for compiler, seconds in samples.items():
        time = summarize(seconds)
        yield GoalFigure(COMPILE, f"{what}, {compiler.family}", time.median, time.spread, compiler.version)
