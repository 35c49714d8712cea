"""Schedules are values: names of loops, repr, JSON, equality, and what printing shows."""

from __future__ import annotations

import doc_nests
import pytest
from doc_nests import chain, copy, dot, late, matmul, solve, wave
from interpreter import execute, run_order

import poly
from codegen.loop_text import assignment
from poly import f64, schedule
from poly.analysis.legality import is_parallel, violations
from poly.ir.tree import bands
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Interchange, Parallel, Tile

M, N, K = poly.sizes("M N K")
SMALL = copy.with_sizes({"M": 4, "N": 6})

ONE_OF_EACH = [
    schedule(copy).tile(i=6, j=64),
    schedule(copy).split(i=8),
    schedule(copy).interchange("i", "j"),
    schedule(matmul).order("k i j"),
    schedule(SMALL).flatten("i", "j"),
    schedule(chain).fuse("S0", "S1", at="i"),
    schedule(chain).fuse("S0", "S1", at="i").distribute("i"),
    schedule(chain).fuse("S0", "S1", at="i").distribute("i", last="S1"),
    schedule(solve).enclose("block", S0="j // 8", S1="i // 8"),
    schedule(solve).enclose("k", "i", S0="j", S1="i"),
    schedule(solve).part("S0", where="i // 8 == j // 8", into="near"),
    schedule(wave).skew("x", by="t"),
    schedule(wave).skew("x", by="t", factor=2),
    schedule(late).shift("j", by=1),
    schedule(chain).fuse("S0", "S1", at="i").shift("i", by=2, statement="S1"),
    schedule(copy).reverse("i"),
    schedule(copy).parallel("i"),
    schedule(dot).vectorize("i"),
    schedule(matmul).unroll(k=4, j=2),
    schedule(matmul).tile(i=6, j=16).pack("B", at="j_tile"),
    schedule(matmul).tile(i=6, j=16).microkernel("gemm_avx512_6x16").pack("A"),
    schedule(copy).loops("bAb", blocks={"b": 64}),
]


def names(made: Schedule) -> str:
    return " ".join(band.name for band in bands(made.tree))


@pytest.mark.parametrize("made", ONE_OF_EACH, ids=repr)
def test_repr_is_python_and_json_makes_the_same(made):
    env = {"schedule": schedule, made.nest.name: made.nest}
    for again in (eval(repr(made), env), Schedule.from_json(made.nest, made.to_json()), made.on(made.nest)):
        assert again == made
        assert str(again) == str(made)
        assert repr(again) == repr(made)


def test_names_of_tiled_loops():
    made = schedule(matmul).tile(i=48, j=96, k=32).tile(i=12, j=24).split(i=3)
    assert names(made) == "i_tile j_tile k_tile i_tile2 j_tile2 i_tile3 i j k"


def test_tile_leaves_a_loop_between_the_named_ones_among_the_points():
    assert names(schedule(matmul).tile(i=4, k=4)) == "i_tile k_tile i j k"


def test_a_second_loop_of_the_same_name_gets_a_number():
    @poly.nest
    def twice(A: f64[N], B: f64[N]):
        for i in range(N):
            A[i] = 1.0
        for i in range(N):
            B[i] = 2.0

    assert names(schedule(twice)) == "i i_2"
    assert [band.parallel for band in bands(schedule(twice).parallel("i_2").tree)] == [False, True]


def test_steps_at_once_are_the_same_as_one_after_the_other():
    steps = [Tile((("i", 6), ("j", 64))), Interchange("i_tile", "j_tile"), Parallel("j_tile")]
    assert schedule(copy).apply(steps) == (
        schedule(copy).tile(i=6, j=64).interchange("i_tile", "j_tile").parallel("j_tile")
    )


def test_a_schedule_is_not_changed_by_its_methods():
    made = schedule(copy)
    made.tile(i=4)
    assert made.steps == ()
    assert names(made) == "i j"


def test_blocks_of_a_parallel_loop_are_parallel_in_its_stead():
    made = schedule(copy).parallel("i").split(i=8)
    assert [(band.name, band.parallel) for band in bands(made.tree)] == [("i_tile", True), ("i", False), ("j", False)]


