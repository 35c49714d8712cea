"""One pair of a nest and a schedule: how it is compiled and run, and how it can fail."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import islpy as isl
import numpy as np

import poly
from fuzz import data as values
from fuzz.data import Data, Guarded
from fuzz.interpreter import Rejected
from fuzz.schedules import REFUSALS, Step, StepFailed, Taken
from fuzz.sources import nest_of
from fuzz.syntax import Program
from poly.analysis.bounds import check
from poly.compiled import Compiled, followed, translate
from poly.kernel import Kernel, signature
from poly.machine.target import parse
from poly.schedules.schedule import Schedule

Steps = tuple[Step, ...] | None
"""The steps of a schedule; None leaves it to poly."""


@dataclass(frozen=True)
class Run:
    """Arguments: the sizes, and the kind of the values."""

    sizes: tuple[tuple[str, int], ...]
    kind: str
    seed: int
    shift: int = 0


@dataclass(frozen=True)
class Pair:
    """A nest, its fixed sizes, a schedule, a target, and the calls."""

    program: Program
    runs: tuple[Run, ...]
    known: tuple[str, ...]
    """The sizes that are fixed at compilation, to their values in the first run."""
    steps: Steps
    route: str = "c"
    target: str = "c"
    threads: int = 1
    level: str = "-O1"
    """gcc's optimisation level, for the route `c`."""

    def fixed(self) -> dict[str, int]:
        return {name: value for name, value in self.runs[0].sizes if name in self.known}


@dataclass(frozen=True)
class Failure:
    """A failure: `wrong` results, bytes changed around an array, an `error` that isn't poly's own, a `crash`, …"""

    kind: str
    text: str
    pair: Pair | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


LIMIT = 500_000
"""Operations that isl may use for one query of the fuzzer, a fraction of a second; longer ones are given up."""


class Slow(Exception):
    """Poly took too long."""


@contextmanager
def bounded() -> Iterator[None]:
    """Limit isl's work inside the context. Raises Slow."""
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(LIMIT)
    try:
        yield
    except isl.Error as error:
        if "maximal number of operations" in str(error):
            raise Slow(str(error)) from error
        raise
    finally:
        context.set_max_operations(0)


class Refused(Exception):
    """Poly refused the nest or a step, by an error of its own."""


def failed(kind: str, error: BaseException, pair: Pair | None = None) -> Failure:
    """An exception as a failure: its message, and the place where poly raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/fuzz/" not in f.filename]
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
    return Failure(kind, f"{type(error).__name__}{where}: {str(error)[:1500]}", pair)


def arguments(pair: Pair) -> list[Data]:
    """The values of all runs. Raises Rejected if the nest is meaningless with them."""
    made = []
    for run in pair.runs:
        drawn = values.draw(pair.program, dict(run.sizes), run.kind, run.seed)
        made.append(values.poisoned(pair.program, dict(run.sizes), drawn))
    return made


def prepared(pair: Pair) -> poly.Nest:
    """The nest with its sizes fixed, proven to stay inside its arrays. Raises Refused."""
    try:
        nest = nest_of(pair.program)
        with bounded():
            return check(nest.with_sizes(pair.fixed()) if pair.known else nest)
    except REFUSALS as error:
        raise Refused(str(error)) from error


def scheduled(nest: poly.Nest, steps: Steps) -> Schedule | None:
    """The schedule of these steps. Raises Refused and StepFailed."""
    if steps is None:
        return None
    taken = Taken(poly.schedule(nest))
    for step in steps:
        if not taken.take(step):
            raise Refused(f"{step} is refused")
    return taken.made


def kernel_of(nest: poly.Nest, told: Schedule | None, target: str, threads: int, name: str) -> Kernel:
    """A kernel with a given name that is translated but not built. Raises Refused if poly refuses."""
    isa = parse(target).isa
    try:
        with bounded():
            base = nest if told is None or told.nest is nest else check(told.nest)
            made = followed(base, isa, threads, told)
            named = replace(made, nest=replace(made.nest, name=name))
            text: Compiled = translate(named, isa)
    except REFUSALS as error:
        raise Refused(f"{type(error).__name__}: {error}") from error
    return Kernel(named.nest, isa, threads, named, text)


def called(pair: Pair, kernel: Any, data: Data, run: Run, looser: float = 1.0) -> Failure | None:
    """Call a kernel on guarded arrays and compare."""
    guarded = Guarded.of(pair.program, data, run.shift)
    given = given_sizes(pair.program, data.sizes, kernel)
    try:
        with np.errstate(all="ignore"):
            kernel(*guarded.arguments, **given)
    except Exception as error:
        return failed("call", error, pair)
    wrong = values.difference(pair.program, data, guarded.arguments, looser)
    if wrong:
        return Failure("wrong", f"with {data.sizes}: {wrong}", pair)
    return (
        None if guarded.intact() else Failure("guard", f"with {data.sizes}: bytes around an array have changed", pair)
    )


def given_sizes(program: Program, sizes: dict[str, int], kernel: Any) -> dict[str, int]:
    """The sizes that do not follow from an array."""
    return {size: sizes[size] for size in kernel.signature.given}


def against_reference(pair: Pair, data: Iterable[Data]) -> Failure | None:
    """The failure, if the nest's reference disagrees with the interpreter."""
    nest = nest_of(pair.program)
    given = signature(nest, True).given
    for one in data:
        guarded = Guarded.of(pair.program, one)
        try:
            nest.reference(*guarded.arguments, **{size: one.sizes[size] for size in given})
        except Exception as error:
            return failed("reference", error, pair)
        wrong = values.difference(pair.program, one, guarded.arguments)
        if wrong:
            return Failure("reference", f"with {one.sizes}: {wrong}", pair)
    return None


def tried(pair: Pair) -> Failure | None:
    """Try one pair from the start, by its route. Pairs that are refused or meaningless have no failure."""
    from fuzz.routes import ROUTES

    try:
        data = arguments(pair)
        nest = prepared(pair)
    except (Refused, Rejected, Slow):
        return None
    except Exception as error:
        return failed("error", error, pair)
    found = against_reference(pair, data)
    if found:
        return found
    try:
        with bounded():
            told = scheduled(nest, pair.steps)
    except (Refused, Slow):
        return None
    except StepFailed as error:
        return failed("error", error.error, pair)
    with tempfile.TemporaryDirectory(prefix="poly-fuzz-") as folder:
        outcomes = ROUTES[pair.route]([pair], nest, [told], data, Path(folder), lambda _: None)
    return outcomes[0] if isinstance(outcomes[0], Failure) else None
