"""Arguments that don't fit: each has its own clear error, and nothing has changed in the arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from shared_nests import matmul

import poly
from poly import f32, f64, i8

M, N, K = poly.sizes("M N K")
M_, N_, K_ = 6, 5, 4
Array = np.ndarray[Any, Any]
Arrays = tuple[Array, Array, Array]


def matrices(m: int = M_, n: int = N_, k: int = K_) -> Arrays:
    rng = np.random.default_rng(m * 100 + n * 10 + k)
    return rng.random((m, k), np.float32), rng.random((k, n), np.float32), rng.random((m, n), np.float32)


@pytest.fixture(scope="module", params=["symbolic", "fixed"])
def kernel(request: pytest.FixtureRequest) -> poly.Kernel:
    return poly.compile(matmul) if request.param == "symbolic" else poly.compile(matmul, M=M_, N=N_, K=K_)


def refused(kernel: Callable[..., None], arrays: tuple[Any, ...], *words: str) -> None:
    """The call raises ArgumentError with these words, and changes no array."""
    before = [np.array(a, copy=True) for a in arrays if isinstance(a, np.ndarray)]
    with pytest.raises(poly.ArgumentError) as caught:
        kernel(*arrays)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    for old, new in zip(before, [a for a in arrays if isinstance(a, np.ndarray)], strict=True):
        np.testing.assert_array_equal(old, new)


def test_wrong_dtype(kernel: poly.Kernel) -> None:
    A, B, C = matrices()
    refused(kernel, (A.astype(np.float64), B, C), "A has dtype float64", "expected A: f32[")
    refused(kernel, (A, B.astype(np.int32), C), "B has dtype int32", "astype")
    refused(kernel, (A, B, C.astype(np.complex64)), "C has dtype complex64")
    refused(kernel, (A.astype(">f4"), B, C), "A has dtype float32", "order")
    refused(kernel, (A.astype(object), B, C), "A has dtype object")


def test_complex_for_real_and_real_for_complex() -> None:
    nest = poly.parse(
        "def scale(x: c128[N], r: f64[N]):\n    for i in range(N):\n        x[i] *= r[i]", {"N": poly.sizes("N")}
    )
    x, r = np.ones(3, complex), np.ones(3)
    refused(nest, (r, r.copy()), "x has dtype float64; expected x: c128[N]")
    refused(nest, (np.ones((3, 2)), r), "x has dtype float64; expected x: c128[N]")
    refused(nest, (x, x.copy()), "r has dtype complex128; expected r: f64[N]")
    refused(nest, (x, r[:2].copy()), "r has shape (2,); expected (3,)")


def test_wrong_rank(kernel: poly.Kernel) -> None:
    A, B, C = matrices()
    refused(kernel, (A[0], B, C), "A has 1 dimension", "2 dimensions")
    refused(kernel, (A, B[None], C), "B has 3 dimensions")
    refused(kernel, (A, B, np.zeros((), np.float32)), "C has 0 dimensions")


def test_sizes_that_disagree(kernel: poly.Kernel) -> None:
    A, B, C = matrices()
    refused(kernel, (A, B[:-1].copy(), C), "B has shape (3, 5)", "expected")
    refused(kernel, (A, B, C[:, :-1].copy()), "C has shape (6, 4)", "expected")
    refused(kernel, (A, B, C.T.copy()), "C has shape (5, 6)", "expected")


def test_wrong_shape_for_a_kernel_of_known_sizes() -> None:
    kernel = poly.compile(matmul, M=M_, N=N_, K=K_)
    refused(kernel, matrices(7, 5, 4), "A has shape (7, 4)", "expected", "take the nest with its sizes open")


def test_an_argument_twice(kernel: poly.Kernel) -> None:
    A, B, C = matrices()
    for call in (kernel, matmul.reference):
        with pytest.raises(poly.ArgumentError, match="got A twice"):
            call(A, B, C, A=A)


def test_no_array(kernel: poly.Kernel) -> None:
    A, B, C = matrices()
    refused(kernel, (A.tolist(), B, C), "A is a list", "np.asarray")
    refused(kernel, (A, None, C), "B is a NoneType")
    refused(kernel, (A, B, 1.0), "C is a float")
    refused(kernel, (np.ma.masked_array(A, A > 0.5), B, C), "A is a masked array", "filled")


def test_wrong_number_of_arguments(kernel: poly.Kernel) -> None:
    A, B, C = matrices()
    refused(kernel, (A, B), "3 arguments", "Missing: C")
    refused(kernel, (A, B, C, C), "3 arguments", "Got 4")
    with pytest.raises(poly.ArgumentError, match="D"):
        kernel(A, B, C, D=C)
    with pytest.raises(poly.ArgumentError, match="A twice"):
        kernel(A, B, C, A=A)


def test_read_only_output(kernel: poly.Kernel) -> None:
    A, B, C = matrices()
    C.flags.writeable = False
    refused(kernel, (A, B, C), "C is read-only", "copy")


def test_read_only_inputs_are_fine(kernel: poly.Kernel) -> None:
    A, B, C = matrices()
    A.flags.writeable = B.flags.writeable = False
    expected = C + A @ B
    kernel(A, B, C)
    np.testing.assert_allclose(C, expected, rtol=1e-5)


def test_overlapping_output() -> None:
    kernel = poly.compile(matmul)
    memory = np.random.default_rng(0).random(60, np.float32)
    A, B, C = memory[:16].reshape(4, 4), memory[16:32].reshape(4, 4), memory[28:44].reshape(4, 4)
    refused(kernel, (A, B, C), "C is written and shares memory with B", "copy")
    refused(kernel, (A, B, A), "C is written and shares memory with A")
    expected = memory[44:60].reshape(4, 4) + A @ B
    kernel(A, B, memory[44:60].reshape(4, 4))  # neighbours don't overlap
    np.testing.assert_allclose(memory[44:60].reshape(4, 4), expected, rtol=1e-5)


def test_output_whose_elements_share_memory(kernel: poly.Kernel) -> None:
    A, B, C = matrices()
    shared = np.lib.stride_tricks.as_strided(C, (M_, N_), (0, 4))
    refused(kernel, (A, B, shared), "C is written", "share memory")


def test_the_same_input_twice() -> None:
    A = np.random.default_rng(0).random((9, 9), np.float32)
    C = np.zeros_like(A)
    poly.compile(matmul)(A, A, C)
    np.testing.assert_allclose(C, A @ A, rtol=1e-5)


def test_unaligned_array(kernel: poly.Kernel) -> None:
    A, B, C = matrices()
    shifted = np.frombuffer(bytearray(1) + A.tobytes(), np.float32, offset=1).reshape(A.shape)
    refused(kernel, (shifted, B, C), "A is not aligned", "copy")


@pytest.mark.parametrize("which", [0, 1, 2])
def test_rows_apart_are_taken(kernel: poly.Kernel, which: int) -> None:
    """An array whose rows lie further apart than they are long: nothing between is touched."""
    arrays = list(matrices())
    expected = arrays[2] + arrays[0] @ arrays[1]
    wide = np.full((arrays[which].shape[0], 40), np.nan, np.float32)
    wide[:, 7 : 7 + arrays[which].shape[1]] = arrays[which]
    arrays[which] = wide[:, 7 : 7 + arrays[which].shape[1]]
    kernel(*arrays)
    np.testing.assert_allclose(arrays[2], expected, rtol=1e-5)
    assert np.isnan(wide[:, :7]).all()
    assert np.isnan(wide[:, 7 + arrays[which].shape[1] :]).all()


@pytest.mark.parametrize("view", ["transposed", "every other column", "reversed", "broadcast"])
def test_other_strides_work(kernel: poly.Kernel, view: str) -> None:
    A, B, C = matrices()
    rng = np.random.default_rng(1)
    if view == "transposed":
        A = rng.random((K_, M_), np.float32).T
    elif view == "every other column":
        A = rng.random((M_, 2 * K_), np.float32)[:, ::2]
    elif view == "reversed":
        A = A[::-1, ::-1]
    else:
        A = np.broadcast_to(A[0], A.shape)
    expected = C + A @ B
    kernel(A, B, C)
    np.testing.assert_allclose(C, expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(0, 5, 4), (6, 0, 4), (6, 5, 0), (0, 0, 0)])
@pytest.mark.parametrize("known", [False, True])
def test_empty_dimensions_change_nothing(shape: tuple[int, int, int], known: bool) -> None:
    sizes = dict(zip("MNK", shape, strict=True)) if known else {}
    A, B, C = matrices(*shape)
    before = C.copy()
    poly.compile(matmul, **sizes)(A, B, C)
    np.testing.assert_array_equal(C, before)


@pytest.mark.parametrize("known", [False, True])
def test_an_einsum_over_an_empty_dimension_is_zero(known: bool) -> None:
    sizes = {"m": 3, "n": 4, "k": 0}
    nest = poly.einsum("mk,kn->mn", dtype=f64, **sizes) if known else poly.einsum("mk,kn->mn", dtype=f64)
    C = np.full((3, 4), np.nan)
    poly.compile(nest)(np.zeros((3, 0)), np.zeros((0, 4)), C)
    np.testing.assert_array_equal(C, 0)


def test_offsets_beyond_32_bits() -> None:
    """The last rows lie beyond 4 GiB; the pages between are never touched, so they take no memory."""

    @poly.nest
    def corner(A: i8[M, N], x: i8[M]):
        for i in range(M):
            x[i] = A[i, N - 1]

    wide = np.zeros((3, 2**31 + 11), np.int8)
    wide[:, -1] = 1, 2, 3
    for kernel in (poly.compile(corner), poly.compile(corner, M=3, N=2**31 + 11)):
        x = np.zeros(3, np.int8)
        kernel(wide, x)
        assert x.tolist() == [1, 2, 3]


def test_matmul_of_rows_beyond_32_bits() -> None:
    """A contraction whose row stride is larger than 2 GiB."""
    rows = np.lib.stride_tricks.as_strided(np.zeros(2 * 2**29 + 64, np.float32), (3, 8), (4 * 2**29, 4))
    rows[:] = np.arange(24).reshape(3, 8)
    _, B, _ = matrices(3, 5, 8)
    C = np.zeros((3, 5), np.float32)
    poly.compile(matmul)(rows, B, C)
    np.testing.assert_allclose(C, np.arange(24, dtype=np.float32).reshape(3, 8) @ B, rtol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(6, 5, 4), (33, 70, 65)])
def test_nan_and_infinity_spread_as_in_the_reference(bad: float, shape: tuple[int, int, int]) -> None:
    A, B, C = matrices(*shape)
    A[2, 3], B[1, 4] = bad, 0
    expected = C.copy()
    matmul.reference(A, B, expected)
    poly.compile(matmul)(A, B, C)
    np.testing.assert_array_equal(np.isnan(C), np.isnan(expected))
    np.testing.assert_allclose(C, expected, rtol=1e-4)


def test_nan_through_min_and_max() -> None:
    @poly.nest
    def extremes(A: f64[M, N], low: f64[M], high: f64[M], pair: f64[M, N]):
        for i in range(M):
            low[i] = A[i, 0]
            high[i] = A[i, 0]
            for j in range(1, N):
                low[i] = min(low[i], A[i, j])
                high[i] = max(high[i], A[i, j])
                pair[i, j] = max(A[i, j], A[i, j - 1])

    A = np.random.default_rng(0).random((3, 37))
    A[0, 11], A[1, 36], A[2, 0] = np.nan, np.inf, np.nan
    ours, theirs = [(np.zeros(3), np.zeros(3), np.zeros((3, 37))) for _ in range(2)]
    poly.compile(extremes)(A, *ours)
    extremes.reference(A, *theirs)
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(our, their)


def test_bad_thread_numbers() -> None:
    with pytest.raises(poly.ArgumentError, match="threads"):
        poly.compile(matmul, threads=0)
    arrays = matrices()
    with pytest.raises(poly.ArgumentError, match="threads"):
        poly.compile(matmul)(*arrays, threads=-1)


def test_unknown_target() -> None:
    with pytest.raises(poly.TargetError, match=r"c:avx2.*Did you mean|Did you mean.*c:avx2"):
        poly.compile(matmul, target="c:avx22")


def test_target_that_this_cpu_lacks() -> None:
    lacking = next(t for t in ("c:neon", "c:avx2") if not runs(t))
    with pytest.raises(poly.TargetError, match="this CPU lacks"):
        poly.compile(matmul, target=lacking)


def runs(target: str) -> bool:
    try:
        poly.compile(matmul, target=target)
    except poly.TargetError:
        return False
    return True


def test_unknown_and_bad_sizes() -> None:
    with pytest.raises((poly.SpecError, poly.ArgumentError), match="Q"):
        poly.compile(matmul, Q=5)
    with pytest.raises((poly.SpecError, poly.ArgumentError), match="M"):
        poly.compile(matmul, M=-1)
    with pytest.raises((poly.SpecError, poly.ArgumentError), match="M"):
        poly.compile(matmul, M=2.5)
    with pytest.raises((poly.SpecError, poly.ArgumentError), match="M"):
        poly.compile(matmul, M="many")


def test_the_same_text_with_another_type_is_another_kernel() -> None:
    """What an annotation's name stands for is no part of the text, so it must be part of the kernel's identity."""

    def doubling(dtype: poly.DType) -> poly.Nest:
        @poly.nest
        def double_it(x: dtype[N]):
            for i in range(N):
                x[i] = x[i] * 2

        return double_it

    for dtype in (f32, f64):
        x = np.arange(5, dtype=dtype.numpy_name)
        poly.compile(doubling(dtype))(x)
        assert x.tolist() == [0, 2, 4, 6, 8]


def test_what_is_no_nest_is_not_compiled() -> None:
    with pytest.raises(poly.SpecError, match=r"is no nest\. Make one with @poly\.nest or poly\.einsum"):
        poly.compile(lambda A: A)


def test_a_schedule_of_another_nest() -> None:
    other = poly.einsum("mk,kn->mn")
    with pytest.raises(poly.ScheduleError, match=r"this is a schedule of einsum_mk_kn_to_mn, not of matmul"):
        poly.compile(matmul, schedule=poly.schedule(other))


@pytest.mark.parametrize("names", ["", "M, N", "M-1", "2", ["M", "N"]])
def test_sizes_that_are_no_names(names: Any) -> None:
    with pytest.raises(poly.SpecError, match="names separated by spaces"):
        poly.sizes(names)


def test_arguments_by_name() -> None:
    A, B, C = matrices()
    expected = C + 2 * (A @ B)
    matmul(A, C=C, B=B)
    matmul(C=C, A=A, B=B, threads=2)
    np.testing.assert_allclose(C, expected, rtol=1e-5)


def test_a_nest_and_a_kernel_have_a_short_repr() -> None:
    assert repr(matmul) == "<nest matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N])>"
    kernel = poly.compile(matmul, M=2, N=3, K=4, target="c:portable")
    assert repr(kernel) == "<kernel matmul(A: f32[2, 4], B: f32[4, 3], C: f32[2, 3]) for portable>"


@pytest.mark.parametrize("known", [False, True])
def test_an_index_into_an_empty_array_is_a_no_op(known: bool) -> None:
    @poly.nest
    def first_column(A: f64[M, N], x: f64[M]):
        for i in range(M):
            x[i] = A[i, 0]

    x = np.arange(3.0)
    poly.compile(first_column, **({"M": 3, "N": 0} if known else {}))(np.zeros((3, 0)), x)
    assert x.tolist() == [0, 1, 2]
    poly.compile(first_column)(np.ones((3, 2)), x)
    assert x.tolist() == [1, 1, 1]


def test_arguments_of_compile_that_are_no_such_thing() -> None:
    nest = poly.einsum("mk,kn->mn")
    with pytest.raises(poly.TargetError, match="a target is a text such as 'c' or 'c:avx2', not None"):
        poly.compile(nest, target=None)
    with pytest.raises(poly.ScheduleError, match="'tile' is no schedule"):
        poly.compile(nest, schedule="tile")
    with pytest.raises(poly.SpecError, match="the subscripts of an einsum are a text"):
        poly.einsum(["mk,kn->mn"])
    with pytest.raises(poly.SpecError, match=r"the dtype of an einsum is one of poly's, such as poly\.f32"):
        poly.einsum("mk,kn->mn", dtype="float32")
