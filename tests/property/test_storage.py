"""Locals in the memory that a schedule leaves them: the same results as the loops as written, in less memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from local_nests import local_schedules
from random_nests import fixed
from stored_nests import blurred, jacobi, scaled, smoothed, weighted

import poly
from codegen.c import link_flags, source
from codegen.calls.guard import declarations
from codegen.ir.program import Program
from codegen.ir.signature import Signature
from codegen.names import function_name
from codegen.toolchain.build import load
from microkernels.isa import PORTABLE, host
from poly import Schedule, f64
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.time_tiles import time_tiles
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.reference import reference
from poly.lowering import storage
from poly.lowering.lower import lower
from poly.model import Caches
from poly.model.core import Target

COUNTING = """#include <stdint.h>
static int64_t broken;
int64_t told_broken(void) { return broken; }
#define PFX_IN(index, extent) (broken += !((index) >= 0 && (index) < (extent)))
"""
N = poly.sizes("N")
SIZE = 5
ROOM = 1 << 12
"""Bytes before and after the workspace, so that wrong kernels do no harm."""


def run(program: Program, arrays: list[np.ndarray], threads: int) -> int:
    """Calls a kernel of one size, two arrays and a scalar. Returns how many of its accesses are out of bounds."""
    text, name = f"{COUNTING}{source(program, bounds=True)}", function_name(program.name)
    told = f"{declarations(Signature.of(program))}int64_t told_broken(void);"
    library = load(text, told, ("-O2", *host().flags, *link_flags(program)))
    sizes = [SIZE for _ in program.sizes]
    memory = np.full(getattr(library.lib, f"{name}_workspace")(*sizes, threads) + 3 * ROOM, 0xFF, np.uint8)
    at = library.ffi.from_buffer(memory)
    aligned = library.ffi.cast("char *", at) + ROOM + -int(library.ffi.cast("intptr_t", at)) % 64
    pointers = [library.ffi.from_buffer("double[]", array) for array in arrays]
    assert getattr(library.lib, name)(*sizes, *pointers, 0.25, threads, aligned) == 0
    return library.lib.told_broken()


@pytest.fixture(scope="module")
def always_folded() -> Iterator[None]:
    """Small arrays are folded, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "SMALL_BYTES", 0)
        yield


@pytest.mark.usefixtures("always_folded")
@settings(max_examples=20)
@given(local_schedules(), st.booleans(), st.integers(1, 2))
def test_any_schedule_of_locals(made: Schedule, known: bool, threads: int) -> None:
    nest, tree = fixed(made.nest, made.tree, SIZE) if known else (made.nest, made.tree)
    arrays = [np.random.default_rng(seed).random((SIZE + 9, SIZE + 9)) for seed in range(2)]
    expected = [array.copy() for array in arrays]
    reference(made.nest, (*expected, 0.25))
    assert run(lower(nest, tree, host()), arrays, threads) == 0
    for ours, theirs in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def bytes_of(nest: poly.Nest, schedule: Schedule, threads: int = 1, **sizes: int) -> int:
    return poly.compile(nest, schedule=schedule, target="c:portable", threads=2).workspace(threads, **sizes)


def test_scalars_of_a_time_step_need_no_memory() -> None:
    tiled = poly.schedule(jacobi).tile(i=4, j=8).parallel("i_tile").vectorize("j")
    for made in (poly.schedule(jacobi), tiled):
        assert bytes_of(jacobi, made, T=1000, N=1000) == 0


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_time_tiles_keep_temporary_values_in_one_iteration(depth: int) -> None:
    form = Form.fixed((), poly.schedule(jacobi.with_sizes({"T": 40, "N": 900})))
    forms = list(time_tiles(form, Target.nominal(PORTABLE, Caches(32 << 10, 1 << 20, 1 << 25), 1)))
    made = forms[depth].tried
    assert bytes_of(made.nest, made) == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_each_thread_has_one_row(threads: int) -> None:
    made = poly.schedule(smoothed).parallel("i").vectorize("j")
    assert bytes_of(smoothed, made, threads, M=500, N=1000) == threads * 8000


