"""The results as rows for JSON and as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from textwrap import indent
from typing import Any

from benchmarks.document import threads_text
from benchmarks.runner import STEADY, Result
from codegen.toolchain.compiler import compiler_name
from microkernels.speed import nearly_highest
from poly.machine import machine
from poly.machine.calibration import kept
from poly.records.key import machine_name
from poly.timing.summary import geometric_mean, interval
from poly.version import __version__

COLUMNS = (
    "workload",
    "size",
    "dtype",
    "threads",
    "GFLOP/s",
    "% peak",
    "% bound",
    "best peer",
    "its GFLOP/s",
    "ratio",
    "±",
)
LEFT = {"workload", "size", "dtype", "best peer"}

UNRELIABLE = "!"
"""Marks lines whose times remained unsteady."""

DISTURBED = 0.8
"""The part of a quiet core's issue rate below which a round counts as disturbed: a busy neighbour leaves half."""

DIGITS = 5
"""Significant digits of samples in JSON."""


@dataclass(frozen=True)
class ResultLine:
    """A result with its roofline bound in GFLOP/s, from the point of view of one contender."""

    result: Result
    bound: float
    ours: str
    target: str

    @property
    def gflops(self) -> float | None:
        timing = self.result.timing(self.ours)
        return self.result.gflops(timing) if timing else None

    @property
    def peak_fraction(self) -> float | None:
        return self.gflops / self.result.peak.median if self.gflops else None

    @property
    def bound_fraction(self) -> float | None:
        return self.gflops / self.bound if self.gflops else None

    @property
    def ratio(self) -> float | None:
        ratio = self.result.ratio(self.ours)
        return ratio.median if ratio else None

    @property
    def reliable(self) -> bool:
        return self.result.reliable(self.ours)

    @property
    def title(self) -> str:
        """The case with its threads."""
        return f"{self.result.case.title} ({threads_text(self.result.threads)})"

    def disturbed(self, quiet: float | None) -> float | None:
        """The part of the rounds in which the issue rate was far below that of a quiet core; None if it is unknown."""
        issues = self.result.issues
        if not issues or quiet is None:
            return None
        return sum(issue < DISTURBED * quiet for issue in issues) / len(issues)

    def row(self, quiet: float | None = None) -> dict[str, Any]:
        """The fields of `--json`; None where there is no figure. `quiet` is the issue rate of a quiet core."""
        timing, best = self.result.timing(self.ours), self.result.best_peer(self.ours)
        ratio = self.result.ratio(self.ours)
        return {
            "workload": self.result.case.workload,
            "size": self.result.case.size,
            "dtype": self.result.case.dtype.name,
            "target": self.target,
            "threads": self.result.threads,
            "gflops": self.gflops,
            "peak_fraction": self.peak_fraction,
            "seconds": timing.seconds.median if timing else None,
            "peers": {
                peer.name: {
                    "gflops": self.result.gflops(peer),
                    "version": peer.version,
                    "config": peer.config,
                    "samples": _rounded(peer.samples),
                    "max_error": peer.error,
                    "right": peer.right,
                }
                for peer in self.result.peers(self.ours)
            },
            "best_peer": best.name if best else None,
            "ratio_to_best_peer": ratio.median if ratio else None,
            "ratio_spread": ratio.spread if ratio else None,
            "bound": self.bound,
            **(
                {"trials": timing.tuned.trials, "tune_seconds": timing.tuned.seconds} if timing and timing.tuned else {}
            ),
            "max_error": timing.error if timing else None,
            "right": timing.right if timing else None,
            "config": timing.config if timing else None,
            "workspace": timing.workspace if timing else None,
            "built_seconds": timing.building if timing else None,
            "samples": _rounded(timing.samples if timing else ()),
            "peaks": _rounded(self.result.peaks),
            "issues": _rounded(self.result.issues),
            "spread": self.result.unsteadiness(self.ours),
            "attempts": self.result.attempts,
            "reliable": self.reliable,
            "disturbed": self.disturbed(quiet),
            "interval": interval(timing.samples) if timing else None,
            "date": self.result.date.isoformat(timespec="seconds") if self.result.date else None,
            "load": self.result.load.facts() if self.result.load else None,
            **versions(),
        }

    def cells(self) -> tuple[str, ...]:
        """The row of the table, in the order of COLUMNS."""
        best, ratio = self.result.best_peer(self.ours), self.result.ratio(self.ours)
        case = self.result.case
        return (
            case.workload,
            case.size,
            case.dtype.name,
            str(self.result.threads),
            _number(self.gflops, 1),
            _percent(self.peak_fraction),
            _percent(self.bound_fraction),
            best.name if best else "-",
            _number(self.result.gflops(best) if best else None, 1),
            _number(ratio.median if ratio else None, 2),
            _percent(ratio.spread if ratio else None) + UNRELIABLE * (not self.reliable),
        )


