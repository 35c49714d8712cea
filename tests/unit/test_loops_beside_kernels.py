"""Loops beside a contraction are interchanged, fused, shared by threads and vectorised, as without one."""

from __future__ import annotations

from machines import LARGE

import poly
from microkernels.isa import AVX2
from poly import f32
from poly.autoschedule.default import default_schedule
from poly.ir.tree import Band, Micro, Node, Sequence, bands, statements, walk
from poly.model.core import Target

M = 300


@poly.nest
def layer(A: f32[M, M], B: f32[M, M], bias: f32[M], R: f32[M, M], C: f32[M, M], D: f32[M, M]):
    for i in range(M):
        for j in range(M):
            C[i, j] = 0.0
            for k in range(M):
                C[i, j] += A[i, k] * B[k, j]
    for i in range(M):
        for j in range(M):
            D[i, j] = C[M - 1 - i, j] + bias[j]
    for j in range(M):
        for i in range(M):
            D[i, j] = D[i, j] / (1.0 + D[i, j] * D[i, j])
    for i in range(M):
        for j in range(M):
            R[i, j] += D[i, j]


def parts(threads: int) -> list[Node]:
    tree = default_schedule(layer, Target.nominal(AVX2, LARGE, threads)).tree
    assert isinstance(tree, Sequence)
    assert sum(isinstance(node, Micro) for node in walk(tree)) == 1
    return [part for part in tree.children if not any(isinstance(node, Micro) for node in walk(part))]


def test_they_are_interchanged_fused_and_vectorised() -> None:
    epilogue = parts(threads=1)[-1]
    rows, columns = bands(epilogue)
    assert statements(epilogue) == ("S2", "S3", "S4")
    assert (rows.vectorize, columns.vectorize) == (False, True)
    assert not rows.parallel


def test_threads_share_them() -> None:
    epilogue = parts(threads=2)[-1]
    assert isinstance(epilogue, Band)
    assert epilogue.parallel
    assert [band.parallel for band in bands(epilogue.body)] == [False]
