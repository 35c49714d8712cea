"""The benchmark of one nest as a table and as a picture: a line and a bar for each contender."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.document import Key, Row, threads_text
from benchmarks.report import ResultLine, notes
from benchmarks.runner import ContenderTiming
from poly.analysis.work import Work
from poly.display import time_text
from poly.pictures.files import save, settled
from poly.pictures.style import INK, light
from poly.timing.summary import precision, summarize

HEAD = ("", "a call", "± %", "GFLOP/s", "GB/s", "% bound", "ratio", "± %")
NONE = "-"
KEY = "ratio: poly's speed relative to this one; ±: half the median's 95 % interval, half the distance of quartiles"

NAME = "poly"


@dataclass(frozen=True)
class NestReport:
    """The line of a nest's results, and the work of a call."""

    line: ResultLine
    work: Work | None

    @property
    def title(self) -> str:
        case = self.line.result.case
        threads = threads_text(self.line.result.threads)
        return (
            " ".join(filter(None, (case.workload, case.size))) + f", {case.dtype.name}, {threads}, {self.line.target}"
        )

    def rows(self) -> list[tuple[str, ...]]:
        """The cells below HEAD: ours first, then the others, the fastest first."""
        result = self.line.result
        mine = result.timing(self.line.ours)
        return [self._cells(timing, mine) for timing in (*filter(None, [mine]), *result.peers(self.line.ours))]

    def text(self) -> Iterator[str]:
        """What is to be said below the table."""
        mine = self.line.result.timing(self.line.ours)
        yield KEY
        yield self._bound()
        if mine:
            yield f"{mine.name}: {mine.config}"
        yield from notes([self.line])

    def facts(self) -> dict[str, float | None]:
        """Fields of the row beside those of every benchmark."""
        mine = self.line.result.timing(self.line.ours)
        return {"gbs": self.work.bytes / mine.seconds.median / 1e9 if self.work and mine else None}

    def _cells(self, timing: ContenderTiming, mine: ContenderTiming | None) -> tuple[str, ...]:
        seconds, known = timing.seconds.median, precision(timing.samples)
        if not timing.right:
            return (f"{timing.name} WRONG", time_text(seconds), *[NONE] * (len(HEAD) - 2))
        ratio = None if mine is None or timing is mine else self.line.result.ratio_to(timing, mine)
        flop = self.work.flop if self.work else 0
        return (
            timing.name,
            time_text(seconds),
            NONE if known is None else f"{100 * known:.1f}",
            f"{flop / seconds / 1e9:.4g}" if flop else NONE,
            f"{self.work.bytes / seconds / 1e9:.3g}" if self.work else NONE,
            f"{100 * flop / seconds / 1e9 / self.line.bound:.0f}" if flop else NONE,
            NONE if ratio is None else f"{ratio.median:.2f}",
            NONE if ratio is None else f"{100 * ratio.spread:.0f}",
        )

    def _bound(self) -> str:
        peak = self.line.result.peak.median
        by = "the FMA peak, probed in each round" if self.line.bound > 0.99 * peak else "the bandwidth to the arrays"
        return f"bound: {self.line.bound:.4g} GFLOP/s by {by}"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the row of a nest into a file; its suffix selects the format. Shorter bars are faster."""
    from matplotlib.figure import Figure

    settled()
    (row,) = rows
    others = ((name + " (wrong)" * (not peer["right"]), peer["samples"]) for name, peer in row["peers"].items())
    entries = [(NAME, row["samples"]), *others]
    found = [(name, summarize(samples)) for name, samples in entries if samples]
    unit = 1e3 if max(summary.median for _, summary in found) >= 1e-3 else 1e6
    figure = Figure(figsize=(7, 1.3 + 0.4 * len(found)), layout="constrained")
    axes = figure.subplots()
    for place, (name, summary) in enumerate(found):
        middle, low, high = (unit * value for value in (summary.median, summary.low, summary.high))
        axes.barh(place, middle, height=0.6, color=light("orange" if name == NAME else "blue"), zorder=2)
        axes.hlines(place, low, high, color=INK, linewidth=2, zorder=3)
        axes.annotate(time_text(summary.median), (max(middle, high), place), (5, -3), textcoords="offset points")
    axes.set_yticks(range(len(found)), [name for name, _ in found])
    axes.set(xlabel=f"{'ms' if unit == 1e3 else 'µs'} a call (line: quartiles)", ylim=(len(found) - 0.5, -0.5))
    axes.margins(x=0.15)
    axes.grid(axis="x")
    busy = ", busy machine" if (row.get("load") or {}).get("busy") else ""
    axes.set_title(f"{Key.of(row).title}{busy}\n{row['host']}")
    save(figure, path)
