"""What a header is made of: routines, each with variants for instruction sets and sizes."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.program import Program, Threading
from codegen.signature import Signature
from microkernels.isa import ISA


@dataclass(frozen=True, eq=False)
class Variant:
    """One kernel of a routine: for an instruction set, and for all sizes or for those in `sizes` alone.

    `program` is a C function of its own; its parameters are those of the routine's signature that it still needs. A
    `dense` one has no strides among them, and serves dense arrays. `loops` is its schedule as text.
    """

    isa: ISA
    program: Program
    sizes: tuple[tuple[str, int], ...] = ()
    dense: bool = False
    loops: str = ""


@dataclass(frozen=True)
class SelfTestSizes:
    """Sizes at which the self-test runs a routine: a value for each size that a caller gives, in their order.

    `flops` are those of one call, to report a speed (0: don't). `length` is about how many terms an element sums up.
    """

    sizes: tuple[tuple[str, int], ...]
    flops: int = 0
    length: int = 1


@dataclass(frozen=True)
class Routine:
    """One function to call.

    `signature` has the sizes that a caller gives, then the strides of arrays, none where `dense`: `strides` are
    the names of those. `loops` is the mathematics, as the user wrote it. `variants` are in order of preference within
    each instruction set, and the last of each serves every size. `reference` runs the loops as written, with the
    signature's parameters. The self-test gives it positive values and heavy diagonals where it is `delicate` (it
    divides by its data, takes roots or multiplies up), and where it `drifts` (it goes on from its own results) small
    values, fresh for each timed call.
    """

    name: str
    signature: Signature
    strides: tuple[str, ...]
    loops: str
    variants: tuple[Variant, ...]
    reference: Program
    trials: tuple[SelfTestSizes, ...] = ()
    delicate: bool = False
    drifts: bool = False
    notes: tuple[str, ...] = ()
    """What is to be said of how it was scheduled: a record's line, or that the model chose."""

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that a caller gives: the signature's without strides."""
        return tuple(size for size in self.signature.sizes if size not in self.strides)


@dataclass(frozen=True)
class Header:
    """A file: its routines, the instruction sets in it (best first), and how its parallel loops are run.

    `prefix` begins every name in it. `machine` says where its schedules were chosen.
    """

    prefix: str
    routines: tuple[Routine, ...]
    isas: tuple[ISA, ...]
    threads: Threading = "openmp"
    version: str = ""
    machine: str = ""
