"""C statements as the Python statements of the same loops."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from pycparser import c_ast

from poly.errors import SpecError
from poly.frontends.c.declarations import (
    COUNTING,
    ArrayName,
    CounterName,
    CType,
    ElementName,
    Known,
    Meaning,
    ScalarName,
    SizeName,
    Unknown,
    Uses,
    type_of,
    unknown_type,
)
from poly.frontends.c.induction import STEPS, addend, change, last_value
from poly.frontends.c.place import marked, shown
from poly.frontends.c.values import INDICES, Value, Values, common, converted
from poly.frontends.counted import CountedLoop, plus
from poly.frontends.polynomials import Polynomial, Range, expression, polynomial, product
from poly.frontends.source import Source

JUMPS: dict[type[c_ast.Node], tuple[str, str]] = {
    c_ast.While: ("a `while` loop has no affine bounds", "Write `for (i = 0; i < n; i++)`."),
    c_ast.DoWhile: ("a `do` loop has no affine bounds", "Write `for (i = 0; i < n; i++)`."),
    c_ast.Goto: ("`goto` lets the program jump", "Write loops and `if`."),
    c_ast.Label: ("a label is for jumps", "Write loops and `if`."),
    c_ast.Break: ("`break` lets the data decide which iterations run", "Put the rest of the body below an `if`."),
    c_ast.Continue: ("`continue` leaves out a part of the body", "Put the rest of the body below an `if`."),
    c_ast.Return: ("a nest returns nothing", "Store results in an array, and mark the loops by `#pragma scop`."),
    c_ast.Switch: ("`switch` jumps", "Write it by `if` and `else`."),
}
"""What is refused, why, and how to write it instead."""


class OpenAccess(NamedTuple):
    """A subscript, and the loops around it, from which the extent of a pointer follows."""

    subscript: ast.Subscript
    loops: tuple[Range, ...]


class Statements(Values):
    """Translates the statements of one function.

    `uses` has those of its names, `counters` the names that loops count, `integers` those that bounds and subscripts
    depend on, `looking` those that subscripts depend on, `unsigned` the bits of unsigned ones. `accesses` collects the
    subscripts of each array.
    """

    def __init__(
        self,
        source: Source,
        typedefs: Mapping[str, c_ast.Node],
        uses: Uses,
        counters: frozenset[str],
        integers: frozenset[str],
        looking: frozenset[str],
        unsigned: Mapping[str, int],
    ) -> None:
        super().__init__(source, typedefs)
        self.accesses: dict[str, list[OpenAccess]] = {}
        self._uses = uses
        self._counters = counters
        self._integers = integers
        self._looking = looking
        self._unsigned = unsigned
        self._loops: tuple[Range, ...] = ()
        self._assigned: list[set[str]] = [set()]
        """The local integers that were assigned in each block around this place."""

    def block(self, nodes: Iterable[c_ast.Node]) -> list[ast.stmt]:
        return [made for node in nodes for made in self._statement(node)]

    def _statement(self, node: c_ast.Node) -> list[ast.stmt]:
        made = self._translated(node)
        return [marked(statement, node, self.source) for statement in made]

    def _translated(self, node: c_ast.Node) -> list[ast.stmt]:
        match node:
            case c_ast.Pragma() | c_ast.EmptyStatement():
                return []
            case c_ast.Compound(block_items=items):
                with self._inner():
                    return self.block(items or [])
            case c_ast.DeclList(decls=decls):
                return self.block(decls)
            case c_ast.Decl():
                return self._declaration(node)
            case c_ast.For():
                return [self._for(node)]
            case c_ast.If(cond=cond, iftrue=then, iffalse=other):
                return [self._if(cond, then, other)]
            case c_ast.Assignment():
                return self._assignment(node)
            case c_ast.UnaryOp(op="p++" | "p--" | "++" | "--" as op, expr=target):
                one = c_ast.Constant("int", "1", coord=node.coord)
                return self._assignment(
                    c_ast.Assignment("+=" if STEPS[op] > 0 else "-=", target, one, coord=node.coord)
                )
            case c_ast.FuncCall():
                why = f"`{shown(node)}` is called for its side effects"
                raise self.refuse(node, why, "Write its loops here; calls of math.h's functions are values.")
            case c_ast.ExprList(exprs=exprs):
                return self.block(exprs)
        why, remedy = JUMPS.get(type(node), (f"`{shown(node)}` is no statement that poly knows", "Use for, if and =."))
        raise self.refuse(node, why, remedy)

    def _body(self, node: c_ast.Node) -> list[ast.stmt]:
        with self._inner():
            return self._statement(node) or [ast.Pass()]

    def _if(self, cond: c_ast.Node, then: c_ast.Node, other: c_ast.Node | None) -> ast.stmt:
        test, before = self.test(cond), dict(self.names)
        body, after = self._body(then), self.names
        self.names = before
        made = ast.If(test, body, self._body(other) if other is not None else [])
        self.names |= {name: found for name, found in after.items() if isinstance(found, Unknown)}
        return made

    @contextmanager
    def _inner(self) -> Iterator[None]:
        """A block: its declarations end with it, and integers that it assigns have no known value after it."""
        before = dict(self.names)
        self._assigned.append(set())
        yield
        assigned = self._assigned.pop()
        self._assigned[-1] |= assigned
        forgotten = {name: _lost(name) for name in assigned if name in before}
        self.names = {**before, **forgotten}

    def _declaration(self, node: c_ast.Decl) -> list[ast.stmt]:
        name, found = node.name, type_of(node.type, self.typedefs)
        if found is None:
            raise self.refuse(node, *unknown_type(name, node))
        known = self.names.get(name)
        if isinstance(known, CounterName | SizeName | ArrayName | ScalarName | ElementName):
            raise self.refuse(node, f"`{name}` hides another `{name}`", "Rename one of them.")
        if found.extents:
            return [self.local_array(node, found)]
        if self.counts(name, found):
            self.names[name] = _lost(name)
            return self._known_integer(node, name, node.init, found.unsigned) if node.init is not None else []
        if found.unsigned:
            raise self.refuse(node, f"`{name}` is unsigned, and wraps around", "Declare it as int or double.")
        self.names[name] = ScalarName(found.dtype)
        return self.local_scalar(node, found)

    def local_scalar(self, node: c_ast.Decl, found: CType) -> list[ast.stmt]:
        """The declaration of a local scalar, with a value unless one comes first wherever it is used."""
        value: ast.expr | None = None
        if node.init is not None:
            value = converted(self.value(node.init), found.dtype)
        elif not self._uses.starts_by_itself(node.name):
            if self._uses.is_read_first(node.name):
                why = f"`{node.name}` may be read before it has a value"
                raise self.refuse(node, why, f"Give it one here: `{node.name} = 0`.")
            value = ast.Constant(0)
        target = ast.Name(node.name, ast.Store())
        return [ast.AnnAssign(target, ast.Name(found.dtype, ast.Load()), value, simple=1)]

    def local_array(self, node: c_ast.Decl, found: CType) -> ast.stmt:
        """The declaration of a local array."""
        if found.pointer or None in found.extents:
            remedy = f"Index the array itself, or declare `{node.name}` with its extents."
            raise self.refuse(node, f"`{node.name}` is a pointer, which may point into any array", remedy)
        if node.init is not None:
            raise self.refuse(node, f"`{node.name}` has initial values", "Fill it by loops after its declaration.")
        if found.unsigned:
            raise self.refuse(node, f"`{node.name}` holds unsigned data, which wraps around", "Use a signed type.")
        self.names[node.name] = ArrayName(found)
        kind = annotation(found.dtype, [self.integer(extent) for extent in found.extents if extent is not None])
        return ast.AnnAssign(ast.Name(node.name, ast.Store()), kind, None, simple=1)

    def counts(self, name: str, found: CType) -> bool:
        """Whether a local of that type stands for expressions of counters, sizes and what subscripts look up alone."""
        return found.dtype in COUNTING and self._is_known_integer(name, found)

    def _is_known_integer(self, name: str, found: CType) -> bool:
        if name in self._counters:
            return True
        return all(self._sets_integer(node, name, found) for write, _, node in self._uses.found.get(name, ()) if write)

    def _sets_integer(self, node: c_ast.Node, name: str, found: CType) -> bool:
        """Whether a declaration or an assignment makes an integer of counters and sizes of a name."""
        if name in self._integers:
            if isinstance(node, c_ast.UnaryOp):
                return True
            if (added := addend(node, name)) is not None:
                return self._is_integer(added[1], name, found)
        value = node.init if isinstance(node, c_ast.Decl) else getattr(node, "rvalue", None)
        return value is not None and getattr(node, "op", "=") == "=" and self._is_integer(value, name, found)

    def _is_integer(self, node: c_ast.Node, name: str, own: CType) -> bool:
        match node:
            case c_ast.ID(name=other):
                return other != name and not isinstance(self.names.get(other), ScalarName | ElementName | ArrayName)
            case c_ast.Constant(type=kind):
                return "int" in kind
            case c_ast.Cast(to_type=wanted, expr=operand):
                to = type_of(wanted, self.typedefs)
                return (
                    to is not None and to.dtype in COUNTING and not to.extents and self._is_integer(operand, name, own)
                )
            case c_ast.BinaryOp() | c_ast.UnaryOp() | c_ast.TernaryOp():
                return all(self._is_integer(child, name, own) for child in node)
            case c_ast.ArrayRef():
                return name in self._looking and not own.unsigned and self._is_looked_up(node, own.dtype)
        return False

    def _is_looked_up(self, node: c_ast.ArrayRef, dtype: str) -> bool:
        """Whether an integer of a type may stand for an element of an array, which stays as it is."""
        base: c_ast.Node = node
        while isinstance(base, c_ast.ArrayRef):
            base = base.name
        known = self.names.get(base.name) if isinstance(base, c_ast.ID) else None
        if not isinstance(known, ArrayName) or self._uses.written(base.name):
            return False
        return known.type.dtype in INDICES and common(known.type.dtype, "int") == dtype

    def _known_integer(self, node: c_ast.Node, name: str, value: c_ast.Node, unsigned: bool) -> list[ast.stmt]:
        found = self.value(value)
        if found.kind not in ("int", "uint", *INDICES):
            raise self.refuse(node, f"`{name}` gets a value that is no integer of counters and sizes", "Use double.")
        terms = polynomial(found.node) if addend(node, name) is not None else None
        value_here = found.node if terms is None else expression(terms)
        kind = found.kind if found.kind in INDICES else "uint" if unsigned or found.kind == "uint" else "int"
        self.names[name] = Known(value_here, kind)
        self._assigned[-1].add(name)
        return []

    def _assignment(self, node: c_ast.Assignment) -> list[ast.stmt]:
        op, target, value = node.op, node.lvalue, node.rvalue
        if isinstance(value, c_ast.Assignment):  # a = b = c is b = c; a = b
            return [
                *self._statement(value),
                *self._statement(c_ast.Assignment(op, target, value.lvalue, coord=node.coord)),
            ]
        if op not in ("=", "+=", "-=", "*=", "/="):
            raise self.refuse(node, f"`{op}` is not one of = += -= *= /=", "Write it with these.")
        if isinstance(target, c_ast.ID):
            match self.names.get(target.name):
                case CounterName():
                    why = f"`{target.name}` counts a loop that runs here, and is changed in it"
                    raise self.refuse(node, why, "Leave the counter to the `for`, with a step such as `i += 2`.")
                case SizeName():
                    why = f"`{target.name}` is a parameter that a bound or subscript names"
                    raise self.refuse(node, why, "Assign a local of another name.")
                case ScalarName(is_argument=True):
                    why = f"`{target.name}` is a parameter passed by value"
                    raise self.refuse(node, why, "Assign a local of another name.")
                case Known() | Unknown():
                    if op != "=":
                        value = c_ast.BinaryOp(op[0], target, value, coord=node.coord)
                    return self._known_integer(node, target.name, value, False)
        place = self.value(target)
        right = self.value(value)
        if op != "=":  # the element is read by nodes of its own, since nodes tell reads and writes apart
            right = marked_value(self._binary(node, op[0], self.value(target), right), node, self.source)
        stored = ast.Assign([_store(place.node)], converted(right, place.kind))
        return [stored]

    def element(self, node: c_ast.ArrayRef) -> Value:
        found = super().element(node)
        if isinstance(found.node, ast.Subscript) and isinstance(found.node.value, ast.Name):
            self.accesses.setdefault(found.node.value.id, []).append(OpenAccess(found.node, self._loops))
        return found

    def _for(self, node: c_ast.For) -> ast.stmt:
        name, first, wraps_at = self._start(node)
        unsigned = bool(wraps_at)
        low = self.integer(first)
        start = Value(low, "uint" if unsigned else "int")
        self.check_wrap(first, start, Value(low, "int"))
        around, before, inside = self._loops, dict(self.names), Uses.of([node.stmt])
        changed = {n: found for n, found in before.items() if isinstance(found, Known) and inside.written(n)}
        self.names |= {local: _lost(local) for local in changed}
        step = self._step(node, name)
        if step < 0 and unsigned:
            why = f"`{name}` is unsigned and counts down: it wraps around below 0"
            raise self.refuse(node, why, "Declare it as int or ptrdiff_t.")
        ends = self._ends(node, node.cond, name, start, step)
        for value in (*_interval(low, "max" if step > 0 else "min"), *ends):
            if any(isinstance(part, ast.IfExp) for part in ast.walk(value)):
                why = f"a bound of `{name}` divides what may be negative, or is no minimum or maximum"
                raise self.refuse(node, why, "Start at max(a, b), end at min(a, b), and put the rest in an `if`.")
        least = _interval(low, "max") if step > 0 else [_plus(end, 1) for end in ends]
        natural = any(map(self.is_natural, least))
        counter = ast.Name(name, ast.Load())
        tests: list[ast.expr] = [ast.Compare(counter, [ast.Lt()], [end]) for end in ends if _divides(end)]
        stop = _joined("min" if step > 0 else "max", [_numerator(end) for end in ends] if step > 0 else ends)
        arguments = [_joined("max" if step > 0 else "min", _interval(low, "max" if step > 0 else "min")), stop]
        if step != 1:
            arguments.append(_constant(step))
        elif isinstance(low, ast.Constant) and low.value == 0:
            arguments = [stop]
        own = (low, _plus(ends[0], -1)) if step > 0 else (_plus(ends[0], 1), low)
        self._loops = (*around, (name, *own))
        self.names[name] = CounterName(natural, wraps_at)
        loop = _counted(name, low, step, ends)
        changes = {local: self._change(node.stmt, local, name) for local in changed} if loop is not None else {}
        after: dict[str, Meaning] = {local: _lost(local) for local in changed}
        if loop is not None:
            after |= self._after(loop, changed, changes)
            self.names |= self._at_start(loop, node.stmt, changed, changes)
        body = self._body(node.stmt)
        if tests and step > 0:
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            body = [marked(ast.If(test, body, []), node, self.source)]
        self._loops = around
        self.names = {**before, **after, name: Unknown(f"`{name}` counts a loop that does not run here")}
        head = ast.Call(ast.Name("range", ast.Load()), arguments, [])
        return ast.For(ast.Name(name, ast.Store()), head, body, [])

    def _change(self, body: c_ast.Node, local: str, counter: str) -> Polynomial | None:
        """What each iteration adds to an integer, the same in all of them; None if it does anything else."""

        def amount(value: c_ast.Node) -> Polynomial | None:
            try:
                found = polynomial(self.integer(value))
            except SpecError:
                return None
            return found if found is not None and not any(counter in key for key in found) else None

        def trips(inner: c_ast.For) -> Polynomial | None:
            names = dict(self.names)
            try:
                own, first, _ = self._start(inner)
                low, step = self.integer(first), self._step(inner, own)
                ends = self._ends(inner, inner.cond, own, Value(low, "int"), step)
            except SpecError:
                return None
            finally:
                self.names = names
            loop = _counted(own, low, step, ends)
            found = None if loop is None else loop.trips(self.is_natural)
            return found if found is not None and not any(counter in key for key in found) else None

        return change([body], local, amount, trips)

    def _at_start(
        self,
        loop: CountedLoop,
        body: c_ast.Node,
        changed: Mapping[str, Known],
        changes: Mapping[str, Polynomial | None],
    ) -> dict[str, Known]:
        """The integers with known values at the start of each iteration."""
        found: dict[str, Known] = {}
        for local, known in changed.items():
            by = changes[local]
            if by is not None:
                found[local] = Known(loop.at(known.value, by), known.kind)
        names = self.names
        waiting = {local: last_value(body, local) for local in changed.keys() - found.keys()}
        for _ in waiting:  # one may be what another was
            for local in [local for local, value in waiting.items() if value is not None and local not in found]:
                self.names = {**names, **found}
                try:
                    value = self.integer_value(waiting[local])
                except SpecError:
                    continue
                found[local] = Known(loop.before(value.node, changed[local].value), value.kind)
        self.names = names
        return found

    def _after(
        self, loop: CountedLoop, changed: Mapping[str, Known], changes: Mapping[str, Polynomial | None]
    ) -> dict[str, Known]:
        """The integers with known values behind a loop."""
        found: dict[str, Known] = {}
        count = loop.trips(self.is_natural)
        for local, known in changed.items():
            by = changes[local]
            if by is not None and count is not None:
                found[local] = Known(plus(known.value, product(by, count)), known.kind)
        return found

    def _start(self, node: c_ast.For) -> tuple[str, c_ast.Node, int]:
        """The counter of a loop, its first value, and the bits at which it wraps around."""
        match node.init:
            case c_ast.DeclList(decls=[c_ast.Decl(name=name, type=kind, init=first)]) if first is not None:
                found = type_of(kind, self.typedefs)
                if found is None or found.dtype not in COUNTING or found.extents:
                    raise self.refuse(node, f"the counter `{name}` is no int", "Count by an int or long.")
                self._check_counter(node, name, new=True)
                return name, first, found.wraps_at
            case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=name), rvalue=first):
                self._check_counter(node, name, new=False)
                is_counter = isinstance(self.names.get(name), Unknown)
                return name, first, self._unsigned.get(name, 0) if is_counter else 0
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
        raise self.refuse(
            node.next or node,
            f"the loop over `{name}` has no constant step",
            "Write `i++`, `i--`, `i += 2` or `i -= 2`.",
        )

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
        shape = f"`{name} < n`" if step > 0 else f"`{name} > n`"
        why = f"`{shown(node)}` is no bound of `{name}`" if node is not None else "this loop has no bound"
        raise self.refuse(node or whole, why, f"Compare the counter itself: {shape}, several joined by `&&`.")

    def _end(
        self, node: c_ast.Node, op: str, counted: c_ast.Node, end: c_ast.Node, start: Value, step: int
    ) -> list[ast.expr]:
        """Where the loop ends by `counted op end`; `counted` is the counter, or the counter plus something."""
        if (op[0] == "<") != (step > 0):
            why = f"`{shown(node)}` does not end a loop with the step {step}"
            raise self.refuse(node, why, "Count up to an end with <, or down to one with >.")
        stop = self.integer_value(end)
        past = Value(_constant(-1), "int")  # where a loop down to 0 ends
        self.check_wrap(node, past if step < 0 and op == ">=" else start, stop)
        found = _interval(stop.node, "min" if step > 0 else "max")
        if isinstance(counted, c_ast.BinaryOp):
            by = self.integer_value(counted.right)
            self.check_wrap(node, start, by)
            found = [_minus(value, by.node) for value in found]
        return [_plus(value, step // abs(step)) if op.endswith("=") else value for value in found]


def marked_value(value: Value, node: c_ast.Node, source: Source) -> Value:
    marked(value.node, node, source)
    return value


def annotation(dtype: str, extents: list[ast.expr]) -> ast.expr:
    """`f64[n, m]`."""
    if not extents:
        return ast.Name(dtype, ast.Load())
    shape = extents[0] if len(extents) == 1 else ast.Tuple(extents, ast.Load())
    return ast.Subscript(ast.Name(dtype, ast.Load()), shape, ast.Load())


def _counted(name: str, low: ast.expr, step: int, ends: list[ast.expr]) -> CountedLoop | None:
    """A loop for what its iterations add up to; None if it starts at no sum of products."""
    start = polynomial(low)
    if start is None:
        return None
    return CountedLoop(name, start, step, polynomial(ends[0]) if len(ends) == 1 else None)


def _lost(name: str) -> Unknown:
    return Unknown(f"the value of `{name}` is not known here: it is assigned elsewhere, or only on some ways")


def _store(node: ast.expr) -> ast.expr:
    assert isinstance(node, ast.Name | ast.Subscript), "only elements and scalars are assigned"
    node.ctx = ast.Store()
    return node


def _constant(value: int) -> ast.expr:
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
            return _constant(value + number)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=ast.Constant(value=int(value))):
            total = (value if isinstance(op, ast.Add) else -value) + number
            if not total:
                return left
            return ast.BinOp(left, ast.Add() if total > 0 else ast.Sub(), ast.Constant(abs(total)))
    return ast.BinOp(node, ast.Add() if number > 0 else ast.Sub(), ast.Constant(abs(number)))


def _divides(node: ast.expr) -> bool:
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.FloorDiv) for part in ast.walk(node))


def _numerator(node: ast.expr) -> ast.expr:
    """A bound with `a` for `a // c`, which is no less, as `a` is not negative; the loop then tests for the quotient."""
    match node:
        case ast.BinOp(left=left, op=ast.FloorDiv()):
            return left
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right) if not _divides(right):
            return ast.BinOp(_numerator(left), op, right)
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
