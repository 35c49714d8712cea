"""Kept runs of benchmarks: how each case's time developed, as a line of text and as a picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import log
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks import outputs
from benchmarks.document import Key, Row
from poly.display import time_text
from poly.records.runs import drop_rows, keep_rows, kept_rows
from poly.records.store import Store

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 24
"""The most runs in a line of text: the latest ones."""
FLAT = 0.02
"""The least range of times, relative to their mean, that a line's height spans: less is shown as nearly level."""

Runs = Mapping[Key, Sequence[Row]]
"""The kept rows of each case, oldest first."""


def kept() -> list[Row]:
    """All kept rows of this machine. Raises RecordError."""
    return list(kept_rows(Store.open()))


def keep(rows: Iterable[Row]) -> None:
    """Keep the rows whose result is right. Raises RecordError."""
    keep_rows(Store.open(), [row for row in rows if row["right"]])


def latest(rows: Iterable[Row]) -> list[Row]:
    """The latest row of each case."""
    return list({Key.of(row): row for row in rows}.values())


def of(rows: Iterable[Row], wanted: Iterable[Row]) -> dict[Key, list[Row]]:
    """The rows of the cases in `wanted`, by case."""
    found: dict[Key, list[Row]] = {Key.of(row): [] for row in wanted}
    for row in rows:
        if Key.of(row) in found:
            found[Key.of(row)].append(row)
    return {key: some for key, some in found.items() if some}


def text(runs: Runs) -> Iterator[str]:
    """A line for each case: its times as bars, the first, the best and the last time, and the change from the best."""
    yield "history (time of a call: a higher bar is slower; first, best and last)"
    for key, rows in runs.items():
        times = [float(row["seconds"]) for row in rows]
        days = f"{_day(rows[0])} to {_day(rows[-1])}" if len(rows) > 1 else _day(rows[0])
        yield f"  {key.title}: {len(rows)} run{'s' * (len(rows) > 1)}, {days}{_versions(rows)}"
        three = ", ".join(map(time_text, (times[0], min(times), times[-1])))
        busy = ", the last on a busy machine" if (rows[-1].get("load") or {}).get("busy") else ""
        yield f"    {sparkline(times)}  {three}; last {times[-1] / min(times):.3f} of the best{busy}"


def sparkline(times: Sequence[float]) -> str:
    """The latest times as bars, from the least to the greatest of them."""
    some = [log(time) for time in times[-WIDTH:]]
    low, high = min(some), max(some)
    span = max(high - low, FLAT)
    return "".join(BARS[min(len(BARS) - 1, int((value - low) / span * len(BARS)))] for value in some)


def draw(runs: Runs, path: Path) -> None:
    """Draw a panel for each case, with the median and the quartiles of each run; a busy machine's dots are hollow."""
    from matplotlib.figure import Figure

    from poly.pictures.files import save, settled

    settled()
    figure = Figure(figsize=(8, 0.8 + 2.0 * len(runs)), layout="constrained")
    panels = figure.subplots(len(runs), squeeze=False)
    for (axes,), (key, rows) in zip(panels, runs.items(), strict=True):
        _panel(axes, key, rows)
    figure.suptitle(f"times of a call on {next(iter(runs.values()))[-1].get('host', 'this machine')}", fontsize=10)
    save(figure, path)


def _panel(axes: Axes, key: Key, rows: Sequence[Row]) -> None:
    from poly.pictures.style import light
    from poly.timing.summary import summarize

    ours = light("orange")
    unit, name = next(((u, n) for u, n in ((1.0, "s"), (1e-3, "ms")) if rows[-1]["seconds"] >= u), (1e-6, "µs"))
    found = [summarize(row["samples"] or [row["seconds"]]) for row in rows]
    at, middle = range(len(rows)), [one.median / unit for one in found]
    low, high = ([value / unit for value in ends] for ends in zip(*((one.low, one.high) for one in found), strict=True))
    axes.vlines(at, low, high, color=light("sky"), linewidth=5)
    axes.plot(at, middle, color=ours, linewidth=1.2)
    busy = [bool((row.get("load") or {}).get("busy")) for row in rows]
    colours = ["white" if one else ours for one in busy]
    axes.scatter(at, middle, s=26, c=colours, edgecolors=ours, zorder=3)
    axes.set_title(key.title + (" (hollow: busy machine)" if any(busy) else ""), fontsize=9)
    axes.set_ylabel(f"{name} (line: quartiles)", fontsize=8)
    step = max(1, len(rows) // 6)
    axes.set_xticks(list(at)[::step], [_day(row) for row in rows][::step], fontsize=7)
    axes.margins(y=0.25)
    axes.grid(axis="y")


def _day(row: Row) -> str:
    return f"{datetime.fromisoformat(row['date']):%Y-%m-%d %H:%M}"


def _versions(rows: Sequence[Row]) -> str:
    """What differs between the first and the last run, of poly and of the compiler."""
    pairs = ((name, rows[0].get(name), rows[-1].get(name)) for name in ("poly", "compiler"))
    changed = [f"{name} {old} to {new}" for name, old, new in pairs if old != new]
    return f" ({', '.join(changed)})" if changed else ""


@click.command("history")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--json", "json_file", metavar="FILE", help="Write the kept rows as JSON; - for standard output.")
@click.option("--plot", "plot_file", metavar="FILE", help="Draw the history (png, svg or pdf).")
@click.option("--clear", is_flag=True, help="Forget the kept runs of this machine.")
def command(words: tuple[str, ...], json_file: str | None, plot_file: str | None, clear: bool) -> None:
    """Show the runs that `poly bench --history` kept on this machine; nothing is measured.

    WORDs choose cases: those whose workload, size or type is one of them, such as `matmul` or `f32`. All by default.
    """
    if clear:
        count = drop_rows(Store.open())
        click.echo(f"{count} row{'s' * (count != 1)} forgotten")
        return
    outputs.check(json_file, plot_file)
    rows = [row for row in kept() if not words or {row["workload"], row["size"], row["dtype"]} & set(words)]
    if not rows:
        click.echo(f"no kept runs{' of these cases' if words else ' yet'}: `poly bench --history` keeps them", err=True)
        return
    runs = of(rows, rows)
    if json_file != "-":
        outputs.say(text(runs), sys.stdout)
    if json_file:
        outputs.write_json(json.dumps({"rows": rows}, indent=1), json_file)
    if plot_file:
        draw(runs, Path(plot_file))
