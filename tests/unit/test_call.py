"""Calls from Python: what is accepted, and for everything else an ArgumentError that changes nothing."""

from __future__ import annotations

import array
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from programs import K, M, N, band, compiled, i, matmul, scaled_copy, scan

from codegen.c import link_flags, source
from codegen.calls.call import Caller, Pool, c_arguments, make_caller
from codegen.calls.fastcall import caller_source
from codegen.calls.guard import declarations
from codegen.errors import ArgumentError
from codegen.ir.expr import Binary, Index, Load
from codegen.ir.integer import Affine
from codegen.ir.program import Assign, Buffer, PrintedStatement, Program
from codegen.ir.signature import Signature
from codegen.toolchain.build import load
from microkernels.dtypes import f32, f64, i32

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def matrices(m: int = 6, n: int = 5, k: int = 4) -> Arrays:
    rng = np.random.default_rng(0)
    return tuple(rng.random(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))


@pytest.fixture(scope="module", params=["symbolic", "known"])
def call(request: pytest.FixtureRequest) -> Caller:
    return compiled(matmul()) if request.param == "symbolic" else compiled(matmul(size=8))


@pytest.fixture
def arrays(request: pytest.FixtureRequest) -> Arrays:
    return matrices(8, 8, 8)


def refused(call: Callable[..., None], arguments: tuple[Any, ...], expected: str, **keywords: Any) -> None:
    """The whole message is `expected`, and no array has changed."""
    kept = [np.array(a, copy=True) for a in arguments if isinstance(a, np.ndarray)]
    with pytest.raises(ArgumentError) as caught:
        call(*arguments, **keywords)
    assert str(caught.value) == expected
    for before, after in zip(kept, (a for a in arguments if isinstance(a, np.ndarray)), strict=True):
        np.testing.assert_array_equal(before, after)


def test_by_position_and_by_name(call: Caller, arrays: Arrays) -> None:
    a, b, c = arrays
    expected = c + 2 * (a @ b)
    call(a, b, c)
    call(C=c, A=a, B=b)
    np.testing.assert_allclose(c, expected, rtol=1e-5)


def test_inputs_may_be_one_array(call: Caller, arrays: Arrays) -> None:
    a, _, c = arrays
    expected = c + a @ a
    call(a, a, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5)


def test_equal_dtypes_that_are_not_the_same_object(call: Caller, arrays: Arrays) -> None:
    a, b, c = arrays
    odd = a.astype(np.dtype("f4", metadata={"unit": "m"}))
    expected = c + a @ b
    call(odd, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5)


def test_wrong_dtype(arrays: Arrays) -> None:
    a, b, c = arrays
    call = compiled(matmul())
    message = "A has dtype float64; expected A: f32[M, K]. Remedy: A.astype(np.float32)"
    refused(call, (a.astype(np.float64), b, c), message)
    got = "A has dtype float32 with its bytes in the other order"
    swapped = f"{got}; expected A: f32[M, K]. Remedy: A.astype(np.float32)"
    refused(call, (a.astype(">f4"), b, c), swapped)


def test_wrong_shape_or_rank() -> None:
    a, b, c = matrices()
    call = compiled(matmul())
    refused(call, (a[0], b, c), "A has 1 dimension, shape (4,); expected 2 dimensions: A: f32[M, K]")
    refused(
        call,
        (a, b[:3], c),
        "B has shape (3, 5); expected (4, 5): it is B: f32[K, N], and K = 4 (dimension 1 of A)",
    )
    refused(call, (a, b, c.T), "C has shape (5, 6); expected (6, 5): it is C: f32[M, N], and M = 6 (dimension 0 of A)")
    refused(compiled(matmul(size=8)), (a, b, c), "A has shape (6, 4); expected (8, 8)")


def test_read_only_output(call: Caller, arrays: Arrays) -> None:
    a, b, c = arrays
    c.flags.writeable = False
    refused(
        call,
        (a, b, c),
        "C is read-only, and the kernel writes it. Remedy: work = C.copy(), pass work, and take the results from it",
    )
    a.flags.writeable = False
    call(a, b, c.copy())


