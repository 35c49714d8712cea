"""Vector loops over a block of at most one vector, which nearly all blocks have whole.

for (i = 4*t; i < min(n, 4*t + 4); …)        if (min(n, 4*t + 4) - 4*t == 4)
  s[i - 4*t] = 0;                              for (i = 4*t; i < 4*t + 4; …)
                                      ->         s[i - 4*t] = 0;
                                             else
                                               for (i = 4*t; i < min(n, 4*t + 4); …)
                                                 s[i - 4*t] = 0;

Compilers make one store of a known number of iterations. Of an unknown one they store elements, and a vector that is
loaded from these soon after waits until all of them are in the cache.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.integer import Compare, Linear, Test
from codegen.ir.loop_ir import For
from microkernels.dtypes import f32
from microkernels.isa import ISA


def whole_vector(loop: For, isa: ISA) -> tuple[Test, For] | None:
    """The test whether a loop has all its iterations, and the loop that has; None if that is known or may be many."""
    most = loop.most_span
    if loop.end is None or loop.step != 1 or loop.span is not None or most is None:
        return None
    if not 1 < most <= min(isa.lanes(f32), isa.most_lanes):
        return None
    variable, end = Linear.name(loop.variable), loop.start + most
    return Compare(loop.end - loop.start, "==", Linear.of(most)), replace(loop, test=Compare(variable, "<", end))
