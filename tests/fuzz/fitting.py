"""Fit arrays to a nest's accesses: indices are moved to start at 0, extents found, local arrays filled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from fuzz.syntax import (
    Arg,
    Assign,
    Extreme,
    For,
    If,
    Lin,
    Local,
    Looked,
    Name,
    Program,
    Read,
    Stmt,
    Subscript,
    Values,
    compared,
    map_compared,
    map_reads,
    reads,
    walk,
)

Span = tuple[Lin, Lin]
"""The least and the greatest value in terms of sizes; an overestimate if loops are empty or depend on others."""


@dataclass(frozen=True)
class Fit:
    """The start of an array's indices, and its extents."""

    starts: tuple[Lin, ...]
    extents: tuple[Lin, ...]


def fitted(program: Program, settings: tuple[Values, ...], rng: Random) -> Program:
    """The nest with arrays large enough for all sizes, and not negative at these ones."""
    spans = _spans(program)
    fits = {name: _fit(dims, settings, rng, name in _locals(program)) for name, dims in spans.items()}
    body = _moved(program.body, fits, set(_free_names(program)))
    args = tuple(
        replace(a, shape=fits[a.name].extents) if a.shape is not None and a.name in fits else a for a in program.args
    )
    return replace(program, args=args, body=body)


def _locals(program: Program) -> set[str]:
    return {s.name for s, _ in walk(program.body) if isinstance(s, Local)}


def _accesses(statement: Stmt) -> list[Read]:
    match statement:
        case Assign(target, _, value):
            return [target, *reads(value)]
        case If(test):
            return [read for value in compared(test) for read in reads(value)]
        case Local(value=value, fill=fill):
            return [*reads(value), *reads(fill)]
    return []


def _spans(program: Program) -> dict[str, list[list[Span]]]:
    """For each array and dimension, the spans of all accesses."""
    found: dict[str, list[list[Span]]] = {}
    for statement, around in walk(program.body):
        for read in _accesses(statement):
            if read.scalar:
                continue
            dims = found.setdefault(read.array, [[] for _ in read.indices])
            ranges = loop_spans(around)
            for dim, index in zip(dims, read.indices, strict=True):
                dim.append(span(index, ranges))
    return found


def loop_spans(around: tuple[For, ...]) -> dict[str, Span]:
    ranges: dict[str, Span] = {}
    for loop in around:
        low, high = span(loop.lower[0], ranges)[0], span(loop.upper[0], ranges)[1]
        ranges[loop.index] = (low, high - 1)
    return ranges


def span(index: Subscript, ranges: Mapping[str, Span]) -> Span:
    if isinstance(index, Looked):
        return index.plus, index.plus + (index.below - 1)
    if isinstance(index, Extreme):
        spans = [span(arg, ranges) for arg in index.args]
        if index.kind == "abs":
            spans.append((spans[0][1] * -1, spans[0][0] * -1))
        low, high = _least([low for low, _ in spans]), _most([high for _, high in spans], None)
        return low + index.plus, high + index.plus
    low = index.substitute({n: ranges[n][index.factor(n) < 0] for n, _ in index.terms if n in ranges})
    high = index.substitute({n: ranges[n][index.factor(n) > 0] for n, _ in index.terms if n in ranges})
    return low, high


def _fit(dims: list[list[Span]], settings: tuple[Values, ...], rng: Random, local: bool) -> Fit:
    starts = tuple(_least([low for low, _ in spans]) for spans in dims)
    tight = not local and rng.random() < 0.5
    extents = []
    for spans, start in zip(dims, starts, strict=True):
        extent = _most([high - start + 1 for _, high in spans], 0)
        exact = _most([high - start + 1 for _, high in spans], None)
        whole = tight and all(exact.value(values) >= 0 for values in settings)
        extents.append((exact if whole else extent) + (rng.choice((0, 0, 1, 3)) if not local else 0))
    return Fit(starts, tuple(extents))


def _least(ends: list[Lin]) -> Lin:
    """An expression that is at most each of these for all sizes from 0 up, and at most 0."""
    names = {n for end in ends for n, _ in end.terms}
    factors = [(n, min(0, *(end.factor(n) for end in ends))) for n in sorted(names)]
    return Lin.of(factors, min(0, *(end.constant for end in ends)))


