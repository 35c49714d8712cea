"""Droplet Search: coordinate descent on the grid of knobs, with each move confirmed by a statistical test.

After Canesche, Rosário, Borin and Pereira, "The Droplet Search Algorithm for Kernel Scheduling" (ACM TACO 21, 2024,
doi 10.1145/3650109). A drop rolls downhill: the neighbours of the incumbent are measured in batches, each in turn with
it, and one that is significantly faster becomes the incumbent. If the near neighbours do not fill a batch, more distant
ones do (the paper's speculation).

At a local optimum, where the paper's search ends, this one continues within its budget: further drops fall on other
points, which still have to beat the incumbent.
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

    A neighbour differs in one or two knobs, by up to `reach` steps, or has another structure with the nearest sizes.
    `batch` is the number of points asked for at a time. `guided` prefers neighbours that the model expects to be fast,
    and fills half of each batch with such points from anywhere. That saves measurements but decides nothing, since
    every move is a test on measured samples. The unguided form is the paper's, which needs no model.
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
    """The setting of the paper: from the unoptimised corner, whatever the start given, and without the model.

    Its batches are small: far from the optimum, most of a large batch is spent around an incumbent soon left behind.
    """
    return Droplet(guided=False, batch=2)(space, space.origin, random)
