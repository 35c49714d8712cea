"""What `poly optimize` found in each scop, what it did, and why not more: as a value and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from codegen.package import Routine
from poly.analysis.dependences import Dependence, dependences
from poly.ir.budget import TooCostly
from poly.rewriting.check import Checked
from poly.rewriting.rewritten import Rewritten
from poly.rewriting.scops import Scop

MOST = 6
"""The most dependences that are named for one scop."""


def facts(made: Rewritten) -> list[dict[str, Any]]:
    """The report as plain values, one for each scop."""
    return [_scop(made, at) for at in range(len(made.kernels.scops))]


def text(made: Rewritten) -> str:
    """The report as text."""
    return "\n\n".join("\n".join(_lines(made, at)) for at in range(len(made.kernels.scops)))


def _scop(made: Rewritten, at: int) -> dict[str, Any]:
    scop, routine = made.kernels.scops[at], made.kernels.routines[at]
    found: dict[str, Any] = {"place": scop.place, "function": scop.function, "optimized": routine is not None}
    if routine is None:
        return {**found, "reason": str(scop.problem)}
    nest = scop.nest
    found |= {
        "statements": [statement.text for statement in nest.statements],
        "sizes": list(nest.sizes),
        "arrays": [str(array) for array in nest.arrays],
        "schedules": {variant.isa.name: variant.loops for variant in routine.variants},
        "conditions": [f"{value} >= 0" for value in routine.signature.conditions],
        "bound_by": _binding(scop),
    }
    check = made.checks.get(scop.place)
    return found if check is None else {**found, "check": checked(check)}


def checked(check: Checked) -> str:
    """The outcome of a comparison in words."""
    if check.problem:
        return f"WRONG: {check.problem}"
    if check.obstacle:
        return f"not compared: {check.obstacle}"
    where = f" in {check.array}" if check.array else ""
    verdict = "equal up to rounding" if check.passed else "WRONG"
    return (
        f"{verdict}: at {check.trials} sizes, the greatest difference is {check.difference:.2g}{where}, "
        f"{check.error:.2g} of what rounding allows"
    )


def _binding(scop: Scop) -> list[str] | None:
    """The dependences that forbid other orders, the shortest first; None if they take too much work to find."""
    with suppress(TooCostly):
        return list(dict.fromkeys(_named(dependence) for dependence in dependences(scop.nest).binding))
    return None


def _named(dependence: Dependence) -> str:
    ends = dependence.source if dependence.source == dependence.sink else f"{dependence.source} -> {dependence.sink}"
    distance = dependence.distance
    apart = "" if distance is None else f" at distance ({', '.join(map(str, distance))})"
    return f"{dependence.kind} on {dependence.array}, {ends}{apart}"


def _lines(made: Rewritten, at: int) -> Iterator[str]:
    scop, routine = made.kernels.scops[at], made.kernels.routines[at]
    yield f"{scop.place}: {scop.function}"
    if routine is None:
        yield "  stays as it is:"
        yield textwrap.indent(str(scop.problem), "    ")
        return
    yield from _found(scop)
    yield from _done(routine)
    bound = _binding(scop)
    if bound is None:
        yield "  what binds the order of iterations takes too much work to tell"
    elif bound:
        yield "  not more, since the order of iterations is bound by"
        yield from (f"    {one}" for one in bound[:MOST])
        if len(bound) > MOST:
            yield f"    and {len(bound) - MOST} more"
    check = made.checks.get(scop.place)
    if check is not None:
        yield f"  check: {checked(check)}"


def _found(scop: Scop) -> Iterator[str]:
    nest = scop.nest
    count = len(nest.statements)
    sizes = f", sizes {', '.join(nest.sizes)}" if nest.sizes else ""
    yield f"  found: {count} statement{'s' * (count != 1)}{sizes}; {', '.join(map(str, nest.arrays))}"
    for statement in nest.statements:
        yield f"    {statement.name}: {statement.text}"


def _done(routine: Routine) -> Iterator[str]:
    first = routine.variants[0]
    others = ", ".join(variant.isa.name for variant in routine.variants[1:])
    yield f"  done: for {first.isa.name}{f' (and others for {others})' if others else ''}"
    yield textwrap.indent(first.loops, "    ")
    tests = [f"{value} >= 0" for value in routine.signature.conditions]
    tests += [f"the elements of {name} are inside of what they index" for name in routine.indices]
    yield f"  the loops as written run unless {' and '.join([*tests, 'written arrays overlap no others'])}"
