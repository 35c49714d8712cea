"""The default schedule end to end: contractions of awkward sizes, layouts and forms against float64 sums."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import numpy as np
import pytest
from contractions import EINSUMS, FIXED, FORMS, RAGGED, TRANSPOSES, Contraction, check, check_values, operands

import poly
from microkernels.isa import ISAS
from poly import DType, f32, f64
from poly.model import Caches

TARGETS = [f"c:{name}" for name, isa in ISAS.items() if isa.runs_here()]


def triples(count: int, seed: int) -> Iterator[dict[str, int]]:
    """Mixtures of ragged sizes: squares first, then random ones."""
    drawn = random.Random(seed).sample(list(itertools.product(RAGGED, repeat=3)), count)
    for m, n, k in [(s, s, s) for s in RAGGED] + drawn:
        yield {"i": m, "j": n, "k": k}


@pytest.mark.parametrize(
    ("spec", "dtype", "form"),
    [(spec, (f32, f64)[at % 2], FORMS[at]) for at, spec in enumerate(TRANSPOSES)]
    + [(spec, (f64, f32)[at % 2], FORMS[at - 2]) for at, spec in enumerate(TRANSPOSES)]
    + [("ik,kj->ji", f32, "="), ("ik,kj->ij", f32, "bias")],
    ids=str,
)
def test_one_symbolic_kernel_serves_all_sizes(spec: str, dtype: DType, form: str) -> None:
    contraction = Contraction(spec, dtype, form)
    kernel = poly.compile(contraction.nest(), threads=2)
    for seed, extents in enumerate(triples(24, seed=len(form))):
        check(kernel, contraction, extents, threads=1 + seed % 2, seed=seed)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("at", "size"), list(enumerate(FIXED)), ids=str)
def test_known_sizes(at: int, size: tuple[int, int, int], target: str) -> None:
    at += TARGETS.index(target)
    contraction = Contraction(TRANSPOSES[at % 4], (f32, f64)[at // 2 % 2], FORMS[(at + at // 4) % 4])
    extents = dict(zip("ijk", size, strict=True))
    nest = contraction.nest()
    check(poly.compile(nest, target=target, threads=1, sizes=contraction.sizes(extents)), contraction, extents)


@pytest.mark.parametrize(("spec", "extents", "dtype", "form"), EINSUMS, ids=str)
def test_einsums_of_known_sizes(spec: str, extents: dict[str, int], dtype: DType, form: str) -> None:
    contraction = Contraction(spec, dtype, form)
    kernel = poly.compile(contraction.nest(), threads=1, sizes=contraction.sizes(extents))
    check(kernel, contraction, extents)


def test_an_einsum_to_a_single_number() -> None:
    left, right = np.random.default_rng(0).standard_normal((2, 129))
    result = np.array(np.nan)
    poly.compile(poly.einsum("k,k->", dtype=f64, k=129), threads=1)(left, right, result)
    np.testing.assert_allclose(result, left @ right, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("spec", ["bik,bkj->bij", "dbea,ec->abcd", "ik,k->i", "ijk,k->ij"])
def test_einsums_of_symbolic_sizes(spec: str) -> None:
    contraction = Contraction(spec, f64, "=")
    kernel = poly.compile(contraction.nest(), threads=2)
    letters = sorted(set("".join(contraction.terms)))
    draw = random.Random(len(spec))
    for seed in range(12):
        extents = {i: draw.choice((1, 2, 5, 7, 13, 17)) for i in letters}
        check(kernel, contraction, extents, threads=1 + seed % 2, seed=seed)


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches so small that every loop is cut and every operand copied at sizes that a test can afford."""
    monkeypatch.setattr("poly.model.host.caches", lambda _: Caches(2 << 10, 16 << 10, 64 << 10))


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize(
    ("spec", "form"),
    [("ik,kj->ij", "="), ("ki,jk->ij", "alpha"), ("ik,jk->ji", "="), ("abk,ckd->acbd", "=")],
)
def test_cuts_for_every_cache(spec: str, form: str) -> None:
    contraction = Contraction(spec, f32, form)
    extents = {"i": 129, "j": 257, "k": 131, "a": 13, "b": 11, "c": 7, "d": 37}
    sizes = contraction.sizes(extents)
    for threads in (1, 2):
        kernel = poly.compile(contraction.nest(), threads=threads, sizes=sizes)
        check(kernel, contraction, extents, threads=threads)
    check(poly.compile(contraction.nest(), threads=2), contraction, extents, threads=2)


@pytest.mark.parametrize("fixed", [True, False], ids=["known", "symbolic"])
@pytest.mark.parametrize("form", ["+=", "="])
def test_nan_and_infinity_go_where_the_loops_carry_them(form: str, fixed: bool) -> None:
    contraction = Contraction("ik,jk->ij", f32, form)
    extents = {"i": 13, "j": 65, "k": 12}
    sizes = contraction.sizes(extents) if fixed else {}
    kernel = poly.compile(contraction.nest(), threads=1, sizes=sizes)
    left, right, output = operands(contraction, extents)
    left[12, 11], left[3, 0], left[5, 5], right[64, 11], right[7, 3] = np.nan, np.inf, 0, -np.inf, np.inf
    if form == "+=":
        output[2, 2], output[12, 64] = np.inf, np.nan
    check_values(kernel, contraction, (left, right, output))


def test_a_result_that_was_nan_is_gone_where_no_term_is_added() -> None:
    contraction = Contraction("ik,kj->ij", f32, "=")
    kernel = poly.compile(contraction.nest(), threads=1)
    output = np.full((5, 7), np.nan, np.float32)
    kernel(np.zeros((5, 0), np.float32), np.zeros((0, 7), np.float32), output)
    assert not output.any()


@pytest.mark.parametrize("spec", ["ik,kj->ij", "ki,jk->ij", "bik,bkj->bij"])
def test_slices_of_wider_arrays(spec: str) -> None:
    """Whatever lies between the rows of a slice is neither read (NaN) nor written."""
    contraction = Contraction(spec, f32, "=")
    extents = {"b": 3, "i": 13, "j": 65, "k": 12}
    kernel = poly.compile(contraction.nest(), threads=1)
    values = operands(contraction, extents)
    wide = [np.full([n + 3 for n in v.shape], np.nan, v.dtype) for v in values]
    slices = [w[tuple(slice(2, 2 + n) for n in v.shape)] for w, v in zip(wide, values, strict=True)]
    for part, value in zip(slices, values, strict=True):
        part[...] = value
    wide[2][...] = 5.0
    kernel(*slices)
    exact = np.einsum(spec, *(v.astype(np.float64) for v in values[:2]))
    np.testing.assert_allclose(slices[2], exact, rtol=0, atol=1e-4)
    slices[2][...] = 5.0
    assert (wide[2] == 5.0).all()
