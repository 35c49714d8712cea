"""The journal of a search: its events in order, from which its whole state is derived.

    Trial …          measurements of earlier searches, if any: a resumed search begins with them
    Ask, Trial …, Decided
    …                batch after batch, the last one with the finalists
    Stopped

The search keeps one; a strategy that needs its state keeps another with its own asks and the trials it was sent. The
same events in another journal give the same ranking, incumbent and outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import median

from poly.autoschedule.spaces.space import Point
from poly.errors import SearchError
from poly.search.events import Ask, Decided, Event, Stopped, Trial
from poly.search.significance import gain, winner


class Ranking:
    """The successfully measured points and their seconds on one scale, even though the machine's speed drifts.

    A point timed in turn with another one is placed by their ratio, relative to the other one's place; a point timed
    alone is placed by its own median. The newest trial of a point counts.
    """

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._logs: dict[Point, float] = {}
        for trial in trials:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        """Add a trial; a failure gets no place."""
        if trial.samples:
            self._logs[trial.point] = self._place(trial)

    def _place(self, trial: Trial) -> float:
        if trial.rival and trial.against in self._logs:
            return self._logs[trial.against] - gain(trial)
        return log(median(trial.samples))

    def __len__(self) -> int:
        return len(self._logs)

    def __contains__(self, point: object) -> bool:
        return point in self._logs

    def seconds(self, point: Point) -> float:
        """The seconds per call of a ranked point."""
        return exp(self._logs[point])

    def points(self) -> list[Point]:
        """The points, fastest first."""
        return sorted(self._logs, key=lambda point: self._logs[point])

    @property
    def best(self) -> Point | None:
        """The fastest point so far by its place; whether it is significantly faster takes a test."""
        return min(self._logs, key=lambda point: self._logs[point], default=None)


@dataclass(frozen=True)
class Outcome:
    """The best point and its seconds per call, the trials of the search in order, and why it ended.

    `interrupted` tells that the user stopped it; `best` is then the best so far. Trials known before the search are not
    among `trials`.
    """

    best: Point
    seconds: float
    trials: tuple[Trial, ...]
    stopped: str
    interrupted: bool = False

    @property
    def failures(self) -> dict[Point, str]:
        """The points that could not be measured, with the reasons."""
        return {trial.point: trial.failure for trial in self.trials if not trial.samples}


class Journal:
    """Events in order, and the state derived from them. Each of `listeners` is called with every event added.

    `known` are the initial events, such as trials of earlier searches, of which listeners are not notified. `ranking`
    places the measured points; `incumbent` is the point that no challenger has beaten in a test, None if all failed,
    and `decided` tells whether this search has decided on one. `batch` is the newest ask. A point is `in` the journal
    once it was measured, successfully or not.
    """

    def __init__(self, known: Iterable[Event] = (), listeners: Sequence[Callable[[Event], None]] = ()) -> None:
        self.events: list[Event] = []
        self.trials: list[Trial] = []
        self.ranking = Ranking()
        self.incumbent: Point | None = None
        self.decided = False
        self.batch: Ask | None = None
        self._batches: list[int] = []
        self._newest: dict[Point, Trial] = {}
        self._samples: dict[Point, tuple[float, ...]] = {}
        self._contests: dict[tuple[Point, Point | None], Trial] = {}
        self._listeners: Sequence[Callable[[Event], None]] = ()
        for event in known:
            self.add(event)
        self._listeners = listeners

    def __contains__(self, point: object) -> bool:
        return point in self._newest

    @property
    def known(self) -> list[Trial]:
        """The trials of earlier searches: those before the first batch."""
        return self.trials[: self._batches[0]] if self._batches else list(self.trials)

    @property
    def measured(self) -> list[Trial]:
        """The trials of this search."""
        return self.trials[self._batches[0] :] if self._batches else []

    @property
    def failures(self) -> list[str]:
        """The reasons of the failed trials."""
        return [trial.failure for trial in self.trials if not trial.samples]

    @property
    def samples(self) -> Mapping[Point, tuple[float, ...]]:
        """The newest samples of each successfully measured point, in seconds per call."""
        return self._samples

    def seconds(self, point: Point) -> float:
        """The median of the newest samples of a successfully measured point."""
        return median(self._samples[point])

    def add(self, event: Event) -> None:
        """Append an event, and call the listeners."""
        self.events.append(event)
        match event:
            case Trial():
                self._enter(event)
            case Ask():
                self.batch = event
                self._batches.append(len(self.trials))
            case Decided(incumbent):
                self.incumbent, self.decided = incumbent, True
        for listen in self._listeners:
            listen(event)

    def enter(self, ask: Ask, trials: Iterable[Trial]) -> list[Trial]:
        """Append a batch: the ask, its trials as they come, and the decision; return the trials.

        After a keyboard interrupt, the trials before it count.
        """
        self.add(ask)
        try:
            for trial in trials:
                self.add(trial)
        except KeyboardInterrupt:
            self._decide(ask)
            raise
        return self._decide(ask)

    def paired(self, point: Point, rival: Point | None) -> Trial:
        """The trial of a measured point, paired with this rival.

        If the two were not measured in turn, the rival's own samples stand in, which is valid as far as the machine's
        speed has not changed; the final re-measurement of a search does not rely on it.
        """
        trial = self._contests.get((point, rival), self._newest[point])
        if rival is None or rival == point or rival not in self.ranking or trial.against == rival:
            return trial
        theirs = self._newest[rival].samples
        pairs = min(len(trial.samples), len(theirs))
        return replace(trial, samples=trial.samples[:pairs], rival=theirs[:pairs], against=rival)

    def seconds_beside(self, point: Point, best: Point | None, seconds: float | None) -> float | None:
        """A point's seconds on the scale on which `best` takes `seconds`; None if one of them was not measured.

        Their ratio is that of samples taken in turn if there are any, else of the medians. Ratios are not chained,
        because each winner's gain is slightly overestimated, and a chain would multiply these errors.
        """
        if best is None or seconds is None or best not in self._samples or point not in self._samples:
            return None
        if (duel := self._duel(point, best)) is not None:
            return seconds * exp(-gain(duel))
        if (duel := self._duel(best, point)) is not None:
            return seconds * exp(gain(duel))
        return seconds * self.seconds(point) / self.seconds(best)

    def outcome(self) -> Outcome:
        """The result of the search. Raises SearchError, with the reasons, if no point could be measured."""
        best, trials = self.incumbent, self.measured
        if best is None:
            raise SearchError(f"none of {len(trials)} points could be measured: {reasons(trials)}")
        last = self.events[-1]
        end = last if isinstance(last, Stopped) else Stopped("")
        again = self.trials[self._batches[-1] :] if self.batch is not None and self.batch.again else []
        seconds = fresh_seconds(best, again)
        return Outcome(
            best, self.seconds(best) if seconds is None else seconds, tuple(trials), end.reason, end.interrupted
        )

    def _enter(self, trial: Trial) -> None:
        self.trials.append(trial)
        self._newest[trial.point] = trial
        self._contests.setdefault((trial.point, trial.against), trial)
        self.ranking.add(trial)
        if trial.samples:
            self._samples[trial.point] = trial.samples
        if self.batch is None:
            self._recall(trial)

    def _recall(self, trial: Trial) -> None:
        """Decide on a trial of an earlier search at once, by its own rival's samples and by the incumbent's."""
        if trial.against == self.incumbent:
            self.incumbent = successor(self.incumbent, [trial])
        self.incumbent = successor(self.incumbent, [self.paired(trial.point, self.incumbent)])

    def _decide(self, ask: Ask) -> list[Trial]:
        """Decide on the batch; it can only change the incumbent if that was the rival."""
        trials = self.trials[self._batches[-1] :]
        if trials:
            self.add(Decided(successor(self.incumbent, trials) if ask.incumbent == self.incumbent else self.incumbent))
        return trials

    def _duel(self, point: Point, rival: Point) -> Trial | None:
        """The newest trial of a point that was measured in turn with a rival."""
        return next((t for t in reversed(self.trials) if t.point == point and t.against == rival and t.rival), None)


def successor(incumbent: Point | None, trials: Sequence[Trial]) -> Point | None:
    """The incumbent after these trials: a challenger that won its test, or the old one.

    If there was none, the point with the fastest median becomes the first; None if all failed.
    """
    if incumbent is not None:
        challenger = winner(trials)
        return incumbent if challenger is None else challenger.point
    timed = [trial for trial in trials if trial.samples]
    return min(timed, key=lambda trial: median(trial.samples)).point if timed else None


def fresh_seconds(best: Point, trials: Sequence[Trial]) -> float | None:
    """The median time of the best point in the re-measurement of the finalists; None if it is not part of it."""
    own = [seconds for trial in trials if trial.point == best for seconds in trial.samples]
    as_rival = [seconds for trial in trials if trial.against == best for seconds in trial.rival]
    return median(own or as_rival) if own or as_rival else None


def reasons(trials: Iterable[Trial]) -> str:
    """The failures of trials by their first lines, most frequent first: `12 times: …; once: …`."""
    counts = Counter(_first_line(trial.failure) for trial in trials if not trial.samples)
    return "; ".join(f"{'once' if n == 1 else f'{n} times'}: {reason}" for reason, n in counts.most_common())


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0] or "no reason given"
