"""Small spaces for the tests of measuring, and faulty candidates: good ones with C statements inserted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import doc_nests
import pytest

import poly
from microkernels.isa import ISA, host
from poly.autoschedule.default import default_schedule
from poly.autoschedule.spaces.space import Knob, Point, Space, Structure, Value
from poly.compiled import Compiled, translate
from poly.ir.nest import Nest
from poly.measure import builder
from poly.measure.live import LiveMeasurer
from poly.model.cost import Cost
from poly.model.host import here
from poly.schedules.schedule import Schedule
from poly.search.events import Ask, Trial

MATMUL = doc_nests.matmul.with_sizes({"M": 20, "N": 16, "K": 12})
SIZES = tuple(range(2, 14))

SEGFAULT = "*(volatile int *)8 = 1;"
TRAP = "__builtin_trap();"
HANG = "for (volatile int n = 0;; n = 0);"
EXIT = "extern void _exit(int); _exit(3);"
GREEDY = "return 1L << 50;"


def tiled_space(nest: Nest, loop: str, threads: int = 1, **sizes: int) -> Space:
    """Points 0, 1, … tile a loop by 2, 3, …; the model predicts a microsecond for each. `sizes` are open sizes."""

    def made(values: Mapping[str, Value]) -> Schedule:
        cut = poly.schedule(nest).tile(**{loop: values[loop] or 1})
        return cut.parallel(f"{loop}_tile") if threads > 1 else cut

    structure = Structure((), (Knob(loop, SIZES),), lambda values: True, made, lambda values: Cost(1e-6))
    return Space(nest, host(), threads, (structure,), point(0), tuple(sizes.items()))


def default_space(nest: Nest) -> Space:
    """The default schedule alone."""
    made = default_schedule(nest, here(host(), 1))
    structure = Structure(
        (), (Knob("none", (1,)),), lambda values: True, lambda values: made, lambda values: Cost(1e-6)
    )
    return Space(nest, host(), 1, (structure,), point(0))


def point(number: int) -> Point:
    return Point(0, (number,))


def spoil(monkeypatch: pytest.MonkeyPatch, begins: Mapping[int, str], function: str = "") -> None:
    """Make the kernels of these points, or their functions with this suffix, begin with these statements."""

    def spoiled(schedule: Schedule, isa: ISA) -> Compiled:
        good = translate(schedule, isa)
        tile = re.search(r"tile\(\w+=(\d+)\)", repr(schedule))
        assert tile is not None
        code = begins.get(SIZES.index(int(tile[1])))
        if code is None:
            return good
        head = re.compile(rf"(\n\w+ {schedule.nest.name}{function}\([^)]*\)\n{{\n)")
        assert head.search(good.source)
        return replace(good, source=head.sub(lambda match: f"{match[0]}  {code}\n", good.source))

    monkeypatch.setattr(builder, "translate", spoiled)


def measure(space: Space, *numbers: int, incumbent: int | None = None, **how: object) -> list[Trial]:
    with LiveMeasurer(space, **how) as measurer:
        return measurer.measure(Ask(tuple(map(point, numbers)), None if incumbent is None else point(incumbent)))


def is_good(trial: Trial) -> bool:
    return not trial.failure and all(seconds > 0 for seconds in trial.samples) and len(trial.samples) > 0
