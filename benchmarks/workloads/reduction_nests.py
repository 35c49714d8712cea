"""The plain loops of reductions. Each function makes the nest for one scalar type."""

from collections.abc import Callable
from math import exp, sqrt
from typing import Any

import poly
from benchmarks.problems.reductions import EPSILON
from microkernels.dtypes import DType
from poly import i64

M, N = poly.sizes("M N")


def gauss_sum(dtype: Any) -> Any:
    @poly.nest
    def gauss_sum(X: dtype[M, 3], Y: dtype[N, 3], b: dtype[N], out: dtype[M]) -> None:
        for i in range(M):
            out[i] = 0
            for j in range(N):
                s = 0.0
                for k in range(3):
                    s += (X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])
                out[i] += exp(-s) * b[j]

    return gauss_sum


def nearest(dtype: Any) -> Any:
    @poly.nest
    def nearest(X: dtype[M, 3], Y: dtype[N, 3], where: i64[M]) -> None:
        for i in range(M):
            best: dtype = 1e30
            where[i] = 0
            for j in range(N):
                s: dtype = 0.0
                for k in range(3):
                    s += (X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])
                if s < best:
                    best = s
                    where[i] = j

    return nearest


def argmin_rows(dtype: Any) -> Any:
    @poly.nest
    def argmin_rows(x: dtype[M, N], where: i64[M]) -> None:
        for i in range(M):
            best: dtype = x[i, 0]
            where[i] = 0
            for j in range(1, N):
                if x[i, j] < best:
                    best = x[i, j]
                    where[i] = j

    return argmin_rows


def prefix_rows(dtype: Any) -> Any:
    @poly.nest
    def prefix_rows(x: dtype[M, N], y: dtype[M, N]) -> None:
        for i in range(M):
            s = 0.0
            for j in range(N):
                s += x[i, j]
                y[i, j] = s

    return prefix_rows


def prefix_columns(dtype: Any) -> Any:
    @poly.nest
    def prefix_columns(x: dtype[M, N], y: dtype[M, N]) -> None:
        for j in range(N):
            s = 0.0
            for i in range(M):
                s += x[i, j]
                y[i, j] = s

    return prefix_columns


def max_pool(dtype: Any) -> Any:
    @poly.nest
    def max_pool(x: dtype[2 * M, 2 * N], y: dtype[M, N]) -> None:
        for i in range(M):
            for j in range(N):
                m = x[2 * i, 2 * j]
                for r in range(2):
                    for s in range(2):
                        m = max(m, x[2 * i + r, 2 * j + s])
                y[i, j] = m

    return max_pool


def layer_norm(dtype: Any) -> Any:
    @poly.nest
    def layer_norm(x: dtype[M, N], y: dtype[M, N]) -> None:
        for i in range(M):
            mean = 0.0
            for j in range(N):
                mean += x[i, j]
            mean = mean / N
            variance = 0.0
            for j in range(N):
                variance += (x[i, j] - mean) * (x[i, j] - mean)
            scale = 1 / sqrt(variance / N + EPSILON)
            for j in range(N):
                y[i, j] = (x[i, j] - mean) * scale

    return layer_norm


NESTS: dict[str, Callable[[DType], Any]] = {
    function.__name__: function
    for function in (gauss_sum, nearest, argmin_rows, prefix_rows, prefix_columns, max_pool, layer_norm)
}
"""The functions that make nests, by name."""
