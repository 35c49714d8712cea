"""A microkernel as a value: its name, its register tile, its contract, and its C text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from microkernels.ctext import GLOBAL, Spaces, guarded, letters, part, specialise, suffix, vector_layer
from microkernels.dispatch import gemm_function
from microkernels.dtypes import DType
from microkernels.isa import ISA


@dataclass(frozen=True)
class Microkernel:
    """One microkernel: `rows` x `columns` elements of the result, held in registers.

    `contract` is a nest: what one call computes, over i < m <= rows, j < n <= columns and all k. docs/microkernels.md
    has the arguments of the C function.
    """

    name: str
    family: str
    isa: ISA
    dtype: DType
    rows: int
    columns: int
    contract: str

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

    @property
    def items(self) -> int:
        """How many work-items of an OpenCL device run it together."""
        return 1

    def source(
        self, rows: Iterable[int] | None = None, columns: Iterable[int] | None = None, spaces: Spaces = GLOBAL
    ) -> str:
        """C text that defines the function, with all that it needs.

        `rows` and `columns` are the values that m and n take in the calls (None: any from 1 to the tile's). A program
        must ask once for a kernel and its spaces, with the values of all its calls: the text has an include guard.
        """
        row_values = None if rows is None else frozenset(rows)
        column_values = None if columns is None else frozenset(columns)
        name = self.function(spaces)
        function = gemm_function(name, self.rows, self.columns, self.isa.lanes(self.dtype), row_values, column_values)
        text = specialise(function, self.isa, self.dtype, "gemm", spaces)
        tile = part("gemm", self.isa, self.dtype, spaces)
        return vector_layer(self.isa, self.dtype) + tile + guarded(name, text)
