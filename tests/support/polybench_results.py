"""The results of PolyBench's kernels by NumPy and SciPy, from the mathematics and not from the suite's loops.

Each function takes a kernel's arguments by name, and gives some or all of its results by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]


def _lower(A: Any, strict: bool = False) -> Any:
    return np.tril(A, -1 if strict else 0)


def _correlation(a: Arrays) -> Arrays:
    return {"corr": np.corrcoef(a["data"].T), "mean": a["data"].mean(0), "stddev": a["data"].std(0)}


def _gemver(a: Arrays) -> Arrays:
    A = a["A"] + np.outer(a["u1"], a["v1"]) + np.outer(a["u2"], a["v2"])
    x = a["x"] + a["beta"] * A.T @ a["y"] + a["z"]
    return {"A": A, "x": x, "w": a["w"] + a["alpha"] * A @ x}


def _rank(a: Arrays, product: Any) -> Arrays:
    """The lower triangle updated; the upper one as it was."""
    return {"C": np.triu(a["C"], 1) + _lower(a["beta"] * a["C"] + a["alpha"] * product)}


def _symm(a: Arrays) -> Arrays:
    A = _lower(a["A"]) + _lower(a["A"], True).T
    return {"C": a["beta"] * a["C"] + a["alpha"] * A @ a["B"]}


def _cholesky(a: Arrays) -> Arrays:
    return {"A": np.linalg.cholesky(a["A"]) + np.triu(a["A"], 1)}


def _lu(a: Arrays) -> Arrays:
    """By Schur complements."""
    A = a["A"].copy()
    for k in range(len(A)):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])
    return {"A": A}


def _durbin(a: Arrays) -> Arrays:
    from scipy.linalg import solve_toeplitz

    return {"y": solve_toeplitz(np.r_[1, a["r"][:-1]], -a["r"])}


def _gramschmidt(a: Arrays) -> Arrays:
    """A QR factorisation of the columns that are independent, with a positive diagonal."""
    rank = min(a["A"].shape)
    Q, R = np.linalg.qr(a["A"][:, :rank])
    signs = np.sign(np.diag(R))
    Q = Q * signs
    return {"Q": Q, "R": np.triu(Q.T @ a["A"]) + np.tril(a["R"], -1)[:rank]}


def _smoothed(x: Any, coefficients: tuple[float, ...]) -> Any:
    """A recursive filter forward and backward along the last axis."""
    from scipy.signal import lfilter

    a1, a2, a3, a4, b1, b2 = coefficients
    forward = lfilter([a1, a2], [1, -b1, -b2], x)
    backward = lfilter([0, a3, a4], [1, -b1, -b2], x[:, ::-1])[:, ::-1]
    return forward + backward


def _deriche(a: Arrays) -> Arrays:
    alpha = float(a["alpha"])
    e = np.exp(-alpha)
    k = (1 - e) ** 2 / (1 + 2 * alpha * e - np.exp(2 * alpha))
    coefficients = (k, k * e * (alpha - 1), k * e * (alpha + 1), -k * e * e, 2.0**-alpha, -e * e)
    return {"imgOut": _smoothed(_smoothed(a["imgIn"], coefficients).T, coefficients).T}


def _floyd(a: Arrays) -> Arrays:
    from scipy.sparse.csgraph import floyd_warshall

    found = floyd_warshall(a["path"])
    np.fill_diagonal(found, np.inf)  # a path from a node to itself has at least an edge here
    cycles = (found + found.T).min(1)
    np.fill_diagonal(found, np.minimum(cycles, np.diag(a["path"])))
    return {"path": found}


def _nussinov(a: Arrays) -> Arrays:
    """The most pairs of each part of the sequence, by the recursion over the last base's partner."""
    pairs = a["seq"][:, None] + a["seq"][None, :] == 3
    n = len(pairs)
    best = np.zeros((n + 1, n + 1), np.int32)  # of bases i to j - 1
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length
            options = [best[i, j - 1]]
            options += [best[i, k] + best[k + 1, j - 1] + 1 for k in range(i, j - 2) if pairs[k, j - 1]]
            best[i, j] = max(options)
    return {"table": np.triu(best[:n, 1:], 1)}


def _adi(a: Arrays) -> Arrays:
    """Implicit steps along the columns and then along the rows, by a banded solver."""
    n, steps = len(a["u"]), a["TSTEPS"]
    r1, r2 = 2.0 / steps * n * n, 1.0 / steps * n * n
    u, v = a["u"].copy(), a["v"].copy()
    for _ in range(steps):
        v[0, 1:-1] = v[-1, 1:-1] = 1
        v[1:-1, 1:-1] = _implicit(u, r1, r2)
        u[1:-1, 0] = u[1:-1, -1] = 1
        u[1:-1, 1:-1] = _implicit(v.T, r2, r1).T
    return {"u": u, "v": v}


