"""`poly.microkernel`: a user's own microkernel, from C text and a nest that specifies what the text computes."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from codegen.ir.expr import Const, Load
from codegen.names import c_name
from microkernels.catalogue import STREAMS, TUNED, register
from microkernels.contract import Access, Contract
from microkernels.custom_kernel import CustomKernel, strides
from microkernels.errors import TargetError, plain, shown
from microkernels.isa import ISA, ISAS, find
from microkernels.kernel import LEVELS
from microkernels.opencl_isa import OPENCLGPU
from microkernels.product import MULTIPLY_ADD, PRODUCTS
from microkernels.prune import items_of
from poly.analysis.contraction import Contraction
from poly.analysis.roles import roles
from poly.checks import checked_size, checked_text
from poly.errors import SpecError
from poly.ir.budget import CALL, limited
from poly.ir.nest import Nest, checked_nest

MOST = 1024
"""The most iterations of each loop of a tile: the C text works in registers and the L1 cache."""

LONGEST = 160
"""Characters of the reason, which may quote the user's C text, in a message."""

OURS = re.compile(rf"{'|'.join(PRODUCTS)}|gemm_{OPENCLGPU.name}(_.*)?|{'|'.join(STREAMS)}")
"""Names that are reserved for the families of poly's own microkernels."""


@limited(CALL)
def microkernel(
    contract: Nest, *, c: str, isa: str, tile: Mapping[str, int], needs: Mapping[str, str] | None = None
) -> CustomKernel:
    """Add a microkernel of your own, for use in schedules: `.microkernel(kernel.name)`.

        @poly.nest
        def dot4(A: f32[M, K], B: f32[N, K], C: f32[M, N]):
            for i in range(M):
                for j in range(N):
                    for k in range(K):
                        C[i, j] += A[i, k] * B[j, k]

        kernel = poly.microkernel(dot4, c=text, isa="avx2", tile={"i": 4, "j": 4, "k": 4})

    Its name consists of the nest's name, the instruction set and the tile: `dot4_avx2_4x4x4`. It stays registered until
    the process ends, and replaces an earlier one of the same name and type. A package offers microkernels to its users
    through the entry point group `poly.microkernels`: an entry has the microkernel's name, and points to a module-level
    variable that holds the value which this function returned.

    Args:
        contract: a nest of one statement, `C[…] += A[…] * B[…]` over f32 or f64, in which each index is a loop. It has
            at most one loop over rows (in A and C), one over columns (in B and C, and C's last index), and one to three
            reduction loops. A schedule's loops match if they compute the same, on arrays that are contiguous along
            their last index as the contract's are. The names of loops and arrays matter only here.
        c: C text (C99, and C++11 for headers), in which each function begins in the first column. It defines the
            function for one whole tile, `dot4_f32_avx2_4x4x4`: the microkernel's name with the type. The arguments are
            the trip counts of the loops that the tile leaves open (`int64_t`), then for each of A, B and C a pointer
            and the strides (in elements, `int64_t`) of all indices but the last. The function adds to C, and accesses
            no memory outside its operands. `kernel.prototype` is its declaration, which errors show too. Partial tiles
            are computed by plain loops that poly writes.
        isa: the instruction set that the text is for: "avx512", "avx2", "neon" or "portable".
        tile: how many iterations of each loop one call computes. Rows and columns need a number. A reduction loop
            without one has any trip count, 0 included.
        needs: CPU features that the text needs besides the instruction set, as /proc/cpuinfo names them, each with the
            compiler's flag for it: `{"sse4_1": "-msse4.1"}`. Such a microkernel can't be in a header.

    Returns:
        The microkernel, with its `name`, `prototype`, `contract`, `tile`, `isa` and `dtype`.

    Raises:
        SpecError: an invalid contract, tile, text or `needs`, or a name that is reserved for poly's own microkernels.
        TargetError: an unknown instruction set.
    """
    checked_nest(contract)
    found = _contraction(contract)
    read = _contract(contract, found)
    made_for = _extended(_isa(isa), {} if needs is None else needs)
    sizes = _tile(contract, read, tile)
    dtype = contract.array(found.output.array).dtype
    if dtype not in TUNED:
        raise SpecError(f"{contract.name}: a microkernel computes in f32 or f64, not in {dtype}.")
    rows, columns = sizes.get(read.rows or "", 1), sizes[read.columns]
    depths = tuple(sizes.get(loop) for loop in read.reduce)
    kernel = CustomKernel(contract.name, read, made_for, dtype, rows, columns, depths, _text(c))
    _check_function(kernel)
    register(kernel)
    return kernel


def _contraction(nest: Nest) -> Contraction:
    """The contraction that the nest's only statement computes.

    Raises:
        SpecError: a reserved or invalid name, or a nest that is not a single contraction.
    """
    own = OURS.fullmatch(nest.name)
    if own or not re.fullmatch(r"[a-z][a-z0-9_]*", nest.name):
        wrong = "is a family of poly's own microkernels" if own else "is not made of small letters, digits and _"
        raise SpecError(f"{plain(nest.name)} {wrong}. Give the function that is the contract another name.")
    found = roles(nest, nest.statements[0]) if len(nest.statements) == 1 else None
    own_product = found is not None and found.contraction.product == MULTIPLY_ADD
    if found is None or not own_product or found.contraction.factor != Const(1) or found.contraction.batch:
        raise SpecError(
            f"{nest.name} is no contract of a microkernel: it must be one statement `C[…] += A[…] * B[…]` over all "
            "values of its loops, each from 0 to a size, and no loop may be in all three arrays."
        )
    return found.contraction


