"""A step: `unwind("i")` runs a loop from both of its ends towards the middle: 0, 7, 1, 6, 2, 5, 3, 4 for eight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import islpy as isl

import poly
from poly.extending import edit, find_loop, map_functions


@dataclass(frozen=True)
class Unwind:
    """Loop `loop`, of the known extent `extent`, counts 2*i in its lower half and 2*(extent - 1 - i) + 1 above."""

    loop: str
    extent: int
    name: ClassVar[str] = "unwind"
    reorders: ClassVar[bool] = True

    def apply(self, nest: poly.Nest, tree: Any) -> Any:
        """The tree with other functions for the loop: poly proves afterwards whether the order is legal."""
        if not isinstance(self.extent, int) or self.extent < 1:
            raise poly.ScheduleError(f"unwind: the extent must be an integer from 1 up, not {self.extent!r}.")
        band = find_loop(tree, self.loop)
        return edit(tree, band, map_functions(band, self._unwound))

    def _unwound(self, _: str, value: isl.PwAff) -> isl.PwAff:
        low = value.scale_val(isl.Val(2))
        high = value.neg().scale_val(isl.Val(2)).add_constant_val(isl.Val(2 * self.extent - 1))
        half = value.neg().add_constant_val(isl.Val((self.extent - 1) // 2)).nonneg_set()
        return low.intersect_domain(half).union_add(high.intersect_domain(half.complement()))

    def arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        """What makes this step again, in Python and in JSON."""
        return (self.loop,), {"extent": self.extent}
