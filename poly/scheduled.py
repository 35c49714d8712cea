"""A nest for an instruction set, and where its schedule comes from."""

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
    """What a kernel is made from: a nest, an instruction set, threads, and what tells the schedule."""

    nest: Nest
    isa: ISA
    threads: int
    basis: Basis

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule that is followed: the given one, a record's, or the model's."""
        return followed(self.nest, self.isa, self.threads, self.basis)

    @property
    def record(self) -> Record | None:
        """The tuning record that the schedule comes from, if it does: when, by how many trials, how fast it was."""
        return None if isinstance(self.basis, Schedule) else self.basis

    @property
    def origin(self) -> Literal["given", "record", "model"]:
        """Where the schedule comes from."""
        if self.basis is None:
            return "model"
        return "given" if isinstance(self.basis, Schedule) else "record"
