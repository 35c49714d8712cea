"""Generated C, compiled and run."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from programs import K, M, N, band, compiled, i, j, marked, matmul, scaled_copy, scan, sequence, softmax

from codegen.c import link_flags, source
from codegen.calls.guard import declarations
from codegen.ir.expr import Load
from codegen.ir.integer import Affine
from codegen.ir.loop_ir import LoopMark
from codegen.ir.program import Assign, Buffer, PrintedStatement, Program, Workspace
from codegen.ir.signature import Signature
from codegen.system.waiting import COUNT, POLICY, SPINS, opened
from codegen.toolchain.build import FLAGS, build, load
from microkernels.dtypes import DType, f32, f64, i32

PARALLEL = LoopMark("i_tile", parallel=True)
SHAPES = [(1, 1, 1), (6, 16, 8), (7, 5, 3), (13, 33, 17)]


def matrices(m: int, n: int, k: int, dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m * n + k)
    return tuple(rng.random(shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    "program",
    [
        matmul(),
        matmul([PARALLEL, LoopMark("j", vectorize=True), LoopMark("k", unroll=4)]),
        matmul([PARALLEL, LoopMark("k", vectorize=True)], order="ijk"),
        matmul([LoopMark("i", parallel=True)], order="kji"),
    ],
    ids=["plain", "lanes", "reduced", "inner"],
)
def test_matmul(program: Program, threads: int) -> None:
    call = compiled(program)
    for shape in SHAPES:
        a, b, c = matrices(*shape)
        expected = c + a.astype(float) @ b
        call(a, b, c, threads=threads)
        np.testing.assert_allclose(c, expected, rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 3])
def test_workspaces(threads: int) -> None:
    """Shared and private scratch arrays don't run into each other, whatever the number of threads."""
    x = np.random.default_rng(1).random((37, 29), np.float32)
    y = np.full_like(x, np.nan)
    compiled(scaled_copy())(x, y, 2.5, threads=threads)
    np.testing.assert_allclose(y, 2.5 * x, rtol=1e-6)


def test_private_scratch_outside_of_a_parallel_loop() -> None:
    x = np.random.default_rng(1).random((5, 7), np.float32)
    y = np.empty_like(x)
    compiled(marked(scaled_copy()))(x, y, 2.0, threads=2)
    np.testing.assert_allclose(y, 2 * x, rtol=1e-6)


def test_softmax_in_lanes() -> None:
    x = np.random.default_rng(1).normal(size=(5, 100)).astype(np.float32)
    x[1, 3], x[2, :] = np.inf, -100
    y = np.empty_like(x)
    with np.errstate(invalid="ignore"):
        raised = np.exp(x.astype(float) - x.max(axis=1, keepdims=True))
    compiled(softmax())(x, y)
    np.testing.assert_allclose(y, raised / raised.sum(axis=1, keepdims=True), rtol=1e-5)


def test_empty_loops_touch_nothing() -> None:
    """With no columns to reduce, the element that a reduction would go to is not even read."""
    program = matmul([LoopMark("k", vectorize=True)], order="ijk")
    a, b, c = np.empty((7, 0), np.float32), np.empty((0, 5), np.float32), np.full((7, 5), 3, np.float32)
    compiled(program)(a, b, c)
    assert (c == 3).all()


@pytest.mark.parametrize("op", ["+", "*", "min", "max"])
@pytest.mark.parametrize("dtype", [f32, f64, i32])
def test_reductions_in_lanes(op: str, dtype: DType) -> None:
    """A vectorized reduction is the scalar one: min and max keep a NaN that they start with, and pass over others."""
    domain, known = "[M, N] -> { S[i, j] : 0 <= i < M and 0 <= j < N }", "[M, N] -> "
    tree = band("i", f"{known}{{ S[i, j] -> [i] }}", band("j", f"{known}{{ S[i, j] -> [j] }}"))
    buffers = (Buffer("x", dtype, (M, N), "in"), Buffer("y", dtype, (M,), "inout"))
    body = Assign(Load("y", (i,)), op, Load("x", (i, j)))
    scalar = Program("reduce", ("M", "N"), buffers, scan(domain, tree), {"S": PrintedStatement(("i", "j"), body)})
    lanes = marked(scalar, LoopMark("j", vectorize=True))
    assert "POLY_LANES" in source(lanes)
    rng = np.random.default_rng(3)
    x = rng.integers(1, 3, (6, 50)).astype(dtype.numpy_name)
    start = rng.integers(1, 3, 6).astype(dtype.numpy_name)
    if dtype.is_float:
        x[1, 7], x[2, 9], start[3] = np.nan, np.inf, np.nan
    results = []
    for program in (scalar, lanes):
        y = start.copy()
        compiled(program)(x, y)
        results.append(y)
    np.testing.assert_array_equal(*results)


