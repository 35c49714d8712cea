"""The instruction set of calls: the best that the CPU has, detected once, or one that a caller forces."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.package.header.sections import beside, level, where
from microkernels.dot import with_dots
from microkernels.isa import ISA, ISAS

WITH_DOTS = [isa for isa in map(with_dots, reversed(ISAS.values())) if isa]
NUMBERS = {level(isa): number for number, isa in enumerate((*reversed(ISAS.values()), *WITH_DOTS), start=1)}
"""The values of `pfx_isa`: better ones are greater, but those with more than an instruction set follow all others."""


def constant(isa: ISA) -> str:
    return f"PFX_ISA_{level(isa).upper()}"


def enumeration(isas: Sequence[ISA]) -> str:
    """The type `pfx_isa`: all instruction sets, and those of `isas` that need more of the CPU."""
    known = (*reversed(ISAS.values()), *(isa for isa in reversed(isas) if beside(isa)))
    lines = ["PFX_ISA_AUTO = 0", *(f"{constant(isa)} = {NUMBERS[level(isa)]}" for isa in known)]
    return "\n".join(["typedef enum pfx_isa {", ",\n".join(f"    {line}" for line in lines), "} pfx_isa;"])


PUBLIC = """pfx_isa pfx_isa_in_use(void) { return pfx_chosen_isa(); }

pfx_status pfx_force_isa(pfx_isa isa)
{
    if (isa != PFX_ISA_AUTO && !pfx_runs(isa)) return PFX_UNSUPPORTED_ISA;
  __atomic_store_n(&pfx_isa_now, (int32_t)isa, __ATOMIC_RELAXED);
    return PFX_OK;
}"""
"""The public functions for the choice."""


def choice(isas: Sequence[ISA]) -> str:
    """C text of the choice: what this CPU can run, and what is in use."""
    tests = [_test(isa) for isa in isas]
    cases = [line for isa in isas for line in where(isa, [f"        case {constant(isa)}: return {_supported(isa)};"])]
    return "\n".join(
        [
            "/* 0 until the first call; afterwards a pfx_isa. Read and written by atomic operations alone. */",
            "static int32_t pfx_isa_now;",
            "",
            "static int pfx_runs(pfx_isa isa)",
            "{",
            "    switch (isa) {",
            *cases,
            "        default: return 0;",
            "    }",
            "}",
            "",
            "/* Two threads may come here at once: both find the same. What a caller forces meanwhile stays. */",
            "static pfx_isa pfx_detect(void)",
            "{",
            "    int32_t now = 0, best = 0;",
            *(["#if defined(__x86_64__) || defined(__i386__)", "  __builtin_cpu_init();", "#endif"]),
            *tests,
            "    if (__atomic_compare_exchange_n(&pfx_isa_now, &now, best, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))",
            "        return (pfx_isa)best;",
            "    return (pfx_isa)now;",
            "}",
            "",
            "static inline pfx_isa pfx_chosen_isa(void)",
            "{",
            "    const int32_t now = __atomic_load_n(&pfx_isa_now, __ATOMIC_RELAXED);",
            "    return now ? (pfx_isa)now : pfx_detect();",
            "}",
        ]
    )


def _test(isa: ISA) -> str:
    return f"    if (!best && pfx_runs({constant(isa)})) best = (int32_t){constant(isa)};"


def _supported(isa: ISA) -> str:
    """C text of the test of the CPU, for a section that is compiled."""
    if isa.machine != "x86_64":
        return "1"
    return "\n      && ".join(f'__builtin_cpu_supports("{flag.replace("_", "")}")' for flag in isa.cpu_flags)
