"""All times from one to another, as a set."""

from __future__ import annotations

import islpy as isl

Time = tuple[int, ...]


def between(first: Time, last: Time) -> isl.Set:
    """The vectors that are lexicographically at least `first` and at most `last`, which is not before it.

    They come as disjoint pieces: the vectors that leave `first` upward at each entry behind the one that parts the two,
    those that pass between them there, those that stay below `last`, and the two themselves.
    """
    if first == last:
        return isl.Set(f"{{ [{', '.join(map(str, first))}] }}")
    parted = next(d for d, (a, b) in enumerate(zip(first, last, strict=True)) if a != b)
    length = len(first)
    pieces = [[*_fixed(first, d), f"t{d} > {first[d]}"] for d in range(length - 1, parted, -1)]
    pieces.append([*_fixed(first, parted), f"{first[parted]} < t{parted} < {last[parted]}"])
    pieces += [[*_fixed(last, d), f"t{d} < {last[d]}"] for d in range(parted + 1, length)]
    pieces += [_fixed(first, length), _fixed(last, length)]
    entries = ", ".join(f"t{d}" for d in range(length))
    return isl.Set(f"{{ [{entries}] : {' or '.join(f'({_all(piece)})' for piece in pieces)} }}")


def _fixed(time: Time, entries: int) -> list[str]:
    return [f"t{d} = {time[d]}" for d in range(entries)]


def _all(conditions: list[str]) -> str:
    return " and ".join(conditions) or "true"
