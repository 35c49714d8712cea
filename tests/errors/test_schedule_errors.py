"""What is refused, with the full text of each message."""

from __future__ import annotations

import doc_nests
import pytest
from doc_nests import chain, copy, dot, late, matmul, solve, wave

import poly
from poly import ScheduleError, f64, i64, schedule
from poly.schedules.schedule import Schedule

M, N, T = poly.sizes("M N T")


@poly.nest
def seidel(u: f64[N, N]):
    for _t in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                u[i, j] = u[i - 1, j] + u[i, j - 1] + u[i, j] + u[i, j + 1] + u[i + 1, j]


@poly.nest
def sweep(u: f64[M, N]):
    for i in range(1, M):
        for j in range(1, N):
            u[i, j] = u[i - 1, j] + u[i, j - 1]


@poly.nest
def triangle(A: f64[N, N]):
    for i in range(8):
        for j in range(i + 1):
            A[i, j] = 1.0


@poly.nest
def diagonals(A: f64[16, 7], s: f64[22]):
    for p in range(16):
        for q in range(7):
            s[p + q] += A[p, q]


@poly.nest
def sums(A: f64[M, N], s: f64[M]):
    for i in range(M):
        s[i] = 0.0
        for j in range(N):
            s[i] += A[i, j]


@poly.nest
def neighbour(A: f64[M, N], B: f64[N, N], C: f64[M + 1, N], D: f64[M, N]):
    for i in range(M + 1):
        for j in range(N):
            C[i, j] = 0.0
    for i in range(M):
        for j in range(N):
            for k in range(N):
                C[i, j] += A[i, k] * B[k, j]
        for j in range(N):
            D[i, j] = C[i + 1, j]


