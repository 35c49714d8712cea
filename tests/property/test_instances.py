"""What the outer loops leave to the inner ones, against counting point by point."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import islpy as isl
from hypothesis import given, settings
from hypothesis import strategies as st

from poly.ir.instances import Instances
from poly.lowering.ctext import constants

Point = tuple[int, int]
Function = Callable[[int, int], int]

FUNCTIONS: dict[str, Function] = {
    "i": lambda i, j: i,
    "j": lambda i, j: j,
    "floor(i/2)": lambda i, j: i // 2,
    "floor(i/3)": lambda i, j: i // 3,
    "floor(j/4)": lambda i, j: j // 4,
    "i + j": lambda i, j: i + j,
    "-i": lambda i, j: -i,
    "floor((i + j)/3)": lambda i, j: (i + j) // 3,
    "7*i + j": lambda i, j: 7 * i + j,
}

CONSTRAINTS: dict[str, Callable[[int, int], bool]] = {
    "i >= 0": lambda i, j: True,
    "j <= i": lambda i, j: j <= i,
    "i + j <= 6": lambda i, j: i + j <= 6,
    "i mod 2 = 0": lambda i, j: i % 2 == 0,
}

names = st.sampled_from(sorted(FUNCTIONS))


def pw(text: str) -> isl.PwAff:
    return isl.PwAff(f"{{ S[i, j] -> [({text})] }}")


@st.composite
def domains(draw: st.DrawFn) -> tuple[isl.Set, list[Point]]:
    """A set of at most 64 points, and the points."""
    height, width = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    condition = draw(st.sampled_from(sorted(CONSTRAINTS)))
    points = [(i, j) for i in range(height) for j in range(width) if CONSTRAINTS[condition](i, j)]
    return isl.Set(f"{{ S[i, j] : 0 <= i < {height} and 0 <= j < {width} and {condition} }}"), points


def grouped(points: list[Point], loops: list[str]) -> dict[tuple[int, ...], list[Point]]:
    groups: dict[tuple[int, ...], list[Point]] = defaultdict(list)
    for point in points:
        groups[tuple(FUNCTIONS[loop](*point) for loop in loops)].append(point)
    return groups


def at(function: isl.PwAff, group: tuple[int, ...]) -> int:
    """The value of a function of groups at one of them."""
    point = isl.Point.zero(function.get_domain_space())
    for position, coordinate in enumerate(group):
        point = point.set_coordinate_val(isl.dim_type.set, position, isl.Val(coordinate))
    return int(function.eval(point).to_python())


@settings(max_examples=40)
@given(domains(), st.lists(names, max_size=2), names)
def test_least_greatest_and_count(domain: tuple[isl.Set, list[Point]], loops: list[str], function: str) -> None:
    points_set, points = domain
    instances = Instances("tile", points_set, tuple((f"l{at}", pw(loop)) for at, loop in enumerate(loops)))
    groups = grouped(points, loops)
    assert instances.domain.count_val().to_python() == len(groups)
    counts = []
    for group, members in groups.items():
        values = [FUNCTIONS[function](*point) for point in members]
        assert at(instances.low(pw(function)), group) == min(values)
        assert at(instances.high(pw(function)), group) == max(values)
        assert at(instances.count(pw(function)), group) == max(values) - min(values) + 1
        counts.append(max(values) - min(values) + 1)
    assert constants(instances.count(pw(function)), instances.domain) == set(counts)


@settings(max_examples=60)
@given(domains(), st.lists(names, max_size=2), st.lists(names, min_size=1, max_size=2))
def test_boxes(domain: tuple[isl.Set, list[Point]], loops: list[str], inner: list[str]) -> None:
    points_set, points = domain
    instances = Instances("tile", points_set, tuple((f"l{at}", pw(loop)) for at, loop in enumerate(loops)))
    expected = True
    for members in grouped(points, loops).values():
        seen = {tuple(FUNCTIONS[f](*point) for f in inner) for point in members}
        volume = 1
        for column in zip(*seen, strict=True):
            volume *= max(column) - min(column) + 1
        expected &= len(seen) == volume
    assert instances.is_box([pw(f) for f in inner]) == expected


def test_counts_of_tiles_at_the_edge_of_a_symbolic_size() -> None:
    points = isl.Set("[N] -> { S[i] : 0 <= i < N }")
    tiles = Instances("tile", points, (("t", isl.PwAff("[N] -> { S[i] -> [(floor(i/6))] }")),))
    count = tiles.count(isl.PwAff("[N] -> { S[i] -> [(i)] }"))
    expected = isl.PwAff("[N] -> { tile[t] -> [(6)] : 6t + 6 <= N; tile[t] -> [(N - 6t)] : 6t + 6 > N }")
    assert count.is_equal(expected.intersect_domain(tiles.domain)) or count.sub(expected).intersect_domain(
        tiles.domain
    ).is_equal(isl.PwAff("[N] -> { tile[t] -> [(0)] }").intersect_domain(tiles.domain))
    assert tiles.is_box([isl.PwAff("[N] -> { S[i] -> [(i)] }")])
