"""Contractions that plain loops do faster than microkernels, by the model, get plain loops."""

from __future__ import annotations

import pytest
from machines import LARGE

import poly
from microkernels.isa import AVX2, AVX512, ISA
from poly import f32
from poly.autoschedule.default import SURE, default_schedule, is_narrow, usual_loops
from poly.autoschedule.derive import derive
from poly.autoschedule.rules.jam import usual_jam
from poly.autoschedule.rules.microkernels import contracted, contraction_family, with_turned_tiles
from poly.ir.nest import Nest
from poly.model.core import Target
from poly.model.schedules import predicted
from poly.schedules.steps import Tensorize


@poly.nest
def depthwise(X: f32[30, 30, 64], F: f32[3, 3, 64], Y: f32[28, 28, 64]):
    for p in range(28):
        for q in range(28):
            for c in range(64):
                for r in range(3):
                    for s in range(3):
                        Y[p, q, c] += X[p + r, q + s, c] * F[r, s, c]


def product(m: int, n: int, k: int) -> Nest:
    return poly.einsum("ik,kj->ij").with_sizes({"I": m, "J": n, "K": k})


NESTS = {
    "depthwise": depthwise,
    "one column": product(40, 1, 1000),
    "three columns": product(100, 3, 1000),
    "three steps": product(100, 100, 3),
    "few rows of both": poly.einsum("ik,jk->ij").with_sizes({"I": 100, "J": 3, "K": 1000}),
    "small": product(13, 13, 13),
    "large": product(512, 512, 512),
}


@pytest.mark.parametrize("isa", [AVX2, AVX512], ids=lambda isa: isa.name)
@pytest.mark.parametrize("name", NESTS)
def test_the_default_is_what_the_model_expects_to_be_faster(name: str, isa: ISA) -> None:
    nest, target = NESTS[name], Target.nominal(isa, LARGE, 1)
    forms = filter(None, (contracted(nest, target), with_turned_tiles(nest, target)))
    both = min(forms, key=lambda made: predicted(made, target).seconds), usual_loops(nest, target).tried
    assert both[0].steps or name == "depthwise", "a microkernel takes it, unless it would copy each element by itself"
    kernels, plain = (predicted(made, target).seconds for made in both)
    jam = usual_jam(nest, target)
    narrow = jam is not None and is_narrow(jam.tried, target)
    most = plain if plain < kernels else SURE * kernels * narrow
    jams = jam is not None and predicted(jam.tried, target).seconds <= most
    expected = jam.tried if jam is not None and jams else both[plain < kernels]
    assert default_schedule(nest, target).steps == expected.steps


@pytest.mark.parametrize("isa", [AVX2, AVX512], ids=lambda isa: isa.name)
@pytest.mark.parametrize("name", ["depthwise", "few rows of both"])
def test_a_search_starts_at_plain_loops_and_knows_the_microkernels(name: str, isa: ISA) -> None:
    nest, target = NESTS[name], Target.nominal(isa, LARGE, 1)
    made = default_schedule(nest, target)
    assert not any(isinstance(step, Tensorize) for step in made.steps)
    space, tilings = derive(nest, target, coarse=True), contraction_family(nest, target, coarse=True)
    assert space.schedule(space.choice).steps == made.steps
    traits = {structure.traits for structure in space.structures}
    assert traits >= {structure.traits for structure in tilings.structures} if tilings else name == "depthwise"


@poly.nest
def small_products(A: f32[1000, 4, 20], B: f32[1000, 20, 6], C: f32[1000, 4, 6]):
    for b in range(1000):
        for i in range(4):
            for j in range(6):
                s = f32(0)
                for k in range(20):
                    s += A[b, i, k] * B[b, k, j]
                C[b, i, j] = s


def test_products_smaller_than_a_tile_are_jammed_even_where_other_loops_are_slower_than_microkernels() -> None:
    target = Target.nominal(AVX2, LARGE, 1)
    kernels, plain = contracted(small_products, target), usual_loops(small_products, target).tried
    assert predicted(kernels, target).seconds < predicted(plain, target).seconds
    jam = usual_jam(small_products, target)
    assert jam is not None and default_schedule(small_products, target).steps == jam.tried.steps
