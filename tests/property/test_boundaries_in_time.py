"""Time steps with boundaries, which have fewer loops than the points inside, are tiled over time like those without."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from microkernels.isa import host
from poly.autoschedule.default import usual_loops
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.time_tiles import time_tiles
from poly.model import Caches
from poly.model.core import Target
from poly.schedules.schedule import Schedule

TOP = ["for j in range({m}):", "    B[0, j] = f[t]"]
BOTTOM = ["for j in range({m}):", "    B[{n} - 1, j] = 0.5 * f[t]"]
LEFT = ["for i in range({n}):", "    B[i, 0] = f[t]"]
POINTS = [
    "for i in range(1, {n} - 1):",
    "    for j in range(1, {m} - 1):",
    "        {0}[i, j] = 0.25 * ({1}[i - 1, j] + {1}[i, j - 1] + {1}[i, j] + {1}[i + 1, j + 1])",
]
BOUNDARIES = {"top": TOP, "bottom": BOTTOM, "left": LEFT, "all": [*TOP, *BOTTOM, *LEFT]}


def nest(boundary: str, n: int, m: int, steps: int) -> poly.Nest:
    """Steps of a stencil in two arrays, with values that change in time on some sides of one."""

    def written(lines: list[str], *arrays: str) -> list[str]:
        return [" " * 8 + line.format(*arrays, n=n, m=m) for line in lines]

    head = f"def steps(f: 'f64[{max(steps, 1)}]', A: 'f64[{n}, {m}]', B: 'f64[{n}, {m}]'):"
    body = [*written(BOUNDARIES[boundary]), *written(POINTS, "B", "A"), *written(POINTS, "A", "B")]
    return poly.parse("\n".join([head, f"    for t in range({steps}):", *body]))


def tiled(made: poly.Nest, threads: int) -> Schedule:
    """The default for caches that hold some rows of the arrays."""
    return usual_loops(made, Target.nominal(host(), Caches(1 << 10, 16 << 10, 32 << 10), threads)).tried


def check(made: poly.Nest, schedule: Schedule, threads: int) -> None:
    random = np.random.default_rng(8)
    given_arrays = [random.random([e.constant for e in array.shape]) for array in made.arguments]
    expected, got = ([array.copy() for array in given_arrays] for _ in range(2))
    made.reference(*expected)
    poly.compile(made, schedule=schedule, threads=threads)(*got)
    for want, have in zip(expected, got, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12)


@given(
    st.sampled_from(sorted(BOUNDARIES)), st.integers(1, 23), st.integers(1, 19), st.integers(0, 11), st.integers(1, 2)
)
@settings(max_examples=8, deadline=None)
def test_results_at_any_size(boundary: str, n: int, m: int, steps: int, threads: int) -> None:
    made = nest(boundary, n, m, steps)
    check(made, tiled(made, threads), threads)


@pytest.mark.parametrize("boundary", sorted(BOUNDARIES))
def test_boundaries_are_in_the_tiles(boundary: str) -> None:
    made = nest(boundary, 70, 90, 40)
    schedule = tiled(made, 1)
    text = str(schedule).splitlines()
    assert text[0].startswith("for t_tile in range"), schedule
    assert sum("for t in" in line for line in text) == 1, schedule
    check(made, schedule, 1)
    roomy = Caches(1 << 18, 1 << 20, 1 << 25)
    assert "t_tile" not in str(usual_loops(made, Target.nominal(host(), roomy, 1)).tried)


def test_every_way_of_tiling_takes_boundaries() -> None:
    made = nest("all", 20, 140, 9)
    target = Target.nominal(host(), Caches(1 << 10, 16 << 10, 32 << 10), 2)
    forms = {dict(one.traits)["time tiles"]: one for one in time_tiles(Form.fixed((), poly.schedule(made)), target)}
    ways = ("one row", "rows", "all", "rows, diagonals shared", "all, diagonals shared")
    assert forms.keys() == set(ways)
    for way in ways[1:]:
        check(made, forms[way].tried, 2)


def test_scalars_of_a_step_stay_outside() -> None:
    """A statement without any loop has no element that tells where it belongs."""
    made = poly.parse(
        "def steps(s: 'f64[1]', A: 'f64[90, 90]'):\n"
        "    for t in range(9):\n"
        "        s[0] = 0.5 * s[0]\n"
        "        for i in range(90):\n"
        "            for j in range(90):\n"
        "                A[i, j] += s[0]\n"
    )
    schedule = tiled(made, 1)
    assert "t_tile" not in str(schedule)
    check(made, schedule, 1)
