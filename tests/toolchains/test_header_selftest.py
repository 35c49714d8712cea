"""A header's self-test passes on right kernels, on every compiler and machine, and says what is wrong with others."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import classic_nests
import pytest
from header_nests import axpy, narrow
from headers import (
    AARCH64,
    CLANG,
    CLANGXX,
    GCC,
    GXX,
    S390X,
    STRICT,
    X86_32,
    Toolchain,
    at_any_level,
    header,
    need,
    quick,
    run,
    succeed,
)
from shared_nests import product

import poly

K, M, N = poly.sizes("K M N")


RIGHT = (
    *(product, axpy, narrow, classic_nests.cholesky, classic_nests.two_mm),
    *(classic_nests.polynomials, classic_nests.transposed_conv),
)
"""Others than the nests of every kind, whose self-tests are run by test_header_compilers.py."""

TUNED = {"M": 64, "K": 64, "N": 64}

SPOILED = {
    "a missing term": (
        "right(K); if (M > 4 && N > 2 && K > 0) C[4*C_ld + 2] -= A[4*A_ld + K - 1]*B[(K - 1)*B_ld + 2];",
        r"C\[4, 2\] is",
    ),
    "terms left out": ("right(K - (K > 64));", r"C\[\d+, \d+\] is"),
    "no last column": ("N -= N > 0; right(K);", r"C\[\d+, \d+\] is -?nan, not"),
    "a value kept": ("float old = M && N ? C[0] : 0; right(K); if (M && N) C[0] += 0*old;", r"C\[0, 0\] is -?nan, not"),
    "one past the end": ("right(K); if (M && N) C[(M - 1)*C_ld + N] = 0;", "writes behind C"),
    "one before": ("right(K); C[-1] = 0;", "writes before C"),
    "in a gap": ("right(K); if (M > 1 && N && C_ld > N) C[N] = 0;", "writes between the rows of C"),
    "an input": ("right(K); if (M && K) ((float *)(uintptr_t)A)[0] = 2;", "writes to A"),
    "a share of two threads": ("right(K); if (threads > 1 && M && N) C[0] = 5;", "2 thread"),
    "an empty sum": ("right(K); if (!K && M && N) C[0] = 1;", r"K=0.*: C\[0, 0\] is 1, not 0"),
    "a tuned size": ("right(K); if (M == 64 && N == 64 && K == 64) C[65] = 7;", r"M=64 K=64 N=64.*: C\[1, [01]\] is 7"),
}
"""What is done in place of the product, and what the self-test says of it."""


def selftest(toolchain: Toolchain, path: Path, *flags: str) -> Path:
    """The header's program, made by one call of the compiler, quickly unless the flags have a level."""
    need(toolchain)
    at_any_level(path)
    target = path.with_suffix("")
    define = f"-D{path.stem.upper()}_SELFTEST"
    flags = (*STRICT, *quick(toolchain), *flags)
    succeed([*toolchain.command, *flags, "-x", toolchain.language, define, path, "-o", target, "-lm", "-pthread"])
    return target


