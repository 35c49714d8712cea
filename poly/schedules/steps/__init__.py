"""The steps of a schedule, grouped by idea, one file each."""

from poly.schedules.steps.accumulate import Accumulate
from poly.schedules.steps.base import Step, call_text
from poly.schedules.steps.enclose import Enclose
from poly.schedules.steps.flags import Parallel, Unroll, Vectorize
from poly.schedules.steps.flatten import Flatten
from poly.schedules.steps.functions import Reverse, Shift, Skew
from poly.schedules.steps.fuse import Distribute, Fuse
from poly.schedules.steps.mapping import Groups, Items
from poly.schedules.steps.materialize import Materialize
from poly.schedules.steps.microkernel import Tensorize
from poly.schedules.steps.order import Interchange, Order
from poly.schedules.steps.own import adder
from poly.schedules.steps.pack import Pack
from poly.schedules.steps.part import Part
from poly.schedules.steps.privatize import Privatize
from poly.schedules.steps.reorder_storage import ReorderStorage
from poly.schedules.steps.rfactor import RFactor
from poly.schedules.steps.split_iterator import SplitIterator
from poly.schedules.steps.substitute import Substitute
from poly.schedules.steps.tile import Split, Tile

KINDS: tuple[type[Step], ...] = (
    Accumulate,
    Distribute,
    Enclose,
    Flatten,
    Fuse,
    Groups,
    Interchange,
    Items,
    Materialize,
    Tensorize,
    Order,
    Pack,
    Parallel,
    Part,
    Privatize,
    ReorderStorage,
    Reverse,
    RFactor,
    Shift,
    Skew,
    Split,
    SplitIterator,
    Substitute,
    Tile,
    Unroll,
    Vectorize,
)
Rewriting = Accumulate | Materialize | Part | Privatize | ReorderStorage | RFactor | SplitIterator | Substitute
"""Steps that change the statements of a nest, beside the loops, by their method `rewritten`."""

STEPS = frozenset(kind.name for kind in KINDS)
"""The names of all steps of poly's."""
register_step = adder(STEPS)
"""Add a user's step: a class decorator. Raises ScheduleError for a class that is none, or whose name is taken."""

__all__ = [
    "STEPS",
    "Accumulate",
    "Distribute",
    "Enclose",
    "Flatten",
    "Fuse",
    "Groups",
    "Interchange",
    "Items",
    "Materialize",
    "Order",
    "Pack",
    "Parallel",
    "Part",
    "Privatize",
    "RFactor",
    "ReorderStorage",
    "Reverse",
    "Rewriting",
    "Shift",
    "Skew",
    "Split",
    "SplitIterator",
    "Step",
    "Substitute",
    "Tensorize",
    "Tile",
    "Unroll",
    "Vectorize",
    "call_text",
    "register_step",
]
