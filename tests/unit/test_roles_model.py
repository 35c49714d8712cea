"""The model: axes with extents and strides, register tiles, and cache tiles that stay within the caches."""

from __future__ import annotations

import pytest
from contractions import Contraction

import poly
from microkernels.catalogue import fits
from microkernels.isa import AVX2, AVX512, ISA, ISAS
from poly import DType, Nest, f32, f64
from poly.analysis.bounds import check
from poly.analysis.roles import ASSUMED, Axis, Roles, roles
from poly.autoschedule.default import default_schedule
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.lowering.lower import lower
from poly.model import Caches, tile_shape
from poly.model.core import Target, room
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Pack, Tensorize

CACHES = Caches(32 << 10, 1 << 20, 16 << 20)
"""A Zen 4 core's: half of the last level is its share."""

TRANSPOSES = ("ik,kj->ij", "ki,kj->ij", "ik,jk->ij", "ki,jk->ij")


def made(contraction: Contraction, extents: dict[str, int], isa: ISA = AVX512, threads: int = 1) -> Schedule:
    nest = contraction.nest()
    return default_schedule(check(nest.with_sizes(contraction.sizes(extents))), Target.nominal(isa, CACHES, threads))


def of(spec: str, **extents: int) -> Roles:
    nest = Contraction(spec).nest().with_sizes({f"N{i}": n for i, n in extents.items()})
    found = roles(nest, nest.statements[0])
    assert found is not None
    return found


def shown(axes: tuple[Axis, ...]) -> list[tuple[str, int | None, str, str, str]]:
    return [(a.iterator, a.extent, str(a.output), str(a.left), str(a.right)) for a in axes]


def test_axes_have_extents_and_strides() -> None:
    found = of("bik,bkj->bij", b=2, i=3, j=5, k=7)
    assert shown(found.batch) == [("b", 2, "15", "21", "35")]
    assert shown(found.rows) == [("i", 3, "5", "7", "0")]
    assert shown(found.columns) == [("j", 5, "1", "0", "1")]
    assert shown(found.reduce) == [("k", 7, "0", "1", "5")]


def test_strides_of_symbolic_sizes_are_polynomials() -> None:
    found = of("bik,bkj->bij")
    assert shown(found.batch) == [("b", None, "Ni*Nj", "Ni*Nk", "Nj*Nk")]
    assert found.rows[0].guess == ASSUMED


def test_loops_of_one_iteration_are_no_loops() -> None:
    found = of("bik,bkj->bij", b=1, i=3, j=5, k=1)
    assert (found.batch, found.reduce) == ((), ())


def test_the_output_is_contiguous_along_a_column_where_only_a_batch_or_row_loop_was() -> None:
    found = of("ki,kj->ij", i=7, j=1, k=5)
    assert [axis.iterator for axis in found.columns] == ["i"]
    assert found.contraction.right.array == "A"
    assert shown(found.columns) == [("i", 7, "1", "0", "1")]


SHIFTED = """\
def product(A: f32[9, 9], B: f32[9, 9], C: f32[9, 9]):
    for i in range({low}, 9):
        for j in range({inner}):
            for k in range(9):
                C[i, j] += A[i, k] * B[k, j]
"""


@pytest.mark.parametrize(("low", "inner"), [("1", "9"), ("0", "i + 1"), ("0", "9 - i")])
def test_a_domain_that_is_no_box_at_0_has_no_roles(low: str, inner: str) -> None:
    nest = parse_text(Source(SHIFTED.format(low=low, inner=inner), "nest.py", 1), {"f32": f32})
    assert roles(nest, nest.statements[0]) is None


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
def test_register_tiles_fit_and_are_no_larger_than_the_result(isa: ISA, dtype: DType) -> None:
    lanes = isa.lanes(dtype)
    for m in (1, 2, 3, 5, 7, 12, 13, 14, 28, 31, 64, 1000):
        for n in (1, 2, lanes - 1, lanes, lanes + 1, 3 * lanes, 65, 1000):
            kernel = tile_shape(m, n, isa, dtype)
            assert fits(isa, kernel.rows, kernel.vectors)
            assert kernel.rows <= m
            assert kernel.columns < n + lanes
            assert (kernel.isa, kernel.dtype) == (isa, dtype)


def test_runs_far_apart_use_some_of_the_sets_of_a_cache() -> None:
    size = 2 << 20
    assert [room(apart, 256, size, 16) for apart in (0, 100, 256, 512, 1024)] == [
        size,
        size,
        size,
        size // 2,
        size // 4,
    ]
    assert room(2048, 192, size, 16) == size * 3 // 32


