"""Random nests: imperfect, with locals, conditions, empty and backward ranges, stencils, triangles, wavefronts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from fuzz.fitting import fitted, named_values, unused
from fuzz.names import Names
from fuzz.syntax import (
    CALLED,
    COMPARISONS,
    Arg,
    Assign,
    Binary,
    Call,
    Cast,
    Condition,
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
    Test,
)

DTYPES = (*("f64", "f32") * 12, *("i64", "i32", "i16", "i8", "u8", "u16") * 3, "f16")
WIDER = {
    "u8": ("i16", "i32"),
    "u16": ("i32", "i64"),
    "i8": ("i16", "i32"),
    "i16": ("i32", "i64"),
    "i32": ("i64", "f64", "u8", "u16"),
    "f32": ("f64",),
}
"""Types in which values of a type are computed at times."""
SMALL = (0, 1, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9)
LARGE = (12, 13, 15, 16, 17, 19, 24, 31, 33, 64, 67, 131, 200)
"""Up to several whole vectors of bytes."""


@dataclass(frozen=True)
class Drawn:
    """A nest with its settings of the sizes: an open kernel runs with all, one for known sizes with the first."""

    program: Program
    settings: tuple[dict[str, int], ...]
    optimised: bool = False
    """Whether it has a form that compilers take apart wrongly only where they do most."""


@dataclass
class Place:
    """The names that may be used at one place of a nest."""

    loops: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    """Local scalars of the family's type that have a value here."""
    arrays: tuple[tuple[str, int], ...] = ()
    """Local arrays with their ranks."""
    depth: int = 0
    tests: int = 0
    """The number of conditions around."""


@dataclass
class Family:
    """Arrays and scalars of one type; a statement uses only one family."""

    dtype: str
    arrays: list[tuple[str, int]]
    scalars: list[str]
    locals: list[tuple[str, int]] = field(default_factory=list)
    seen: Family | None = None
    """The family whose values are converted to this one's type."""

    @property
    def is_float(self) -> bool:
        return self.dtype[0] == "f"

    def number(self, *wanted: int) -> tuple[int, ...]:
        """Those of some numbers that the type has."""
        return tuple(n for n in wanted if n >= 0 or self.dtype[0] != "u")


def draw_program(rng: Random) -> Drawn:
    """A random nest of one of the kinds, with its sizes."""
    from fuzz.contractions import contraction
    from fuzz.einsums import einsum

    kinds = {"any": 36, "contraction": 32, "stencil": 14, "deep": 8, "einsum": 5, "overwriting": 5}
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    if kind == "einsum":
        return einsum(rng)
    drawn = contraction(rng) if kind == "contraction" else Generator(rng, kind).drawn()
    return _finished(drawn, rng)


def _finished(drawn: Drawn, rng: Random) -> Drawn:
    """The nest with arrays that fit, and without unused arguments and sizes."""
    program = fitted(drawn.program, drawn.settings, rng)
    drop = unused(program)
    program = replace(program, args=tuple(a for a in program.args if a.name not in drop))
    named = named_values(program)
    program = replace(
        program,
        sizes=tuple(s for s in program.sizes if s in named),
        constants=tuple((n, v) for n, v in program.constants if n in named),
    )
    settings = [{s: values[s] for s in program.sizes} for values in drawn.settings]
    return replace(drawn, program=program, settings=tuple(settings))


