"""One budget for several nests: their searches take turns, and the next batch goes to the one that gains most by it.

A single nest is a list of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from codegen.toolchain.compiler import USUAL, chosen
from poly.errors import SearchError
from poly.records import Key
from poly.search.allocation import Allocation, most_gain
from poly.search.stopping import Budget, Purse
from poly.tuning.display import display
from poly.tuning.options import Options
from poly.tuning.outcome import TunedKernel, TunedOpenCLKernel
from poly.tuning.problem import TuningProblem, problem_key
from poly.tuning.session import MakeMeasurer, Together, TuningSession, local

OPEN = 4
"""The most nests whose arrays are in memory at a time."""

Tuned = TunedKernel | TunedOpenCLKernel | SearchError
"""A tuned kernel, or why its nest could not be measured."""


def tuned(
    problems: Sequence[TuningProblem],
    options: Options,
    weights: Sequence[float] = (),
    *,
    workers: Any = None,
    allocation: Allocation = most_gain,
) -> list[Tuned]:
    """Search for the best schedule of each nest, and compile it. `poly.tune` documents the options and errors.

    A nest that cannot be measured leaves the budget to the others.
    """
    with _place(workers) as measurer:
        sessions = _searched(problems, options, weights or [1.0] * len(problems), measurer, allocation)
    return [_result(sessions[problem_key(problem, options.cold)], problem) for problem in problems]


@contextmanager
def _place(workers: Any) -> Iterator[MakeMeasurer]:
    """Where candidates are built and measured: by the workers of a cluster, or else here."""
    if workers is None:
        yield local
        return
    from poly.cluster import ClusterMeasurer, connected

    if chosen() != USUAL:
        raise SearchError("workers build with their usual compiler: leave out `workers`, or the compiler and flags.")
    with connected(workers) as members:
        yield lambda space, options: ClusterMeasurer(space, members, cold=options.cold, seed=options.seed)


def _searched(
    problems: Sequence[TuningProblem],
    options: Options,
    weights: Sequence[float],
    measurer: MakeMeasurer,
    allocation: Allocation,
) -> dict[Key, TuningSession]:
    """The sessions of the problems by their keys, all ended."""
    shared, sessions = _sessions(problems, options, weights, measurer)
    with display(options.show) as shared.display, shared.interrupts:
        for session in sessions.values():
            session.show()
        try:
            _search(list(sessions.values()), shared, allocation)
        finally:
            for session in sessions.values():
                session.close()
    return sessions


def _sessions(
    problems: Sequence[TuningProblem],
    options: Options,
    weights: Sequence[float],
    measurer: MakeMeasurer,
) -> tuple[Together, dict[Key, TuningSession]]:
    """A session for each key of the problems; the same loops in two nests are tuned once, with both weights.

    Raises SearchError if there are fewer trials than sessions, or open sizes would be measured at two values.
    """
    totals: dict[Key, tuple[TuningProblem, float]] = {}
    for problem, weight in zip(problems, weights, strict=True):
        first, before = totals.setdefault(problem_key(problem, options.cold), (problem, 0.0))
        if first.at != problem.at:
            raise SearchError(f"{first.title} and {problem.title} are one kernel: it can be tuned at one of them only.")
        totals[problem_key(problem, options.cold)] = first, before + weight
    if options.trials is not None and options.trials < len(totals):
        raise SearchError(f"{len(totals)} nests cannot share trials={options.trials}: each needs at least one trial.")
    shared = Together(options, len(totals), measurer)
    return shared, {
        key: TuningSession(problem, shared, place, weight)
        for place, (key, (problem, weight)) in enumerate(totals.items())
    }


def _result(session: TuningSession, problem: TuningProblem) -> Tuned:
    try:
        return session.kernel(problem)
    except SearchError as error:
        return error


def _search(sessions: Sequence[TuningSession], shared: Together, allocation: Allocation) -> None:
    """Step through the searches until all have ended."""
    running = _begun(sessions, shared)
    recent: list[TuningSession] = []
    try:
        while running:
            session = running[0] if len(running) == 1 else running[allocation([one.standing for one in running])]
            recent = [*(one for one in recent if one is not session), session]
            for idle in recent[:-OPEN]:
                idle.pause()
            if not session.step():
                running.remove(session)
    except KeyboardInterrupt:
        _interrupted(running)


def _begun(sessions: Sequence[TuningSession], shared: Together) -> list[TuningSession]:
    """The sessions that measure: if the records hold the whole budget, those without a trial."""
    known = sum(len(session.journal.known) for session in sessions)
    budget = shared.options.budget(known, shared.elapsed)
    fresh = [session for session in sessions if budget is not None or not session.journal.known]
    purse = Purse(budget or Budget(trials=1, gain=None), lambda: shared.elapsed, max(1, len(fresh)))
    for session in sessions:
        if session in fresh:
            session.begin(purse)
        else:
            session.step()
    return fresh


def _interrupted(running: Sequence[TuningSession]) -> None:
    """End all searches with their best so far. Raises KeyboardInterrupt if one has none."""
    lost = False
    for session in running:
        try:
            session.end(interrupted=True)
        except KeyboardInterrupt:
            lost = True
    if lost:
        raise KeyboardInterrupt
