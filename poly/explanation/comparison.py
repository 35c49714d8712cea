"""Why one schedule is expected to be faster than another, in sentences with numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from poly.display import Block, Displayed, Text, columns, time_text
from poly.errors import SpecError
from poly.explanation.explained import explanation_of, sizes_of, subject
from poly.explanation.explanation import Explanation
from poly.explanation.text import bytes_text
from poly.explanation.values import ARITHMETIC, Level
from poly.ir.nest import difference
from poly.scheduled import Scheduled
from poly.schedules.schedule import Schedule

SAME = 0.03
"""Times that differ by less than this fraction of the larger one count as equal."""

LITTLE = 0.02
"""Differences below this fraction of a call's time are not mentioned."""

Winner = Literal["first", "second", "neither"]


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """Two schedules of one problem. `print` shows the sentences."""

    first: Explanation
    second: Explanation
    sentences: tuple[str, ...]

    @property
    def winner(self) -> Winner:
        """The schedule that is expected to be faster."""
        first, second = self.first.expected, self.second.expected
        if abs(first - second) <= SAME * max(first, second):
            return "neither"
        return "first" if first < second else "second"

    def _title(self) -> str:
        return f"comparison of two schedules of {self.first.schedule.nest.name}: the faster one is {self.winner}"

    def _parts(self) -> Iterable[Block]:
        yield Text("\n".join(self.sentences), wraps=True)
        yield Text("\n".join(side_by_side(self.first, self.second)))

    def __str__(self) -> str:
        """The sentences, then the bytes and times of both."""
        return "\n".join((*self.sentences, "", *side_by_side(self.first, self.second)))


def compare(
    first: Scheduled | Schedule,
    second: Scheduled | Schedule,
    *,
    target: str = "c",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    **more: int,
) -> Comparison:
    """Explain why one of two kernels or schedules is expected to be faster; arguments and errors are as for `explain`.

    Raises:
        SpecError: the schedules are for different nests or sizes.
    """
    fixed = sizes_of(first, sizes, more, compare)
    one, other = (subject(what, target, threads, fixed) for what in (first, second))
    nests = one.fixed.nest, other.fixed.nest
    apart = difference(*nests) or ("" if dict(nests[0].fixed) == dict(nests[1].fixed) else "their sizes differ")
    if apart:
        names = f"{nests[0].name} and {nests[1].name}"
        raise SpecError(f"schedules of different nests or sizes ({names}) can't be compared: {apart}.")
    return against(explanation_of(one), explanation_of(other))


def against(first: Explanation, second: Explanation) -> Comparison:
    """The comparison of two explanations."""
    made = Comparison(first, second, ())
    return Comparison(first, second, (*_verdict(made), *_levels(made), *_parts(made), *_measured(made)))


def _verdict(made: Comparison) -> Iterator[str]:
    first, second = made.first, made.second
    times = f"{time_text(first.expected)} and {time_text(second.expected)}"
    if made.winner == "neither":
        yield f"Neither is expected to be faster: they take {times}."
    else:
        factor = max(first.expected, second.expected) / min(first.expected, second.expected)
        yield f"The {made.winner} is expected to be faster, {factor:.2f} times: they take {times}."
    if first.bound == second.bound:
        yield f"Both are bound by {_bound(first)}."
    else:
        yield f"The first is bound by {_bound(first)}, the second by {_bound(second)}."


def _bound(one: Explanation) -> str:
    """`L2: 45.2 MB at 121 GB/s take 373 µs`."""
    if one.bound == ARITHMETIC:
        work = f"{one.flop / 1e9:.4g} GFLOP at {one.peak / 1e9:.4g} GFLOP/s"
        return f"its operations: {work} take {time_text(one.arithmetic)}"
    level = next(level for level in one.levels if level.name == one.bound)
    return f"{level.name}: {bytes_text(level.bytes)} at {level.rate / 1e9:.4g} GB/s take {time_text(level.seconds)}"


def _levels(made: Comparison) -> Iterator[str]:
    """The levels that deliver different numbers of bytes, and the loops that fit in the cache before them."""
    least = LITTLE * min(made.first.expected, made.second.expected)
    for one, other in zip(made.first.levels, made.second.levels, strict=True):
        if abs(one.seconds - other.seconds) <= least:
            continue
        fewer, more, who = (one, other, "first") if one.bytes < other.bytes else (other, one, "second")
        factor = f", {more.bytes / fewer.bytes:.3g} times less" if fewer.bytes else ""
        yield (
            f"{one.name} delivers {bytes_text(fewer.bytes)} to the {who} and {bytes_text(more.bytes)} to the other"
            f"{factor}: {time_text(more.seconds - fewer.seconds)} at its bandwidth.{_why(made, one, other)}"
        )


def _why(made: Comparison, one: Level, other: Level) -> str:
    if one.name == made.first.levels[0].name or one.fits == other.fits:
        return ""
    names = [level.name for level in made.first.levels]
    cache = names[names.index(one.name) - 1]
    return f" {cache} keeps {' and '.join(one.fits)} in the first, {' and '.join(other.fits)} in the second."


def _parts(made: Comparison) -> Iterator[str]:
    """The differences between the predictions that are not due to a level of memory."""
    one, other = made.first.prediction, made.second.prediction
    if one is None or other is None:
        return
    memory = {level.name for level in made.first.levels}
    least = LITTLE * min(one.seconds, other.seconds)
    for name in dict.fromkeys(part.name for part in (*one.parts, *other.parts)):
        first, second = (found.seconds if (found := p.part(name)) else 0.0 for p in (one, other))
        if name not in memory and abs(first - second) > least:
            times = f"{time_text(first)} in the first, {time_text(second)} in the second"
            yield f"The model expects {name} to take {times}."


def _measured(made: Comparison) -> Iterator[str]:
    one, other = made.first.measurement, made.second.measurement
    if one is not None and other is not None:
        yield f"Measured: {time_text(one.seconds)} and {time_text(other.seconds)}."


def side_by_side(first: Explanation, second: Explanation) -> Iterator[str]:
    """A table of both: the bytes of each level and the time of each resource."""
    rows: list[tuple[str, ...]] = [("", "first", "", "second", "")]
    for name in first.times:
        cells = (cell for one in (first, second) for cell in (_bytes(one, name), time_text(one.times[name])))
        rows.append((name, *cells))
    rows.append(("expected", "", time_text(first.expected), "", time_text(second.expected)))
    yield from columns(rows)


def _bytes(one: Explanation, name: str) -> str:
    return next((bytes_text(level.bytes) for level in one.levels if level.name == name), "")
