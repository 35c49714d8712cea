"""A microkernel as a value: its contract, its tile, what runs it, and its C text.

All that is to be known of a microkernel is asked of this value. Its name is made from it, and is read in one place
(`microkernels.catalogue.find`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from microkernels.contract import Access, Contract
from microkernels.ctext import GLOBAL, Spaces, guarded, letters, part, specialise, suffix, vector_layer
from microkernels.dispatch import gemm_function
from microkernels.dtypes import DType
from microkernels.isa import ISA

OUTER_PRODUCT = Contract(
    Access("C", ("i", "j")), Access("A", ("i", "k")), Access("B", ("k", "j")), anyhow=("left", "output")
)
"""Its rows of C are contiguous, but results that aren't are computed in a tile on the stack."""
ALONG_COLUMNS = Contract(Access("y", ("j",)), Access("x", ("k",)), Access("B", ("k", "j")), anyhow=("left",))
ALONG_REDUCTION = Contract(Access("y", ("j",)), Access("x", ("k",)), Access("B", ("j", "k")), anyhow=("output",))

LEVELS = 3
"""The loops of a reduction that a microkernel for tiles runs through itself."""


def named(family: str, isa: ISA, *tile: str) -> str:
    """The name of a microkernel: what it computes, for which instruction set, and its tile: `gemm_avx512_6x64`."""
    return "_".join((family, isa.name, *tile))


@dataclass(frozen=True)
class Microkernel(ABC):
    """What every microkernel can be asked.

    `contract` is what one call computes; docs/microkernels.md has the arguments of the C functions.
    """

    family: str
    contract: Contract
    isa: ISA
    dtype: DType

    in_place: ClassVar[bool] = False
    """Whether it reads its operands where they are, and never from panels."""
    by_group: ClassVar[bool] = False
    """Whether a work-group runs it together, which brings its operands into panels of its own."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What users, schedules and records call it: `gemm_avx512_6x64`."""

    @property
    def levels(self) -> int:
        """The most loops of a reduction that it runs through itself."""
        return LEVELS

    @property
    def is_whole(self) -> bool:
        """Whether it needs all loops of its contract, each operand laid out as the contract says."""
        return False

    @property
    def items(self) -> int:
        """How many work-items of an OpenCL device run it together."""
        return 1

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class MatrixVector(Microkernel):
    """A kernel that streams a matrix once, for any number of columns and steps: `gemvn_avx512`, `gemvt_avx512`."""

    in_place: ClassVar[bool] = True

    @property
    def levels(self) -> int:
        return 1

    @property
    def name(self) -> str:
        return named(self.family, self.isa)

    @property
    def function(self) -> str:
        """The C function: `gemvn_f32_avx512`."""
        return f"{self.family}_{suffix(self.isa, self.dtype)}"


@dataclass(frozen=True)
class TileKernel(Microkernel):
    """One that computes up to `rows` x `columns` elements of the result in a call."""

    rows: int
    columns: int

    @property
    def tile(self) -> dict[str, int]:
        """The most iterations of the contract's loops; it may run any number of the others."""
        rows = {} if self.contract.rows is None else {self.contract.rows: self.rows}
        return {**rows, self.contract.columns: self.columns}

    @abstractmethod
    def source(
        self, rows: Iterable[int] | None = None, columns: Iterable[int] | None = None, spaces: Spaces = GLOBAL
    ) -> str:
        """C text that defines the function, with all that it needs.

        `rows` and `columns` are the values that m and n take in the calls (None: any from 1 to the tile's). A program
        must ask once for a kernel and its spaces, with the values of all its calls: the text has an include guard.
        """


@dataclass(frozen=True)
class OuterProduct(TileKernel):
    """The outer-product kernel of one core, which holds its tile of the result in vector registers."""

    @property
    def name(self) -> str:
        return named(self.family, self.isa, f"{self.rows}x{self.columns}")

    @property
    def c_name(self) -> str:
        """The C function: `gemm_f32_avx512_6x64`."""
        return self.function()

    def function(self, spaces: Spaces = GLOBAL) -> str:
        """The function for operands A, B and C in these address spaces: `gemm_f32_opencl512_6x64_lgg`."""
        tile = f"{self.rows}x{self.columns}{letters(self.isa, *spaces)}"
        return f"{self.family}_{suffix(self.isa, self.dtype)}_{tile}"

    @property
    def vectors(self) -> int:
        """How many registers a row of the tile takes."""
        return self.columns // self.isa.lanes(self.dtype)

    def source(
        self, rows: Iterable[int] | None = None, columns: Iterable[int] | None = None, spaces: Spaces = GLOBAL
    ) -> str:
        row_values = None if rows is None else frozenset(rows)
        column_values = None if columns is None else frozenset(columns)
        name = self.function(spaces)
        function = gemm_function(name, self.rows, self.columns, self.isa.lanes(self.dtype), row_values, column_values)
        text = specialise(function, self.isa, self.dtype, "gemm", spaces)
        tile = part("gemm", self.isa, self.dtype, spaces)
        return vector_layer(self.isa, self.dtype) + tile + guarded(name, text)
