"""`poly bench loops`: what its loops compute by other means, and the data they get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pytest

from benchmarks.arrays import random
from benchmarks.case import Case
from benchmarks.problems.program import Program
from benchmarks.programs.loops import LOOPS, SCALARS
from benchmarks.runner import relative_error
from poly import f64, i32


@cache
def mini(name: str) -> Case:
    return next(loop.case("mini") for loop in LOOPS if loop.name == name)


def program(case: Case) -> Program:
    assert isinstance(case.problem, Program)
    return case.problem


def arguments(made: Program) -> dict[str, Any]:
    names = (array.name for array in made.fixed().arguments)
    return dict(zip(names, made.arrays(f64), strict=True))


def sized(name: str, sizes: Mapping[str, int]) -> Program:
    return replace(program(mini(name)), sizes=sizes)


def run(name: str, sizes: Mapping[str, int], **given: Any) -> dict[str, Any]:
    """What a loop writes, from given arrays and the case's own, in C that keeps the order."""
    made = sized(name, sizes)
    arrays = arguments(made)
    for array, values in given.items():
        arrays[array][...] = values
    results = made.expected(tuple(arrays.values()))
    return dict(zip((list(arrays)[n] for n in made.written), results, strict=True))


def test_every_loop_has_a_case() -> None:
    names = {loop.name for loop in LOOPS}
    assert len(names) == len(LOOPS) > 60
    assert {mini(name).dtype for name in names} == {f64, i32}


def transformed(x: Any, radix: int) -> Any:
    """A transform by passes: each has a `radix`-th of the groups of the one before, of so many times the members."""
    groups, members = len(x) // radix, 1
    while groups >= 1:
        turns = np.exp(-2j * np.pi * np.outer(np.arange(1, radix), np.arange(groups)) / (radix * groups))
        x = one_pass(x.reshape(radix, groups, members), turns).ravel()
        groups, members = groups // radix, members * radix
    return x


def one_pass(x: Any, turns: Any) -> Any:
    radix, groups, members = x.shape
    w = turns if radix == 4 else turns[0]
    parts = {"xr": x.real, "xi": x.imag, "wr": w.real, "wi": w.imag}
    made = run(f"fft-radix-{radix}", {"L": groups, "M": members}, **parts)
    return made["yr"] + 1j * made["yi"]


@pytest.mark.parametrize(("radix", "points"), [(2, 8), (4, 16)])
def test_passes_make_a_fourier_transform(radix: int, points: int) -> None:
    x = random((points,), f64, 0) + 1j * random((points,), f64, 1)
    assert relative_error(np.abs(transformed(x, radix) - np.fft.fft(x)), np.zeros(points)) < 1e-14


def test_a_pass_on_interleaved_numbers_is_that_on_two_arrays() -> None:
    x = random((2, 3, 5), f64, 0) + 1j * random((2, 3, 5), f64, 1)
    turns = np.exp(-1j * np.arange(3.0))
    made = run("fft-interleaved", {"L": 3, "M": 5}, x=x.view(np.float64).reshape(2, 3, 5, 2), w=pairs(turns))
    assert np.array_equal(made["y"], pairs(one_pass(x, turns[None])))


def pairs(values: Any) -> Any:
    return np.stack([values.real, values.imag], -1)


AXES = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
PLANE = [(0, 1, 1), (0, 1, -1)]
SPACE = [*PLANE[:1], (0, -1, 1), (1, 0, 1), (-1, 0, 1), (1, 1, 0), (-1, 1, 0)]


def with_opposites(*velocities: tuple[int, ...]) -> list[Any]:
    return [sign * np.array(v) for v in velocities for sign in (1, -1)]


def velocities(name: str) -> list[Any]:
    """Steps along z, y and x for each population, in their order."""
    if name == "lbm-d3q19":
        return [np.zeros(3, int), *with_opposites(*AXES, *SPACE)]
    east, west, north, south = with_opposites(*AXES[:2])
    ahead, behind, left, right = with_opposites(*PLANE)
    return [np.zeros(3, int), east, north, west, south, ahead, left, behind, right]


@pytest.mark.parametrize(
    ("name", "sizes", "weights"),
    [
        ("lbm-d2q9", {"H": 4, "W": 5}, (4 / 9, 1 / 9, 1 / 36)),
        ("lbm-d3q19", {"D": 3, "H": 4, "W": 5}, (1 / 3, 1 / 18, 1 / 36)),
    ],
)
def test_lattice_boltzmann_streams_and_relaxes_to_equilibrium(
    name: str, sizes: dict[str, int], weights: tuple[float, ...]
) -> None:
    F = arguments(sized(name, sizes))["F"]
    c = velocities(name)
    inside = (slice(1, -1),) * len(sizes)
    f = np.array([np.roll(one, v[-one.ndim :], range(one.ndim))[inside] for one, v in zip(F, c, strict=True)])
    rho = f.sum(0)
    u = np.einsum("qd,q...->d...", c, f) / rho
    along = np.einsum("qd,d...->q...", c, u)
    w = np.array([weights[np.abs(v).sum()] for v in c]).reshape(-1, *(1,) * rho.ndim)
    equilibrium = w * rho * (1 + 3 * along + 4.5 * along**2 - 1.5 * (u**2).sum(0))
    expected = f + SCALARS["omega"] * (equilibrium - f)
    assert np.allclose(run(name, sizes)["G"][:, *inside], expected, rtol=1e-13, atol=0)


def sequences(name: str) -> tuple[Any, Any, Any]:
    """Two sequences, and the loop's table of scores for their beginnings."""
    known = arguments(program(mini(name)))
    return known["a"], known["b"], run(name, mini(name).sizes)["S"]


@pytest.mark.parametrize(("name", "opened", "extended"), [("smith-waterman", 2, 2), ("gotoh", 4, 1)])
def test_the_best_local_alignments_have_gaps_of_any_length(name: str, opened: int, extended: int) -> None:
    a, b, found = sequences(name)
    S = np.zeros_like(found)
    for i, j in np.ndindex(len(a), len(b)):
        gaps = [S[i - k, j + 1] - opened - extended * k for k in range(i + 1)]
        gaps += [S[i + 1, j - k] - opened - extended * k for k in range(j + 1)]
        S[i + 1, j + 1] = max(0, S[i, j] + (3 if a[i] == b[j] else -2), *gaps)
    assert np.array_equal(found, S) and S.max() > 10


def test_the_distance_of_two_sequences_is_the_least_number_of_edits() -> None:
    a, b, found = sequences("edit-distance")

    @lru_cache(None)
    def edits(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        return min(edits(i - 1, j) + 1, edits(i, j - 1) + 1, edits(i - 1, j - 1) + int(a[i - 1] != b[j - 1]))

    assert found[-1, -1] == edits(len(a), len(b))


def test_softmax_by_numpy() -> None:
    known = arguments(program(mini("softmax")))
    weights = np.exp(known["X"])
    expected = weights / weights.sum(1, keepdims=True)
    assert np.allclose(run("softmax", mini("softmax").sizes)["Y"], expected, rtol=1e-14)


RECURRENCES = ("livermore-5", "livermore-6", "livermore-19", "tsvc-s118", "tsvc-s312", "tsvc-s321", "tsvc-s322")


@pytest.mark.parametrize("name", RECURRENCES)
def test_recurrences_neither_grow_nor_vanish(name: str) -> None:
    (case,) = (loop.case("medium") for loop in LOOPS if loop.name == name)
    for result in case.problem.expected(case.arrays()):
        size = np.abs(result)
        assert np.median(size) > 1e-3 and size.max() < 10
