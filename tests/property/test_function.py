"""Nests that are called like functions: which kernel serves a call."""

from __future__ import annotations

import ast
import gc
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opencl_device import TARGET, device

import poly
from poly import ArgumentError, f32, f64
from poly.function import FORMS, SPECIALISED

M, N, T = poly.sizes("M N T")
row = poly.sizes("row")

HARMLESS = {
    "str",
    "type[Step]",
    "ISA",
    "isa.ISA",
    "DType",
    "DType | None",
    "PowerTable",
    "Device",
    "tuple[Space, ...]",
    "Elements",
    "tuple[int, int]",
    "int",
}
"""Types of which a process has few values: names of files, instruction sets, element types, devices."""

LOCAL = {"fits"}
"""Functions in functions, whose results go with them."""


@poly.nest
def copy(A: f32[M], B: f32[M]):
    for i in range(M):
        B[i] = A[i]


@poly.nest
def first_column(A: f32[M, N], x: f32[M]):
    for i in range(M):
        x[i] = A[i, 0]


@poly.nest
def added_columns(A: f32[M, N], x: f32[M]):
    for _t in range(T):
        for i in range(M):
            x[i] += A[i, 0]


def copied(nest: poly.Function, size: int) -> bool:
    source, target = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
    nest(source, target)
    return bool((source == target).all())


def test_a_nest_with_sizes_fixed_has_kernels_of_its_own() -> None:
    """Neither serves the other's calls, also beyond the number of sizes that get a kernel each."""
    fixed = copy.with_sizes({"M": 3})
    assert copied(fixed, 3)
    assert all(copied(copy, size) for size in range(2 * SPECIALISED))
    with pytest.raises(ArgumentError, match=r"expected \(3,\)"):
        copied(fixed, 4)
    assert copied(fixed, 3)


@pytest.mark.parametrize("given", [False, True])
def test_an_array_without_elements_is_not_touched(given: bool) -> None:
    """Also with a given schedule: its steps are made on the nest whose iterations on empty arrays do not run."""
    schedule = poly.schedule(first_column).split(i=4) if given else None
    kernel = poly.compile(first_column, schedule=schedule, threads=1)
    for columns, expected in ((0, 7.0), (2, 1.0)):
        taken = np.full(6, 7.0, np.float32)
        kernel(np.ones((6, columns), np.float32), taken)
        assert (taken == expected).all()


@pytest.mark.parametrize("size", ["lane", "thread", "half"])
def test_a_size_that_no_array_tells_may_have_a_name_of_generated_code(size: str) -> None:
    T = poly.sizes(size)

    @poly.nest
    def steps(y: f64[3]):
        for t in range(T):
            y[1] += t

    y = np.zeros(3)
    poly.compile(steps, records=False)(y, **{size: 4})
    assert y.tolist() == [0.0, 6.0, 0.0]
    with pytest.raises(poly.ArgumentError, match=rf"Call steps\(y, {size}=…\)"):
        poly.compile(steps, records=False)(y)


@poly.nest
def smooth(x: f32[N], y: f32[N]):
    for _t in range(T):
        for i in range(1, N - 1):
            y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3
        for i in range(1, N - 1):
            x[i] = y[i]


@poly.nest
def named(x: f32[N]):
    """Sizes with names that C or Python's text of a call has for itself."""
    for _a in range(row):
        for b in range(N):
            x[b] += 1


def smoothed(steps: int) -> np.ndarray:
    x = np.arange(30, dtype=np.float32) ** 2
    smooth.reference(x, np.zeros_like(x), T=steps)
    return x


