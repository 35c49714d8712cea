"""What docs/search.md says: its strategy works as printed, every strategy is named, every option exists."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from tuning_fakes import bowl, grid_space

from poly.autoschedule.spaces.space import Point
from poly.commands import tune
from poly.search import strategies
from poly.search.events import Ask, Trial
from poly.search.run import search


@pytest.fixture
def page(project: Path) -> str:
    return (project / "docs" / "search.md").read_text()


class Table:
    """Measures by the bowl's formula, to the digit."""

    def measure(self, ask: Ask) -> list[Trial]:
        return [Trial(p, self.samples(p), self.samples(ask.incumbent) if ask.incumbent else ()) for p in ask.points]

    def samples(self, point: Point) -> tuple[float, ...]:
        return (bowl(grid_space().values(point)).seconds,) * 8


def test_the_strategy_of_ones_own_works_as_printed(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "_STRATEGIES", dict(strategies._STRATEGIES))
    (code,) = (block for block in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S) if "register(" in block)
    exec(code, {})
    found = search(grid_space(), "downhill", Table(), start=Point(0, (7, 0)), random=Random(0))
    assert found.best == Point(0, (3, 3))


def test_every_strategy_is_named(page: str) -> None:
    named = set(re.findall(r"^\| `([\w-]+)` \|", page, re.M))
    assert named == set(strategies._STRATEGIES)


def test_the_options_exist(page: str) -> None:
    known = {option for parameter in tune.command.params for option in parameter.opts}
    for line in re.findall(r"^poly tune .*$", page, re.M):
        assert set(re.findall(r"--[\w-]+", line)) <= known
