"""What a record holds for: the same loops under any name and at any sizes are one structure; all else tells apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tuning_records import key

import poly
from microkernels.isa import parse_target
from poly import f32, f64
from poly.records import Key, key_for
from poly.version import RELEASE

M, N, K = poly.sizes("M N K")
ISA = parse_target("c:portable")


@poly.nest
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def same_loops(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):  # another name, and comments
        for j in range(N):
            for k in range(K):
                C[i, j] += (A[i, k]) * B[k, j]


@poly.nest
def in_double(A: f64[M, K], B: f64[K, N], C: f64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def other_order(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for k in range(K):
            for j in range(N):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def triangle(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(i, K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def transposed(A: f32[K, M], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[k, i] * B[k, j]


def scaled(factor: float) -> poly.Function:
    @poly.nest
    def scale(A: f32[M], B: f32[M]):
        for i in range(M):
            B[i] = factor * A[i]

    return scale


def padded(blocks: int) -> poly.Function:
    L = blocks * M

    @poly.nest
    def fill(A: f32[L]):
        for i in range(L):
            A[i] = 1.0

    return fill


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path))


def test_the_same_loops_under_another_name_share_records() -> None:
    assert product.structure == same_loops.structure
    assert key_for(product, ISA, 1) == key_for(same_loops, ISA, 1)
    assert key_for(product, ISA, 1).digest == key_for(same_loops, ISA, 1).digest
    assert key_for(product, ISA, 1).name == "product"


def test_other_loops_are_another_structure() -> None:
    nests = [product, in_double, other_order, triangle, transposed]
    assert len({nest.structure for nest in nests}) == len(nests)
    assert scaled(2.0).structure != scaled(3.0).structure
    assert scaled(2.0).structure == scaled(2.0).structure


def test_a_nest_keeps_its_structure_when_sizes_are_fixed() -> None:
    fixed = product.with_sizes({"M": 3}).with_sizes({"N": 5, "K": 0})
    assert fixed.structure == product.structure
    assert key_for(fixed, ISA, 1).sizes == (("K", 0), ("M", 3), ("N", 5))
    assert key_for(product.with_sizes({"K": 0, "N": 5, "M": 3}), ISA, 1) == key_for(fixed, ISA, 1)


def test_sizes_that_meet_at_one_value_stay_apart() -> None:
    """2 * M at M = 6 and 3 * M at M = 4 have the same extents, but are other loops."""
    assert padded(2).with_sizes({"M": 6}).structure != padded(3).with_sizes({"M": 4}).structure


def test_an_einsum_made_with_sizes_is_a_neighbour_of_the_open_one() -> None:
    made = poly.einsum("mk,kn->mn", m=64, k=32, n=16)
    assert made.structure == poly.einsum("mk,kn->mn").structure == poly.einsum("mk,kn->mn", m=8).structure
    assert key_for(made, ISA, 1).sizes == (("K", 32), ("M", 64), ("N", 16))
    assert made.structure != poly.einsum("mk,nk->mn").structure
    assert made.structure != poly.einsum("mk,kn->mn", dtype=f64).structure


def test_a_key_says_machine_compiler_and_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = key_for(product, ISA, 3)
    assert (found.target, found.threads, found.dtypes, found.engine) == ("portable", 3, ("f32",) * 3, RELEASE)
    assert poly.machine().cpu in found.machine and "L1" in found.machine
    assert found.compiler.split()[0] in ("gcc", "clang")


CHANGES: list[Callable[[Key], Key]] = [
    lambda k: replace(k, structure="6" * 32),
    lambda k: replace(k, sizes=(("M", 513),)),
    lambda k: replace(k, sizes=(("N", 512),)),
    lambda k: replace(k, sizes=()),
    lambda k: replace(k, dtypes=("f32",)),
    lambda k: replace(k, target="avx512"),
    lambda k: replace(k, threads=2),
    lambda k: replace(k, machine="another"),
    lambda k: replace(k, compiler="gcc 13.1.0"),
    lambda k: replace(k, engine="0.2.0"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_can_change_the_fastest_schedule_is_in_the_key(change: Callable[[Key], Key]) -> None:
    assert change(key(M=512)) != key(M=512)
    assert change(key(M=512)).digest != key(M=512).digest


def test_a_key_survives_json() -> None:
    told = key(M=512, N=3)
    assert Key.of(json.loads(json.dumps(told.facts()))) == told


def test_distance_counts_doublings() -> None:
    here = key(M=512, N=512)
    assert here.distance(here) == 0
    assert here.distance(key(M=1024, N=512)) == here.distance(key(M=512, N=256)) == 1
    assert here.distance(key(M=1024, N=1024)) == pytest.approx(2**0.5)
    assert here.distance(key(M=0, N=512)) == here.distance(key(M=1, N=512)) == 9


def test_other_threads_and_other_sizes_are_further_away() -> None:
    here = key(M=512)
    assert here.distance(key(M=512, threads=2)) > here.distance(key(M=1000))
    assert here.distance(key(M=512, compiler="clang 14.0.0")) > here.distance(key(M=4096))
    assert here.distance(key()) > here.distance(key(M=4096))
    assert here.distance(key(), there=(("M", 600),)) < 1
    assert key().distance(here, here=(("M", 512),)) == 0
