"""Droplet Search: coordinate descent on the grid of knobs, each move proven by a test.

After Canesche, Rosário, Borin and Pereira, "The Droplet Search Algorithm for Kernel Scheduling" (ACM TACO 21, 2024,
doi 10.1145/3650109). A drop rolls downhill: the neighbours of the incumbent are measured in batches, each in turn with
it, and one that is faster by a test becomes the incumbent. What the near neighbours leave free in a batch is filled
with those further away (the paper's speculation).

Where the paper's search ends, this one goes on while the budget lets it: its drops fall on other points, which still
have to beat the incumbent.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from random import Random

from poly.autoschedule.spaces.space import Point, Space
from poly.search.events import Ask, Search
from poly.search.journal import Journal
from poly.search.proposals import ExpectedFirst, NearestFirst


@dataclass(frozen=True)
class Droplet:
    """Droplet Search over all structures of a space.

    A neighbour has one or two other knobs, by up to `reach` steps, or another structure with the nearest sizes. `batch`
    is how many points are asked for at a time. `guided` puts those in front that the model expects to be fast, and
    fills half of a batch with such points from anywhere: that saves measurements and decides nothing, for every move is
    a test on measured samples. Unguided is the form of the paper, which needs no model.
    """

    guided: bool = True
    reach: int = 2
    batch: int = 4

    def __call__(self, space: Space, start: Point, random: Random) -> Search:
        order = (ExpectedFirst if self.guided else NearestFirst)(space, self.reach, random)
        journal, ask = Journal(), Ask((start,))
        while ask.points:
            journal.enter(ask, (yield ask))
            points = order.points(journal.incumbent or start, journal)
            ask = Ask(tuple(islice(points, self.batch)), journal.incumbent)


def from_origin(space: Space, start: Point, random: Random) -> Search:
    """The paper's own setting: from the un-optimised corner, wherever the model would start, and without the model.

    Its batches are small: from far away most of a large batch is measured around an incumbent that is soon left behind.
    """
    return Droplet(guided=False, batch=2)(space, space.origin, random)
