"""Reduce a pair: leave out steps, statements, loops, terms and sizes as long as the same failure occurs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from fuzz.fitting import named_values, unused
from fuzz.pairs import Failure, Pair
from fuzz.schedules import Step
from fuzz.syntax import (
    Arg,
    Assign,
    Binary,
    Call,
    Cast,
    DataTest,
    Expr,
    Extreme,
    For,
    If,
    Joined,
    Lin,
    Local,
    Looked,
    Name,
    Negative,
    Not,
    Number,
    Program,
    Quotient,
    Read,
    Stmt,
    Subscript,
    Test,
    map_reads,
    walk,
)

NUMBERS = r"[\d.]+|'[^']*'|\[.*?\]"
Tried = Callable[[Pair], Failure | None]


def alike(one: Failure, other: Failure | None) -> bool:
    """Whether two failures look like one fault: the same kind, and for an exception the same type and place."""
    return other is not None and one.kind == other.kind and key(one) == key(other)


def key(failure: Failure) -> str:
    """The text by which faults are distinguished."""
    if failure.kind in ("wrong", "guard", "crash", "hang", "reference"):
        return failure.kind
    text = failure.text.split(": ", 1)
    said = text[-1].splitlines()[0] if text[-1] else ""
    return f"{failure.kind} {re.sub(NUMBERS, '#', text[0])} {re.sub(NUMBERS, '#', said)[:60]}"


def group(failure: Failure) -> str:
    """The text by which failures are distinguished before reduction: for wrong results also by route and steps."""
    pair = failure.pair
    if pair is None or key(failure) != failure.kind:
        return key(failure)
    kinds = "integers" if all(arg.dtype[0] != "f" for arg in pair.program.args) else "floats"
    steps = "default" if pair.steps is None else " ".join(sorted({step.method for step in pair.steps}))
    return f"{key(failure)} {pair.route} {kinds} {steps}"


def reduced(pair: Pair, failure: Failure, attempt: Tried, seconds: float = 120.0) -> tuple[Pair, Failure]:
    """The smallest pair with the same failure that is found in this many seconds."""
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for smaller in candidates(pair):
            if time.monotonic() > end:
                break
            found = attempt(smaller)
            if alike(failure, found):
                pair, failure, progress = smaller, found or failure, True
                break
    return replace(pair), replace(failure, pair=pair)


def candidates(pair: Pair) -> Iterator[Pair]:
    """Pairs that are a little simpler, the bolder ones first."""
    seen = {pair}
    for candidate in _candidates(pair):
        if candidate not in seen:
            seen.add(candidate)
            yield candidate


def _candidates(pair: Pair) -> Iterator[Pair]:
    if len(pair.runs) > 1:
        yield from (replace(pair, runs=(run,)) for run in pair.runs)
    yield from (replace(pair, steps=steps) for steps in _fewer(pair.steps))
    if pair.program.einsum:
        yield replace(pair, program=replace(pair.program, einsum=""))
        yield from _settings(pair)
        yield from (replace(pair, steps=steps) for steps in _plainer(pair.steps))
        return
    for body in _bodies(pair.program.body):
        yield _trimmed(replace(pair, program=replace(pair.program, body=body)))
    yield from _settings(pair)
    yield from (replace(pair, program=program) for program in _programs(pair.program))
    yield from (replace(pair, steps=steps) for steps in _plainer(pair.steps))
    yield from _renamed(pair)


def _fewer(steps: tuple[Step, ...] | None) -> Iterator[tuple[Step, ...] | None]:
    """Fewer steps, or fewer arguments of a step; never the schedule None, which fails differently."""
    if not steps:
        return
    for size in (len(steps) // 2, len(steps) // 4, 1):
        if size:
            yield from (steps[:at] + steps[at + size :] for at in range(0, len(steps), size))
    for at, step in enumerate(steps):
        if len(step.kwargs) > 1:
            for left_out in range(len(step.kwargs)):
                kwargs = step.kwargs[:left_out] + step.kwargs[left_out + 1 :]
                yield (*steps[:at], replace(step, kwargs=kwargs), *steps[at + 1 :])


def _plainer(steps: tuple[Step, ...] | None) -> Iterator[tuple[Step, ...]]:
    """Steps with smaller numbers."""
    for at, step in enumerate(steps or ()):
        for number, (name, value) in enumerate(step.kwargs):
            for smaller in _integers(value) if isinstance(value, int) and not isinstance(value, bool) else ():
                kwargs = (*step.kwargs[:number], (name, smaller), *step.kwargs[number + 1 :])
                yield (*(steps or ())[:at], replace(step, kwargs=kwargs), *(steps or ())[at + 1 :])


def _integers(value: int) -> Iterator[int]:
    yield from (v for v in (1, 2, 3, value // 2, value - 1) if 0 < v < value)


def _settings(pair: Pair) -> Iterator[Pair]:
    """Smaller sizes, and simpler values, threads, routes and targets."""
    run = pair.runs[0]
    for at, (name, value) in enumerate(run.sizes):
        for smaller in dict.fromkeys(v for v in (0, 1, 2, 3, value // 2, value - 1) if 0 <= v < value):
            sizes = (*run.sizes[:at], (name, smaller), *run.sizes[at + 1 :])
            yield replace(pair, runs=(replace(run, sizes=sizes), *pair.runs[1:]))
    plain = replace(run, kind="small", shift=0)
    if plain != run:
        yield replace(pair, runs=(plain, *pair.runs[1:]))
    if pair.known:
        yield replace(pair, known=())
    if pair.threads > 1:
        yield replace(pair, threads=1)
    if pair.route in ("public", "header"):
        yield replace(pair, route="c")
    if pair.route != "opencl" and pair.target != "c:portable":
        yield replace(pair, target="c:portable")


def _trimmed(pair: Pair) -> Pair:
    """The pair without unused arguments, sizes and constants."""
    program = pair.program
    drop = unused(program)
    program = replace(program, args=tuple(a for a in program.args if a.name not in drop))
    named = named_values(program)
    program = replace(
        program,
        sizes=tuple(s for s in program.sizes if s in named),
        constants=tuple((n, v) for n, v in program.constants if n in named),
    )
    runs = tuple(replace(r, sizes=tuple((n, v) for n, v in r.sizes if n in program.sizes)) for r in pair.runs)
    return replace(pair, program=program, runs=runs, known=tuple(k for k in pair.known if k in program.sizes))


# --- bodies ---------------------------------------------------------------------------------------------------------


def _bodies(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    """The body with one statement left out or simpler."""
    if len(body) > 1:
        yield from (body[:at] + body[at + 1 :] for at in range(len(body)))
    for at, statement in enumerate(body):
        for simpler in _statements(statement):
            yield (*body[:at], *simpler, *body[at + 1 :])


def _statements(statement: Stmt) -> Iterator[tuple[Stmt, ...]]:
    match statement:
        case For(index, lower, upper, step, inner):
            yield tuple(_at(s, index, lower[0]) for s in inner)
            yield from ((replace(statement, body=body),) for body in _bodies(inner))
            if step != 1:
                yield (replace(statement, step=1),)
            yield from ((replace(statement, lower=bounds),) for bounds in _bounds(lower))
            yield from ((replace(statement, upper=bounds),) for bounds in _bounds(upper))
        case If(test, inner, orelse):
            yield inner
            if orelse:
                yield orelse
                yield (replace(statement, orelse=()),)
            yield from ((replace(statement, test=simpler),) for simpler in _tests(test))
            yield from ((replace(statement, body=body),) for body in _bodies(inner))
        case Assign(target, op, value):
            if op not in ("=", "+="):
                yield (replace(statement, op="+="),)
            yield from ((replace(statement, value=simpler),) for simpler in _values(value))
            yield from ((replace(statement, target=simpler),) for simpler in _reads(target))
        case Local(value=value, shape=shape):
            if value is not None:
                yield from ((replace(statement, value=simpler),) for simpler in _values(value))
            for at, extent in enumerate(shape or ()):
                for simpler in _lins(extent):
                    yield (replace(statement, shape=(*(shape or ())[:at], simpler, *(shape or ())[at + 1 :])),)


def _bounds(bounds: tuple[Lin, ...]) -> Iterator[tuple[Lin, ...]]:
    if len(bounds) > 1:
        yield from ((bound,) for bound in bounds)
    for at, bound in enumerate(bounds):
        yield from ((*bounds[:at], simpler, *bounds[at + 1 :]) for simpler in _lins(bound))


def _lins(lin: Subscript) -> Iterator[Subscript]:
    if isinstance(lin, Extreme):
        yield from lin.args
        yield from (replace(lin, plus=simpler) for simpler in _lins(lin.plus))
        for at, arg in enumerate(lin.args):
            yield from (replace(lin, args=(*lin.args[:at], s, *lin.args[at + 1 :])) for s in _lins(arg))
        return
    if isinstance(lin, Looked):
        yield lin.plus
        yield from (replace(lin, index=simpler) for simpler in _lins(lin.index))
        yield from (replace(lin, plus=simpler) for simpler in _lins(lin.plus))
        return
    if lin.constant:
        yield replace(lin, constant=0)
    for at, (name, factor) in enumerate(lin.terms):
        if len(lin.terms) > 1 or lin.constant:
            yield Lin(lin.terms[:at] + lin.terms[at + 1 :], lin.constant)
        if factor != 1:
            yield Lin((*lin.terms[:at], (name, 1), *lin.terms[at + 1 :]), lin.constant)
    if abs(lin.constant) > 1:
        yield replace(lin, constant=lin.constant // 2)


def _tests(test) -> Iterator:
    match test:
        case Joined(_, left, right):
            yield left
            yield right
        case Not(inner):
            yield inner
        case Test(Quotient(inner, by, rest), _, right):
            yield replace(test, left=inner)
            yield from (replace(test, left=Quotient(simpler, by, rest)) for simpler in _lins(inner))
        case Test(Lin() as left, _, right):
            yield from (replace(test, left=simpler) for simpler in _lins(left))
            yield from (replace(test, right=simpler) for simpler in _lins(right))
        case DataTest(left, op, right):
            yield from (DataTest(simpler, op, right) for simpler in _values(left))
            yield from (DataTest(left, op, simpler) for simpler in _values(right))


def _values(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Binary(op, left, right):
            yield left
            yield right
            yield from (Binary(op, simpler, right) for simpler in _values(left))
            yield from (Binary(op, left, simpler) for simpler in _values(right))
        case Negative(value):
            yield value
            yield from (Negative(simpler) for simpler in _values(value))
        case Call(function, args):
            yield from args
            for at, arg in enumerate(args):
                yield from (Call(function, (*args[:at], simpler, *args[at + 1 :])) for simpler in _values(arg))
        case Read():
            yield Number(1)
            yield from _reads(expr)
        case Name():
            yield Number(1)
        case Cast(dtype, value):
            yield value
            yield from (Cast(dtype, simpler) for simpler in _values(value))


def _reads(read: Read) -> Iterator[Read]:
    for at, index in enumerate(read.indices):
        yield from (replace(read, indices=(*read.indices[:at], s, *read.indices[at + 1 :])) for s in _lins(index))


def _at(statement: Stmt, index: str, value: Lin) -> Stmt:
    """The statement with one value for a loop's index."""

    def lin(expression: Lin) -> Lin:
        return expression.substitute({index: value})

    def read(element: Read) -> Expr:
        return replace(element, indices=tuple(map(lin, element.indices)))

    def expr(node: Expr) -> Expr:
        return _named(map_reads(node, read), {index: _as_value(value)})

    def test(node):
        match node:
            case Joined(word, left, right):
                return Joined(word, test(left), test(right))
            case Not(inner):
                return Not(test(inner))
            case Test(Quotient(inner, by, rest), op, right):
                return Test(Quotient(lin(inner), by, rest), op, lin(right))
            case DataTest(left, op, right):
                return DataTest(expr(left), op, expr(right))
        return Test(lin(node.left), node.op, lin(node.right))

    match statement:
        case For(name, lower, upper, step, body):
            moved = tuple(_at(s, index, value) for s in body) if name != index else body
            return For(name, tuple(map(lin, lower)), tuple(map(lin, upper)), step, moved)
        case If(condition, body, orelse):
            first, second = (tuple(_at(s, index, value) for s in part) for part in (body, orelse))
            return If(test(condition), first, second)
        case Assign(target, op, node):
            moved_target = read(target)
            assert isinstance(moved_target, Read)
            return Assign(moved_target, op, expr(node))
        case Local(value=first) if first is not None:
            return replace(statement, value=expr(first))
    return statement


