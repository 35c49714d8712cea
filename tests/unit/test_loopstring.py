"""PARLOOPER's loop strings: what is visited, in which order, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import run_order

import poly
from poly import f64
from poly.errors import ScheduleError
from poly.ir.tree import bands
from poly.schedules.loopstring import Letter, parse
from poly.schedules.schedule import schedule

SIZES = {"a": 4, "b": 12, "c": 8}


@poly.nest
def gemm(A: f64[12, 4], B: f64[4, 8], C: f64[12, 8]):
    for k in range(4):
        for m in range(12):
            for n in range(8):
                C[m, n] += A[m, k] * B[k, n]


def reference(letters: str, blocks: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """The points that PARLOOPER's nest visits: occurrence j of a letter steps by its j-th block size."""
    if not letters:
        yield ()
        return
    seen: dict[str, int] = {}
    levels = []
    for letter in letters:
        occurrence = seen.get(letter, 0)
        seen[letter] = occurrence + 1
        step = (*blocks.get(letter, ()), 1)[occurrence]
        extent = SIZES[letter] if occurrence == 0 else blocks[letter][occurrence - 1]
        levels.append([(letter, start) for start in range(0, extent, step)])
    for choice in product(*levels):
        point = dict.fromkeys(SIZES, 0)
        for letter, start in choice:
            point[letter] += start
        yield tuple(point.values())


def visited(text: str, blocks: Mapping[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
    made = schedule(gemm).loops(text, blocks=blocks)
    return [instance.point for instance in run_order(gemm, made.tree)]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("bcabcb", {"b": (6, 3), "c": (4,)}),
        ("bcaBCb", {"b": (6, 3), "c": (4,)}),
        ("bC@schedule(dynamic,1)", {}),
        ("aBCb@schedule(dynamic,1)", {"b": (4,)}),
        ("bc|aBCb", {"b": (6, 2), "c": (2,)}),
        ("|aBC", {}),
        ("aBc", {}),
        ("aB[,,,(6,3)]Cbb", {}),
    ],
)
def test_each_point_is_visited_once_and_in_parloopers_order(text, blocks):
    letters = [level.letter for level in parse(text)]
    inner = [letter for letter in "abc" if letter not in letters]
    baked = {level.letter: level.blocks for level in parse(text) if level.blocks}
    expected = list(reference("".join([*letters, *inner]), {**blocks, **baked}))
    assert visited(text, blocks) == expected
    assert sorted(expected) == sorted(product(range(4), range(12), range(8)))


@settings(max_examples=25)
@given(st.data())
def test_random_strings_of_lower_case_letters(data):
    divisors = {"a": [4, 2, 1], "b": [12, 6, 3, 1], "c": [8, 4, 2, 1]}
    counts = {letter: data.draw(st.integers(1, 3)) for letter in SIZES}
    blocks = {}
    for letter, count in counts.items():
        chosen = data.draw(st.lists(st.sampled_from(divisors[letter]), min_size=count - 1, max_size=count - 1))
        blocks[letter] = tuple(sorted(chosen, reverse=True))
    letters = "".join(data.draw(st.permutations("".join(letter * count for letter, count in counts.items()))))
    assert visited(letters, {letter: sizes for letter, sizes in blocks.items() if sizes}) == list(
        reference(letters, blocks)
    )


def test_capitals_are_parallel():
    made = schedule(gemm).loops("bcaBCb", blocks={"b": (6, 3), "c": 4})
    assert [band.name for band in bands(made.tree)] == ["m_tile", "n_tile", "k", "m_tile2", "n", "m"]
    assert [band.name for band in bands(made.tree) if band.parallel] == ["m_tile2", "n"]
    assert repr(made) == (
        "schedule(gemm).split(m=6).split(m=3).split(n=4)"
        ".order('m_tile n_tile k m_tile2 n m').parallel('m_tile2').parallel('n')"
    )


def test_the_grammar_is_read_in_full():
    levels = parse("bC{R:16}a[0,64,2,(32,8)]|cb@schedule(static)")
    assert levels[1] == Letter("c", True, "{R:16}", ("", "", ""), (), False)
    assert levels[2] == Letter("a", False, "", ("0", "64", "2"), (32, 8), True)


@pytest.mark.parametrize(
    ("text", "blocks", "message"),
    [
        ("b?c", {}, "loops('b?c'): a letter was expected at '?c'."),
        ("", {}, "loops(''): there is no letter."),
        ("abd", {}, "loops('abd'): there is no loop d. Loops: a = k, b = m, c = n."),
        (
            "abcb",
            {},
            "loops('abcb'): b comes 2 times, so it needs 1 block size, not [].\nGive them as blocks={'b': (…,)}.",
        ),
        ("abc", {"b": 4}, "loops('abc'): b comes 1 time, so it needs no block size, not [4]."),
        ("abcbb", {"b": (6, 4)}, "loops('abcbb'): of the blocks of b, 6 is no multiple of 4."),
        ("ac", {"b": 4}, "loops('ac'): blocks are given for b, which is not in the string."),
        (
            "aBc@collapse(2)",
            {},
            "loops('aBc@collapse(2)'): after @ only schedule(KIND) or schedule(KIND,N) is known, not 'collapse(2)'.",
        ),
        (
            "BaC",
            {},
            "loops('BaC'): C starts a second group of parallel loops, which every thread would run in full. "
            "Remedy: write it next to the first group, or as c.",
        ),
        (
            "aB{R:16}C{C:4}",
            {},
            "loops('aB{R:16}C{C:4}'): a grid of threads {R:16} is not supported. "
            "Remedy: leave it out; the threads then share the iterations of the loops in capitals.",
        ),
        (
            "aBc|",
            {},
            "loops('aBc|'): the barrier after c is inside a parallel loop, whose threads may reach it at different "
            "times. Remedy: put it after a loop that is outside the capitals.",
        ),
        (
            "ab[0,64,1]c",
            {},
            "loops('ab[0,64,1]c'): the nest says where loop b starts and ends. Remedy: leave these fields empty.",
        ),
    ],
)
def test_what_the_model_cannot_say_is_refused(text, blocks, message):
    with pytest.raises(ScheduleError) as caught:
        schedule(gemm).loops(text, blocks=blocks)
    assert str(caught.value) == message


def test_too_long_a_string_is_refused():
    with pytest.raises(ScheduleError, match="at most 512 characters, this one has 600"):
        schedule(gemm).loops("a" * 600)


def test_a_parallel_loop_over_the_reduction_is_refused():
    with pytest.raises(ScheduleError) as caught:
        schedule(gemm).loops("Abc")
    assert str(caught.value) == (
        "parallel(k) is illegal: S0[0, 0, 0] and S0[1, 0, 0] update one element of C (reduction, distance (1, 0, 0)). "
        "Remedy: parallel(m)."
    )
