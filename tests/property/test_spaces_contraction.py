"""The space of a contraction: points are legal and compute the same, copies are bounded, the default is the choice."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from contractions import Contraction
from contractions import check as check_result
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from microkernels.isa import AVX512, ISA, ISAS, host
from poly import f16
from poly.analysis.bounds import check
from poly.autoschedule.default import default_schedule
from poly.autoschedule.derive import derive
from poly.autoschedule.rules.microkernels import heaviest_box
from poly.autoschedule.spaces.space import Point, Space
from poly.compilation import compile_nest
from poly.lowering.lower import lower
from poly.model import Caches
from poly.model.core import Target
from poly.model.grid import NEARLY, Grid
from poly.model.schedules import predicted
from poly.schedules.makeable import check_makeable
from poly.schedules.steps import Pack, Tensorize

M, N, K = poly.sizes("M N K")
HOST = host()
CACHES = Caches(32 << 10, 1 << 20, 16 << 20)
TIGHT = Caches(2 << 10, 16 << 10, 64 << 10)
"""Caches so small that small problems are cut."""

SPECS = ("ik,kj->ij", "ki,kj->ij", "ik,jk->ij", "bik,bkj->bij", "akb,kcd->acbd", "dbea,ec->abcd")


def space(contraction: Contraction, sizes: dict[str, int], threads: int = 1, coarse: bool = False) -> Space:
    nest = check(contraction.nest().with_sizes(sizes))
    return derive(nest, Target.nominal(HOST, TIGHT, threads), coarse)


@settings(deadline=None, max_examples=12)
@given(st.data())
def test_any_point_computes_the_same(data: st.DataObject) -> None:
    contraction = Contraction(data.draw(st.sampled_from(SPECS)), form=data.draw(st.sampled_from(("+=", "="))))
    letters = dict.fromkeys(i for i in "".join(contraction.terms))
    extents = {i: data.draw(st.integers(1, 9 if len(letters) > 3 else 40), label=i) for i in letters}
    sizes = contraction.sizes(extents)
    found = space(contraction, sizes, threads=data.draw(st.sampled_from((1, 2))))
    for point in found.sample(1, Random(data.draw(st.integers(0, 99)))):
        made = found.schedule(point)
        kernel = compile_nest(made.nest, schedule=made, threads=found.threads, records=False)
        check_result(kernel, contraction, extents, found.threads)


@settings(deadline=None, max_examples=10)
@given(st.data())
def test_the_steady_point_packs_both_operands(data: st.DataObject) -> None:
    """Its tile is the usual one and its blocks those of libraries, as far as the grid and the caches allow them."""
    contraction = Contraction(data.draw(st.sampled_from(SPECS)), form=data.draw(st.sampled_from(("+=", "="))))
    letters = dict.fromkeys(i for i in "".join(contraction.terms))
    extents = {i: data.draw(st.integers(2, 40 if len(letters) > 3 else 700), label=i) for i in letters}
    nest = check(contraction.nest().with_sizes(contraction.sizes(extents)))
    threads, caches = data.draw(st.sampled_from((1, 2))), data.draw(st.sampled_from((CACHES, TIGHT)))
    found = derive(nest, Target.nominal(HOST, caches, threads), coarse=data.draw(st.booleans()))
    packed = {
        number: structure
        for number, structure in enumerate(found.structures)
        if {("order", "rows inside"), ("left", "panels"), ("right", "whole")} <= {*structure.traits}
        and any(True for _ in structure.points())
    }
    chosen = dict(found.structures[found.choice.structure].traits)
    if "left" not in chosen:  # the model prefers loops without a microkernel
        assert not found.steady
        return
    parallel = chosen["parallel"]
    assert [p.structure for p in found.steady] == [n for n, s in packed.items() if ("parallel", parallel) in s.traits]
    for point in found.steady:
        made = found.schedule(point)
        check_makeable(made.nest, made.tree)
        assert sum(isinstance(step, Pack) for step in made.steps) == 2
        wanted = {"depth": 256, "columns": None, "block": 192}
        nearby = {
            name: _nearest(knob.values, wanted[name])
            for knob in found.structures[point.structure].knobs
            if (name := knob.name) in wanted
        }
        if packed[point.structure].allows({**found.values(point), **nearby}):
            assert {name: found.values(point)[name] for name in nearby} == nearby


def _nearest(values: Sequence[int | None], wanted: int | None) -> int | None:
    sizes = [value for value in values if value is not None]
    return values[-1] if wanted is None or not sizes else min(sizes, key=lambda value: abs(value - wanted))


@pytest.mark.parametrize("spec", SPECS)
def test_points_can_be_made_where_a_loop_runs_once(spec: str) -> None:
    """Such a loop is next to nothing: its stride must not choose between rows and columns."""
    contraction = Contraction(spec, form="+=")
    letters = sorted(set("".join(contraction.terms)))
    for single in (*letters, "".join(letters)):
        extents = {letter: 1 if letter in single else 5 for letter in letters}
        found = space(contraction, contraction.sizes(extents))
        for point in found.sample(6, Random(0)):
            made = found.schedule(point)
            check_makeable(made.nest, made.tree)


@settings(deadline=None, max_examples=12)
@given(st.data())
def test_a_point_costs_what_its_schedule_costs(data: st.DataObject) -> None:
    """Made without isl or from the loops that the point's steps make: the parts, and so the price, are the same."""
    contraction = Contraction(data.draw(st.sampled_from(SPECS)), form=data.draw(st.sampled_from(("+=", "="))))
    letters = dict.fromkeys(i for i in "".join(contraction.terms))
    extents = {i: data.draw(st.integers(2, 40 if len(letters) > 3 else 700), label=i) for i in letters}
    nest = check(contraction.nest().with_sizes(contraction.sizes(extents)))
    threads, caches = data.draw(st.sampled_from((1, 2))), data.draw(st.sampled_from((CACHES, TIGHT)))
    found = derive(nest, Target.nominal(HOST, caches, threads), coarse=True)
    for point in found.sample(3, Random(data.draw(st.integers(0, 99)))):
        if "left" not in dict(found.structures[point.structure].traits):
            continue  # loops without a microkernel
        expected, actual = (
            found.predict(point),
            predicted(found.schedule(point), Target.nominal(HOST, caches, threads)),
        )
        assert [part.name for part in actual.parts] == [part.name for part in expected.parts]
        assert [part.seconds for part in actual.parts] == pytest.approx([part.seconds for part in expected.parts])
        assert actual.seconds == pytest.approx(expected.seconds)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("spec", SPECS)