@cache
def versions() -> dict[str, str]:
    """What each row is of, besides its case: the versions of poly and of the C compiler, and the machine."""
    return {"poly": __version__, "compiler": compiler_name(), "host": machine_name()}


def document(lines: Sequence[ResultLine], machine: Mapping[str, Any]) -> dict[str, Any]:
    """The object that `--json` prints."""
    quiet = quiet_rate(lines)
    return {"machine": dict(machine), "rows": [line.row(quiet) for line in lines]}


def quiet_rate(lines: Iterable[ResultLine]) -> float | None:
    """Nearly the highest issue rate of a run, taken for that of a quiet core; None if none was probed."""
    issues = [issue for line in lines for issue in line.result.issues]
    return nearly_highest(issues) if issues else None


def plain(lines: Sequence[ResultLine]) -> Iterator[str]:
    """The table as text with aligned columns."""
    rows = [COLUMNS, *(line.cells() for line in lines)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(COLUMNS))]
    for row in rows:
        cells = (c.ljust(w) if h in LEFT else c.rjust(w) for c, w, h in zip(row, widths, COLUMNS, strict=True))
        yield "  ".join(cells).rstrip()


def rich_table(lines: Sequence[ResultLine]) -> Any:
    """The table for a terminal of 80 columns: a heading for each workload, and coloured ratios."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("", min_width=12)  # long names are continued below, and nothing is cut
    for column in ("type", "thr", "GFLOP/s", "peak%", "bound%"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("best peer", no_wrap=True)
    for column in ("", "ratio", "±%"):
        table.add_column(column, justify="right", no_wrap=True)
    workload = ""
    for line in lines:
        name, size, *cells = line.cells()
        if name != workload:
            table.add_row(f"[bold cyan]{name}[/bold cyan]")
            workload = name
        cells[-2] = f"[{_colour(line.ratio)}]{cells[-2]}[/]"
        table.add_row(f" {size}", *cells)
    return table


def _colour(ratio: float | None) -> str:
    """Green if poly is the fastest, yellow if nearly so."""
    if ratio is None:
        return "default"
    return "green" if ratio >= 1 else "yellow" if ratio >= 0.9 else "red"


def means(lines: Sequence[ResultLine]) -> Iterator[str]:
    """Geometric means over the cases of each workload, dtype and thread count."""
    groups: dict[tuple[str, str, int], list[ResultLine]] = {}
    for line in lines:
        case = line.result.case
        groups.setdefault((case.workload, case.dtype.name, line.result.threads), []).append(line)
    yield "geometric means"
    for (workload, dtype, threads), members in groups.items():
        peak = geometric_mean(_known(line.peak_fraction for line in members))
        roof = geometric_mean(_known(line.bound_fraction for line in members))
        ratio = geometric_mean(_known(line.ratio for line in members))
        name = f"{workload} {dtype}, {threads_text(threads)}"
        against = "".join(
            f", {_number(mean, 2)} of {peer}"
            for peer in peers(members)
            if (mean := mean_ratio(members, peer)) is not None
        )
        yield (
            f"  {name}: {_percent(peak)} of peak, {_percent(roof)} of the bound, "
            f"{_number(ratio, 2)} of the best peer{against}"
        )


def peers(lines: Iterable[ResultLine]) -> tuple[str, ...]:
    """The names of all peers with results, in order of appearance."""
    return tuple(dict.fromkeys(timing.name for line in lines for timing in line.result.peers(line.ours)))


def mean_ratio(lines: Iterable[ResultLine], peer: str) -> float | None:
    """The speed relative to one peer, as the geometric mean over the cases of both."""
    ratios = []
    for line in lines:
        timing = line.result.timing(peer)
        if timing and line.gflops:
            ratios.append(line.gflops / line.result.gflops(timing))
    return geometric_mean(ratios)


def notes(lines: Sequence[ResultLine]) -> Iterator[str]:
    """What disturbed the run, the peers' configurations with the kernels they chose, missing peers, and errors."""
    yield from _unreliable(lines)
    yield from _disturbances(lines)
    yield from _busy(lines)
    if any(line.target.startswith("c") for line in lines) and kept(machine()) is None:
        yield (
            "this machine is not calibrated: the model took it for a similar CPU, and bandwidths were measured just "
            "now. `poly machine` calibrates it, best when nothing else runs"
        )
    configs = {(t.name, t.version, t.config): None for line in lines for t in line.result.peers(line.ours)}
    yield from (f"{name} {version}: {config}" for name, version, config in sorted(configs))
    missing = {pair: None for line in lines for pair in line.result.missing}
    yield from (f"{name}: not installed ({reason}): skipped" for name, reason in missing)
    for line in lines:
        for name, reason in line.result.failed:
            yield f"{line.result.case.title}: {name} failed: {indent(reason, '    ').lstrip()}"
        yield from (
            f"{line.result.case.title}: WRONG RESULT of {timing.name}, relative error {timing.error:.1e}"
            for timing in line.result.wrong
        )