def test_several_reductions_in_one_loop() -> None:
    """Two elements of one array, each with a variable of its own."""
    domain = "[N] -> { S[i] : 0 <= i < N; T[i] : 0 <= i < N }"
    order = sequence(("[N] -> { S[i] }", ""), ("[N] -> { T[i] }", ""))
    ast = scan(domain, band("i", "[N] -> { S[i] -> [i]; T[i] -> [i] }", order), LoopMark("i", vectorize=True))
    buffers = (Buffer("x", f64, (N,), "in"), Buffer("y", f64, (Affine.of(2),), "inout"))
    statements = {
        name: PrintedStatement(("i",), Assign(Load("y", (Affine.of(place),)), op, Load("x", (i,))))
        for place, (name, op) in enumerate((("S", "+"), ("T", "max")))
    }
    program = Program("both", ("N",), buffers, ast, statements)
    assert "y_sum" in source(program)
    assert "y_max" in source(program)
    sums = replace(
        program,
        statements={
            **statements,
            "T": replace(statements["T"], body=Assign(Load("y", (Affine.of(1),)), "+", Load("x", (i,)))),
        },
    )
    assert "y_sum_2" in source(sums)
    x, y = np.arange(9.0), np.ones(2)
    compiled(program)(x, y)
    assert y.tolist() == [37, 8]
    compiled(sums)(x, y)
    assert y.tolist() == [73, 44]


def test_calls_side_by_side() -> None:
    """Two Python threads in the same kernel, each with two threads of its own: every call has its own workspace."""
    call = compiled(scaled_copy())
    failures: list[str] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).random((61, 43), np.float32)
        y = np.empty_like(x)
        for n in range(200):
            call(x, y, float(n), threads=2)
            if not np.allclose(y, n * x, rtol=1e-6):
                failures.append(f"thread {seed}, call {n}")

    workers = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_inside_of_somebody_elses_parallel_region() -> None:
    """A C program calls the kernel from each thread of its own region, with a workspace for each."""
    program = matmul([PARALLEL])
    kernel = source(program)
    outer = """
#include <stdlib.h>
int32_t outer(int64_t M, int64_t N, int64_t K, const float *A, const float *B, float *C, int64_t teams)
{
  int32_t status = 0;
  #pragma omp parallel for num_threads((int)teams) reduction(|:status)
  for (int64_t t = 0; t < teams; t++) {
    void *workspace = aligned_alloc(64, (size_t)matmul_workspace(M, N, K, 2) + 64);
    status |= matmul(M, N, K, A, B, C + t*M*N, 2, workspace);
    free(workspace);
  }
  return status;
}
"""
    cdef = "int32_t outer(int64_t, int64_t, int64_t, void *, void *, void *, int64_t);"
    library = load(kernel + outer, cdef, link_flags(program))
    a, b, _ = matrices(31, 17, 23)
    c = np.zeros((4, 31, 17), np.float32)
    pointers = [library.ffi.from_buffer(array) for array in (a, b, c)]
    assert library.lib.outer(31, 17, 23, *pointers, 4) == 0
    np.testing.assert_allclose(c, np.broadcast_to(a @ b, c.shape), rtol=1e-5)


def test_every_program_is_accepted_without_a_warning() -> None:
    """Other eyes on the C: -Wall -Wextra find nothing but the parameters that a kernel doesn't need."""
    strict = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unknown-pragmas", "-march=native")
    for program in (matmul([PARALLEL, LoopMark("j", vectorize=True)]), scaled_copy(), softmax()):
        text = source(program)
        assert build(text, (*strict, *link_flags(program))).exists()
    assert "-Wall" not in FLAGS


def test_indices_beyond_32_bits() -> None:
    """An element whose offset overflows 32 bits: a strided array that is mostly not there."""
    stride = Affine.of(2**31)
    domain, known = "{ S[i, j] : 0 <= i < 2 and 0 <= j < 2 }", ""
    tree = band("i", f"{known}{{ S[i, j] -> [i] }}", band("j", "{ S[i, j] -> [j] }"))
    text = source(
        Program(
            "far",
            (),
            (Buffer("y", f32, (Affine.of(2), Affine.of(2)), "out", (str(stride), "1")),),
            scan(domain, tree),
            {"S": PrintedStatement(("i", "j"), Assign(Load("y", (i, j)), "=", Load("y", (i, j))))},
        )
    )
    assert "2147483648*i + j" in text
    assert "int64_t i = 0" in text


def test_bytes_beyond_32_bits() -> None:
    """Sizes in bytes are reckoned in 64 bits, also where all is known."""
    program = matmul(size=100_000)
    assert "C_bytes = 40000000000;" in source(program)
    large = replace(scaled_copy(), workspaces=(Workspace("all", f32, M * N, False), Workspace("one", f32, M * N)))
    text = source(large)
    library = load(text, declarations(Signature.of(large)), link_flags(large))
    assert library.lib.scaled_copy_workspace(100_000, 100_000, 3) == 4 * 40_000_000_000
    assert "(int64_t)omp_get_thread_num()*" in text


def test_signature_tells_what_cffi_needs() -> None:
    program = scaled_copy()
    text = declarations(Signature.of(program))
    data = "void * x, void * y, float alpha"
    assert f"int32_t scaled_copy(int64_t M, int64_t N, {data}, int64_t threads, void *workspace);" in text
    assert Signature.of(program).scratch
    assert not Signature.of(matmul()).scratch
    assert {step.size for step in Signature.of(matmul()).solved} == {str(M), str(N), str(K)}


def test_threads_spin_as_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loader:
        def dlopen(self, name: str) -> str | None:
            return os.environ.get(COUNT)

    monkeypatch.delenv(POLICY, raising=False)
    monkeypatch.delenv(COUNT, raising=False)
    assert opened(Loader(), Path("x")) == str(SPINS)
    assert COUNT not in os.environ
    monkeypatch.setenv(POLICY, "passive")
    assert opened(Loader(), Path("x")) is None
