"""Loop orders to start from: as written, contiguous, fused, and permutations of the heaviest loops."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.contiguous import contiguous
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.fusion import fused
from poly.autoschedule.rules.right_looking import right_looking
from poly.autoschedule.rules.shapes import Chain, heaviest
from poly.ir.nest import Nest
from poly.ir.paths import paths
from poly.ir.strides import advanced_iterator, strided_cost
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Order

MOST = 6
"""Orders of one chain that get a structure: all of them for three loops, the most contiguous ones for more."""

PERMUTED = 7
"""The innermost loops of a chain that are permuted: more would have too many orders."""


def orders(nest: Nest) -> Iterator[Form]:
    """The orders and fusions of a nest's loops, the loops as written first."""
    found = _improved(nest)
    yield from found
    yield from _permuted(found[-1])


def usual_order(nest: Nest) -> Form:
    """The loops made contiguous and fused as far as that is legal."""
    return _improved(nest)[-1]


def _improved(nest: Nest) -> list[Form]:
    """The loops as written, then made contiguous, then fused, omitting what changes nothing."""
    written = schedule(nest)
    found = [Form.fixed((("order", "as written"),), written)]
    natural = right_looking(contiguous(written))
    if natural is not written:
        found.append(Form.fixed((("order", "contiguous"),), natural))
    joined = fused(natural)
    if joined is not natural:
        found.append(Form.fixed((*found[-1].traits, ("loops", "fused")), joined))
    return found


def _permuted(form: Form) -> Iterator[Form]:
    """The legal orders of the heaviest chain of loops, except its current one."""
    made = form.tried
    chain = heaviest(made)
    if chain is None or len(chain.bands) < 2:
        return
    names = tuple(band.name for band in chain.bands)
    costs = {name: _strided(made, chain, name) for name in names}
    outer, inner = names[:-PERMUTED], names[-PERMUTED:]
    others = ((*outer, *order) for order in permutations(inner) if order != inner)
    ranked = sorted(others, key=lambda order: [costs[name] for name in reversed(order)])
    for order in ranked[: MOST - 1]:
        turned = attempt(made, [Order(order)])
        if turned is not None:
            rest = [trait for trait in form.traits if trait[0] != "order"]
            yield Form.fixed((("order", " ".join(order)), *rest), turned)


def _strided(made: Schedule, chain: Chain, loop: str) -> int:
    """The cost of the accesses if this loop is the innermost."""
    found = paths(made.tree)
    total = 0
    for name in chain.statements:
        statement = made.nest.statement(name)
        iterator = advanced_iterator(statement, found[name], loop)
        total += strided_cost(made.nest, statement, iterator) if iterator else 0
    return total
