"""A measurer that is watched: every trial is told at once, and none is lost to the clock or to Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from poly.search.trial import Ask, Trial
from poly.spaces.space import Point
from poly.tuning.interrupts import Interrupts
from poly.tuning.watched import Watched

A, B, C = (Point(0, (i,)) for i in range(3))


class Source:
    """Measures until it comes to `fatal`, at which the user presses Ctrl-C."""

    def __init__(self, fatal: Point | None = None) -> None:
        self.fatal = fatal

    def trials(self, ask: Ask) -> Iterator[Trial]:
        for point in ask.points:
            if point == self.fatal:
                raise KeyboardInterrupt
            yield Trial(point, (1.0, 2.0))


def test_trials_are_told_with_what_was_asked() -> None:
    asked: list[Ask] = []
    told: list[tuple[Trial, Ask]] = []
    ask = Ask((A, B), champion=C)
    found = Watched(Source(), asked.append, lambda trial, ask: told.append((trial, ask)), lambda: False).measure(ask)
    assert [trial.point for trial in found] == [A, B]
    assert told == [(trial, ask) for trial in found] and asked == [ask]


def test_when_time_is_up_the_measurement_under_way_is_finished_and_no_other_begun() -> None:
    found = Watched(Source(), lambda ask: None, lambda trial, ask: None, lambda: True).measure(Ask((A, B, C)))
    assert [trial.point for trial in found] == [A]


def test_an_interrupt_loses_no_trial_and_ends_the_search_at_the_next_ask() -> None:
    watched = Watched(Source(fatal=C), lambda ask: None, lambda trial, ask: None, lambda: False)
    assert [trial.point for trial in watched.measure(Ask((A, B, C)))] == [A, B]
    assert watched.interrupted
    with pytest.raises(KeyboardInterrupt):
        watched.measure(Ask((A,)))


def test_an_interrupt_before_the_first_trial_is_one() -> None:
    watched = Watched(Source(fatal=A), lambda ask: None, lambda trial, ask: None, lambda: False)
    with pytest.raises(KeyboardInterrupt):
        watched.measure(Ask((A, B)))
    assert watched.interrupted


@pytest.fixture
def listening() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where the tests run in the background and it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
def test_ctrl_c_that_went_astray_ends_the_batch_and_what_follows() -> None:
    """As in a callback from C, which swallows the exception."""

    class Swallowing:
        def trials(self, ask: Ask) -> Iterator[Trial]:
            for point in ask.points:
                try:
                    signal.raise_signal(signal.SIGINT)
                except KeyboardInterrupt:
                    yield Trial(point, (1.0,))

    with Interrupts() as interrupts:
        asked, told = (lambda ask: None), (lambda trial, ask: None)
        watched = Watched(Swallowing(), asked, told, lambda: False, lambda: interrupts.came)
        assert len(watched.measure(Ask((A, B)))) == 1
        assert watched.interrupted
        with pytest.raises(KeyboardInterrupt):
            watched.measure(Ask((C,)))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
