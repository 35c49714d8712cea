"""PARLOOPER's loop strings: a terse notation for the order, the blocks and the parallel loops of a nest.

    bcaBCb        letters are the nest's loops (a is the first), outermost first; capitals run in parallel
    bcabcb        a loop whose letter occurs n times is blocked n - 1 times
    bc|aBCb       a barrier after loop c
    aBC@schedule(dynamic,1)     text for the OpenMP pragma
    aB{R:16}c     a grid of threads
    a[,,,(32,8)]  block sizes in the string

The grammar is that of Georganas et al., "Harnessing Deep Learning and HPC Kernels via High-Level Loop and Tensor
Abstractions on CPU Architectures" (arXiv 2304.12576). A string is translated to steps of a schedule, which are proven
legal like any others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from microkernels.errors import plain, shown
from poly.checks import checked_text
from poly.errors import ScheduleError
from poly.ir.edits import chain
from poly.ir.tree import Node, bands
from poly.schedules.steps import Order, Parallel, Split, Step
from poly.schedules.steps.base import check_integer

LEVEL = re.compile(
    r"(?P<letter>[A-Za-z])"
    r"(?P<grid>\{[RCL]:\d+\})?"
    r"(\[(?P<start>[^,\]]*),(?P<end>[^,\]]*),(?P<step>[^,\]]*)(,\((?P<blocks>\d+(,\d+)*)\))?\])?"
    r"(?P<barrier>\|*)"
)
SCHEDULE = re.compile(r"\s*schedule\s*\(\s*(static|dynamic|guided|auto|runtime)\s*(,\s*\d+\s*)?\)\s*")
LONGEST = 512
"""The most characters of a loop string."""

Blocks = Mapping[str, int | tuple[int, ...]]
"""Block sizes by letter, outermost first."""


@dataclass(frozen=True)
class Letter:
    """One letter of a loop string, with its suffixes."""

    letter: str
    parallel: bool
    grid: str
    range: tuple[str, str, str]
    """Start, end and step as written."""
    blocks: tuple[int, ...]
    barrier: bool


def parse(text: str) -> tuple[Letter, ...]:
    """The levels of a loop string, outermost first.

    Raises:
        ScheduleError: the string is not in the grammar; the message shows where.
    """
    checked_text("a loop string", text, "'bAb'", ScheduleError)
    if len(text) > LONGEST:
        raise ScheduleError(f"a loop string has at most {LONGEST} characters, this one has {len(text)}.")
    letters, at, pragma = text.partition("@")
    if at and not SCHEDULE.fullmatch(pragma):
        raise ScheduleError(
            f"loops({shown(text)}): after @ only schedule(KIND) or schedule(KIND,N) is known, not {shown(pragma)}."
        )
    place = len(letters) - len(letters.lstrip("|"))
    levels = []
    while place < len(letters):
        match = LEVEL.match(letters, place)
        if match is None:
            raise ScheduleError(f"loops({shown(text)}): a letter was expected at {shown(letters[place:])}.")
        levels.append(_level(match))
        place = match.end()
    if not levels:
        raise ScheduleError(f"loops({shown(text)}): there is no letter.")
    return tuple(levels)


def _level(match: re.Match[str]) -> Letter:
    blocks = match["blocks"] or ""
    return Letter(
        match["letter"].lower(),
        match["letter"].isupper(),
        match["grid"] or "",
        ((match["start"] or "").strip(), (match["end"] or "").strip(), (match["step"] or "").strip()),
        tuple(map(int, blocks.split(","))) if blocks else (),
        bool(match["barrier"]),
    )


def translate(text: str, tree: Node, blocks: Blocks) -> tuple[Step, ...]:
    """The steps that bring the loops of `tree` into the form of a loop string.

    Loops that the string leaves out stay innermost, in their order. `@schedule(...)` and barriers outside parallel
    loops need no step: how OpenMP distributes the iterations changes no result, and every parallel loop ends with a
    barrier.

    Raises:
        ScheduleError: the string is not in the grammar, or asks for what steps can't express: thread grids, two groups
            of parallel loops, a barrier in a parallel loop, or ranges other than the nest's.
    """
    levels = parse(text)
    if not isinstance(blocks, Mapping):
        raise ScheduleError(f"loops: blocks must be a dictionary such as {{'b': 64}}, not {shown(blocks)}.")
    _check_model(text, levels)
    loops = _loops(text, tree, levels)
    sizes = {letter: _blocks(text, letter, levels, blocks) for letter in loops}
    _check_unused(text, blocks, loops)
    splits: list[Step] = []
    names: dict[str, list[str]] = {}
    used = {band.name for band in bands(tree)}
    for letter, loop in loops.items():
        names[letter] = []
        for size in sizes[letter]:
            splits.append(Split(((loop, size),)))
            names[letter].append(_tile_name(loop, used))
        names[letter].append(loop)
    order = [names[level.letter].pop(0) for level in levels]
    parallel = [Parallel(name) for name, level in zip(order, levels, strict=True) if level.parallel]
    order += _around(tree, frozenset(loops.values()))
    return (*splits, *([Order(tuple(order))] if len(order) > 1 else []), *parallel)


def _around(tree: Node, named: frozenset[str]) -> list[str]:
    """The loops around the innermost named loop that are not named themselves."""
    innermost = [band for band in bands(tree) if band.name in named][-1]
    return [band.name for band in bands(tree) if band.name not in named and chain(band, innermost)]


def _tile_name(loop: str, used: set[str]) -> str:
    """The name that `split` gives to the loop over blocks."""
    name, number = f"{loop}_tile", 2
    while name in used:
        name, number = f"{loop}_tile{number}", number + 1
    used.add(name)
    return name


def _loops(text: str, tree: Node, levels: tuple[Letter, ...]) -> dict[str, str]:
    """The loop that each letter of the string stands for."""
    names = [band.name for band in bands(tree)]
    letters = "".join(chr(ord("a") + place) for place in range(len(names)))
    for level in levels:
        if level.letter not in letters:
            known = ", ".join(f"{letter} = {name}" for letter, name in zip(letters, names, strict=True))
            raise ScheduleError(f"loops({shown(text)}): there is no loop {level.letter}. Loops: {known}.")
    present = sorted({level.letter for level in levels})
    return {letter: names[ord(letter) - ord("a")] for letter in present}


def _blocks(text: str, letter: str, levels: tuple[Letter, ...], given: Blocks) -> tuple[int, ...]:
    """The block sizes of one letter, outermost first: from the call, or else from the string."""
    own = [level for level in levels if level.letter == letter]
    baked = next((level.blocks for level in own if level.blocks), ())
    value = given.get(letter, baked)
    sizes = value if isinstance(value, tuple) else (value,)
    if len(sizes) != len(own) - 1:
        needs = f"{len(own) - 1} block size{'s' * (len(own) > 2)}" if len(own) > 1 else "no block size"
        hint = f"\nGive them as blocks={{'{letter}': (…,)}}." if len(own) > 1 else ""
        times = f"{len(own)} time{'s' * (len(own) > 1)}"
        raise ScheduleError(
            f"loops({shown(text)}): {letter} comes {times}, so it needs {needs}, not {shown(list(sizes))}.{hint}"
        )
    for size in sizes:
        check_integer(f"loops({shown(text)}): the block size of {letter}", size, least=1)
    for outer, inner in pairwise(sizes):
        if outer % inner:
            problem = f"of the blocks of {letter}, {shown(outer)} is no multiple of {shown(inner)}"
            raise ScheduleError(f"loops({shown(text)}): {problem}.")
    return sizes


def _check_unused(text: str, blocks: Blocks, loops: Mapping[str, str]) -> None:
    for letter in blocks:
        if not isinstance(letter, str) or letter not in loops:
            raise ScheduleError(
                f"loops({shown(text)}): blocks are given for {plain(letter)}, which is not in the string."
            )


def _check_model(text: str, levels: tuple[Letter, ...]) -> None:
    """Refuse a string that the steps of a schedule can't express."""
    for place, level in enumerate(levels):
        within = any(above.parallel for above in levels[:place])
        reason = _outside_model(level, within, within and not levels[place - 1].parallel)
        if reason:
            raise ScheduleError(f"loops({shown(text)}): {reason}")


def _outside_model(level: Letter, within: bool, after_group: bool) -> str | None:
    """Why a level can't be expressed, and what to write instead; None if it can.

    `within`: the level is inside a parallel loop; `after_group`: and the level directly around it is not parallel.
    """
    if level.parallel and after_group:
        return (
            f"{level.letter.upper()} starts a second group of parallel loops, which every thread would run in full. "
            f"Remedy: write it next to the first group, or as {level.letter}."
        )
    if level.barrier and (within or level.parallel):
        return (
            f"the barrier after {level.letter} is inside a parallel loop, whose threads may reach it at different "
            "times. Remedy: put it after a loop that is outside the capitals."
        )
    if level.grid:
        return (
            f"a grid of threads {level.grid} is not supported. "
            "Remedy: leave it out; the threads then share the iterations of the loops in capitals."
        )
    start, end, step = level.range
    if start or end or step not in ("", "1"):
        return f"the nest says where loop {level.letter} starts and ends. Remedy: leave these fields empty."
    return None
