"""The default schedule of a nest: microkernels for contractions, dependence-driven rules for all other loops.

    for i: for j:                         for i: for j:
      C[i, j] = 0                           C[i, j] = 0          (absorbed by the kernel's first visit)
      for k:                      ->      …tiles, copies and the microkernel of the second statement
        C[i, j] += A[i, k] * B[k, j]

What follows a contraction runs on each of its register tiles where it can. Factorisations run in blocks, so that most
of their work is a contraction. What passes a large local on runs in blocks of rows together with what reads it. Other
loops are interchanged for contiguous accesses, fused, parallelised, tiled over time steps and vectorised, by every rule
that applies, at its usual values. Each transformation is a step of a schedule and is checked.

Where it isn't plain that a rule pays off, the model weighs what it makes against the loops without it: microkernels,
jammed loops, sums that look ahead or run in blocks, locals that are computed again, private copies of arrays,
recurrences side by side or in sections, and threads that start again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from microkernels.opencl_isa import DeviceISA, is_gpu
from poly.autoschedule.rules.attempt import has_loops, lowers
from poly.autoschedule.rules.blocked_sums import blocked_sums
from poly.autoschedule.rules.blocks import lines
from poly.autoschedule.rules.factorisations import usual_factorisation
from poly.autoschedule.rules.form import Form, usual_parts
from poly.autoschedule.rules.grain import in_groups
from poly.autoschedule.rules.interiors import PAYS
from poly.autoschedule.rules.jam import usual_jam
from poly.autoschedule.rules.lanes import in_lanes
from poly.autoschedule.rules.microkernels import (
    beyond_boxes,
    contracted,
    with_interiors,
    with_other_loops,
    with_turned_tiles,
)
from poly.autoschedule.rules.operands import materialized
from poly.autoschedule.rules.orders import improved, is_strided, permuted, usual_orders
from poly.autoschedule.rules.privatization import privatized
from poly.autoschedule.rules.register_tiles import register_tiles
from poly.autoschedule.rules.relayout import relaid
from poly.autoschedule.rules.row_blocks import passes_locals, row_blocked
from poly.autoschedule.rules.rows import in_tiles_of_rows
from poly.autoschedule.rules.sections import sectioned
from poly.autoschedule.rules.sharing import (
    in_shares,
    parallel_loops,
    starts_inside,
    summed_apart,
    unshared,
    usual_sharing,
)
from poly.autoschedule.rules.time_tiles import usual_time_tiles
from poly.autoschedule.rules.together import together
from poly.autoschedule.rules.wavefront import interleaved
from poly.errors import CostWarning, ScheduleError, warn
from poly.ir.budget import TooCostly, kept, limited
from poly.ir.nest import Nest
from poly.ir.strides import extent
from poly.ir.tree import Micro, bands, walk
from poly.model.core import Target
from poly.model.price import price
from poly.model.work import LOAD
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Parallel, Unroll, Vectorize

AFFORDABLE = 12_000_000
"""The number of isl operations allowed for choosing a schedule: a few seconds."""

LATEST = 64
"""The default schedules that are kept for those who ask again."""

RESERVE = 50
"""The percentage of these operations that is kept for what follows when forms are compared."""


def default_schedule(nest: Nest, target: Target) -> Schedule:
    """The schedule that poly.compile uses if none is given; nothing is measured.

    If finding one, or its loops, would take isl too long, it is the loops as written, with a CostWarning.
    """
    made = default_form(nest, target).tried
    _latest(nest, target)[:] = [(nest, made)]
    return made


def known_default(nest: Nest, target: Target) -> Schedule:
    """The same outside of any budget: not made again if it was one of the last ones.

    A compilation makes its own, as what is left of its budget must not depend on calls before.
    """
    made = next((made for own, made in _latest(nest, target) if own is nest), None)
    return made or default_schedule(nest, target)


@lru_cache(LATEST)
def _latest(nest: Nest, target: Target) -> list[tuple[Nest, Schedule]]:
    """Where the last default schedules are kept, with the nests themselves: equal ones may come from other texts."""
    return []


def default_form(nest: Nest, target: Target) -> Form:
    """The form whose usual point is the default schedule: the first whose loops are found.

    It is what the model likes best, or by the rules for plain loops, or the loops as written.
    """
    for rule in (_chosen,) if is_gpu(target.isa) else (_chosen, usual_loops):
        with suppress(TooCostly):
            with limited(AFFORDABLE):
                made = rule(nest, target)
            if lowers(made.tried, target.isa):
                return made
    problem = f"the loops of {nest.name} run as they are written: a better schedule takes too much work to find"
    warn(f"{problem}. Remedy: give one, poly.compile(…, schedule=…).", CostWarning)
    return Form.fixed((("order", "as written"), ("innermost", "as written")), schedule(nest))


def with_ready(
    nest: Nest, array: str, usual: Schedule, pack: Callable[[Schedule], Schedule], target: Target
) -> Schedule:
    """The default schedule where each call finds an operand packed; `usual` is that of the usual microkernels.

    `pack` makes a schedule that packs it before all loops, or raises ScheduleError.
    """
    best = usual
    with suppress(TooCostly), limited(AFFORDABLE):
        least = expectation(usual, target, array).seconds
        for other, pays in _other_kernels(nest, target):
            with suppress(ScheduleError):
                made = pack(other.tried)
                seconds = expectation(made, target, array).seconds
                if seconds < least * pays:
                    best, least = made, seconds
    return best


def _chosen(nest: Nest, target: Target) -> Form:
    if is_gpu(target.isa):
        from poly.autoschedule.rules.gpu import usual_form  # a CPU's schedules need no rule for GPUs

        return usual_form(nest, target.isa)
    usual = _usual(nest, target)
    usual = _spared(_on_cpus, target, _with_operands, usual, nest, target) or usual
    return _spared(_on_cpus, target, _with_private_copies, usual, nest, target) or usual


Made = TypeVar("Made")


def _spared(rule: Callable[..., Made | None], *arguments: Any) -> Made | None:
    """What a rule makes; None if it takes too much work to find, beside what is kept for what follows."""
    with suppress(TooCostly), limited(AFFORDABLE, reserve=RESERVE):
        return rule(*arguments)
    return None


def _on_cpus(target: Target, rule: Callable[..., Made | None], *arguments: Any) -> Made | None:
    """What a rule for CPUs makes; None on a device."""
    return None if isinstance(target.isa, DeviceISA) else rule(*arguments)


def _with_operands(usual: Form, nest: Nest, target: Target) -> Form | None:
    """The cheaper form of the usual one and that with operands of contractions computed before; None if none are."""
    made = materialized(nest)
    if made is None:
        return None
    return _cheapest((usual, _usual(made.nest, target).behind(made, ("operands", "computed before"))), target)


def _with_private_copies(usual: Form, nest: Nest, target: Target) -> Form | None:
    """The cheaper form of the usual one and that with private copies of arrays; None if there is nothing to copy."""
    made = privatized(nest)
    if made is None:
        return None
    return _cheapest((usual, _usual(made.nest, target).behind(made, ("copies", "private"))), target)


def _usual(nest: Nest, target: Target) -> Form:
    made = contracted(nest, target)
    jam = None if has_outer_product(made) else _jammed(nest, target)
    if not made.steps:
        return _plain(usual_loops(nest, target), jam, target)
    kernels, expected = Form.fixed(KERNELS, made), expectation(made, target)
    blocked = _spared(_in_row_blocks, nest, target) if passes_locals(made) else None
    if blocked is not None and (within := expectation(blocked, target)).seconds <= expected.seconds * IN_BLOCKS:
        kernels, expected = Form.fixed(ROW_BLOCKS, blocked), within
    for other, pays in _other_kernels(nest, target) if kernels.traits == KERNELS else ():
        within = expectation(other.tried, target)
        if within.seconds < expected.seconds * pays:
            kernels, expected = other, within
    if jam is None and expected.seconds <= PLAIN_STEP * expected.least / target.threads:
        return kernels
    plain = _plain(usual_loops(nest, target), jam, target)
    jam = jam or _jammed(nest, target)
    if expectation(plain.tried, target).seconds >= expected.seconds:
        return _surely(jam, kernels, target) if jam is not None and is_narrow(jam.tried, target) else kernels
    return _plain(plain, jam, target)


def is_narrow(made: Schedule, target: Target) -> bool:
    """Whether loops in lanes have fewer iterations than a vector has, so that no register tile is full either."""
    spans = [extent(made.nest, band) for band in bands(made.tree) if band.vectorize]
    lanes = max(target.isa.lanes(array.dtype) for array in made.nest.arrays)
    return any(span is not None and span < lanes for span in spans)


def _plain(loops: Form, jam: Form | None, target: Target) -> Form:
    """The form without microkernels: of loops by the rules, or of jammed ones."""
    return loops if jam is None else _cheapest((jam, loops), target)


def _jammed(nest: Nest, target: Target) -> Form | None:
    """The form with jammed loops; None if it is none, or on a device."""
    return _on_cpus(target, usual_jam, nest, target)


def has_outer_product(made: Schedule) -> bool:
    """Whether a schedule has a microkernel with a register tile."""
    return any(isinstance(node, Micro) and not node.kernel.in_place for node in walk(made.tree))


def _in_row_blocks(nest: Nest, target: Target) -> Schedule | None:
    """The schedule in common blocks of rows; None if there is none, or isl does not find its loops."""
    blocked = row_blocked(nest, target)
    made = blocked and with_other_loops(blocked, target)
    if made is None or not (nest.sizes and beyond_boxes(made)) or has_loops(made, target.isa):
        return made
    return None


def _other_kernels(nest: Nest, target: Target) -> Iterator[tuple[Form, float]]:
    """Other forms with microkernels, and how much of the time of the usual ones each may be expected to take.

    None on a device, or that takes too much work to find.
    """
    for traits, rule, pays in ((INTERIORS, with_interiors, PAYS), (TURNED, with_turned_tiles, 1.0)):
        made = _spared(_on_cpus, target, rule, nest, target)
        if made is not None:
            yield Form.fixed(traits, made), pays


KERNELS = (("microkernels", "by the model"),)
"""The traits of a default schedule with microkernels; the forms in rules/microkernels.py leave its sizes open."""

ROW_BLOCKS = (("microkernels", "in common blocks of rows"),)
"""The same of contractions that run block by block with what stands before and behind them."""

INTERIORS = (("microkernels", "with interiors apart"),)
"""The same of contractions whose borders are apart."""

TURNED = (("microkernels", "turned before results are stored"),)
"""The same with register tiles across the results' contiguous loops."""