def test_overlapping_output(call: Caller) -> None:
    memory = np.random.default_rng(0).random(200, np.float32)
    a, b, c = (memory[start : start + 64].reshape(8, 8) for start in (0, 64, 127))
    refused(call, (a, b, c), "C is written and shares memory with B. Remedy: pass a copy of B, B.copy()")
    refused(call, (a, b, a), "C is written and shares memory with A. Remedy: pass a copy of A, A.copy()")
    beside = memory[128:192].reshape(8, 8)
    expected = beside + a @ b
    call(a, b, beside)
    np.testing.assert_allclose(beside, expected, rtol=1e-5)


def test_not_contiguous(call: Caller, arrays: Arrays) -> None:
    a, b, c = arrays
    refused(
        call,
        (a.T, b, c),
        "A is not contiguous: shape (8, 8), strides (4, 32) bytes. Remedy: np.ascontiguousarray(A)",
    )
    wide = np.zeros((8, 16), np.float32)
    refused(
        call,
        (a, b, wide[:, ::2]),
        "C is not contiguous: shape (8, 8), strides (64, 8) bytes. "
        "Remedy: work = np.ascontiguousarray(C), and copy it back after the call: C[...] = work",
    )
    assert not wide.any()


def test_not_aligned(call: Caller, arrays: Arrays) -> None:
    _, b, c = arrays
    odd = np.zeros(8 * 8 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(8, 8)
    refused(
        call,
        (odd, b, c),
        "A is not aligned: its elements don't start at multiples of their size. Remedy: A.copy()",
    )


def test_not_an_array(call: Caller, arrays: Arrays) -> None:
    a, b, c = arrays
    for value, kind in ((a.tolist(), "a list"), (3, "an int"), (None, "a NoneType")):
        expected = rf"^A is {kind}; expected a NumPy array, A: f32\[.*Remedy: np.asarray\(A, dtype=np.float32\)$"
        with pytest.raises(ArgumentError, match=expected):
            call(value, b, c)
    with pytest.raises(ArgumentError, match=r"masked array.*A.filled\(0\)"):
        call(np.ma.masked_array(a), b, c)


class Foreign:
    """Another library's array: it shares its memory by DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries(call: Caller, arrays: Arrays) -> None:
    a, b, c = arrays
    expected = c + a @ b
    shared = memoryview(c)
    call(Foreign(a), memoryview(b), shared)
    np.testing.assert_allclose(c, expected, rtol=1e-5)
    with pytest.raises(ArgumentError, match="B has 1 dimension"):
        call(a, array.array("f", b.ravel()), c)


def test_number_of_arguments() -> None:
    a, b, c = matrices()
    call = compiled(matmul())
    takes = "matmul takes 3 arguments: A: f32[M, K], B: f32[K, N], C: f32[M, N]"
    refused(call, (a, b), f"{takes}. Missing: C.")
    refused(call, (), f"{takes}. Missing: A, B, C.")
    refused(call, (a, b, c, c), f"{takes}. Got 4.")
    refused(call, (a, b, c), "got A twice, by position and by name", A=a)
    refused(call, (a, b, c), f"{takes}. It has no D.", D=c)
    refused(call, (a, b, c), "M = 7 is given, but the arrays tell M = 6 (dimension 0 of A). Leave M out", M=7)


@pytest.mark.parametrize("threads", [0, -1, 1.0, "2", None, True, 5000])
def test_threads(call: Caller, arrays: Arrays, threads: Any) -> None:
    refused(call, arrays, f"threads must be an integer from 1 to 4096; got {threads!r}", threads=threads)


def test_threads_of_numpy(call: Caller, arrays: Arrays) -> None:
    call(*arrays, threads=np.int64(2))


def test_scalars() -> None:
    call = compiled(scaled_copy())
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    for alpha in (3, 3.0, np.float32(3), np.array(3.0), np.int8(3)):
        y[...] = 0
        call(x, y, alpha)
        assert (y == 3).all()
    y[...] = 0
    refused(call, (x, y, "3"), "alpha must be a number (f32); got a str")
    refused(call, (x, y, 3j), "alpha must be a number (f32); got a complex")
    refused(call, (x, y, np.ones(2)), "alpha must be a number (f32); got a ndarray")


def shift(scalar: Buffer) -> Caller:
    """`y[i] = n` for i below N."""
    body = Assign(Load("y", (i,)), "=", Load("n", ()))
    ast = scan("[N] -> { S[i] : 0 <= i < N }", band("i", "[N] -> { S[i] -> [i] }"))
    buffers = (Buffer("y", i32, (N,), "out"), scalar)
    return compiled(Program("put", ("N",), buffers, ast, {"S": PrintedStatement(("i",), body)}))


@pytest.mark.parametrize("name", ["threads", "int64_t", "double", "workspace", "max_f32", "memcpy", "A_bytes"])
def test_any_name_of_an_array_or_size(name: str) -> None:
    """Names that the generated C or Python uses itself."""
    size = Affine.name(name + "s" if name != "threads" else "workspace")
    known = f"[{size}] -> "
    body = Assign(Load(name, (i,)), "=", Load("A", (i,)))
    ast = scan(f"{known}{{ S[i] : 0 <= i < {size} }}", band("i", f"{known}{{ S[i] -> [i] }}"))
    buffers = (Buffer("A", f32, (size,), "in"), Buffer(name, f32, (size,), "out"))
    call = compiled(Program("index", (str(size),), buffers, ast, {"S": PrintedStatement(("i",), body)}))
    x, y = np.ones(3, np.float32), np.zeros(3, np.float32)
    call(x, y)
    assert (y == 1).all()


def test_integer_scalars() -> None:
    call = shift(Buffer("n", i32, (), "scalar"))
    y = np.zeros(3, np.int32)
    call(y, -7)
    assert y.tolist() == [-7] * 3
    refused(call, (y, 2.5), "n must be an integer (i32); got a float")
    refused(call, (y, 2**31), "n = 2147483648 does not fit in i32")


@pytest.mark.parametrize("shape", [(0, 5, 4), (6, 0, 4), (6, 5, 0), (0, 0, 0)])
def test_zero_sizes(shape: tuple[int, int, int]) -> None:
    a, b, c = matrices(*shape)
    before = c.copy()
    compiled(matmul())(a, b, c)
    np.testing.assert_array_equal(c, before)


def test_nothing_runs_where_every_output_is_empty() -> None:
    """Not even the checks of the kernel's own: the same memory may stand for both."""
    empty = np.empty((0, 5), np.float32)
    compiled(matmul())(np.empty((0, 4), np.float32), np.ones((4, 5), np.float32), empty)


def test_nan_and_infinity(call: Caller, arrays: Arrays) -> None:
    a, b, c = arrays
    a[1, 2], b[3, 4], c[5, 6] = np.nan, np.inf, -np.inf
    expected = c + a @ b
    call(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5)


def window(extent: Affine, sizes: tuple[str, ...], *more: Buffer) -> Program:
    """`y[p] = x[p]`, with x as long as `extent`."""
    p = Affine.name("p")
    known = f"[{', '.join(sizes)}] -> "
    ast = scan(f"{known}{{ S[p] : 0 <= p < P }}", band("p", f"{known}{{ S[p] -> [p] }}"))
    buffers = (Buffer("x", f32, (extent,), "in"), *more, Buffer("y", f32, (Affine.name("P"),), "out"))
    body = Assign(Load("y", (p,)), "=", Load("x", (p,)))
    return Program("window", sizes, buffers, ast, {"S": PrintedStatement(("p",), body)})


def test_sizes_from_compound_extents() -> None:
    """x has P + R - 1 elements, y tells P: so R follows."""
    p, r = Affine.name("P"), Affine.name("R")
    call = compiled(window(p + r - 1, ("P", "R")))
    x, y = np.arange(8, dtype=np.float32), np.zeros(5, np.float32)
    call(x, y)
    np.testing.assert_array_equal(y, x[:5])
    refused(
        call,
        (x[:3], y),
        "x has shape (3,); expected x: f32[P + R - 1]: no size R makes P + R - 1 = 3 where P = 5",
    )


def test_extents_that_are_multiples() -> None:
    call = compiled(window(2 * Affine.name("Q"), ("P", "Q")))
    x, y = np.arange(8, dtype=np.float32), np.zeros(5, np.float32)
    call(x, y)
    np.testing.assert_array_equal(y, x[:5])
    refused(call, (x[:7], y), "x has shape (7,); expected x: f32[2*Q]: no size Q makes 2*Q = 7 where P = 5")


def test_sizes_that_disagree_with_a_compound_extent() -> None:
    weights = Buffer("w", f32, (Affine.name("R"),), "in")
    call = compiled(window(Affine.name("P") + Affine.name("R") - 1, ("P", "R"), weights))
    x, w, y = np.ones(7, np.float32), np.ones(3, np.float32), np.zeros(5, np.float32)
    call(x, w, y)
    refused(
        call,
        (x, w[:2], y),
        "x has shape (7,); expected (6,): it is x: f32[P + R - 1], "
        "and P = 5 (dimension 0 of y), R = 2 (dimension 0 of w)",
    )


def test_sizes_that_no_array_tells() -> None:
    """A number of time steps: it comes by keyword."""
    t = Affine.name("t")
    tree = band("t", "[T, N] -> { S[t, i] -> [t] }", band("i", "[T, N] -> { S[t, i] -> [i] }"))
    ast = scan("[T, N] -> { S[t, i] : 0 <= t < T and 0 <= i < N }", tree)
    body = Assign(Load("y", (i,)), "+", Binary("*", Index(t), Load("y", (i,))))
    program = Program(
        "steps", ("T", "N"), (Buffer("y", f64, (N,), "inout"),), ast, {"S": PrintedStatement(("t", "i"), body)}
    )
    call = compiled(program)
    y = np.ones(4)
    call(y, T=4)
    assert y.tolist() == [24.0] * 4
    call(y, T=np.int32(0))
    refused(call, (y,), "steps needs the size T, which no array's shape tells. Call steps(y, T=…)")
    refused(call, (y,), "the size T must be an integer, 0 or larger; got -1", T=-1)
    refused(call, (y,), "the size T must be an integer, 0 or larger; got 2.0", T=2.0)
    refused(call, (y,), "steps takes 1 argument: y: f64[N]; by keyword also T. It has no S.", T=1, S=1)


def strided_matmul() -> Program:
    """The matmul whose arrays have their rows at any distance."""
    dense = matmul()
    buffers = tuple(Buffer(b.name, b.dtype, b.shape, b.kind, (f"{b.name}_stride0", "1")) for b in dense.buffers)
    sizes = dense.sizes + tuple(f"{b.name}_stride0" for b in buffers)
    return Program("matmul", sizes, buffers, dense.loops, dense.statements)


def with_strided() -> tuple[Caller, list[str]]:
    """A matmul that has a strided variant, and a list that grows when the variant is made."""
    made: list[str] = []

    def make() -> Caller:
        made.append("strided")
        return compiled(strided_matmul())

    program = matmul()
    text, signature = source(program), Signature.of(program)
    library = load(text, declarations(signature), link_flags(program))
    return make_caller(signature, library, strided=make), made


def test_strided_arrays() -> None:
    call, made = with_strided()
    big = np.random.default_rng(0).random((20, 40), np.float32)
    a, b, c = big[:12:2, :4], big[4:8, 10:15], big[:6, 20:25]
    rest = big.copy()
    call(*matrices())
    assert not made, "the variant is made when it is needed, not before"
    for _ in range(2):
        expected = c + a @ b
        call(a, b, c)
        np.testing.assert_allclose(c, expected, rtol=1e-5)
    assert made == ["strided"], "once"
    rest[:6, 20:25] = c
    np.testing.assert_array_equal(big, rest, "and nothing else was written")
    refused(call, (a, b, big[:6, 3:8]), "C is written and shares memory with A. Remedy: pass a copy of A, A.copy()")
    with pytest.raises(ArgumentError, match="B has shape"):
        call(a, big[:5, :5], c)


def test_strided_arrays_beside_each_other() -> None:
    """Rows that take turns in memory: their ranges overlap, but they share no byte."""
    call, _ = with_strided()
    both = np.random.default_rng(0).random((8, 16), np.float32)
    a, c, b = both[:, :8], both[:, 8:], np.random.default_rng(1).random((8, 8), np.float32)
    expected = c + a @ b
    call(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5)


@pytest.mark.parametrize("view", ["reversed", "transposed", "every other column", "odd bytes"])
def test_strides_that_no_variant_takes(view: str) -> None:
    call, made = with_strided()
    a, b, c = matrices(4, 4, 4)
    records = np.zeros((4, 4), [("value", "f4"), ("tag", "u1")])["value"]
    wrong = {"reversed": a[::-1], "transposed": a.T, "every other column": np.zeros((4, 8), np.float32)[:, ::2]}
    with pytest.raises(ArgumentError, match=r"A is not (contiguous|aligned).*Remedy: "):
        call(wrong.get(view, records), b, c)
    assert not made, "nothing is compiled for what will be refused"


def test_an_output_whose_elements_share_memory() -> None:
    call, _ = with_strided()
    a, b, _ = matrices(4, 4, 4)
    row = np.zeros(4, np.float32)
    c = np.lib.stride_tricks.as_strided(row, (4, 4), (0, 4))
    with pytest.raises(ArgumentError, match="C is written, but several of its elements share memory"):
        call(a, b, c)
    wide = np.lib.stride_tricks.as_strided(np.ones(4, np.float32), (4, 4), (0, 4))
    c = np.zeros((4, 4), np.float32)
    call(wide, b, c)
    np.testing.assert_allclose(c, wide @ b, rtol=1e-5)


def test_arguments_for_many_calls() -> None:
    program = scaled_copy()
    text, signature = source(program), Signature.of(program)
    library = load(text, declarations(signature), link_flags(program))
    x, y = np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)
    arguments = c_arguments(signature, library, (x, y, 2.0), 2)
    assert library.lib.scaled_copy(*arguments) == 0
    assert (y == 2).all()
    with pytest.raises(ArgumentError, match="y is not contiguous"):
        c_arguments(signature, library, (x, np.zeros((3, 8), np.float32)[:, ::2], 2.0))


def test_the_pool_gives_pages_and_takes_them_back() -> None:
    program = scaled_copy()
    text, signature = source(program), Signature.of(program)
    library = load(text, declarations(signature), link_flags(program))
    pool = Pool(signature, library)
    first, second = pool.take((16, 16, 1)), pool.take((16, 16, 1))
    assert first[0] == library.lib.scaled_copy_workspace(16, 16, 1) == 16 * 16 * 4 + 16 * 4
    assert first[1] != second[1]
    assert int(library.ffi.cast("intptr_t", first[1])) % 4096 == 0
    pool.give(first)
    assert pool.take((8, 8, 1)) is first
    pool.give(first)
    assert pool.take((32, 32, 1))[0] > first[0]


def test_the_fast_way_needs_few_steps() -> None:
    """One comparison each for type and shape, one conversion for each array, one call."""
    text = caller_source(Signature.of(matmul(size=8)))
    assert len(re.findall(r"_buffer\(", text)) == 3
    assert len(re.findall(r"data_ptr\(\)", text)) == 3
    assert text.count("_guarded(") == text.count("_guarded_at(") == 1
    assert "_free" not in text
    assert {str(K), str(M)} <= set(Signature.of(matmul()).sizes)
