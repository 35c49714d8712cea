"""Measure the candidates of a search with the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from uuid import uuid4

from poly.autoschedule.spaces.space import Point, Space
from poly.cluster.crew import Crew, Deserted, WorkerCall, builders, measurers
from poly.cluster.member import BuiltLibrary, compiled, leave, timed
from poly.compiled import translate
from poly.errors import PolyError, SearchError, SearchWarning, warn
from poly.measure.builder import WORTH
from poly.measure.timer import RIVAL, Timing
from poly.measure.trusted import Recipe, recipe
from poly.search.events import Ask, Trial

DIED = "crashed: the workers that had it died"


class ClusterMeasurer:
    """Measures points of a space: any fitting worker builds them, and workers on machines like this one time them.

    It is a `LiveMeasurer` in several places: each machine has the arrays, checks a candidate, and times it in turn with
    the incumbent. The arguments are those of `LiveMeasurer`. Raises SearchError for a device, and if no worker fits.
    """

    def __init__(
        self, space: Space, crew: Crew, *, cold: bool = False, seed: int = 0, samples: int = 5, patience: float = 5.0
    ) -> None:
        if space.device is not None:
            raise SearchError(
                f"workers measure C kernels only, and {space.nest.name} is to run on {space.device.name}."
            )
        crew.check(space.isa)
        self.space = space
        self._crew = crew
        self._cold, self._seed, self._samples, self._patience = cold, seed, samples, patience
        self._token = uuid4().hex
        self._recipe: Recipe | None = None
        self._built: dict[Point, BuiltLibrary] = {}
        self._trials = 0

    def trials(self, ask: Ask) -> Iterator[Trial]:
        """The trials one by one, in order; the caller may stop at any point.

        If all workers are gone after the first trials, there are no more, with a SearchWarning.
        """
        try:
            for trial in self._measured(ask):
                self._trials += 1
                yield trial
        except Deserted as error:
            if not self._trials:
                raise
            warn(f"{error} The search ends with the best so far.", SearchWarning)

    def pause(self) -> None:
        """Nothing to do: a worker itself limits the arrays that it keeps."""

    def close(self) -> None:
        """Free the memory of the workers."""
        if self._trials:
            self._crew.everywhere(leave, self._token)

    def _measured(self, ask: Ask) -> Iterator[Trial]:
        if self._recipe is None:
            self._recipe = recipe(self.space, self._seed, self._cold)
        rival = ask.incumbent
        self._build([*ask.points, *([rival] if rival is not None else [])])
        self._built = {point: self._built[point] for point in {*ask.points, rival} if point is not None}
        failed = {point: reason for point in ask.points if (reason := self._failure(point, rival))}
        sound = [point for point in ask.points if point not in failed]
        timings = self._crew.results([self._call(point, rival) for point in sound], measurers(self.space.isa))
        for point in ask.points:
            timing = Timing(failure=failed[point]) if point in failed else next(timings)
            yield Trial(point, timing.samples, timing.rival, timing.failure)

    def _build(self, points: Sequence[Point]) -> None:
        """Have the libraries of new points built."""
        missing = [point for point in dict.fromkeys(points) if point not in self._built]
        calls: dict[Point, WorkerCall] = {}
        for point in missing:
            try:
                made = translate(self.space.schedule(point), self.space.isa)
            except PolyError as error:
                self._built[point] = BuiltLibrary(failure=f"{type(error).__name__}: {error}")
            else:
                many = len(missing) >= WORTH
                calls[point] = WorkerCall(compiled, (made.library, made.flags, many), BuiltLibrary(failure=DIED))
        results: Iterable[BuiltLibrary] = self._crew.results(list(calls.values()), builders(self.space.isa))
        self._built |= zip(calls, results, strict=True)

    def _failure(self, point: Point, rival: Point | None) -> str:
        """Why a point cannot be timed; empty if it can."""
        if reason := self._built[point].failure:
            return reason
        return RIVAL.format(self._built[rival].failure) if rival is not None and self._built[rival].failure else ""

    def _call(self, point: Point, rival: Point | None) -> WorkerCall:
        against = None if rival is None else self._built[rival].content
        expected = self.space.predict(point).seconds
        arguments = (self._token, self._recipe, self._built[point].content, against, expected)
        return WorkerCall(timed, (*arguments, self._samples, self._patience), Timing(failure=DIED))
