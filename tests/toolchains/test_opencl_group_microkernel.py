"""The GPU microkernel: sizes, orientations and types on a device, and what compilers say of its text.

opencl_group_ladder.py says how calls are checked; it runs in a process of its own, which a read outside of an operand
ends.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from headers import CLANG, need

from microkernels.catalogue import CPU_ISAS, every_group_tile, find, group_gemm, group_tiles, sums, tiles
from microkernels.dtypes import DTYPES, DType, f16, f32, f64
from microkernels.errors import TargetError
from microkernels.group_kernel import GroupKernel
from microkernels.opencl_isa import OPENCLGPU

CLIMBED = (
    ("gemm_openclgpu_128x128x8_8x8_db", f32),
    ("gemm_openclgpu_64x64x16_4x4", f32),
    ("gemm_openclgpu_64x64x8_4x4_db", f64),
    ("gemm_openclgpu_32x32x16_4x4_db", f16),
)
ROOT = Path(__file__).parents[2]
LARGE = replace(OPENCLGPU, max_items=1024, local_bytes=1 << 16)


@pytest.mark.parametrize(("name", "dtype"), CLIMBED)
def test_sizes_orientations_and_tables(name: str, dtype: DType) -> None:
    """PoCL optimises nothing here: that takes three times as long as all checks."""
    if importlib.util.find_spec("pyopencl") is None:
        pytest.skip("needs pyopencl and PoCL")
    from opencl_device import device

    program = str(ROOT / "tests" / "support" / "opencl_group_ladder.py")
    command = [sys.executable, program, device().label, name, dtype.name]
    quickly = {**os.environ, "POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=quickly)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-3000:]}"
    assert int(done.stdout) > 40


def every_kernel() -> list[GroupKernel]:
    return [kernel for dtype in (f32, f64, f16) for kernel in every_group_tile(dtype)]


@pytest.mark.parametrize("dtype", (f32, f64, f16), ids=str)
def test_clang_has_no_remarks(dtype: DType, tmp_path: Path) -> None:
    """On all tiles of a type in one program, as OpenCL C 1.2: names do not collide, guards leave each part once."""
    need(CLANG)
    kernels = [kernel for kernel in every_kernel() if kernel.dtype == dtype]
    text = tmp_path / "kernels.cl"
    text.write_text("".join(kernel.source() for kernel in kernels))
    flags = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-fsyntax-only"]
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    done = subprocess.run([*CLANG.command, *flags, *warnings, str(text)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_tile_worth_choosing_exists_and_fits_a_large_device() -> None:
    for kernel in every_kernel():
        assert kernel.misfit() is None
        assert kernel.fits(LARGE), kernel.name
        assert kernel.c_name == f"gemm_{kernel.dtype}_{kernel.name.removeprefix('gemm_')}"
        assert not re.search(r"\b[A-Z]{4,}_?[A-Z]*\b(?<!POLY)", re.sub(r"POLY_\w+|CLK_\w+", "", kernel.source()))


def test_a_small_device_has_fewer() -> None:
    assert {kernel.name for kernel in group_tiles(OPENCLGPU, f32)} < {kernel.name for kernel in group_tiles(LARGE, f32)}
    assert not group_tiles(replace(LARGE, f64=False), f64)
    assert all(kernel.items <= 64 for kernel in group_tiles(replace(LARGE, max_items=64), f32))


def test_numbers_of_a_name() -> None:
    kernel = find("gemm_openclgpu_64x32x16_8x4_db", f32)
    assert isinstance(kernel, GroupKernel)
    assert (kernel.rows, kernel.columns, kernel.slab, kernel.item_rows, kernel.item_columns) == (64, 32, 16, 8, 4)
    assert kernel.items == 64
    assert kernel.panel_elements == 2 * 16 * (64 + 4 + 32 + 4)
    assert kernel == group_gemm(f32, 64, 32, 16, 8, 4, True)


@pytest.mark.parametrize(
    ("name", "dtype", "reason"),
    (
        ("gemm_openclgpu_64x64", f32, "unknown microkernel"),
        ("gemm_openclgpu_0x64x16_4x4", f32, "unknown microkernel"),
        ("gemm_openclgpu_64x64x16_3x4", f32, "multiples of 4"),
        ("gemm_openclgpu_64x64x16_2x2", f32, "multiples of 4"),
        ("gemm_openclgpu_66x64x16_4x4", f32, "a multiple of an item's part"),
        ("gemm_openclgpu_64x16x16_4x4", f32, "patches of 4 x 8, and they are 16 x 4"),
        ("gemm_openclgpu_64x64x2_4x4", f32, "can't share a slab"),
        ("gemm_openclgpu_96x96x16_4x4", f32, "can't share a slab"),
        ("gemm_openclgpu_128x128x16_8x8", f64, "registers"),
    ),
)
def test_numbers_that_make_no_kernel(name: str, dtype: DType, reason: str) -> None:
    with pytest.raises(TargetError, match=reason):
        find(name, dtype)


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES.values() if dtype not in (f16, f32, f64)], ids=str)
def test_other_types_are_refused(dtype: DType) -> None:
    """As for one core: whoever asks for the tiles of a type that has none is told so."""
    found = (partial(find, name) for name in ("gemm_openclgpu_64x64x16_4x4", "gemm_openclgpu_x"))
    for ask in (*found, partial(group_tiles, OPENCLGPU)):
        with pytest.raises(TargetError, match=f"compute in f16, f32 or f64, not in {dtype}"):
            ask(dtype)
    for isa in (isa for isa in CPU_ISAS.values() if not sums(isa, dtype)):
        with pytest.raises(TargetError, match="compute in"):
            tiles(isa, dtype)


def test_types() -> None:
    """Halves are a type of nests, too."""
    assert DTYPES["f16"] == f16
    assert find("gemm_openclgpu_64x64x16_4x4", f16).dtype == f16
