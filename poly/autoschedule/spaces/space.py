"""A space of schedules as a value: structures, each with a grid of knobs.

    structure   which operand is packed where, which tile loop is outside, which loop is parallel: named traits
    knob        a tile size or the shape of the register tile, with its values in ascending order
    point       a structure and one value for each of its knobs

Every point is a legal schedule; invalid combinations, such as a register tile that needs too many registers, are left
out of the space, so a grid may have holes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from microkernels.isa import ISA
from poly.display import Block, Cells, Displayed
from poly.ir.nest import Nest
from poly.model.cost import Cost
from poly.schedules.schedule import Schedule

if TYPE_CHECKING:
    from random import Random

    from codegen.opencl.devices import Device

Value = int | None
Values = Mapping[str, Value]
"""The value of each knob, by name; None leaves the loop uncut."""


@dataclass(frozen=True)
class Knob:
    """One size to choose. `values` ascend; None (uncut), if allowed, comes last."""

    name: str
    values: tuple[Value, ...]

    def __str__(self) -> str:
        return ", ".join("uncut" if value is None else str(value) for value in self.values)


@dataclass(frozen=True, order=True)
class Point:
    """A structure's number, and the position of the value of each of its knobs. Points are hashable and ordered."""

    structure: int
    at: tuple[int, ...]


@dataclass(frozen=True)
class Structure:
    """One way to order, pack and parallelise the loops, and the grid of its sizes.

    `traits` distinguish it from the others: `(("order", "rows inside"), ("left", "in place"), …)`; structures that
    differ in one trait are neighbours. `allows` tells whether values can be combined, `schedule` builds their schedule,
    and `predict` is the model's cost; none of them measures anything.
    """

    traits: tuple[tuple[str, str], ...]
    knobs: tuple[Knob, ...]
    allows: Callable[[Values], bool]
    schedule: Callable[[Values], Schedule]
    predict: Callable[[Values], Cost]

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.traits) or "as written"

    def points(self) -> Iterator[tuple[int, ...]]:
        """The allowed positions in the grid; the last knob varies fastest."""
        for at in product(*(range(len(knob.values)) for knob in self.knobs)):
            if self.allows(self.values(at)):
                yield at

    def values(self, at: tuple[int, ...]) -> dict[str, Value]:
        return {knob.name: knob.values[i] for knob, i in zip(self.knobs, at, strict=True)}

    def at(self, values: Values) -> tuple[int, ...]:
        """The position of each value in its knob's list."""
        return tuple(knob.values.index(values[knob.name]) for knob in self.knobs)

    def nearest(self, values: Values) -> tuple[int, ...] | None:
        """The allowed position nearest to these values, counted in positions of each knob's list.

        None if the structure has no allowed point.
        """
        wanted = tuple(_position(knob, values.get(knob.name)) for knob in self.knobs)
        if self.allows(self.values(wanted)):
            return wanted

        def distance(at: tuple[int, ...]) -> int:
            return sum(abs(i - j) for i, j in zip(at, wanted, strict=True))

        return min(self.points(), key=distance, default=None)


@dataclass(frozen=True)
class Family:
    """The structures that one rule derives from a nest, and the model's choice among their points.

    `steady` are points that are fast wherever the model errs, such as those of a handwritten library.
    """

    structures: tuple[Structure, ...]
    choice: Point
    steady: tuple[Point, ...] = ()