KNOWN = 32
"""The expectations that are kept: the best of some forms is compared with others again."""

NEARLY = 1.01
"""How much longer a schedule with less memory or fewer loops may be expected to take: the times are no more exact."""

CLEAR = 0.9
"""The part of the time of other orders that lanes which go through inner loops together may be expected to take: they
go from row to row in short pieces, which the model does not know to be slower.
"""

IN_BLOCKS = 1.15
"""The same of common blocks of rows, whose locals the model takes to have memory for all rows at once."""

SURE = 2 / 3
"""How much of the time of a whole loop its sections may be expected to take, or of a recurrence several side by side,
or of microkernels jammed loops: what a core does of one iteration while another waits is known within a factor of 1.5.
"""

PLAIN_STEP = LOAD
"""The least time of a multiply-add of whole vectors in plain loops, in multiply-adds: one operand is loaded, the other
may stay in a register."""


class Expected(NamedTuple):
    """Seconds of a call by the model, and those in which one core would do one multiply-add for each instance."""

    seconds: float
    least: float


@kept(KNOWN)
def expectation(made: Schedule, target: Target, ready: str = "") -> Expected:
    """What the model expects of a schedule, with open sizes at assumed values; copies of `ready` are there already."""
    parts = usual_parts(made, target, ready)
    vectors = ((one, one.instances / target.isa.lanes(one.dtype)) for one in parts.computed)
    return Expected(price(parts, target).seconds, sum(n * target.unit(one.dtype) for one, n in vectors))


