"""Any arguments at all: a header's checks have no undefined behaviour, and what they accept is inside the arrays."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from header_calls import Call, Program, routine, start
from header_check_nests import ALL, convolution, turned, two_mm
from header_fuzzer import fuzzer, whole_fuzzer
from header_verdicts import Placed, placed, verdict
from headers import CLANG, GCC, INTEGERS, Toolchain, need
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_nests import matmul

import poly
from codegen.names import c_name
from codegen.package import Header
from codegen.package.header.text import header_text
from microkernels.isa import PORTABLE
from poly.embed.write import make
from poly.ir.nest import Nest

KIT = Header("kit", tuple(routine(nest) for nest in ALL), (PORTABLE,))
SANITIZED = ("-std=c99", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all")
WAYS = {
    64: (GCC, (*SANITIZED, "-fsanitize=address")),
    32: (Toolchain(("gcc", "-m32")), ("-std=c99", "-O0", *SANITIZED[2:])),
}

WIDE = st.integers(-(2**63), 2**63 - 1)
POWERS = st.builds(lambda power, more: min(2**power + more, 2**63 - 1), st.integers(0, 63), st.integers(-2, 2))
SIZES = st.integers(0, 6) | POWERS | WIDE
STRIDES = st.integers(0, 40) | POWERS | WIDE
THREADS = st.integers(1, 256) | st.integers(-(2**31), 2**31 - 1)
NEAR = st.builds(lambda at, step: 2**16 + at * step, st.integers(0, 200), st.sampled_from([1, 4, 8]))
NEEDS = st.just(0) | st.integers(1, 500) | st.just(2**40)


def addresses(bits: int) -> st.SearchStrategy[int]:
    return st.just(0) | NEAR | st.integers(0, 2**bits - 1)


@st.composite
def calls(draw: st.DrawFn, bits: int) -> Call:
    """Calls in which most is right, so that all checks have their turn."""
    number = draw(st.integers(0, len(KIT.routines) - 1))
    one = KIT.routines[number]
    tame: dict[str, st.SearchStrategy[int]] = {c_name(size): st.integers(0, 5) for size in one.sizes}
    wild: dict[str, st.SearchStrategy[int]] = {c_name(size): SIZES for size in one.sizes}
    tame |= {c_name(stride): st.sampled_from([0, 0, 5, 7, 30]) for stride in one.strides} | {"threads": st.just(2)}
    wild |= {c_name(stride): STRIDES for stride in one.strides} | {"threads": THREADS}
    buffers = list(enumerate(one.signature.buffers, start=1))
    tame |= {c_name(b.name): st.just(0 if b.kind == "scalar" else at << 20) | NEAR for at, b in buffers}
    wild |= {c_name(b.name): st.just(3) if b.kind == "scalar" else addresses(bits) for _, b in buffers}
    wilder = draw(st.sets(st.sampled_from(sorted(wild)), max_size=3))
    values = {name: draw(wild[name] if name in wilder else tame[name]) for name in tame}
    need, more = draw(NEEDS), draw(NEEDS)
    workspace, given_ = draw(addresses(bits)), draw(st.integers(0, 1200) | WIDE)
    return Call(number, draw(st.integers(0, 2)), values, need, draw(st.booleans()), workspace, given_, more)


@pytest.fixture(scope="module", params=WAYS)
def running(request: pytest.FixtureRequest) -> Iterator[Program]:
    toolchain, flags = WAYS[request.param]
    one = start(KIT, toolchain, *flags)
    yield one
    one.close()


@given(st.data())
@settings(max_examples=300)
def test_any_call_gets_the_right_answer(running: Program, data: st.DataObject) -> None:
    call = data.draw(calls(running.bits))
    answer = running.answer(call)
    assert answer == verdict(KIT, running.bits, call)
    if answer.seen:
        check_bytes(placed(KIT.routines[call.routine], call))


def check_bytes(arrays: list[Placed]) -> None:
    """No two elements share a byte, unless both are only read; where there are not too many to be listed."""
    if any(array.count > 300 for array in arrays):
        return
    written = {byte for array in arrays if array.buffer.kind != "in" for byte in array.places()}
    assert len(written) == sum(array.count * array.buffer.dtype.size for array in arrays if array.buffer.kind != "in")
    assert not any(byte in written for array in arrays if array.buffer.kind == "in" for byte in array.places())
    for array in arrays:
        assert all(array.address <= byte < array.address + array.bytes for byte in array.places())


FUZZED = (matmul, turned, convolution, two_mm)
FUZZING = ("-std=c99", "-g", "-fsanitize=fuzzer,address", *INTEGERS)

MISTAKES = {
    "sizes": (r"> \(uint64_t\)MATMUL_SIZE_LIMIT\) return MATMUL_BAD_SIZE", "> UINT64_MAX) return MATMUL_BAD_SIZE"),
    "bits": (r"MATMUL_BITS\(23, 14\)", "MATMUL_BITS(24, 15)"),
    "threads": ("threads > MATMUL_MAX_THREADS", "threads > MATMUL_MAX_THREADS + 1"),
    "stride": ("B_ld < reach", "B_ld + 1 < reach"),
    "length": (r"matmul_beyond\(M, C_ld, MATMUL_SIZE_LIMIT/4\)", "matmul_beyond(M, C_ld, MATMUL_SIZE_LIMIT)"),
    "null": (r"!B && ", "!B && M > 0 && "),
    "empty": (r"!A && M > 0 && K > 0", "!A && M > 0"),
    "aligned": (r"% 4 != 0", "% 2 != 0"),
    "bytes": (r"reach \+= \(M - 1\)\*A_ld", "reach += (M - 2)*A_ld"),
    "overlap": (r"distance < \(uintptr_t\)a_bytes", "distance + 4 < (uintptr_t)a_bytes"),
    "blocks": (r"gap >= \(uintptr_t\)a_part", "gap + 4 >= (uintptr_t)a_part"),
    "resolved": (r"C_ld = N;", "C_ld = N + 1;"),
    "workspace": (r"matmul_overlap\(workspace, most, C", "matmul_overlap(workspace, most - 63, C"),
}
"""Mistakes in the text of `matmul`'s checks, each as what to put for what."""