class Generator:
    """Draws one nest."""

    def __init__(self, rng: Random, kind: str) -> None:
        self.rng, self.kind = rng, kind
        self.names = Names(rng, rng.random() < 0.3)
        self.sizes = [self.names.size() for _ in range(rng.choice((1, 2, 2, 3)))]
        self.families = [self._family() for _ in range(rng.choice((1, 1, 1, 2)))]
        self.looked = [(self.names.array(), rng.choice(("u8", "u16", "i16", "i32", "i64")), rng.choice((1, 3, 8, 20)))]
        """Arrays of indices with their types and the limits of their elements."""
        self.constants: dict[str, float] = {}
        if rng.random() < 0.2:
            value = rng.choice((2, 3, -1, 0.5, 0.25, 60 * 60 * 24 * 365 * 100, 2**40 + 1, 1.5))
            self.constants[self.names.constant()] = value
        self.budget = rng.choice((2, 3, 4, 6))
        """The number of statements that may still be drawn."""

    def _family(self) -> Family:
        rng = self.rng
        dtype = rng.choice(DTYPES)
        ranks = [rng.choices((0, 1, 2, 3), (1, 6, 7, 2))[0] for _ in range(rng.choice((1, 2, 2, 3, 4)))]
        scalars = [self.names.scalar() for _ in range(rng.random() < 0.3)]
        return Family(dtype, [(self.names.array(), rank) for rank in ranks], scalars)

    def drawn(self) -> Drawn:
        special = {"stencil": self._stencil, "overwriting": self._overwriting}.get(self.kind)
        body = special() if special else self._body(Place())
        args = [Arg(n, f.dtype, (Lin(),) * rank) for f in self.families for n, rank in f.arrays]
        args += [Arg(n, f.dtype, None) for f in self.families for n in f.scalars]
        args += [Arg(n, dtype, (Lin(),), below) for n, dtype, below in self.looked]
        self.rng.shuffle(args)
        reassociate = self.rng.random() > 0.1
        program = Program(
            self.names.function(), tuple(args), body, tuple(self.sizes), tuple(self.constants.items()), reassociate
        )
        settings = tuple(self._setting() for _ in range(self.rng.choice((1, 2, 2))))
        return Drawn(program, settings, self.kind == "overwriting")

    def _setting(self) -> dict[str, int]:
        rng = self.rng
        values = {size: rng.choice(SMALL) for size in self.sizes}
        if rng.random() < 0.6:
            values[rng.choice(self.sizes)] = rng.choice(LARGE)
        return values

    # --- statements ---

    def _body(self, place: Place) -> tuple[Stmt, ...]:
        rng = self.rng
        statements: list[Stmt] = []
        place = replace(place)
        deepest = 4 if self.kind == "deep" else 3
        for _ in range(rng.choice((1, 1, 2, 3) if place.depth else (1, 2, 3))):
            if self.budget <= 0 and statements:
                break
            draw = rng.random()
            if place.depth < deepest and (place.depth == 0 or draw < 0.5 or (place.depth < 2 and draw < 0.7)):
                statements.append(self._loop(place))
            elif draw < 0.75 and place.tests < 2:
                statements.append(self._if(place))
            elif draw < 0.9 and place.depth < 3:
                statements += self._local(place)
            else:
                statements.append(self._assign(place))
        if not any(not isinstance(s, Local) for s in statements):
            statements.append(self._assign(place))
        return tuple(statements)

    def _loop(self, place: Place) -> For:
        name = self.names.loop(place.loops)
        lower, upper, step = self._range(place)
        inner = replace(place, loops=(*place.loops, name), depth=place.depth + 1)
        return For(name, lower, upper, step, self._body(inner))

    def _range(self, place: Place) -> tuple[tuple[Lin, ...], tuple[Lin, ...], int]:
        rng = self.rng
        size = Lin.name(rng.choice(self.sizes))
        outer = Lin.name(rng.choice(place.loops)) if place.loops else None
        step = rng.choices((1, 2, 3, -1, -2, 5), (75, 5, 3, 12, 4, 1))[0]
        lows = [Lin()] * 6 + [Lin((), 1), Lin((), 2), Lin((), -2), Lin((), rng.choice((3, 40, 2000)))]
        highs = [size] * 6 + [size - 1, size + 2, Lin((), rng.choice((1, 3, 7, 16))), size - rng.choice((2, 5))]
        if outer:
            lows += [outer, outer + 1, outer, outer - 2]
            highs += [outer + 1, outer, outer + 3, outer + 1, size - outer, outer * 2 + 1]
        low, high = (rng.choice(lows),), (rng.choice(highs),)
        if abs(step) == 1 and rng.random() < 0.1:
            high = (*high, rng.choice(highs))
        if abs(step) == 1 and rng.random() < 0.07:
            low = (*low, rng.choice(lows))
        return low, high, step

    def _if(self, place: Place) -> If:
        rng = self.rng
        test = self._condition(place)
        body = self._body(replace(place, depth=max(place.depth, 2), tests=place.tests + 1))
        orelse = (self._assign(place),) if rng.random() < 0.25 else ()
        return If(test, body, orelse)

    def _condition(self, place: Place) -> Condition:
        rng = self.rng
        draw = rng.random()
        if place.loops and rng.random() < 0.3:
            family = rng.choice(self.families)
            sides = (self._value(place, family, 1), self._value(place, family, rng.choice((0, 1))))
            test = DataTest(sides[0], rng.choice(("<", "<=", ">", ">=", "==", "!=")), sides[1])
            return Joined(rng.choice(("and", "or")), test, self._test(place)) if draw < 0.2 else test
        if draw < 0.15:
            return Joined(rng.choice(("and", "or")), self._test(place), self._test(place))
        if draw < 0.22:
            return Not(self._test(place))
        return self._test(place)

    def _test(self, place: Place) -> Test:
        rng = self.rng
        left = self._sum(place, sizes=True)
        op = rng.choice(("<", "<=", ">", ">=", "==", "!="))
        if rng.random() < 0.35:
            by = rng.choice((2, 3, 4, 7))
            rest = rng.random() < 0.7
            return Test(Quotient(left, by, rest), op, Lin((), rng.randrange(by if rest else 3)))
        right = rng.choice([Lin((), rng.randrange(-1, 6)), Lin.name(rng.choice(self.sizes)), self._sum(place)])
        return Test(left, op, right)

    def _local(self, place: Place) -> list[Stmt]:
        """A local scalar with its value, or a local array that is filled; both may be used afterwards."""
        rng = self.rng
        family = self.families[0]
        name = self.names.local()
        if rng.random() < 0.55:
            value = self._value(place, family, 2)
            place.scalars += (name,)
            statements: list[Stmt] = [Local(name, family.dtype, None, value)]
            if rng.random() < 0.7 and place.depth < 3:
                loop = self._loop(place)
                term = self._value(replace(place, loops=(*place.loops, loop.index), scalars=()), family, 2)
                update = Assign(Read(name, (), True), rng.choice(("+=", "+=", "-=")), term)
                statements.append(replace(loop, body=(update,)))
            return [*statements, self._assign(place, family, use=Read(name, (), True))]
        rank = rng.choice((1, 1, 2))
        family.locals.append((name, rank))
        fill = self._value(replace(place), family, 1) if rng.random() < 0.85 else None
        place.arrays += ((name, rank),)
        local = Local(name, family.dtype, (Lin(),) * rank, None, fill)
        if place.depth < 3 and rng.random() < 0.8:
            writing, reading = self._loop(place), self._loop(place)
            target = self._element(replace(place, loops=(*place.loops, writing.index)), (name, rank))
            inner = replace(place, loops=(*place.loops, reading.index))
            first = replace(
                writing,
                body=(
                    Assign(
                        target,
                        rng.choice(("=", "+=")) if fill else "=",
                        self._value(inner_of(place, writing), family, 2),
                    ),
                ),
            )
            second = replace(reading, body=(self._assign(inner, family, use=self._element(inner, (name, rank))),))
            return [local, first, second]
        return [local, self._assign(place, family, use=self._element(place, (name, rank)))]

    def _assign(self, place: Place, family: Family | None = None, use: Expr | None = None) -> Assign:
        rng = self.rng
        self.budget -= 1
        family = family or rng.choice(self.families)
        op = rng.choices(("=", "+=", "-=", "*=", "/=", "max", "min", "x+"), (45, 27, 5, 4, 1, 4, 4, 6))[0]
        target = self._target(place, family)
        value = self._value(place, family, rng.choice((1, 2, 2, 3)))
        if use is not None:
            value = Binary(rng.choice("+-*"), value, use) if rng.random() < 0.6 else use
        if op in ("max", "min"):
            return Assign(target, "=", Call(op, (target, value)))
        if op == "x+":
            sides = (target, value) if rng.random() < 0.5 else (value, target)
            return Assign(target, "=", Binary("+", *sides))
        if op in ("/=", "*="):
            value = Number(rng.choice((0.5, 2.0, -1.0) if family.is_float else family.number(2, 3, -1)))
        return Assign(target, op, value)

    def _target(self, place: Place, family: Family) -> Read:
        rng = self.rng
        own = [a for a in place.arrays if a in family.locals]
        array = rng.choice(own) if own and rng.random() < 0.3 else rng.choice(family.arrays)
        return self._element(place, array)

    def _element(self, place: Place, array: tuple[str, int]) -> Read:
        name, rank = array
        return Read(name, tuple(self._index(place) for _ in range(rank)))

    def _index(self, place: Place) -> Lin:
        """Mostly a loop, perhaps a step aside; sums, multiples and other forms at times."""
        rng = self.rng
        if not place.loops or rng.random() < 0.06:
            return Lin((), rng.randrange(3))
        draw = rng.random()
        loop = Lin.name(rng.choice(place.loops))
        if draw < 0.5:
            return loop
        if draw < 0.72:
            return loop + rng.choice((-2, -1, -1, 1, 1, 2, 3))
        return self._sum(place)

    def _sum(self, place: Place, sizes: bool = False) -> Lin:
        rng = self.rng
        names = [*place.loops * 2, *(self.sizes if sizes else ())] or self.sizes
        first = Lin.name(rng.choice(names)) * rng.choice((1, 1, 1, 2, -1, 3))
        if rng.random() < 0.5:
            first = first + Lin.name(rng.choice(names)) * rng.choice((1, 1, -1, 2))
        return first + rng.choice((0, 0, 0, 1, -1, 2))

    # --- values ---

    def _value(self, place: Place, family: Family, depth: int) -> Expr:
        rng = self.rng
        draw = rng.random()
        is_float = family.is_float
        if family.seen and rng.random() < 0.5:
            return Cast(family.dtype, self._value(place, family.seen, depth - 1))
        if depth <= 0 or draw < 0.25:
            return self._leaf(place, family)
        if not family.seen and rng.random() < 0.12:
            return Cast(family.dtype, self._value(place, self._other(family), depth))
        if not is_float and family.arrays and draw < 0.33:
            op = rng.choice(("//", "%", "<<", ">>", "&", "|", "^"))
            return Binary(op, self._element(place, rng.choice(family.arrays)), self._value(place, family, depth - 1))
        if draw < 0.8:
            op = rng.choices("+-*/", (5, 3, 4, 0.5 if is_float else 0.1))[0]
            if op == "/":
                return Binary(
                    "/", self._value(place, family, depth - 1), Number(rng.choice((2, 4, 3)) * (1.0 if is_float else 1))
                )
            return Binary(op, self._value(place, family, depth - 1), self._value(place, family, depth - 1))
        if draw < 0.85:
            return Negative(self._value(place, family, depth - 1))
        if draw < 0.93:
            both = (self._value(place, family, depth - 1), self._value(place, family, depth - 1))
            return Call(rng.choice(("min", "max")), both)
        if draw < 0.95:
            sides = [self._value(place, family, depth - 1) for _ in range(4)]
            return Call("if" + rng.choice(list(COMPARISONS)), tuple(sides))
        if draw < 0.95 or not is_float:
            return Call("abs", (self._value(place, family, depth - 1),))
        function = rng.choice((*CALLED, *("floor", "ceil") * 2))
        inner = self._value(place, family, 0)
        return Call(
            function, (Call("abs", (inner,)) if function in ("sqrt", "log", "log2", "log10", "log1p") else inner,)
        )

    def _leaf(self, place: Place, family: Family) -> Expr:
        rng = self.rng
        draw = rng.random()
        is_float = family.is_float
        if family.seen:
            return self._number(family) if draw < 0.15 else Cast(family.dtype, self._leaf(place, family.seen))
        own = [a for a in place.arrays if a in family.locals]
        if draw < 0.15:
            return self._number(family)
        if draw < 0.22 and place.loops:
            return Name(rng.choice([*place.loops, *place.loops, *self.sizes]))
        if draw < 0.25 and self.constants and is_float:
            return Name(rng.choice(list(self.constants)))
        if draw < 0.35 and place.scalars and family is self.families[0]:
            return Read(rng.choice(place.scalars), (), True)
        if draw < 0.4 and family.scalars:
            return Read(rng.choice(family.scalars), (), True)
        if own and draw < 0.6:
            return self._element(place, rng.choice(own))
        array, rank = rng.choice(family.arrays)
        read = self._element(place, (array, rank))
        draw = rng.random() if rank and place.loops else 1.0
        if draw < 0.12:
            name, _, below = rng.choice(self.looked)
            at = rng.randrange(rank)
            index = Looked(name, self._index(place), below) if draw < 0.06 else self._extreme(place)
            return replace(read, indices=(*read.indices[:at], index, *read.indices[at + 1 :]))
        return read

    def _extreme(self, place: Place) -> Extreme:
        """An index kept above or below another, or the distance of two."""
        kind = self.rng.choice(("max", "min", "abs"))
        args = [self._index(place) for _ in range(1 if kind == "abs" else self.rng.choice((1, 2, 2)))]
        if kind != "abs" and len(args) < 2:
            args.append(Lin((), self.rng.randrange(4)))
        return Extreme(kind, tuple(args))

    def _other(self, family: Family) -> Family:
        """Values of another family, or of the same one in a wider type, as a family of values."""
        rng = self.rng
        others = [f for f in self.families if f.dtype != family.dtype]
        if others and rng.random() < 0.5:
            return rng.choice(others)
        wide = rng.choice(WIDER.get(family.dtype, ("f64",)))
        return Family(wide, [], [], seen=family) if wide != family.dtype else family

    def _number(self, family: Family) -> Expr:
        rng = self.rng
        if not family.is_float:
            if family.dtype == "i64" and rng.random() < 0.2:
                return rng.choice((Number(2**40 + 3), Binary("*", Number(100000), Number(100000))))
            return Number(rng.choice(family.number(0, 1, 2, 3, -1, 5, 100)))
        if rng.random() < 0.12:
            big = Binary("*", Binary("*", Number(60 * 60), Number(24 * 365)), Number(100))
            return rng.choice(
                (big, Binary("*", Number(2**16), Number(2**16)), Number(2**33), Number(10**12), Number(2**70))
            )
        return Number(rng.choice((0.5, 0.25, 2.0, -1.0, 1, 3, 0.125, 1.5, 0.1, 0, 2)))

    # --- iterations that store the same elements ---

    def _overwriting(self) -> tuple[Stmt, ...]:
        """Two loops, mostly one of few iterations, that store sums of their indices unread, from rows or columns."""
        rng = self.rng
        family = self.families[0]
        rank = rng.choice((2, 2, 3))
        source, target = (self.names.array(), rank), (self.names.array(), 1)
        family.arrays = [source, target]
        outer = self.names.loop(())
        inner = self.names.loop((outer,))
        loops = [Lin.name(outer), Lin.name(inner)]
        body, by = [], rng.choice((1, 1, 1, 2, -1))
        for _ in range(rng.choice((1, 1, 2))):
            columns = tuple(loops if rng.random() < 0.2 else reversed(loops))
            read: Expr = Read(source[0], (*(Lin((), rng.randrange(3)) for _ in range(rank - 2)), *columns))
            value = Binary(rng.choice("*+"), read, self._number(family)) if rng.random() < 0.4 else read
            body.append(Assign(Read(target[0], (loops[0] * by + loops[1],)), "=", value))
        ends = [Lin((), rng.choice((2, 2, 3, 4, 8))), Lin.name(self.sizes[0])]
        if rng.random() < 0.3:
            ends = [Lin.name(rng.choice(self.sizes)) for _ in ends]
        if rng.random() < 0.3:
            ends.reverse()
        inside = For(inner, (Lin(),), (ends[1],), 1, tuple(body))
        return (For(outer, (Lin(),), (ends[0],), 1, (inside,)),)

    # --- stencils ---

    def _stencil(self) -> tuple[Stmt, ...]:
        """Loops in time around sweeps over one or two arrays."""
        rng = self.rng
        family = self.families[0]
        rank = rng.choice((1, 1, 2))
        family.arrays = [(self.names.array(), rank) for _ in range(rng.choice((1, 2, 2)))]
        time = self.names.loop(())
        self.steps = self.names.size() if rng.random() < 0.6 else self.sizes[0]
        if self.steps not in self.sizes:
            self.sizes.append(self.steps)
        in_array = rng.random() < 0.3
        sweeps = []
        arrays = family.arrays if len(family.arrays) > 1 else family.arrays * rng.choice((1, 2))
        for number, (name, _) in enumerate(arrays):
            source = family.arrays[number - 1][0] if len(family.arrays) > 1 else name
            sweeps.append(self._sweep(time, family, name, source, rank, in_array))
        upper = Lin.name(self.steps) if rng.random() < 0.8 else Lin((), rng.choice((1, 2, 3)))
        if in_array:
            family.arrays = [(name, rank + 1) for name, _ in family.arrays]
        step = -1 if rng.random() < 0.1 else 1
        return (For(time, (Lin((), rng.choice((0, 1))),), (upper,), step, tuple(sweeps)),)

    def _sweep(self, time: str, family: Family, name: str, source: str, rank: int, in_array: bool) -> Stmt:
        rng = self.rng
        loops: list[str] = []
        for _ in range(rank):
            loops.append(self.names.loop((time, *loops)))
        reach = rng.choice((1, 1, 2))
        centre = tuple(map(Lin.name, loops))
        moment = (Lin.name(time),) if in_array else ()
        before = (Lin.name(time) - 1,) if in_array else ()

        def at(array: str, when: tuple[Lin, ...], moves: tuple[int, ...]) -> Read:
            return Read(array, (*when, *(c + m for c, m in zip(centre, moves, strict=True))))

        moves = [tuple(rng.randrange(-reach, reach + 1) for _ in range(rank)) for _ in range(rng.choice((2, 3, 4)))]
        value: Expr = at(source, before, moves[0])
        for move in moves[1:]:
            value = Binary(rng.choice("++-"), value, at(source, before, move))
        if family.is_float:
            value = Binary("*", Number(rng.choice((0.25, 0.5, 0.125))), value)
        body: Stmt = Assign(Read(name, (*moment, *centre)), rng.choice(("=", "=", "=", "+=")), value)
        ends = [Lin.name(rng.choice(self.sizes)) for _ in loops]
        for loop, end in reversed(list(zip(loops, ends, strict=True))):
            step = rng.choice((1, 1, 1, 1, -1, 2))
            body = For(loop, (Lin((), reach),), (end - reach,), step, (body,))
        return body


def inner_of(place: Place, loop: For) -> Place:
    return replace(place, loops=(*place.loops, loop.index), depth=place.depth + 1)


Draw = Callable[[Random], Drawn]