def usual_loops(nest: Nest, target: Target) -> Form:
    """The form of loops without contractions: each legal rule at its usual values."""
    found = [_ordered(order, target) for order in _orders(nest, target)]
    columns = _spared(_on_cpus, target, _with_columns, nest, target)
    found += [] if columns is None else [columns]
    loops = _simplest(found, target) if len(found) > 1 else found[0]
    loops = _spared(_together, loops, nest, target) or loops
    return usual_factorisation(nest, target, loops) or loops


def _together(loops: Form, nest: Nest, target: Target) -> Form | None:
    """The form whose lanes go through inner loops together, if that is expected to pay off; None if not.

    At equal times it is better than lanes along the inner loops, which may be short.
    """
    made = _on_cpus(target, together, schedule(nest), target.isa)
    if made is None:
        return None
    form = _ordered(improved(Form.fixed((("order", "as written"), ("lanes", "together")), made)), target)
    seconds, least = (expectation(one.tried, target).seconds for one in (form, loops))
    reordered = any(not isinstance(step, Parallel | Unroll | Vectorize) for step in loops.tried.steps)
    return form if seconds <= (CLEAR if reordered else NEARLY) * least else None


def _orders(nest: Nest, target: Target) -> tuple[Form, ...]:
    """The orders of a nest's loops to weigh: the usual ones, and of strided loops the one that the model likes best.

    Sums over all results before may also be added in blocks.
    """
    first, *others = usual_orders(nest, target.caches.l2)
    sums = _on_cpus(target, blocked_sums, schedule(nest), target.isa)
    more = (
        None if sums is None else Form.fixed((("sums", "in blocks"),), sums),
        _spared(_best_order, first, target),
    )
    return (first, *others, *filter(None, more))