def _implicit(w: Any, implicit: float, explicit: float) -> Any:
    """The inside after a half step: implicit in the first index, between ones at its ends; explicit in the second."""
    from scipy.linalg import solve_banded

    inside = w[1:-1]
    known = (explicit / 2) * (inside[:, :-2] + inside[:, 2:]) + (1 - explicit) * inside[:, 1:-1]
    known[0] += implicit / 2
    known[-1] += implicit / 2
    bands = np.array([[-implicit / 2], [1 + implicit], [-implicit / 2]]) * np.ones(len(inside))
    return solve_banded((1, 1), bands, known)


def _fdtd(a: Arrays) -> Arrays:
    ex, ey, hz = a["ex"].copy(), a["ey"].copy(), a["hz"].copy()
    for source in a["fict"]:
        ey[0] = source
        ey[1:] -= 0.5 * np.diff(hz, axis=0)
        ex[:, 1:] -= 0.5 * np.diff(hz, axis=1)
        hz[:-1, :-1] -= 0.7 * (np.diff(ex, axis=1)[:-1] + np.diff(ey, axis=0)[:, :-1])
    return {"ex": ex, "ey": ey, "hz": hz}


def _stencil(step: Callable[[Any], Any]) -> Callable[[Arrays], Arrays]:
    """Steps from A to B and back."""

    def run(a: Arrays) -> Arrays:
        one, other = a["A"].copy(), a["B"].copy()
        inside = (slice(1, -1),) * one.ndim
        for _ in range(a["TSTEPS"]):
            other[inside] = step(one)
            one[inside] = step(other)
        return {"A": one, "B": other}

    return run


def _heat(x: Any) -> Any:
    inside = x[1:-1, 1:-1, 1:-1]
    laplace = x[2:, 1:-1, 1:-1] + x[:-2, 1:-1, 1:-1] + x[1:-1, 2:, 1:-1] + x[1:-1, :-2, 1:-1]
    return inside + 0.125 * (laplace + x[1:-1, 1:-1, 2:] + x[1:-1, 1:-1, :-2] - 6 * inside)


def _seidel(a: Arrays) -> Arrays:
    from scipy.signal import lfilter

    A = a["A"].copy()
    for _ in range(a["TSTEPS"]):
        for i in range(1, len(A) - 1):
            rows = A[i - 1] + A[i + 1]
            known = rows[:-2] + rows[1:-1] + rows[2:] + A[i, 1:-1] + A[i, 2:]
            A[i, 1:-1] = lfilter([1 / 9], [1, -1 / 9], known, zi=[A[i, 0] / 9])[0]
    return {"A": A}


RESULTS: Mapping[str, Callable[[Arrays], Arrays]] = {
    "correlation": _correlation,
    "covariance": lambda a: {"cov": np.cov(a["data"].T), "mean": a["data"].mean(0)},
    "gemm": lambda a: {"C": a["beta"] * a["C"] + a["alpha"] * a["A"] @ a["B"]},
    "gemver": _gemver,
    "gesummv": lambda a: {"y": (a["alpha"] * a["A"] + a["beta"] * a["B"]) @ a["x"]},
    "symm": _symm,
    "syr2k": lambda a: _rank(a, a["A"] @ a["B"].T + a["B"] @ a["A"].T),
    "syrk": lambda a: _rank(a, a["A"] @ a["A"].T),
    "trmm": lambda a: {"B": a["alpha"] * (_lower(a["A"], True).T @ a["B"] + a["B"])},
    "2mm": lambda a: {"D": a["beta"] * a["D"] + a["alpha"] * a["A"] @ a["B"] @ a["C"]},
    "3mm": lambda a: {"G": a["A"] @ a["B"] @ a["C"] @ a["D"]},
    "atax": lambda a: {"y": a["A"].T @ (a["A"] @ a["x"])},
    "bicg": lambda a: {"s": a["A"].T @ a["r"], "q": a["A"] @ a["p"]},
    "doitgen": lambda a: {"A": np.einsum("rqs,sp->rqp", a["A"], a["C4"])},
    "mvt": lambda a: {"x1": a["x1"] + a["A"] @ a["y_1"], "x2": a["x2"] + a["A"].T @ a["y_2"]},
    "cholesky": _cholesky,
    "durbin": _durbin,
    "gramschmidt": _gramschmidt,
    "lu": _lu,
    "ludcmp": lambda a: {**_lu(a), "x": np.linalg.solve(a["A"], a["b"])},
    "trisolv": lambda a: {"x": np.linalg.solve(_lower(a["L"]), a["b"])},
    "deriche": _deriche,
    "floyd-warshall": _floyd,
    "nussinov": _nussinov,
    "adi": _adi,
    "fdtd-2d": _fdtd,
    "heat-3d": _stencil(_heat),
    "jacobi-1d": _stencil(lambda x: 0.33333 * (x[:-2] + x[1:-1] + x[2:])),
    "jacobi-2d": _stencil(lambda x: 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])),
    "seidel-2d": _seidel,
}
"""The functions by the kernels' names."""
