"""What changed between two runs beyond the noise.

A row's samples are our speeds as fractions of the peak, probed in the same round, so that the clock frequency cancels.
Those of both runs are compared by the Mann-Whitney U test (H. B. Mann and D. R. Whitney, "On a test of whether one of
two random variables is stochastically larger than the other", 1947), which assumes no distribution. As every row is a
test, the p-values are corrected by Holm's method (S. Holm, "A simple sequentially rejective multiple test procedure",
1979): the chance that any unchanged row is called changed stays below 5 %.

The test takes samples as independent. But a disturbance lasts for many rounds: so the quartiles of both runs must be
apart as well. And all samples of a run share the state of the machine, which differs in the next run. How much that
matters, the peers tell: libraries of the same version that chose the same kernels are unchanged, so what they seem to
change by is noise between the runs. A row has changed only if it changes by more than they do: those of the row itself,
or where it has fewer than two, nearly all of those on as many threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median, quantiles
from typing import Any, Literal

from benchmarks.document import Key, Row
from poly.timing.summary import Summary, summarize

LEVEL = 0.05
"""The chance of any false alarm, over all rows."""

LEAST = 1.01
"""The smallest change that is told, as a ratio: more than code that was only laid out otherwise differs by."""

OWN = 2
"""The unchanged peers that a row needs for a noise of its own."""

MOST = 0.95
"""The part of all unchanged peers' apparent changes that a change has to exceed in a row without."""

Verdict = Literal["faster", "slower", "same", "too few samples"]


@dataclass(frozen=True)
class Change:
    """A row in both runs: our speed as a fraction of the peak, before and after, and the corrected p-value.

    `noise` is the ratio that unchanged peers seem to change by; `testable`, whether there are samples enough.
    """

    key: Key
    before: Summary
    after: Summary
    p: float
    noise: float
    testable: bool

    @property
    def ratio(self) -> float:
        return self.after.median / self.before.median

    @property
    def apart(self) -> bool:
        """Whether the quartiles of both runs are apart."""
        return self.after.low > self.before.high or self.after.high < self.before.low

    @property
    def verdict(self) -> Verdict:
        if not self.testable:
            return "too few samples"
        if self.p >= LEVEL or not self.apart or abs(log(self.ratio)) <= log(self.noise):
            return "same"
        return "faster" if self.ratio > 1 else "slower"


@dataclass(frozen=True)
class Comparison:
    """All rows in both runs, and those in only one of them."""

    changes: tuple[Change, ...]
    gone: tuple[Key, ...]
    new: tuple[Key, ...]

    def of(self, verdict: Verdict) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.verdict == verdict)


def compare(old: Sequence[Row], new: Sequence[Row], less: float = 0.0) -> Comparison:
    """Compare the rows of two runs on one machine. Rows without our samples are left out.

    Our old speeds count as smaller by the fraction `less`: what is slower even so is slower by more than that.
    """
    before, after = _sampled(old), _sampled(new)
    shared = [key for key in after if key in before]
    pairs = {key: ([(1 - less) * speed for speed in speeds(before[key])], speeds(after[key])) for key in shared}
    corrected = dict(zip(pairs, holm([p_value(*pair) for pair in pairs.values()]), strict=True))
    controls = {key: [abs(log(ratio)) for ratio in _controls(before[key], after[key])] for key in shared}
    enough = {key: least_p(*pair) * len(pairs) < LEVEL for key, pair in pairs.items()}
    changes = (
        Change(key, summarize(a), summarize(b), corrected[key], _noise(key, controls), enough[key])
        for key, (a, b) in pairs.items()
    )
    return Comparison(
        tuple(changes),
        tuple(key for key in before if key not in after),
        tuple(key for key in after if key not in before),
    )


def speeds(row: Row, peer: str | None = None) -> list[float]:
    """The speeds of poly or of a peer, as a fraction of the peak probed in the same round."""
    owner = row if peer is None else row["peers"][peer]
    flop = row["gflops"] * row["seconds"]
    return [flop / seconds / peak for seconds, peak in zip(owner["samples"], row["peaks"], strict=True)]


def p_value(old: Sequence[float], new: Sequence[float]) -> float:
    """The probability that samples of one distribution differ as much as these, by the Mann-Whitney U test."""
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(old, new, alternative="two-sided").pvalue)


def least_p(old: Sequence[float], new: Sequence[float]) -> float:
    """The p-value of as many samples that don't overlap at all: the test can't give less."""
    return p_value(range(len(old)), range(len(old), len(old) + len(new)))


def holm(values: Sequence[float]) -> list[float]:
    """The p-values corrected for their number by Holm's method, in the same order."""
    corrected = [0.0] * len(values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        largest = max(largest, min(1.0, (len(values) - rank) * values[index]))
        corrected[index] = largest
    return corrected


def text(found: Comparison, old: str) -> Iterator[str]:
    """The comparison for people."""
    yield f"compared with {old}: {len(found.changes)} rows in both runs"
    yield (
        f"  a change passes the Mann-Whitney U test at {100 * LEVEL:.0f} % after Holm's correction, its quartiles are "
        "apart, and it exceeds the noise: what unchanged peers seem to change by"
    )
    for verdict in ("slower", "faster"):
        for change in sorted(found.of(verdict), key=lambda change: change.ratio):
            speeds = f"{100 * change.before.median:.1f} -> {100 * change.after.median:.1f} % of the peak"
            chances = f"p = {change.p:.1g}, noise {100 * (change.noise - 1):.1f} %"
            yield f"  {verdict}: {change.key.title}: {change.ratio:.3f} times the speed, {speeds} ({chances})"
    same = found.of("same")
    noise = f" of {100 * (median(change.noise for change in same) - 1):.1f} % in the median row" if same else ""
    yield f"  no change beyond the noise{noise}: {len(same)} rows"
    few = found.of("too few samples")
    if few:
        yield f"  too few samples to tell: {'; '.join(change.key.title for change in few)}"
    if found.gone or found.new:
        yield f"  in one run alone: {len(found.gone)} rows of {old}, {len(found.new)} of the new run"


def _sampled(rows: Iterable[Row]) -> dict[Key, Row]:
    return {Key.of(row): row for row in rows if row.get("samples") and row.get("peaks")}


def _noise(key: Key, controls: Mapping[Key, Sequence[float]]) -> float:
    """The ratio that a change of this row has to exceed."""
    own = controls[key]
    if len(own) >= OWN:
        return max(LEAST, exp(max(own)))
    every = [change for other, found in controls.items() if other.threads == key.threads for change in found]
    if len(every) < 2:
        return max(LEAST, *map(exp, every)) if every else LEAST
    return max(LEAST, exp(quantiles(every, n=100, method="inclusive")[round(100 * MOST) - 1]))


def _controls(old: Row, new: Row) -> Iterator[float]:
    """The apparent changes of the peers of a row that did not change."""
    for name in old["peers"].keys() & new["peers"].keys():
        if _same(old["peers"][name], new["peers"][name]):
            yield median(speeds(new, name)) / median(speeds(old, name))


def _same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return all(old[name] == new[name] for name in ("version", "config"))
