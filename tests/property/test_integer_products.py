"""Contractions with sums of i32: equal to those of NumPy in 64 bits, whose lower 32 bits they are."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import poly
from microkernels.catalogue import gemm, tiles
from microkernels.dot import DotProduct, dots, fitting, holds
from microkernels.dtypes import DTYPES, DType, f32, i8, i16, i32, i64, u8, u16
from microkernels.isa import AVX2, AVX512, ISA, ISAS
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.model.core import Caches, Target
from poly.schedules.steps import Tensorize

HERE = [isa for isa in ISAS.values() if isa.runs_here()]
TARGETS = [f"c:{isa.name}" for isa in HERE]
KINDS = (i8, u8, i16, u16, i32)
M, N, K, L = poly.sizes("M N K L")

FORMS = {
    "ij=ik*kj": ("A: S[M, K], B: R[K, N], C: i32[M, N]", "C[i, j] += i32(A[i, k]) * i32(B[k, j])"),
    "ij=ki*jk": ("A: S[K, M], B: R[N, K], C: i32[M, N]", "C[i, j] += -3 * i32(A[k, i]) * i32(B[j, k])"),
    "ji=ik*kj": ("A: S[M, K], B: R[K, N], C: i32[N, M]", "C[j, i] += i32(A[i, k]) * i32(B[k, j])"),
    "ij=ikl*klj": ("A: S[M, K, L], B: R[K, L, N], C: i32[M, N]", "C[i, j] += i32(A[i, k, l]) * i32(B[k, l, j])"),
    "ij=i+l,k*jlk": ("A: S[M + L, K], B: R[N, L, K], C: i32[M, N]", "C[i, j] += i32(A[i + l, k]) * i32(B[j, l, k])"),
}
"""Matrix products in several orders, sums over two loops, and a convolution."""


def nest_of(form: str, left: DType, right: DType, zeroed: bool = True) -> Nest:
    arguments, body = FORMS[form]
    target = body.split(" ")[0] + " " + body.split(" ")[1]
    first = f"            {target} = 0\n" if zeroed else ""
    inner = "for k in range(K):\n                for l in range(L):" if "l" in form else "for k in range(K):"
    deep = "    " * (5 if "l" in form else 4)
    text = f"def product({arguments}):\n    for i in range(M):\n        for j in range(N):\n{first}"
    text += f"            {inner}\n{deep}{body}\n"
    text = text.replace(": S[", f": {left.name}[").replace(": R[", f": {right.name}[")
    return parse_text(Source(text, "integers.py", 1), {"M": M, "N": N, "K": K, "L": L, **DTYPES})


def expected(form: str, a: np.ndarray, b: np.ndarray, extents: dict[str, int]) -> np.ndarray:
    a, b = a.astype(np.int64), b.astype(np.int64)
    if "+" in form:
        taps = range(extents["L"])
        return sum(np.einsum("ik,jk->ij", a[tap : tap + extents["M"]], b[:, tap]) for tap in taps)
    out, operands = form.split("=")
    return np.einsum(f"{operands.replace('*', ',')}->{out}", a, b) * (-3 if form == "ij=ki*jk" else 1)


def drawn(dtype: DType, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Elements of any values, and as many of the least and the greatest."""
    random, limits = np.random.default_rng(seed), np.iinfo(dtype.numpy_name)
    any_ = random.integers(limits.min, limits.max, shape, dtype.numpy_name, endpoint=True)
    return np.where(random.random(shape) < 0.5, any_, random.choice([limits.min, limits.max], shape)).astype(any_.dtype)


