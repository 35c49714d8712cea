"""The comment at the top of the file: the contract, for readers."""

from __future__ import annotations

from codegen.elements import strides
from codegen.ir.integer import in_c, product
from codegen.ir.program import Buffer
from codegen.package.comments import arguments, comment, indented
from codegen.package.header.checks import ORDER
from codegen.package.header.sections import level
from codegen.package.values import Header, Routine

THREADS = {
    "openmp": "`threads` share the work where the file is built with -fopenmp; else one thread does it all.",
    "pthreads": "`threads` share the work: POSIX threads, made for the call and joined. Build with -pthread.",
    "none": "a call runs in the thread that makes it.",
}


def contract(header: Header) -> str:
    """The comment."""
    routines = (_routine(header, routine) for routine in header.routines)
    return comment("\n\n".join([_title(header), *routines, _use(header), ORDER]))


def _title(header: Header) -> str:
    names = ", ".join(routine.name for routine in header.routines)
    made = f"Made by poly {header.version}." if header.version else ""
    where = f"Schedules were chosen on {header.machine}; the code runs anywhere." if header.machine else ""
    return "\n".join(
        line for line in (f"{names}: C99 and C++11, one file, no dependence but libc and libm.", made, where) if line
    )


def _routine(header: Header, routine: Routine) -> str:
    special = dict.fromkeys(variant.sizes for variant in routine.variants if variant.sizes)
    own = "; ".join(", ".join(f"{name} = {value}" for name, value in sizes) for sizes in special)
    threads = [("threads", "how many, from 1 to PFX_MAX_THREADS")] * (header.threads != "none")
    lines = [
        f"{routine.name} computes",
        "",
        indented(routine.loops),
        "",
        indented(arguments(routine.sizes, routine.signature.buffers, _strides, threads)),
        "",
    ]
    names = " and ".join(routine.indices)
    lines += [f"Elements of {names} that are looked up are checked before the workspace: PFX_BAD_INDEX."] * bool(names)
    lines += [f"Sizes with kernels of their own: {own}."] * bool(own)
    lines += [*routine.notes, ""]
    first = routine.variants[0]
    lines += [
        f"The first kernel's loops, on {level(first.isa)} (the others stand above theirs):",
        "",
        indented(first.loops),
    ]
    return "\n".join(lines)


def _strides(buffer: Buffer) -> list[tuple[str, str]]:
    """The strides that a caller passes; none for an array that is always dense."""
    if buffer.strides is None:
        return []
    names = [str(stride) for stride in strides(buffer)[:-1] if stride.terms]
    rests = [product(map(in_c, buffer.shape[at + 1 :])) for at in range(len(names))]
    where = ["row" if len(names) == 1 else f"index of dimension {at}" for at in range(len(names))]
    return [
        (name, f"elements of {buffer.name} from one {place} to the next: 0 for {rest}, or at least what lies within it")
        for name, place, rest in zip(names, where, rests, strict=True)
    ]


USE = """Arrays are row-major, their last dimension without gaps, and aligned to their elements. An output overlaps
no other array; inputs may overlap each other. Nothing outside of the arrays is read or written.

#include this file where it is needed; in one C or C++ file, #define PFX_IMPLEMENTATION before. No flags are needed.
{first}(…) allocates its workspace with PFX_MALLOC and PFX_FREE, which may be defined before, and frees it.
{first}_with_workspace(…) allocates nothing: it takes {first}_workspace_size(…) bytes or more, at any address.
Calls may be made from several threads at once: they share only the choice of the instruction set, which is atomic.
Threads: {threads}
Instruction sets: {isas}. The CPU is asked once; pfx_force_isa(…) takes one by force.
32-bit, big-endian and other CPUs run the portable kernels.
#define PFX_DEBUG: every access in the loops is checked against the bounds of its array.
#define PFX_SELFTEST: a main that checks every kernel against the loops above, and measures it:
    cc -O2 {flags}-x c -D PFX_SELFTEST FILE.h -o try -lm && ./try"""


def _use(header: Header) -> str:
    isas = ", ".join(map(level, header.isas))
    flags = {"openmp": "-fopenmp ", "pthreads": "-pthread ", "none": ""}[header.threads]
    return USE.format(first=header.routines[0].name, threads=THREADS[header.threads], isas=isas, flags=flags)
