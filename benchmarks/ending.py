"""The end of a benchmark: what is written, drawn, kept and compared, and the exit status; checked before it begins."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from benchmarks import history, outputs
from benchmarks.compare import compare, text
from benchmarks.document import Row, need_same_machine, read
from microkernels.errors import shown
from poly.machine import machine

SLOWER = 3
"""The exit status when a case is slower than before: 1 means a wrong result, and click's 2 wrong usage."""

PATH = click.Path(exists=True, dir_okay=False, path_type=Path)


def parse_percentage(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """A percentage, `5%` or `5`, as a fraction."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?%?", text)
    if found is None or not float(found[1]) < 100:
        raise click.BadParameter(f"{shown(text)} is no percentage from 0 to 100, such as 5%", context, option)
    return float(found[1]) / 100


FAIL_IF = click.option(
    "--fail-if",
    "limit",
    metavar="5%",
    callback=parse_percentage,
    help="End with status 3 only if a case is slower than before by more than this, beyond the noise.",
)


@dataclass(frozen=True)
class Ending:
    """What to do at the end of a run: `--json`, `--plot`, `--compare`, `--fail-if` and `--history`.

    `before` are the rows of the run to compare with.
    """

    json_file: str | None = None
    plot_file: str | None = None
    old: Path | None = None
    limit: float | None = None
    history: bool = False
    before: Sequence[Row] = field(default=(), repr=False)

    def checked(self, about: Mapping[str, str]) -> Ending:
        """The same, ready: the run to compare with is read. `about` are more facts about the machine.

        Raises UsageError for anything that would fail only at the end.
        """
        outputs.check(self.json_file, self.plot_file)
        if self.limit is not None and self.old is None and not self.history:
            raise click.UsageError("--fail-if compares with an earlier run: add --compare OLD.json or --history")
        if self.old is None:
            return self if not self.history else self._with(history.latest(history.kept()))
        here, found = machine(), read(self.old)
        need_same_machine(found["machine"], {"cpu": here.cpu, "isa": here.isa.name, "cores": here.cores, **about})
        return self._with(found["rows"])

    def end(self, made: Mapping[str, Any], draw: Callable[[Sequence[Row], Path], None], out: Any) -> int:
        """Write, draw, keep and compare a run; the exit status. `draw` draws the rows of one run."""
        rows = made["rows"]
        if self.json_file:
            outputs.write_json(json.dumps(made, indent=1), self.json_file)
        if self.history:
            history.keep(rows)
            runs = history.of(history.kept(), rows)
            outputs.say(("", *history.text(runs)), out)
            if self.plot_file:
                history.draw(runs, Path(self.plot_file))
        elif self.plot_file:
            draw(rows, Path(self.plot_file))
        if not self.before:
            return 0
        return show_changes(self.before, rows, str(self.old or "the last kept run"), self.limit, self._quiet, out)

    @property
    def _quiet(self) -> bool:
        """Whether a slower case alone is no failure: it was not asked for."""
        return self.old is None and self.limit is None

    def _with(self, rows: Sequence[Row]) -> Ending:
        return Ending(self.json_file, self.plot_file, self.old, self.limit, self.history, rows)


def show_changes(
    before: Sequence[Row], after: Sequence[Row], name: str, limit: float | None, quiet: bool, out: Any
) -> int:
    """Say what changed, and what is slower by more than the limit; the exit status, 0 if `quiet`."""
    found = compare(before, after)
    outputs.say(("", *text(found, name)), out)
    slower = found.of("slower")
    if limit is not None:
        slower = compare(before, after, limit).of("slower")
        worse = "; ".join(change.key.title for change in slower) or "nothing"
        outputs.say([f"  slower by more than {100 * limit:g} % beyond the noise: {worse}"], out)
    return SLOWER if slower and not quiet else 0


def with_ending(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of an ending, as its argument `ending`."""

    @click.option("--json", "json_file", metavar="FILE", help="Write the rows as JSON; - for standard output.")
    @click.option("--plot", "plot_file", metavar="FILE", help="Draw the results, or the history (png, svg or pdf).")
    @click.option("--compare", "old", metavar="OLD.json", type=PATH, help="Tell what changed since a run with --json.")
    @FAIL_IF
    @click.option(
        "--history", "keeps", is_flag=True, help="Keep the rows in the records' store; show them beside earlier ones."
    )
    @functools.wraps(command)
    def wrapped(*args: Any, json_file: Any, plot_file: Any, old: Any, limit: Any, keeps: bool, **more: Any) -> None:
        command(*args, ending=Ending(json_file, plot_file, old, limit, keeps), **more)

    return wrapped
