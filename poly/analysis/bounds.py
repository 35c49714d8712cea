"""Proof that a nest's accesses stay inside their arrays, for all sizes at once, before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from random import Random

import islpy as isl

from codegen.ir.expr import Load
from codegen.ir.integer import lookups
from codegen.ir.promotion import LARGEST_INDEX
from microkernels.errors import shown
from poly.analysis.values import ValueFlow
from poly.errors import SpecError
from poly.ir.budget import QUESTION, TooCostly, limited
from poly.ir.guards import unconditional
from poly.ir.nest import Array, Nest, Statement
from poly.ir.sets import at_least, first_point, parameters
from poly.ir.strides import accesses

PIECES = 4
"""A domain with more pieces is first checked without its conditions."""
PROBES = 64
"""Sizes at which conditions on them are compared."""


def check(nest: Nest) -> Nest:
    """Prove that each access of each iteration is inside its array, and return the nest that is safe to run.

    An iteration that accesses an array without elements, at sizes of 0, is not an error: it does not run. The result's
    domains leave out such iterations, and those that would read in a local what these compute; if there are none, the
    result is the nest itself.

        for i in range(M):                         for i in range(M):
            t = A[i, 0]       for A: f32[M, N]         if N >= 1: t = A[i, 0]
            x[i] = t                                   if N >= 1: x[i] = t

    Raises:
        SpecError: the sizes that have values violate what the nest asserts, an array is larger than any memory, or an
            access is outside its array. The message names the access, the smallest sizes and the first iteration.
    """
    if nest.context.is_empty():
        given = ", ".join(f"{name} = {value}" for name, value in nest.fixed)
        raise SpecError(f"{nest.name} asserts conditions that {given} violates.\nGive sizes that satisfy them.")
    _check_room(nest)
    statements = tuple(_checked(statement, nest) for statement in nest.statements)
    if all(new is old for new, old in zip(statements, nest.statements, strict=True)):
        return nest
    try:
        with limited(QUESTION, apart=True):
            return replace(nest, statements=_without_readers(nest, statements, ValueFlow(nest)))
    except TooCostly:
        return replace(nest, statements=_without_readers(nest, statements, None))


def inside(nest: Nest) -> Nest:
    """The nest at those sizes alone at which each access of each iteration is inside its array.

    Where an access leaves its array at some sizes, the context gets one condition that excludes them, of those that
    describe them the one that leaves most sizes. Loops in C promise that their accesses are inside.

        for i in range(n):           ->      for i in range(n):             if n <= 100
            x[i] = 0                             x[i] = 0                   for x: f64[100]
    """
    context = nest.context
    for statement in nest.statements:
        for access in accesses(statement):
            array = nest.array(access.array)
            if array.kind == "scalar":
                continue
            wrong = _outside(statement, access, array, nest).intersect_params(context).params()
            for part in wrong.remove_divs().get_basic_sets():
                context = _without(context, part, nest.sizes)
    if context.is_equal(nest.context):
        return nest
    return replace(nest, context=context.coalesce())


def _without_readers(nest: Nest, statements: Sequence[Statement], flow: ValueFlow | None) -> tuple[Statement, ...]:
    """Statements that lack some iterations of a nest, without what depends on these by locals.

    A recurrence would go on from iteration to iteration: those go at once that read an element which others that are
    gone would have written, and if there are still more, all with these sizes. Without the flow, these go at first.
    """
    pairs = zip(statements, nest.statements, strict=True)
    gone = {old.name: old.domain.subtract(new.domain) for new, old in pairs if new is not old}
    todo, times = [*gone], Counter[str]()
    left = {s.name: s for s in statements}
    while todo:
        writer = nest.statement(todo.pop())
        if nest.array(writer.target.array).kind != "local":
            continue
        for reader, load in _readers(nest, writer.target.array):
            lost, before = gone[writer.name], gone.get(reader.name)
            found = _reading(reader, load, lost, flow)
            if found.is_empty() or (before is not None and found.is_subset(before)):
                continue
            more = (found, _of_elements(reader, load, writer, lost), _at_once(reader, lost))[min(times[reader.name], 2)]
            times[reader.name] += 1
            gone[reader.name] = more if before is None else before.union(more)
            rest = reader.domain.intersect_params(nest.context).subtract(gone[reader.name]).coalesce()
            left[reader.name] = replace(reader, domain=rest.gist_params(nest.context).coalesce())
            todo.append(reader.name)
    return tuple(left.values())


def _readers(nest: Nest, array: str) -> Iterator[tuple[Statement, Load]]:
    """The statements that read an array, and their reads."""
    for statement in nest.statements:
        yield from ((statement, load) for load in dict.fromkeys(statement.reads) if load.array == array)


def _reading(reader: Statement, load: Load, gone: isl.Set, flow: ValueFlow | None) -> isl.Set:
    """The iterations that read what those of a writer that are gone would have written."""
    if flow is None:
        return _at_once(reader, gone)
    sources = flow.read(reader.name, load)
    assert sources is not None, "nothing passes through copies here"
    found = sources.written.intersect_range(isl.UnionSet.from_set(gone)).domain()
    return isl.Set.empty(reader.domain.get_space()) if found.is_empty() else isl.Set.from_union_set(found)


def _of_elements(reader: Statement, load: Load, writer: Statement, gone: isl.Set) -> isl.Set:
    """The iterations that read an element, at any time, which those that are gone would have written."""
    elements = writer.relation(writer.target).intersect_domain(gone).range()
    return _at_once(reader, gone).intersect(reader.relation(load).intersect_range(elements).domain())


def _at_once(reader: Statement, gone: isl.Set) -> isl.Set:
    """All iterations with sizes at which some are gone."""
    return reader.domain.intersect_params(gone.params())


def _without(context: isl.Set, part: isl.BasicSet, sizes: tuple[str, ...]) -> isl.Set:
    """The context with a condition by which it has no sizes of `part`."""
    found = [context.intersect(way) for way in _ways_out(part)]
    return max(found, key=lambda way: sum(_has(way, probe) for probe in _probes(len(sizes))), default=context)


def _ways_out(part: isl.BasicSet) -> Iterator[isl.Set]:
    """For each condition of a set, the sizes that violate it."""
    for constraint in part.get_constraints():
        aff = constraint.get_aff()
        space = part.get_space()
        for value in (aff, aff.neg())[: 1 + constraint.is_equality()]:
            below = isl.Constraint.inequality_from_aff(value.neg().add_constant_val(isl.Val(-1)))
            yield isl.Set.universe(space).add_constraint(below)


def _probes(count: int) -> Iterator[tuple[int, ...]]:
    """Values of sizes: equal ones, and some that differ."""
    yield from ((2**power,) * count for power in range(12))
    draws = Random(0)
    yield from (tuple(int(2 ** draws.uniform(0, 12)) for _ in range(count)) for _ in range(PROBES))


def _has(sizes: isl.Set, values: tuple[int, ...]) -> bool:
    for at, value in enumerate(values):
        sizes = sizes.fix_val(isl.dim_type.param, at, isl.Val(value))
    return not sizes.is_empty()


def _check_room(nest: Nest) -> None:
    """Refuse arrays that are larger than any memory, in which offsets would not fit in 64 bits."""
    for array in nest.arrays:
        known = prod((max(e.constant, 1) for e in array.shape if not e.terms), start=array.dtype.size)
        if known > LARGEST_INDEX:
            raise SpecError(f"{array} of {nest.name} takes {shown(known)} bytes or more: 2**48 is the most.")


def _checked(statement: Statement, nest: Nest) -> Statement:
    domain = statement.domain
    simple = unconditional(statement) if domain.n_basic_set() > PIECES else statement
    for access in accesses(statement):
        array = nest.array(access.array)
        if array.kind == "scalar" or _outside(simple, access, array, nest).is_empty():
            continue
        outside = _outside(statement, access, array, nest)
        if outside.is_empty():
            continue
        not_empty = _not_empty(array, nest)
        wrong = outside.intersect_params(not_empty)
        if not wrong.is_empty():
            raise _error(nest, statement, access, _witness(wrong, statement))
        domain = domain.intersect_params(not_empty)
    return statement if domain is statement.domain else replace(statement, domain=domain)


def _outside(statement: Statement, access: Load, array: Array, nest: Nest) -> isl.Set:
    """The instances in which an access is outside its array."""
    relation = statement.relation(access).intersect_params(nest.context)
    return relation.subtract_range(array.elements(nest.sizes)).domain()


def _not_empty(array: Array, nest: Nest) -> isl.Set:
    """The sizes at which an array has elements."""
    return at_least(nest.sizes, array.shape, 1)


def _witness(outside: isl.Set, statement: Statement) -> dict[str, int]:
    """The sizes and iterators of one point: the smallest sizes, and then the first iteration."""
    sizes = parameters(outside)
    flat = outside.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, len(sizes))
    return dict(zip((*sizes, *statement.iterators), first_point(flat), strict=True))


def _error(nest: Nest, statement: Statement, access: Load, values: Mapping[str, int]) -> SpecError:
    array = nest.array(access.array)
    axis, index, extent = next(
        (axis, i.evaluate(values), e.evaluate(values))
        for axis, (i, e) in enumerate(zip(access.indices, array.shape, strict=True))
        if not lookups(i) and not 0 <= i.evaluate(values) < e.evaluate(values)
    )
    verb = "writes" if access == statement.target else "reads"
    iteration = ", ".join(f"{name} = {values[name]}" for name in statement.iterators)
    sizes = ", ".join(f"{size} = {values[size]}" for size in nest.sizes)
    which = f"{array.shape[axis]} = {extent}" if array.shape[axis].terms else str(extent)
    where = " and ".join(filter(None, (iteration and f"at {iteration}", sizes and f"with {sizes}")))
    stated = " `assert` which sizes are right," if nest.sizes else ""
    remedy = (
        "A negative index does not count from the end: write the extent minus it."
        if not access.indices[axis].terms and index < 0
        else f"Shorten the loops, put an `if` around the statement,{stated} or make {access.array} larger."
    )
    return SpecError(
        f"{statement.place}: {statement.name} {verb} {access} outside of {access.array}\n"
        f"    {statement.text}\n"
        f"{where[:1].upper()}{where[1:]}, index {index} of dimension {axis} is outside of 0 <= index < {which}.\n"
        f"{remedy}"
    )
