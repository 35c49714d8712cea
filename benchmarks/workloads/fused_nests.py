"""The plain loops of products with what stands before and behind them. Each function makes the nest for one type."""

from collections.abc import Callable
from math import exp, sqrt
from typing import Any

import poly
from microkernels.dtypes import DType

H, K, L, M, N = poly.sizes("H K L M N")


def linear_relu(dtype: Any) -> Any:
    @poly.nest
    def linear_relu(x: dtype[M, K], w: dtype[K, N], b: dtype[N], y: dtype[M, N]) -> None:
        for i in range(M):
            for j in range(N):
                t: dtype = 0.0
                for k in range(K):
                    t += x[i, k] * w[k, j]
                y[i, j] = max(t + b[j], 0)

    return linear_relu


def two_layers(dtype: Any) -> Any:
    @poly.nest
    def two_layers(x: dtype[M, K], w: dtype[K, N], b: dtype[N], v: dtype[N, L], y: dtype[M, L]) -> None:
        t: dtype[M, N]
        for i in range(M):
            for j in range(N):
                t[i, j] = 0
                for k in range(K):
                    t[i, j] += x[i, k] * w[k, j]
        for i in range(M):
            for j in range(N):
                t[i, j] = max(t[i, j] + b[j], 0)
        for i in range(M):
            for p in range(L):
                y[i, p] = 0
                for j in range(N):
                    y[i, p] += t[i, j] * v[j, p]

    return two_layers


def attention(dtype: Any) -> Any:
    @poly.nest
    def attention(q: dtype[H, N, L], k: dtype[H, N, L], v: dtype[H, N, L], o: dtype[H, N, L]) -> None:
        s: dtype[H, N, N]
        m: dtype[H, N]
        z: dtype[H, N]
        for h in range(H):
            for i in range(N):
                for j in range(N):
                    s[h, i, j] = 0
                    for d in range(L):
                        s[h, i, j] += q[h, i, d] * k[h, j, d]
            for i in range(N):
                m[h, i] = s[h, i, 0]
                z[h, i] = 0
                for j in range(N):
                    m[h, i] = max(m[h, i], s[h, i, j])
                for j in range(N):
                    s[h, i, j] = exp((s[h, i, j] - m[h, i]) / sqrt(L))
                    z[h, i] += s[h, i, j]
            for i in range(N):
                for d in range(L):
                    o[h, i, d] = 0
                    for j in range(N):
                        o[h, i, d] += s[h, i, j] * v[h, j, d]
                    o[h, i, d] = o[h, i, d] / z[h, i]

    return attention


def causal(dtype: Any) -> Any:
    @poly.nest
    def causal(q: dtype[H, N, L], k: dtype[H, N, L], v: dtype[H, N, L], o: dtype[H, N, L]) -> None:
        s: dtype[H, N, N]
        m: dtype[H, N]
        z: dtype[H, N]
        for h in range(H):
            for i in range(N):
                for j in range(i + 1):
                    s[h, i, j] = 0
                    for d in range(L):
                        s[h, i, j] += q[h, i, d] * k[h, j, d]
            for i in range(N):
                m[h, i] = s[h, i, 0]
                z[h, i] = 0
                for j in range(i + 1):
                    m[h, i] = max(m[h, i], s[h, i, j])
                for j in range(i + 1):
                    s[h, i, j] = exp((s[h, i, j] - m[h, i]) / sqrt(L))
                    z[h, i] += s[h, i, j]
            for i in range(N):
                for d in range(L):
                    o[h, i, d] = 0
                    for j in range(i + 1):
                        o[h, i, d] += s[h, i, j] * v[h, j, d]
                    o[h, i, d] = o[h, i, d] / z[h, i]

    return causal


NESTS: dict[str, Callable[[DType], Any]] = {one.__name__: one for one in (linear_relu, two_layers, attention, causal)}
"""The nests by name."""
