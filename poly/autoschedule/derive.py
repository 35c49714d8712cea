"""`poly.space`: the space of a nest for a target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from microkernels.opencl_isa import DeviceISA, is_gpu
from poly.autoschedule.default import AFFORDABLE, KERNELS, ROW_BLOCKS, default_form
from poly.autoschedule.rules.blocks import blocks, lines
from poly.autoschedule.rules.factorisations import factorisations
from poly.autoschedule.rules.form import Form, Traits, always, with_known_sizes
from poly.autoschedule.rules.gpu.contraction import group_structure
from poly.autoschedule.rules.gpu.mapped import gpu_loop_structures
from poly.autoschedule.rules.grain import in_groups
from poly.autoschedule.rules.lanes import in_lanes, unrolled
from poly.autoschedule.rules.microkernels import Product, contraction_family, heaviest_product
from poly.autoschedule.rules.orders import orders
from poly.autoschedule.rules.own import own_forms
from poly.autoschedule.rules.register_tiles import register_tiles
from poly.autoschedule.rules.rows import in_tiles_of_rows
from poly.autoschedule.rules.sharing import sharings
from poly.autoschedule.rules.time_tiles import time_tiles
from poly.autoschedule.rules.wavefront import interleaved
from poly.autoschedule.spaces.space import Family, Point, Space, Structure
from poly.checks import checked_flag, checked_sizes
from poly.ir.budget import CALL, TooCostly, limited
from poly.ir.nest import Nest, checked_nest
from poly.machine.target import parse
from poly.model.core import Target
from poly.model.gpu_loops import gpu_loop_cost
from poly.model.host import here, rates
from poly.names import check_sizes_meant


@limited(CALL)
def space(
    nest: Nest,
    *,
    target: str = "c",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    coarse: bool = False,
    **more: int,
) -> Space:
    """All schedules of a nest that a search may choose from, each legal by construction.

    Sizes are fixed by keyword (`M=512`) or as `sizes={"M": 512}`. `print` shows the structures and how many points they
    have, iteration yields every point, and `sample` a random selection. `coarse` thins the grids to some hundreds of
    points that can all be measured.

    Raises:
        SpecError: an unknown size, or an argument that is not a nest.
        TargetError: an unknown target, or one that cannot be used here.
        ArgumentError: an invalid number of threads, or a `coarse` that is not a bool.
    """
    checked_nest(nest)
    check_sizes_meant(more, nest.open_or_fixed, space)
    fixed = checked_sizes(sizes, more)
    thin = checked_flag("coarse", coarse)
    goal = parse(target)
    count = goal.threads(threads)
    known = here(goal.isa, count, rates(goal.isa, count))
    made = derive(nest.with_sizes(fixed) if fixed else nest, known, thin)
    return replace(made, device=goal.device)


def derive(nest: Nest, target: Target, coarse: bool = False) -> Space:
    """The space of a nest for any target, in particular one of another machine."""
    family = _gpu_family(nest, target.isa, target) if is_gpu(target.isa) else _cpu_family(nest, target, coarse)
    own = tuple(form.structure(target, {}) for form in own_forms(nest, target))
    structures, again = (*family.structures, *own), partial(derive, nest, target, coarse)
    return Space(nest, target.isa, target.threads, structures, family.choice, steady=family.steady, again=again)


def _cpu_family(nest: Nest, target: Target, coarse: bool) -> Family:
    """The tilings of a contraction, or the forms of loops; both where the default schedule prefers loops without it."""
    tilings = contraction_family(nest, target, coarse)
    if tilings is not None:
        default = default_form(nest, target)
        if default.traits == KERNELS:
            return tilings
        if default.traits == ROW_BLOCKS:
            structures = (default.structure(target, {}), *tilings.structures)
            steady = tuple(replace(point, structure=point.structure + 1) for point in tilings.steady)
            return Family(structures, Point(0, default.at()), steady)
    loops = loop_structures(nest, target)
    return replace(loops, structures=(*loops.structures, *tilings.structures)) if tilings else loops


def loop_structures(nest: Nest, target: Target) -> Family:
    """The structures of a nest's loops, which are all forms that the rules make; the choice is the default schedule.

    order       of the loops, fused or not
    share       which loop is parallel
    blocks      none, of loops, of cache lines, of time steps, in registers
    or          a microkernel for a matrix-vector product, a non-rectangular contraction or blocks of a factorisation

    Forms too costly for isl are left out.
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
    structures = tuple(form.structure(target, {}) for form in found.values())
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
    rows = in_tiles_of_rows(form, target.caches, target.rates.rows)
    special = (register_tiles(form, target.isa), rows, lines(form), interleaved(form), *time_tiles(form, target))
    yield simple
    yield from (in_lanes(made) for made in special if made is not None)
    written, cut = unrolled(simple), blocks(form)
    if written is not None:
        yield written
    if cut is not None:
        yield in_lanes(cut)


def _gpu_family(nest: Nest, isa: DeviceISA, target: Target) -> Family:
    """The structures of a nest; the choice is the default schedule.

    If that has a microkernel for a contraction other than the heaviest, it becomes a structure without knobs.
    """
    default = default_form(nest, target)
    made, group = default.tried, group_structure(nest, isa, default.tried)
    found = [*([group] if group else []), *gpu_loop_structures(nest, isa)]
    structures = [structure for structure, _ in found]
    traits = [structure.traits for structure in structures]
    values = found[traits.index(default.traits)][1] if default.traits in traits else None
    if values is not None:
        number = traits.index(default.traits)
        return Family(tuple(structures), Point(number, structures[number].at(values)))
    cost = gpu_loop_cost(with_known_sizes(made, {}), isa)
    alone = Structure((("order", "by default"),), (), always, lambda values: made, lambda values: cost)
    return Family((*structures, alone), Point(len(structures), ()))
