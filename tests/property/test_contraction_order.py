"""The order of products in an einsum of several operands, against all orders."""

from __future__ import annotations

from itertools import combinations
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from poly.frontends import contraction_order as orders
from poly.frontends.contraction_order import OrderedProduct, contraction_order

EXTENTS = dict(zip("abcdef", (2, 3, 5, 7, 11, 40), strict=True))


def price(multiply_adds: float, elements: float) -> float:
    return multiply_adds + 3 * elements


def cost(terms: list[str], output: str) -> float:
    letters = set("".join(terms))
    moved = sum(prod(EXTENTS[x] for x in set(term)) for term in (*terms, output))
    return price(prod(EXTENTS[x] for x in letters), moved)


def total(operands: list[str], output: str, steps: list[OrderedProduct]) -> float:
    """The price of the products of two, each of whose values is used once."""
    values, left = list(operands), set(range(len(operands)))
    found = 0.0
    for step in steps:
        assert left.issuperset(step.values)
        left -= set(step.values)
        terms = [values[place] for place in step.values]
        rest = "".join(values[place] for place in left)
        assert set(step.output) == {x for x in "".join(terms) if x in output or x in rest}
        found += cost(terms, step.output) if len(terms) == 2 else 0
        left.add(len(values))
        values.append(step.output)
    assert len(left) == 1
    assert steps[-1].output == output
    return found


def least(terms: tuple[str, ...], output: str) -> float:
    """The least price of all orders, one after the other."""
    if len(terms) == 1:
        return 0.0
    found = []
    for pair in combinations(range(len(terms)), 2):
        rest = tuple(term for place, term in enumerate(terms) if place not in pair)
        both = [terms[place] for place in pair]
        result = "".join(x for x in dict.fromkeys("".join(both)) if x in output or x in "".join(rest))
        found.append(cost(both, result) + least((*rest, result), output))
    return min(found)


terms = st.text(st.sampled_from("abcdef"), min_size=1, max_size=3).map(lambda text: "".join(dict.fromkeys(text)))


@settings(deadline=None, max_examples=60)
@given(st.lists(terms, min_size=3, max_size=5), st.data())
def test_no_order_is_cheaper(operands: list[str], data: st.DataObject) -> None:
    letters = sorted(set("".join(operands)))
    output = "".join(x for x in letters if data.draw(st.booleans(), label=x))
    steps = contraction_order(operands, output, EXTENTS, price)
    summed = ["".join(x for x in term if x in output or sum(x in o for o in operands) > 1) for term in operands]
    expected = least(tuple(summed), output)
    assert abs(total(operands, output, steps) - expected) <= 1e-9 * expected


@settings(deadline=None, max_examples=30)
@given(st.lists(terms, min_size=orders.EXACT + 1, max_size=orders.EXACT + 3))
def test_many_operands_are_each_used_once(operands: list[str]) -> None:
    output = "".join(sorted(set(operands[0])))
    assert total(operands, output, contraction_order(operands, output, EXTENTS, price)) > 0