def test_the_choice_is_what_compile_takes(spec: str, coarse: bool, threads: int) -> None:
    contraction = Contraction(spec)
    extents = dict.fromkeys("abcdeijk", 24) if len(spec) > 10 else dict.fromkeys("ijk", 200)
    nest = check(contraction.nest().with_sizes(contraction.sizes(extents)))
    found = derive(nest, Target.nominal(HOST, CACHES, threads), coarse)
    assert found.choice in found
    assert found.schedule(found.choice).steps == default_schedule(nest, Target.nominal(HOST, CACHES, threads)).steps


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("known", ["", "i", "j", "k", "ijk"])
def test_a_coarse_grid_is_part_of_the_whole_one(known: str, threads: int) -> None:
    """The model chooses from the coarse grid, so its choice is a point of the space."""
    nest = Contraction("ik,kj->ij").nest()
    target = Target.nominal(HOST, CACHES, threads)
    found = heaviest_box(check(nest.with_sizes({f"N{letter}": 200 for letter in known})), target)
    assert found is not None
    whole, coarse = (Grid(found[1].work, target, found[1].by_lines, thinned) for thinned in (False, True))
    for kind in coarse.structures():
        knobs = whole.knobs(kind)
        assert not {name for name, values in coarse.knobs(kind).items() if not set(values) <= set(knobs[name])}


def test_a_coarse_space_can_be_measured_whole() -> None:
    for sizes in ((128, 2048, 4096), (31999, 1024, 84), (256, 256, 2048), (13, 13, 13)):
        nest = Contraction("ik,kj->ij").nest().with_sizes(dict(zip(("Ni", "Nj", "Nk"), sizes, strict=True)))
        found = derive(nest, Target.nominal(AVX512, CACHES, 1), coarse=True)
        points = list(found)
        assert 2 <= len(points) == len(found) <= 700, sizes
        assert len({repr(found.schedule(point)) for point in points[::20]}) == len(points[::20])