def _best_order(order: Form, target: Target) -> Form | None:
    """The permutation of strided loops that the model likes best; None if that is the order as it is."""
    best = _cheapest((order, *permuted(order)), target) if is_strided(order) else order
    return None if best is order else best


def _with_columns(nest: Nest, target: Target) -> Form | None:
    """The form with strips of contiguous columns."""
    made = relaid(nest, target)
    if made is None:
        return None
    form = Form.fixed((("strips", "of contiguous columns"),), made)
    return in_lanes(lines(form) or form)


def _ordered(order: Form, target: Target) -> Form:
    """The form of an order of loops with the rules for threads, tiles and what is inside these."""
    shared = _finished(_tiled_in_time(usual_sharing(order, target.threads), target), target)
    return _less_often_shared(order, shared, target) or shared


def _tiled_in_time(form: Form, target: Target, shared: bool = False) -> Form:
    """The form with the usual time tiles."""
    return usual_time_tiles(form, target, lambda tiled: _finished(tiled, target), shared)


def _finished(form: Form, target: Target) -> Form:
    """The form with the rules for what is inside its tiles, of which those for recurrences have to pay off.

    If it takes too much work to find out, recurrences run side by side.
    """
    for rule in (partial(register_tiles, isa=target.isa), lines):
        form = rule(form) or form
    form = _on_cpus(target, in_tiles_of_rows, form, target.caches, target.rates.rows) or form
    beside = interleaved(form)
    with suppress(TooCostly), limited(AFFORDABLE, reserve=RESERVE):
        sections = _on_cpus(target, sectioned, form, target.caches)
        if beside is None and sections is None:
            return in_groups(in_lanes(form), target.isa)
        best = in_lanes(form)
        if beside is not None:
            other = in_lanes(beside)
            best = _surely(other, best, target) if _is_written_out(beside) else _cheapest((best, other), target)
        return in_groups(best if sections is None else _surely(in_lanes(sections), best, target), target.isa)
    return in_groups(in_lanes(beside or form), target.isa)


def _is_written_out(beside: Form) -> bool:
    """Whether recurrences side by side are written out, and not in lanes."""
    return any(band.unroll > 1 for band in bands(beside.tried.tree))


def _surely(form: Form, other: Form, target: Target) -> Form:
    """The first form if it is expected to take much less time than the second, otherwise that one."""
    seconds, least = (expectation(one.tried, target).seconds for one in (form, other))
    return form if seconds <= SURE * least else other


def _cheapest(forms: Iterable[Form], target: Target) -> Form:
    """The form that is expected to take the least time; the first of equal ones."""
    return min(forms, key=lambda form: expectation(form.tried, target).seconds)


def _simplest(forms: Iterable[Form], target: Target) -> Form:
    """The form with the fewest loops among those that take hardly longer than the cheapest one."""
    times = [(expectation(form.tried, target).seconds, form) for form in forms]
    most = NEARLY * min(seconds for seconds, _ in times)
    return min((form for seconds, form in times if seconds <= most), key=lambda form: len(list(bands(form.tried.tree))))


def _less_often_shared(order: Form, shared: Form, target: Target) -> Form | None:
    """The cheapest form if threads start in each iteration of a loop, or never.

    They may start for each diagonal, or once for shares of an inner loop, or for blocks with sums of their own.

    None if only one form is legal, or it takes too much work to find others.
    """
    has_threads = bool(parallel_loops(shared.tried))
    if target.threads == 1 or isinstance(target.isa, DeviceISA) or (has_threads and not starts_inside(shared.tried)):
        return None
    with suppress(TooCostly), limited(AFFORDABLE, reserve=RESERVE):
        alone = unshared(order)
        tiled = _tiled_in_time(alone, target, shared=True)
        forms = (tiled,) if tiled is not alone else ()
        never = (_tiled_in_time(alone, target),) if has_threads else ()
        apart = filter(None, (way(order, target.threads) for way in (in_shares, summed_apart)))
        others = (_finished(form, target) for form in (*forms, *never, *apart))
        return _cheapest((shared, *others), target)
    return None
