"""What the engine's property tests ask of C kernels, asked of OpenCL's: those for CPUs, and those for GPUs.

Both run on the tests' device. A GPU's kernels need no GPU to be right: groups, items, local memory and barriers are the
same everywhere.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import classic_nests
import numpy as np
import pytest
from classic_nests import check as check_as_written
from contractions import EINSUMS, FIXED, FORMS, RAGGED, TRANSPOSES, Contraction, check, check_values, operands
from hypothesis import Phase, example, given, note, settings
from hypothesis import strategies as st
from opencl_device import device
from random_nests import VALUE_OF_N, nests, steps
from random_programs import ONES, STRIDES, Product, bodies, check_contraction, check_nest, products
from scatters import POLYNOMIALS, TRANSPOSED, Scatter, check_scatter, scatters

import poly
from microkernels.opencl_isa import OPENCLGPU, DeviceISA
from poly import f32, f64
from poly.errors import ScheduleError
from poly.ir.reference import reference
from poly.ir.tree import Node, bands
from poly.opencl_kernel import OpenCLKernel, opencl_kernel
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Groups, Items

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Each example is built for the device: to shrink one takes minutes. POLY_SHRINK=1 takes them."""
if os.environ.get("POLY_SHRINK"):
    PHASES = (*PHASES, Phase.shrink)

KINDS = ("cpu", "gpu")


def instruction_set(kind: str) -> DeviceISA:
    """The device's own, or that of a GPU with its limits."""
    own = device().isa
    if kind == "cpu":
        return own
    return replace(OPENCLGPU, units=4, local_bytes=own.local_bytes, max_items=min(256, own.max_items))


def compiler(kind: str) -> Callable[..., OpenCLKernel]:
    """`poly.compile` for an instruction set on the tests' device."""

    def compiled(nest: poly.Nest, made: Schedule | None = None, **sizes: int) -> OpenCLKernel:
        isa = instruction_set(kind)
        return opencl_kernel(nest.with_sizes(sizes) if sizes else nest, isa, isa.units, made, device())

    return compiled


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3, phases=PHASES)
@example(ONES, f32, True)
@given(products(), st.sampled_from([f32, f64]), st.booleans())
def test_any_contraction(kind: str, product: Product, dtype: poly.DType, known: bool) -> None:
    check_contraction(product, dtype, known, compiler(kind))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3, phases=PHASES)
@example(POLYNOMIALS, False)
@example(TRANSPOSED, True)
@given(scatters(), st.booleans())
def test_any_scatter(kind: str, scatter: Scatter, known: bool) -> None:
    check_scatter(compiler(kind)(scatter.nest, **(scatter.sizes if known else {})), scatter)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3, phases=PHASES)
@example(STRIDES, 5, 0, False)
@given(bodies(), st.integers(0, 9), st.sampled_from([0, 1, 2, 5, 9, 17, 21]), st.booleans())
def test_any_nest(kind: str, lines: list[str], m: int, n: int, known: bool) -> None:
    check_nest(lines, m, n, known, compiler(kind))


@pytest.mark.parametrize("nest", list(classic_nests.SIZES)[::2], ids=lambda nest: nest.name)
def test_classic_nests_on_a_cpu(nest: poly.Nest) -> None:
    """On a GPU they are run where its default schedules are tested."""
    known = classic_nests.SIZES[nest] if len(nest.name) % 2 else {}
    check_as_written(nest, compiler("cpu")(nest, **known))


@cache
def symbolic(kind: str, at: int) -> tuple[Contraction, OpenCLKernel]:
    """A product with a form and a transpose of its own, and its kernel for all sizes."""
    contraction = Contraction(TRANSPOSES[at], (f32, f64)[at % 2], FORMS[at])
    return contraction, compiler(kind)(contraction.nest())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", range(4), ids=TRANSPOSES.__getitem__)
