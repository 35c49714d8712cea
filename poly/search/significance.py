"""Whether a challenger is faster than the incumbent: a paired test on samples, not a comparison of minima.

The two are timed in turn, so anything that slows the machine down affects both and cancels in the logarithm of their
ratio. If they are equally fast, the samples of a pair are interchangeable: however skewed the noise of a timing is, the
log ratio is symmetric about zero. Under this condition, both tests used here are valid:

    Student's t-test        powerful for well-behaved noise. On symmetric noise with long tails it rejects too seldom,
                            never too often (Efron, "Student's t-test under symmetry conditions", JASA 64, 1969).
    Wilcoxon's signed ranks exact for any symmetric noise; a burst that spoils one pair does not spoil the rest.

Each gets half the level. A measurer may look at the samples up to `LOOKS` times and stop once the decision is made; the
level is divided evenly among the looks (Bonferroni). That is valid for any number of pairs at each look, unlike the
sharper bounds of Pocock (Biometrika 64, 1977), which assume many samples and stages of equal size. So between two
equally fast schedules, at most 5 % of comparisons declare a winner, wherever the measurer stops.

The number of pairs follows from this: few in clear cases, more in others. The order within a pair is random, so either
of two equally fast candidates wins all n pairs with probability 1/2^n; the first look comes when that is below the
level of one look, whatever the noise. In between, a challenger is given up that is clearly slower or seems to gain too
little, as most candidates of a search do: giving up cannot produce a false winner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, log
from statistics import median

from poly.search.events import Trial

LEVEL = 0.05
"""The greatest probability with which one of two equally fast schedules may be declared faster."""
LOOKS = 3
"""The number of times that a measurer may look at the samples of one comparison."""
PAIRS = 2
"""The least number of pairs for a decision: a single one has no spread."""
FIRST = 3
"""Pairs after which a challenger may be given up."""
STAGES = (6, 10, 16)
"""The number of pairs at each look for a winner."""
assert len(STAGES) <= LOOKS, "the decision's level holds for so many looks"
CLEAR = 0.02
"""A challenger counts as slower if it is slower by this log ratio in three pairs of four."""
WORTH = 0.005
"""A challenger gains too little if its median log ratio is below this; to find such a gain takes many pairs."""
HOPELESS, LONG = 1.5, 0.01
"""A challenger whose call took this many times as long as its rival's when it was checked starts with one pair only; so
does any if its rival's calls take this many seconds, which average over more noise than the shortest samples."""


def log_ratios(samples: Sequence[float], rival: Sequence[float]) -> list[float]:
    """The logarithm of rival over challenger for each pair: positive if the challenger was faster."""
    return [log(theirs / ours) for ours, theirs in zip(samples, rival, strict=True)]


def p_value(samples: Sequence[float], rival: Sequence[float]) -> float:
    """The probability of such samples if the challenger is no faster; corrected for two tests, not for looks."""
    ratios = log_ratios(samples, rival)
    if len(ratios) < PAIRS or sum(ratios) <= 0:
        return 1.0
    if max(ratios) == min(ratios):
        return 0.0
    student = _student(ratios)
    least = 0.5 ** len(ratios)  # the p-value of Wilcoxon's test if all pairs are won
    return min(1.0, 2 * (student if student <= least else min(student, _wilcoxon(ratios))))


def _student(ratios: list[float]) -> float:
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(ratios, 0.0, alternative="greater").pvalue)


def _wilcoxon(ratios: list[float]) -> float:
    from scipy.stats import wilcoxon

    return float(wilcoxon(ratios, alternative="greater", method="exact").pvalue)


def beats(samples: Sequence[float], rival: Sequence[float], looks: int = LOOKS) -> bool:
    """Whether the challenger is significantly faster than its rival, with at most `looks` looks at the samples."""
    return p_value(samples, rival) <= LEVEL / looks


def gain(trial: Trial) -> float:
    """The gain of the point over its rival, as the median log ratio; -inf for a failure or without a rival."""
    ratios = log_ratios(trial.samples, trial.rival) if trial.rival else []
    return median(ratios) if ratios else -inf


def winner(trials: Iterable[Trial]) -> Trial | None:
    """The challenger with the largest gain among those that beat the incumbent; None if the incumbent stays."""
    better = [trial for trial in trials if trial.rival and beats(trial.samples, trial.rival)]
    return max(better, key=gain, default=None)


def first_rounds(seconds: float, rival: float) -> int:
    """The number of pairs to take first, given the known seconds of a call of either."""
    return 1 if rival >= LONG or seconds > HOPELESS * rival else FIRST


def next_rounds(samples: Sequence[float], rival: Sequence[float]) -> int:
    """The number of pairs to add to these; 0 if the comparison is decided or has used up its pairs."""
    count, ratios = len(samples), log_ratios(samples, rival)
    if count and (_slower(ratios) or (count >= FIRST and median(ratios) < WORTH)):
        return 0
    if count in STAGES and beats(samples, rival):
        return 0
    return next((stage - count for stage in (FIRST, *STAGES) if stage > count), 0)


def _slower(ratios: Sequence[float]) -> bool:
    """Whether the challenger is clearly slower; one pair of four may be spoilt by other activity of the machine."""
    return sorted(ratios, reverse=True)[len(ratios) // 4] < -CLEAR
