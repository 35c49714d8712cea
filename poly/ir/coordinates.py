"""A statement's iterators in terms of the loops around it.

    loops  i_tile = floor(i/6), i, pq = 28*p + q, k    gives    i = i, p = pq/28, q = pq - 28*(pq/28), k = k

Quotients are *atoms*: additional names in the affine expressions, with their definitions kept beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import islpy as isl

from codegen.ir.integer import Affine
from codegen.names import another
from poly.ir.sets import integer, own_names, parameters


@dataclass(frozen=True)
class Coordinates:
    """`iterators` maps each iterator to an affine expression of loops, sizes and atoms.

    `atoms` maps an atom's name to its loop and divisor: the quotient `loop / divisor`.
    """

    iterators: Mapping[str, Affine]
    atoms: Mapping[str, tuple[str, int]]


def solve(iterators: Sequence[str], domain: isl.Set, loops: Sequence[tuple[str, isl.PwAff]]) -> Coordinates | None:
    """The iterators as functions of the loops' values, or None if the loops don't determine them in a simple way."""
    own = own_names("iterator", len(iterators))
    found = _solved(own, domain, loops)
    values = {i: found.iterators[name] for i, name in zip(iterators, own, strict=True)} if found else {}
    return found and replace(found, iterators=values)


def _solved(iterators: tuple[str, ...], domain: isl.Set, loops: Sequence[tuple[str, isl.PwAff]]) -> Coordinates | None:
    """The same for iterators whose names differ from those of all loops and sizes."""
    found = dict(_fixed(iterators, domain))
    atoms: dict[str, tuple[str, int]] = {}
    taken = frozenset({*parameters(domain), *(name for name, _ in loops)})
    counted = [(name, f) for name, function in loops if (f := linear(iterators, function)) is not None]
    progress = True
    while progress and len(found) < len(iterators):
        progress = False
        for name, function in counted:
            rest = function.substitute(found)
            unknown = [i for i in iterators if i in rest.names and i not in found]
            if not unknown:
                continue
            if len(unknown) == 1:
                solved = _one(name, rest, unknown[0])
            else:
                solved = _digits(name, rest, unknown, iterators, domain, atoms, taken)
            if solved:
                found.update(solved)
                progress = True
    return Coordinates(found, atoms) if len(found) == len(iterators) else None


def _fixed(iterators: Sequence[str], domain: isl.Set) -> Iterator[tuple[str, Affine]]:
    """Iterators with a single value, which no loop needs to count."""
    for position, iterator in enumerate(iterators):
        value = domain.plain_get_val_if_fixed(isl.dim_type.set, position)
        if value.is_int():
            yield iterator, Affine.of(integer(value))


def linear(iterators: Sequence[str], function: isl.PwAff) -> Affine | None:
    """The function as an affine expression of iterators and sizes; None if it is a quotient or piecewise.

    A quotient that is whole in the domain may have no rounding in it: `i/2` of even iterators.
    """
    pieces = function.get_pieces()
    if len(pieces) != 1:
        return None
    aff = pieces[0][1]
    if not aff.get_denominator_val().is_one():
        return None
    if any(not aff.get_coefficient_val(isl.dim_type.div, d).is_zero() for d in range(aff.dim(isl.dim_type.div))):
        return None
    terms = [(name, integer(aff.get_coefficient_val(isl.dim_type.in_, d))) for d, name in enumerate(iterators)]
    for d in range(aff.dim(isl.dim_type.param)):
        size = aff.get_dim_name(isl.dim_type.param, d) or ""
        terms.append((size, integer(aff.get_coefficient_val(isl.dim_type.param, d))))
    return Affine.make(terms, integer(aff.get_constant_val()))


def _one(name: str, rest: Affine, unknown: str) -> dict[str, Affine]:
    sign = rest.coefficient(unknown)
    if sign not in (1, -1):
        return {}
    return {unknown: (Affine.name(name) - rest.substitute({unknown: 0})) * sign}


def _digits(
    name: str,
    rest: Affine,
    unknown: list[str],
    iterators: Sequence[str],
    domain: isl.Set,
    atoms: dict[str, tuple[str, int]],
    taken: frozenset[str],
) -> dict[str, Affine]:
    """Mixed-radix digits: `Q*p + q` with 0 <= q < Q determines both."""
    if rest.substitute(dict.fromkeys(unknown, 0)) != Affine():
        return {}
    unknown = sorted(unknown, key=lambda i: -rest.coefficient(i))
    weights = [rest.coefficient(i) for i in unknown]
    if weights[-1] != 1 or any(w <= 0 or v % w for v, w in pairwise(weights)):
        return {}
    for (outer, inner), iterator in zip(pairwise(weights), unknown[1:], strict=True):
        position = iterators.index(iterator)
        low, high = domain.dim_min(position), domain.dim_max(position)
        if not (low.is_cst() and high.is_cst()):
            return {}
        if _constant(low) < 0 or _constant(high) >= outer // inner:
            return {}
    quotients = []
    for weight in weights:
        atom = name if weight == 1 else another(f"{name}__{weight}", taken)
        if weight != 1:
            atoms[atom] = (name, weight)
        quotients.append(Affine.name(atom))
    found = {unknown[0]: quotients[0]}
    for position in range(1, len(unknown)):
        ratio = weights[position - 1] // weights[position]
        found[unknown[position]] = quotients[position] - quotients[position - 1] * ratio
    return found


def _constant(value: isl.PwAff) -> int:
    return integer(value.get_pieces()[0][1].get_constant_val())