WAYS = {
    "called": lambda: smooth,
    "open": lambda: poly.compile(smooth),
    "two threads": lambda: poly.compile(smooth, threads=2),
    "scheduled": lambda: poly.compile(smooth, schedule=poly.schedule(smooth).split(_t=2)),
    "one size known": lambda: poly.compile(smooth, N=30),
    "partly fixed": lambda: smooth.with_sizes({"N": 30}),
    "opencl": lambda: poly.compile(smooth, target=f"{device() and TARGET}"),
    "opencl, one size known": lambda: poly.compile(smooth, target=f"{device() and TARGET}", N=30),
    "reference": lambda: smooth.reference,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_size_that_no_array_tells_is_given_by_keyword(way: str) -> None:
    run = WAYS[way]()
    for steps in [0, 1, 3, 3, np.int64(2), *range(4, 4 + 2 * (way == "called") * SPECIALISED)]:
        for more in ({}, {"N": 30}):
            x, y = np.arange(30, dtype=np.float32) ** 2, np.zeros(30, np.float32)
            run(x, y=y, T=steps, **more)
            np.testing.assert_allclose(x, smoothed(steps), rtol=1e-4)


@pytest.mark.parametrize("way", WAYS)
def test_sizes_that_are_wrong_or_missing_are_named(way: str) -> None:
    run = WAYS[way]()
    x, y = np.ones(30, np.float32), np.ones(30, np.float32)
    wrong = {
        r"smooth needs the size T, which no array's shape tells\. Call smooth\(x, y, T=…\)": {},
        "N = 31 is given, but ": {"T": 1, "N": 31},
        r"It has no Q\.": {"T": 1, "Q": 3},
        "the size T must be an integer, 0 or larger; got -1": {"T": -1},
        "the size T must be an integer, 0 or larger; got True": {"T": True},
        r"the size T must be an integer, 0 or larger; got \[3\]": {"T": [3]},
        r"the size T must be at most 2\*\*48": {"T": 1 << 63},
    }
    for message, keywords in wrong.items():
        run(np.ones(30, np.float32), np.ones(30, np.float32), T=2)  # the call before changes nothing
        with pytest.raises(ArgumentError, match=message):
            run(x, y, **keywords)
    assert (x == 1).all() and (y == 1).all()


def arrays(sizes: tuple[int, int], kind: str) -> list[Any]:
    """Arguments of these two nests, of a kind that fits or does not."""
    rows, columns = sizes
    a, x = np.arange(rows * columns, dtype=np.float32).reshape(sizes), np.full(rows, -1, np.float32)
    return {
        "fit": [a, x],
        "strided": [np.repeat(a, 2, axis=1)[:, ::2], np.full(2 * rows, -1, np.float32)[::2]],
        "short": [a, np.zeros(rows + 1, np.float32)],
        "double": [a, x.astype(np.float64)],
        "one": [a],
        "list": [a.tolist(), x],
        "many": [a, x, x],
        "overlap": [a, a[:, 0]],
        "constant": [a, np.frombuffer(x.tobytes(), np.float32)],
    }[kind]


ODD = ["strided", "short", "double", "one", "list", "many", "overlap", "constant"]
CALLS = st.tuples(
    st.sampled_from([(2, 2), (2, 2), (3, 1), (0, 2)]),
    st.sampled_from([*["fit"] * 16, *ODD]),
    st.booleans(),
    st.sampled_from(
        [*[{}, {"T": 1}, {"T": 3}] * 4, {"threads": 1}, {"threads": 2}, {"threads": 0}, {"M": 2}, {"N": 2}]
    ),
)


@settings(max_examples=70)
@given(st.sampled_from([first_column, added_columns]), st.lists(CALLS, min_size=2, max_size=8))
def test_a_call_does_not_depend_on_the_calls_before(tested: poly.Function, calls: list[Any]) -> None:
    """Each gives the same result or error as on a nest that has never been called."""

    def outcome(nest: poly.Function, sizes: tuple[int, int], kind: str, named: bool, more: dict[str, int]) -> Any:
        given = arrays(sizes, kind)
        names = {"x": given.pop()} if named and len(given) == 2 else {}
        try:
            nest(*given, **names, **more)
        except ArgumentError as error:
            return re.sub(r"f32\[.*?\]", "f32[…]", str(error))  # a kernel for known sizes names them
        return [np.array(value).tolist() for value in (*given, *names.values())]

    tested.forget()
    for call in calls:
        fresh = tested.with_sizes({})
        assert outcome(tested, *call) == outcome(fresh, *call)


@pytest.mark.parametrize("way", ["called", "open"])
def test_calls_at_once_have_workspaces_of_their_own(way: str) -> None:
    """Calls of several threads take, enlarge and give back workspaces, for sizes that grow and shrink."""
    nest = poly.einsum("mk,kn->mn", dtype=f64)
    run = nest if way == "called" else poly.compile(nest, threads=1)
    assert poly.compile(nest, threads=1).signature.scratch

    def right(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        m, n, k = (int(size) for size in rng.integers(1, 90, 3))
        a, b, c = rng.random((m, k)), rng.random((k, n)), np.full((m, n), np.nan)
        run(a, b, c)
        return np.allclose(c, a @ b)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(right, range(400)))


def test_a_fixed_size_may_be_given_again() -> None:
    x, y = np.arange(30, dtype=np.float32) ** 2, np.zeros(30, np.float32)
    for run in (poly.compile(smooth, T=0), smooth.with_sizes({"T": 0}), smooth.with_sizes({"T": 0}).reference):
        run(x, y)
        run(x, y, T=0)
        with pytest.raises(ArgumentError, match=r"T = 4 is given, but smooth was made for T = 0\. Leave T out"):
            run(x, y, T=4)


def test_sizes_with_names_of_c_and_of_calls() -> None:
    x = np.zeros(5, np.float32)
    named(x, row=3)
    poly.compile(named)(x, row=2)
    assert (x == 5).all()


def test_einsum_takes_its_sizes_too() -> None:
    product = poly.einsum("mk,kn->mn")
    a, b, c = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32), np.zeros((2, 4), np.float32)
    product(a, b, c, K=3)
    assert (c == 3).all()
    with pytest.raises(ArgumentError, match=r"K = 4 is given, but the arrays tell K = 3"):
        product(a, b, c, K=4)


