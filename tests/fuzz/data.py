"""Arguments for a nest: arrays between guards, poison wherever no value is needed, and their expected contents."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from fuzz.interpreter import EPSILON, Outcome, interpret
from fuzz.syntax import If, Program, compared, walk

NUMPY = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "u8": np.uint8, "u16": np.uint16, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
GUARD = 256
"""Bytes around each array; all bits set are NaN in floats."""
POISON = {"u8": 0x5A, "u16": 0x5A5A, "i8": 0x5A, "i16": 0x5A5A, "i32": 0x5A5A5A5A, "i64": 0x5A5A5A5A5A5A5A5A}
ROUNDING = 2.0
"""The multiple of its bound by which a value may be off."""


@dataclass(frozen=True)
class Data:
    """Values for all arguments at one setting of the sizes, and the outcome that they must lead to."""

    sizes: dict[str, int]
    values: dict[str, Any]
    outcome: Outcome


def make(program: Program, sizes: Mapping[str, int], rng: Random, most: int = 4000) -> Data:
    """Random values. Raises Rejected if the nest is meaningless with them."""
    drawn = draw(program, sizes, rng.choice(("small", "small", "small", "real", "wide")), rng.randrange(2**32))
    return poisoned(program, sizes, drawn, most)


def draw(program: Program, sizes: Mapping[str, int], kind: str, seed: int) -> dict[str, Any]:
    """Values of a kind: `small` integers, `real` numbers around 1, or `wide`, which lets integers overflow."""
    random = np.random.default_rng(seed)
    values: dict[str, Any] = {}
    for arg in program.args:
        shape = tuple(extent.value(sizes) for extent in arg.shape or ())
        values[arg.name] = _drawn(random, shape, arg.dtype, kind)
        if arg.below:
            values[arg.name] = np.asarray(random.integers(0, arg.below, shape), NUMPY[arg.dtype])
        if arg.shape is None:
            values[arg.name] = values[arg.name][()]
    return values


def _drawn(random: np.random.Generator, shape: tuple[int, ...], dtype: str, kind: str) -> np.ndarray:
    if dtype in EPSILON:
        if kind == "real":
            return np.asarray(random.random(shape) * 1.5 - 0.5, NUMPY[dtype])
        return np.asarray(random.integers(-3, 4, shape), NUMPY[dtype])
    if kind == "wide":
        ends = np.iinfo(NUMPY[dtype])
        return np.asarray(random.integers(ends.min, ends.max, shape, NUMPY[dtype], endpoint=True))
    return np.asarray(random.integers(-3, 4, shape)).astype(NUMPY[dtype])


def poisoned(program: Program, sizes: Mapping[str, int], values: Mapping[str, Any], most: int = 4000) -> Data:
    """The same values where the nest reads them first, and poison elsewhere.

    An einsum of several operands runs in steps, which also read what no term needs if a summed axis is empty. What is
    looked up below a condition on data is checked where the condition is false, too.
    """
    outcome = interpret(program, values, sizes, most)
    made = dict(values)
    in_steps = "," in program.einsum
    whole = any(isinstance(s, If) and [*compared(s.test)] for s, _ in walk(program.body))
    for arg in program.args[-1:] if in_steps else program.args:
        if arg.shape is not None and not (arg.below and whole):
            poison = math.nan if arg.dtype in EPSILON else POISON[arg.dtype]
            made[arg.name] = np.where(outcome.needed[arg.name], values[arg.name], NUMPY[arg.dtype](poison))
    return Data(dict(sizes), made, outcome)


@dataclass(frozen=True)
class Guarded:
    """Copies of arguments, each array in the middle of a buffer whose ends are guards."""

    arguments: tuple[Any, ...]
    buffers: tuple[np.ndarray | None, ...]

    @staticmethod
    def of(program: Program, data: Data, shift: int = 0) -> Guarded:
        """`shift` moves arrays by this many elements from a multiple of 64 bytes."""
        made = [_guarded(data.values[arg.name], arg.shape is None, shift) for arg in program.args]
        return Guarded(tuple(a for a, _ in made), tuple(b for _, b in made))

    def intact(self) -> bool:
        for array, buffer in zip(self.arguments, self.buffers, strict=True):
            if buffer is None:
                continue
            start = (
                array.__array_interface__["data"][0] - buffer.__array_interface__["data"][0] if array.size else GUARD
            )
            if not (buffer[:start] == 0xFF).all() or not (buffer[start + array.nbytes :] == 0xFF).all():
                return False
        return True


def _guarded(value: Any, scalar: bool, shift: int) -> tuple[Any, np.ndarray | None]:
    if scalar:
        return value, None
    buffer = np.full(value.nbytes + 2 * GUARD + 128, 0xFF, np.uint8)
    start = GUARD + -(buffer.__array_interface__["data"][0] + GUARD) % 64 + shift * value.itemsize
    array = buffer[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    array[...] = value
    return array, buffer


def difference(program: Program, data: Data, arrays: tuple[Any, ...], looser: float = 1.0) -> str | None:
    """The problem with the arrays after a call, or None."""
    for arg, array in zip(program.args, arrays, strict=True):
        if arg.shape is None:
            continue
        wrong = _wrong(arg.name, arg.dtype, data, array, looser)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            expected = data.outcome.values[arg.name] if data.outcome.touched[arg.name][at] else data.values[arg.name]
            bound = data.outcome.bounds[arg.name][at]
            return (
                f"{arg.name}[{', '.join(map(str, at))}] is {array[at]!s}, expected {expected[at]!s} +- {bound:.3g}; "
                f"{int(wrong.sum())} of {wrong.size} elements of {arg.name} are wrong"
            )
    return None


def _wrong(name: str, dtype: str, data: Data, array: np.ndarray, looser: float) -> np.ndarray:
    touched, before = data.outcome.touched[name], data.values[name]
    values, bounds = data.outcome.values[name], data.outcome.bounds[name]
    if dtype not in EPSILON:
        return np.where(touched, array != values, array != before)
    with np.errstate(invalid="ignore"):
        far = ~(np.abs(array.astype(np.float64) - values) <= ROUNDING * looser * bounds)
    same = (array == before) | (np.isnan(array) & np.isnan(before))
    return np.where(touched, far & np.isfinite(bounds), ~same)