@pytest.mark.parametrize(("first", "m"), [(1, 5), (1, 12), (1, 26), (3, 10)])
def test_register_tiles_begin_at_multiples_of_their_rows(first: int, m: int) -> None:
    """Such as those of a convolution's interior, which starts behind its border: none is left for a single row."""
    rows = tile_shape(m, 16, AVX512, f32, first=first).rows
    parts = [len(set(range(first, first + m)).intersection(range(start, start + rows))) for start in range(0, 30, rows)]
    assert min(filter(None, parts)) > m // 4


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
def test_register_tiles_of_large_results_hide_the_latency(isa: ISA) -> None:
    kernel = tile_shape(2048, 2048, isa, f32)
    assert kernel.rows * kernel.vectors >= 8, "4 cycles of 2 multiply-adds"
    assert kernel.rows * kernel.vectors >= isa.registers // 2, "or registers, and so loads, are wasted"


@pytest.mark.parametrize("isa", [AVX512, AVX2], ids=lambda isa: isa.name)
def test_small_products_are_not_copied(isa: ISA) -> None:
    for size in (1, 2, 5, 13, 32, 64):
        for m, n, k in ((size, size, size), (1, size, size), (size, 1, size), (size, size, 1)):
            steps = made(Contraction("ik,kj->ij"), {"i": m, "j": n, "k": k}, isa).steps
            assert not any(isinstance(step, Pack) for step in steps), (m, n, k)


def workspace_bytes(schedule: Schedule, isa: ISA, threads: int) -> int:
    """What the copies of a call take, where all sizes are known."""
    workspaces = lower(schedule.nest, schedule.tree, isa).workspaces
    return sum(w.count.constant * w.dtype.size * (threads if w.private else 1) for w in workspaces)


SHAPES = [
    {"i": 512, "j": 512, "k": 512},
    {"i": 4096, "j": 4096, "k": 4096},
    {"i": 20000, "j": 64, "k": 3000},
    {"i": 64, "j": 20000, "k": 3000},
    {"i": 300, "j": 300, "k": 100000},
    {"i": 333, "j": 7, "k": 1001},
    {"i": 49, "j": 512, "k": 2048},
]


