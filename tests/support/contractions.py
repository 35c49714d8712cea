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
"""Elements around each array: NaN around inputs, which spoils any result that reads them; a pattern around outputs."""

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
    """Assert that the kernel agrees with float64 sums on guarded arrays, and changes nothing around them."""
    check_values(kernel, contraction, operands(contraction, extents, seed), threads)


def check_values(kernel: Callable[..., Any], contraction: Contraction, values: Values, threads: int | None = 1) -> None:
    """The same for given values, which may hold NaN and infinity. A device's kernel takes no number of threads."""
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
    """The result in float64, and a bound on the rounding error: the terms' magnitude for each step of the sum."""
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


RAGGED = (1, 2, 5, 6, 7, 12, 13, 63, 64, 65, 128, 129)
TRANSPOSES = ("ik,kj->ij", "ki,kj->ij", "ik,jk->ij", "ki,jk->ij")
FORMS = ("+=", "-=", "alpha", "=")
FIXED = [(1, 64, 65), (64, 1, 12), (5, 7, 1), (13, 13, 13), (65, 129, 6), (129, 12, 63), (2, 128, 128), (1, 1, 129)]

EINSUMS = [
    ("bik,bkj->bij", {"b": 7, "i": 13, "j": 16, "k": 5}, f32, "="),
    ("bik,bjk->ibj", {"b": 3, "i": 5, "j": 65, "k": 12}, f64, "+="),
    ("ijk,k->ij", {"i": 6, "j": 13, "k": 65}, f32, "="),
    ("ik,k->i", {"i": 65, "k": 129}, f32, "="),
    ("k,kj->j", {"j": 129, "k": 63}, f64, "-="),
    ("i,j->ij", {"i": 13, "j": 65}, f32, "+="),
    ("dbea,ec->abcd", {"a": 5, "b": 6, "c": 7, "d": 12, "e": 13}, f32, "="),
    ("dfgb,geac->abcdef", {"a": 5, "b": 6, "c": 7, "d": 5, "e": 2, "f": 7, "g": 6}, f64, "="),
    ("abc,cbd->ad", {"a": 12, "b": 13, "c": 7, "d": 65}, f32, "alpha"),
    ("iik,kj->ij", {"i": 13, "j": 12, "k": 7}, f64, "+="),
    ("ikk,kj->ij", {"i": 13, "j": 65, "k": 7}, f32, "="),
    ("ik,kj->ikj", {"i": 5, "j": 13, "k": 7}, f32, "="),
    ("ik,jk->ij", {"i": 1, "j": 1, "k": 1}, f32, "="),
    ("abk,cdk->acbd", {"a": 5, "b": 13, "c": 6, "d": 7, "k": 12}, f32, "+="),
]
