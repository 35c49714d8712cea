"""Time tiles whose diagonals threads share: legal for any stencil, the same results as the loops as written."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_nests import heat_3d, jacobi_2d
from machines import HOST, LARGE, TINY

import poly
from poly.analysis.legality import illegal_mark, violations
from poly.autoschedule.default import default_schedule
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.sharing import parallel_loops
from poly.autoschedule.rules.time_tiles import usual_time_tiles
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.reference import reference
from poly.model.core import Target
from poly.model.schedules import ScheduleModel

Offsets = list[tuple[int, int]]
NEAR = st.lists(st.sampled_from(list(product((-2, -1, 0, 1, 2), repeat=2))), min_size=1, max_size=4, unique=True)
T, N, M = poly.sizes("T N M")
KNOWN = {"f64": poly.f64, "T": T, "N": N, "M": M}


def stencil(first: Offsets, second: Offsets, edge: int) -> poly.Nest:
    """A time loop over two sweeps, the first of which leaves a border that is `edge` wider."""

    def sweep(target: str, source: str, near: Offsets, border: int) -> list[str]:
        value = " + ".join(f"0.{n}*{source}[i + ({a}), j + ({b})]" for n, (a, b) in enumerate(near, 1))
        return [
            f"    for i in range({border}, N - {border}):",
            f"      for j in range({border}, M - {border}):",
            f"        {target}[i, j] = {value}",
        ]

    lines = [*sweep("B", "A", first, 2 + edge), *sweep("A", "B", second, 2)]
    return parse_text(
        Source("\n".join(["def swept(A: f64[N, M], B: f64[N, M]):", "  for t in range(T):", *lines]), "swept.py", 1),
        KNOWN,
    )


def tiled(nest: poly.Nest) -> poly.Schedule:
    """The usual time tiles that threads share, on a machine with caches of a few rows."""
    form, target = Form.fixed((), poly.schedule(nest)), Target.nominal(HOST, TINY, 2)
    return usual_time_tiles(form, target, lambda tiled: tiled, shared=True).tried


@settings(deadline=None, max_examples=12)
@given(NEAR, NEAR, st.integers(0, 1), st.sampled_from([(5, 33, 17), (9, 35, 20), (17, 49, 37)]))
def test_any_stencil_gives_the_results_of_its_loops(
    first: Offsets, second: Offsets, edge: int, sizes: tuple[int, int, int]
) -> None:
    nest = stencil(first, second, edge).with_sizes(dict(zip("TNM", sizes, strict=True)))
    made = tiled(nest)
    assert "i_tile" in parallel_loops(made)
    assert not violations(nest, made.tree) and not illegal_mark(nest, made.tree)
    expected = [np.random.default_rng(seed).random(sizes[1:]) for seed in range(2)]
    got = [array.copy() for array in expected]
    reference(nest, tuple(expected))
    poly.compile(nest, schedule=made, threads=2)(*got)
    for want, have in zip(expected, got, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12)


@settings(deadline=None, max_examples=8)
@given(NEAR, st.sampled_from([(5, 33, 21), (9, 35, 24), (17, 49, 37)]))
def test_sweeps_in_place_give_the_results_of_their_loops(near: Offsets, sizes: tuple[int, int, int]) -> None:
    """Rows are longer than those that gcc 12 unrolls completely, and then mixes with the rows before."""
    value = " + ".join(f"0.{n}*A[i + ({a}), j + ({b})]" for n, (a, b) in enumerate(near, 1))
    rows = ["  for t in range(T):", "    for i in range(2, N - 2):", "      for j in range(2, M - 2):"]
    text = "\n".join(["def swept(A: f64[N, M]):", *rows, f"        A[i, j] = {value}"])
    nest = parse_text(Source(text, "swept.py", 1), KNOWN).with_sizes(dict(zip("TNM", sizes, strict=True)))
    made = tiled(nest)
    assert not violations(nest, made.tree) and not illegal_mark(nest, made.tree)
    expected = np.random.default_rng(1).random(sizes[1:])
    got = expected.copy()
    reference(nest, (expected,))
    poly.compile(nest, schedule=made, threads=2)(got)
    np.testing.assert_allclose(got, expected, rtol=1e-11)


def test_the_method_of_gauss_and_seidel_runs_on_threads() -> None:
    nest = poly.parse(
        "def seidel(A: 'f64[2000, 2000]'):\n"
        "    for t in range(100):\n"
        "        for i in range(1, 1999):\n"
        "            for j in range(1, 1999):\n"
        "                A[i, j] = 0.25 * (A[i - 1, j + 1] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j - 1])\n"
    )
    assert parallel_loops(default_schedule(nest, Target.nominal(HOST, LARGE, 2))) == ("i_tile",)
    assert "t_tile" not in str(default_schedule(nest, Target.nominal(HOST, LARGE, 1)))


def test_tiles_beside_one_another_are_not_shared() -> None:
    nest = jacobi_2d.with_sizes({"T": 40, "N": 100})
    steps = tiled(nest).steps
    tiles = next(number for number, step in enumerate(steps, 1) if step.name == "tile")
    assert [step.name for step in steps[tiles : tiles + 2]] == ["skew", "parallel"]
    with pytest.raises(poly.ScheduleError, match=r"(?s)parallel\(i_tile\) is illegal.*must run before"):
        poly.schedule(nest).apply(steps[:tiles]).parallel("i_tile")


def test_open_sizes_keep_the_loops_in_time() -> None:
    assert parallel_loops(tiled(jacobi_2d)) == ()


def test_several_threads_get_diagonals_and_one_thread_none() -> None:
    nest = heat_3d.with_sizes({"T": 100, "N": 120})
    assert parallel_loops(default_schedule(nest, Target.nominal(HOST, LARGE, 2))) == ("i_tile",)
    assert parallel_loops(default_schedule(nest, Target.nominal(HOST, LARGE, 1))) == ()


def test_the_model_counts_diagonals() -> None:
    nest = jacobi_2d.with_sizes({"T": 64, "N": 514})
    made = poly.schedule(nest).apply(tiled(nest).steps)
    tile = dict(next(step for step in made.steps if step.name == "tile").arguments()[1])
    steps, rows = tile["_t"], tile["i"]
    ran = {t // steps + (i + 2 * t + s) // rows for t in range(64) for s in (0, 1) for i in range(1, 513)}
    model = ScheduleModel(made, {}, Target.nominal(HOST, LARGE, 2)).form({})
    for one in model.computed:
        assert abs(one.starts - len(ran)) <= 2
        tiles = {(t // steps, (i + 2 * t) // rows) for t in range(64) for i in range(1, 513)}
        assert sum(one.shared) / len(one.shared) == pytest.approx(len(tiles) / len(ran), rel=0.25)
