"""The sizes at which a header tests itself."""

from __future__ import annotations

from math import prod

import classic_nests
import pytest
from header_nests import wide
from shared_nests import matmul

import poly
from codegen.package import SelfTestSizes
from poly.analysis.bounds import check
from poly.embed.trials import FLOPS, LIMIT, LONG, trials


def values(found: tuple[SelfTestSizes, ...]) -> list[tuple[int, ...]]:
    return [tuple(value for _, value in trial.sizes) for trial in found]


def test_products() -> None:
    found = trials(matmul, [])
    sizes = values(found)
    assert [name for name, _ in found[0].sizes] == list(matmul.sizes)
    assert sizes[0] == (1, 1, 1)
    assert sorted(max(s) for s in sizes if 0 in s) == [7, 7, 7]
    assert sorted(s.index(LONG) for s in sizes if LONG in s) == [0, 1, 2]
    assert len([s for s in sizes if max(s) <= LIMIT]) >= 40
    assert len(set(sizes)) == len(sizes)
    assert found == trials(matmul, [])


def test_flops_are_counted_where_a_trial_is_timed() -> None:
    *small, last = trials(matmul, [])
    assert {trial.flops for trial in small} == {0}
    assert last.flops == 2 * prod(value for _, value in last.sizes) == FLOPS


def test_length_is_that_of_the_sum() -> None:
    for trial in trials(wide, []):
        depth = dict(trial.sizes)["K"]
        assert depth <= trial.length <= depth + 1 or trial.length == 1


def test_special_sizes_and_their_neighbours() -> None:
    special = {"M": 8, "K": 16, "N": 24}
    found = trials(matmul, [special])
    assert found[-2].sizes == tuple((name, special[name]) for name in matmul.sizes)
    assert found[-2].flops == 2 * 8 * 16 * 24
    own = [special[name] for name in matmul.sizes]
    for at in range(3):
        assert tuple(value + (at == place) for place, value in enumerate(own)) in values(found)


def test_fixed_sizes_have_one_trial() -> None:
    (only,) = trials(matmul.with_sizes({"M": 4, "K": 5, "N": 6}), [])
    assert only == SelfTestSizes((), 240, 5)


@pytest.mark.parametrize(
    "nest", [n for n in vars(classic_nests).values() if isinstance(n, poly.Nest)], ids=lambda n: n.name
)
def test_every_array_can_be_made(nest: poly.Nest) -> None:
    """No extent is negative, whatever the sizes."""
    found = trials(check(nest), [])
    assert len(found) >= 30
    for trial in found:
        assert all(extent.evaluate(dict(trial.sizes)) >= 0 for array in nest.arrays for extent in array.shape)


def test_a_window_is_small() -> None:
    P, R, C = poly.sizes("P R C")

    @poly.nest
    def smooth(x: poly.f32[C, P + R - 1], w: poly.f32[C, R], y: poly.f32[P]):
        for p in range(P):
            for c in range(C):
                for r in range(R):
                    y[p] += x[c, p + r] * w[c, r]

    usual = dict(trials(smooth, [])[-1].sizes)
    assert usual["R"] == 3
    assert usual["P"] == usual["C"] > 100
