"""A nest, the instruction set that it is compiled for, and the origin of its schedule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from microkernels.isa import ISA
from poly.compiled import Basis, followed
from poly.ir.nest import Nest
from poly.schedules.schedule import Schedule

if TYPE_CHECKING:
    from poly.records import Record


@dataclass(frozen=True, repr=False)
class Scheduled:
    """What a kernel is made from: a nest, an instruction set, a number of threads, and the basis of its schedule."""

    nest: Nest
    isa: ISA
    threads: int
    basis: Basis

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule that the kernel follows: the given one, a record's, or the model's."""
        return followed(self.nest, self.isa, self.threads, self.basis)

    @property
    def record(self) -> Record | None:
        """The tuning record that the schedule comes from, if any: when it was made, in how many trials, how fast."""
        return None if isinstance(self.basis, Schedule) else self.basis

    @property
    def origin(self) -> Literal["given", "record", "model"]:
        """Where the schedule comes from: the caller, a tuning record, or the model."""
        if self.basis is None:
            return "model"
        return "given" if isinstance(self.basis, Schedule) else "record"
