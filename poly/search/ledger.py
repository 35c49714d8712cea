"""The book of one search: which points were measured, who the champion is, what a strategy is told about a point."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import median

from poly.search.champion import crowned
from poly.search.standing import Standing
from poly.search.trial import Trial
from poly.spaces.space import Point


class Ledger:
    """The newest trial of each point, the standing of all points, and the champion."""

    def __init__(self, known: Iterable[Trial] = ()) -> None:
        self.standing = Standing()
        self.champion: Point | None = None
        self._trials: dict[Point, Trial] = {}
        self._contests: dict[tuple[Point, Point | None], Trial] = {}
        for trial in known:
            self.enter([trial], trial.against)
            self.champion = crowned(self.champion, [self.paired(trial.point, self.champion)])

    def __contains__(self, point: object) -> bool:
        return point in self._trials

    def enter(self, trials: list[Trial], rival: Point | None) -> None:
        """Takes in a batch that was measured in turn with `rival`; it can change the champion if that is the rival."""
        contest = rival == self.champion
        for trial in trials:
            self._trials[trial.point] = trial
            self._contests.setdefault((trial.point, trial.against), trial)
            self.standing.add(trial)
        if contest:
            self.champion = crowned(self.champion, trials)

    def paired(self, point: Point, rival: Point | None) -> Trial:
        """The trial of a known point as one against this rival.

        If the two were not measured in turn, the rival's own samples stand in, which holds as far as the machine was
        as fast then; the play-off at the end of a search does not rely on it.
        """
        trial = self._contests.get((point, rival), self._trials[point])
        if rival is None or rival == point or rival not in self.standing or trial.against == rival:
            return trial
        theirs = self._trials[rival].samples
        pairs = min(len(trial.samples), len(theirs))
        return replace(trial, samples=trial.samples[:pairs], rival=theirs[:pairs], against=rival)

    def seconds(self, point: Point) -> float:
        """The median of the samples of a point that could be measured."""
        return median(self._trials[point].samples)
