"""Loop orders to start from: as written, contiguous, fused, and permutations of the heaviest loops."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.contiguous import contiguous
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.fusion import fused
from poly.autoschedule.rules.pivots import right_looking
from poly.autoschedule.rules.shapes import Chain, heaviest
from poly.ir.nest import Nest
from poly.ir.paths import paths
from poly.ir.strides import STRIDED, advanced_iterator, strided_cost
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
    yield from permuted(found[-1])


def usual_orders(nest: Nest) -> tuple[Form, ...]:
    """The loops made contiguous and fused where that is legal; with sums that look ahead and without, if any do."""
    looking = _improved(nest)[-1]
    if dict(looking.traits).get("sums") is None:
        return (looking,)
    return looking, _improved(nest, ahead=False)[-1]


def _improved(nest: Nest, ahead: bool = True) -> list[Form]:
    """The loops as written, then made contiguous, then looking ahead, then fused, omitting what changes nothing."""
    found = [Form.fixed((("order", "as written"),), schedule(nest))]
    rules = ((contiguous, ("order", "contiguous")), (right_looking, ("sums", "ahead")), (fused, ("loops", "fused")))
    for rule, trait in rules:
        before = found[-1]
        made = rule(before.tried) if ahead or rule is not right_looking else before.tried
        if made is not before.tried:
            kept = () if trait[0] == "order" else before.traits
            found.append(Form.fixed((*kept, trait), made))
    return found


def permuted(form: Form) -> Iterator[Form]:
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


def is_strided(form: Form) -> bool:
    """Whether the innermost loop of the heaviest chain jumps through memory, so that another order may move less."""
    chain = heaviest(form.tried)
    return chain is not None and len(chain.bands) > 1 and _strided(form.tried, chain, chain.bands[-1].name) >= STRIDED


def _strided(made: Schedule, chain: Chain, loop: str) -> int:
    """The cost of the accesses if this loop is the innermost."""
    found = paths(made.tree)
    total = 0
    for name in chain.statements:
        statement = made.nest.statement(name)
        iterator = advanced_iterator(statement, found[name], loop)
        total += strided_cost(made.nest, statement, iterator) if iterator else 0
    return total