def _contract(nest: Nest, found: Contraction) -> Contract:
    """The contract, from the statement's accesses.

    Raises:
        SpecError: an index that isn't a loop, too many loops, or names that C or the generated text uses.
    """
    output, left, right = accesses = [_access(nest, load) for load in (found.output, found.left, found.right)]
    counts = (len(found.rows), len(found.columns), len(found.reduce))
    if counts[0] > 1 or counts[1] != 1 or not 1 <= counts[2] <= LEVELS or output.loops[-1] != found.columns[0]:
        raise SpecError(
            f"{nest.name} has {counts[0]} loops of rows, {counts[1]} of columns and {counts[2]} of the reduction: a "
            f"contract has at most one of rows, one of columns, which is the last index of {found.output.array}, and "
            f"one to {LEVELS} of the reduction."
        )
    loops = {loop for access in accesses for loop in access.loops}
    own = [*loops, *(f"{loop}_count" for loop in loops)]
    names = [*own, *(name for access in accesses for name in (access.array, *strides(access)))]
    taken = {name for name in names if names.count(name) > 1 or c_name(name) != name}
    taken |= {"alpha", "accumulate", "sums"}.intersection(names)
    if taken:
        raise SpecError(
            f"{nest.name}: {', '.join(sorted(taken))} can't be a name in a contract, since C or the text around the "
            "kernel uses it. Rename the loop or the array."
        )
    return Contract(output, left, right)


def _access(nest: Nest, load: Load) -> Access:
    loops = tuple(str(index) for index in load.indices)
    iterators = nest.statements[0].iterators
    if not set(loops) <= set(iterators) or len(set(loops)) < len(loops):
        raise SpecError(f"{nest.name}: each index of {load.array} must be a loop, and no two of them the same one.")
    return Access(load.array, loops)


def _isa(name: Any) -> ISA:
    found = find(name) if isinstance(name, str) else None
    if found is None:
        close = difflib.get_close_matches(name[:80], ISAS, n=1) if isinstance(name, str) else []
        hint = f" Did you mean {close[0]!r}?" if close else ""
        known = ", ".join(map(repr, ISAS))
        raise TargetError(f"unknown instruction set {shown(name)}: a microkernel in C is for one of {known}.{hint}")
    return found


def _extended(isa: ISA, needs: Any) -> ISA:
    """The instruction set extended by CPU features and the compiler's flags for them. Raises SpecError."""
    features: dict[Any, Any] = dict(needs) if isinstance(needs, Mapping) else {None: None}
    for feature, flag in features.items():
        named = isinstance(feature, str) and re.fullmatch(r"\w+", feature)
        if not (named and isinstance(flag, str) and re.fullmatch(r"-m[\w.+=-]+", flag)):
            raise SpecError(f"needs must be a dictionary such as {{'sse4_1': '-msse4.1'}}, not {shown(needs)}.")
    return isa.extended(features)


def _tile(nest: Nest, contract: Contract, tile: Any) -> dict[str, int]:
    """The number of iterations in a tile, by loop.

    Raises:
        SpecError: not a dictionary of the contract's loops, a number out of range, or none for the rows or columns.
    """
    if not isinstance(tile, Mapping):
        raise SpecError(f"tile must be a dictionary such as {{'i': 4, 'j': 16}}, not {shown(tile)}.")
    sizes = {loop: checked_size(f"tile: {plain(loop)}", count) for loop, count in tile.items()}
    loops = ", ".join(contract.loops)
    for loop, count in sizes.items():
        if loop not in contract.loops:
            raise SpecError(f"tile: {nest.name} has no loop {plain(loop)}. Its loops: {loops}.")
        if not 1 <= count <= MOST:
            raise SpecError(f"tile: {loop} must be from 1 to {MOST}, not {count}.")
    missing = [loop for loop in contract.output.loops if loop not in sizes]
    if missing:
        raise SpecError(f"tile: how many iterations of {' and '.join(missing)} does one call compute? Give a number.")
    return sizes


def _text(c: Any) -> str:
    """The C text, dedented. Raises SpecError for characters that a C file can't contain."""
    text = checked_text("c", c, "'static inline void …'", SpecError)
    odd = re.search("[\\0\\ud800-\\udfff]", text)
    if odd:
        raise SpecError(f"c: the text has {odd[0]!a}, which no file of C can hold. Remedy: leave it out.")
    return textwrap.dedent(text)


def _check_function(kernel: CustomKernel) -> None:
    """Raises SpecError for a text that can't be parsed, or that doesn't define the microkernel's function."""
    try:
        defined = frozenset().union(*(item.names for item in items_of(kernel.text) if "{" in item.code))
    except ValueError as error:
        why = str(error)[:LONGEST]
        raise SpecError(f"c: {why}. Begin each function in the first column, and close all its brackets.") from error
    if kernel.c_name not in defined:
        raise SpecError(f"c: the text must define the function of {kernel}: {kernel.prototype} {{ … }}")
