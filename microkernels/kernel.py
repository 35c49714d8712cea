"""A microkernel as a value: its contract, tile, instruction set and C text.

This value is the only source of facts about a microkernel. Its name is made from it, and is parsed in one place
(`microkernels.catalogue.find`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from microkernels.contract import Access, Contract
from microkernels.ctext import (
    GLOBAL,
    Elements,
    Spaces,
    guarded,
    letters,
    multiply_adds,
    part,
    specialise,
    suffix,
    vector_layer,
)
from microkernels.dispatch import gemm_function
from microkernels.dot import DotProduct
from microkernels.dtypes import DType
from microkernels.isa import ISA

OUTER_PRODUCT = Contract(
    Access("C", ("i", "j")), Access("A", ("i", "k")), Access("B", ("k", "j")), anyhow=("left", "output")
)
"""The kernel writes contiguous rows of C; a result with other strides is computed in a tile on the stack."""
ALONG_COLUMNS = Contract(Access("y", ("j",)), Access("x", ("k",)), Access("B", ("k", "j")), anyhow=("left",))
ALONG_REDUCTION = Contract(Access("y", ("j",)), Access("x", ("k",)), Access("B", ("j", "k")), anyhow=("output",))

LEVELS = 3
"""The most reduction loops that a tile microkernel runs itself."""


def named(family: str, isa: ISA, *tile: str) -> str:
    """The name of a microkernel, from its family, instruction set and tile: `gemm_avx512_6x64`."""
    return "_".join((family, isa.name, *tile))


@dataclass(frozen=True)
class Microkernel(ABC):
    """The common interface of microkernels.

    `contract` is what one call computes; docs/microkernels.md has the arguments of the C functions.
    """

    family: str
    contract: Contract
    isa: ISA
    dtype: DType

    in_place: ClassVar[bool] = False
    """Whether it reads its operands in place, never from packed panels."""
    by_group: ClassVar[bool] = False
    """Whether the work-items of a group run it together, packing the operands into panels themselves."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name for users, schedules and records: `gemm_avx512_6x64`."""

    @property
    def levels(self) -> int:
        """The most reduction loops that it runs itself."""
        return LEVELS

    @property
    def is_whole(self) -> bool:
        """Whether it needs all loops of its contract, with each operand laid out as the contract says."""
        return False

    @property
    def items(self) -> int:
        """The number of work-items of an OpenCL device that run it together."""
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
    """A microkernel that computes up to `rows` x `columns` elements of the result in a call."""

    rows: int
    columns: int

    @property
    def tile(self) -> dict[str, int]:
        """The largest trip counts of the contract's loops; those that are not listed may run any number of times."""
        rows = {} if self.contract.rows is None else {self.contract.rows: self.rows}
        return {**rows, self.contract.columns: self.columns}

    @abstractmethod
    def source(
        self, rows: Iterable[int] | None = None, columns: Iterable[int] | None = None, spaces: Spaces = GLOBAL
    ) -> str:
        """C text that defines the function and all that it needs.

        `rows` and `columns` are the values that m and n take in the calls (None: any from 1 to the tile's). The text
        has an include guard, so a program must take it once for each kernel and spaces, with the values of all calls.
        """


@dataclass(frozen=True)
class OuterProduct(TileKernel):
    """The outer-product kernel of one core, which holds its tile of the result in vector registers.

    With `dot` it reads panels of words, and multiplies and adds the elements of several steps at a time.
    """

    dot: DotProduct | None = None

    @property
    def name(self) -> str:
        return named(self._family, self.isa, f"{self.rows}x{self.columns}")

    @property
    def _family(self) -> str:
        return f"{self.family}_{self.dot.name}" if self.dot else self.family

    @property
    def steps(self) -> int:
        """The steps of the reduction in an element of a panel."""
        return self.dot.steps if self.dot else 1

    @property
    def c_name(self) -> str:
        """The C function: `gemm_f32_avx512_6x64`."""
        return self.function()

    def function(self, spaces: Spaces = GLOBAL) -> str:
        """The C function for operands A, B and C in these address spaces: `gemm_f32_opencl512_6x64_lgg`."""
        tile = f"{self.rows}x{self.columns}{letters(self.isa, *spaces)}"
        return f"{self._family}_{suffix(self.isa, self.dtype)}_{tile}"

    @property
    def vectors(self) -> int:
        """The number of registers for a row of the tile."""
        return self.columns // self.isa.lanes(self.dtype)

    def source(
        self, rows: Iterable[int] | None = None, columns: Iterable[int] | None = None, spaces: Spaces = GLOBAL
    ) -> str:
        row_values = None if rows is None else frozenset(rows)
        column_values = None if columns is None else frozenset(columns)
        name = self.function(spaces)
        function = gemm_function(name, self.rows, self.columns, self.isa.lanes(self.dtype), row_values, column_values)
        elements = Elements(dot=self.dot)
        text = specialise(function, self.isa, self.dtype, "gemm", spaces, elements)
        tile = part("gemm", self.isa, self.dtype, spaces, elements)
        layer = vector_layer(self.isa, self.dtype) + multiply_adds(self.isa, self.dtype, self.dot)
        return layer + tile + guarded(name, text)
