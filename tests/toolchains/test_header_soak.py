"""Random sizes, strides and nests: a header's functions, called from Python, beside the nests' own loops.

`POLY_SOAK=100` tries a hundred times as many as usual.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cffi import FFI
from classic_nests import arguments
from header_nests import KINDS
from headers import GCC, HERE, NUMBERS, at_any_level, header, library, need_isa, quick
from hypothesis import HealthCheck, Phase, given, settings
from random_nests import VALUE_OF_N, nests
from shared_nests import matmul

import poly
from microkernels.dtypes import in_c
from poly.embed import write_header
from poly.ir.reference import reference as run_loops

SOAK = int(os.environ.get("POLY_SOAK", "1"))
ISA_NAMES = [name for name in NUMBERS if name != "neon"]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Placed:
    """An array in memory of its own, with gaps between its rows."""

    memory: Array
    view: Array

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements, but for the last dimension's."""
        return tuple(stride // self.view.itemsize for stride in self.view.strides[:-1])

    def gaps(self) -> bytes:
        """What lies around the elements."""
        rest = self.memory.copy()
        np.lib.stride_tricks.as_strided(rest[self._start :], self.view.shape, self.view.strides)[...] = 0
        return rest.tobytes()

    @property
    def _start(self) -> int:
        return (self.view.ctypes.data - self.memory.ctypes.data) // self.view.itemsize


def placed(values: Array, rng: np.random.Generator) -> Placed:
    """A copy of an array with random gaps, from a random element on."""
    strides = [1] * values.ndim
    for at in reversed(range(values.ndim - 1)):
        strides[at] = strides[at + 1] * max(values.shape[at + 1], 1) + int(rng.integers(0, 4)) * int(rng.integers(0, 2))
    start = int(rng.integers(0, 17))
    memory = np.full(start + max(strides[0] * values.shape[0], 1) + 5, 77, values.dtype)
    view = np.lib.stride_tricks.as_strided(memory[start:], values.shape, [s * values.itemsize for s in strides])
    view[...] = values
    return Placed(memory, view)


@dataclass(frozen=True)
class Functions:
    """What a header has, called on arrays as its contract says."""

    ffi: FFI
    lib: Any
    prefix: str

    def force(self, isa: str) -> None:
        assert getattr(self.lib, f"{self.prefix}_force_isa")(NUMBERS[isa]) == 0

    def call(self, nest: poly.Nest, sizes: dict[str, int], given: list[Any], threads: int, dense: bool = False) -> None:
        name = nest.name if nest.name == self.prefix else f"{self.prefix}_{nest.name}"
        told: list[Any] = [sizes[size] for size in nest.sizes]
        for argument, value in zip(nest.arguments, given, strict=True):
            if isinstance(value, Placed):
                told.append(self.ffi.cast(f"{in_c(argument.dtype).c_name} *", value.view.ctypes.data))
                told += [0 if dense else stride for stride in value.strides]
            else:
                told.append(value)
        assert getattr(self.lib, name)(*told, threads) == 0


RELATIVE = {"float32": 1e-4, "float16": 2e-3, "bfloat16": 1e-2}
"""The errors allowed: of sums, or of one rounding of a half."""


def check(functions: Functions, nest: poly.Nest, sizes: dict[str, int], threads: int, seed: int) -> None:
    """One call on random memory, beside the loops as written."""
    rng = np.random.default_rng(seed)
    expected = arguments(nest, sizes)
    ours = [placed(value, rng) if isinstance(value, np.ndarray) else value for value in expected]
    before = [value.gaps() for value in ours if isinstance(value, Placed)]
    functions.call(nest, sizes, ours, threads)
    reference(nest, expected)
    assert before == [value.gaps() for value in ours if isinstance(value, Placed)], "a gap was written to"
    for our, their in zip(ours, expected, strict=True):
        if isinstance(our, Placed):
            relative = RELATIVE.get(their.dtype.name, 1e-9)
            got, want = our.view.astype(np.float64), their.astype(np.float64)
            np.testing.assert_allclose(got, want, relative, atol=relative * float(np.abs(want).max(initial=0)))


def reference(nest: poly.Nest, given: list[Any]) -> None:
    """NumPy's product for the one nest that is tried at large sizes; Python's loops for the others."""
    if nest is matmul:
        A, B, C = given
        C += A @ B
    else:
        run_loops(nest, tuple(given))


@cache
def kinds(folder: Path) -> Functions:
    path = at_any_level(header(folder, *KINDS, name="kinds", threads="pthreads", isas=HERE))
    return Functions(*library(path, GCC, *quick(GCC)), "kinds")


@cache
def product(folder: Path) -> Functions:
    sizes = ({}, {"M": 16, "K": 16, "N": 16}, {"M": 48, "K": 64, "N": 100})
    return Functions(*library(header(folder, matmul, sizes=sizes, isas=HERE), GCC, "-fopenmp"), "matmul")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("soak")


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_products(isa: str, folder: Path) -> None:
    """Sizes of its own among them, with gaps and without."""
    need_isa(isa)
    functions = product(folder)
    functions.force(isa)
    rng = np.random.default_rng(len(isa))
    for seed in range(60 * SOAK):
        largest = int(rng.choice([5, 40, 200]))
        sizes = {name: int(rng.integers(1, largest)) for name in matmul.sizes}
        if seed % 4 == 0:
            sizes = {"M": 16, "K": 16, "N": 16} if seed % 8 else {"M": 48, "K": 64, "N": 100}
        check(functions, matmul, sizes, int(rng.integers(1, 4)), seed)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("nest", KINDS, ids=lambda nest: nest.name)
def test_nests_of_every_kind(nest: poly.Nest, isa: str, folder: Path) -> None:
    need_isa(isa)
    functions = kinds(folder)
    functions.force(isa)
    rng = np.random.default_rng(len(isa))
    for seed in range(4 * SOAK):
        sizes = {name: int(rng.integers(1, int(rng.choice([4, 12, 40 if seed < 2 else 12])))) for name in nest.sizes}
        check(functions, nest, sizes, int(rng.integers(1, 4)), seed)


@settings(max_examples=2 * SOAK, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(nest=nests())
def test_random_nests(nest: poly.Nest, tmp_path_factory: pytest.TempPathFactory) -> None:
    kernel = poly.compile(nest, N=VALUE_OF_N, threads=2)
    path = write_header(tmp_path_factory.mktemp("random") / "nest.h", kernel, threads="pthreads", isas=["avx2"])
    check(Functions(*library(path), "nest"), kernel.nest, {}, 2, 0)