def _as_value(lin: Lin) -> Expr:
    """A bound as a value; one of several terms becomes a number, which is good enough."""
    if len(lin.terms) == 1 and lin.terms[0][1] == 1 and not lin.constant:
        return Name(lin.terms[0][0])
    return Number(lin.constant)


def _named(expr: Expr, values: dict[str, Expr]) -> Expr:
    match expr:
        case Name(name):
            return values.get(name, expr)
        case Negative(value):
            return Negative(_named(value, values))
        case Cast(dtype, value):
            return Cast(dtype, _named(value, values))
        case Binary(op, left, right):
            return Binary(op, _named(left, values), _named(right, values))
        case Call(function, args):
            return Call(function, tuple(_named(arg, values) for arg in args))
    return expr


# --- whole nests ----------------------------------------------------------------------------------------------------


def _programs(program: Program) -> Iterator[Program]:
    if not program.reassociate:
        yield replace(program, reassociate=True)
    for at, arg in enumerate(program.args):
        for axis, extent in enumerate(arg.shape or ()):
            for simpler in _lins(extent):
                shape = (*(arg.shape or ())[:axis], simpler, *(arg.shape or ())[axis + 1 :])
                yield replace(program, args=(*program.args[:at], replace(arg, shape=shape), *program.args[at + 1 :]))
    kinds = {arg.dtype for arg in program.args}
    if kinds & {"f32", "u8", "u16", "i8", "i16", "i64", "i32"} and not any(arg.below for arg in program.args):
        yield _in_type(program, "f64")


