"""The sizes at which a header tests itself: small ones of all kinds to check, and some to time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from math import prod
from random import Random

from codegen.package.values import SelfTestSizes
from poly.analysis.facts import Facts, facts
from poly.analysis.work import work
from poly.ir.nest import Nest

Sizes = dict[str, int]
FactsAt = Callable[[Sizes], Facts]

LIMIT = 129
"""Drawn sizes go from 1 to this: to twice the columns of the largest register tile, and one more."""
DRAWN = 36
ITERATIONS = 1 << 20
"""What plain loops may run through to check one trial: a millisecond or two."""
LONG = 1100
"""One size at a time is as large as this: more than a block of a cache."""
OTHERS = 7
"""What the other sizes are then."""

FLOPS = 1 << 28
BYTES = 1 << 25
"""What a timed call at open sizes has at most: some milliseconds of work, and arrays of 32 MiB."""
LADDER = (*(1 << at for at in (20, 18, 16, 14, 13)), *(n << at for at in range(10, -1, -1) for n in (4, 3)), 2)
WINDOW = 3
"""A size that only widens an input is that of a window, such as `R` in `P + R - 1`: it has this value then."""


def trials(nest: Nest, special: Sequence[Mapping[str, int]]) -> tuple[SelfTestSizes, ...]:
    """Trials of a nest, and of kernels for `special` values of all its open sizes: the same for the same nest."""
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
    """The nest's facts by the values of its open sizes, each found once."""

    @cache
    def found(*values: int) -> Facts:
        return facts(nest.with_sizes(dict(zip(nest.sizes, values, strict=True))))

    return lambda sizes: found(*(sizes[name] for name in nest.sizes))


def _small(nest: Nest, special: Sequence[Mapping[str, int]], at: FactsAt) -> Iterator[Sizes]:
    """Sizes to check: all equal, each empty or long, drawn ones, and neighbours of the special ones."""
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
    """Sizes by lot, in turn evenly and with as many small ones as large ones."""
    generator = Random(0)
    for number in range(draws):
        spread = 1.0 if number % 2 else 3.0
        yield {name: 1 + int(LIMIT * generator.random() ** spread) for name in nest.sizes}


def _affordable(nest: Nest, sizes: Sizes, at: FactsAt) -> bool:
    """Every array has its elements, and plain loops are through in no time."""
    if any(extent.evaluate(sizes) < 0 for array in nest.arguments for extent in array.shape):
        return False
    return at(sizes).iterations <= ITERATIONS


def _timed(nest: Nest, sizes: Sizes, at: FactsAt) -> SelfTestSizes:
    """The trial at sizes that are timed, with its flops where they can be counted."""
    done = work(nest.with_sizes(sizes))
    return SelfTestSizes(tuple(sizes.items()), done.flop if done else 0, max(1, at(sizes).length))


def _usual(nest: Nest) -> Sizes | None:
    """Open sizes at which a call has about as much to do as FLOPS and BYTES allow; None where no sizes are open."""
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
    if bytes_ > BYTES or any(extent < 0 for shape in extents for extent in shape):
        return False
    if facts(fixed).iterations > FLOPS:
        return False
    done = work(fixed)
    return done is not None and done.flop <= FLOPS


def _windows(nest: Nest) -> frozenset[str]:
    """Sizes that stand beside others in extents, and in no extent of an output."""
    outputs = {name for a in nest.arguments if a.name in nest.written for e in a.shape for name in e.names}
    beside = {name for a in nest.arguments for e in a.shape if len(e.names) > 1 for name in e.names}
    return frozenset(beside - outputs)
