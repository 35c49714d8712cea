"""What an error tells the user to do is done, word for word: the right result is then where the user looks for it."""

from __future__ import annotations

import array
import pickle
import re
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import poly
from poly import f32

M, N = poly.sizes("M N")
ROWS, COLUMNS = 3, 4


@poly.nest
def add(x: f32[M, N], y: f32[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] += 2 * x[i, j]


@cache
def kernel() -> poly.Kernel:
    return poly.compile(add, target="c:portable", threads=1, records=False)


def unaligned(values: np.ndarray) -> np.ndarray:
    made = np.frombuffer(bytearray(values.nbytes + 1), np.uint8)[1:].view(values.dtype).reshape(values.shape)
    made[...] = values
    return made


def read_only(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values


def in_columns(values: np.ndarray) -> np.ndarray:
    made = np.zeros((ROWS, 2 * COLUMNS), np.float32)[:, ::-2]
    made[...] = values
    return made


def masked(values: np.ndarray) -> np.ndarray:
    return np.ma.masked_array(values, np.zeros(values.shape, bool))


def as_torch(change: Callable[[Any], Any]) -> Callable[[np.ndarray], Any]:
    def make(values: np.ndarray) -> Any:
        torch = pytest.importorskip("torch")
        return change(torch.from_numpy(values.copy()))

    return make


class Exporter:
    """An array of a library that shares memory by DLPack alone."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


def two_in_one(values: np.ndarray) -> np.ndarray:
    made = as_strided(np.zeros(COLUMNS, np.float32), (ROWS, COLUMNS), (0, 4))
    made[...] = values
    return made


ODD: dict[str, Callable[[np.ndarray], Any]] = {
    "another dtype": lambda values: values.astype(np.float64),
    "integers": lambda values: values.astype(np.int32),
    "bytes in the other order": lambda values: values.astype(">f4"),
    "not contiguous": in_columns,
    "not aligned": unaligned,
    "masked": masked,
    "read-only": read_only,
    "nested lists": lambda values: values.tolist(),
    "an exporter of another dtype": lambda values: Exporter(values.astype(np.float64)),
    "an exporter, not contiguous": lambda values: Exporter(in_columns(values)),
    "a memoryview of another dtype": lambda values: memoryview(values.astype(np.float64)),
    "an array of the standard library": lambda values: memoryview(
        array.array("d", values.ravel().tolist())
    ).cast("B").cast("d", values.shape),
    "torch, another dtype": as_torch(lambda tensor: tensor.double()),
    "torch, with gradients": as_torch(lambda tensor: tensor.requires_grad_()),
    "torch, another dtype with gradients": as_torch(lambda tensor: tensor.double().requires_grad_()),
    "torch, not contiguous": as_torch(lambda tensor: tensor.T.contiguous().T),
    "torch, flipped storage": as_torch(lambda tensor: tensor.repeat_interleave(2, dim=1)[:, ::2]),
}  # fmt: skip


def follow(call: Callable[..., None], names: dict[str, Any]) -> None:
    """Call with x and y, and do as each error says, until the call is accepted; `names` are then the user's."""
    passed, after = {"x": "x", "y": "y"}, []
    for _ in range(4):
        try:
            call(**{name: eval(text, names) for name, text in passed.items()})
            break
        except poly.ArgumentError as error:
            of = str(error)[0]
            remedy = str(error).partition("Remedy: ")[2]
            assert remedy, error
            copied = re.fullmatch(r"work = (.*?), and copy it back after the call: (.*)", remedy, re.DOTALL)
            taken = re.fullmatch(r"work = (.*), pass work, and take the results from it", remedy)
            rebound = re.fullmatch(r"(\w = .*) before the call; the results are then in it", remedy)
            if copied or taken:
                found = copied or taken
                assert found is not None
                exec(f"work = {found[1]}", names)
                passed[of] = "work"
                after.append(copied[2] if copied else f"{of} = work")
            elif rebound:
                exec(rebound[1], names)
            else:
                of = (re.findall(r"pass a copy of (\w+)", remedy) or [of])[0]
                copy = re.sub(r"^pass a copy of \w+, |, (which|the array) .*$", "", remedy)
                passed[of] = copy.replace(of, passed[of], 1) if passed[of] != of else copy
    else:
        pytest.fail(f"still refused: {passed}")
    for line in reversed(after):
        exec(line, names)


def values_of(value: Any) -> np.ndarray:
    if isinstance(value, Exporter):
        value = value.values
    return np.asarray(value.detach() if hasattr(value, "detach") else value, dtype=np.float64)


@pytest.mark.parametrize("place", ["x", "y"])
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_array_is_taken_as_the_remedy_says(odd: str, place: str) -> None:
    start = {name: np.arange(at, at + ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) for name, at in
             (("x", 1), ("y", 5))}  # fmt: skip
    names: dict[str, Any] = {**{name: value.copy() for name, value in start.items()}, "np": np}
    names[place] = ODD[odd](names[place])
    if odd.startswith("torch"):
        names["torch"] = pytest.importorskip("torch")
    follow(kernel(), names)
    assert np.array_equal(values_of(names["y"]), start["y"] + 2 * start["x"])
    assert np.array_equal(values_of(names["x"]), start["x"])


def test_a_written_array_whose_elements_share_memory() -> None:
    names: dict[str, Any] = {"x": np.ones((ROWS, COLUMNS), np.float32), "np": np}
    names["y"] = two_in_one(names["x"])
    follow(kernel(), names)
    assert (names["y"] == 3).all()


def test_an_input_in_the_memory_of_the_output() -> None:
    whole = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    names = {"x": whole, "y": whole, "np": np}
    follow(kernel(), names)
    assert np.array_equal(whole, 3 * np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS))


@poly.nest
def both(x: f32[N], y: f32[N]):
    for i in range(N):
        x[i] = 1
        y[i] = 2


def test_two_outputs_in_one_memory_are_no_case_for_a_copy() -> None:
    with pytest.raises(poly.ArgumentError, match=r"Both are written: pass an array of its own for each of x and y$"):
        both(*[np.zeros(3, np.float32)] * 2)


@poly.nest
def scale(a: f32, x: f32[N]):
    for i in range(N):
        x[i] *= a


def test_an_array_in_place_of_a_number() -> None:
    a, x = np.array([3.0]), np.ones(4, np.float32)
    with pytest.raises(poly.ArgumentError, match=r"a must be a number \(f32\); got a ndarray\. Remedy: a\.item\(\)$"):
        scale(a, x)
    scale(a.item(), x)
    assert (x == 3).all()


# --- classes --------------------------------------------------------------------------------------------------------

PUBLIC = [getattr(poly, name) for name in poly.__all__]
ERRORS = [kind for kind in PUBLIC if isinstance(kind, type) and issubclass(kind, poly.PolyError | Warning)]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_an_error_is_shown_under_its_public_name_and_survives_a_pickle(kind: type[Exception]) -> None:
    again = pickle.loads(pickle.dumps(kind("told")))
    assert type(again) is kind and str(again) == "told"
    assert traceback.format_exception_only(again)[-1] == f"poly.{kind.__name__}: told\n"


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (ValueError, lambda: poly.compile(add, threads=0)),
        (ValueError, lambda: poly.compile(add, target="c:avx1024")),
        (ValueError, lambda: poly.compile(add, K=3)),
        (ValueError, lambda: poly.schedule(add).tile(z=4)),
        (ValueError, lambda: poly.tune(add, M=4, N=4, trials=0)),
        (TypeError, lambda: add(np.zeros((2, 2), np.float32))),
        (TypeError, lambda: add("a", "b")),
        (OSError, lambda: kernel().write_header("missing/add.h")),
    ],
)
def test_a_mistake_is_caught_as_pythons_own_error_too(kind: type[Exception], call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert isinstance(raised.value, poly.PolyError)
