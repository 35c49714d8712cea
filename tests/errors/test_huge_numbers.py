"""Numbers of a user's that 64 bits cannot hold, or what is made of them: refused, or right."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import prod
from random import Random
from typing import Any, get_type_hints

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_nests import nests
from scratch_nests import of_nothing, three_dimensions, two_dimensions
from shared_nests import matmul

import poly
from poly import f64
from poly.analysis.bounds import check
from poly.analysis.overflow import MOST, largest_sizes
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.ir.tree import bands
from poly.lowering.lower import lower
from poly.machine.target import parse
from poly.schedules.steps import KINDS

M, N, T = poly.sizes("M N T")
HUGE = (2**31, 2**32, 2**47, 2**48, 2**61, 2**62, 2**63 - 1, 2**63, 2**64, 2**70, 10**30)
NUMBERS = (*HUGE, *(-number for number in HUGE))


@poly.nest
def copy(A: f64[M, N], B: f64[M, N]):
    for i in range(M):
        for j in range(N):
            B[i, j] = A[i, j]


@poly.nest
def wave(u: f64[T, N]):
    for t in range(1, T):
        for x in range(1, N - 1):
            u[t, x] = u[t - 1, x + 1] + u[t - 1, x - 1]


@poly.nest
def solve(L: f64[N, N], x: f64[N]):
    for i in range(N):
        for j in range(i):
            x[i] -= L[i, j] * x[j]


STEPS: dict[str, Callable[[poly.Schedule, int], poly.Schedule]] = {
    "shift": lambda s, n: s.shift("i", by=n),
    "skew": lambda s, n: s.skew("j", by="i", factor=n),
    "tile": lambda s, n: s.tile(i=n, j=n),
    "split": lambda s, n: s.split(i=n),
    "unroll": lambda s, n: s.unroll(i=n),
    "items": lambda s, n: s.items(i=n),
    "pad": lambda s, n: s.pack("A", at="i", pad=n),
    "reorder_storage": lambda s, n: s.reorder_storage("A", n - 1, 0),
    "buffers": lambda s, n: s.pack("A", at="i", buffers=n),
    "loops": lambda s, n: s.loops("abb", blocks={"b": n}),
    "baked": lambda s, n: s.loops(f"ab[,,,({n})]b"),
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_takes_no_huge_number(step: str, number: int) -> None:
    """From Python, and from the text of a schedule."""
    with pytest.raises(poly.ScheduleError):
        STEPS[step](poly.schedule(copy), number)
    text = STEPS[step](poly.schedule(copy), 2).to_json()
    calls = json.loads(text)
    for call in calls:
        call["kwargs"] = {key: number if value == 2 else value for key, value in call["kwargs"].items()}
    if json.dumps(calls) != text:
        with pytest.raises(poly.ScheduleError):
            poly.Schedule.from_json(copy, json.dumps(calls))


@pytest.mark.parametrize("step", ["part", "rfactor", "split_iterator"])
@pytest.mark.parametrize("number", NUMBERS)
def test_no_block_has_a_huge_size(step: str, number: int) -> None:
    with pytest.raises(poly.ScheduleError, match=r"the block size of (loop )?i must be an integer from 1"):
        getattr(poly.schedule(solve), step)("S0", i=number)


def test_every_number_of_every_step_is_asked_for_in_one_place() -> None:
    """Each field of a step that holds integers refuses 2**40, whatever the step is."""
    taken = {call["step"] for make in STEPS.values() for call in json.loads(make(poly.schedule(copy), 2).to_json())}
    hints = {kind.name: str(get_type_hints(kind)) for kind in KINDS}
    numeric = {name for name, told in hints.items() if re.search(r"\bint\b", told)}
    assert numeric <= taken | {"part", "rfactor", "split_iterator"}, "a step that takes numbers has no test here"


LARGE = st.sampled_from([1, 2, 3, 1000, 2**20, 2**30, 2**31 - 1])


@st.composite
def schedules(draw: st.DrawFn) -> poly.Schedule:
    """Schedules of small and of open sizes with the largest numbers that steps take."""
    nest = draw(st.sampled_from([copy, wave]))
    made = poly.schedule(nest if draw(st.booleans()) else nest.with_sizes(dict.fromkeys(nest.sizes, 6)))
    first, second = ("i", "j") if nest is copy else ("t", "x")
    for _ in range(draw(st.integers(1, 4))):
        number, sign = draw(LARGE), draw(st.sampled_from([1, -1]))
        loop, other = draw(st.permutations([first, second]))
        step = draw(st.sampled_from(["shift", "skew", "split", "tile", "reverse", "unroll"]))
        try:
            match step:
                case "shift":
                    made = made.shift(loop, by=sign * number)
                case "skew":
                    made = made.skew(loop, by=other, factor=sign * number)
                case "split":
                    made = made.split(**{loop: number})
                case "tile":
                    made = made.tile(**{first: number, second: draw(LARGE)})
                case "reverse":
                    made = made.reverse(loop)
                case "unroll":
                    made = made.unroll(**{loop: min(number, 8)})
        except poly.ScheduleError:
            continue
    return made


@given(schedules())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.slow
def test_what_is_accepted_is_right(made: poly.Schedule) -> None:
    """A kernel with the largest factors is refused, or it computes what the loops do."""
    try:
        kernel = poly.compile(made.nest, schedule=made, threads=1)
    except poly.ScheduleError as error:
        assert "2**62 is the most" in str(error) or "bytes or more" in str(error)
        return
    random = np.random.default_rng(0)
    got = [random.random((6, 6)) for _ in made.nest.arguments]
    wanted = [array.copy() for array in got]
    kernel(*got)
    {"copy": copy, "wave": wave}[made.nest.name].reference(*wanted)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_factors_that_multiply_are_refused_together() -> None:
    """Each is allowed; of what they make together, no loop could count it."""
    made = poly.schedule(copy)
    for _ in range(2):
        made = made.skew("j", by="i", factor=2**31 - 1).skew("i", by="j", factor=2**31 - 1)
    with pytest.raises(poly.ScheduleError, match=r"of copy would count up to \d+.*Remedy: smaller factors"):
        poly.compile(copy, schedule=made, M=6, N=6)


@pytest.mark.parametrize("sizes", [{}, {"M": 5, "N": 5}])
def test_a_copy_beyond_all_memory_is_refused(sizes: dict[str, int]) -> None:
    made = poly.schedule(copy).tile(i=2**31 - 1, j=2**31 - 1).pack("A", at="j_tile")
    try:
        kernel = poly.compile(copy, schedule=made, **sizes)
    except poly.ScheduleError as error:
        assert "A_box would take" in str(error)
        return
    A, B = np.random.default_rng(0).random((5, 5)), np.zeros((5, 5))
    kernel(A, B)
    np.testing.assert_array_equal(A, B)


def small(text: str, **names: Any) -> Nest:
    known = {"N": N, "f64": f64, "range": range, **names}
    return check(parse_text(Source(f"def small(x: f64[N], y: f64[N]):\n{text}", "small", 1), known))


PLACES = {
    "index": "    for i in range(N):\n        x[i + {b} - {b}] = x[i]\n",
    "index alone": "    for i in range(N):\n        x[i + {b}] = 1.0\n",
    "factor of an index": "    for i in range(N):\n        x[i] = y[{b} * i - {b} * i + i]\n",
    "bounds": "    for i in range({b}, N + {b}):\n        x[i - {b}] = 1.0\n",
    "end": "    for i in range({b}):\n        x[0] = 1.0\n",
    "step": "    for i in range(0, N, {b}):\n        x[i] = 1.0\n",
    "step down": "    for i in range(N - 1, -1, -{b}):\n        x[i] = 1.0\n",
    "condition": "    for i in range(N):\n        if {b} * i < N:\n            x[i] = 1.0\n",
    "divisor": "    for i in range(N):\n        if i // {b} == 0 and i % {b} < 3:\n            x[i] = 1.0\n",
    "several": "    for i in range(N):\n        if {b} * i + {b} * N > {b} and i - {b} < 0:\n            x[i] = 1.0\n",
    "extent": "    t: f64[{b}]\n    t[0] = x[0]\n    y[0] = t[0]\n",
}


@pytest.mark.parametrize("number", [2**30, 2**46, 2**48, 2**48 + 1, 2**62, 2**63, 2**70, 10**5000], ids=hex)
@pytest.mark.parametrize("place", PLACES)
def test_an_integer_in_a_nest_is_refused_or_right(place: str, number: int) -> None:
    try:
        nest = small(PLACES[place].format(b="b"), b=number)
        program = lower(nest, poly.schedule(nest).tree, parse("c").isa)
    except (poly.SpecError, poly.ScheduleError) as error:
        assert number > 2**20 and len(str(error)) < 1000
        return
    assert program.name == "small"
    if place in ("end", "extent"):
        return  # it would run too long, or take too much memory
    kernel = poly.compile(nest, threads=1)
    x, y = np.zeros(7), np.arange(7.0)
    u, v = x.copy(), y.copy()
    kernel(x, y)
    poly.function._callable(nest).reference(u, v)
    np.testing.assert_array_equal(x, u)
    np.testing.assert_array_equal(y, v)


@pytest.mark.parametrize("value", [2**48 + 1, 2**62, 2**63, 2**70])
@pytest.mark.slow
def test_a_huge_size_is_refused(value: int) -> None:
    for make in (poly.compile, poly.space, lambda nest, **sizes: nest.with_sizes(sizes)):
        with pytest.raises(poly.SpecError, match=r"the size M of copy must be an integer up to 2\*\*48"):
            make(copy, M=value)

    @poly.nest
    def repeated(x: f64[1]):
        for _t in range(T):
            x[0] += 1.0

    with pytest.raises(poly.ArgumentError, match=r"T must be .*2\*\*48"):
        poly.compile(repeated)(np.zeros(1), T=value)


def test_arrays_beyond_all_memory_are_refused() -> None:
    with pytest.raises(poly.SpecError, match=r"A: f64\[2147483648, 1073741824\] of copy takes \d+ bytes or more"):
        poly.compile(copy, M=2**31, N=2**30)


def test_the_largest_sizes_are_those_of_the_largest_arrays() -> None:
    """2**48 bytes are 2**45 elements; an extent is as large as what stands beside it allows."""
    assert largest_sizes(copy) == {"M": (0, 2**45), "N": (0, 2**45)}
    assert largest_sizes(copy.with_sizes({"N": 2**20})) == {"M": (0, 2**25)}
    assert largest_sizes(wave)["T"] == (0, 2**45)


@given(nests(), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_usual_nest_is_refused(nest: Nest, seed: int) -> None:
    """The largest sizes leave room for whatever small factors make of them."""
    try:
        safe = check(nest)
    except poly.SpecError:
        return
    made, random = poly.schedule(safe), Random(seed)
    for band in bands(made.tree):
        made = made.split(**{band.name: random.choice([3, 64, 1000])})
    lower(made.nest, made.tree, parse("c:portable").isa)
    assert MOST > 2**61


SCRATCH = {"MN": two_dimensions, "TMN": three_dimensions}


@pytest.mark.parametrize("extents", SCRATCH)
@given(bits=st.tuples(*[st.integers(0, 48)] * 3), more=st.integers(-1, 1))
def test_a_workspace_is_as_large_as_its_arrays(extents: str, bits: tuple[int, ...], more: int) -> None:
    """However large these are; more bytes than memory has, where 64 bits don't hold the number."""
    nest = SCRATCH[extents]
    kernel = poly.compile(nest, schedule=poly.schedule(nest), threads=1)  # loops as written keep all values
    sizes = {size: min(2**number + more, 2**48) for size, number in zip(extents, bits, strict=False)}
    exact = prod(sizes.values(), start=8)
    found = kernel.workspace(**sizes)
    assert found >= min(exact, 2**61)
    assert found < exact + 64 or exact > 2**61


@given(bits=st.tuples(*[st.integers(0, 46)] * 3), threads=st.integers(1, 256))
def test_larger_operands_never_have_smaller_panels(bits: tuple[int, ...], threads: int) -> None:
    kernel = poly.compile(matmul, threads=4)
    small = dict(zip("MNK", (2**number for number in bits), strict=True))
    larger = ({**small, size: 4 * extent} for size, extent in small.items())
    found = kernel.workspace(threads, **small)
    assert 0 <= found <= min(kernel.workspace(threads, **sizes) for sizes in larger)


def test_a_call_whose_scratch_no_memory_holds_is_refused() -> None:
    """Its arrays have no elements, so that they are as long as one likes."""
    kernel = poly.compile(of_nothing, threads=1)
    for m, n in ((2**32, 2**32), (2**31, 2**30), (2**48, 2**13)):
        y = np.full(4, 7.0)
        with pytest.raises(poly.ArgumentError, match="more memory besides its arrays than there is"):
            kernel(np.empty((m, 0)), np.empty((n, 0)), y)
        assert (y == 7).all()
