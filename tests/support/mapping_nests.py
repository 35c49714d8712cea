"""Nests whose loops work-groups and work-items share, or cannot."""

from __future__ import annotations

from hypothesis import strategies as st

import poly
from poly import ScheduleError, f32, f64, i32, schedule
from poly.ir.nest import Nest
from poly.ir.tree import bands
from poly.schedules.schedule import Schedule

M, N, T = poly.sizes("M N T")


@poly.nest
def scan(x: f64[N], y: f64[N]):
    for i in range(1, N):
        y[i] = y[i - 1] + x[i]


@poly.nest
def histogram(A: f64[M, N], h: f64[M + N]):
    for i in range(M):
        for j in range(N):
            h[i + j] += A[i, j]


@poly.nest
def running(x: f64[N], y: f64[N], s: f64[1]):
    for i in range(N):
        s[0] += x[i]
        y[i] = x[i] / s[0]


@poly.nest
def sums(A: f64[M, N], s: f64[M]):
    for i in range(M):
        s[i] = 0.0
        for j in range(N):
            s[i] += A[i, j]


@poly.nest
def extremes(A: f32[M, N], K: i32[M, N], low: f32[1], most: i32[1], product: f32[1]):
    for i in range(M):
        for j in range(N):
            low[0] = min(low[0], A[i, j])
            most[0] = max(most[0], K[i, j])
            product[0] *= A[i, j]


@poly.nest
def scaled(A: f64[M, N], B: f64[M, N], m: f64[M], s: f64[M]):
    for i in range(M):
        m[i] = A[i, 0]
        for j in range(N):
            m[i] = max(m[i], A[i, j])
        s[i] = 0.0
        for j in range(N):
            B[i, j] = A[i, j] - m[i]
            s[i] += B[i, j]
        for j in range(N):
            B[i, j] = B[i, j] / s[i]


@poly.nest
def jacobi(A: f64[N], B: f64[N], S: f64[T]):
    for _t in range(T):
        for i in range(1, N - 1):
            B[i] = 0.25 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, N - 1):
            A[i] = 0.25 * (B[i - 1] + B[i] + B[i + 1])


@poly.nest
def elimination(A: f64[N, N]):
    for k in range(N):
        for i in range(k + 1, N):
            A[i, k] = A[i, k] / A[k, k]
        for i in range(k + 1, N):
            for j in range(k + 1, N):
                A[i, j] -= A[i, k] * A[k, j]


@poly.nest
def same(A: f64[N], B: f64[N], C: f64[N]):
    for i in range(N):
        B[i] = 2.0 * A[i]
    for j in range(N):
        C[j] = B[j] + A[j]


@poly.nest
def three(A: f64[N + 1], B: f64[N + 1], C: f64[N + 1], D: f64[N]):
    for i in range(N + 1):
        B[i] = 2.0 * A[i]
    for j in range(N + 1):
        C[j] = 3.0 * A[j]
    for k in range(N):
        D[k] = B[k + 1] + C[k + 1]


@poly.nest
def steps(A: f64[N], B: f64[N]):
    for i in range(1, N, 3):
        B[i] = A[i] + 1.0
    for j in range(1, N):
        A[j] = B[j] * 2.0


@poly.nest
def far(x: f64[N], y: f64[N]):
    for i in range(4, N):
        y[i] = y[i - 4] + x[i]


@poly.nest
def once(X: f64[4, N], Y: f64[4, N]):
    for _g in range(2):
        for i in range(1):
            for j in range(N):
                X[i, j] += Y[i + 1, j]
        for i in range(4):
            for j in range(N):
                Y[i, j] = X[i, j] * 2.0


@poly.nest
def parity(x: f64[M + 3], A: f64[M, M]):
    for i in range(M):
        for k in range(i, M, 2):
            x[k + 3] = 0.25 * A[i, k] + 0.5 * x[i]


@st.composite
def mapped(draw: st.DrawFn, nest: Nest) -> Schedule:
    """A nest with random loops mapped to groups and items, as far as this is accepted."""
    made = schedule(nest)
    for step in draw(st.lists(st.sampled_from(["split", "interchange", "distribute", "groups"]), max_size=3)):
        names = [band.name for band in bands(made.tree)]
        loop, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        call = {"split": ((), {loop: draw(st.integers(2, 3))}), "interchange": ((loop, other), {})}
        made = tried(made, step, *call.get(step, ((loop,), {})))
    number = draw(st.integers(2, 4))
    for loop in draw(st.permutations([band.name for band in bands(made.tree)])):
        made = tried(made, "items", (), {loop: number})
    return made


def tried(made: Schedule, step: str, positional: tuple[str, ...], named: dict[str, int]) -> Schedule:
    try:
        return getattr(made, step)(*positional, **named)
    except ScheduleError:
        return made


@poly.nest
def drained(y: i32[N + 3]):
    for i in range(N - 1):
        part: i32 = min(y[2], i * y[i + 3])
        for p in range(3):
            part += y[i]
        y[i] -= part