def _in_type(program: Program, dtype: str) -> Program:
    def change(statement: Stmt) -> Stmt:
        match statement:
            case For(body=body):
                return replace(statement, body=tuple(map(change, body)))
            case If(test, body, orelse):
                return If(test, tuple(map(change, body)), tuple(map(change, orelse)))
            case Local():
                return replace(statement, dtype=dtype)
        return statement

    args = tuple(replace(a, dtype=dtype) for a in program.args)
    return replace(program, args=args, body=tuple(map(change, program.body)))


PLAIN = {"size": "NMKPQRT", "loop": "ijklpqrst", "array": "ABCDEXYZ"}


def _renamed(pair: Pair) -> Iterator[Pair]:
    """Plain names, all at once, or else one after the other."""
    program = pair.program
    used = _all_names(program)
    plain: dict[str, str] = {}
    for kind, names in used.items():
        free = [n for n in PLAIN[kind] if not any(n in others for others in used.values()) and n not in plain.values()]
        plain |= dict(zip((n for n in names if n not in PLAIN[kind]), free, strict=False))
    if plain:
        yield _with_names(pair, plain)
        yield from (_with_names(pair, {old: new}) for old, new in plain.items())


def _all_names(program: Program) -> dict[str, tuple[str, ...]]:
    found = list(walk(program.body))
    loops = dict.fromkeys(s.index for s, _ in found if isinstance(s, For))
    arrays = dict.fromkeys([a.name for a in program.args] + [s.name for s, _ in found if isinstance(s, Local)])
    return {"size": program.sizes, "loop": tuple(loops), "array": tuple(arrays)}


def _with_names(pair: Pair, names: dict[str, str]) -> Pair:
    """The pair with other names, also in its steps: `i_tile` goes with `i`."""
    from fuzz.rename import renamed

    return renamed(pair, names)


__all__ = ["Arg", "Iterable", "alike", "group", "key", "reduced"]
