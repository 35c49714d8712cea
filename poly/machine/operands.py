"""Operands of a register tile that lie further away or in place: what a line of each costs, level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from microkernels.kernel import OuterProduct
from poly.machine.description import LINE, PAGE, Machine
from poly.machine.measured import LineCost, PlaceCost, TileSpeed
from poly.machine.tile_probes import DTYPE, UNALIGNED, Positions, TileProbes, aligned

DEPTH, SHALLOW = 256, 48
"""Steps of a call: many, and so few that results do not arrive in their shadow and rows' pages fit in the TLB."""

PITCH = PAGE + LINE
"""Bytes from row to row in place, so that rows share no set of any cache."""

PITCHES = {1: PAGE, 2: PAGE // 2, 4: PAGE // 4, 8: PAGE // 8, 64: PAGE // 8 + LINE}
"""Bytes from row to row by the classes of a page's 64 lines in which the rows begin."""

ENTRIES, FAR_PAGES = 64, 4096
"""Pages that the first-level TLB holds for data, at least, and more than the second one holds."""

SAMPLE = 5e5
"""Vector multiply-adds of a sample: some 0.1 ms."""

ROW_TILES = 64
"""Tiles from the top to the bottom of a block of results."""

NEAR = "near"
"""Instead of a level: where it was found again and again."""

Name = tuple[object, object] | tuple[object, object, object]
"""The name of a job: an operand and a level, rows in place and their pitch and steps, a tile and its steps."""

Job = Callable[[int], float]
"""Seconds of a call, given the number of the round."""

Times = Mapping[Name, float]
"""The time of a call of each job, in vector multiply-adds."""


@dataclass(frozen=True)
class Far:
    """Calls whose operand `side` (0 left, 1 right, 2 output) lies at `at` in turn; the other operands are near.

    `lines` are those of the operand in one call, or its runs. `kernel` is the tile that is called.
    `pitches` are those of A's rows and steps, of B's steps, of C's rows.
    """

    operand: str
    kernel: OuterProduct
    pitches: tuple[int, int, int, int]
    steps: int
    side: int
    at: tuple[int, ...]
    lines: float


@dataclass(frozen=True)
class FarCalls:
    """`count` calls of those whose operands lie at the positions `at`, and the seconds of one of them."""

    timed: Callable[[Positions], float]
    at: Positions
    count: int

    @property
    def share(self) -> float:
        """The part of the positions that are used."""
        return min(1.0, self.count / len(self.at))

    def again(self, _: int) -> float:
        """The first calls, after all were made once."""
        self.timed(self.at)
        return self.timed(self.at[: self.count])

    def beginning(self, place: float) -> float:
        """The calls from a place between 0 and 1, once."""
        chosen = np.arange(self.count) + int(place * len(self.at))
        return self.timed(self.at.take(chosen, axis=0, mode="wrap"))


class Operands:
    """The jobs, and what their times tell. `usual` is the tile for large operands, `tall` the one of most rows."""

    def __init__(self, probes: TileProbes, here: Machine, usual: OuterProduct, tall: OuterProduct) -> None:
        self._probes, self._usual, self._tall, self._regions = probes, usual, tall, regions(here)
        ways = here.caches[0].ways
        self._crowd = max(0, tall.rows - ways) / ways
        self._far_array = aligned(self._regions["memory"] * 9 // 8 + 2 * PITCH * DEPTH)
        self._near_arrays = aligned(1 << 21), aligned(1 << 21)

    def jobs(self) -> dict[Name, Job]:
        """All jobs by name: an operand with its level, rows in place, or what these are compared with."""
        found: dict[Name, Job] = {}
        for level, size in self._regions.items():
            calls: dict[Name, FarCalls] = {_name(one, level): self._far_calls(one) for one in self._far(size)}
            calls |= {
                (name, level): self._copies(turned, size) for name, turned in (("copy", False), ("turned copy", True))
            }
            found |= _in_turn(calls) if level == "memory" else {name: one.again for name, one in calls.items()}
        for steps in (DEPTH, SHALLOW):
            for pitch in (*PITCHES.values(), PITCH):
                found["rows", pitch, steps] = partial(self._rows, pitch, steps)
            near = Far("base", self._usual, self._near(self._usual), steps, 0, (0,), 1)
            found["base", steps] = self._far_calls(near).again
        nearest = min(self._regions.values())
        for one in (*self._far_right(nearest, self._usual), *self._far_right(nearest, self._tall)):
            found[_name(one, NEAR)] = self._far_calls(replace(one, at=(0,))).again
        found["rows", PITCH, FAR_PAGES] = partial(self._rows, PITCH, FAR_PAGES)
        for pitch in (PAGE, PITCH):
            found["tall", pitch] = partial(self._run_tall, pitch)
        return found

    def costs(
        self, times: Times, speed: TileSpeed
    ) -> tuple[tuple[LineCost, ...], tuple[PlaceCost, ...], dict[str, float]]:
        """The costs of lines and of places, and single ones by name; `speed` is that of the usual tile."""
        missed = max(0.0, times["rows", PITCH, DEPTH] - times["rows", PITCHES[64], DEPTH]) / DEPTH
        each = [(classes, steps) for steps in (SHALLOW, DEPTH) for classes in PITCHES]
        places = tuple(self._place(times, speed, classes, steps, missed) for classes, steps in each)

        def before(one: Far) -> float:
            """The time of calls with all operands near. Two jobs are such calls as well; each is slow on some pages."""
            if one.side == 1:
                return times[_name(one, NEAR)]
            near = [times["base", one.steps]] if one.kernel == self._usual else []
            return min(near + [times["right panels", NEAR, one.kernel.rows]] * (one.steps == DEPTH))

        def cost(one: Far, level: str) -> float:
            return max(0.0, times[_name(one, level)] - before(one)) / one.lines

        regions = self._regions.items()
        lines = [
            LineCost(one.operand, level, cost(one, level), one.kernel.rows)
            for level, size in regions
            for one in self._far(size)
        ]
        for name, amount in (("copy", self._usual.columns), ("turned copy", self._usual.rows)):
            lines += [LineCost(name, level, times[name, level] / _lines(DEPTH * amount)) for level in self._regions]
        lost = times["tall", PAGE] - times["tall", PITCH]
        crowded = max(0.0, lost) / (DEPTH * self._tall.rows * self._crowd) if self._crowd else 0.0
        in_place = speed.call + DEPTH * (speed.step + places[-1].cost * speed.vectors)
        walked = max(missed, (times["rows", PITCH, FAR_PAGES] - speed.call) / FAR_PAGES - in_place / DEPTH)
        return tuple(lines), places, {"crowded": crowded, "missed": missed, "walked": walked}

    def _place(self, times: Times, speed: TileSpeed, classes: int, steps: int, missed: float) -> PlaceCost:
        """The time of a vector in place, less that of missed pages, which deep calls have if rows are far apart."""
        pages = steps * PITCHES[classes] / PAGE
        rest = speed.call + steps * speed.step + missed * pages * (pages > ENTRIES)
        more = times["rows", PITCHES[classes], steps] - rest
        return PlaceCost(steps, classes, max(0.0, more) / (steps * self._usual.vectors))

    @staticmethod
    def _near(kernel: OuterProduct) -> tuple[int, int, int, int]:
        """Pitches with all operands dense: of A's rows and steps, of B's steps, of C's rows."""
        return DEPTH + LINE // DTYPE.size, 1, kernel.columns, kernel.columns + LINE // DTYPE.size

    def _far(self, size: int) -> Iterator[Far]:
        """One operand somewhere in `size` bytes; panels and the right one of two tiles, which leave lines time."""
        for kernel in dict.fromkeys((self._usual, self._tall)):
            yield from self._far_right(size, kernel)
            yield self._far_left_panels(size, kernel)
        yield from self._far_left_and_output(size)

    def _far_right(self, size: int, kernel: OuterProduct) -> Iterator[Far]:
        """The right operand somewhere in `size` bytes."""
        (a_row, _, _, c_row), pitch, columns = self._near(kernel), PITCH // DTYPE.size, kernel.columns
        whole, wide, deep = size // DTYPE.size, PAGE // DTYPE.size, DEPTH
        panel = deep * columns
        at = tuple(range(0, whole - panel + 1, panel))
        yield Far("right panels", kernel, self._near(kernel), deep, 1, at, _lines(panel))
        near = PITCHES[64] // DTYPE.size
        blocks = range(max(1, whole // (deep * near)))
        at = tuple(deep * near * block + j for block in blocks for j in range(0, near - columns + 1, columns))
        yield Far("right", kernel, (a_row, 1, near, c_row), deep, 1, at, _lines(panel))
        across = min(wide, whole // deep) // columns * columns
        blocks = range(max(1, whole // (deep * across)))
        at = tuple(deep * pitch * block + j for block in blocks for j in range(0, across, columns))
        yield Far("right apart", kernel, (a_row, 1, pitch, c_row), deep, 1, at, deep)

    def _far_left_panels(self, size: int, kernel: OuterProduct) -> Far:
        """The left operand in panels somewhere in `size` bytes."""
        (_, _, b_step, c_row), strip = self._near(kernel), DEPTH * kernel.rows
        at = tuple(range(0, size // DTYPE.size - strip + 1, strip))
        return Far("left panels", kernel, (1, kernel.rows, b_step, c_row), DEPTH, 0, at, _lines(strip))

    def _far_left_and_output(self, size: int) -> Iterator[Far]:
        """The left operand in place or the output somewhere in `size` bytes."""
        kernel = self._usual
        (a_row, _, b_step, c_row), pitch = self._near(kernel), PITCH // DTYPE.size
        rows, columns, whole, wide, deep = kernel.rows, kernel.columns, size // DTYPE.size, PAGE // DTYPE.size, DEPTH
        strip = deep * rows
        tall = whole // deep // (wide // deep) // rows * rows
        high = ROW_TILES * rows
        at = tuple(
            i * pitch + k
            for top in range(0, tall, high)
            for k in range(0, wide, deep)
            for i in range(top, min(top + high, tall), rows)
        )
        yield Far("left", kernel, (pitch, 1, b_step, c_row), deep, 0, at, _lines(strip))
        across = min(wide, max(columns, whole // high)) // columns * columns
        blocks = range(max(1, whole // (high * across)))
        each = [(i * pitch, j) for j in range(0, across, columns) for i in range(0, high, rows)]
        for way, tiles_in_turn in (("", each), (" along", sorted(each))):
            at = tuple(high * pitch * block + i + j for block in blocks for i, j in tiles_in_turn)
            for name, steps in (("output", DEPTH), ("short output", SHALLOW)):
                yield Far(name + way, kernel, (a_row, 1, b_step, pitch), steps, 2, at, _lines(rows * columns))

    def _rows(self, pitch: int, steps: int, _: int) -> float:
        """Seconds of a call with the same rows of B in place again and again, and C as far from row to row."""
        far, near = self._far_array, self._near_arrays[0]
        at = np.zeros((max(4, 64 * DEPTH // max(steps, DEPTH)), 3), np.int64)
        at[:, 2] = np.arange(len(at)) % 4 * self._usual.rows * (pitch // DTYPE.size)
        rest = far[_after(pitch * steps) :]
        arrays = _behind(near), _behind(far), _behind(rest)
        pitches = (steps + LINE // DTYPE.size, 1, pitch // DTYPE.size, pitch // DTYPE.size)
        return _again(lambda: self._probes.far(self._usual, arrays, pitches, steps, at))

    def _far_calls(self, one: Far) -> FarCalls:
        """So few calls that other processes seldom interrupt them."""
        at = np.zeros((max(len(one.at), 32), 3), np.int64)
        at[:, one.side] = np.resize(np.array(one.at), len(at))
        if one.side != 2:
            at[:, 2] += np.arange(len(at)) % 4 * (one.kernel.rows * self._near(one.kernel)[3])
        others = iter(self._near_arrays)
        a, b, c = (self._far_array if side == one.side else next(others) for side in range(3))
        a = a if "panels" in one.operand else _behind(a)
        b = _behind(b) if one.operand in ("right", "right apart") else b

        def timed(at: Positions) -> float:
            return self._probes.far(one.kernel, (a, b, _behind(c)), one.pitches, one.steps, at)

        return FarCalls(timed, at, int(SAMPLE / (one.steps * one.kernel.rows * one.kernel.vectors)))

    def _run_tall(self, pitch: int, _: int) -> float:
        columns = self._tall.columns
        pitches = (pitch // DTYPE.size, 1, columns, columns + LINE // DTYPE.size)
        a, (b, c), at = _behind(self._far_array), self._near_arrays, np.zeros((64, 3), np.int64)
        return _again(lambda: self._probes.far(self._tall, (a, b, c), pitches, DEPTH, at))

    def _copies(self, turned: bool, size: int) -> FarCalls:
        """Panels packed into the second level: at least those from one page to the next."""
        source = next(one for one in self._far(size) if one.operand == ("left" if turned else "right apart"))
        lanes = self._usual.rows if turned else self._usual.columns
        at = np.zeros((len(source.at), 3), np.int64)
        at[:, 0] = np.arange(len(at)) % 8 * DEPTH * lanes
        at[:, 1] = source.at
        across = PAGE // DTYPE.size // lanes
        return FarCalls(partial(self._packed, turned, lanes), at, max(16, across))

    def _packed(self, turned: bool, lanes: int, at: Positions) -> float:
        source = _behind(self._far_array)
        return self._probes.packed(self._near_arrays[0], lanes, source, PITCH // DTYPE.size, DEPTH, turned, at)


def regions(here: Machine) -> dict[str, int]:
    """Bytes that lie in each level of memory beyond the first, whatever else its jobs read.

    A quarter of the second: of a half, some pages lie in sets that are overfull, other ones each time.
    """
    first = here.caches[0].bytes
    second = here.cache(2)
    near = second.bytes if second else first
    third = here.cache(3)
    found = {"L2": near // 4} if second else {}
    if third and here.share(third) * 3 // 4 >= 2 * near:
        found["L3"] = min(4 * near, here.share(third) * 3 // 4)
    last = max(cache.bytes for cache in here.caches)
    return {**found, "memory": max(min(4 * last, 256 << 20), last + last // 8, 64 << 20)}


def _again(job: Callable[[], float]) -> float:
    """The time of a job that was done just before, so that its operands lie where they stay."""
    job()
    return job()


def _name(one: Far, level: str) -> Name:
    """The name of a job."""
    return one.operand, level, one.kernel.rows


def _in_turn(calls: Mapping[Name, FarCalls]) -> dict[Name, Job]:
    """Jobs in memory: each reads on where the one before has stopped, so that none finds what another has just read."""
    ends = list(accumulate(one.share for one in calls.values()))

    def job(one: FarCalls, first: float, round: int) -> float:
        return one.beginning((first + round * ends[-1]) % 1.0)

    firsts = (0.0, *ends)
    return {name: partial(job, one, first) for (name, one), first in zip(calls.items(), firsts, strict=False)}


def _lines(elements: int) -> float:
    return elements * DTYPE.size / LINE


def _after(size: int) -> int:
    """The first element of a page at least `size` bytes behind the start."""
    return -(-size // PAGE) * PAGE // DTYPE.size


def _behind(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """The part of an aligned array that begins as NumPy's arrays do."""
    return array[UNALIGNED // DTYPE.size :]
