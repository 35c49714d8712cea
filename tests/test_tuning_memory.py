"""A measurer that remembers: what it takes from before, what it has measured, and what it hands on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from poly.search.trial import Ask, Trial
from poly.spaces.space import Point
from poly.tuning.memory import Memory

A, B, C = (Point(0, (i,)) for i in range(3))


class Clockwork:
    """A source whose points take as many seconds as their position says, plus one; `asked` has what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Point] = []

    def trials(self, ask: Ask) -> Iterator[Trial]:
        for point in ask.points:
            self.asked.append(point)
            rival = (ask.champion.at[0] + 1.0,) * 2 if ask.champion else ()
            yield Trial(point, (point.at[0] + 1.0,) * 2, rival)


def memory(
    source: Clockwork, known: tuple[Trial, ...] = (), over: Callable[[], bool] = lambda: False
) -> tuple[Memory, list[Trial], list[Trial]]:
    learnt: list[Trial] = []
    recalled: list[Trial] = []
    return Memory(source, known, learnt.append, recalled.append, over), learnt, recalled


def test_each_point_is_measured_once_and_told_at_once() -> None:
    source = Clockwork()
    remembering, learnt, recalled = memory(source)
    first = remembering.measure(Ask((A, B)))
    assert remembering.measure(Ask((B, A, C))) == [first[1], first[0], Trial(C, (3.0, 3.0))]
    assert source.asked == [A, B, C]
    assert [trial.point for trial in learnt] == [A, B, C]
    assert [trial.point for trial in recalled] == [B, A]


def test_samples_in_turn_are_recalled_for_the_same_champion_only() -> None:
    source = Clockwork()
    remembering, learnt, _ = memory(source)
    duel = remembering.measure(Ask((A,), champion=C))[0]
    assert duel == Trial(A, (1.0, 1.0), (3.0, 3.0), against=C)
    assert remembering.measure(Ask((A,), champion=C)) == [duel]
    assert learnt == [duel]
    remembering.measure(Ask((B,)))
    assert remembering.measure(Ask((A,), champion=B))[0].rival == (2.0, 2.0)
    assert source.asked == [A, B, A]


def test_a_point_known_to_be_slower_needs_no_duel() -> None:
    source = Clockwork()
    remembering, _, recalled = memory(source, (Trial(C, (3.0, 3.1)), Trial(A, (1.0, 1.1))))
    assert remembering.measure(Ask((C,), champion=A)) == [Trial(C, (3.0, 3.1))]
    assert source.asked == [] and len(recalled) == 1
    assert remembering.measure(Ask((A,), champion=C))[0].rival, "whether it is faster, a test must say"


def test_failures_are_not_tried_again() -> None:
    source = Clockwork()
    remembering, _, _ = memory(source, (Trial(A, (), failure="crash"),))
    assert remembering.measure(Ask((A,), champion=B)) == [Trial(A, (), failure="crash")]
    assert source.asked == []


def test_nothing_is_measured_when_time_is_up() -> None:
    source = Clockwork()
    remembering, learnt, _ = memory(source, (Trial(A, (1.0, 1.0)),), over=lambda: len(source.asked) == 1)
    assert [trial.point for trial in remembering.measure(Ask((A, B, C)))] == [A, B]
    assert [trial.point for trial in learnt] == [B]