def refused(make) -> str:
    with pytest.raises(ScheduleError) as caught:
        make()
    return str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: schedule(wave).interchange("t", "x"),
            "interchange(t, x) is illegal: S0[1, 1] must run before S0[2, 0] "
            "(flow on u, distance (1, -1), with T = 3, N = 3). Remedy: skew(x, by=t).",
        ),
        (
            lambda: schedule(wave).tile(t=4, x=4),
            "tile(t=4, x=4) is illegal: S0[1, 4] must run before S0[2, 3] "
            "(flow on u, distance (1, -1), with T = 3, N = 6). Remedy: skew(x, by=t).",
        ),
        (
            lambda: schedule(wave).reverse("t"),
            "reverse(t) is illegal: S0[1, 1] must run before S0[2, 0] "
            "(flow on u, distance (1, -1), with T = 3, N = 3).",
        ),
        (
            lambda: schedule(wave).parallel("t"),
            "parallel(t) is illegal: S0[1, 1] must run before S0[2, 0] "
            "(flow on u, distance (1, -1), with T = 3, N = 3). Remedy: parallel(x).",
        ),
        (
            lambda: schedule(sweep).parallel("j"),
            "parallel(j) is illegal: S0[1, 1] must run before S0[1, 2] "
            "(flow on u, distance (0, 1), with M = 2, N = 3). Remedy: skew(j, by=i), interchange(i, j), parallel(i).",
        ),
        (
            lambda: schedule(sweep).vectorize("j"),
            "vectorize(j) is illegal: S0[1, 1] must run before S0[1, 2] "
            "(flow on u, distance (0, 1), with M = 2, N = 3).",
        ),
        (
            lambda: schedule(diagonals).flatten("p", "q").vectorize("p_q"),
            "vectorize(p_q) is illegal: S0[0, 1] and S0[1, 0] update one element of s (reduction, distance (1, -1)).",
        ),
        (
            lambda: schedule(matmul).parallel("k"),
            "parallel(k) is illegal: S0[0, 0, 0] and S0[0, 0, 1] update one element of C "
            "(reduction, distance (0, 0, 1), with M = 1, K = 2, N = 1). Remedy: parallel(i).",
        ),
        (
            lambda: schedule(dot).parallel("i"),
            "parallel(i) is illegal: S0[0] and S0[1] update one element of s (reduction, distance (1), with N = 2).",
        ),
        (
            lambda: schedule(copy).parallel("i").interchange("i", "j").parallel("k"),
            "there is no loop k. Loops: j, i.",
        ),
        (
            lambda: schedule(late).fuse("S0", "S1", at="i"),
            "fuse(S0, S1, at=i) is illegal: S0[1] must run before S1[0] (flow on X, with N = 1). "
            "Remedy: shift(j, by=1).",
        ),
        (
            lambda: schedule(chain).fuse("S0", "S1", at="i").shift("i", by=-1, statement="S1"),
            "shift(i, by=-1, statement=S1) is illegal: S0[0] must run before S1[0] (flow on X, with N = 1).",
        ),
        (
            lambda: schedule(sums).order("j i").parallel("j"),
            "parallel(j) is illegal: S1[0, 0] and S1[0, 1] update one element of s "
            "(reduction, distance (0, 1), with M = 1, N = 2). Remedy: parallel(i).",
        ),
        (
            lambda: schedule(neighbour).split(j_2=16).microkernel("gemm_avx512_6x16", initial="S0"),
            "microkernel(gemm_avx512_6x16): S0 does not set the output of S1 to 0 directly before it.",
        ),
        (lambda: schedule(chain).fuse("S0", "S2", at="i"), "there is no statement S2. Statements: S0, S1."),
        (lambda: schedule(chain).fuse("S0", "S1", at="j"), "loop j is not around S0."),
        (lambda: schedule(sums).fuse("S0", "S1", at="i"), "loop i is already around both S0 and S1."),
        (lambda: schedule(chain).distribute("i"), "loop i holds one statement only: there is nothing to distribute."),
        (
            lambda: schedule(chain).fuse("S0", "S1", at="i").distribute("i", last="S0"),
            "distribute(i, last=S0) is illegal: S0[0] must run before S1[0] (flow on X, with N = 1).",
        ),
        (
            lambda: schedule(solve).distribute("j", last="S0"),
            "loop j does not hold S0 and others. Statements there: S0.",
        ),
        (
            lambda: schedule(solve).distribute("i", behind="S0", last="S0"),
            "distribute(i): behind and last exclude each other. Remedy: two steps.",
        ),
        (
            lambda: schedule(solve).pack("L", at="i").distribute("i", last="S0"),
            "loop i holds a copy of L. Remedy: distribute before pack.",
        ),
        (
            lambda: (
                schedule(matmul).tile(i=6, j=4).microkernel("gemm_portable_6x4").pack("B").skew("j_tile", by="i_tile")
            ),
            "skew(j_tile, by=i_tile) does not fit: pack(B): a panel would hold several tiles of S0, which the loops "
            "around do not tell apart. Remedy: don't skew the loops over tiles, or pack(B) at loop j_tile.",
        ),
        (
            lambda: schedule(solve).enclose("k", S0="i // 8", S1="i // 16"),
            "enclose(k, S0=i // 8, S1=i // 16) is illegal: S0[8, 0] must run before S1[8] (flow on x, with N = 9).",
        ),
        (
            lambda: schedule(solve).enclose("k", at="j", S1="i"),
            "enclose(k): no part of the loops has exactly the statements S1. Statements in loop j: S0.",
        ),
        (
            lambda: schedule(solve).enclose("j", S0="i", S1="i"),
            "enclose(j): there is a loop j already. Remedy: another name.",
        ),
        (
            lambda: schedule(chain).interchange("i", "j"),
            "loops i and j are not nested in each other. Remedy: fuse them first.",
        ),
        (lambda: schedule(copy).interchange("i", "i"), "i, i names a loop twice."),
        (lambda: schedule(copy).tile(i=0), "the block size of loop i must be an integer from 1 up, not 0."),
        (lambda: schedule(copy).split(i=2.5), "the block size of loop i must be an integer from 1 up, not 2.5."),
        (lambda: schedule(copy).unroll(j=True), "the unroll factor of loop j must be an integer from 1 up, not True."),
        (
            lambda: schedule(triangle).vectorize("i"),
            "vectorize(i): loop j is inside it, and has other iterations in each lane. Remedy: order(j i) first.",
        ),
        (
            lambda: schedule(copy).vectorize("j").vectorize("i"),
            "vectorize(i): loop j is inside it, and vectorized. Remedy: leave one of the two marks out.",
        ),
        (lambda: schedule(copy).skew("i", by="i"), "loop i cannot be skewed by itself."),
        (lambda: schedule(sums).skew("i", by="j"), "loop j is not around S0, which loop i holds."),
        (lambda: schedule(chain).shift("i", by=1, statement="S1"), "loop i holds no statement S1, but S0."),
        (lambda: schedule(copy).flatten("i"), "flatten needs two loops or more, outermost first."),
        (
            lambda: schedule(copy).flatten("i", "j"),
            "the extent of loop j is not known. Remedy: fix the sizes first: nest.with_sizes({'M': …, 'N': …}).",
        ),
        (
            lambda: schedule(copy.with_sizes({"M": 4, "N": 4})).flatten("j", "i"),
            "loop i is not directly in loop j: nothing may stand between them.",
        ),
        (
            lambda: schedule(triangle).flatten("i", "j"),
            "the range of loop j changes with loop i: only rectangular loops can be flattened.",
        ),
        (lambda: schedule(copy).order(""), "order needs the names of loops, such as 'j i'. Loops: i, j."),
        (lambda: schedule(copy).tile(), "tile needs loops and sizes, such as i=8. Loops: i, j."),
        (
            lambda: schedule(copy).skew("j", by="i", factor=0.5),
            "the skewing factor of loop j must be an integer, not 0.5.",
        ),
        (lambda: schedule(copy).shift("j", by="i"), "the shift of loop j must be an integer, not 'i'."),
        (
            lambda: Schedule.from_json(copy, "nonsense"),
            "this is no schedule's JSON text: Expecting value: line 1 column 1 (char 0).",
        ),
        (
            lambda: Schedule.from_json(copy, '[{"step": "delete", "args": [], "kwargs": {}}]'),
            'a step is {"step": NAME, "args": […], "kwargs": {…}}, '
            "not {'step': 'delete', 'args': [], 'kwargs': {}}.",
        ),
        (
            lambda: Schedule.from_json(copy, '{"steps": []}'),
            'a step is {"step": NAME, "args": […], "kwargs": {…}}, not {\'steps\': []}.',
        ),
    ],
)
def test_refusals(make, message):
    assert refused(make) == message