@pytest.mark.parametrize(("number", "spec"), list(enumerate(TRANSPOSES)))
def test_copies_stay_within_half_of_the_caches(number: int, spec: str) -> None:
    """Each shape by every other spec."""
    for at, extents in list(enumerate(SHAPES))[number % 2 :: 2]:
        threads, contraction = 1 + at // 2 % 2, Contraction(spec, (f32, f64)[at % 2])
        allowed = threads * (CACHES.l2 // 2 + CACHES.l3 // 2)
        assert workspace_bytes(made(contraction, extents, threads=threads), AVX512, threads) <= allowed, extents


@pytest.mark.parametrize("spec", ["ik,kj->ij", "ki,jk->ij", "bik,bjk->bij"])
def test_copies_of_symbolic_sizes_too(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poly.model.host.caches", lambda _: CACHES)
    contraction = Contraction(spec, f64)
    kernel = poly.compile(contraction.nest(), threads=1)
    for extents in SHAPES:
        sizes = contraction.sizes({"b": 10, **extents})
        assert 0 < kernel.workspace(**sizes) <= CACHES.l2 // 2 + CACHES.l3 // 2, extents


def decisions(nest: Nest, isa: ISA = AVX512, threads: int = 1) -> str:
    """The steps of the default schedule from the splits on."""
    text = repr(default_schedule(check(nest), Target.nominal(isa, CACHES, threads)))
    return text[text.index(")") + 1 :]


GOLDEN = {
    ("ik,kj->ij", (13, 13, 13), f32): (
        ".split(i=7).split(j=16).order('j_tile i_tile i j k').microkernel('gemm_avx512_7x16', statement='S0')"
    ),
    ("ik,kj->ij", (64, 64, 64), f32): (
        ".split(i=8).split(j=48).order('i_tile j_tile i j k').microkernel('gemm_avx512_8x48', statement='S0')"
    ),
    ("ik,kj->ij", (512, 512, 512), f32): (
        ".split(i=6).split(j=192).split(j=64).order('j_tile i_tile j_tile2 i j k')"
        ".pack('B', at='j_tile', statement='S0').microkernel('gemm_avx512_6x64', statement='S0')"
    ),
    ("ik,kj->ij", (2048, 2048, 2048), f32): (
        ".split(i=6).split(j=64).split(k=1024).order('k_tile j_tile i_tile i j k')"
        ".pack('B', at='j_tile', statement='S0').pack('A', at='k_tile', statement='S0')"
        ".microkernel('gemm_avx512_6x64', statement='S0')"
    ),
    ("ik,kj->ij", (2048, 2048, 2048), f64): (
        ".split(i=6).split(j=32).split(k=344).order('k_tile j_tile i_tile i j k')"
        ".pack('B', at='j_tile', statement='S0').pack('A', at='k_tile', statement='S0')"
        ".microkernel('gemm_avx512_6x32', statement='S0')"
    ),
    ("ik,jk->ij", (512, 512, 512), f32): (
        ".split(i=6).split(j=192).split(j=64).order('j_tile i_tile j_tile2 i j k')"
        ".pack('B', at='j_tile', statement='S0').microkernel('gemm_avx512_6x64', statement='S0')"
    ),
    ("ki,kj->ij", (512, 512, 512), f32): (
        ".split(i=6).split(j=384).split(j=64).split(k=256).order('j_tile k_tile i_tile j_tile2 i j k')"
        ".pack('B', at='k_tile', statement='S0').pack('A', at='k_tile', statement='S0')"
        ".microkernel('gemm_avx512_6x64', statement='S0')"
    ),
    ("ik,kj->ij", (49, 512, 2048), f32): (
        ".split(i=5).split(j=64).split(k=1024).order('k_tile j_tile i_tile i j k')"
        ".pack('B', at='j_tile', statement='S0').microkernel('gemm_avx512_5x64', statement='S0')"
    ),
    ("ik,kj->ij", (3136, 64, 64), f32): (
        ".split(i=6).split(j=48).order('i_tile j_tile i j k').microkernel('gemm_avx512_6x48', statement='S0')"
    ),
    ("ik,kj->ij", (512, 512, 64), f32): (
        ".split(i=6).split(j=48).order('i_tile j_tile i j k').pack('B', statement='S0')"
        ".microkernel('gemm_avx512_6x48', statement='S0')"
    ),
    ("ik,kj->ij", (2048, 2048, 32), f32): (
        ".split(i=6).split(j=48).order('i_tile j_tile i j k').pack('B', statement='S0')"
        ".microkernel('gemm_avx512_6x48', statement='S0')"
    ),
    ("ik,kj->ij", (7, 333, 1001), f32): (
        ".split(i=7).split(j=48).order('j_tile i_tile i j k').pack('B', at='j_tile', statement='S0')"
        ".microkernel('gemm_avx512_7x48', statement='S0')"
    ),
    ("bik,bkj->bij", (10000, 16, 16, 16), f32): (
        ".split(i=8).split(j=16).order('b j_tile i_tile i j k').pack('B', at='b', statement='S0')"
        ".pack('A', at='b', statement='S0').microkernel('gemm_avx512_8x16', statement='S0')"
    ),
    ("ik,k->i", (4096, 4096), f32): (".order('i k').microkernel('gemvt_avx512', statement='S0')"),
    ("k,kj->j", (4096, 4096), f32): (".order('j k').microkernel('gemvn_avx512', statement='S0')"),
    ("dbea,ec->abcd", (40, 44, 48, 52, 46), f32): (
        ".order('a c e b d').flatten('b', 'd').split(c=6).split(b_d=64).split(a=16)"
        ".order('a_tile b_d_tile a c_tile c b_d e').pack('A', at='b_d_tile', statement='S0')"
        ".pack('B', statement='S0').microkernel('gemm_avx512_6x64', statement='S0')"
    ),
    ("abk,kcd->acbd", (30, 30, 30, 30, 200), f64): (
        ".order('k a b c d').flatten('a', 'b').flatten('c', 'd').split(a_b=6).split(c_d=192).split(c_d=24)"
        ".order('c_d_tile a_b_tile c_d_tile2 a_b c_d k').pack('B', at='c_d_tile', statement='S0')"
        ".microkernel('gemm_avx512_6x24', statement='S0')"
    ),
}
"""The model's decisions for sizes in the order of the indices in the alphabet: one thread, AVX-512, CACHES, rates of
a CPU that is not described."""


@pytest.mark.parametrize("key", GOLDEN, ids=str)
def test_choices_for_known_shapes(key: tuple[str, tuple[int, ...], DType]) -> None:
    spec, sizes, dtype = key
    contraction = Contraction(spec, dtype)
    letters = dict.fromkeys(i for i in "".join(contraction.terms))
    nest = contraction.nest().with_sizes({f"N{i}": n for i, n in zip(sorted(letters), sizes, strict=True)})
    assert decisions(nest) == GOLDEN[key]


@pytest.mark.parametrize("spec", TRANSPOSES)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 64, 64), (64, 1, 64), (64, 64, 1)], ids=str)
def test_extents_of_one_still_have_a_schedule(spec: str, sizes: tuple[int, int, int]) -> None:
    schedule = made(Contraction(spec), dict(zip("ijk", sizes, strict=True)))
    assert sum(isinstance(step, Tensorize) for step in schedule.steps) <= 1
    lower(schedule.nest, schedule.tree, AVX512)