def test_statements_beside_an_inner_loop_move_into_its_ends():
    @poly.nest
    def product(A: f64[M, K], B: f64[K, N], C: f64[M, N], D: f64[M, N]):
        for i in range(M):
            for j in range(N):
                C[i, j] = 0.0
                for k in range(K):
                    C[i, j] += A[i, k] * B[k, j]
                D[i, j] = 2.0 * C[i, j]

    made = schedule(product.with_sizes({"K": 8})).tile(i=2, j=2, k=4)
    assert str(made) == (
        "for i_tile in range((M + 1) // 2):\n"
        "    for j_tile in range((N + 1) // 2):\n"
        "        for k_tile in range(2):\n"
        "            for i in range(2*i_tile, min(M, 2*i_tile + 2)):\n"
        "                for j in range(2*j_tile, min(N, 2*j_tile + 2)):\n"
        "                    if k_tile == 0:\n"
        "                        C[i, j] = 0.0\n"
        "                    for k in range(4*k_tile, 4*k_tile + 4):\n"
        "                        C[i, j] += A[i, k] * B[k, j]\n"
        "                    if k_tile == 1:\n"
        "                        D[i, j] = 2.0 * C[i, j]"
    )


@pytest.mark.parametrize("extent", [0, 1, 5])
def test_a_loop_that_may_not_run_at_all_does_not_swallow_the_statements_beside_it(extent):
    @poly.nest
    def total(A: f64[M, K], s: f64[M], t: f64[M]):
        for i in range(M):
            s[i] = 0.0
            for k in range(K):
                s[i] += A[i, k]
            t[i] = s[i]

    made = schedule(total).interchange("i", "k").on(total.with_sizes({"M": 3, "K": extent}))
    assert execute(made.nest, run_order(made.nest, made.tree)) == execute(
        made.nest, run_order(made.nest, made.nest.tree)
    )


def test_fuse_joins_all_loops_down_to_the_named_one():
    @poly.nest
    def both(A: f64[M, N], B: f64[M, N]):
        for i in range(M):
            for j in range(N):
                A[i, j] = 1.0
        for x in range(M):
            for y in range(N):
                B[x, y] = A[x, y]

    assert str(schedule(both).fuse("S0", "S1", at="j")) == (
        "for i in range(M):\n    for j in range(N):\n        A[i, j] = 1.0\n        B[i, j] = A[i, j]"
    )
    assert names(schedule(both).fuse("S0", "S1", at="i")) == "i j y"


def test_distribute_goes_down_to_the_statements():
    @poly.nest
    def joined(A: f64[M, N], B: f64[M, N]):
        for i in range(M):
            for j in range(N):
                A[i, j] = 1.0
                B[i, j] = A[i, j]

    assert names(schedule(joined).distribute("i")) == "i j i_2 j_2"
    assert names(schedule(joined).distribute("j")) == "i j j_2"


def test_a_loop_fused_and_distributed_again_has_the_next_number():
    @poly.nest
    def three(A: f64[N], B: f64[N], C: f64[N]):
        for i in range(N):
            A[i] = 1.0
            B[i] = A[i]
            C[i] = B[i]

    made = schedule(three).distribute("i")
    assert names(made) == "i i_2 i_3"
    made = made.fuse("S1", "S2", at="i_2")
    assert names(made.distribute("i_2")) == "i i_2 i_3"


def test_what_a_maximum_prints():
    @poly.nest
    def largest(A: f64[N], s: f64[1]):
        for i in range(N):
            s[0] = max(s[0], A[i] * (A[i] - 1.0))

    assert str(schedule(largest)) == "for i in range(N):\n    s[0] = max(s[0], A[i] * (A[i] - 1.0))"
    statement = largest.statements[0]
    assert assignment(statement.target, statement.op, statement.expr, {}) == "s[0] = max(s[0], A[i] * (A[i] - 1.0))"


def test_the_legality_of_a_tree_can_be_asked_directly():
    made = schedule(doc_nests.wave)
    assert violations(made.nest, made.tree) is None
    broken = Interchange("t", "x").apply(made.nest, made.tree)
    assert violations(made.nest, broken).distance == (1, -1)
    assert not is_parallel(made.nest, made.tree, "t")
    assert is_parallel(made.nest, made.tree, "x")
