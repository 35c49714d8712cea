"""The loops before and after each step, as the docstrings of `Schedule` show them."""

import doctest
import inspect

import doc_nests

import poly
from poly.schedules import schedule
from poly.schedules.schedule import Schedule

NESTS = {name: value for name, value in vars(doc_nests).items() if isinstance(value, poly.Nest)}


def test_the_examples_in_docstrings_hold():
    results = doctest.testmod(schedule, extraglobs=NESTS | {"schedule": poly.schedule})
    assert results.attempted > 30
    assert results.failed == 0


def test_every_step_shows_loops_before_and_after():
    apart = {"apply", "default", "from_json", "on", "to_json"}
    steps = [m for n, m in inspect.getmembers(Schedule, inspect.isfunction) if not n.startswith("_") and n not in apart]
    assert len(steps) >= 13
    for method in steps:
        assert "Before:" in method.__doc__, method.__name__
        assert "After" in method.__doc__, method.__name__
