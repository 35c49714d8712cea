"""A case: one random nest with several random schedules, determined by a seed and a number."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import poly
from fuzz import c_sources
from fuzz import data as values
from fuzz.data import Data
from fuzz.interpreter import Rejected
from fuzz.library import LEVELS
from fuzz.nests import Drawn, draw_program
from fuzz.pairs import Failure, Pair, Refused, Run, Slow, Steps, against_reference, bounded, failed, prepared
from fuzz.routes import ROUTES, device_isa
from fuzz.schedules import REFUSALS, Drawing, StepFailed, kinds
from poly.autoschedule.derive import derive
from poly.ir.lookups import index_reads
from poly.machine.target import parse
from poly.schedules.schedule import Schedule

SHARES = {"c": 0.86, "public": 0.02, "header": 0.04, "opencl": 0.04, "source": 0.04}
"""The relative frequencies of the routes, if all are wanted."""
SCHEDULES = {"c": 20, "public": 3, "header": 4, "opencl": 3}
"""The number of schedules in a case of each route."""
SLOW = 2
"""The number of schedules that take too long after which a nest is given up, since the nest is the cause."""
HALVES = 3
"""How many one has that is in f16, and refused by all of these machines."""


@dataclass
class Report:
    """The outcome of cases."""

    counts: Counter[str] = field(default_factory=Counter)
    """Pairs by route (`c`, …), refused steps, refused pairs, nests that poly refused or that are meaningless."""
    seconds: Counter[str] = field(default_factory=Counter)
    """CPU seconds by part, compilers included."""
    failures: list[Failure] = field(default_factory=list)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        start = sum(os.times()[:4])
        try:
            yield
        finally:
            self.seconds[what] += sum(os.times()[:4]) - start


def run_case(seed: int, number: int, routes: tuple[str, ...], folder: Path, announce: Callable[[Pair], None]) -> Report:
    """Draw a case and try it; `announce` is called with each pair before its code runs."""
    report = Report()
    rng = Random(f"poly {seed}/{number}")
    route = rng.choices(routes, [SHARES[r] for r in routes])[0]
    if route == "source":
        with report.timed("route source"):
            found = c_sources.case(rng, rng.choice(targets()), folder)
        report.counts["refused nests" if isinstance(found, Refused) else route] += 1
        report.failures += [found] if isinstance(found, Failure) else []
        return report
    with report.timed("drawing"):
        drawn = draw_program(rng)
    base, data = _base(drawn, route, rng, report)
    if base is None:
        return report
    announce(base)
    try:
        with report.timed("front end"):
            nest = prepared(base)
        with report.timed("reference"):
            found = against_reference(base, data)
    except Slow:
        report.counts["slow nests"] += 1
        return report
    except Refused:
        report.counts["refused nests"] += 1
        return report
    except Exception as error:
        report.failures.append(failed("error", error, base))
        return report
    if found:
        report.failures.append(found)
        return report
    if route == "opencl" and index_reads(nest):  # which no device checks
        report.counts["refused nests"] += 1
        return report
    with report.timed("schedules"):
        drawn_schedules = list(_schedules(nest, base, rng, report, announce))
    pairs = [_with(base, steps) for steps, _ in drawn_schedules]
    with report.timed(f"route {route}"):
        outcomes = ROUTES[route](pairs, nest, [told for _, told in drawn_schedules], data, folder, announce)
    for outcome in outcomes:
        slow = isinstance(outcome, Refused) and str(outcome).startswith("slow")
        report.counts["slow pairs" if slow else "refused pairs" if isinstance(outcome, Refused) else route] += 1
        if isinstance(outcome, Failure):
            report.failures.append(outcome)
    return report


def _with(base: Pair, steps: Steps) -> Pair:
    return replace(base, steps=steps)


def _base(drawn: Drawn, route: str, rng: Random, report: Report) -> tuple[Pair | None, list[Data]]:
    """The pair without a schedule, and its data; None if the nest is meaningless at its sizes."""
    program, settings = drawn.program, drawn.settings
    known = tuple(s for s in program.sizes if rng.random() < 0.9) if rng.random() < 0.5 else ()
    extents = [extent for arg in program.args for extent in arg.shape or ()]
    told = {name for extent in extents if len(extent.terms) == 1 for name, _ in extent.terms}
    if "threads" in program.sizes and "threads" not in told | set(known):
        known = (*known, "threads")  # a kernel's own argument is called so: such a size has to be fixed
    if known:
        settings = settings[:1]
    kind = rng.choice(("small", "small", "small", "real", "wide"))
    runs = tuple(Run(tuple(s.items()), kind, rng.randrange(2**32), rng.choice((0, 0, 1, 3))) for s in settings)
    target = rng.choice(("opencl:cpu", "opencl:gpu")) if route == "opencl" else rng.choice(targets())
    threads = 1 if route in ("header", "opencl") else rng.choice((1, 2))
    level = "-O3" if drawn.optimised else rng.choices(list(LEVELS), list(LEVELS.values()))[0] if route == "c" else "-O1"
    base = Pair(program, runs, known, None, route, target, threads, level)
    made: list[Data] = []
    for run in runs:
        try:
            with report.timed("interpreter"):
                first = values.draw(program, dict(run.sizes), run.kind, run.seed)
                made.append(values.poisoned(program, dict(run.sizes), first, 3000))
        except Rejected:
            report.counts["rejected nests"] += 1
            return None, []
    return base, made


def targets() -> tuple[str, ...]:
    """The C targets that this machine can run."""
    names = [name for name in ("avx512", "avx2", "neon") if _runs(name)]
    return (*(f"c:{name}" for name in names), "c:portable")


def _runs(name: str) -> bool:
    from microkernels.isa import ISAS

    return ISAS[name].runs_here()


def _schedules(
    nest: poly.Nest, base: Pair, rng: Random, report: Report, announce: Callable[[Pair], None]
) -> Iterator[tuple[Steps, Schedule | None]]:
    """Random schedules, none of them twice."""
    opencl = base.route == "opencl"
    isa = device_isa(base.target) if opencl else parse(base.target).isa
    drawing = Drawing(nest, isa, base.target, base.threads, rng, base.target.endswith("gpu"))
    drawing.before = lambda steps: announce(_with(base, steps))
    if opencl:
        drawing.model = lambda: _device(isa)  # type: ignore[method-assign]
        drawing.space = lambda: derive(nest, _device(isa))  # type: ignore[method-assign]
    seen: set[Steps] = set()
    halves = any(arg.dtype == "f16" for arg in base.program.args)
    for kind in kinds(rng, HALVES if halves else SCHEDULES[base.route]):
        if kind == "default":
            yield None, None
            continue
        try:
            with bounded():
                taken = drawing.draw(kind)
        except Slow:
            report.counts["slow schedules"] += 1
            if report.counts["slow schedules"] == SLOW:
                return
            continue
        except REFUSALS as error:
            if not halves:
                report.failures.append(failed("error", error, base))
            continue
        except StepFailed as error:
            report.failures.append(failed("error", error.error, _with(base, error.steps)))
            continue
        except Exception as error:
            report.failures.append(failed("error", error, base))
            continue
        report.counts["refused steps"] += taken.refused
        report.counts["steps"] += len(taken.steps)
        if taken.steps not in seen:
            seen.add(taken.steps)
            yield taken.steps, taken.made


def _device(isa):
    from microkernels.opencl_isa import is_gpu
    from poly.model.core import Target
    from poly.model.host import caches, rates
    from poly.model.rates import nominal

    known = nominal(isa) if is_gpu(isa) else rates(isa, isa.units)
    return Target(isa, caches(), known, isa.units)
