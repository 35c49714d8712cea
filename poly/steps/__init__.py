"""The steps of a schedule, one idea a file."""

from poly.steps.base import Step, call_text
from poly.steps.default import Default
from poly.steps.flags import Parallel, Unroll, Vectorize
from poly.steps.flatten import Flatten
from poly.steps.functions import Reverse, Shift, Skew
from poly.steps.fuse import Distribute, Fuse
from poly.steps.order import Interchange, Order
from poly.steps.tile import Split, Tile

__all__ = [
    "Default",
    "Distribute",
    "Flatten",
    "Fuse",
    "Interchange",
    "Order",
    "Parallel",
    "Reverse",
    "Shift",
    "Skew",
    "Split",
    "Step",
    "Tile",
    "Unroll",
    "Vectorize",
    "call_text",
]
