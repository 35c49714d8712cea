"""Contractions for the tests: plain loops from an einsum string, guarded arrays, and a check against float64 sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import poly
from poly import DType, Nest, f32, f64
from poly.frontends.python import parse_text
from poly.frontends.source import Source

Array = np.ndarray[Any, Any]
Values = tuple[Array, Array, Array]

GUARD = 64
"""Elements around each array: NaN around inputs, which spoils what reads them; a pattern around outputs."""

PATTERN = -123456.5


@dataclass(frozen=True)
class Contraction:
    """`C op= A * B` with subscripts as einsum's.

    `form` is `+=`, `-=`, `alpha` (`C += alpha * A * B`), `=` (C is set to 0 before each sum) or `bias` (to a vector).
    """

    spec: str
    dtype: DType = f32
    form: str = "+="

    @property
    def terms(self) -> tuple[str, str, str]:
        operands, output = self.spec.split("->")
        left, right = operands.split(",")
        return left, right, output

    def nest(self) -> Nest:
        """The plain loops, output's indices outside, with a symbolic size for each index (`Ni` for `i`)."""
        left, right, output = self.terms
        kind = self.dtype.name
        arguments = [f"{name}: {kind}[{_list(term, 'N')}]" for name, term in zip("ABC", self.terms, strict=True)]
        if self.form == "alpha":
            arguments.append(f"alpha: {kind}")
        if self.form == "bias":
            arguments.append(f"bias: {kind}[N{output[-1]}]")
        lines = [f"def contraction({', '.join(arguments)}):"]
        lines += [f"{'    ' * at}for {i} in range(N{i}):" for at, i in enumerate(output, 1)]
        inside = "    " * (1 + len(output))
        if self.form in ("=", "bias"):
            lines.append(f"{inside}C[{_list(output)}] = {'0' if self.form == '=' else f'bias[{output[-1]}]'}")
        for i in self.reduced:
            lines.append(f"{inside}for {i} in range(N{i}):")
            inside += "    "
        sign, factor = "-=" if self.form == "-=" else "+=", "alpha * " if self.form == "alpha" else ""
        lines.append(f"{inside}C[{_list(output)}] {sign} {factor}A[{_list(left)}] * B[{_list(right)}]")
        names = {f"N{i}": poly.sizes(f"N{i}") for i in set("".join(self.terms))}
        return parse_text(Source("\n".join(lines) + "\n", "contraction.py", 1), {**names, "f32": f32, "f64": f64})

    @property
    def reduced(self) -> str:
        left, right, output = self.terms
        return "".join(dict.fromkeys(i for i in left + right if i not in output))

    def sizes(self, extents: Mapping[str, int]) -> dict[str, int]:
        """The values of the nest's sizes."""
        return {f"N{i}": extents[i] for i in dict.fromkeys("".join(self.terms))}


def _list(term: str, prefix: str = "") -> str:
    return ", ".join(prefix + i for i in term)


def guarded(values: Array, around: float) -> tuple[Array, Array]:
    """A dense copy with GUARD elements of `around` before and after it, and the whole."""
    whole = np.full(values.size + 2 * GUARD, around, values.dtype)
    inner = whole[GUARD : GUARD + values.size].reshape(values.shape)
    inner[...] = values
    return inner, whole


def operands(contraction: Contraction, extents: Mapping[str, int], seed: int = 0) -> Values:
    """Random A, B and C; C is full of NaN where it is assigned."""
    random = np.random.default_rng(seed)
    kind = contraction.dtype.numpy_name
    left, right, output = (
        random.standard_normal([extents[i] for i in term]).astype(kind) for term in contraction.terms
    )
    if contraction.form in ("=", "bias"):
        output[...] = np.nan
    return left, right, output


def check(
    kernel: Callable[..., Any],
    contraction: Contraction,
    extents: Mapping[str, int],
    threads: int | None = 1,
    seed: int = 0,
) -> None:
    """Call the kernel on guarded arrays: it agrees with float64 sums, and nothing around the arrays is touched."""
    check_values(kernel, contraction, operands(contraction, extents, seed), threads)


def check_values(kernel: Callable[..., Any], contraction: Contraction, values: Values, threads: int | None = 1) -> None:
    """The same for given values, which may hold NaN and infinity. A device's kernel has no threads to be told of."""
    (left, _), (right, _) = (guarded(v, np.nan) for v in values[:2])
    output, whole = guarded(values[2], PATTERN)
    extra: tuple[Any, ...] = ()
    if contraction.form == "alpha":
        extra = (-1.5,)
    if contraction.form == "bias":
        extra = (np.arange(output.shape[-1]).astype(output.dtype),)
    kernel(left, right, output, *extra, **({} if threads is None else {"threads": threads}))
    expected, bound = _expected(contraction, values, extra)
    np.testing.assert_array_equal(np.isnan(output), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(output[~finite], expected[~finite])
    error = np.abs(output[finite] - expected[finite])
    assert (error <= bound[finite]).all(), f"off by {error.max()}, where at most {bound[finite].min()} is rounding"
    assert (whole[:GUARD] == PATTERN).all()
    assert (whole[-GUARD:] == PATTERN).all()


def _expected(contraction: Contraction, values: Values, extra: tuple[Any, ...]) -> tuple[Array, Array]:
    """The result in float64, and how far rounding may lead from it: the terms' magnitude for each step of the sum."""
    left, right, output = (v.astype(np.float64) for v in values)
    with np.errstate(invalid="ignore"):
        product = np.einsum(contraction.spec, left, right)
        magnitude = np.einsum(contraction.spec, np.abs(left), np.abs(right))
    start: Array | float = output
    factor = {"-=": -1.0, "alpha": -1.5}.get(contraction.form, 1.0)
    if contraction.form == "=":
        start = 0.0
    if contraction.form == "bias":
        start = extra[0].astype(np.float64)
    extents = dict(zip("".join(contraction.terms), (*left.shape, *right.shape, *output.shape), strict=True))
    steps = np.prod([extents[i] for i in contraction.reduced]) if contraction.reduced else 1
    with np.errstate(invalid="ignore"):
        expected = start + factor * product
        scale = np.abs(start) + abs(factor) * magnitude
    return expected, (steps + 4) * np.finfo(contraction.dtype.numpy_name).eps * scale
