"""The steps of a schedule, one idea a file."""

from poly.steps.base import Step, call_text
from poly.steps.flags import Parallel, Unroll, Vectorize
from poly.steps.flatten import Flatten
from poly.steps.functions import Reverse, Shift, Skew
from poly.steps.fuse import Distribute, Fuse
from poly.steps.mapping import Groups, Items
from poly.steps.microkernel import Microkernel
from poly.steps.order import Interchange, Order
from poly.steps.pack import Pack
from poly.steps.part import Part
from poly.steps.tile import Split, Tile

KINDS: tuple[type[Step], ...] = (
    Distribute,
    Flatten,
    Fuse,
    Groups,
    Interchange,
    Items,
    Microkernel,
    Order,
    Pack,
    Parallel,
    Part,
    Reverse,
    Shift,
    Skew,
    Split,
    Tile,
    Unroll,
    Vectorize,
)
STEPS = frozenset(kind.name for kind in KINDS)
"""The names of all steps."""

__all__ = [
    "STEPS",
    "Distribute",
    "Flatten",
    "Fuse",
    "Groups",
    "Interchange",
    "Items",
    "Microkernel",
    "Order",
    "Pack",
    "Parallel",
    "Part",
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
