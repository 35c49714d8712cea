"""The benchmark of one nest as a table: a line for each contender."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.document import threads_text
from benchmarks.report import ResultLine, notes
from benchmarks.runner import ContenderTiming
from poly.analysis.work import Work
from poly.display import time_text
from poly.timing.summary import precision

HEAD = ("", "a call", "± %", "GFLOP/s", "GB/s", "% bound", "ratio", "± %")
NONE = "-"
KEY = "ratio: poly's speed relative to this one; ±: half the median's 95 % interval, half the distance of quartiles"


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
