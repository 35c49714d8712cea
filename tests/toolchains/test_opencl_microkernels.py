"""The CPU microkernels in OpenCL C: tiles, edges and address spaces on PoCL, and what another compiler says of them.

opencl_ladder.py says how calls are checked; it runs in a process of its own, which a read outside of an operand ends.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from headers import CLANG, need

from codegen.opencl.dialect import TYPES
from microkernels.catalogue import SHAPES, find, fits, gemm, gemv_source, pack_source, scatter_source, tiles
from microkernels.ctext import Spaces, suffix
from microkernels.dtypes import DType, f32, f64
from microkernels.errors import TargetError
from microkernels.opencl_isa import OPENCL128, OPENCL256, OPENCL512, DeviceISA
from microkernels.prune import pruned

ROOT = Path(__file__).parents[2]
ISAS = (OPENCL512, OPENCL256, OPENCL128)
CASES = [pytest.param(isa, dtype, id=f"{isa.name}-{dtype}") for isa in ISAS for dtype in (f32, f64)]
PANELS: Spaces = ("local", "global", "private")


def climb(
    isa: DeviceISA, dtype: DType, *checks: str, maybe_optimised: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the ladder's program on the tests' device; skips where that is no CPU.

    PoCL's optimiser takes longer than the checks, and ten times as long for vectors that the CPU does not have: one
    test has it, for the device's own vectors.
    """
    if importlib.util.find_spec("pyopencl") is None:
        pytest.skip("needs pyopencl and PoCL")
    from opencl_device import device

    found = device()
    if found.isa.is_gpu:
        pytest.skip("the CPU's microkernels")
    program = str(ROOT / "tests" / "support" / "opencl_ladder.py")
    command = [sys.executable, program, found.label, isa.name, dtype.name, *checks]
    optimised = maybe_optimised and (isa.name, dtype) == (found.isa.name, f32)
    built = {} if optimised else {"POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | built)


@pytest.mark.parametrize(("isa", "dtype"), CASES[::2] + CASES[1:2])
def test_every_tile_edge_and_address_space(isa: DeviceISA, dtype: DType) -> None:
    done = climb(isa, dtype, "gemm", "spaces", "pack", "gemv", "scatter", maybe_optimised=True)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-3000:]}"
    assert int(done.stdout) > 1500


@pytest.mark.parametrize(("isa", "dtype"), [(OPENCL512, f32), (OPENCL128, f64)], ids=["opencl512-f32", "opencl128-f64"])
def test_plain_opencl_c_does_the_same(isa: DeviceISA, dtype: DType) -> None:
    """As a compiler sees it that has neither masks nor builtins."""
    done = climb(isa, dtype, "plain", "spaces", "pack", "scatter")
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-3000:]}"
    assert int(done.stdout) > 200


def test_the_ladder_sees_a_read_outside() -> None:
    done = climb(OPENCL512, f32, "trespass")
    assert done.returncode < 0, f"exit {done.returncode}: {done.stdout}"


def everything(isa: DeviceISA, dtype: DType) -> str:
    """All the text there is for a device's vectors and a type."""
    kernel = tiles(isa, dtype)[0]
    known = gemm(isa, dtype, 2, 3).source([1, 2], [3], ("local", "local", "global"))
    packs = pack_source(isa, dtype) + pack_source(isa, dtype, "local")
    return (
        kernel.source()
        + kernel.source(spaces=PANELS)
        + known
        + packs
        + gemv_source(isa, dtype)
        + scatter_source(isa, dtype)
    )


@pytest.mark.parametrize("machine", ["-march=x86-64", "-march=x86-64-v3", "-march=skylake-avx512", "--target=spir64"])
@pytest.mark.parametrize(("isa", "dtype"), CASES)
def test_another_compiler_finds_nothing_to_warn_of(isa: DeviceISA, dtype: DType, machine: str) -> None:
    need(CLANG)
    types = "".join(f"typedef {known} {name};\n" for name, known in TYPES.items())
    command = [*CLANG.command, "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-fsyntax-only"]
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    text = types + everything(isa, dtype)
    done = subprocess.run([*command, *warnings, machine, "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.parametrize(("isa", "dtype"), CASES)
def test_the_text_is_plain_opencl_c(isa: DeviceISA, dtype: DType) -> None:
    code = re.sub(r"/\*.*?\*/", "", everything(isa, dtype), flags=re.S)
    assert "#include" not in code
    assert not re.search(r"\b\w+_SPACE\b|\b(T|GLOBAL|INLINE|UNROLL|VEC|[A-Z]+_512)\b|_T\b|_px\b", code)


@pytest.mark.parametrize(("isa", "dtype"), CASES)
def test_every_listed_tile_is_found_by_its_name(isa: DeviceISA, dtype: DType) -> None:
    assert len(tiles(isa, dtype)) == len(SHAPES[isa.name])
    for kernel in tiles(isa, dtype):
        assert find(kernel.name, dtype) == kernel
        assert fits(isa, kernel.rows, kernel.vectors)


def test_names_tell_where_operands_lie() -> None:
    kernel = find("gemm_opencl512_6x64", f32)
    assert (kernel.isa, kernel.rows, kernel.columns, kernel.vectors, kernel.items) == (OPENCL512, 6, 64, 4, 1)
    assert kernel.c_name == kernel.function() == "gemm_f32_opencl512_6x64"
    assert kernel.function(PANELS) == "gemm_f32_opencl512_6x64_lgp"
    assert suffix(OPENCL512, f64, "local") == "f64_opencl512_l"
    assert find("gemm_avx512_6x64", f32).function(PANELS) == "gemm_f32_avx512_6x64", "C has no address spaces"


def test_a_tile_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TargetError, match=r"unknown microkernel 'gemm_opencl51_6x64'.*gemm_opencl512_6x64"):
        find("gemm_opencl51_6x64", f32)
    with pytest.raises(TargetError, match="the columns must be a multiple of 8 on opencl512"):
        find("gemm_opencl512_6x60", f64)
    with pytest.raises(TargetError, match="does not fit for f32: 7 x 2 sums"):
        find("gemm_opencl256_7x16", f32)


def test_pointers_say_where_they_point() -> None:
    text = find("gemm_opencl512_6x64", f32).source([6], [64], PANELS)
    head = re.search(r"gemm_f32_opencl512_6x64_lgp\(([^)]*)\)", text)
    assert head
    assert "__local const float *const *a, __global const float *b, float *const *c" in head[1]


def test_only_what_is_used_is_kept() -> None:
    """Types, macros and functions of the vector layer, and tails for compilers with masks and without."""
    whole = pruned(find("gemm_opencl512_6x64", f32).source([6], [64]), ["gemm_f32_opencl512_6x64"])
    assert "load_f32_opencl512(p)" in whole and "#if defined(__AVX512F__)" in whole
    assert "zip_low" not in whole and "total_" not in whole
