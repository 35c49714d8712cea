"""The books of a tuning: what is best so far, and the model's choice beside it."""

from __future__ import annotations

import pytest
from tuning_fakes import grid_space

from poly.records import key_for
from poly.search.outcome import Progress
from poly.search.trial import Ask, Trial
from poly.spaces.space import Point
from poly.tuning.display import Silent
from poly.tuning.history import History
from poly.tuning.status import Status
from poly.tuning.watch import Watch

SPACE = grid_space()
CHOICE, A, B = SPACE.choice, Point(0, (0, 0)), Point(0, (1, 1))


class Recorder(Silent):
    def __init__(self) -> None:
        self.shown: list[Status] = []

    def update(self, status: Status) -> None:
        self.shown.append(status)


def watch(*known: Trial) -> tuple[Watch, Recorder]:
    recorder = Recorder()
    history = History(None, key_for(SPACE.nest, SPACE.isa, 1), SPACE, "droplet", None)
    return Watch(history, known, recorder, Status("double"), lambda: 1.0), recorder


def test_the_choice_is_placed_by_samples_taken_in_turn() -> None:
    books, _ = watch(Trial(CHOICE, (2.0, 2.0)), Trial(A, (3.0, 3.0), (6.0, 6.0), against=CHOICE))
    assert books.choice_seconds(A, 3.0) == pytest.approx(6.0)
    assert books.choice_seconds(A, 1.5) == pytest.approx(3.0)
    books, _ = watch(Trial(A, (2.0, 2.0)), Trial(CHOICE, (9.0, 9.0), (3.0, 3.0), against=A))
    assert books.choice_seconds(A, 2.0) == pytest.approx(6.0)


def test_gains_are_not_chained() -> None:
    """Each winner's gain is too high by luck: the choice is not ten times ten as slow as the last of them."""
    lucky = Trial(A, (1.0, 1.0), (10.0, 10.0), against=CHOICE), Trial(B, (1.0, 1.0), (10.0, 10.0), against=A)
    books, _ = watch(Trial(CHOICE, (1.1, 1.1)), *lucky)
    assert books.choice_seconds(B, 1.0) == pytest.approx(1.1)


def test_without_a_sample_of_both_there_is_nothing_to_compare() -> None:
    books, _ = watch(Trial(A, (1.0, 1.0)), Trial(CHOICE, (), failure="crashed"))
    assert books.choice_seconds(A, 1.0) is None
    assert books.choice_seconds(None, None) is None


def test_the_display_is_told_what_is_asked_what_came_and_who_is_best() -> None:
    books, recorder = watch(Trial(B, (2.0, 2.0)))
    assert (recorder.shown[-1].tried, recorder.shown[-1].reused, recorder.shown[-1].best) == (1, 1, 2.0)
    books.asked(Ask((A, CHOICE), champion=B))
    assert recorder.shown[-1].trying == "2 candidates (as written)"
    trial = Trial(A, (1.0, 1.0), (2.0, 2.0))
    books.told(trial, Ask((A, CHOICE), champion=B))
    assert (recorder.shown[-1].tried, recorder.shown[-1].best) == (2, 2.0), "the search has not judged yet"
    books.observe(Progress(trial, A, 1.0, 1, 0, 1.0))
    assert recorder.shown[-1].best == 1.0 and recorder.shown[-1].where == "as written; x 1, y 1"
    books.told(Trial(CHOICE, (), failure="hangs: it was stopped"), Ask((CHOICE,), champion=A))
    assert [str(failure) for failure in recorder.shown[-1].failures] == ["hangs (1)"]