def test_rows_that_live_for_three_iterations_take_turns() -> None:
    whole, fused = poly.schedule(blurred), poly.schedule(blurred).fuse("S0", "S1", at="i")
    assert bytes_of(blurred, whole, M=500, N=1000) == 500 * 8000
    assert bytes_of(blurred, fused, M=500, N=1000) == 3 * 8000
    assert bytes_of(blurred, fused.split(i=16), M=500, N=1000) < 40 * 8000


def test_a_tile_has_its_own_part() -> None:
    """Both loops in one tile of j: the part of the row that the tile accesses."""
    pointwise = poly.schedule(scaled).tile(j=64).tile(j_2=64).fuse("S0", "S1", at="j_tile")
    assert bytes_of(scaled, pointwise, M=500, N=1000) == 64 * 8


def test_a_few_elements_are_a_variable() -> None:
    for made in (poly.schedule(weighted), poly.schedule(weighted).vectorize("j")):
        assert bytes_of(weighted, made, M=500, N=1000) == 0
        assert "double w[2];" in poly.compile(weighted, schedule=made, target="c:portable").source


def test_many_temporary_values_need_no_memory() -> None:
    """Their live ranges follow from the accesses, where the dependences of so many statements would take too long."""
    lines = [f"        t{k} = A[i, j + {k % 3}] + {f't{k - 1}' if k else 'z'}" for k in range(90)]
    head = ["def nest(A: f64[N, N + 2], B: f64[N, N], z: f64):", "    for i in range(N):", "      for j in range(N):"]
    nest = parse_text(
        Source("\n".join([*head, *lines, "        B[i, j] = t89 * t40"]), "many", 1), {"N": N, "f64": f64}
    )
    program = lower(nest, nest.tree, host())
    assert program.workspaces == () and sum(buffer.variable for buffer in program.buffers) == 90


@poly.nest
def at_the_end(A: f64[N], B: f64[N, N], C: f64[N, N]):
    for i in range(N):
        w: f64[N + 2]
        for j in range(N + 2):
            w[j] = A[i] + j  # noqa: F821
        for j in range(N):
            C[i, j] = w[j] * w[j + 2]  # noqa: F821
        if i == N - 1:
            for j in range(N):
                B[i, j] = w[j + 1]  # noqa: F821


@poly.nest
def copied(A: f64[N, N], B: f64[2 * N]):
    for j in range(N):
        B[j] = 1.0
        for k in range(2, j + 1):
            A[j, k] = B[N]


SCHEDULES: dict[str, Callable[[poly.Nest], Schedule]] = {
    "as written": poly.schedule,
    "parallel": lambda nest: poly.schedule(nest).parallel("i" if nest.name == "at_the_end" else "j"),
    "packed": lambda nest: poly.schedule(nest).parallel("j").pack("B", at="j"),
}


@pytest.mark.parametrize(
    ("nest", "way"), [(at_the_end, "as written"), (at_the_end, "parallel"), (copied, "parallel"), (copied, "packed")]
)
@pytest.mark.parametrize("known", [{}, {"N": 3}])
def test_what_the_last_iteration_keeps_is_there_for_all_of_it(nest: poly.Nest, way: str, known: dict[str, int]) -> None:
    """Statements that only the last iteration has could run behind the loop, in a thread's other memory."""
    made = SCHEDULES[way](nest.with_sizes(known))
    arrays = [np.random.default_rng(1).random([e.evaluate({"N": 3}) for e in a.shape]) for a in nest.arguments]
    expected = [values.copy() for values in arrays]
    reference(nest, tuple(expected))
    poly.compile(made.nest, schedule=made, threads=2)(*arrays)
    for got, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(got, wanted)
