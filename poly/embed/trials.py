"""The sizes at which a header tests itself: small ones of all kinds for checks, and some for timings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from math import prod
from random import Random

from codegen.package.values import SelfTestSizes
from poly.analysis.facts import Facts, facts
from poly.analysis.work import work
from poly.ir.lookups import index_ranges
from poly.ir.nest import Nest

Sizes = dict[str, int]
FactsAt = Callable[[Sizes], Facts]

LIMIT = 129
"""Random sizes are from 1 to this: twice the columns of the largest register tile, and one more."""
DRAWN = 36
ITERATIONS = 1 << 20
"""The most iterations of the plain loops that check one trial: a millisecond or two."""
LONG = 1100
"""The value of one size at a time that is longer than a cache block."""
OTHERS = 7
"""The value of all other sizes in such trials."""

FLOPS = 1 << 28
BYTES = 1 << 25
"""The most work of a timed call at open sizes, a few milliseconds, and the most bytes of its arrays, 32 MiB."""
LADDER = (*(1 << at for at in (20, 18, 16, 14, 13)), *(n << at for at in range(10, -1, -1) for n in (4, 3)), 2)
WINDOW = 3
"""The value, in timed calls, of a window's size: one that only widens an input, such as `R` in `P + R - 1`."""


def trials(nest: Nest, special: Sequence[Mapping[str, int]]) -> tuple[SelfTestSizes, ...]:
    """The trials of a nest, and of kernels for `special` values of its open sizes; always the same for a nest."""
    timed = [dict(sizes) for sizes in special] or ([{}] if not nest.sizes else [])
    usual = _usual(nest)
    if usual is not None and usual not in timed:
        timed.append(usual)
    at = _facts_at(nest)
    small = [sizes for sizes in _small(nest, special, at) if sizes not in timed and _affordable(nest, sizes, at)]
    distinct = [dict(sizes) for sizes in dict.fromkeys(tuple(sizes.items()) for sizes in small)]
    checked = [SelfTestSizes(tuple(sizes.items()), 0, max(1, at(sizes).length)) for sizes in distinct]
    return (*checked, *(_timed(nest, sizes, at) for sizes in timed))


def _facts_at(nest: Nest) -> FactsAt:
    """The nest's facts by the values of its open sizes, each computed once."""

    @cache
    def found(*values: int) -> Facts:
        return facts(nest.with_sizes(dict(zip(nest.sizes, values, strict=True))))

    return lambda sizes: found(*(sizes[name] for name in nest.sizes))


def _small(nest: Nest, special: Sequence[Mapping[str, int]], at: FactsAt) -> Iterator[Sizes]:
    """Sizes for checks: all equal, each one empty or long, random ones, and neighbours of the special ones."""
    names = nest.sizes
    if not names:
        return
    yield dict.fromkeys(names, 1)
    yield dict.fromkeys(names, OTHERS)
    for name in names:
        yield {other: 0 if other == name else OTHERS for other in names}
        yield {other: LONG if other == name else OTHERS for other in names}
    yield from islice((sizes for sizes in _drawn(nest) if _affordable(nest, sizes, at)), DRAWN)
    for known in special:
        for name in names:
            yield {other: known[other] + (other == name) for other in names}


def _drawn(nest: Nest, draws: int = 50 * DRAWN) -> Iterator[Sizes]:
    """Random sizes, alternately uniform and biased towards small ones."""
    generator = Random(0)
    for number in range(draws):
        spread = 1.0 if number % 2 else 3.0
        yield {name: 1 + int(LIMIT * generator.random() ** spread) for name in nest.sizes}


def _allowed(nest: Nest, sizes: Sizes) -> bool:
    """Whether sizes satisfy the nest's conditions, and no array has a negative extent."""
    extents = (extent for array in nest.arguments for extent in array.shape)
    return all(value.evaluate(sizes) >= 0 for value in (*nest.conditions, *extents))


def _affordable(nest: Nest, sizes: Sizes, at: FactsAt) -> bool:
    """Whether a call may have these sizes, arrays of indices may have values, and the plain loops are fast enough."""
    if not _allowed(nest, sizes):
        return False
    if any(end <= least for _, least, end in index_ranges(nest, sizes)):
        return False
    return at(sizes).iterations <= ITERATIONS


def _timed(nest: Nest, sizes: Sizes, at: FactsAt) -> SelfTestSizes:
    """The trial at sizes that are timed, with its operations if they can be counted."""
    done = work(nest.with_sizes(sizes))
    return SelfTestSizes(tuple(sizes.items()), done.flop if done else 0, max(1, at(sizes).length))


def _usual(nest: Nest) -> Sizes | None:
    """Open sizes at which a call does about as much work as FLOPS and BYTES permit; None if there are none."""
    if not nest.sizes:
        return None
    windows = _windows(nest)
    for value in LADDER:
        sizes = {name: WINDOW if name in windows else value for name in nest.sizes}
        if _timeable(nest, sizes):
            return sizes
    return None


def _timeable(nest: Nest, sizes: Sizes) -> bool:
    fixed = nest.with_sizes(sizes)
    extents = [[extent.constant for extent in array.shape] for array in fixed.arrays]
    bytes_ = sum(prod(shape) * array.dtype.size for shape, array in zip(extents, nest.arrays, strict=True))
    if bytes_ > BYTES or not _allowed(nest, sizes):
        return False
    if facts(fixed).iterations > FLOPS:
        return False
    done = work(fixed)
    return done is not None and done.flop <= FLOPS


def _windows(nest: Nest) -> frozenset[str]:
    """Sizes that occur together with others in extents, and in no extent of an output."""
    outputs = {name for a in nest.arguments if a.name in nest.written for e in a.shape for name in e.names}
    beside = {name for a in nest.arguments for e in a.shape if len(e.names) > 1 for name in e.names}
    return frozenset(beside - outputs)
