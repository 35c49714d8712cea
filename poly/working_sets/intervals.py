"""All times from one to another, as a set."""

from __future__ import annotations

from functools import reduce

import islpy as isl

from poly.ir.sets import SET, number, set_space

Time = tuple[int, ...]


def between(first: Time, last: Time) -> isl.Set:
    """The vectors that are lexicographically at least `first` and at most `last`, which is not before it.

    They come as disjoint pieces: the vectors that leave `first` upward at each entry behind the one that parts the two,
    those that pass between them there, those that stay below `last`, and the two themselves.
    """
    length = len(first)
    if first == last:
        return _fixed(first, length)
    parted = next(d for d, (a, b) in enumerate(zip(first, last, strict=True)) if a != b)
    pieces = [_above(_fixed(first, d), first, d) for d in range(length - 1, parted, -1)]
    pieces.append(_above(_below(_fixed(first, parted), last, parted), first, parted))
    pieces += [_below(_fixed(last, d), last, d) for d in range(parted + 1, length)]
    return reduce(isl.Set.union_disjoint, [*pieces, _fixed(first, length), _fixed(last, length)])


def _fixed(time: Time, entries: int) -> isl.Set:
    """The vectors that have the first entries of `time`."""
    made = isl.Set.universe(set_space((), len(time)))
    for d in range(entries):
        made = made.fix_val(SET, d, number(time[d]))
    return made


def _above(times: isl.Set, time: Time, entry: int) -> isl.Set:
    return times.lower_bound_val(SET, entry, number(time[entry] + 1))


def _below(times: isl.Set, time: Time, entry: int) -> isl.Set:
    return times.upper_bound_val(SET, entry, number(time[entry] - 1))