def _most(ends: list[Lin], least: int | None) -> Lin:
    """An expression that is at least each of these for all sizes from 0 up; its constant is at least `least`."""
    names = sorted({n for end in ends for n, _ in end.terms})
    factors = [(n, max(0, *(end.factor(n) for end in ends))) for n in names]
    constants = [end.constant for end in ends] + ([] if least is None else [least])
    return Lin.of(factors, max(constants))


def _free_names(program: Program) -> list[str]:
    taken = {a.name for a in program.args} | set(program.sizes) | {n for n, _ in program.constants}
    taken |= {s.index for s, _ in walk(program.body) if isinstance(s, For)} | _locals(program)
    return [n for n in ("f0", "f1", "f2", "f3", "fill0", "fill1", "fill2") if n not in taken]


def _moved(body: tuple[Stmt, ...], fits: Mapping[str, Fit], free: set[str]) -> tuple[Stmt, ...]:
    def move(read: Read) -> Read:
        if read.scalar or read.array not in fits:
            return read
        starts = fits[read.array].starts
        return replace(read, indices=tuple(within(i) - s for i, s in zip(read.indices, starts, strict=True)))

    def within(index: Subscript) -> Subscript:
        return replace(index, index=index.index - fits[index.array].starts[0]) if isinstance(index, Looked) else index

    moved: list[Stmt] = []
    for statement in body:
        match statement:
            case For(body=inner):
                moved.append(replace(statement, body=_moved(inner, fits, free)))
            case If(test, inner, orelse):
                changed = map_compared(test, lambda value: map_reads(value, move))
                moved.append(If(changed, _moved(inner, fits, free), _moved(orelse, fits, free)))
            case Assign(target, op, value):
                moved.append(Assign(move(target), op, map_reads(value, move)))
            case Local(shape=None, value=value):
                moved.append(replace(statement, value=map_reads(value, move)))
            case Local(name=name, fill=fill):
                extents = fits[name].extents if name in fits else (Lin((), 1),) * len(statement.shape or ())
                moved.append(replace(statement, shape=extents, fill=None))
                if fill is not None:
                    moved.append(_filling(name, extents, map_reads(fill, move), sorted(free)))
    return tuple(moved)


def _filling(name: str, extents: tuple[Lin, ...], value, names: list[str]) -> Stmt:
    loops = names[: len(extents)]
    statement: Stmt = Assign(Read(name, tuple(map(Lin.name, loops))), "=", value)
    for loop, extent in reversed(list(zip(loops, extents, strict=True))):
        statement = For(loop, (Lin(),), (extent,), 1, (statement,))
    return statement


def unused(program: Program) -> set[str]:
    """The arguments that no statement names."""
    named = {read.array for statement, _ in walk(program.body) for read in _accesses(statement)}
    return {arg.name for arg in program.args} - named


def named_values(program: Program) -> set[str]:
    """The sizes and constants that occur in a bound, index, shape or value."""
    found: set[str] = set()

    def lin(*expressions: Subscript) -> None:
        for expression in expressions:
            found.update(n for n, _ in expression.terms)

    def value(expr) -> None:
        match expr:
            case Name(name):
                found.add(name)
            case Read(indices=indices):
                lin(*indices)
            case _:
                for child in (
                    *getattr(expr, "args", ()),
                    *(getattr(expr, k, None) for k in ("value", "left", "right")),
                ):
                    if child is not None and not isinstance(child, int | float):
                        value(child)

    def test(condition) -> None:
        left, right = getattr(condition, "left", None), getattr(condition, "right", None)
        for side in (left, right, getattr(condition, "inner", None)):
            if isinstance(side, Lin):
                lin(side)
            elif side is not None:
                test(side)

    for statement, _ in walk(program.body):
        match statement:
            case For(lower=lower, upper=upper):
                lin(*lower, *upper)
            case If(test=condition):
                test(condition)
                for side in compared(condition):
                    value(side)
            case Assign(target, _, expr):
                value(target)
                value(expr)
            case Local(shape=shape, value=first):
                lin(*(shape or ()))
                if first is not None:
                    value(first)
    for arg in program.args:
        lin(*(arg.shape or ()))
    return found


__all__ = ["Arg", "Fit", "fitted", "named_values", "unused"]
