"""The heads of C loops: a counter, its first value, its step, and where it ends."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from pycparser import c_ast

from poly.frontends.c.arithmetic import integer_literal
from poly.frontends.c.declarations import (
    ArrayName,
    CounterName,
    ElementName,
    Known,
    NameUses,
    ScalarName,
    SizeName,
    Unknown,
    Uses,
    type_of,
)
from poly.frontends.c.place import CSource, shown
from poly.frontends.c.typed import UNSIGNED, Value, literal
from poly.frontends.c.values import Values
from poly.frontends.counted import CountedLoop
from poly.frontends.effects import lost
from poly.frontends.polynomials import Polynomial, Range, negative, polynomial, total

COUNT = "Count by an int or long."
Limits = tuple[int | None, int | None]
"""The least and greatest number of a type that wraps around; None where it does not."""
STEPS = {"p++": 1, "++": 1, "p--": -1, "--": -1}


@dataclass(frozen=True)
class Head:
    """`for (counter = low; …; counter += step)`, which ends at the first of several `ends`, as Python's ranges do."""

    counter: str
    low: ast.expr
    step: int
    ends: tuple[ast.expr, ...]
    kind: str
    """The kind of integers that the counter has."""

    @property
    def first(self) -> list[ast.expr]:
        """The first value, of several the last to be reached."""
        return _interval(self.low, "max" if self.step > 0 else "min")

    @property
    def facts(self) -> list[Polynomial]:
        """What holds in the iterations."""
        counter: Polynomial = {(self.counter,): 1}
        up = self.step > 0
        firsts, ends = ([p for v in values if (p := polynomial(v)) is not None] for values in (self.first, self.ends))
        inside = [total(counter, negative(first)) for first in firsts]
        inside += [total(end, negative(total(counter, {(): 1 if up else -1}))) for end in ends] if up else []
        if up:
            return inside
        return [negative(sums) for sums in inside] + [total(counter, negative(total(end, {(): 1}))) for end in ends]

    @property
    def least(self) -> list[ast.expr]:
        """Bounds of the counter from below."""
        return self.first if self.step > 0 else [_plus(end, 1) for end in self.ends]

    @property
    def arguments(self) -> list[ast.expr]:
        """Those of `range`, which may end after the loop: `tests` have to hold, too."""
        ends = [numerator(end) for end in self.ends] if self.step > 0 else list(self.ends)
        upper, lower = ("min", "max") if self.step > 0 else ("max", "min")
        bounds = [_joined(lower, self.first), _joined(upper, ends)]
        if self.step != 1:
            return [*bounds, constant(self.step)]
        return bounds[1:] if isinstance(self.low, ast.Constant) and self.low.value == 0 else bounds

    @property
    def tests(self) -> list[ast.expr]:
        """What holds in the iterations, beside the range."""
        counter = ast.Name(self.counter, ast.Load())
        quotients = [end for end in self.ends if _divides(end)] if self.step > 0 else []
        return [ast.Compare(counter, [ast.Lt()], [end]) for end in quotients]

    @property
    def range(self) -> Range:
        low, end = self.low, _plus(self.ends[0], -1 if self.step > 0 else 1)
        return (self.counter, low, end) if self.step > 0 else (self.counter, end, low)

    @property
    def counted(self) -> CountedLoop | None:
        """The loop for what its iterations add up to; None if it starts at no sum of products."""
        start = polynomial(self.low)
        if start is None:
            return None
        end = polynomial(self.ends[0]) if len(self.ends) == 1 else None
        return CountedLoop(self.counter, start, self.step, end)


