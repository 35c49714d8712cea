"""Random contractions: any roles of loops, output indices that add two loops, strides, shifts, padding, scatters."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from fuzz.names import Names
from fuzz.nests import Drawn
from fuzz.syntax import (
    Arg,
    Assign,
    Binary,
    Call,
    Condition,
    Expr,
    For,
    If,
    Joined,
    Lin,
    Name,
    Number,
    Program,
    Read,
    Stmt,
    Test,
)

KINDS = ("f32", "f64", "i32", "i64", "i16", "i8", "u8", "u16", "f16"), (45, 40, 6, 4, 2, 3, 2, 2, 1)
"""Types with their weights."""
SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13)
WIDE = (12, 13, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 97, 127, 129, 131)


def contraction(rng: Random) -> Drawn:
    """`C[…] += A[…] * B[…]` with its loops in any order, and statements that often surround it."""
    names = Names(rng, rng.random() < 0.25)
    count = rng.choices((2, 3, 4, 5), (1, 5, 4, 1))[0]
    loops: list[str] = []
    while len(loops) < count:
        loop = names.loop(tuple(loops))
        if loop not in loops:
            loops.append(loop)
    sizes = {loop: names.size() if rng.random() < 0.9 else None for loop in loops}
    fixed = {loop: rng.choice((1, 2, 3, 4, 5)) for loop in loops}
    dtype = rng.choices(*KINDS)[0]
    left, right, output = names.array(), names.array(), names.array()
    product, target = _product(rng, loops, left, right, output)
    form = rng.choices(("+=", "-=", "x=x+", "alpha", "beta"), (12, 2, 2, 2, 1))[0]
    args = [(left, dtype), (right, dtype), (output, dtype)]
    scalar = names.scalar()
    update = _update(form, target, product, scalar)
    body = _loops(rng, loops, sizes, fixed, update, target)
    body = _around(rng, body, loops, sizes, fixed, target, dtype, names, args)
    ranks = _ranks(body)
    arrays = [Arg(name, kind, (Lin(),) * ranks[name]) for name, kind in args if name in ranks]
    scalars = [Arg(scalar, dtype, None)] if form == "alpha" else []
    known = [s for s in sizes.values() if s]
    program = Program(names.function(), (*arrays, *scalars), body, tuple(known), (), rng.random() > 0.06)
    settings = [sizes_of(rng, known) for _ in range(rng.choice((1, 2, 2)))]
    return Drawn(program, tuple(settings))


def sizes_of(rng: Random, sizes: list[str]) -> dict[str, int]:
    """Small sizes, one of them wide: products of a few thousand iterations."""
    values = {size: rng.choice(SIZES) for size in sizes}
    if sizes and rng.random() < 0.7:
        values[rng.choice(sizes)] = rng.choice(WIDE)
    while _count(values) > 3500:
        largest = max(values, key=lambda size: values[size])
        second = max((s for s in sizes if s != largest), key=lambda size: values[size], default=largest)
        shrunk = second if values[second] > 3 else largest
        values[shrunk] = max(1, values[shrunk] * 2 // 3)
    return values


def _count(values: dict[str, int]) -> int:
    total = 1
    for value in values.values():
        total *= max(1, value)
    return total


def _product(rng: Random, loops: list[str], left: str, right: str, output: str) -> tuple[Expr, Read]:
    """The factors and the target: each loop has a role, and some indices of two loops are joined to one."""
    roles = {loop: rng.choices(("row", "column", "reduce", "batch"), (5, 5, 5, 1))[0] for loop in loops}
    for loop, role in zip(rng.sample(loops, min(3, len(loops))), ("row", "column", "reduce"), strict=False):
        if rng.random() < 0.8:
            roles[loop] = role
    a = [loop for loop in loops if roles[loop] in ("row", "reduce", "batch")]
    b = [loop for loop in loops if roles[loop] in ("column", "reduce", "batch")]
    c = [loop for loop in loops if roles[loop] in ("row", "column", "batch")]
    factors = [Read(name, _indices(rng, used)) for name, used in ((left, a), (right, b))]
    target = Read(output, _indices(rng, c, 0.35))
    if rng.random() < 0.15:
        factors.reverse()
    draw = rng.random()
    if draw < 0.04:
        factors[1] = replace(factors[1], array=left)
    value: Expr = Binary("*", *factors)
    if draw > 0.95:
        value = Binary("+", *factors)
    elif draw > 0.93:
        value = factors[0]
    ranks = {}
    for read in (*factors, target):
        if ranks.setdefault(read.array, len(read.indices)) != len(read.indices):
            return Binary("*", factors[0], factors[0]), target
    return value, target


def _indices(rng: Random, loops: list[str], join: float = 0.22) -> tuple[Lin, ...]:
    """One index for each loop in some order; two of them may become a sum, with strides and shifts."""
    order = rng.sample(loops, len(loops))
    found = [Lin.name(loop) for loop in order]
    while len(found) > 1 and rng.random() < join:
        first, second = found.pop(), found.pop()
        stride = rng.choices((1, 2, 3, -1), (7, 3, 1, 1))[0]
        found.insert(rng.randrange(len(found) + 1), first * stride + second * rng.choice((1, 1, 1, 2)))
    moved = [i * rng.choices((1, 2, -1), (30, 1, 1))[0] + rng.choices((0, 1, -1), (20, 1, 1))[0] for i in found]
    if rng.random() < 0.05:
        moved.insert(rng.randrange(len(moved) + 1), Lin((), rng.choice((0, 1))))
    return tuple(moved)


def _update(form: str, target: Read, product: Expr, scalar: str) -> Assign:
    if form == "x=x+":
        return Assign(target, "=", Binary("+", target, product))
    if form == "alpha":
        return Assign(target, "+=", Binary("*", Read(scalar, (), True), product))
    if form == "beta":
        return Assign(target, "+=", Binary("*", product, Number(0.5 if False else 2)))
    return Assign(target, form, product)


def _loops(rng: Random, loops, sizes, fixed, update: Assign, target: Read) -> tuple[Stmt, ...]:
    """The update in its loops, in any order; padding as a condition or as bounds that are cut."""
    body: Stmt = update
    if rng.random() < 0.1:
        body = If(_padding(rng, loops, sizes, fixed), (body,))
    for loop in rng.sample(loops, len(loops)):
        body = _loop(rng, loop, sizes, fixed, (body,))
    return (body,)


def _loop(rng: Random, loop: str, sizes, fixed, body: tuple[Stmt, ...]) -> For:
    end = Lin.name(sizes[loop]) if sizes[loop] else Lin((), fixed[loop])
    low, step = Lin(), 1
    draw = rng.random()
    if draw < 0.03:
        low = Lin((), 1)
    elif draw < 0.05:
        step = 2
    elif draw < 0.07:
        step = -1
    elif draw < 0.09:
        end = end - 1
    return For(loop, (low,), (end,), step, body)


def _padding(rng: Random, loops: list[str], sizes, fixed) -> Condition:
    first = Lin.name(rng.choice(loops))
    second = Lin.name(rng.choice(loops)) if len(loops) > 1 else Lin()
    known = [s for s in sizes.values() if s]
    end = Lin.name(rng.choice(known)) if known else Lin((), 4)
    low = Test(first + second - 1, ">=", Lin())
    return Joined("and", low, Test(first + second - 1, "<", end)) if rng.random() < 0.6 else low


def _around(rng, body, loops, sizes, fixed, target: Read, dtype: str, names: Names, args: list) -> tuple[Stmt, ...]:
    """The output's initialisation, in separate loops or around the reduction, and changes of it afterwards."""
    inner = body[0]
    outer: list[For] = []
    used = {n for index in target.indices for n, _ in index.terms}
    while isinstance(inner, For) and inner.index in used:
        outer.append(inner)
        inner = inner.body[0]
    draw = rng.random()
    complete = {loop.index for loop in outer} == used
    if draw < 0.35 and complete:
        zero = Number(0.0 if dtype[0] == "f" else 0) if rng.random() < 0.8 else Number(1)
        statements: tuple[Stmt, ...] = (Assign(target, "=", zero), inner)
        if rng.random() < 0.25:
            statements += (Assign(target, "=", Call("max", (target, Number(0)))),)
        return _wrapped(outer, statements)
    if draw < 0.6:
        start: Stmt = Assign(target, "=", Number(0.0 if dtype[0] == "f" else 0))
        for loop in reversed([loop for loop in loops if loop in used]):
            start = _loop(Random(0), loop, sizes, fixed, (start,))
        body = (start, *body)
    if rng.random() < 0.15:
        bias = names.array()
        args.append((bias, dtype))
        term = Read(bias, target.indices[-1:])
        last: Stmt = Assign(target, rng.choice(("+=", "=")), Binary("+", target, term) if rng.random() < 0.5 else term)
        for loop in reversed([loop for loop in loops if loop in used]):
            last = _loop(Random(0), loop, sizes, fixed, (last,))
        body = (*body, last)
    return body


def _wrapped(outer: list[For], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    for loop in reversed(outer):
        body = (replace(loop, body=body),)
    return body


def _ranks(body: tuple[Stmt, ...]) -> dict[str, int]:
    from fuzz.syntax import reads, walk

    found: dict[str, int] = {}
    for statement, _ in walk(body):
        if isinstance(statement, Assign):
            for read in (statement.target, *reads(statement.value)):
                if not read.scalar:
                    found[read.array] = len(read.indices)
    return found


__all__ = ["Name", "contraction"]