def _unreliable(lines: Sequence[ResultLine]) -> Iterator[str]:
    found = [line for line in lines if not line.reliable]
    if found:
        tried = max(line.result.attempts for line in found)
        again = f", in each of {tried} attempts" if tried > 1 else ""
        yield (
            f"{UNRELIABLE} unreliable: the quartiles of our or the best peer's times are more than "
            f"{_percent(STEADY)} % apart{again}: {', '.join(line.title for line in found)}"
        )


def _disturbances(lines: Sequence[ResultLine]) -> Iterator[str]:
    quiet = quiet_rate(lines)
    found = [(line, share) for line in lines if (share := line.disturbed(quiet))]
    if found:
        rounds = sum(len(line.result.issues) for line in lines)
        disturbed = sum(round(share * len(line.result.issues)) for line, share in found)
        mostly = [line.title for line, share in found if share >= 0.5]
        where = f", mostly in {', '.join(mostly)}" if mostly else ""
        yield (
            f"a neighbour on the core's other hardware thread was busy in {disturbed} of {rounds} rounds (issue rate "
            f"below {_percent(DISTURBED)} % of {_number(quiet, 1)} a cycle){where}"
        )


def _busy(lines: Sequence[ResultLine]) -> Iterator[str]:
    """What other processes did meanwhile: that of the worst case, and in how many cases they did."""
    busy = [line for line in lines if line.result.load and line.result.load.busy]
    loads = [line.result.load for line in busy if line.result.load]
    if loads:
        worst = max(loads, key=lambda load: max(load.others or 0.0, load.stolen or 0.0))
        where = "" if len(lines) == 1 else f"; busy in {len(busy)} of {len(lines)} cases, this was the worst"
        yield f"{worst.text()}{where}: repeat this when nothing else runs"


def exit_status(lines: Sequence[ResultLine]) -> int:
    """1 if one of poly's results is wrong or missing, else 0; a peer's wrong result is reported and never the best."""
    return int(any((timing := line.result.timing(line.ours)) is None or not timing.right for line in lines))


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f}"
