"""The text of a BLAS header: CBLAS's declarations, the kernels, and CBLAS's functions on top of them.

The functions' C text, in `c/`, is written once for a scalar `T`: `T` becomes `float` or `double`, and in names the part
`T` becomes `f32` or `f64`; the X of a part such as `Xgemm` becomes CBLAS's letter, `s` or `d`.

    static void pfx_gemm_T(int64_t m, …, T alpha, …)   ->   static void pfx_gemm_f32(int64_t m, …, float alpha, …)
    cblas_Xgemm                                        ->   cblas_sgemm
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from codegen.package.comments import comment
from codegen.package.header.contract import THREADS
from codegen.package.header.entry import ALLOCATION
from codegen.package.header.isas import constant
from codegen.package.header.text import common, framed, kernels
from codegen.package.values import Header
from microkernels.dtypes import DType
from poly.blas.routines import DTYPES, PANEL

LETTERS = {"f32": "s", "f64": "d"}

SPEED_AT = {"gemm": 256, "gemv": 1000, "syrk": 256}
"""The size of the matrices that the self-test measures."""

PARTS = {"gemm": ("vectors", "products"), "gemv": ("vectors",), "syrk": ("vectors", "products")}
"""The C files that each routine needs besides its own, in order."""


def blas_text(header: Header, names: Sequence[str]) -> str:
    """The C text for the BLAS routines `names`, over the routines of `header`."""
    return framed(header.prefix, comment(_contract(header, names)), _declarations(header, names), _code(header, names))


def _declarations(header: Header, names: Sequence[str]) -> str:
    heads = [typed(f"{name}_declaration", dtype) for name in names for dtype in DTYPES]
    return "\n\n".join([common(header), file("types"), *heads])


def _code(header: Header, names: Sequence[str]) -> str:
    parts = dict.fromkeys(part for name in names for part in PARTS[name])
    texts = [typed(name, dtype) for name in (*parts, *names) for dtype in DTYPES]
    trial = f"#if defined(PFX_SELFTEST)\n{_selftest(header, names)}\n#endif /* PFX_SELFTEST */"
    return "\n\n".join([kernels(header, trial), ALLOCATION, file("common"), *texts, trial])


def _selftest(header: Header, names: Sequence[str]) -> str:
    """A program that compares every routine with plain loops, on every instruction set, and measures it."""
    routines = [f"{letter}{name}" for name in names for letter in LETTERS.values()]
    tried = [f'    {{"cblas_{r}", pfx_try_{r}, pfx_once_{r}, {SPEED_AT[r[1:]]}}},' for r in routines]
    isas = [f'    {{{constant(isa)}, "{isa.name}"}},' for isa in header.isas]
    return "\n\n".join(
        [
            file("try_common"),
            *(typed(name, dtype) for name in ("try_arrays", *(f"try_{name}" for name in names)) for dtype in DTYPES),
            "\n".join(["static const struct { pfx_isa isa; const char *name; } pfx_all_isas[] = {", *isas, "};"]),
            file("try_tried"),
            "\n".join(["static const pfx_tried pfx_all_tried[] = {", *tried, "};"]),
            file("try_main"),
        ]
    )


def file(name: str) -> str:
    """The text of `c/NAME.h`."""
    return (Path(__file__).parent / "c" / f"{name}.h").read_text().strip()


def typed(name: str, dtype: DType) -> str:
    """The text of `c/NAME.h` for one type."""

    def part(text: str) -> str:
        if text == "T":
            return dtype.name
        return LETTERS[dtype.name] + text[1:] if re.match("X[a-z]", text) else text

    def word(found: re.Match[str]) -> str:
        name = found.group()
        return dtype.c_name if name == "T" else "_".join(map(part, name.split("_")))

    return re.sub(r"[A-Za-z_]\w*", word, file(name))


CONTRACT = """{names}: BLAS routines as CBLAS has them, for float and double.
C99 and C++11, one file, no dependence but libc and libm. Made by poly {version}.

Arguments, layouts and results are those of CBLAS: row- and column-major order, leading dimensions, increments of
either sign but 0; CblasConjTrans is CblasTrans. Where beta is 0, C or y is written and never read, so it may hold
anything, NaN too. Where alpha is 0 or a product has no terms, A, B and x are not read. C and y overlap nothing else.
Nothing outside of matrices and vectors is read or written, nor is what lies between rows or elements; of a symmetric
matrix, only the triangle that is named is.

After a wrong argument nothing is changed: PFX_XERBLA(number, routine) tells its position and the routine, and the
function returns. It prints a line to stderr, as CBLAS's reference does, and may be defined before to do something
else. A null pointer to what has to be read or written is a wrong argument too.

#include this file where it is needed; in one C or C++ file, #define PFX_IMPLEMENTATION before. No flags are needed.
The system's <cblas.h> may be included before this file, not after it. Where PFX_CBLAS(name) is defined before, as
my_##name, the functions have other names.
A call takes memory with PFX_MALLOC and PFX_FREE, which may be defined before: none for small products and vectors,
2 MiB at most, or {panel} KiB for each thread where that is more. Where there is none, the call takes longer. Up to
40 KiB lie on the stack.
Calls may be made from several threads at once: they share only the choice of the instruction set, which is atomic.
Threads: {threads}
Instruction sets: {isas}. The CPU is asked once; pfx_force_isa(…) takes one by force.
32-bit, big-endian and other CPUs run the portable kernels.
#define PFX_SELFTEST: a main that compares every routine with plain loops, and measures it:
    cc -O2 -x c -DPFX_SELFTEST FILE.h -o try -lm && ./try"""

SHARED = "PFX_THREADS, which may be defined before (else 1), is how many work on a large product: "


def _contract(header: Header, names: Sequence[str]) -> str:
    shared = header.threads != "none"
    return CONTRACT.format(
        names=", ".join(f"cblas_{letter}{name}" for name in names for letter in LETTERS.values()),
        version=header.version,
        panel=PANEL >> 10,
        threads=f"{SHARED * shared}{THREADS[header.threads]}",
        isas=", ".join(isa.name for isa in header.isas),
    )