@dataclass(frozen=True, repr=False)
class Space(Displayed):
    """All schedules of a nest that a search may choose from.

    `nest` includes the fixed sizes; `sizes` gives the values at which the open ones are measured.
    `choice` is the point that `poly.compile` uses without measurements: the model's best. A search tries the `steady`
    points early, since they are fast wherever the model errs. `device` is the OpenCL device that runs the schedules;
    None for C. `again` derives the space where it is unpickled: its structures are functions.
    """

    nest: Nest
    isa: ISA
    threads: int
    structures: tuple[Structure, ...]
    choice: Point
    sizes: tuple[tuple[str, int], ...] = ()
    device: Device | None = None
    steady: tuple[Point, ...] = ()
    again: Callable[[], Space] | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.again is None:
            raise TypeError("a space that poly.space did not make can't be pickled")
        return _derived, (self.again, self.sizes, self.device)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Point]:
        """All points, structure by structure."""
        for number, structure in enumerate(self.structures):
            for at in structure.points():
                yield Point(number, at)

    def __contains__(self, point: object) -> bool:
        if not isinstance(point, Point) or not 0 <= point.structure < len(self.structures):
            return False
        knobs = self.structures[point.structure].knobs
        inside = len(point.at) == len(knobs) and all(
            0 <= i < len(k.values) for i, k in zip(point.at, knobs, strict=True)
        )
        return inside and self.structures[point.structure].allows(self.values(point))

    @property
    def origin(self) -> Point:
        """The unoptimised corner: the first point of the first structure."""
        return next(iter(self))

    def values(self, point: Point) -> dict[str, Value]:
        """The value of each knob at a point."""
        return self.structures[point.structure].values(point.at)

    def schedule(self, point: Point) -> Schedule:
        """The schedule of a point; its steps are proven legal as they are applied."""
        return self.structures[point.structure].schedule(self.values(point))

    def predict(self, point: Point) -> Cost:
        """The model's cost of a point."""
        return self.structures[point.structure].predict(self.values(point))

    def sample(self, count: int, random: Random) -> list[Point]:
        """Up to `count` distinct points, chosen uniformly at random."""
        points = list(self)
        return random.sample(points, min(count, len(points)))

    def nearest(self, structure: int, values: Values) -> Point | None:
        """The point of a structure nearest to these values, counted in positions of each knob's list.

        None if the structure has no allowed point.
        """
        at = self.structures[structure].nearest(values)
        return None if at is None else Point(structure, at)

    def siblings(self, point: Point) -> list[Point]:
        """The nearest points of the structures that differ from this point's in one trait."""
        here = dict(self.structures[point.structure].traits)
        found = []
        for number, structure in enumerate(self.structures):
            traits = dict(structure.traits)
            if sum(traits.get(name) != here.get(name) for name in traits.keys() | here.keys()) == 1:
                found.append(self.nearest(number, self.values(point)))
        return [sibling for sibling in found if sibling is not None]

    def ranked(self) -> list[Point]:
        """All points by ascending predicted time."""
        return sorted(self, key=lambda point: self.predict(point).seconds)

    def __str__(self) -> str:
        """The number of points and structures, and each structure with its knobs."""
        lines = [f"{len(self)} schedules of {self.nest.name} in {len(self.structures)} structures"]
        for structure in self.structures:
            lines.append(f"  {structure}: {sum(1 for _ in structure.points())}")
            lines += [f"    {knob.name:10} {knob}" for knob in structure.knobs]
        return "\n".join(lines)

    def _title(self) -> str:
        return f"space of {self.nest.name} for {self.isa.name}: {len(self.structures)} structures"

    def _parts(self) -> Iterable[Block]:
        rows = [
            (str(one), str(sum(1 for _ in one.points())), "; ".join(f"{knob.name} {knob}" for knob in one.knobs))
            for one in self.structures
        ]
        yield Cells(rows, ("structure", "schedules", "sizes"))


def _position(knob: Knob, value: Value) -> int:
    """The position in the knob's list of the value nearest to this one; None counts as the largest."""
    if value is None:
        return len(knob.values) - 1
    known = [(abs(v - value), i) for i, v in enumerate(knob.values) if v is not None]
    return min(known)[1] if known else 0


def _derived(again: Callable[[], Space], sizes: tuple[tuple[str, int], ...], device: Device | None) -> Space:
    """A space derived again, at its sizes and for its device."""
    return replace(again(), sizes=sizes, device=device)