def test_points_are_legal_register_tiles_with_bounded_copies() -> None:
    nest = Contraction("ki,jk->ij").nest().with_sizes({"Ni": 900, "Nj": 700, "Nk": 1500})
    found = derive(nest, Target.nominal(AVX512, CACHES, 1))
    for point in found.sample(60, Random(1)):
        made = found.schedule(point)
        (kernel,) = (step for step in made.steps if isinstance(step, Tensorize))
        values = found.values(point)
        assert kernel.kernel == f"gemm_avx512_{values['rows']}x{16 * (values['vectors'] or 0)}"
        copies = lower(made.nest, made.tree, AVX512).workspaces
        assert sum(copy.count.constant * copy.dtype.size for copy in copies) <= (CACHES.l2 + CACHES.l3) // 2 * 1.05


@pytest.mark.parametrize(
    ("spec", "size", "known"), list(zip(SPECS[:4], (0, 1, 1 << 10, 1 << 12), 2 * (False, True), strict=True))
)
def test_no_caches_are_too_small(spec: str, size: int, known: bool) -> None:
    """There is a point whose copies go beyond them, and the default schedule is in the space."""
    target = Target.nominal(HOST, Caches(size, size, size), 2)
    contraction = Contraction(spec)
    sizes = contraction.sizes(dict.fromkeys("abcdeijk", 100)) if known else {}
    nest = contraction.nest().with_sizes(sizes)
    coarse = derive(nest, target, coarse=True)
    assert coarse.schedule(coarse.choice).steps
    found = derive(nest, target)
    assert found.schedule(found.choice) == default_schedule(nest, target)


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
def test_every_instruction_set_has_a_space(isa: ISA) -> None:
    nest = Contraction("ik,kj->ij").nest().with_sizes({"Ni": 16, "Nj": 16, "Nk": 16})
    found = derive(nest, Target.nominal(isa, CACHES, 1))
    assert found.choice in found


def test_halves_have_a_space_without_microkernels() -> None:
    """No microkernel of one core computes with them: their loops are ordered and cut as any others."""

    @poly.nest
    def product(A: f16[M, K], B: f16[K, N], C: f16[M, N]):
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[i, j] += A[i, k] * B[k, j]

    nest, target = product.with_sizes({"M": 60, "N": 70, "K": 80}), Target.nominal(HOST, CACHES, 1)
    found = derive(nest, target)
    assert found.schedule(found.choice) == default_schedule(nest, target)
    assert all(dict(structure.traits)["order"] for structure in found.structures)


def test_a_space_is_the_same_each_time() -> None:
    contraction, sizes = Contraction("ik,kj->ij"), {"Ni": 50, "Nj": 70, "Nk": 90}
    first, second = space(contraction, sizes, coarse=True), space(contraction, sizes, coarse=True)
    assert list(first) == list(second) and first.ranked() == second.ranked()
    assert str(first) == str(second) and first.choice == second.choice
    assert first.predict(first.choice).seconds <= NEARLY * first.predict(first.ranked()[0]).seconds


def test_neighbours_across_structures() -> None:
    found = space(Contraction("ik,kj->ij"), {"Ni": 50, "Nj": 70, "Nk": 90})
    point = found.choice
    here = dict(found.structures[point.structure].traits)
    for sibling in found.siblings(point):
        assert sibling in found
        there = dict(found.structures[sibling.structure].traits)
        assert sum(here[name] != there[name] for name in here) == 1
    assert found.nearest(point.structure, found.values(point)) == point
    assert Point(len(found.structures), ()) not in found


def test_the_symbolic_space_is_that_of_assumed_sizes() -> None:
    nest = Contraction("ik,kj->ij").nest()
    found = derive(nest, Target.nominal(HOST, CACHES, 1), coarse=True)
    made = found.schedule(found.choice)
    assert made.nest.sizes == nest.sizes
    kernel = compile_nest(nest, schedule=made, threads=1, records=False)
    for extents in ({"i": 1, "j": 1, "k": 1}, {"i": 37, "j": 65, "k": 130}, {"i": 130, "j": 9, "k": 3}):
        check_result(kernel, Contraction("ik,kj->ij"), extents)


def test_errors_name_what_is_wrong() -> None:
    nest = Contraction("ik,kj->ij").nest()
    with pytest.raises(poly.SpecError, match="no nest"):
        poly.space("matmul")
    with pytest.raises(poly.SpecError, match="Nq"):
        poly.space(nest, Nq=3)
    with pytest.raises(poly.TargetError):
        poly.space(nest, target="c:vax")
