"""What a schedule accepts step by step can be compiled; only what depends on the target is refused then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise, product
from random import Random

import pytest
from contractions import Contraction
from contractions import check as check_sums
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_nests import nests

import poly
from microkernels.isa import ISAS
from poly import Nest, Schedule, f32
from poly.analysis.bounds import check
from poly.compiled import translate
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.edits import find_loop
from poly.ir.tree import bands, statements

PRODUCTS = (
    "mk,kn->mn",
    "km,kn->mn",
    "mk,nk->nm",
    "bmk,bkn->bmn",
    "bmk,kn->bnm",
    "mk,k->m",
    "km,k->m",
    "mkl,kln->mn",
    "m,n->mn",
    "ac,bc->cab",
    "abc,cd->abd",
)
TEXTS = {
    "convolution": """def nest(A: f32[M + K - 1, N], B: f32[K, N, P], C: f32[M, P]):
    for i in range(M):
        for j in range(P):
            for k in range(K):
                for n in range(N):
                    C[i, j] += A[i + k, n] * B[k, n, j]
""",
    "polynomials": """def nest(A: f32[M, K], B: f32[K, N], C: f32[M + N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i + j] += A[i, k] * B[k, j]
""",
    "triangle": """def nest(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(i, K):
                C[i, j] += A[i, k] * B[k, j]
""",
    "one array": """def nest(A: f32[M, M], C: f32[M, M]):
    for i in range(M):
        for j in range(i + 1):
            for k in range(M):
                C[i, j] += A[i, k] * A[j, k]
""",
    "two products": """def nest(A: f32[M, K], B: f32[K, N], C: f32[M, N], D: f32[N, P], E: f32[M, P]):
    for i in range(M):
        for j in range(N):
            C[i, j] = 0
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]
    for q in range(M):
        for s in range(P):
            for t in range(N):
                E[q, s] += C[q, t] * D[t, s]
""",
    "elements apart": """def nest(A: f32[2 * M, 3 * K], B: f32[2 * K, N], C: f32[2 * M, 2 * N], z: f32):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                if k + i < N:
                    C[2 * i, 2 * j] -= z * A[2 * i + 1, 3 * k] * B[2 * k + 1, j]
""",
    "elimination": """def nest(A: f32[N, N], B: f32[N, N]):
    for k in range(N):
        for i in range(k + 1, N):
            for j in range(k + 1, N):
                B[i, j] += A[i, k] * A[k, j]
""",
}
SIZES = {name: poly.sizes(name) for name in "MNKP"}
KERNELS = [
    *(f"gemm_avx512_{rows}x{columns}" for rows in (1, 4, 6) for columns in (16, 32, 64)),
    *(f"gemm_portable_{rows}x{columns}" for rows in (1, 4) for columns in (4, 8)),
    *(f"{kind}_{isa}" for kind in ("gemvn", "gemvt") for isa in ("avx512", "portable")),
]
BLOCKS = (1, 2, 4, 6, 16, 32)


def parsed(text: str) -> Nest:
    return parse_text(Source(text, "accepted.py", 1), {**SIZES, "f32": f32})


@st.composite
def products(draw: st.DrawFn) -> Nest:
    """A contraction, by an einsum or by loops; some of its sizes are known, and then small."""
    spec = draw(st.sampled_from([*PRODUCTS, *TEXTS]))
    made = parsed(TEXTS[spec]) if spec in TEXTS else Contraction(spec, form=draw(st.sampled_from(["+=", "="]))).nest()
    known = {size: draw(st.sampled_from([1, 2, 5, 16, 40])) for size in made.sizes if draw(st.booleans())}
    return made.with_sizes(known)


Step = Callable[[Schedule, Random, list[str]], Schedule]
STEPS: tuple[Step, ...] = (
    lambda s, r, loops: s.tile(
        **{loop: r.choice(BLOCKS) for loop in r.sample(loops, min(len(loops), r.randint(1, 3)))}
    ),
    lambda s, r, loops: s.order(" ".join(r.sample(loops, len(loops)))),
    lambda s, r, loops: s.flatten(*r.sample(loops, min(2, len(loops)))),
    lambda s, r, loops: s.microkernel(r.choice(KERNELS), r.choice([None, *_statements(s)])),
    lambda s, r, loops: s.microkernel(r.choice(KERNELS), initial=r.choice([None, *_statements(s)])),
    lambda s, r, loops: s.pack(r.choice(_arrays(s)), r.choice([None, *loops]), role=r.choice([None, "left", "right"])),
    lambda s, r, loops: s.pack(r.choice(_arrays(s)), r.choice(loops), r.choice(_statements(s)), pad=r.choice([0, 3])),
    lambda s, r, loops: s.pack(r.choice(_arrays(s)), r.choice(loops), buffers=2),
    lambda s, r, loops: s.parallel(r.choice(loops)),
    lambda s, r, loops: s.unroll(**{r.choice(loops): r.choice(BLOCKS)}),
    lambda s, r, loops: s.vectorize(r.choice(loops)),
    lambda s, r, loops: s.fuse(r.choice(_statements(s)), r.choice(_statements(s)), at=r.choice(loops)),
    lambda s, r, loops: s.distribute(r.choice(loops)),
    lambda s, r, loops: s.distribute(r.choice(loops), last=r.choice(_statements(s))),
    lambda s, r, loops: s.enclose("k_block", **{name: _formula(s, r, name) for name in _inside(s, r.choice(loops))}),
    lambda s, r, loops: s.part(n := r.choice(_statements(s)), f"{_formula(s, r, n)} < {_formula(s, r, n)}", "T"),
    lambda s, r, loops: s.skew(r.choice(loops), by=r.choice(loops), factor=r.choice([-1, 1, 2])),
    lambda s, r, loops: s.shift(r.choice(loops), by=r.randint(-3, 3)),
    lambda s, r, loops: s.reverse(r.choice(loops)),
    lambda s, r, loops: s.part(r.choice(_statements(s)), **{r.choice(loops): r.choice(BLOCKS)}),
)


def _statements(made: Schedule) -> list[str]:
    return [statement.name for statement in made.nest.statements]


def _inside(made: Schedule, loop: str) -> tuple[str, ...]:
    return statements(find_loop(made.tree, loop))


def _formula(made: Schedule, random: Random, statement: str) -> str:
    return f"{random.choice([*made.nest.statement(statement).iterators, '5'])} // {random.choice(BLOCKS)}"


def _arrays(made: Schedule) -> list[str]:
    return [array.name for array in made.nest.arrays if array.shape]


def scheduled(nest: Nest, random: Random) -> Schedule:
    """A schedule of random steps, those that are refused left out."""
    made = poly.schedule(nest)
    for step in [*random.choices(STEPS[:2], k=random.randint(0, 2)), *random.choices(STEPS, k=random.randint(1, 7))]:
        loops = [band.name for band in bands(made.tree)]
        try:
            made = step(made, random, loops) if loops else made
        except (poly.ScheduleError, poly.TargetError):
            continue
    return made


def compiles(made: Schedule) -> None:
    """The schedule becomes C text for the instruction set of its first microkernel; of others it may be refused."""
    kernels = [step.arguments()[0][0].split("_")[1] for step in made.steps if step.name == "microkernel"]
    if len(set(kernels)) < 2:
        assert translate(made, ISAS[kernels[0] if kernels else "portable"]).source


@settings(max_examples=60)
@given(products(), st.integers(0, 2**32))
def test_an_accepted_schedule_of_a_product_compiles(nest: Nest, seed: int) -> None:
    compiles(scheduled(check(nest), Random(seed)))


@settings(max_examples=25)
@given(nests(), st.integers(0, 2**32))
def test_an_accepted_schedule_of_any_nest_compiles(nest: Nest, seed: int) -> None:
    try:
        check(nest)
    except poly.SpecError:
        assume(False)
    compiles(scheduled(nest, Random(seed)))


FLATTENED = {
    "kqb,k->b": 0,
    "kqb,q->b": 0,
    "bkq,k->b": 0,
    "bkq,kq->b": 1,
    "kab,k->ab": 2,
    "abk,k->ab": 1,
    "abk,bk->ab": 0,
    "mkq,kn->mn": 0,
    "mk,kqn->mn": 0,
    "kqm,kqn->mn": 2,
    "abk,kn->abn": 1,
}
"""How many kernels take two of its loops as one. Most have an operand that has only one of two loops of a role."""


@pytest.mark.parametrize(("spec", "taken"), FLATTENED.items())
def test_microkernels_over_flattened_loops_compute_the_sums_or_are_refused(spec: str, taken: int) -> None:
    """Along a flattened loop an operand may have no constant stride: `B[k_q // 5]`."""
    contraction = Contraction(spec)
    extents = dict(zip(sorted(set(spec) - set(",->")), (3, 4, 2, 4), strict=False))
    nest = contraction.nest().with_sizes(contraction.sizes(extents))
    loops = [band.name for band in bands(poly.schedule(nest).tree)]
    made = []
    for pair, kernel in product(pairwise(loops), ("gemvn_portable", "gemvt_portable", "gemm_portable_2x16")):
        with suppress(poly.ScheduleError):
            made.append(poly.schedule(nest).flatten(*pair).microkernel(kernel))
    assert len(made) == taken
    for schedule in made:
        check_sums(poly.compile(nest, schedule=schedule, target="c:portable", threads=1), contraction, extents)


def test_a_microkernel_of_a_statement_that_never_runs() -> None:
    nest = parsed(TEXTS["elimination"]).with_sizes({"N": 1})
    compiles(poly.schedule(nest).tile(j=2, k=2).microkernel("gemm_portable_6x8"))


def test_a_copy_whose_readers_read_another_copy() -> None:
    made = poly.schedule(parsed(TEXTS["elimination"])).split(i=6)
    compiles(made.pack("A", at="k", statement="S0").pack("A", at="j", buffers=2))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            lambda s: s.split(j=8).microkernel("gemm_portable_6x8").part("S0", i=4),
            "part(S0): a microkernel runs S0 already. Remedy: part first, then microkernel.",
        ),
        (
            lambda s: s.tile(i=4, j=8).microkernel("gemm_portable_6x8"),
            "microkernel(gemm_portable_6x8): the iterations of a tile of S0 are not a box: the range of one of the "
            "loops i, j, k changes with another of them.",
        ),
        (
            lambda s: s.tile(i=8, j=4).microkernel("gemvn_portable").skew("i", by="i_tile", factor=2),
            "skew(i, by=i_tile, factor=2) does not fit: microkernel(gemvn_portable): the loops around S0 don't "
            "determine its iterators.",
        ),
    ],
)
def test_a_step_that_cannot_be_compiled_is_refused(steps: Callable[[Schedule], Schedule], message: str) -> None:
    with pytest.raises(poly.ScheduleError) as caught:
        steps(poly.schedule(parsed(TEXTS["triangle"])))
    assert str(caught.value).startswith(message)
