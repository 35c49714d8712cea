"""Specialisation of the files `opencl/group_*.cl` to OpenCL C for one type and tile.

Words in capitals stand for the tile's numbers: `SLAB` becomes `16`. The suffix `_T` of a name becomes the type's, and
`_LEFT`, `_RIGHT` and `_TILE` become those of the panels' and the tile's shapes:

    T x[ITEM_ROWS];                         ->      float x[8];
    fetch_LEFT(left_share, left, …);        ->      fetch_f32_openclgpu_128x8_by_256(left_share, left, …);
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from microkernels.ctext import INLINE, guarded
from microkernels.dtypes import DType, f32

STEPS_UNROLLED = 8
"""The unroll factor of the loop over a slab's steps; a larger one makes the code longer, not faster."""


@dataclass(frozen=True)
class Scalar:
    """The scalar type in which a work-group computes on arrays of `dtype`: halves become floats in the panels."""

    dtype: DType

    @property
    def computed(self) -> DType:
        return f32 if self.dtype.size == 2 else self.dtype

    @property
    def width(self) -> int:
        """The number of elements in a vector of 16 bytes."""
        return 16 // self.computed.size

    @property
    def suffix(self) -> str:
        return f"{self.dtype.name}_openclgpu"

    @property
    def words(self) -> dict[str, str]:
        """The replacements of the words that depend on the type."""
        vector = f"{self.computed.c_name}{self.width}"
        return {
            "T": self.computed.c_name,
            "STORED": self.dtype.c_name,
            "WIDTH": str(self.width),
            "WIDE_BYTES": str(self.width * self.dtype.size),
            "wide_T": vector,
            "vload_WIDE": f"vload{self.width}",
            "vstore_WIDE": f"vstore{self.width}",
            "INLINE": INLINE,
            "UNROLL": "#pragma unroll",
            "UNROLL_STEPS": f"#pragma unroll {STEPS_UNROLLED}",
        }


def common(scalar: Scalar) -> str:
    """The text that all tiles share: access to elements, operands and results."""
    element = "group_half" if scalar.dtype.size == 2 else "group_element"
    names = {"T": scalar.suffix}
    return "".join(
        guarded(f"{name}_{scalar.suffix}", specialised(name, scalar.words, names))
        for name in (element, "group_operand", "group_result")
    )


def panel(scalar: Scalar, lanes: int, slab: int, items: int) -> str:
    """The functions that load a slab of an operand into its panel."""
    words = scalar.words | {
        "LANES": str(lanes),
        "SLAB": str(slab),
        "ITEMS": str(items),
        "SHARE": str(lanes * slab // items),
        "PITCH": str(lanes + scalar.width),
    }
    suffix = panel_suffix(scalar, lanes, slab, items)
    return guarded(f"panel_{suffix}", specialised("group_panel", words, {"T": scalar.suffix, "PANEL": suffix}))


def panel_suffix(scalar: Scalar, lanes: int, slab: int, items: int) -> str:
    return f"{scalar.suffix}_{lanes}x{slab}_by_{items}"


def specialised(name: str, words: Mapping[str, str], suffixes: Mapping[str, str]) -> str:
    """The file `opencl/NAME.cl` with its words, and the suffixes of its names, replaced."""

    def replace(match: re.Match[str]) -> str:
        word = match.group()
        if word in words:
            return words[word]
        stem, _, ending = word.rpartition("_")
        return f"{stem}_{suffixes[ending]}" if stem and ending in suffixes else word

    return re.sub(r"[A-Za-z_]\w*", replace, _file(name))


@functools.cache
def _file(name: str) -> str:
    return (Path(__file__).parent / "opencl" / f"{name}.cl").read_text()
