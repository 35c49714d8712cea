"""Whether a challenger is faster than the incumbent: a paired test on samples, not a comparison of minima.

The two are timed in turn, so what slows the machine down slows both, and the logarithm of their ratio is free of it.
Where they are equally fast, the two samples of a pair could be swapped: however skewed the noise of a timing is, the
log ratio is then symmetric about zero. For that the two tests made here are right:

    Student's t-test        strong where the noise is even. On symmetric noise with long tails it rejects too seldom,
                            never too often (Efron, "Student's t-test under symmetry conditions", JASA 64, 1969).
    Wilcoxon's signed ranks exact for any symmetric noise; a burst that spoils one pair does not spoil the rest.

Each gets half the level. A measurer may look at the samples up to `LOOKS` times and stop when the decision is made;
the level is shared out evenly over the looks (Bonferroni), which holds for any number of pairs at each look, unlike the
sharper bounds of Pocock (Biometrika 64, 1977), which suppose many samples and even stages. So of two equally fast
schedules at most 5 % of comparisons call a winner, wherever the measurer stops.

How many pairs a comparison gets follows from this: few where it is clear, more while it is not. Who of a pair goes
first is drawn by lot, so of two equally fast candidates either wins all n pairs with chance 1/2^n: the first look comes
when that is less than the level of one look, whatever the noise is like. In between, only a challenger that is clearly
slower is given up: that can make no false winner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, log, sqrt
from statistics import mean, median, stdev

from poly.search.events import Trial

LEVEL = 0.05
"""How often, at most, one of two equally fast schedules may be called the faster."""
LOOKS = 3
"""How many times a measurer may look at the samples of one comparison."""
PAIRS = 2
"""Fewer pairs have no spread, and never decide."""
FIRST = 3
"""Pairs after which a challenger may be given up."""
STAGES = (6, 10, 16)
"""Pairs that there are at each look for a winner."""
assert len(STAGES) <= LOOKS, "the decision's level holds for so many looks"
CLEAR = 0.02
"""A challenger that is slower by this much, as a logarithm, in three pairs of four is slower."""
HOPELESS = 1.5
"""A challenger whose call, when it was checked, took so many times as long gets one pair to show otherwise."""


def log_ratios(samples: Sequence[float], rival: Sequence[float]) -> list[float]:
    """The logarithm of rival over challenger, pair by pair: above zero where the challenger was faster."""
    return [log(theirs / ours) for ours, theirs in zip(samples, rival, strict=True)]


def p_value(samples: Sequence[float], rival: Sequence[float]) -> float:
    """How likely so good a showing is of a challenger that is no faster; corrected for two tests, not for looks."""
    ratios = log_ratios(samples, rival)
    if len(ratios) < PAIRS or sum(ratios) <= 0:
        return 1.0
    if max(ratios) == min(ratios):
        return 0.0
    student = _student(ratios)
    least = 0.5 ** len(ratios)  # what Wilcoxon's test says of so many pairs that were all won
    return min(1.0, 2 * (student if student <= least else min(student, _wilcoxon(ratios))))


def _student(ratios: list[float]) -> float:
    from scipy.special import stdtr

    t = mean(ratios) * sqrt(len(ratios)) / stdev(ratios)
    return float(stdtr(len(ratios) - 1, -t))


def _wilcoxon(ratios: list[float]) -> float:
    from scipy.stats import wilcoxon

    return float(wilcoxon(ratios, alternative="greater", method="exact").pvalue)


def beats(samples: Sequence[float], rival: Sequence[float], looks: int = LOOKS) -> bool:
    """Whether the challenger is faster than its rival, its samples having been looked at so many times at most."""
    return p_value(samples, rival) <= LEVEL / looks


def gain(trial: Trial) -> float:
    """How much less time the point takes than its rival, as the median log ratio; -inf for a failure or no rival."""
    ratios = log_ratios(trial.samples, trial.rival) if trial.rival else []
    return median(ratios) if ratios else -inf


def winner(trials: Iterable[Trial]) -> Trial | None:
    """Of the challengers that beat the incumbent, the one that gains most; None if the incumbent stays."""
    better = [trial for trial in trials if trial.rival and beats(trial.samples, trial.rival)]
    return max(better, key=gain, default=None)


def first_rounds(seconds: float, rival: float) -> int:
    """How many pairs to take first, by the seconds of a call of either as they are known before."""
    return 1 if seconds > HOPELESS * rival else FIRST


def next_rounds(samples: Sequence[float], rival: Sequence[float]) -> int:
    """How many pairs to take beside these; 0 where the comparison is decided or has had its share."""
    count = len(samples)
    if count and _slower(log_ratios(samples, rival)):
        return 0
    if count in STAGES and beats(samples, rival):
        return 0
    return next((stage - count for stage in (FIRST, *STAGES) if stage > count), 0)


def _slower(ratios: Sequence[float]) -> bool:
    """Clearly slower: one pair of four may be spoilt by what else the machine did."""
    return sorted(ratios, reverse=True)[len(ratios) // 4] < -CLEAR
