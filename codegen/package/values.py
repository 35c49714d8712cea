"""The values behind a header: routines, each with variants for instruction sets and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codegen.ir.integer import Int
from codegen.ir.program import Program, Threading
from codegen.ir.signature import Signature
from microkernels.isa import ISA


@dataclass(frozen=True, eq=False)
class Variant:
    """One kernel of a routine: for an instruction set, and for all sizes or only for those in `sizes`.

    `program` is a C function of its own; its parameters are those of the routine's signature that it still needs. A
    `dense` one takes no strides, and serves dense arrays. `loops` is its schedule as text.
    """

    isa: ISA
    program: Program
    sizes: tuple[tuple[str, int], ...] = ()
    dense: bool = False
    loops: str = ""


@dataclass(frozen=True)
class SelfTestSizes:
    """Sizes at which the self-test runs a routine: a value for each size that a caller passes, in order.

    `flops` are those of one call, to report a speed (0: none). `length` is about the number of terms in an element's
    sum.
    """

    sizes: tuple[tuple[str, int], ...]
    flops: int = 0
    length: int = 1


@dataclass(frozen=True)
class Routine:
    """One function of the file.

    `signature` has the sizes that a caller passes, then the strides of arrays, if any: `strides` are their names.
    `loops` is the mathematics, as the user wrote it. `variants` are in order of preference within each instruction set,
    and the last of each serves every size. `reference` runs the loops as written, with the signature's parameters. In
    the self-test, a `delicate` routine (it divides by its data, takes roots, or accumulates products) gets positive
    values and heavy diagonals; one that `drifts` (it continues from its own results) gets small values, fresh for each
    timed call.
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
    """Remarks on how it was scheduled: a record's line, or that the model chose."""
    lookups: Program | None = None
    """Loops that set the element of an array of their own, the last, to 1 if an element looked up is outside."""
    indices: Mapping[str, tuple[Int, Int]] = field(default_factory=dict)
    """For each array of indices, the least value and the end of those that are inside of all that it indexes."""

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that a caller passes: the signature's without strides."""
        return tuple(size for size in self.signature.sizes if size not in self.strides)


@dataclass(frozen=True)
class Header:
    """A file: its routines, the instruction sets in it (best first), and how its parallel loops run.

    Every name in it begins with `prefix`. `machine` says where its schedules were chosen.
    """

    prefix: str
    routines: tuple[Routine, ...]
    isas: tuple[ISA, ...]
    threads: Threading = "openmp"
    version: str = ""
    machine: str = ""
