"""A user's microkernel: C text for whole tiles, and the function that poly generates around it.

The user's function computes one whole tile of its contract. The generated function `…_any` serves all calls: it passes
whole tiles to the user's function, and computes partial tiles at the edges by plain loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from textwrap import wrap

from microkernels.contract import Access
from microkernels.ctext import GLOBAL, INLINE, Spaces, guarded, suffix
from microkernels.kernel import TileKernel, named

WIDTH = 120
"""The length of the longest line of C text."""


@dataclass(frozen=True)
class CustomKernel(TileKernel):
    """A microkernel with a user's C text; its family is the name of its contract's nest.

    `depths` are the trip counts of the reduction loops in a whole tile (None: any number).
    """

    depths: tuple[int | None, ...]
    text: str

    @property
    def name(self) -> str:
        return named(self.family, self.isa, self._shape)

    @property
    def c_name(self) -> str:
        """The user's C function: `dot4_f32_avx2_4x4x4`."""
        return f"{self.family}_{suffix(self.isa, self.dtype)}_{self._shape}"

    @property
    def function(self) -> str:
        """The C function around it, which serves tiles of any size."""
        return f"{self.c_name}_any"

    @property
    def levels(self) -> int:
        return len(self.contract.reduce)

    @property
    def is_whole(self) -> bool:
        return True

    @property
    def tile(self) -> dict[str, int]:
        depths = zip(self.contract.reduce, self.depths, strict=True)
        return {**super().tile, **{loop: depth for loop, depth in depths if depth is not None}}

    @property
    def prototype(self) -> str:
        """The prototype of the user's function: trip counts of the loops that the tile leaves open, then the arrays."""
        counts = [f"int64_t {loop}" for loop in self.contract.loops if loop not in self.tile]
        return f"void {self.c_name}({', '.join((*counts, *self._arrays()))})"

    def source(
        self, rows: Iterable[int] | None = None, columns: Iterable[int] | None = None, spaces: Spaces = GLOBAL
    ) -> str:
        return guarded(self.c_name, f"#include <stdint.h>\n\n{self.text.strip()}\n\n{self._any_size()}")

    @property
    def _shape(self) -> str:
        return "x".join(str(self.tile[loop]) for loop in self.contract.loops if loop in self.tile)

    def _arrays(self) -> list[str]:
        """The parameters for the arrays, each followed by the strides of all its indices but the last."""
        c = self.contract
        return [
            ", ".join((f"{constant}{self.dtype.c_name} *{access.array}", *(f"int64_t {s}" for s in strides(access))))
            for access, constant in ((c.left, "const "), (c.right, "const "), (c.output, ""))
        ]

    def _any_size(self) -> str:
        """C text of the function that serves tiles of any size."""
        c, scalar = self.contract, self.dtype.c_name
        counts = [f"int64_t {loop}_count" for loop in c.loops]
        parameters = ", ".join((*counts, *self._arrays(), f"{scalar} alpha", "int accumulate"))
        whole = " && ".join(f"{loop}_count == {count}" for loop, count in self.tile.items())
        return "\n".join(
            [
                f"/* {c}: whole tiles by the function above, others by plain loops. */",
                *wrap(f"{INLINE} void {self.function}({parameters})", WIDTH, subsequent_indent="    "),
                "{",
                "    if (!accumulate) {",
                *_indented(_loops(c.output.loops, [f"{element(c.output)} = 0;"]), 2),
                "    }",
                f"    if ({whole} && alpha == 1) {{",
                f"        {self._call(c.output.array, strides(c.output))}",
                f"    }} else if ({whole}) {{",
                *_indented(self._scaled(), 2),
                "    } else {",
                *_indented(self._plain(), 2),
                "    }",
                "}",
            ]
        )

    def _call(self, output: str, output_strides: Iterable[str]) -> str:
        c = self.contract
        counts = (f"{loop}_count" for loop in c.loops if loop not in self.tile)
        operands = (name for access in (c.left, c.right) for name in (access.array, *strides(access)))
        return f"{self.c_name}({', '.join((*counts, *operands, output, *output_strides))});"

    def _scaled(self) -> list[str]:
        """C lines that compute a whole tile in a local array, and add it to the output times `alpha`."""
        output = self.contract.output
        bounds = [self.tile[loop] for loop in output.loops]
        pitches = [str(prod(bounds[at + 1 :])) for at in range(len(bounds) - 1)]
        sums = element(Access("sums", output.loops), pitches)
        return [
            f"{self.dtype.c_name} sums[{prod(bounds)}] = {{0}};",
            self._call("sums", pitches),
            *_loops(output.loops, [f"{element(output)} += alpha * {sums};"]),
        ]

    def _plain(self) -> list[str]:
        """C lines that compute a tile of any size, a row at a time so that compilers vectorise it."""
        c, columns = self.contract, [self.contract.columns]
        sums = element(Access("sums", (c.columns,)))
        row = [
            f"{self.dtype.c_name} sums[{self.columns}] = {{0}};",
            *_loops([*c.reduce, *columns], [f"{sums} += {element(c.left)} * {element(c.right)};"]),
            *_loops(columns, [f"{element(c.output)} += alpha * {sums};"]),
        ]
        return _loops(c.output.loops[:-1], row)


def strides(access: Access) -> list[str]:
    """The names of the stride arguments, one for each index but the last: `A_i`."""
    return [f"{access.array}_{loop}" for loop in access.loops[:-1]]


def element(access: Access, apart: Sequence[str] = ()) -> str:
    """C text of an element, `A[i * A_i + k]`, or with other strides."""
    terms = [f"{loop} * {pitch}" for loop, pitch in zip(access.loops[:-1], apart or strides(access), strict=True)]
    return f"{access.array}[{' + '.join((*terms, access.loops[-1]))}]"


def _loops(loops: Sequence[str], body: list[str]) -> list[str]:
    """C loops around the lines of `body`, each up to its trip count."""
    for loop in reversed(loops):
        head = f"for (int64_t {loop} = 0; {loop} < {loop}_count; {loop}++)"
        body = [f"{head} {{", *_indented(body, 1), "}"]
    return body


def _indented(lines: Iterable[str], levels: int) -> list[str]:
    return [f"{'    ' * levels}{line}" for line in lines]
