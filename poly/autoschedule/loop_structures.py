"""The space of a nest without a contraction over a box: all forms that the rules make.

    order       of the loops, fused or not
    share       which loop is parallel
    blocks      none, of loops, of cache lines, of time steps, in registers
    or          a microkernel for a matrix-vector product, a non-rectangular contraction or blocks of a factorisation

The schedule that `poly.compile` uses without measurements is the usual point of one of these forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from poly.autoschedule.default import AFFORDABLE, KERNELS, default_form
from poly.autoschedule.rules.blocks import blocks, lines
from poly.autoschedule.rules.factorisations import factorisations
from poly.autoschedule.rules.form import Form, Traits
from poly.autoschedule.rules.grain import in_groups
from poly.autoschedule.rules.lanes import in_lanes, unrolled
from poly.autoschedule.rules.microkernels import Product, heaviest_product
from poly.autoschedule.rules.orders import orders
from poly.autoschedule.rules.register_tiles import register_tiles
from poly.autoschedule.rules.sharing import sharings
from poly.autoschedule.rules.time_tiles import time_tiles
from poly.autoschedule.rules.wavefront import interleaved
from poly.autoschedule.spaces.space import Family, Point
from poly.ir.budget import TooCostly, limited
from poly.ir.nest import Nest
from poly.model.core import Target


def loop_structures(nest: Nest, target: Target, sizes: Mapping[str, int] | None = None) -> Family:
    """The structures of a nest's loops; the choice is the default schedule.

    `sizes` are values of the nest's open sizes, at which costs are predicted. Forms too costly for isl are left out.
    """
    default = default_form(nest, target)
    found: dict[Traits, Form] = {}
    with suppress(TooCostly), limited(AFFORDABLE):
        product = heaviest_product(nest, target)
        if product is not None and default.traits == KERNELS:
            default = product.usual or default
        for form in all_forms(nest, target, product):
            found.setdefault(form.traits, form)
    found[default.traits] = default
    structures = tuple(form.structure(target, sizes or {}) for form in found.values())
    return Family(structures, Point(list(found).index(default.traits), default.at()))


def all_forms(nest: Nest, target: Target, product: Product | None) -> Iterator[Form]:
    """All forms: the loops as written first, forms with a microkernel for `product` or a factorisation last."""
    for order in orders(nest, target.caches.l2):
        for shared in sharings(order, target.threads):
            yield from (in_groups(form, target.isa) for form in _forms_of(shared, target))
    yield from factorisations(nest, target) if product is None else product.forms()


def _forms_of(form: Form, target: Target) -> Iterator[Form]:
    """The vectorised forms of one order of loops."""
    simple = in_lanes(form)
    special = (register_tiles(form, target.isa), lines(form), interleaved(form), *time_tiles(form, target))
    yield simple
    yield from (in_lanes(made) for made in special if made is not None)
    written, cut = unrolled(simple), blocks(form)
    if written is not None:
        yield written
    if cut is not None:
        yield in_lanes(cut)
