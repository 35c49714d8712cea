"""The journal of a search: its events in order, from which everything else that is known of it is read.

    Trial …          what earlier searches have measured, where there were any: resuming is to begin with them
    Ask, Trial …, Decided
    …                batch after batch, a last one with the finalists
    Stopped

The search keeps one; a strategy that wants to know where it stands keeps another of what it asked and was sent. The
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
    """The points that could be measured and their seconds, on one scale, although the machine's speed drifts.

    A point that was timed in turn with another one is placed by their ratio, relative to where the other one stands;
    one that was timed alone is placed by its own median. The newest trial of a point counts.
    """

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._logs: dict[Point, float] = {}
        for trial in trials:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        """Takes a trial in; a failure has no place."""
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
        """The seconds a call of a point that could be measured."""
        return exp(self._logs[point])

    def points(self) -> list[Point]:
        """The points, the fastest first."""
        return sorted(self._logs, key=lambda point: self._logs[point])

    @property
    def best(self) -> Point | None:
        """The fastest so far, by its median; whether it is really so is for a test to say."""
        return min(self._logs, key=lambda point: self._logs[point], default=None)


@dataclass(frozen=True)
class Outcome:
    """The best point and its seconds a call, the trials that were measured in their order, and why the search ended.

    `interrupted` says that the user stopped it; `best` is then the best so far. Trials known from before the search
    are not among `trials`.
    """

    best: Point
    seconds: float
    trials: tuple[Trial, ...]
    stopped: str
    interrupted: bool = False

    @property
    def failures(self) -> dict[Point, str]:
        """Why points could not be measured, for those that could not."""
        return {trial.point: trial.failure for trial in self.trials if not trial.samples}


class Journal:
    """Events in order, and what follows from them. Each of `listeners` is called with every event that is added.

    `known` are the events that it begins with, such as trials of earlier searches; listeners do not hear of these.
    `ranking` places the points that were measured; `incumbent` is the point that no challenger has beaten in a test,
    None if all failed, and `decided` says whether this search has decided on one. `batch` is the newest. A point is
    `in` the journal once it was measured, whatever came of it.
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
        """Why trials have failed, for those that have."""
        return [trial.failure for trial in self.trials if not trial.samples]

    @property
    def samples(self) -> Mapping[Point, tuple[float, ...]]:
        """The newest samples of each point that could be measured, in seconds a call."""
        return self._samples

    def seconds(self, point: Point) -> float:
        """The median of the newest samples of a point that could be measured."""
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
        """Append a batch: what was asked, its trials as they come, which are returned, and what is decided.

        Where an interrupt from the keyboard ends them, the trials before it count.
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
        """The trial of a measured point as one against this rival.

        If the two were not measured in turn, the rival's own samples stand in, which holds as far as the machine was
        as fast then; the re-measurement at the end of a search does not rely on it.
        """
        trial = self._contests.get((point, rival), self._newest[point])
        if rival is None or rival == point or rival not in self.ranking or trial.against == rival:
            return trial
        theirs = self._newest[rival].samples
        pairs = min(len(trial.samples), len(theirs))
        return replace(trial, samples=trial.samples[:pairs], rival=theirs[:pairs], against=rival)

    def seconds_beside(self, point: Point, best: Point | None, seconds: float | None) -> float | None:
        """A point's seconds on the scale on which `best` takes `seconds`; None if one of them was not measured.

        Their ratio is that of samples taken in turn, where there are any, else of the medians. Ratios are not chained:
        each winner's gain is a little too high, and a chain would multiply that.
        """
        if best is None or seconds is None or best not in self._samples or point not in self._samples:
            return None
        if (duel := self._duel(point, best)) is not None:
            return seconds * exp(-gain(duel))
        if (duel := self._duel(best, point)) is not None:
            return seconds * exp(gain(duel))
        return seconds * self.seconds(point) / self.seconds(best)

    def outcome(self) -> Outcome:
        """What the search found. Raises SearchError, with the reasons, where no point could be measured."""
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
        """A trial of an earlier search is decided on at once: by its own rival's samples, and by the incumbent's."""
        if trial.against == self.incumbent:
            self.incumbent = successor(self.incumbent, [trial])
        self.incumbent = successor(self.incumbent, [self.paired(trial.point, self.incumbent)])

    def _decide(self, ask: Ask) -> list[Trial]:
        """Decide on the batch; it can change the incumbent only where that was the rival."""
        trials = self.trials[self._batches[-1] :]
        if trials:
            self.add(Decided(successor(self.incumbent, trials) if ask.incumbent == self.incumbent else self.incumbent))
        return trials

    def _duel(self, point: Point, rival: Point) -> Trial | None:
        """The newest trial of a point that was measured in turn with a rival."""
        return next((t for t in reversed(self.trials) if t.point == point and t.against == rival and t.rival), None)


def successor(incumbent: Point | None, trials: Sequence[Trial]) -> Point | None:
    """The incumbent after these trials: a challenger that won its test, or the old one.

    Where there was none, the fastest point by its median is the first; None if all failed.
    """
    if incumbent is not None:
        challenger = winner(trials)
        return incumbent if challenger is None else challenger.point
    timed = [trial for trial in trials if trial.samples]
    return min(timed, key=lambda trial: median(trial.samples)).point if timed else None


def fresh_seconds(best: Point, trials: Sequence[Trial]) -> float | None:
    """The median of what the re-measurement of the finalists tells of the best point; None if nothing."""
    own = [seconds for trial in trials if trial.point == best for seconds in trial.samples]
    as_rival = [seconds for trial in trials if trial.against == best for seconds in trial.rival]
    return median(own or as_rival) if own or as_rival else None


def reasons(trials: Iterable[Trial]) -> str:
    """The failures of trials by their first lines, the most frequent first: `12 times: …; once: …`."""
    counts = Counter(_first_line(trial.failure) for trial in trials if not trial.samples)
    return "; ".join(f"{'once' if n == 1 else f'{n} times'}: {reason}" for reason, n in counts.most_common())


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0] or "no reason given"