def failure(program: Path, **environment: str) -> str:
    """What the self-test of a wrong header prints."""
    done = subprocess.run([program, "--quick"], capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 1, done.stdout
    assert done.stdout.endswith("\nFAIL\n")
    return done.stdout


@pytest.mark.parametrize("nest", RIGHT, ids=lambda nest: nest.name)
def test_right_kernels_pass(nest: poly.Nest, tmp_path: Path) -> None:
    printed = run(GCC, selftest(GCC, header(tmp_path, nest), "-std=c99"), "--quick")
    assert printed.endswith("\nPASS\n")
    assert len(re.findall(r"PASS\n", printed)) >= 3
    assert re.search(rf"{nest.name} +portable +[1-9]\d+ +0\.\d+  PASS", printed)


@pytest.mark.parametrize(
    ("toolchain", "flags"),
    [
        (GCC, ("-std=c11", "-O2", "-fopenmp")),
        (CLANG, ("-std=c99",)),
        (GXX, ("-std=c++11",)),
        (CLANGXX, ("-std=c++20",)),
        (X86_32[0], ("-std=c99",)),
        (AARCH64, ("-std=c99",)),
        (S390X, ("-std=c99",)),
    ],
    ids=str,
)
def test_compilers_and_machines(toolchain: Toolchain, flags: tuple[str, ...], tmp_path: Path) -> None:
    """One call of the compiler makes the program; other tests have larger nests on these machines."""
    path = header(tmp_path, axpy)
    printed = run(toolchain, selftest(toolchain, path, *flags), "--quick")
    assert printed.endswith("\nPASS\n")


def test_speeds(tmp_path: Path) -> None:
    path = header(tmp_path, product, sizes=[{}, TUNED])
    printed = run(GCC, selftest(GCC, path, "-O2"), "--seconds", "0.01")
    for sizes in ("M=64 K=64 N=64", "M=512 K=512 N=512"):
        table = printed[printed.index(f"product {sizes}\n") :]
        assert re.search(r"portable +[\d.]+ +[\d.]+  PASS\n +plain loops +[\d.]+ +[\d.]+  one thread\n", table)


@pytest.mark.parametrize("threads", ["none", "pthreads"])
def test_other_threads(threads: str, tmp_path: Path) -> None:
    path = header(tmp_path, product, threads=threads, isas=["portable"])
    printed = run(GCC, selftest(GCC, path), "--quick")
    assert ("checked with 1\n" if threads == "none" else "checked with 1 and 2\n") in printed


def test_dense(tmp_path: Path) -> None:
    path = header(tmp_path, product, dense=True, isas=["portable"])
    assert run(GCC, selftest(GCC, path), "--quick").endswith("\nPASS\n")


def test_options(tmp_path: Path) -> None:
    path = header(tmp_path, product, isas=["portable", "neon"])
    program = selftest(GCC, path)
    printed = run(GCC, program, "--isa", "portable", "--threads", "3", "--quick")
    assert "checked with 1 and 3" in printed
    for wrong in (
        ["--fast"],
        ["--isa"],
        ["--isa", "mmx"],
        ["--threads", "0"],
        ["--threads", "2x"],
        ["--seconds", "-1"],
    ):
        done = subprocess.run([program, *wrong], capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.startswith("usage: ")
    done = subprocess.run([program, "--isa", "neon"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.endswith("neon does not run here\n")


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The self-test of a header whose kernel is called by a function that spoils what it makes, as FAULT says."""
    path = header(tmp_path_factory.mktemp("spoiled"), product, sizes=[{}, TUNED], isas=["portable"])
    text = path.read_text()
    start = text.index("PRODUCT_INLINE void product_run(")
    head, end = text[start : text.index("{", start)], text.index("\n}\n", start) + 3
    kept = text[start:end].replace("product_run", "product_right_run")
    right = "#define right(k) product_right_run(serving, M, k, N, A_ld, B_ld, C_ld, A, B, C, threads, workspace)"
    cases = "\n".join(f"case {number}: {{ {code} break; }}" for number, (code, _) in enumerate(SPOILED.values()))
    faulty = f'#include <stdlib.h>\n{kept}{right}\n{head}{{\nswitch (atoi(getenv("FAULT"))) {{\n{cases}\n}}\n}}\n'
    path.write_text(f"{text[:start]}{faulty}{text[end:]}")
    return selftest(GCC, path)


@pytest.mark.parametrize("fault", SPOILED)
def test_wrong_kernels_fail(fault: str, spoiled: Path) -> None:
    number = list(SPOILED).index(fault)
    assert re.search(rf"portable.*{SPOILED[fault][1]}", failure(spoiled, FAULT=str(number)))


def test_a_workspace_that_is_too_small(tmp_path: Path) -> None:
    path = header(tmp_path, product, isas=["portable"])
    text = path.read_text()
    assert text.count("bytes + 63 : 0;") == 1
    path.write_text(text.replace("bytes + 63 : 0;", "bytes - 32 : 0;"))
    roomy = ("-include", "stdlib.h", "-D", "PRODUCT_MALLOC(bytes)=malloc((bytes) + 256)", "-D", "PRODUCT_FREE=free")
    assert "writes beside its workspace" in failure(selftest(GCC, path, *roomy))


def test_bad_arguments_that_are_taken(tmp_path: Path) -> None:
    path = header(tmp_path, product, isas=["portable"])
    text = path.read_text()
    path.write_text(text.replace("return PRODUCT_BAD_STRIDE;", "return PRODUCT_BAD_SIZE;"))
    printed = failure(selftest(GCC, path))
    assert "product with too short a stride for A: status " in printed
    assert re.search(r"product +bad arguments +FAIL", printed)
