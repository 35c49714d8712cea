"""How many pairs of samples a comparison gets: few where it is clear, more while it is not.

The samples are looked at for a winner as often as the decision's test allows for, and no more. Who of a pair went first
was drawn by lot, so of two equally fast candidates either wins all n pairs with chance 1/2^n: the first look comes when
that is less than the level of one look, whatever the noise is like. In between, only a challenger that is clearly
slower is given up: that can make no false winner.
"""

from __future__ import annotations

from collections.abc import Sequence

from poly.search.decide import LOOKS, beats, log_ratios

FIRST = 3
"""Pairs after which a challenger may be given up."""
STAGES = (6, 10, 16)
"""Pairs that there are at each look for a winner."""
assert len(STAGES) <= LOOKS, "the decision's level holds for so many looks"
CLEAR = 0.02
"""A challenger that is slower by this much, as a logarithm, in three pairs of four is slower."""
HOPELESS = 1.5
"""A challenger whose call, when it was checked, took so many times as long gets one pair to show otherwise."""


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
