"""Loop orders to start from: as written, contiguous, fused, permuted, and these without locals that loops carry."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.contiguous import contiguous
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.fusion import fused
from poly.autoschedule.rules.pivots import right_looking
from poly.autoschedule.rules.shapes import Chain, heaviest
from poly.autoschedule.rules.strips import in_strips
from poly.autoschedule.rules.substitution import substituted
from poly.ir.nest import Nest
from poly.ir.paths import paths
from poly.ir.strides import STRIDED, advanced_iterator, strided_cost
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Order

MOST = 6
"""Orders of one chain that get a structure: all of them for three loops, the most contiguous ones for more."""

PERMUTED = 7
"""The innermost loops of a chain that are permuted: more would have too many orders."""


def orders(nest: Nest, cache: int) -> Iterator[Form]:
    """The orders and fusions of a nest's loops, the loops as written first; strips fit in a cache of so many bytes."""
    for start in _starts(nest, cache):
        found = _improved(start)
        yield from found
        yield from permuted(found[-1])


def usual_orders(nest: Nest, cache: int) -> tuple[Form, ...]:
    """The loops made contiguous and fused where that is legal.

    If sums look ahead, loops may do without locals that they carry, or a loop may be in strips for a cache of so many
    bytes, there are forms with that and without.
    """
    return tuple(order for start in _starts(nest, cache) for order in _usual(start))


def _starts(nest: Nest, cache: int) -> Iterator[Form]:
    """The loops as written, without locals that they carry, and with a loop in strips that fit in a cache."""
    written = Form.fixed((("order", "as written"),), schedule(nest))
    yield written
    made = substituted(written.tried)
    if made is not None:
        yield Form.fixed((*written.traits, ("carried locals", "computed again")), made)
    for loop, made in in_strips(written.tried, cache):
        yield Form.fixed((*written.traits, ("strips", loop)), made)


def _usual(start: Form) -> tuple[Form, ...]:
    looking = _improved(start)[-1]
    if dict(looking.traits).get("sums") is None:
        return (looking,)
    return looking, _improved(start, ahead=False)[-1]


def improved(start: Form) -> Form:
    """The loops made contiguous and fused where that is legal."""
    return _improved(start, ahead=False)[-1]


def _improved(start: Form, ahead: bool = True) -> list[Form]:
    """The loops, then made contiguous, then looking ahead, then fused, omitting what changes nothing."""
    found = [start]
    rules = ((contiguous, ("order", "contiguous")), (right_looking, ("sums", "ahead")), (fused, ("loops", "fused")))
    for rule, trait in rules:
        before = found[-1]
        made = rule(before.tried) if ahead or rule is not right_looking else before.tried
        if made is not before.tried:
            kept = tuple(one for one in before.traits if one[0] != trait[0])
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
