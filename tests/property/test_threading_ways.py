"""A parallel loop does the same by OpenMP, by POSIX threads and one iteration after the other."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import classic_nests
import numpy as np
import pytest
from contractions import Contraction
from hypothesis import given, settings
from programs import LoopMark, matmul, scaled_copy
from random_nests import VALUE_OF_N, nests

from codegen.c import functions, link_flags, source
from codegen.calls.call import Caller, make_caller
from codegen.calls.guard import declarations
from codegen.ir.program import Program, Threading
from codegen.ir.signature import Signature
from codegen.package.header.macros import PTHREADS
from codegen.toolchain.build import load
from microkernels.isa import host
from poly.analysis.bounds import check
from poly.compiled import followed
from poly.ir.nest import Nest
from poly.lowering.lower import lower

Array = np.ndarray[Any, Any]
WAYS: tuple[Threading, ...] = get_args(Threading)
RUNTIME = f"#include <stddef.h>\n#include <stdint.h>\n#define PFX_MAX_THREADS 256\n\n{PTHREADS}"
SCARCE = """#include <errno.h>
#include <pthread.h>
/* Every second thread cannot be made. */
static int scarce(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *share)
{
  static int asked;
  return asked++ % 2 ? EAGAIN : pthread_create(thread, how, run, share);
}
#define pthread_create scarce
"""


def text_of(program: Program, threading: Threading, before: str = "") -> str:
    return (before + RUNTIME) * (threading == "pthreads") + "\n\n" + source(program, threading)


def caller(program: Program, threading: Threading, before: str = "") -> Caller:
    """The program as a function of arrays."""
    text = text_of(program, threading, before)
    assert ("pfx_parallel(threads" in text) <= (threading == "pthreads")
    signature, flags = Signature.of(program), ("-O1", "-pthread", *host().flags, *link_flags(program, threading))
    return make_caller(signature, load(text, declarations(signature), flags), 1)


def program_of(nest: Nest, threads: int = 4) -> Program:
    """The nest in its default schedule for several threads."""
    made = followed(nest, host(), threads, None)
    return lower(made.nest, made.tree, host())


def arrays_of(program: Program, sizes: Mapping[str, int]) -> list[Any]:
    """Random arguments."""
    random = np.random.default_rng(3)
    values: list[Any] = []
    for buffer in Signature.of(program).buffers:
        shape = tuple(extent.evaluate(sizes) for extent in buffer.shape)
        array = (0.5 + random.random(shape)) if buffer.dtype.is_float else random.integers(-9, 9, shape)
        values.append(array[()] if buffer.kind == "scalar" else np.asarray(array, buffer.dtype.numpy_name))
    return values


def agree(program: Program, sizes: Mapping[str, int], threads: int) -> None:
    """All ways give the same bits."""
    results = []
    for threading in WAYS:
        values = arrays_of(program, sizes)
        known = {size: sizes[size] for size in Signature.of(program).given}
        caller(program, threading)(*values, threads=threads, **known)
        results.append([np.asarray(value).tobytes() for value in values])
    assert results[0] == results[1] == results[2]


CLASSIC = ("softmax", "covariance", "seidel", "jacobi1d", "floyd", "transpose", "lu")


@pytest.mark.parametrize("name", CLASSIC)
def test_classic_nests(name: str) -> None:
    nest = getattr(classic_nests, name)
    agree(program_of(check(nest)), {**classic_nests.SIZES[nest], "N": 70}, threads=3)


@pytest.mark.parametrize("spec", ["bik,bkj->bij", "ki,jk->ij"])
def test_contractions(spec: str) -> None:
    """With panels of each thread's own."""
    program = program_of(Contraction(spec, form="alpha").nest())
    extents = {f"N{letter}": extent for letter, extent in zip("abcdeijk", (13, 6, 7, 11, 5, 70, 67, 33), strict=True)}
    agree(program, extents, threads=4)


@settings(max_examples=25)
@given(nests())
def test_random_nests(nest: Nest) -> None:
    """Those of which some loop is parallel."""
    program = program_of(nest)
    if "omp parallel" in functions(program):
        agree(program, {"N": VALUE_OF_N}, threads=2)


@pytest.mark.parametrize("threads", [1, 2, 5, 400])
def test_scratch_of_each_thread_and_shared(threads: int) -> None:
    agree(scaled_copy(), {"M": 37, "N": 19}, threads)


def test_a_parallel_loop_inside_of_a_serial_one() -> None:
    agree(matmul([LoopMark("i", parallel=True)]), {"M": 31, "N": 17, "K": 23}, threads=3)
    agree(matmul([LoopMark("i_tile", parallel=True)]), {"M": 31, "N": 17, "K": 23}, threads=3)


def test_the_caller_does_the_work_of_threads_that_cannot_be_made() -> None:
    values = arrays_of(scaled_copy(), {"M": 37, "N": 19})
    caller(scaled_copy(), "pthreads", SCARCE)(*values, threads=6)
    np.testing.assert_allclose(values[1], values[2] * values[0], rtol=1e-6)


PROBE = f"""{RUNTIME}

static void note(void *call, int64_t thread, int64_t first, int64_t past)
{{
  for (int64_t i = first; i < past; i++)
    ((int64_t *)call)[i] += thread + 1;
}}

void probe(int64_t threads, int64_t iterations, void *owners) {{ pfx_parallel(threads, iterations, note, owners); }}
"""


def test_chunks_are_as_even_as_they_come() -> None:
    """Neighbouring iterations are done once, by one thread; the first threads do one more."""
    library = load(PROBE, "void probe(int64_t, int64_t, void *);", ("-pthread",))
    for threads in (1, 2, 3, 7, 300):
        for iterations in (0, 1, 2, 5, 17, 600):
            owners = np.zeros(iterations + 1, np.int64)
            library.lib.probe(threads, iterations, library.ffi.from_buffer(owners))
            parts = np.array_split(np.arange(iterations), max(1, min(threads, iterations, 256)))
            assert owners.tolist() == [thread + 1 for thread, part in enumerate(parts) for _ in part] + [0]


def test_no_thread_sees_what_another_writes(tmp_path: Path) -> None:
    """The thread sanitizer's verdict."""
    compiler = shutil.which("clang-19") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc or clang-19")
    main = """
int main(void)
{
  static float x[40 * 30], y[40 * 30];
  static _Alignas(64) char memory[1 << 16];
  for (int64_t threads = 1; threads < 6; threads++)
    scaled_copy(40, 30, x, y, 2.0f, threads, memory);
  return 0;
}
"""
    path, program = tmp_path / "tsan.c", tmp_path / "tsan"
    path.write_text(text_of(scaled_copy(), "pthreads") + main)
    subprocess.run([compiler, "-g", "-O1", "-pthread", "-fsanitize=thread", path, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
