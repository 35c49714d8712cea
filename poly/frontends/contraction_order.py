"""In which order an einsum of several operands multiplies them, two at a time: the order of the least time.

    ij,jk,kl->il   is   ij,jk->ik  and then  ik,kl->il,   or   jk,kl->jl  and then  ij,jl->il

The search is exact: the best order of each subset of the operands follows from those of its parts (dynamic programming
over subsets, as for joins in Selinger et al., "Access path selection in a relational database management system",
SIGMOD 1979). Beyond `EXACT` operands, a greedy search takes its place, as `opt_einsum` has it (Smith and Gray,
JOSS 2018), and if that library is installed, the better of this order and of the library's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import prod
from typing import Literal

EXACT = 10
"""The most operands whose orders are all searched: 3**10 / 2 products are priced in a fraction of a second."""

MOST_SEARCHED = 14
"""The most operands whose orders are all searched on demand: 3**14 / 2 products take seconds."""

Price = Callable[[float, float], float]
"""The seconds of so many multiply-adds on arrays with so many elements in all."""


@dataclass(frozen=True)
class OrderedProduct:
    """One step: the product of a few values, summed over the indices that are not in `output`.

    A value is the place of an operand, or, behind the operands, of the result of an earlier step.
    """

    values: tuple[int, ...]
    output: str


Path = tuple[tuple[int, ...], ...]
"""Which of a list each product takes out; its result comes to the end of the list."""

Pairs = list[tuple[int, int]]
"""A path whose products have two operands each."""

Optimize = bool | Literal["greedy", "optimal"] | Path
"""How the order is found: True searches all orders up to `EXACT` operands, `optimal` those of any number; or the order.
False has none: all operands are multiplied at once."""


def contraction_order(
    operands: Sequence[str], output: str, extents: Mapping[str, int], price: Price, optimize: Optimize = True
) -> list[OrderedProduct]:
    """The products that compute an einsum, the one that gives its output last.

    An index of one operand alone that is not in the output is summed over before all products.
    """
    if optimize is False:
        return [OrderedProduct(tuple(range(len(operands))), output)]
    values = list(operands)
    steps: list[OrderedProduct] = []

    def add(places: Sequence[int], letters: str) -> int:
        steps.append(OrderedProduct(tuple(places), letters))
        values.append(letters)
        return len(values) - 1

    used = Counter(letter for letters in operands for letter in set(letters))
    places = []
    for place, letters in enumerate(operands):
        kept = _distinct(letters, lambda letter: used[letter] > 1 or letter in output)
        lonely = len(operands) > 1 and set(kept) != set(letters)
        places.append(add([place], kept) if lonely else place)
    for taken in _path([_distinct(values[place]) for place in places], output, extents, price, optimize):
        terms = [places[position] for position in taken]
        places = [place for place in places if place not in terms]
        needed = output + "".join(values[place] for place in places)
        letters = _distinct("".join(values[place] for place in terms), needed.__contains__)
        places.append(add(terms, letters if places else output))
    return steps


def _path(
    operands: Sequence[str], output: str, extents: Mapping[str, int], price: Price, optimize: Optimize
) -> Sequence[tuple[int, ...]]:
    """The products in the order that was chosen, or found."""
    if isinstance(optimize, tuple):
        return optimize
    if len(operands) <= 2:
        return [tuple(range(len(operands)))]
    if optimize == "optimal" or (optimize is True and len(operands) <= EXACT):
        return _best(operands, output, extents, price)
    greedy = _greedy(operands, output, extents, price)
    if optimize == "greedy":
        return greedy
    found = [tuple(greedy), *_of_opt_einsum(operands, output, extents)]
    return min(found, key=lambda path: _seconds(operands, output, extents, price, path))


def _of_opt_einsum(operands: Sequence[str], output: str, extents: Mapping[str, int]) -> Iterator[Path]:
    """The order that opt_einsum finds, if it is installed."""
    try:
        from opt_einsum import contract_path
    except ImportError:
        return
    shapes = [tuple(extents[letter] for letter in letters) for letters in operands]
    yield tuple(map(tuple, contract_path(f"{','.join(operands)}->{output}", *shapes, shapes=True)[0]))


def _seconds(operands: Sequence[str], output: str, extents: Mapping[str, int], price: Price, path: Path) -> float:
    """The price of all products of an order."""
    values, total = list(operands), 0.0
    for taken in path:
        terms = [values[place] for place in taken]
        values = [letters for place, letters in enumerate(values) if place not in taken]
        result = _distinct("".join(terms), (output + "".join(values)).__contains__)
        moved = sum(_elements(letters, extents) for letters in (*terms, result))
        total += price(_elements(_distinct("".join(terms)), extents), moved)
        values.append(result)
    return total


def _elements(letters: str, extents: Mapping[str, int]) -> float:
    return float(prod(extents[letter] for letter in letters))


def _distinct(letters: str, kept: Callable[[str], bool] = lambda _: True) -> str:
    return "".join(filter(kept, dict.fromkeys(letters)))


def _best(operands: Sequence[str], output: str, extents: Mapping[str, int], price: Price) -> Pairs:
    """The pairs of the least time. Sets of operands, and of indices, are the bits of integers."""
    bit = {letter: 1 << n for n, letter in enumerate(dict.fromkeys("".join(operands)))}

    @cache
    def elements(indices: int) -> float:
        return float(prod(extents[letter] for letter, own in bit.items() if indices & own))

    def union(subset: int) -> int:
        found = 0
        for n, letters in enumerate(operands):
            if subset >> n & 1:
                for letter in letters:
                    found |= bit[letter]
        return found

    every = (1 << len(operands)) - 1
    needed = sum(bit[letter] for letter in output)
    left_over = [union(subset) & (needed | union(every ^ subset)) for subset in range(every + 1)]
    seconds = [0.0] * (every + 1)
    halves = [0] * (every + 1)
    for subset in range(1, every + 1):
        first = subset & -subset
        if subset == first:
            continue
        best, half = float("inf"), 0
        part = (subset - 1) & subset
        while part:
            if part & first:
                other = subset ^ part
                a, b = left_over[part], left_over[other]
                moved = elements(a) + elements(b) + elements(left_over[subset])
                total = seconds[part] + seconds[other] + price(elements(a | b), moved)
                if total < best:
                    best, half = total, part
            part = (part - 1) & subset
        seconds[subset], halves[subset] = best, half
    return _as_pairs(every, halves, len(operands))


def _as_pairs(every: int, halves: Sequence[int], count: int) -> Pairs:
    """The products of a tree of subsets, from its leaves up."""
    listed = [1 << n for n in range(count)]
    pairs: Pairs = []

    def multiply(subset: int) -> None:
        half = halves[subset]
        if not half:
            return
        both = (half, subset ^ half)
        for part in both:
            multiply(part)
        pairs.append((listed.index(both[0]), listed.index(both[1])))
        for part in both:
            listed.remove(part)
        listed.append(subset)

    multiply(every)
    return pairs


def _greedy(operands: Sequence[str], output: str, extents: Mapping[str, int], price: Price) -> Pairs:
    """Pair by pair, those whose result is smallest beside what it replaces, and of these the fastest."""
    values, pairs = list(operands), []

    def result(pair: tuple[int, int]) -> str:
        rest = output + "".join(letters for place, letters in enumerate(values) if place not in pair)
        return _distinct(values[pair[0]] + values[pair[1]], lambda letter: letter in rest)

    def cost(pair: tuple[int, int]) -> tuple[float, float]:
        both, new = [values[place] for place in pair], _elements(result(pair), extents)
        replaced = sum(_elements(letters, extents) for letters in both)
        return new - replaced, price(_elements(_distinct("".join(both)), extents), new + replaced)

    while len(values) > 1:
        pair = min(combinations(range(len(values)), 2), key=cost)
        pairs.append(pair)
        values = [*(letters for place, letters in enumerate(values) if place not in pair), result(pair)]
    return pairs
