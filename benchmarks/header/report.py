"""The figures as a table, and as an object for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.header.finding import Goal, GoalFigure
from benchmarks.search.report import aligned
from poly.timing.summary import geometric_mean

HEAD = ("goal", "wanted", "", "found", "±%", "", "")
LEFT = {0, 2, 5, 6}
DIGITS = 3


def text(findings: Sequence[GoalFigure]) -> Iterator[str]:
    """The table, with each goal's title at its first figure; then the summary."""
    rows = [HEAD]
    named = ""
    for finding in findings:
        goal = finding.goal
        head = (goal.title, goal.text) if goal.name != named else ("", "")
        named = goal.name
        rows.append(
            (*head, finding.what, _number(finding.value), _percent(finding.spread), _verdict(finding), finding.note)
        )
    yield from aligned(rows, LEFT)
    yield ""
    yield from summary(findings)


def summary(findings: Sequence[GoalFigure]) -> Iterator[str]:
    """A line for each goal: the geometric mean and the worst of the figures that are judged."""
    for goal in dict.fromkeys(one.goal for one in findings):
        known = [(one.value, one) for one in findings if one.goal == goal and one.judged and one.value is not None]
        if not known:
            continue
        value, worst = sorted(known, key=lambda pair: pair[0], reverse=not goal.at_least)[0]
        missed = sum(not one.met for _, one in known)
        verdict = f"{missed} of {len(known)} MISSED" if missed else "met"
        mean = geometric_mean(value for value, _ in known if value > 0)
        average = f", mean {mean:.{DIGITS}f}" if len(known) > 1 and mean else ""
        yield f"{goal.title}, {goal.text}: {verdict}{average}, worst {value:.{DIGITS}f} ({worst.what})"


def document(
    findings: Sequence[GoalFigure], goals: Iterable[Goal], machine: Mapping[str, Any], tools: Mapping[str, str]
) -> dict[str, Any]:
    """The object that `--json` prints."""
    return {
        "machine": dict(machine),
        "tools": dict(tools),
        "goals": [asdict(goal) for goal in goals],
        "findings": [finding.row() for finding in findings],
    }


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.{DIGITS}f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _verdict(finding: GoalFigure) -> str:
    if finding.wrong:
        return "WRONG"
    return {None: "", True: "met", False: "MISSED"}[finding.met]
