"""Charts: the roofline, the bytes of levels, and the trail of a tuning say what they show, and nothing twice."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast

import pytest
from shared_nests import matmul

import poly
from poly.explanation import Explanation, Level, Measurement
from poly.measure.counters import Counts
from poly.model import Caches
from poly.model.cost import Cost
from poly.pictures.charts import NARROW, WIDE, Heading
from poly.pictures.files import inline
from poly.pictures.levels import levels
from poly.pictures.roofline import roofline
from poly.pictures.trail import trail, trail_points
from poly.records import StoredTrial
from poly.report.page import PYTHON, C, counter_rows, highlighted, source_parts

RATES = {"L1": 400e9, "L2": 200e9, "L3": 100e9, "memory": 20e9}
LEVELS = tuple(
    Level(name, moved, moved / 10, RATES[name], ()) for name, moved in zip(RATES, (4e6, 3e6, 1e6, 0.0), strict=True)
)


def explained(**more: Any) -> Explanation:
    """A product of 0.1 GFLOP, which takes 1 ms by the model and 1.25 ms as measured."""
    nothing = cast(Any, None)
    made = Explanation(
        schedule=poly.schedule(matmul.with_sizes({"M": 4, "N": 5, "K": 6})),
        target="avx512",
        threads=2,
        flop=100_000_000,
        peak=200e9,
        levels=LEVELS,
        footprints=(),
        reuses=(),
        caches=Caches(1, 2, 3),
        pessimistic=nothing,
        optimistic=nothing,
        prediction=Cost(1e-3, ()),
        measurement=Measurement(1.25e-3, "here"),
    )
    return replace(made, **more)


def texts(figure: Any) -> str:
    axes = figure.axes[0]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    return "\n".join([*(text.get_text() for text in (*figure.texts, *axes.texts)), *legend])


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_roofline_has_roofs_that_rise_to_the_peak_and_named_points(width: float) -> None:
    figure = roofline({"matmul": explained()}, "some CPU", width)
    assert figure is not None
    axes = figure.axes[0]
    lines = [line for line in axes.get_lines() if len(line.get_xdata()) == 2]
    assert len(lines) == len(LEVELS) + 1
    for line in lines:
        (x1, x2), (y1, y2) = line.get_xdata(), line.get_ydata()
        assert x1 < x2 and y1 <= y2 and y2 == pytest.approx(200.0), "no line doubles back, none leaves the peak"
    said = texts(figure)
    for words in (
        "Roofline of matmul", "M = 4, N = 5, K = 6; avx512, 2 threads; some CPU", "L1 400 GB/s", "memory 20 GB/s",
        "peak 200 GFLOP/s", "predicted: 100 GFLOP/s", "measured: 80 GFLOP/s",
    ):  # fmt: skip
        assert words in said.replace("\n(", " (")
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.get_lines() if len(line.get_xdata()) == 1]
    assert len(points) == 6 and {y for _, y in points} == {100.0, 80.0}, "three levels deliver, twice"
    named = {text.get_text() for text in axes.texts}
    assert {"L1, L2", "L3"} <= named, "each point has the name of its level; those at one place share it"
    assert figure.get_figwidth() == width


def test_two_explanations_are_told_apart() -> None:
    figure = roofline({"first": explained(), "second": explained(measurement=None)}, "")
    assert figure is not None
    assert "first, measured: 80 GFLOP/s" in texts(figure) and "second, predicted: 100 GFLOP/s" in texts(figure)


def test_nothing_to_count_is_no_roofline_but_bytes() -> None:
    assert roofline({"copy": explained(flop=0)}, "") is None
    assert "not counted" in texts(levels(explained(flop=0), ""))


def test_the_bars_are_the_times_of_the_levels() -> None:
    figure = levels(explained(), "some CPU")
    bars: dict[float, float] = {}
    for bar in figure.axes[0].patches:
        bars[round(bar.get_y(), 3)] = bars.get(round(bar.get_y(), 3), 0.0) + bar.get_width()
    expected = [explained().arithmetic, *(level.seconds for level in LEVELS)]
    assert list(bars.values()) == pytest.approx([seconds * 1e3 for seconds in expected])
    said = texts(figure)
    for words in ("4.4 MB at 400 GB/s", "nothing", "predicted: 1 ms", "measured: 1.25 ms", "0.1 GFLOP at 200 GFLOP/s"):
        assert words in said


def trial(order: str, seconds: float | None, failure: str = "") -> StoredTrial:
    point = f'{{"traits": {{"order": "{order}", "left": "in place"}}, "values": {{"rows": 6}}}}'
    return StoredTrial(point, "", () if seconds is None else (seconds, seconds), failure=failure)


def test_the_trail_names_structures_failures_and_the_best() -> None:
    trials = [trial("rows", 3e-3), trial("columns", 1e-3), trial("rows", None, "crashed: SIGSEGV"), trial("rows", 2e-3)]
    assert [(p.number, p.structure, p.seconds) for p in trail_points(trials)] == [
        (1, "order rows", 3e-3),
        (2, "order columns", 1e-3),
        (3, "order rows", None),
        (4, "order rows", 2e-3),
    ]
    figure = trail(trials, Heading("Tuning of matmul", "here"))
    assert figure is not None
    said = texts(figure)
    for words in ("Tuning of matmul", "best so far: 1 ms", "order rows", "order columns", "failed: crashed (1)"):
        assert words in said
    dots = [line for line in figure.axes[0].get_lines() if line.get_marker() == "o"]
    assert len({line.get_color() for line in dots}) == 2
    assert trail([trial("rows", None, "crashed")], None) is None


def test_many_structures_share_the_last_colour() -> None:
    figure = trail([trial(str(number), 1e-3 * (number + 1)) for number in range(9)], None, NARROW)
    assert figure is not None and "3 other structures" in texts(figure)


def test_a_chart_on_a_page_has_no_colour_of_its_own() -> None:
    text = inline(levels(explained(), "", NARROW, titled=False), "bars")
    assert text.startswith("<svg") and "var(--ink)" in text and "#1f2430" not in text and "predicted: 1 ms" in text
    ids = re.findall(r' id="([^"]*)"', text)
    assert ids and len(set(ids)) == len(ids) and all(name.startswith("bars-") for name in ids)
    assert set(re.findall(r'(?:url\(|href=")#([^)"]+)', text)) <= set(ids)


def test_counted_lines_stand_beside_the_models_bytes() -> None:
    counts = Counts((("L1-dcache-load-misses", 1000.0), ("cache-misses", 10.0)), ("LLC-loads",))
    rows = [(row.level, row.modelled, row.event, row.counted) for row in counter_rows(explained(), counts)]
    assert rows == [
        ("L2", "3 MB", "L1-dcache-load-misses", "64 kB"),
        ("L3", "1 MB", "LLC-loads", "not counted by this CPU"),
        ("memory", "0 B", "cache-misses", "640 B"),
    ]
    assert list(counter_rows(explained(), Counts(refusal="No hardware counters: …"))) == []


def test_code_is_escaped_and_comments_are_marked() -> None:
    text = 'int a; /* <b> & for */\n#include "x.h"\nfor (;;) s = "</pre>"; // end'
    assert highlighted(text, C) == (
        "<b>int</b> a; <i>/* &lt;b&gt; &amp; for */</i>\n<u>#include &quot;x.h&quot;</u>\n"
        "<b>for</b> (;;) s = <s>&quot;&lt;/pre&gt;&quot;</s>; <i>// end</i>"
    )
    assert highlighted("for i in x:  # <", PYTHON) == "<b>for</b> i <b>in</b> x:  <i># &lt;</i>"
    parts = list(source_parts("head\nROUTINES\ntail", "ROUTINES"))
    assert [kind for kind, _ in parts] == ["shown", "folded", "shown"]
    assert [text.strip() for _, text in parts] == ["head", "ROUTINES", "tail"]
    assert list(source_parts("only", "")) == [("shown", "only")]
