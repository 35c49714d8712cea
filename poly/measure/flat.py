"""The false-positive rate of comparisons: how often one of two equally fast candidates wins. It may be 5 %.

`python -m poly.measure.flat [SECONDS]` times the model's choice for products of several sizes against itself, with warm
and with cold caches, and prints how many comparisons declared the challenger faster, and how many the incumbent.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from time import perf_counter

from poly.autoschedule.derive import space
from poly.frontends.einsum import einsum
from poly.measure.live import LiveMeasurer
from poly.search.events import Ask
from poly.search.significance import LEVEL, beats

SIZES = (48, 128, 256, 512)


@dataclass(frozen=True)
class Flat:
    """Comparisons of a point with itself: their number, how many each side won, and the pairs they took."""

    comparisons: int
    won: int
    lost: int
    pairs: int


def compare(measurer: LiveMeasurer, seconds: float) -> Flat:
    """Compare the space's choice with itself for a number of seconds."""
    point = measurer.space.choice
    (first,) = measurer.measure(Ask((point,)))
    if first.failure:
        raise SystemExit(f"nothing can be compared: {first.failure}")
    comparisons = won = lost = pairs = 0
    end = perf_counter() + seconds
    while perf_counter() < end:
        (trial,) = measurer.measure(Ask((point,), point))
        comparisons += 1
        won += beats(trial.samples, trial.rival)
        lost += beats(trial.rival, trial.samples)
        pairs += len(trial.samples)
    return Flat(comparisons, won, lost, pairs)


def main(seconds: float) -> None:
    """Print a line for each size, warm and cold."""
    print(f"{'product':>8} {'caches':>6} {'comparisons':>12} {'won':>7} {'lost':>7} {'pairs':>6}   allowed {LEVEL:.0%}")
    for size in SIZES:
        product = space(einsum("mk,kn->mn", m=size, n=size, k=size), threads=1)
        for cold in (False, True):
            with LiveMeasurer(product, cold=cold) as measurer:
                flat = compare(measurer, seconds)
            count = max(1, flat.comparisons)
            rates = f"{flat.won / count:7.1%} {flat.lost / count:7.1%} {flat.pairs / count:6.1f}"
            print(f"{size:8} {'cold' if cold else 'warm':>6} {flat.comparisons:12} {rates}", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
