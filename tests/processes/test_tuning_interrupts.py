"""A measurer that can be stopped in the midst of a batch: no trial is lost to the clock or to Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from random import Random

import pytest
from tuning_fakes import grid_space

from poly.autoschedule.spaces.space import Point, Space
from poly.search.events import Ask, Search, Trial
from poly.search.journal import Journal, Outcome
from poly.search.run import search
from poly.search.stopping import Budget
from poly.tuning.stoppable import Interrupts, PointSource, Stoppable

A, B, C = (Point(0, (i, 0)) for i in range(3))


class Made:
    """Measures until it comes to `fatal`, at which the user presses Ctrl-C."""

    def __init__(self, fatal: Point | None = None) -> None:
        self.fatal = fatal
        self.measured: list[Point] = []

    def trials(self, ask: Ask) -> Iterator[Trial]:
        for point in ask.points:
            if point == self.fatal:
                raise KeyboardInterrupt
            self.measured.append(point)
            yield Trial(point, (1.0, 2.0))


def all_three(space: Space, start: Point, random: Random) -> Search:
    yield Ask((A, B, C))


def searched(source: PointSource, journal: Journal | None = None) -> Outcome:
    with Interrupts() as interrupts:
        stoppable = Stoppable(source, lambda: False, interrupts)
        return search(grid_space(), all_three, stoppable, budget=Budget(gain=None), journal=journal)


def test_when_time_is_up_the_measurement_under_way_is_finished_and_no_other_begun() -> None:
    source = Made()
    found = list(Stoppable(source, lambda: True, Interrupts()).measure(Ask((A, B, C))))
    assert [trial.point for trial in found] == source.measured == [A]


def test_an_interrupt_loses_no_trial_and_ends_the_search() -> None:
    journal = Journal()
    outcome = searched(Made(fatal=C), journal)
    assert [trial.point for trial in outcome.trials] == [A, B]
    assert outcome.interrupted and outcome.stopped == "interrupted"
    assert journal.incumbent == outcome.best == A


def test_an_interrupt_before_the_first_trial_is_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        searched(Made(fatal=A))


@pytest.fixture
def listening() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where the tests run in the background and it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
def test_ctrl_c_that_went_astray_ends_the_batch_and_what_follows() -> None:
    """As in a callback from C, which swallows the exception."""

    class Swallowing(Made):
        def trials(self, ask: Ask) -> Iterator[Trial]:
            for trial in super().trials(ask):
                try:
                    signal.raise_signal(signal.SIGINT)
                except KeyboardInterrupt:
                    yield trial

    source = Swallowing()
    outcome = searched(source)
    assert outcome.interrupted and [trial.point for trial in outcome.trials] == source.measured == [A]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_after_ctrl_c_nothing_more_is_measured() -> None:
    source, interrupts = Made(), Interrupts()
    interrupts.came = True
    with pytest.raises(KeyboardInterrupt):
        list(Stoppable(source, lambda: False, interrupts).measure(Ask((A,))))
    assert source.measured == []
