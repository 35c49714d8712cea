"""Values show themselves readably: as text, at IPython's prompt, and as HTML in which everything is escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from small_space import small_space
from tuning_records import record

import poly
from poly import f32
from poly.autoschedule.spaces.space import Space
from poly.display import Cells, Text, columns
from poly.errors import ScheduleError
from poly.explanation import explained
from poly.machine.calibration import described
from poly.model.cost import Cost, CostPart
from poly.model.rates import from_machine
from poly.tuning.outcome import Failure, Tuning, with_tuning

N = poly.sizes("N")


@poly.nest
def clipped(x: f32[N]):
    for i in range(N):
        x[i] = 0.5 if x[i] < 0.5 else x[i]


@poly.nest
def wave(x: f32[N, N]):
    for t in range(1, N):
        for s in range(N - 1):
            x[t, s] = x[t - 1, s + 1]


class Printer:
    """What IPython passes to `_repr_pretty_`."""

    def __init__(self) -> None:
        self.shown = ""

    def text(self, text: str) -> None:
        self.shown += text

    def break_(self) -> None:
        self.shown += "\n"


class Tags(HTMLParser):
    """The text of HTML whose tags match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> str:
    parser = Tags()
    parser.feed(html)
    parser.close()
    assert not parser.open
    return parser.text


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    """A value of each kind that a user meets."""
    kernel = poly.compile(clipped, N=64)
    schedule = poly.schedule(clipped).split(i=4)
    space = small_space()
    tuned = with_tuning(kernel, tuning(space))
    dependences = poly.dependences(wave)
    with pytest.MonkeyPatch.context() as patch:  # nothing is measured
        rates = described(kernel.isa.name, ())
        patch.setattr(explained, "measured", lambda machine: rates)
        patch.setattr(explained, "rates", lambda isa, threads: from_machine(rates, isa, threads))
        explanation = poly.explain(kernel)
        comparison = poly.compare(kernel, poly.schedule(kernel.nest))
    return {
        "nest": clipped,
        "fixed nest": clipped.with_sizes({"N": 3}),
        "schedule": schedule,
        "kernel": kernel,
        "tuned kernel": tuned,
        "tuning": tuned.tuning,
        "record": record(),
        "explanation": explanation,
        "comparison": comparison,
        "space": space,
        "cost": Cost(2e-3, (CostPart("arithmetic", 2e-3), CostPart("L2", 1e-3), CostPart("TLB", 0.0))),
        "machine": poly.machine(),
        "dependences": dependences,
        "dependence": next(iter(dependences)),
    }


def tuning(space: Space) -> Tuning:
    best, schedule = space.choice, space.schedule(space.choice)
    failures = (Failure("crashed", 2, "crashed: signal 11"),)
    return Tuning("matmul", space, best, schedule, 1e-6, None, 3, 1, failures, "done", False, 0.5, None, None)


def test_each_value_has_a_readable_text_a_short_repr_and_html(values: dict[str, Any]) -> None:
    for name, value in values.items():
        text, short = str(value), repr(value)
        assert not re.search(r"\b(?!range|min|max|schedule)\w+\(\w+=", text.partition("kept in")[0]), name
        assert len(short) < 200 and "\n" not in short, name
        assert (short.startswith("<") and short.endswith(">")) or short == "schedule(clipped).split(i=4)", name
        printer = Printer()
        value._repr_pretty_(printer, cycle=False)
        assert printer.shown == text, name
        shown = read(value._repr_html_())
        assert value._title() in shown, name


def test_ipython_finds_the_method_before_a_repr_of_the_class(values: dict[str, Any]) -> None:
    """It takes the first class that has either, from the value's own class up."""
    for name, value in values.items():
        first = next(c for c in type(value).__mro__ if "_repr_pretty_" in vars(c) or "__repr__" in vars(c))
        assert "_repr_pretty_" in vars(first), name


def test_html_has_the_text_whole_and_escaped(values: dict[str, Any]) -> None:
    assert "x[i] < 0.5" in read(values["nest"]._repr_html_())
    assert "x[i] < 0.5" not in values["nest"]._repr_html_()
    assert values["kernel"].source in read(values["kernel"]._repr_html_())
    for knob in values["space"].structures[0].knobs:
        assert f"{knob.name} {knob}" in read(values["space"]._repr_html_())
    assert str(values["explanation"]) in read(values["explanation"]._repr_html_())


def test_titles_and_cells_are_escaped() -> None:
    hostile = "</pre><script>alert('x')</script>&amp;"
    for part in (Text(hostile), Text("", hostile), Text(hostile, hostile), Cells([[hostile]], [hostile])):
        assert "<script" not in part.html() and hostile in read(part.html())


def test_a_value_whose_text_takes_too_much_work_shows_its_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Any) -> str:
        raise ScheduleError("too much work")

    schedule = poly.schedule(clipped)
    monkeypatch.setattr(type(schedule), "__str__", fails)
    printer = Printer()
    schedule._repr_pretty_(printer, cycle=False)
    assert printer.shown == "schedule(clipped)"
    assert schedule._repr_html_() is None


def test_a_kernel_says_whose_schedule_it_follows() -> None:
    own = poly.compile(clipped, threads=3, schedule=poly.schedule(clipped.with_sizes({"N": 64})).split(i=4))
    assert "for i_tile in range(16):" in str(own)
    assert "3 threads; schedule: given by the caller" in str(own)
    assert "the model's choice" in str(poly.compile(clipped, N=64, records=False))


def test_columns_align_the_first_left_and_the_others_right() -> None:
    assert list(columns([("a", "12"), ("bcd", "3")])) == ["a    12", "bcd   3"]
