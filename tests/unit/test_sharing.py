"""Which loop threads share: the outermost that is one, unless its iterations leave threads without work."""

from __future__ import annotations

import numpy as np
import pytest

import poly
from poly import f32
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.sharing import in_shares, parallel_loops, parallelized

N, C, H = poly.sizes("N C H")


@poly.nest
def rectified(x: f32[N, C, H], y: f32[N, C, H]):
    for n in range(N):
        for c in range(C):
            for h in range(H):
                y[n, c, h] = max(x[n, c, h], 0.0)


@poly.nest
def running(x: f32[N, C, H], y: f32[N, C, H]):
    for n in range(N):
        for c in range(1, C):
            for h in range(H):
                y[n, c, h] = y[n, c - 1, h] + x[n, c, h]


@pytest.mark.parametrize(
    ("nest", "sizes", "threads", "shared"),
    [
        (rectified, {"N": 1, "C": 64, "H": 4096}, 2, ("c",)),
        (rectified, {"N": 1, "C": 1, "H": 400_000}, 2, ("h",)),
        (rectified, {"N": 1, "C": 10, "H": 10}, 2, ()),
        (rectified, {"N": 1}, 2, ("c",)),
        (rectified, {}, 8, ("n",)),
        (rectified, {"N": 2, "C": 64, "H": 4096}, 2, ("n",)),
        (rectified, {"N": 2, "C": 64, "H": 4096}, 8, ("c",)),
        (rectified, {"N": 3, "C": 64, "H": 40_960}, 2, ("c",)),
        (rectified, {"N": 3, "C": 64, "H": 1024}, 2, ("n",)),
        (rectified, {"N": 64, "C": 64, "H": 4096}, 8, ("n",)),
        (running, {"N": 3, "C": 64, "H": 1_000_000}, 8, ("h",)),
        (running, {"N": 3, "C": 64, "H": 1000}, 8, ("n",)),
    ],
)
def test_the_loop_that_threads_share(
    nest: poly.Nest, sizes: dict[str, int], threads: int, shared: tuple[str, ...]
) -> None:
    assert parallel_loops(parallelized(poly.schedule(nest.with_sizes(sizes)), threads)) == shared


def test_each_thread_takes_a_share_of_an_inner_loop_through_all_iterations_around_it() -> None:
    order = Form.fixed((), poly.schedule(running.with_sizes({"N": 1, "C": 64, "H": 4096})))
    made = in_shares(order, 2)
    assert made is not None and parallel_loops(made.tried) == ("h_tile",)


def test_a_batch_of_one_among_threads() -> None:
    kernel = poly.compile(rectified, N=1, C=13, H=5001, threads=2, records=False)
    assert parallel_loops(kernel.schedule) == ("c",)
    x, y = (
        np.random.default_rng(0).standard_normal((1, 13, 5001), np.float32),
        np.full((1, 13, 5001), np.nan, np.float32),
    )
    kernel(x, y)
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_a_loop_whose_iterations_depend_on_one_is_parted_there() -> None:
    """Paths of negative length tell apart what is read before and behind the iteration that writes it."""
    nest = poly.parse(
        "def shortest(P: 'f64[241, 241]'):\n"
        "    for k in range(241):\n"
        "        for i in range(241):\n"
        "            for j in range(241):\n"
        "                P[i, j] = min(P[i, j], P[i, k] + P[k, j])\n"
    )
    made = parallelized(poly.schedule(nest), 2)
    assert len(parallel_loops(made)) == 2
    given = np.random.default_rng(0).uniform(-0.1, 1.0, (241, 241))
    expected, got = given.copy(), given.copy()
    poly.compile(nest, schedule=poly.schedule(nest), threads=1)(expected)
    poly.compile(nest, schedule=made, threads=2)(got)
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(got, expected)