def test_one_symbolic_kernel_serves_all_sizes(kind: str, at: int) -> None:
    contraction, kernel = symbolic(kind, at)
    draw = random.Random(at)
    for seed in range(12):
        check(kernel, contraction, {i: draw.choice(RAGGED) for i in "ijk"}, threads=None, seed=seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["+=", "="])
def test_nan_and_infinity_go_where_the_loops_carry_them(kind: str, form: str) -> None:
    contraction, kernel = symbolic(kind, FORMS.index(form))
    left, right, output = operands(contraction, {"i": 13, "j": 65, "k": 12})
    terms = zip((left, right), contraction.terms, strict=False)
    a, b = (values if term[1] == "k" else values.T for values, term in terms)
    a[12, 11], a[3, 0], a[5, 5], b[64, 11], b[7, 3] = np.nan, np.inf, 0, -np.inf, np.inf
    if form == "+=":
        output[2, 2], output[12, 64] = np.inf, np.nan
    check_values(kernel, contraction, (left, right, output), threads=None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_that_was_nan_is_gone_where_no_term_is_added(kind: str) -> None:
    _, kernel = symbolic(kind, FORMS.index("="))
    output = np.full((5, 7), np.nan)
    kernel(np.zeros((0, 5)), np.zeros((7, 0)), output)
    assert not output.any()


@pytest.mark.parametrize(("at", "size"), list(enumerate(FIXED)), ids=str)
def test_known_sizes(at: int, size: tuple[int, int, int]) -> None:
    contraction = Contraction(TRANSPOSES[at % 4], (f32, f64)[at // 2 % 2], FORMS[(at + at // 4) % 4])
    extents = dict(zip("ijk", size, strict=True))
    kernel = compiler(KINDS[at // 2 % 2])(contraction.nest(), **contraction.sizes(extents))
    check(kernel, contraction, extents, threads=None)


@pytest.mark.parametrize(("at", "case"), list(enumerate(EINSUMS)), ids=str)
def test_einsums(at: int, case: tuple[str, dict[str, int], poly.DType, str]) -> None:
    spec, extents, dtype, form = case
    contraction = Contraction(spec, dtype, form)
    kernel = compiler(KINDS[at % 2])(contraction.nest(), **contraction.sizes(extents))
    check(kernel, contraction, extents, threads=None)


@st.composite
def mapping_steps(draw: st.DrawFn, tree: Node) -> Groups | Items:
    """Loops given to work-groups, and loops given to a few work-items."""
    loops = st.sampled_from([band.name for band in bands(tree)])
    several = st.lists(loops, min_size=1, max_size=3, unique=True)
    few = st.lists(st.tuples(loops, st.integers(1, 5)), min_size=1, max_size=2, unique_by=lambda pair: pair[0])
    return draw(
        st.one_of(
            st.builds(lambda names: Groups(tuple(names)), several), st.builds(lambda told: Items(tuple(told)), few)
        )
    )


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4, phases=PHASES)
@given(nests(), st.data())
def test_an_accepted_schedule_computes_the_same(kind: str, nest: poly.Nest, data: st.DataObject) -> None:
    """Among its steps are mappings to groups and items; what is refused stays away."""
    nest = nest.with_sizes({"N": VALUE_OF_N})
    made = schedule(nest)
    for number in range(8):
        step = data.draw(mapping_steps(made.tree) if number % 2 else steps(made.tree))
        try:
            made = made.apply([step])
        except ScheduleError:
            continue
    note(f"{nest.source}\n{made!r}")
    rng = np.random.default_rng(0)
    side = VALUE_OF_N + 30
    ours = [0.5 + 0.25 * rng.random((side,)), 0.5 + 0.25 * rng.random((side, side))]
    expected = [values.copy() for values in ours]
    with np.errstate(over="ignore", invalid="ignore"):
        reference(nest, tuple(expected))
    compiler(kind)(nest, made)(*ours)
    for our, their in zip(ours, expected, strict=True):
        np.testing.assert_allclose(our, their, rtol=1e-9)
