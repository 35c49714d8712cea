"""Intervals of time as sets."""

from __future__ import annotations

from functools import reduce

import islpy as isl

from poly.ir.sets import SET, number, set_space

Time = tuple[int, ...]


def between(first: Time, last: Time) -> isl.Set:
    """The vectors that are lexicographically between `first` and `last`, both included; `last` is not before `first`.

    The set is a union of disjoint pieces: vectors that exceed `first` at some entry after the first one at which the
    two differ, vectors strictly between the two at that entry, vectors that stay below `last` at some later entry, and
    the two themselves.
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
    """The vectors that agree with `time` in the first `entries` entries."""
    made = isl.Set.universe(set_space((), len(time)))
    for d in range(entries):
        made = made.fix_val(SET, d, number(time[d]))
    return made


def _above(times: isl.Set, time: Time, entry: int) -> isl.Set:
    return times.lower_bound_val(SET, entry, number(time[entry] + 1))


def _below(times: isl.Set, time: Time, entry: int) -> isl.Set:
    return times.upper_bound_val(SET, entry, number(time[entry] - 1))