@pytest.mark.parametrize(
    ("made", "step"),
    [
        (schedule(wave), lambda s: s.tile(t=4, x=4)),
        (schedule(wave), lambda s: s.interchange("t", "x")),
        (schedule(seidel), lambda s: s.tile(_t=4, i=4, j=4)),
        (schedule(late), lambda s: s.fuse("S0", "S1", at="i")),
    ],
)
def test_what_a_remedy_says_before_a_step_makes_the_step_legal(made, step):
    text = refused(lambda: step(made)).split("Remedy: ")[1].rstrip(".")
    for call in text.split("), "):
        name, arguments = call.rstrip(")").split("(")
        loop, *named = arguments.split(", ")
        pairs = [item.split("=") for item in named]
        made = getattr(made, name)(
            loop, **{key: int(text) if text.lstrip("-").isdigit() else text for key, text in pairs}
        )
    step(made)


def test_a_wrong_argument_in_json_is_named():
    message = refused(lambda: Schedule.from_json(copy, '[{"step": "parallel", "args": ["i", 2], "kwargs": {}}]'))
    assert message.startswith("the step {'step': 'parallel', 'args': ['i', 2], 'kwargs': {}} does not fit: ")


def test_a_later_step_may_not_break_a_parallel_loop():
    made = schedule(doc_nests.wave).parallel("x").skew("x", by="t")
    assert refused(lambda: made.interchange("t", "x")) == (
        "interchange(t, x) is illegal: loop x is parallel, and S0[1, 0] must run before S0[2, 0] "
        "(flow on u, distance (1, 0), with T = 3, N = 2)."
    )


def test_two_iterations_are_named_where_isl_finds_no_first_pair():
    @poly.nest
    def cut(x: i64[2 * N + 10, N + 8, N + 8], W: i64[N + 13], B: i64[8, 7, 7]):
        for i in range(3, 7):
            h: i64 = B[i - 1, i, i - 1]
            W[i] = B[i + 1, i, i - 2] * h
            W[2 * i] = abs(x[i, i, i + N] + 5)
            for j in range(N):
                x[2 * j, j, -j + N] = W[j] + (W[i] + 3)

    made = schedule(cut).vectorize("j").shift("i", by=1)
    assert refused(lambda: made.loops("aba", blocks={"a": 3})) == (
        "order(i_tile j i) is illegal: S3[3, 8] must run before S2[4] (anti on W, with N = 9)."
    )
