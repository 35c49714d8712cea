"""Calls with tensors: another library's arrays, which stand in here for PyTorch's, on both ways into a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from programs import compiled, matmul

import poly
from codegen.calls import tensors
from codegen.calls.call import Caller
from codegen.errors import ArgumentError
from poly import f32

M, N = poly.sizes("M N")


class Type:
    """The type of a tensor's elements."""


FLOAT, DOUBLE = Type(), Type()


class Tensor:
    """A tensor on a NumPy array; it counts how often its memory is shared by DLPack."""

    is_cpu = True
    shared: ClassVar[int] = 0

    def __init__(self, array: np.ndarray, grad: bool = False, negated: bool = False, device: int = 1) -> None:
        self.array, self.requires_grad, self.negated, self.number = array, grad, negated, device
        self.is_cpu = device == 1

    @property
    def dtype(self) -> Type:
        return FLOAT if self.array.dtype == np.float32 else DOUBLE

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(stride // self.array.itemsize for stride in self.array.strides)

    def is_contiguous(self) -> bool:
        return bool(self.array.flags.c_contiguous)

    def is_neg(self) -> bool:
        return self.negated

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def __dlpack__(self, **keywords: Any) -> Any:
        if self.requires_grad:
            raise BufferError("it requires a gradient")
        type(self).shared += 1
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.number, 0


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    """No class of tensors is known before a test."""
    Tensor.shared = 0
    for classes in tensors.KNOWN.values():
        classes.pop(Tensor, None)
    yield
    for classes in tensors.KNOWN.values():
        classes.pop(Tensor, None)


@pytest.fixture(scope="module", params=["symbolic", "known"])
def call(request: pytest.FixtureRequest) -> Caller:
    return compiled(matmul()) if request.param == "symbolic" else compiled(matmul(size=8))


def matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b, c = (rng.random((8, 8), np.float32) for _ in range(3))
    return a, b, c


def test_a_class_is_known_after_one_call(call: Caller) -> None:
    """Later calls ask for no DLPack, and compute the same."""
    a, b, c = matrices()
    expected = c + 3 * (a @ b)
    call(Tensor(a), Tensor(b), Tensor(c))
    first = Tensor.shared
    call(Tensor(a), Tensor(b), Tensor(c))
    call(Tensor(a), Tensor(b), Tensor(c), threads=1)
    assert first == Tensor.shared == 3
    np.testing.assert_allclose(c, expected, rtol=1e-5)


def test_tensors_and_arrays_together(call: Caller) -> None:
    a, b, c = matrices()
    expected = c + 4 * (a @ b)
    call(Tensor(a), Tensor(b), Tensor(c))
    call(a, Tensor(b), c)
    call(Tensor(a), b, c)
    call(a, b, Tensor(c))
    np.testing.assert_allclose(c, expected, rtol=1e-5)


@pytest.mark.parametrize("known", [False, True])
def test_what_does_not_fit_is_refused(call: Caller, known: bool) -> None:
    """Also from a class that is known: nothing is written."""
    a, b, c = matrices()
    if known:
        call(Tensor(a), Tensor(b), Tensor(c))
    kept = c.copy()
    wrong = (
        (Tensor(a), Tensor(b), Tensor(c, grad=True), "requires a gradient"),
        (Tensor(a), Tensor(b, grad=True), Tensor(c), "requires a gradient"),
        (Tensor(a, negated=True), Tensor(b), Tensor(c), "has its values negated. Remedy: A.resolve_neg"),
        (Tensor(a), Tensor(b), Tensor(c, device=2), r"on a CUDA device.* C.cpu\(\), and copy it back"),
        (Tensor(a, device=10), Tensor(b), Tensor(c), r"on a ROCm device.* A.cpu\(\)$"),
        (Tensor(a.astype(np.float64)), Tensor(b), Tensor(c), "A has dtype float64"),
        (Tensor(a), Tensor(b), Tensor(c[:4]), "C has shape"),
        (Tensor(a), Tensor(b), Tensor(a), "C is written and shares memory with A"),
        (Tensor(a), Tensor(b[:, 0]), Tensor(c), "B has 1 dimension"),
        (Tensor(a), Tensor(b.T), Tensor(c), "B is not contiguous"),
    )
    for *arguments, message in wrong:
        with pytest.raises(ArgumentError, match=message):
            call(*arguments)
    np.testing.assert_array_equal(c, kept)


def test_another_class_is_not_known() -> None:
    """A class of the same form that lies about its address is called through DLPack each time."""

    class Elsewhere(Tensor):
        def data_ptr(self) -> int:
            return 4096

    a, b, c = matrices()
    expected = c + 2 * (a @ b)
    call = compiled(matmul(size=8))
    for _ in range(2):
        call(Elsewhere(a), Elsewhere(b), Elsewhere(c))
    assert Elsewhere.shared == 6
    np.testing.assert_allclose(c, expected, rtol=1e-5)


@poly.nest
def halved(A: f32[M, N], B: f32[M, N]):
    for i in range(M):
        for j in range(N):
            B[i, j] = 0.5 * A[i, j]


def test_nests_take_tensors_with_and_without_gaps() -> None:
    """Shapes in turn, beyond those that get a kernel each, and rows with gaps."""
    wide = np.zeros((9, 32), np.float32)
    for turn in range(2):
        for size in range(1, 12):
            a = np.random.default_rng(size).random((9, size), np.float32)
            dense, gaps = np.empty_like(a), wide[:, : 2 * size : 1][:, :size]
            halved(Tensor(a), Tensor(dense))
            halved(Tensor(a), Tensor(gaps))
            halved(a, gaps[::1])
            np.testing.assert_array_equal(dense, a / 2, err_msg=f"{turn} {size}")
            np.testing.assert_array_equal(gaps, a / 2, err_msg=f"{turn} {size}")