class LoopHeads(Values):
    """Translates the heads of the loops of one function."""

    def __init__(self, source: CSource, typedefs: Mapping[str, c_ast.Node], roles: NameUses) -> None:
        super().__init__(source, typedefs)
        self.roles = roles

    def head(self, node: c_ast.For) -> Head:
        """The head of a loop.

        Raises:
            SpecError: it does not count one integer in constant steps between integers.
        """
        name, first, kind, limits = self._start(node)
        low = self.integer(first)
        start = Value(low, kind)
        self.check_wrap(first, start, Value(low, "int"))
        before, inside = self.names, Uses.of([node.stmt])
        changed = [n for n, found in before.items() if isinstance(found, Known) and inside.written(n)]
        self.names = {**before, **{local: Unknown(lost(local)) for local in changed}}
        last = _counts_down(node.cond, name) if node.next is None else None
        if last is not None:
            self._check_fall(node, name, start, last)
            low, step, ends = _plus(low, -1), -1, [constant(last - 1)]
        else:
            step = self._step(node, name)
            ends = self._ends(node, node.cond, name, start, step)
            self._check_limits(node, name, limits, start, step, ends)
        head = Head(name, low, step, tuple(ends), kind)
        self.names = before
        for value in (*head.first, *head.ends):
            if any(isinstance(part, ast.IfExp) for part in ast.walk(value)):
                why = f"a bound of `{name}` divides what may be negative, or is no minimum or maximum"
                raise self.refuse(node, why, "Start at max(a, b), end at min(a, b), and put the rest in an `if`.")
        return head

    def _check_fall(self, node: c_ast.For, name: str, start: Value, last: int) -> None:
        """Refuse `for (i = first; i--;)` that begins below its last value, and so goes on for ever."""
        ends_at_once = isinstance(node.cond, c_ast.BinaryOp) and node.cond.op == ">"
        if not ends_at_once and not self.is_least(start, literal(last, "int")):
            raise self.refuse(node, f"`{name}` may begin below {last}, and go on for ever", "Write `i-- > 0`.")

    def _check_limits(
        self, node: c_ast.For, name: str, limits: Limits, start: Value, step: int, ends: list[ast.expr]
    ) -> None:
        """Refuse a counter that leaves the range of its type, where C says what it then is."""
        least, most = (None if limit is None else literal(limit, "long") for limit in limits)
        last = [Value(_plus(end, step + (-1 if step > 0 else 1)), "long") for end in ends]
        if step < 0 and least is not None and not any(self.is_least(value, least) for value in last):
            if most is None:
                why = f"`{name}` is unsigned and counts down: it wraps around below 0"
                raise self.refuse(node, why, "Declare it as int or ptrdiff_t, or write `for (i = n; i-- > 0;)`.")
            raise self.refuse(node, f"`{name}` may fall below the least number of its type", COUNT)
        if most is not None and least is not None:
            inside = self.is_least(most, start) and self.is_least(start, least)
            if not inside or (step > 0 and not any(self.is_least(most, value) for value in last)):
                raise self.refuse(node, f"`{name}` may exceed the greatest number of its type", COUNT)

    def _start(self, node: c_ast.For) -> tuple[str, c_ast.Node, str, Limits]:
        """The counter of a loop, its first value, its kind of integers, and what wraps around."""
        match node.init:
            case c_ast.DeclList(decls=[c_ast.Decl(name=name, type=kind, init=first)]) if first is not None:
                found = type_of(kind, self.typedefs)
                if found is None or not found.is_integer or found.extents:
                    raise self.refuse(node, f"the counter `{name}` is no int", COUNT)
                self._check_counter(node, name, new=True)
                return name, first, found.counting, found.limits
            case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=name), rvalue=first):
                self._check_counter(node, name, new=False)
                kind = self.roles.kinds.get(name, "int")
                return name, first, kind, (0 if kind in UNSIGNED else None, None)
        raise self.refuse(node, "this loop does not start one counter", "Write `for (int i = 0; i < n; i++)`.")

    def _check_counter(self, node: c_ast.For, name: str, new: bool) -> None:
        known = self.names.get(name)
        if isinstance(known, CounterName):
            raise self.refuse(node, f"`{name}` counts a loop around this one", "Use another counter.")
        if not new and not isinstance(known, Unknown | Known):
            raise self.refuse(node, f"`{name}` is no local integer", "Count by a local `int`.")
        if new and isinstance(known, SizeName | ArrayName | ScalarName | ElementName):
            raise self.refuse(node, f"`{name}` hides another `{name}`", "Rename one of them.")

    def _step(self, node: c_ast.For, name: str) -> int:
        step: ast.expr | None = None
        match node.next:
            case c_ast.UnaryOp(op="p++" | "++" | "p--" | "--" as op, expr=c_ast.ID(name=counted)) if counted == name:
                return STEPS[op]
            case c_ast.Assignment(op="+=" | "-=" as op, lvalue=c_ast.ID(name=counted), rvalue=by) if counted == name:
                step = self.integer(by)
            case c_ast.Assignment(
                op="=",
                lvalue=c_ast.ID(name=counted),
                rvalue=c_ast.BinaryOp(op="+" | "-" as op, left=c_ast.ID(name=again), right=by),
            ) if counted == again == name:
                step = self.integer(by)
        match step:
            case ast.Constant(value=int(value)) if value > 0:
                return value if op[0] == "+" else -value
        remedy = "Write `i++`, `i--`, `i += 2` or `i -= 2`."
        if step is not None:
            remedy += " A step that is only known later makes a product of each subscript: define it as a constant."
        raise self.refuse(node.next or node, f"the loop over `{name}` has no constant step", remedy)

    def _ends(self, whole: c_ast.For, node: c_ast.Node | None, name: str, start: Value, step: int) -> list[ast.expr]:
        """The values at which `range` ends, of all comparisons joined by `&&`; the counter begins with `start`."""
        match node:
            case c_ast.BinaryOp(op="&&", left=left, right=right):
                return self._ends(whole, left, name, start, step) + self._ends(whole, right, name, start, step)
            case c_ast.BinaryOp(op="<" | "<=" | ">" | ">=" as op, left=left, right=right):
                if _starts_with(left, name):
                    return self._end(node, op, left, right, start, step)
                if _starts_with(right, name):
                    return self._end(node, op.translate(str.maketrans("<>", "><")), right, left, start, step)
            case c_ast.BinaryOp(op="!=", left=left, right=right) if abs(step) == 1:
                for counted, end in ((left, right), (right, left)):
                    if isinstance(counted, c_ast.ID) and counted.name == name:
                        return self._reached(node, end, start, step)
        shape = f"`{name} < n`" if step > 0 else f"`{name} > n`"
        why = f"`{shown(node)}` is no bound of `{name}`" if node is not None else "this loop has no bound"
        raise self.refuse(node or whole, why, f"Compare the counter itself: {shape}, several joined by `&&`.")

    def _reached(self, node: c_ast.Node, end: c_ast.Node, start: Value, step: int) -> list[ast.expr]:
        """Where the loop ends by `counter != end`, which it reaches if it does not start behind."""
        stop = self.integer_value(end)
        self.check_wrap(node, start, stop)
        if not self.is_least(*((stop, start) if step > 0 else (start, stop))):
            why = f"`{shown(node)}` never ends the loop if it starts behind `{shown(end)}`"
            raise self.refuse(node, why, f"Write `{'<' if step > 0 else '>'}`.")
        return _interval(stop.node, "min" if step > 0 else "max")

    def _end(
        self, node: c_ast.Node, op: str, counted: c_ast.Node, end: c_ast.Node, start: Value, step: int
    ) -> list[ast.expr]:
        """Where the loop ends by `counted op end`; `counted` is the counter, or the counter plus something."""
        if (op[0] == "<") != (step > 0):
            why = f"`{shown(node)}` does not end a loop with the step {step}"
            raise self.refuse(node, why, "Count up to an end with <, or down to one with >.")
        stop = self.integer_value(end)
        past = Value(constant(-1), "int")  # where a loop down to 0 ends
        self.check_wrap(node, past if step < 0 and op == ">=" else start, stop)
        found = _interval(stop.node, "min" if step > 0 else "max")
        if isinstance(counted, c_ast.BinaryOp):
            by = self.integer_value(counted.right)
            self.check_wrap(node, start, by)
            found = [_minus(value, by.node) for value in found]
        return [_plus(value, step // abs(step)) if op.endswith("=") else value for value in found]


def _counts_down(node: c_ast.Node | None, name: str) -> int | None:
    """The last value of a counter by the condition `name-- > 2`, `name-- != 2` or `name--`; None if it is another."""
    match node:
        case c_ast.BinaryOp(op=">" | "!=", left=left, right=c_ast.Constant(type=kind, value=text)) if "int" in kind:
            return None if _counts_down(left, name) is None else int(integer_literal(text).number or 0)
        case c_ast.UnaryOp(op="p--", expr=c_ast.ID(name=counted)) if counted == name:
            return 0
    return None


def constant(value: int) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _starts_with(node: c_ast.Node, name: str) -> bool:
    """Whether an expression is a name, or this plus something."""
    first = node.left if isinstance(node, c_ast.BinaryOp) and node.op == "+" else node
    return isinstance(first, c_ast.ID) and bool(first.name == name)


def _minus(node: ast.expr, other: ast.expr) -> ast.expr:
    if isinstance(other, ast.Constant) and isinstance(other.value, int):
        return _plus(node, -other.value)
    return ast.BinOp(node, ast.Sub(), other)


def _plus(node: ast.expr, number: int) -> ast.expr:
    """`node + number`, computed if both are numbers."""
    match node:
        case ast.Constant(value=int(value)):
            return constant(value + number)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=ast.Constant(value=int(value))):
            total = (value if isinstance(op, ast.Add) else -value) + number
            if not total:
                return left
            return ast.BinOp(left, ast.Add() if total > 0 else ast.Sub(), ast.Constant(abs(total)))
    return ast.BinOp(node, ast.Add() if number > 0 else ast.Sub(), ast.Constant(abs(number)))


def _divides(node: ast.expr) -> bool:
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.FloorDiv) for part in ast.walk(node))


def numerator(node: ast.expr) -> ast.expr:
    """A bound with `a` for `a // c`, which is no less, as `a` is not negative; the loop then tests for the quotient."""
    match node:
        case ast.BinOp(left=left, op=ast.FloorDiv()):
            return left
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right) if not _divides(right):
            return ast.BinOp(numerator(left), op, right)
    return node


def _joined(function: str, values: list[ast.expr]) -> ast.expr:
    return values[0] if len(values) == 1 else ast.Call(ast.Name(function, ast.Load()), values, [])


def _interval(node: ast.expr, function: str) -> list[ast.expr]:
    """The parts of a bound such as `a < b ? a : b`, which is a minimum; else the bound itself."""
    match node:
        case ast.IfExp(test=ast.Compare(left=left, ops=[op], comparators=[right]), body=then, orelse=other):
            sides, chosen = [ast.dump(left), ast.dump(right)], [ast.dump(then), ast.dump(other)]
            least = isinstance(op, ast.Lt | ast.LtE)
            if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and sorted(sides) == sorted(chosen):
                is_min = (sides == chosen) == least
                if is_min == (function == "min"):
                    return [*_interval(left, function), *_interval(right, function)]
    return [node]
