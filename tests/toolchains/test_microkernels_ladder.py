"""Every kernel, ISA, type and edge against plain loops; see microkernel_harness.py for how it is checked."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
from headers import GCC, need_isa, need_tool, quick
from microkernel_harness import (
    BESIDE,
    GEMM_CHECK,
    GEMM_CLIMB,
    GEMV,
    PACK,
    SCATTER,
    beside_wrapper,
    custom_check,
    pack_wrappers,
    program,
    words_check,
    wrappers,
)
from own_kernels import lessons

from microkernels.catalogue import fits, gemm, gemv_source, pack_source, scatter_source
from microkernels.ctext import Elements
from microkernels.custom_kernel import CustomKernel
from microkernels.dot import DotProduct, dots, holds
from microkernels.dtypes import DType, f32, f64, i8, i16, i32, u8
from microkernels.isa import ISA, ISAS

TILES = {
    "avx512": ((6, 4), (14, 2), (28, 1)),
    "avx2": ((6, 2), (4, 3), (12, 1)),
    "neon": ((8, 2), (6, 4), (1, 3)),
    "portable": ((6, 2), (3, 3), (1, 1)),
}
WIDTHS = {"avx512": (6, 14, 16, 48, 72), "avx2": (6, 8, 24), "neon": (6, 8, 12), "portable": (6, 8, 12)}
CASES = [pytest.param(isa, dtype, id=f"{isa.name}-{dtype}") for isa in ISAS.values() for dtype in (f32, f64)]
SUMS = [*CASES, *(pytest.param(isa, i32, id=f"{isa.name}-i32") for isa in ISAS.values())]
DOTS = [pytest.param(isa, dot, id=f"{isa.name}-{dot.name}") for isa in ISAS.values() for dot in dots(isa, i32)]


def tools(isa: ISA) -> tuple[str, list[str]]:
    """The compiler, and what runs its programs."""
    cross = isa.name == "neon" and not isa.runs_here()
    compiler = "aarch64-linux-gnu-gcc" if cross else "gcc"
    runner = ["qemu-aarch64"] if cross else []
    for tool in [compiler, *runner]:
        need_tool(tool)
    if not cross:
        need_isa(isa)
    return compiler, runner


def run(isa: ISA, text: str, folder: Path, optimised: bool = False) -> int:
    """Compile and run a test program; the number of checks it made.

    The same text of other types isn't optimised: compilers then take a quarter of the time.
    """
    compiler, runner = tools(isa)
    source, binary = folder / "ladder.c", folder / "ladder"
    source.write_text(text)
    static = ["-static"] if runner else []
    level = ["-O2"] if optimised else quick(GCC)
    flags = ["-std=gnu11", *level, "-Wall", "-Werror", *isa.flags, *static]
    subprocess.run([compiler, *flags, str(source), "-o", str(binary), "-lm"], check=True)
    done = subprocess.run([*runner, str(binary)], capture_output=True, text=True)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    match = re.search(r"(\d+) checks, 0 failures", done.stdout)
    assert match, done.stdout
    return int(match[1])


@pytest.mark.parametrize(("isa", "dtype"), SUMS)
def test_gemm_at_every_edge(isa: ISA, dtype: DType, tmp_path: Path) -> None:
    tiles = TILES[isa.name] if dtype.is_float else TILES[isa.name][:1]
    kernels = [gemm(isa, dtype, *tile) for tile in tiles if fits(isa, *tile, dtype)]
    calls = [f'climb_gemm("{k.c_name}", run_{k.c_name}, {k.rows}, {k.columns});' for k in kernels]
    checks = GEMM_CHECK + GEMM_CLIMB + "".join(map(wrappers, kernels))
    text = program(isa, dtype, [k.source() for k in kernels], checks, calls)
    least = sum(k.rows * k.columns * 6 for k in kernels)
    assert run(isa, text, tmp_path, optimised=dtype == f32) > least


@pytest.mark.parametrize("kernel", lessons(), ids=str)
def test_a_users_microkernel_at_every_edge(kernel: CustomKernel, tmp_path: Path) -> None:
    """Those of the lesson, by the same harness: NaN around the operands, results bit for bit elsewhere, guard pages."""
    text = program(kernel.isa, kernel.dtype, [kernel.source()], custom_check(kernel), ["climb_custom();"])
    assert run(kernel.isa, text, tmp_path) >= 8 * prod(kernel.tile.values())


def test_the_ladder_sees_a_user_write_beside_the_tile(tmp_path: Path) -> None:
    """As all others do, a kernel fails that writes behind a row, or reads a column too many."""
    (kernel,) = (kernel for kernel in lessons() if kernel.family == "dot4")
    for change in (("+= four", "= four"), ("+= four", "+= C[i * C_i + j + 1] = four"), ("a[3] * b[3]", "a[4] * b[3]")):
        broken = replace(kernel, text=kernel.text.replace(*change))
        assert broken != kernel
        text = program(kernel.isa, kernel.dtype, [broken.source()], custom_check(kernel), ["climb_custom();"])
        with pytest.raises(AssertionError, match="exit"):
            run(kernel.isa, text, tmp_path)


@pytest.mark.parametrize(("isa", "dot"), DOTS)
def test_words_at_every_edge(isa: ISA, dot: DotProduct, tmp_path: Path) -> None:
    """Elements of the least and greatest values among others, in panels of words: every sum is exact."""
    kernel = gemm(isa, i32, *TILES[isa.name][0], dot)
    need_isa(kernel.isa)
    narrower = [own for own in (i8, u8, i16) if holds(dot.left, own)]
    pairs = [(own, narrower[-1 - at] if dot.left == dot.right else dot.right) for at, own in enumerate(narrower)]
    packs = {(side, own) for pair in pairs for side, own in zip(("left", "right"), pair, strict=True)}
    sources = [
        pack_source(isa, i32, elements=Elements(own, dot.words(side), dot)) for side, own in sorted(packs, key=str)
    ]
    checks = "".join(words_check(kernel, *pair) for pair in pairs)
    calls = [f"climb_{left}_{right}();" for left, right in pairs]
    text = program(isa, i32, [kernel.source(), *sources], checks, calls)
    assert run(kernel.isa, text, tmp_path, optimised=(isa, dot) == DOTS[0].values) > 500


@pytest.mark.parametrize(("isa", "dtype"), SUMS)
def test_gemm_with_known_sizes(isa: ISA, dtype: DType, tmp_path: Path) -> None:
    rows, vectors = TILES[isa.name][0]
    kernel = gemm(isa, dtype, rows, vectors)
    ms, ns = (rows, 2), (kernel.columns, kernel.columns - 1, 1)
    name, columns = kernel.c_name, kernel.columns
    calls = [
        f'check_gemm("{name}", run_{name}, {rows}, {columns}, {m}, {n}, 33, {kind}, {accumulate});'
        for m in ms
        for n in ns
        for kind in range(3)
        for accumulate in range(2)
    ]
    calls *= 2  # an operand's end at a page, then its start
    text = program(isa, dtype, [kernel.source(ms, ns)], GEMM_CHECK + wrappers(kernel), calls)
    assert run(isa, text, tmp_path) == len(calls)


@pytest.mark.parametrize(("isa", "dtype"), CASES)
def test_pack_gemv_and_scatter(isa: ISA, dtype: DType, tmp_path: Path) -> None:
    widths = WIDTHS[isa.name]
    calls = [f'climb_pack("pack {width}", pack_{width}, gather_{width}, {width});' for width in widths]
    whole = [width for width in widths if width % isa.lanes(dtype) == 0]
    calls += [f'climb_beside("beside {width}", beside_{width}, {width});' for width in whole]
    copies = [*(pack_wrappers(isa, dtype, width) for width in widths), *map(beside_wrapper, whole)]
    checks = "".join((PACK, BESIDE, GEMV, SCATTER, *copies))
    sources = [pack_source(isa, dtype), gemv_source(isa, dtype), scatter_source(isa, dtype)]
    text = program(isa, dtype, sources, checks, [*calls, "climb_gemv();", "climb_scatter();"])
    assert run(isa, text, tmp_path, optimised=dtype == f32) > 2000
