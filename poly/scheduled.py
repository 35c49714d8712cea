"""A nest, the instruction set that it is compiled for, and the origin of its schedule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING, Literal

from microkernels.cached import cached_property
from microkernels.isa import ISA
from poly.compiled import Basis, known_schedule
from poly.display import Block, Displayed, Preformatted
from poly.ir.nest import Nest
from poly.schedules.schedule import Schedule

if TYPE_CHECKING:
    from poly.records import Record


@dataclass(frozen=True, repr=False)
class Scheduled(Displayed):
    """What a kernel is made from: a nest, an instruction set, a number of threads, and the basis of its schedule."""

    nest: Nest
    isa: ISA
    threads: int
    basis: Basis

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule that the kernel follows: the given one, a record's, or the model's."""
        return known_schedule(self.nest, self.isa, self.threads, self.basis)

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

    @property
    def packed_before(self) -> str | None:
        """The array that calls leave out, since it was packed before (`Kernel.prepack`); None if there is none."""
        return None

    @property
    def source(self) -> str:
        """The text that is compiled."""
        raise NotImplementedError

    def __dask_tokenize__(self) -> tuple[str, ...]:
        """What dask names tasks by, the same in all processes."""
        return type(self).__name__, *self.nest.__dask_tokenize__(), self.isa.name, str(self.threads), self.source

    @property
    def _place(self) -> str:
        """Where it runs: an instruction set or a device."""
        return self.isa.name

    def __str__(self) -> str:
        """The arguments and the target, the loops of the schedule, and where the text is; `source` is the text."""
        return "\n".join((self._title(), indent(str(self.schedule), "    "), *self._notes()))

    def _title(self) -> str:
        without = f", {self.packed_before} packed before" if self.packed_before else ""
        return f"kernel {self.nest.name}({', '.join(map(str, self.nest.arguments))}) for {self._place}{without}"

    def _parts(self) -> Iterable[Block]:
        yield Preformatted(str(self.schedule))
        yield Preformatted("\n".join(self._notes()))
        yield Preformatted(self.source, "source")

    def _notes(self) -> tuple[str, ...]:
        """How many threads a call uses, whose schedule it is, and how long the text is."""
        whose = {"given": "given by the caller", "record": str(self.record), "model": "the model's choice"}
        threads = f"{self.threads} thread{'s' if self.threads != 1 else ''}"
        return (f"{threads}; schedule: {whose[self.origin]}", f"source: {len(self.source.splitlines())} lines")