def test_arguments_for_the_c_function_hold_such_sizes() -> None:
    kernel = poly.compile(smooth)
    x, y = np.arange(30, dtype=np.float32) ** 2, np.zeros(30, np.float32)
    kernel.function(*kernel.arguments(x, y, T=3))
    np.testing.assert_allclose(x, smoothed(3), rtol=1e-4)


@pytest.mark.parametrize("way", ["called", "compiled", "strided", "opencl"])
def test_no_memory_grows_with_the_number_of_shapes(way: str) -> None:
    """Thousands of shapes leave no more behind than the first thousand: each entry of a table takes several blocks."""
    run = {
        "called": lambda: copy,
        "compiled": lambda: poly.compile(copy),
        "strided": lambda: poly.compile(copy),
        "opencl": lambda: poly.compile(copy, target=f"{device() and TARGET}"),
    }[way]()

    def blocks_after(sizes: range) -> int:
        for size in sizes:
            a, b = np.ones(size, np.float32), np.zeros(2 * size, np.float32)[:: 2 if way == "strided" else 1]
            with suppress(ArgumentError):  # this nest takes neighbours only
                run(a, b[:size])
        gc.collect()
        return sys.getallocatedblocks()

    begun = blocks_after(range(2, 2 + 1_024))
    grown = blocks_after(range(1_026, 1_026 + 3_072)) - begun
    assert grown < 1_200
    assert len(copy._kernels) <= SPECIALISED + 1 and len(copy._forms) <= FORMS


def test_no_cache_is_without_a_bound() -> None:
    """Each function whose results are kept for ever takes nothing that a user's sizes, shapes or schedules decide."""
    root = Path(poly.__file__).parent.parent
    paths = [path for folder in ("poly", "codegen", "microkernels") for path in (root / folder).rglob("*.py")]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text()))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    kept = [f for f in functions if {ast.unparse(d) for d in f.decorator_list} & {"cache", "functools.cache"}]
    taken = {ast.unparse(arg.annotation) for f in kept if f.name not in LOCAL for arg in f.args.args if arg.annotation}
    assert len(kept) > 10 and taken <= HARMLESS
