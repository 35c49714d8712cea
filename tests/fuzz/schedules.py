"""Random schedules: walks of random steps, points of the space, those and the default changed, tiles for microkernels.

A step that poly refuses is skipped. Any other exception of a step is a failure of poly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import islpy as isl

import poly
from codegen.ir.expr import Logic, Predicate, walk
from microkernels.catalogue import group_tiles, tiles
from microkernels.isa import ISA
from microkernels.opencl_isa import is_gpu
from poly.autoschedule.default import default_schedule
from poly.ir.tree import Band, bands, statements
from poly.model.core import Target
from poly.model.host import here
from poly.schedules.schedule import Schedule
from poly.schedules.steps.materialize import text

REFUSALS = (
    poly.PolyError,
    poly.ScheduleError,
    poly.SpecError,
    poly.TargetError,
    poly.ArgumentError,
)


@dataclass(frozen=True)
class Step:
    """A call of a method of `Schedule`."""

    method: str
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()

    def apply(self, made: Schedule) -> Schedule:
        return getattr(made, self.method)(*self.args, **self._named())

    def _named(self) -> dict[str, Any]:
        """The arguments by name; blocks are kept as pairs, so that steps hash."""
        return {k: dict(v) if isinstance(v, tuple) else v for k, v in self.kwargs}

    def __str__(self) -> str:
        texts = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self._named().items())]
        return f".{self.method}({', '.join(texts)})"


@dataclass
class Taken:
    """A schedule in progress: the steps that poly accepted, and the number that it refused."""

    made: Schedule
    steps: tuple[Step, ...] = ()
    refused: int = 0
    before: Callable[[tuple[Step, ...]], None] = lambda _: None
    """Called with the steps before the last of them is applied, so that a hang in it can be attributed."""

    def take(self, step: Step) -> bool:
        self.before((*self.steps, step))
        try:
            made = step.apply(self.made)
        except REFUSALS:
            self.refused += 1
            return False
        except isl.Error:
            raise  # it may be that isl was given up
        except Exception as error:
            raise StepFailed((*self.steps, step), error) from error
        self.made, self.steps = made, (*self.steps, step)
        return True


class StepFailed(Exception):
    """A step raised an exception that is not poly's own."""

    def __init__(self, steps: tuple[Step, ...], error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.steps, self.error = steps, error


def steps_of(made: Schedule) -> tuple[Step, ...]:
    """The steps of a schedule that poly made."""
    return tuple(Step(s.name, s.arguments()[0], tuple(s.arguments()[1].items())) for s in made.steps)


class Drawing:
    """Draws schedules for one nest and target; queries of poly that all of them share are made once."""

    def __init__(self, nest: poly.Nest, isa: ISA, target: str, threads: int, rng: Random, gpu: bool = False) -> None:
        self.nest, self.isa, self.target, self.threads, self.rng = nest, isa, target, threads, rng
        self.gpu = gpu
        self.before: Callable[[tuple[Step, ...]], None] = lambda _: None
        self._space: Any = None

    def draw(self, kind: str) -> Taken:
        """One schedule of a kind. Raises StepFailed."""
        taken = Taken(poly.schedule(self.nest), before=self.before)
        match kind:
            case "walk":
                self._walk(taken, self.rng.choice((1, 2, 3, 4, 5, 7)))
            case "tiles":
                self._tiles(taken)
            case "point":
                self._replay(taken, self._point())
            case "changed":
                self._replay(taken, self._changed(self._point()))
            case "edited":
                self._replay(taken, steps_of(default_schedule(self.nest, self.model())))
                self._walk(taken, len(taken.steps) + self.rng.choice((1, 2, 3)))
        return taken

    def _replay(self, taken: Taken, steps: tuple[Step, ...]) -> None:
        for step in steps:
            taken.take(step)

    def _point(self) -> tuple[Step, ...]:
        if self._space is None:
            space = self.space()
            self._space = space, list(space)[:400]
        space, points = self._space
        try:
            return steps_of(space.schedule(self.rng.choice(points))) if points else ()
        except poly.ScheduleError:  # a grid's point may be illegal; a search passes by
            return ()

    def model(self) -> Target:
        """The machine that the default schedule is for."""
        return here(self.isa, self.threads)

    def space(self) -> Any:
        return poly.space(self.nest, target=self.target, threads=self.threads)

    def _changed(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Some steps left out, repeated or with other numbers, and a new one."""
        rng = self.rng
        found = list(steps)
        for _ in range(rng.choice((1, 1, 2))):
            draw = rng.random()
            if found and draw < 0.3:
                found.pop(rng.randrange(len(found)))
            elif found and draw < 0.6:
                at = rng.randrange(len(found))
                found[at] = replace(found[at], kwargs=tuple((k, self._other(v)) for k, v in found[at].kwargs))
            elif len(found) > 1 and draw < 0.7:
                at = rng.randrange(len(found) - 1)
                found[at : at + 2] = found[at + 1], found[at]
        if rng.random() < 0.6:
            found.insert(rng.randrange(len(found) + 1), self.step(poly.schedule(self.nest)))
        return tuple(found)

    def _other(self, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool) and self.rng.random() < 0.6:
            return max(1, self.rng.choice((value + 1, value - 1, value * 2, value // 2, self._size())))
        return value

    # --- walks ---

    def _walk(self, taken: Taken, count: int) -> None:
        for _ in range(count * 3):
            if len(taken.steps) >= count:
                break
            taken.take(self.step(taken.made))

    def _tiles(self, taken: Taken) -> None:
        """Tiles for a microkernel around a statement, the kernel, copies of its operands, one parallel loop."""
        rng = self.rng
        self._walk(taken, rng.choice((0, 0, 0, 1, 2)))
        loops = [band.name for band in bands(taken.made.tree)]
        shape = self._shape()
        if shape is None or not loops:
            self._walk(taken, 3)
            return
        name, rows, columns = shape
        if rng.random() < 0.3:
            self._blocks(taken, loops)
        ways = [(a, b) for a in loops for b in loops if a != b]
        rng.shuffle(ways)
        statement = rng.choice(statements(taken.made.tree)) if rng.random() < 0.5 else None
        named = (("statement", statement),) if statement else ()
        for first, second in ways[:8] or [(loops[0], loops[0])]:
            tiled = Taken(taken.made, taken.steps, before=self.before)
            sizes = ((first, rows), (second, columns)) if first != second else ((first, columns),)
            ok = tiled.take(Step("tile", (), sizes)) and tiled.take(Step("microkernel", (name,), named))
            taken.refused += tiled.refused
            if ok:
                taken.made, taken.steps = tiled.made, tiled.steps
                break
        for _ in range(rng.choice((0, 1, 2, 3))):
            taken.take(self._pack(taken.made))
        if rng.random() < 0.4:
            taken.take(self._flag("parallel", taken.made))
        self._walk(taken, rng.choice((0, 0, 1)))

    def _blocks(self, taken: Taken, loops: list[str]) -> None:
        """Blocks around the tiles, as for the cache."""
        chosen = self.rng.sample(loops, min(len(loops), self.rng.choice((1, 2))))
        sizes = tuple((name, self.rng.choice((2, 5, 12, 32))) for name in chosen)
        taken.take(Step(self.rng.choice(("tile", "split")), (), sizes))

    def _shape(self) -> tuple[str, int, int] | None:
        """A microkernel, and a tile of its size or of another size."""
        rng = self.rng
        dtypes = [a.dtype for a in self.nest.arguments if a.shape] or [poly.f32]
        try:
            kernels = (group_tiles if is_gpu(self.isa) else tiles)(self.isa, rng.choice(dtypes))
        except REFUSALS:
            return None
        if not kernels:
            return None
        kernel = rng.choice(kernels)
        rows, columns = kernel.rows, kernel.columns
        if rng.random() < 0.2:
            rows, columns = max(1, rows + rng.choice((-1, 0, 1))), max(1, columns + rng.choice((-3, 0, 1)))
        return kernel.name, rows, columns

    # --- single steps ---

    def step(self, made: Schedule) -> Step:
        """One step with mostly meaningful arguments."""
        rng = self.rng
        kinds: dict[str, tuple[int, Callable[[Schedule], Step]]] = {
            "tile": (14, self._tile),
            "split": (10, self._split),
            "interchange": (8, lambda m: Step("interchange", (self._loop(m), self._loop(m)))),
            "order": (6, self._order),
            "flatten": (4, self._flatten),
            "fuse": (6, self._fuse),
            "distribute": (4, self._distribute),
            "enclose": (3, self._enclose),
            "accumulate": (2, self._accumulate),
            "substitute": (2, self._substitute),
            "materialize": (3, self._materialize),
            "privatize": (2, self._privatize),
            "reorder_storage": (2, self._reorder_storage),
            "rfactor": (2, lambda m: self._cut_iterator("rfactor", m)),
            "split_iterator": (2, lambda m: self._cut_iterator("split_iterator", m)),
            "skew": (6, self._skew),
            "shift": (6, self._shift),
            "reverse": (5, lambda m: Step("reverse", (self._loop(m),))),
            "parallel": (8, lambda m: self._flag("parallel", m)),
            "vectorize": (10, self._vectorize),
            "unroll": (7, lambda m: Step("unroll", (), ((self._loop(m), self._size()),))),
            "pack": (10, self._pack),
            "part": (3, self._part),
            "microkernel": (3, self._microkernel),
            "loops": (2, self._loops),
        }
        if self.gpu:
            kinds["groups"] = 12, self._groups
            kinds["items"] = 12, self._items
        weights = [weight for weight, _ in kinds.values()]
        _, draw = kinds[rng.choices(list(kinds), weights)[0]]
        return draw(made)

    def _loop(self, made: Schedule) -> str:
        names = [band.name for band in bands(made.tree)]
        if not names or self.rng.random() < 0.01:
            return "nowhere"
        return self.rng.choice(names)

    def _some(self, made: Schedule, most: int) -> list[str]:
        names = [band.name for band in bands(made.tree)] or ["nowhere"]
        return self.rng.sample(names, min(len(names), self.rng.randrange(1, most + 1)))

    def _statement(self, made: Schedule) -> str:
        return self.rng.choice(statements(made.tree))

    def _size(self) -> int:
        draw = self.rng.random()
        if draw < 0.01:
            return self.rng.choice((0, -1, 10**9, 2**31, 2**61, 2**63 - 1, 2**70))
        return self.rng.choice((1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 8, 16, 32, 64))

    def _offset(self) -> int:
        draw = self.rng.random()
        if draw < 0.02:
            return self.rng.choice((2**31, -(2**31), 2**61, 2**63 - 1, -(2**63), 2**64))
        return self.rng.choice((-3, -2, -1, 1, 1, 1, 2, 3, 5, 0))

    def _tile(self, made: Schedule) -> Step:
        return Step("tile", (), tuple((name, self._size()) for name in self._some(made, 3)))

    def _split(self, made: Schedule) -> Step:
        return Step("split", (), tuple((name, self._size()) for name in self._some(made, 2)))

    def _order(self, made: Schedule) -> Step:
        return Step("order", (" ".join(self._some(made, 4)),))

    def _flatten(self, made: Schedule) -> Step:
        """Loops directly in each other, mostly."""
        pairs = [(b.name, b.body.name) for b in bands(made.tree) if isinstance(b.body, Band)]
        if pairs and self.rng.random() < 0.9:
            return Step("flatten", self.rng.choice(pairs))
        return Step("flatten", tuple(self._some(made, 3)))

    def _fuse(self, made: Schedule) -> Step:
        return Step("fuse", (self._statement(made), self._statement(made)), (("at", self._loop(made)),))

    def _distribute(self, made: Schedule) -> Step:
        draw = self.rng.random()
        named = () if draw > 0.5 else (("behind" if draw < 0.3 else "last", self._statement(made)),)
        return Step("distribute", (self._loop(made),), named)

    def _accumulate(self, made: Schedule) -> Step:
        """A local of the nest, mostly, and any other array."""
        names = [array.name for array in made.nest.arrays if array.kind != "scalar"]
        local = [array.name for array in made.nest.arrays if array.kind == "local"]
        return Step("accumulate", (self.rng.choice(local or names), self.rng.choice(names)))

    def _substitute(self, made: Schedule) -> Step:
        """A local of the nest, mostly."""
        local = [array.name for array in made.nest.arrays if array.kind == "local"]
        return Step("substitute", (self.rng.choice(local or [array.name for array in made.nest.arrays]),))

    def _materialize(self, made: Schedule) -> Step:
        """A statement, and a part of its expression."""
        found = self.rng.choice(made.nest.statements)
        inner = [text(part) for part in walk(found.expr) if not isinstance(part, Predicate | Logic)]
        return Step("materialize", (found.name, self.rng.choice(inner)))

    def _privatize(self, made: Schedule) -> Step:
        """An array that is written, mostly, and one or two loops."""
        names = sorted(made.nest.written) or [array.name for array in made.nest.arrays]
        loops = [self._loop(made) for _ in range(self.rng.choice((1, 1, 2)))]
        return Step("privatize", (self.rng.choice(names), *loops))

    def _reorder_storage(self, made: Schedule) -> Step:
        """An array, and an order of its dimensions."""
        array = self.rng.choice(made.nest.arrays)
        dimensions = [*range(len(array.shape))]
        self.rng.shuffle(dimensions)
        return Step("reorder_storage", (array.name, *dimensions))

    def _cut_iterator(self, step: str, made: Schedule) -> Step:
        """A sum, mostly, and one of its iterators."""
        sums = [s for s in made.nest.statements if s.op == "+" and s.iterators]
        found = self.rng.choice(sums or made.nest.statements)
        return Step(step, (found.name,), ((self.rng.choice(found.iterators or ("i",)), self._size()),))

    def _enclose(self, made: Schedule) -> Step:
        inside = statements(self.rng.choice(bands(made.tree) or [made.tree]))
        return Step("enclose", ("around",), tuple((name, self._formula(made, name)) for name in inside))

    def _formula(self, made: Schedule, statement: str) -> str:
        """An iterator or its block, mostly."""
        rng = self.rng
        name = rng.choice([*made.nest.statement(statement).iterators, *made.nest.integers, str(self._offset())])
        return rng.choice((name, f"{name} // {self._size()}", f"{name} - {name} % {self._size()}", f"1 - {name}"))

    def _skew(self, made: Schedule) -> Step:
        factor = (("factor", self._offset()),) if self.rng.random() < 0.4 else ()
        return Step("skew", (self._loop(made),), (("by", self._loop(made)), *factor))

    def _shift(self, made: Schedule) -> Step:
        statement = (("statement", self._statement(made)),) if self.rng.random() < 0.5 else ()
        return Step("shift", (self._loop(made),), (("by", self._offset()), *statement))

    def _flag(self, method: str, made: Schedule) -> Step:
        return Step(method, (self._loop(made),))

    def _vectorize(self, made: Schedule) -> Step:
        """An innermost loop, mostly."""
        innermost = [b.name for b in bands(made.tree) if not bands(b.body)]
        if innermost and self.rng.random() < 0.9:
            return Step("vectorize", (self.rng.choice(innermost),))
        return self._flag("vectorize", made)

    def _pack(self, made: Schedule) -> Step:
        rng = self.rng
        array = rng.choice([a.name for a in self.nest.arrays if a.kind != "scalar"] or ["A"])
        named: list[tuple[str, Any]] = []
        if rng.random() < 0.85:
            named.append(("at", self._loop(made)))
        if rng.random() < 0.1:
            named.append(("statement", self._statement(made)))
        if rng.random() < 0.08:
            named.append(("role", rng.choice(("left", "right"))))
        if self.gpu and rng.random() < 0.6:
            named.append(("memory", rng.choice(("local", "local", "private"))))
        if rng.random() < (0.3 if self.gpu else 0.05):
            named.append(("pad", rng.choice((0, 1, 2, 3))))
        if rng.random() < (0.3 if self.gpu else 0.05):
            named.append(("buffers", rng.choice((1, 2, 2, 3))))
        return Step("pack", (array,), tuple(named))

    def _part(self, made: Schedule) -> Step:
        if self.rng.random() < 0.5:
            name, op = self._statement(made), self.rng.choice(("<", "==", ">="))
            condition = f"{self._formula(made, name)} {op} {self._formula(made, name)}"
            return Step("part", (name,), (("where", condition), ("into", self.rng.choice(("T", "U", name)))))
        return Step("part", (self._statement(made),), ((self._loop(made), self._size()),))

    def _microkernel(self, made: Schedule) -> Step:
        shape = self._shape() or ("gemm_avx512_6x64", 6, 64)
        named: list[tuple[str, Any]] = []
        if self.rng.random() < 0.5:
            named.append(("statement", self._statement(made)))
        if self.rng.random() < 0.2:
            named.append(("initial", self._statement(made)))
        return Step("microkernel", (shape[0],), tuple(named))

    def _loops(self, made: Schedule) -> Step:
        count = len(bands(poly.schedule(self.nest).tree))
        letters = list("abcdefgh"[:count])
        text = letters + [self.rng.choice(letters)] * (self.rng.random() < 0.4) if letters else ["a"]
        self.rng.shuffle(text)
        last = "".join(c.upper() if self.rng.random() < 0.15 else c for c in text)
        cut = {c: self._size() for c in letters if text.count(c) > 1}
        return Step("loops", (last,), (("blocks", tuple(cut.items())),) if cut else ())

    def _groups(self, made: Schedule) -> Step:
        return Step("groups", tuple(self._some(made, 3)))

    def _items(self, made: Schedule) -> Step:
        numbers = (1, 2, 3, 4, 8, 16, 32)
        return Step("items", (), tuple((name, self.rng.choice(numbers)) for name in self._some(made, 2)))


def kinds(rng: Random, count: int) -> Iterator[str]:
    """The kinds of this many schedules; the default is always among them."""
    yield "default"
    for _ in range(count - 1):
        yield rng.choices(("walk", "tiles", "point", "changed", "edited"), (42, 23, 10, 15, 10))[0]


__all__ = ["REFUSALS", "Drawing", "Step", "StepFailed", "Taken", "is_gpu", "kinds", "steps_of"]
