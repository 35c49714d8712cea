"""The page: one HTML file with its style, script and pictures in it, which loads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from poly.analysis.dependences import dependences
from poly.display import time_text
from poly.explanation import Explanation
from poly.explanation.text import bytes_text, size_text
from poly.machine.description import LINE
from poly.machine.text import facts
from poly.measure.counters import Counts
from poly.pictures.charts import NARROW, WIDE
from poly.pictures.files import inline
from poly.pictures.flow import dependence_picture, notes
from poly.pictures.lattice import Lattice, drawn
from poly.pictures.levels import levels
from poly.pictures.order import legend, order, undrawn
from poly.pictures.projection import choices
from poly.pictures.roofline import roofline
from poly.pictures.style import rules, variables
from poly.pictures.svg import svg
from poly.pictures.trail import trail
from poly.records.record import now
from poly.report.content import Content
from poly.schedules.steps import call_text
from poly.version import __version__

VIEWS = 6
"""The most pairs of loops along which a page shows the same picture."""

KEYWORDS = (
    "break|case|char|const|continue|def|do|double|else|enum|extern|float|for|if|in|inline|int|int64_t|long|range|"
    "restrict|return|size_t|static|struct|switch|typedef|uint64_t|union|unsigned|void|while"
)
C = re.compile(
    rf"(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<text>\"(?:\\.|[^\"\\\n])*\")|(?P<line>^[ \t]*#[^\n]*)|"
    rf"(?P<word>\b(?:{KEYWORDS})\b)",
    re.DOTALL | re.MULTILINE,
)
PYTHON = re.compile(rf"(?P<comment>#[^\n]*)|(?P<text>\"(?:\\.|[^\"\\\n])*\")|(?P<word>\b(?:{KEYWORDS})\b)")


@dataclass(frozen=True)
class PictureView:
    """A picture along two loops: its name, SVG, legend by kind, and notes."""

    name: str
    picture: Markup
    legend: dict[str, str]
    notes: tuple[str, ...]
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class CounterRow:
    """A level of memory: the bytes that the model expects it to deliver, and those of the counted event."""

    level: str
    modelled: str
    event: str
    counted: str


def page(content: Content) -> str:
    """The page as HTML."""
    import jinja2

    here = files("poly.report")
    template = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    kernel, explained, orders = content.kernel, content.explanation, list(_orders(content))
    return template.from_string((here / "page.html").read_text()).render(
        content=content,
        nest=content.nest,
        kernel=kernel,
        explained=explained,
        version=__version__,
        style=Markup(f"{variables()}\n{rules(True)}\n{(here / 'page.css').read_text()}"),
        script=Markup((here / "page.js").read_text()),
        loops=_python(content.nest.source[content.nest.source.index("def ") :].rstrip()),
        scheduled=_python(str(kernel.schedule)),
        steps=[call_text(step) for step in kernel.schedule.steps],
        dependences=[str(one) for one in dependences(content.nest)],
        flows=list(_flows(content)),
        orders=orders,
        turns=orders[0].said if orders else (),
        now=f"{now():%Y-%m-%d %H:%M} UTC",
        charts=_charts(content),
        times=list(_times(explained)) if explained else [],
        counters=list(counter_rows(explained, content.counts)) if explained and content.counts else [],
        source=[(kind, Markup(text)) for kind, text in source_parts(kernel.source, kernel.routines)],
        machine=facts(content.machine, content.rates),
        threads=sorted({peak.threads for peak in content.rates.peaks}),
        bytes_text=bytes_text,
        size_text=size_text,
        time_text=time_text,
    )


def _python(text: str) -> Markup:
    return Markup(highlighted(text, PYTHON))


def source_parts(source: str, routines: str) -> Iterator[tuple[str, str]]:
    """The C text as HTML in parts: what is `shown`, and the microkernels, which are `folded`."""
    before, found, after = source.partition(routines) if routines else (source, "", "")
    for kind, text in (("shown", before), ("folded", found), ("shown", after)):
        if text.strip():
            yield kind, highlighted(text.strip("\n"), C)


def highlighted(text: str, language: re.Pattern[str]) -> str:
    """The text as HTML: `<i>` around comments, `<b>` around words of the language, `<u>` around preprocessor lines."""
    return "".join(_parts(text, language))


def _parts(text: str, language: re.Pattern[str]) -> Iterator[str]:
    tags = {"comment": "i", "word": "b", "line": "u", "text": "s"}
    end = 0
    for found in language.finditer(text):
        yield escape(text[end : found.start()])
        tag = tags[str(found.lastgroup)]
        yield f"<{tag}>{escape(found[0])}</{tag}>"
        end = found.end()
    yield escape(text[end:])


def _views(content: Content) -> list[tuple[str, ...]]:
    """The asked loops, or none for the default, then the pairs that a reader can choose instead."""
    if content.instance is None:
        return []
    pairs = choices(content.instance.nest)
    return [content.loops, *(pairs if len(pairs) <= VIEWS else ())]


def _flows(content: Content) -> Iterator[PictureView]:
    """The pictures of the dependences, each once."""
    seen = set()
    for names in _views(content):
        assert content.instance is not None
        made = dependence_picture(content.instance, names)
        if made.lattice not in seen:
            seen.add(made.lattice)
            yield PictureView(
                _name(made.lattice, names),
                _picture(made.lattice),
                made.legend,
                (*notes(made), *undrawn(content.instance.nest)),
            )


def _orders(content: Content) -> Iterator[PictureView]:
    """The pictures of the order, each once."""
    seen = set()
    for names in _views(content):
        assert content.instance is not None
        made = order(content.instance, names)
        if made not in seen:
            seen.add(made)
            said = tuple(undrawn(content.instance.schedule.nest))
            yield PictureView(_name(made, names), _picture(made), legend(made), said, made.said)


def _name(lattice: Lattice, names: Sequence[str]) -> str:
    """The loops of a view; by default each panel has its own."""
    axes = {(panel.down, panel.across) for panel in lattice.panels if panel.down}
    return ", ".join(names or (axes.pop() if len(axes) == 1 else ("those that tell most",)))


def _picture(lattice: Lattice) -> Markup:
    return Markup(svg(drawn(lattice), alone=False))


def _charts(content: Content) -> dict[str, list[Markup]]:
    """The charts that there are, each for a wide and for a narrow page."""
    explained, cpu = content.explanation, content.machine.cpu
    found: dict[str, list[Markup]] = {}
    for width in (WIDE, NARROW):
        made: dict[str, Any] = {"trail": trail(content.trials, None, width)}
        if explained is not None:
            name = explained.schedule.nest.name
            made["levels"] = levels(explained, cpu, width, titled=False)
            made["roofline"] = roofline({name: explained}, cpu, width, titled=False)
        for key, figure in made.items():
            if figure is not None:
                found.setdefault(key, []).append(Markup(inline(figure, f"{key}{'' if width == WIDE else '-narrow'}")))
    return found


def _times(explained: Explanation) -> Iterator[tuple[str, str, str, str]]:
    """Predicted, measured and roofline's time: name, time, rate, and where it comes from."""
    for name, seconds, source in explained.sources():
        rate = f"{explained.flop / seconds / 1e9:.4g} GFLOP/s" if explained.flop else ""
        yield name, time_text(seconds), rate, source


LINES = {"L2": ("L1-dcache-load-misses",), "L3": ("LLC-loads",), "memory": ("LLC-load-misses", "cache-misses")}
"""For each level, the events of which each is a line that it delivers, the best one first."""


def counter_rows(explained: Explanation, counts: Counts) -> Iterator[CounterRow]:
    """The bytes that each level behind L1 delivers, by the model and by the counters."""
    for level in explained.levels:
        events = LINES.get(level.name, ())
        event = next((event for event in events if counts.per_call(event) is not None), None)
        if counts.events and events:
            lines = counts.per_call(event) if event else None
            counted = "not counted by this CPU" if lines is None else bytes_text(lines * LINE)
            yield CounterRow(level.name, bytes_text(level.loaded), event or events[0], counted)