def shapes(nest: Nest, extents: dict[str, int]) -> list[tuple[int, ...]]:
    made = nest.with_sizes({size: extents[size] for size in nest.sizes})
    return [tuple(extent.constant for extent in array.shape) for array in made.arrays]


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from(sorted(FORMS)),
    st.sampled_from(list(product(KINDS, KINDS))),
    st.sampled_from(TARGETS),
    st.tuples(st.integers(1, 67), st.integers(1, 67), st.integers(1, 67), st.integers(1, 3)),
    st.booleans(),
    st.integers(0, 9),
)
@example("ij=ik*kj", (i8, i8), TARGETS[0], (29, 65, 67, 1), True, 0)
@example("ij=ik*kj", (u8, u8), TARGETS[0], (29, 65, 66, 1), False, 0)
@example("ij=i+l,k*jlk", (u8, i8), TARGETS[0], (31, 33, 5, 3), True, 0)
@example("ij=ik*kj", (u16, u16), TARGETS[0], (29, 65, 66, 1), False, 0)
@example("ij=ikl*klj", (i16, u8), TARGETS[-1], (31, 33, 5, 3), True, 0)
def test_products(form: str, kinds: tuple, target: str, sizes: tuple, zeroed: bool, seed: int) -> None:
    extents = dict(zip(("M", "N", "K", "L"), sizes, strict=True))
    nest = nest_of(form, *kinds, zeroed)
    if "l" in form and "k" in form and form == "ij=ikl*klj":
        extents["L"], extents["K"] = extents["K"], extents["L"]
    one, other, result = shapes(nest, extents)
    a, b = drawn(kinds[0], one, seed), drawn(kinds[1], other, seed + 1)
    before = drawn(i32, result, seed + 2)
    c = before.copy()
    poly.compile(nest, sizes={size: extents[size] for size in nest.sizes}, target=target)(a, b, c)
    want = expected(form, a, b, extents) + (0 if zeroed else before)
    np.testing.assert_array_equal(c, want.astype(np.int32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kinds", [(i8, i8), (u8, u8), (u8, i8), (i8, u8), (i16, i16), (i16, u8)], ids=str)
def test_extreme_elements_do_not_saturate(target: str, kinds: tuple[DType, DType]) -> None:
    """All pairs of the least and the greatest elements, long enough for sums of i16 to wrap around many times."""
    m, n, k = 30, 70, 515
    made = poly.compile(nest_of("ij=ik*kj", *kinds), sizes={"M": m, "N": n, "K": k}, target=target)
    for first, second in product(*((np.iinfo(kind.numpy_name).min, np.iinfo(kind.numpy_name).max) for kind in kinds)):
        a = np.full((m, k), first, kinds[0].numpy_name)
        b = np.full((k, n), second, kinds[1].numpy_name)
        c = drawn(i32, (m, n), 0)
        made(a, b, c)
        np.testing.assert_array_equal(c, np.full((m, n), k * int(first) * int(second), np.int64).astype(np.int32))


WORDED = [(isa, dot) for isa in HERE for dot in dots(isa, i32) if not dot.extended(isa).missing()]


@pytest.mark.parametrize(("isa", "dot"), WORDED, ids=lambda one: one.name)
def test_each_microkernel_by_name(isa: ISA, dot: DotProduct) -> None:
    """With sizes that are open, and a reduction that is cut in odd parts."""
    kernel = tiles(isa, i32, dot)[-1]
    made = poly.schedule(nest_of("ij=ik*kj", dot.left, dot.right)).distribute("i")
    made = made.split(k=35).split(i_2=kernel.rows).split(j_2=kernel.columns)
    made = made.order("k_tile i_2_tile j_2_tile i_2 j_2 k")
    made = made.pack("A", at="k_tile").pack("B", at="k_tile").microkernel(str(kernel), "S1")
    run = poly.compile(made.nest, schedule=made, target=f"c:{isa.name}")
    for m, n, k in ((1, 1, 1), (kernel.rows + 1, kernel.columns - 1, 36), (50, 70, 110)):
        a, b, c = drawn(dot.left, (m, k), 0), drawn(dot.right, (k, n), 1), drawn(i32, (m, n), 2)
        run(a, b, c)
        np.testing.assert_array_equal(c, (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32))


@pytest.mark.parametrize("kinds", [(i8, i8), (u8, i8), (i16, i16)], ids=str)
def test_operands_packed_before(kinds: tuple[DType, DType]) -> None:
    """A product whose columns' panels have heads is packed before as any other."""
    a, b, c = drawn(kinds[0], (40, 77), 0), drawn(kinds[1], (77, 99), 1), drawn(i32, (40, 99), 2)
    made = poly.compile(nest_of("ij=ik*kj", *kinds), sizes={"M": 40, "N": 99, "K": 77})
    made.prepack("B", b)(a, c)
    np.testing.assert_array_equal(c, (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32))


def test_the_instruction_follows_from_the_types_and_the_cpu() -> None:
    vnni = ("avx512_vnni",)
    named = {kinds: fitting(AVX512, i32, *kinds, vnni) for kinds in product(KINDS, KINDS)}
    assert {kinds: dot and dot.name for kinds, dot in named.items() if not {i32, u16} & {*kinds}} == {
        (i8, i8): "i8", (i8, u8): "i8u8", (u8, i8): "u8i8", (u8, u8): "u8",
        **{kinds: "i16vnni" for kinds in product((i8, u8, i16), repeat=2) if i16 in kinds},
    }  # fmt: skip
    assert not any(dot for kinds, dot in named.items() if i32 in kinds)
    assert {fitting(AVX512, i32, *kinds, ()).name for kinds in product((i8, u8, i16), repeat=2)} == {"i16"}
    assert fitting(AVX2, i32, u8, i8, ("avx_vnni",)).name == "u8i8"
    assert fitting(AVX512, f32, f32, f32, vnni) is None
    assert holds(i16, u8)
    assert not holds(i8, u8)


@pytest.mark.skipif(not AVX512.runs_here(), reason="the tiles are those of AVX-512")
def test_without_the_instruction_two_steps_are_added_at_a_time() -> None:
    from poly.autoschedule.default import default_schedule

    nest = nest_of("ij=ik*kj", i8, i8).with_sizes({"M": 512, "N": 512, "K": 512})
    target = Target.nominal(AVX512, Caches(32 << 10, 1 << 20, 8 << 20), 1)
    (kernel,) = [step.kernel for step in default_schedule(nest, target).steps if isinstance(step, Tensorize)]
    assert kernel.startswith("gemm_i16_avx512_")


@pytest.mark.skipif(not AVX2.runs_here(), reason="the microkernel is for AVX2")
def test_what_cannot_be_read_in_words_is_refused() -> None:
    kernel = gemm(AVX2, i32, 4, 1, dots(AVX2, i32)[-1])
    made = poly.schedule(nest_of("ij=ik*kj", i16, i16)).distribute("i").split(k=30, i_2=4, j_2=kernel.columns)
    made = made.order("k_tile i_2_tile j_2_tile i_2 j_2 k")
    with pytest.raises(poly.ScheduleError, match=r"B is converted while it is packed, and it is not"):
        made.pack("A", at="k_tile").microkernel(str(kernel), "S1")
    wide = poly.schedule(nest_of("ij=ik*kj", i16, i32)).distribute("i").split(k=30, i_2=4, j_2=kernel.columns)
    wide = wide.order("k_tile i_2_tile j_2_tile i_2 j_2 k").pack("A", at="k_tile").pack("B", at="k_tile")
    with pytest.raises(poly.ScheduleError, match=r"it multiplies i16 by i16, and B is of i32"):
        wide.microkernel(str(kernel), "S1")
    with pytest.raises(poly.TargetError, match="does not exist for f32"):
        poly.schedule(
            parse_text(
                Source("def p(A: f32[M, K], B: f32[K, N], C: f32[M, N]):\n    for i in range(M):\n"
                       "        for j in range(N):\n            for k in range(K):\n"
                       "                C[i, j] += A[i, k] * B[k, j]\n", "p.py", 1),
                {"M": M, "N": N, "K": K, **DTYPES},
            )
        ).microkernel(str(kernel))  # fmt: skip


def test_sums_of_other_integers_have_no_microkernel() -> None:
    for dtype in (i64, i16):
        text = f"def p(A: i16[M, K], B: i16[K, N], C: {dtype}[M, N]):\n    for i in range(M):\n"
        text += "        for j in range(N):\n            for k in range(K):\n"
        text += f"                C[i, j] += {dtype}(A[i, k]) * {dtype}(B[k, j])\n"
        nest = parse_text(Source(text, "p.py", 1), {"M": M, "N": N, "K": K, **DTYPES})
        made = poly.compile(nest, sizes={"M": 40, "N": 40, "K": 40})
        assert not any(isinstance(step, Tensorize) for step in made.schedule.steps)
        a, b, c = drawn(i16, (40, 40), 0), drawn(i16, (40, 40), 1), np.zeros((40, 40), dtype.numpy_name)
        made(a, b, c)
        np.testing.assert_array_equal(c, (a.astype(np.int64) @ b.astype(np.int64)).astype(dtype.numpy_name))
        assert prod(c.shape) == 1600
