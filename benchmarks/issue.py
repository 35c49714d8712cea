"""The issue rate of a core: how many simple instructions it begins per cycle.

Two hardware threads of a core share its issue slots. A busy neighbour halves this rate and leaves the peak of fused
multiply-adds as it is, since these need two slots of six, so the peak alone does not show the neighbour; in a virtual
machine nothing else does. The rate is counted in cycles, given by a chain of dependent additions, which takes one cycle
a step whatever the neighbour does, so that the clock frequency cancels.
"""

from __future__ import annotations

import functools
import platform
from typing import Any

from codegen.calls.clock import NOW
from codegen.toolchain.build import load

INSTRUCTIONS = {
    "x86_64": ("add %0, %0", "xor %%eax, %%eax", '"eax"'),
    "aarch64": ("add %0, %0, %0", "mov x9, #0", '"x9"'),
}
"""A dependent addition; an instruction that depends on nothing and needs no execution unit; what that overwrites."""

SOURCE = """
#define REPEAT_64(instruction) ".rept 64\\n\\t" instruction "\\n\\t.endr"
#define STEPS 1000
#define SAMPLES 5

static double less(double a, double b) {{ return a < b ? a : b; }}

static double chain(void) {{
    uint64_t x = 1;
    const double start = now();
    for (int n = 0; n < STEPS; n++) __asm__ volatile(REPEAT_64("{chained}") : "+r"(x) : : "cc");
    return now() - start;
}}

static double independent(void) {{
    const double start = now();
    for (int n = 0; n < STEPS; n++) __asm__ volatile(REPEAT_64("{free}") : : : {clobbered}, "cc");
    return now() - start;
}}

/* Instructions a cycle on the slowest of the threads: of several samples the least times, since interrupts only add. */
double issue_rate(int threads) {{
    double slowest = 1e9;
    #pragma omp parallel num_threads(threads) reduction(min : slowest)
    {{
        double cycles = 1e9, issued = 1e9;
        #pragma omp barrier
        for (int sample = 0; sample < SAMPLES; sample++) {{
            cycles = less(chain(), cycles);
            issued = less(independent(), issued);
        }}
        slowest = less(cycles / issued, slowest);
    }}
    return slowest;
}}
"""


class IssueRate:
    """A call takes one sample on `threads` threads, in some 0.2 ms: instructions a cycle on the slowest core."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def __call__(self) -> float:
        return float(_library().issue_rate(self.threads))


def issue_rate(threads: int) -> IssueRate | None:
    """The probe for so many threads; None on a CPU for which it is not written."""
    return IssueRate(threads) if platform.machine() in INSTRUCTIONS else None


@functools.cache
def _library() -> Any:
    chained, free, clobbered = INSTRUCTIONS[platform.machine()]
    source = NOW + SOURCE.format(chained=chained, free=free, clobbered=clobbered)
    return load(source, "double issue_rate(int threads);", ("-O2", "-fopenmp")).lib
