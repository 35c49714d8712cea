"""Names, shapes, targets and the C text that the catalogue hands out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from microkernels.catalogue import SHAPES, find, fits, gemm, gemv_source, pack_source, tiles
from microkernels.dtypes import DType, f32, f64
from microkernels.errors import TargetError
from microkernels.isa import AVX2, AVX512, ISA, ISAS, NEON, PORTABLE, host, parse_target
from microkernels.kernel import OuterProduct

BOTH = [pytest.param(isa, dtype, id=f"{isa.name}-{dtype}") for isa in ISAS.values() for dtype in (f32, f64)]


def test_a_name_tells_the_tile() -> None:
    kernel = find("gemm_avx512_6x64", f32)
    assert isinstance(kernel, OuterProduct)
    assert (kernel.isa, kernel.rows, kernel.columns, kernel.vectors) == (AVX512, 6, 64, 4)
    assert kernel.c_name == "gemm_f32_avx512_6x64"
    assert str(kernel.contract) == "C[i, j] += A[i, k] * B[k, j]"


@pytest.mark.parametrize(("isa", "dtype"), BOTH)
def test_every_listed_tile_is_found_by_its_name(isa: ISA, dtype: DType) -> None:
    listed = tiles(isa, dtype)
    assert len(listed) == len(SHAPES[isa.name])
    for kernel in listed:
        assert find(kernel.name, dtype) == kernel
        assert isinstance(kernel, OuterProduct)
        assert fits(isa, kernel.rows, kernel.vectors)


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [
        (
            "gemm_avx512_7x128",
            f32,
            "does not fit for f32: 7 x 8 sums, 8 vectors of B and a broadcast in the 32 registers",
        ),
        ("gemm_avx512_6x60", f32, "the columns must be a multiple of 16 on avx512"),
        ("gemm_avx512_0x16", f32, "does not fit"),
        ("gemm_avx51_6x64", f32, "unknown microkernel 'gemm_avx51_6x64': the closest are gemm_avx512_6x64"),
        ("conv", f64, "unknown microkernel 'conv'"),
    ],
)
def test_a_tile_that_does_not_exist_is_refused(name: str, dtype: DType, message: str) -> None:
    with pytest.raises(TargetError, match=re.escape(message)):
        find(name, dtype)


def test_targets() -> None:
    assert parse_target("c") is host()
    assert parse_target("c:portable") is PORTABLE
    with pytest.raises(TargetError, match=r"unknown target 'c:avx5122'.*Did you mean 'c:avx512'\?"):
        parse_target("c:avx5122")
    with pytest.raises(TargetError, match="unknown target 'fortran': expected one of c, c:avx512"):
        parse_target("fortran")


def test_an_isa_this_cpu_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("microkernels.isa.host_machine", lambda: "x86_64")
    monkeypatch.setattr("microkernels.isa.host_cpu_flags", lambda: frozenset({"avx2", "fma", "avx512f"}))
    assert host() is AVX2
    with pytest.raises(
        TargetError, match=r"lacks avx512vl, avx512dq, avx512bw\. The best target it can run is 'c:avx2'"
    ):
        parse_target("c:avx512")
    with pytest.raises(TargetError, match="lacks a CPU of the family aarch64"):
        parse_target("c:neon")


def test_known_sizes_give_only_their_instances() -> None:
    kernel = gemm(AVX512, f32, 6, 4)
    calls = re.findall(r"gemm_tile_f32_avx512\((\d+), (\d+), (\d), ([^,]+), a,", kernel.source([6, 4], [64, 40]))
    assert calls == [("6", "4", "0", "0"), ("6", "3", "1", "8"), ("4", "4", "0", "0"), ("4", "3", "1", "8")]


def test_sizes_beyond_the_tile_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"serves 1 to 6 rows and 1 to 64 columns, not m = 7, n = 0"):
        gemm(AVX512, f32, 6, 4).source([7], [0])


@pytest.mark.parametrize(("isa", "dtype"), BOTH)
def test_the_text_is_plain_c(isa: ISA, dtype: DType) -> None:
    text = tiles(isa, dtype)[0].source() + pack_source(isa, dtype) + gemv_source(isa, dtype)
    assert not re.search(r"\bT\b|_T\b|_px\b|\bINLINE\b|\bUNROLL\b|\bMASK\b", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
    assert set(re.findall(r"#include (.*)", text)) <= {"<immintrin.h>", "<arm_neon.h>", "<stdint.h>"}


def test_all_texts_can_stand_in_one_file(tmp_path: Path) -> None:
    """Both types, two ISAs, and everything twice: the guards keep one of each."""
    parts = []
    for isa in (PORTABLE, ISAS[host().name]):
        for dtype in (f32, f64):
            parts += [tiles(isa, dtype)[0].source([1], [1]), pack_source(isa, dtype), gemv_source(isa, dtype)]
    source = tmp_path / "all.c"
    source.write_text("".join(parts * 2))
    subprocess.run(
        ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", *host().flags, "-c", str(source)], check=True, cwd=tmp_path
    )


def test_registers_bound_the_tile() -> None:
    assert fits(NEON, 8, 3) and not fits(NEON, 8, 4)
    assert fits(AVX2, 6, 2) and not fits(AVX2, 7, 2)
    assert fits(AVX512, 14, 2) and not fits(AVX512, 15, 2)
