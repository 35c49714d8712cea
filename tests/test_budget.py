"""isl's work is bounded: what takes too long is answered with less, never with something wrong."""

from __future__ import annotations

import sys

import islpy as isl
import pytest

import poly
from poly import f32
from poly.budget import TooCostly, limited
from poly.legality import is_parallel, violations

M, N, K = poly.sizes("M N K")


def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]) -> None:
    for i in range(M):
        for j in range(N):
            C[i, j] = 0
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """No operations for exact dataflow."""
    monkeypatch.setattr(sys.modules["poly.dependences"], "EXACT", 1)


def pairs(nest: poly.Nest) -> dict[tuple[str, str], isl.UnionMap]:
    """All ordered pairs, by their statements."""
    found: dict[tuple[str, str], isl.UnionMap] = {}
    for d in poly.dependences(nest):
        relation = isl.UnionMap.from_map(d.relation)
        found[d.source, d.sink] = found[d.source, d.sink].union(relation) if (d.source, d.sink) in found else relation
    return found


def test_hasty_dependences_imply_the_same_order(hasty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rough = pairs(poly.nest(matmul))
    monkeypatch.undo()
    exact = pairs(poly.nest(matmul))
    assert rough.keys() == exact.keys()
    assert all(exact[key].is_subset(rough[key]) for key in exact)
    closed = exact["S1", "S1"].transitive_closure()[0]
    assert rough["S1", "S1"].is_subset(closed)


def test_hasty_dependences_decide_alike(hasty: None) -> None:
    nest = poly.nest(matmul)
    tree = poly.schedule(nest).tree
    assert violations(nest, tree) is None
    assert is_parallel(nest, tree, "i") and is_parallel(nest, tree, "j")
    assert not is_parallel(nest, tree, "k")


def test_what_is_too_costly_says_so() -> None:
    with pytest.raises(TooCostly), limited(1):
        isl.Set("[n] -> { [i, j] : 0 <= i, j < n }").intersect(isl.Set("[n] -> { [i, j] : i + j < n }")).lexmin()
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0


def test_loops_stay_as_written_where_a_schedule_is_too_costly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poly.default.AFFORDABLE", 1)
    kernel = poly.compile(poly.nest(matmul), threads=1)
    assert kernel.schedule.steps == ()
