"""What the model predicts of a schedule: as a point of a contraction's space, or by its tree alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from poly.explanation.values import Prediction
from poly.model import Caches
from poly.model.loops import LoopModel
from poly.model.rates import Rates
from poly.records.place import read_point
from poly.schedule import Schedule
from poly.spaces.contraction import contraction_family
from poly.spaces.space import Structure, Values
from poly.steps import Pack
from poly.tree import Micro, walk


def predicted(schedule: Schedule, isa: ISA, threads: int, caches: Caches, rates: Rates, point: str = "") -> Prediction:
    """The cost of a schedule of fixed sizes. `point` is the text of its point in the space, where that is known.

    The contraction's own model knows copies, conflicts and the TLB, so it comes first; but only for a schedule that is
    a point of its space: the one given, or one of the coarse grid that `poly.compile` chooses from.
    """
    family = contraction_family(schedule.nest, isa, caches, rates, threads, coarse=True)
    if family is not None:
        for structure, values in _candidates(family.structures, schedule, point):
            if structure.schedule(values).steps == schedule.steps:
                return Prediction(structure.predict(values), "the contraction's model")
    return Prediction(LoopModel(schedule, {}, isa, caches, rates, threads).predict({}), "the model of loops")


def _candidates(structures: Sequence[Structure], schedule: Schedule, text: str) -> Iterator[tuple[Structure, Values]]:
    """The points that may make this schedule: that of the text, then those with its register tile and its copies."""
    if text:
        traits, values = read_point(text)
        yield from ((structure, values) for structure in structures if structure.traits == traits)
    kernels = [node.kernel for node in walk(schedule.tree) if isinstance(node, Micro)]
    tiles = {kernel.rows for kernel in kernels if isinstance(kernel, OuterProduct)}
    copies = sum(isinstance(step, Pack) for step in schedule.steps)
    for structure in structures:
        for values in map(structure.values, structure.points()):
            if values["rows"] in tiles and _copies(structure) == copies:
                yield structure, values


def _copies(structure: Structure) -> int:
    return sum(name in ("left", "right") and value != "in place" for name, value in structure.traits)