@cache
def fuzzer_is_missing() -> bool:
    need(CLANG)
    text = "int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) { return !data && size; }"
    command = [*CLANG.command, "-fsanitize=fuzzer", "-x", "c", "-", "-o", "/dev/null"]
    return bool(subprocess.run(command, input=text, capture_output=True, text=True).returncode)


def fuzz(text: str, folder: Path, runs: int, level: str = "-O1") -> subprocess.CompletedProcess[str]:
    if fuzzer_is_missing():
        pytest.skip("clang has no libFuzzer: install its compiler-rt")
    source, binary = folder / "fuzz.c", folder / "fuzz"
    source.write_text(text)
    made = subprocess.run([*CLANG.command, level, *FUZZING, source, "-o", binary], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    options = (
        f"-runs={runs}",
        "-seed=1",
        "-max_len=160",
        "-len_control=0",
        "-max_total_time=100",
        f"-artifact_prefix={folder}/",
    )
    return subprocess.run([binary, *options], capture_output=True, text=True)


@pytest.mark.parametrize("nest", FUZZED, ids=lambda nest: nest.name)
def test_libfuzzer_finds_nothing(nest: Nest, tmp_path: Path) -> None:
    found = fuzz(fuzzer(Header(nest.name, (routine(nest),), (PORTABLE,))), tmp_path, 200_000)
    assert found.returncode == 0, found.stderr[-4000:]
    assert re.search(r"Done 200000 runs", found.stderr), found.stderr[-1000:]


def test_libfuzzer_runs_the_kernels(tmp_path: Path) -> None:
    """Whatever the checks let through: each array is alone in its memory, and its kernels touch nothing else.

    clang takes ten times as long to optimise kernels with what it adds to them as these calls take without.
    """
    kernels = [poly.compile(matmul, threads=2), poly.compile(matmul, threads=2, M=16, K=16, N=16)]
    header = make("matmul", kernels)
    (tmp_path / "matmul.h").write_text(header_text(header))
    found = fuzz(whole_fuzzer(header, header.routines[0]), tmp_path, 10_000, "-O0")
    assert found.returncode == 0, found.stderr[-4000:]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_libfuzzer_finds_mistakes(mistake: str, tmp_path: Path) -> None:
    text = fuzzer(Header("matmul", (routine(matmul),), (PORTABLE,)))
    wrong, count = re.subn(*MISTAKES[mistake], text)
    assert count
    found = fuzz(wrong, tmp_path, 2_000_000)
    assert found.returncode != 0
    assert "wrong answer" in found.stderr or "runtime error" in found.stderr, found.stderr[-4000:]
