"""A schedule is a value: a nest and the legal steps that transform its loops.

    schedule(matmul).tile(i=6, j=64).parallel("i_tile")

Each step is proven against the exact dependences when it is added, or refused with two iterations that it would
exchange. The examples below use small nests: `copy` is `B[i, j] = A[i, j]`, `chain` and `late` are two consecutive
loops, `wave` is a stencil in time and space, `dot` and `matmul` are reductions, `solve` is a triangular solve.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any

from microkernels.errors import shown
from poly.checks import checked_text, is_collection
from poly.display import Block, Displayed, Preformatted
from poly.errors import ScheduleError
from poly.ir.budget import CALL, limited
from poly.ir.edits import rename_repeats
from poly.ir.nest import Nest, checked_nest
from poly.ir.tree import Memory, Node
from poly.names import known_keywords
from poly.schedules.loopstring import Blocks, translate
from poly.schedules.steps import (
    KINDS,
    STEPS,
    Accumulate,
    Distribute,
    Enclose,
    Flatten,
    Fuse,
    Groups,
    Interchange,
    Items,
    Materialize,
    Order,
    Pack,
    Parallel,
    Part,
    Privatize,
    ReorderStorage,
    Reverse,
    Rewriting,
    RFactor,
    Shift,
    Skew,
    Split,
    SplitIterator,
    Step,
    Substitute,
    Tensorize,
    Tile,
    Unroll,
    Vectorize,
    call_text,
)
from poly.schedules.steps.base import check_names
from poly.schedules.steps.formulas import Formula
from poly.schedules.steps.own import check_text, is_own, own_step
from poly.schedules.steps.part import needs


@dataclass(frozen=True, repr=False)
class Schedule(Displayed):
    """The loops of a nest after some steps. Every step returns a new schedule.

    `repr` is Python code that makes the schedule from the nest; `print` shows the loops. Every step raises
    ScheduleError if a loop does not exist, if the loops do not have the form that the step needs, or if it is illegal.
    """

    nest: Nest
    steps: tuple[Step, ...]
    tree: Node = field(compare=False)

    def tile(self, /, **sizes: int) -> Schedule:
        """Cut loops into blocks of the given sizes, and move the loops over blocks outside those over points.

        Loop `i` becomes `i_tile` over blocks and `i` over the points of a block. Tiled again, `i` is cut into smaller
        blocks, `i_tile2`. If the loop is parallel, the loop over blocks is parallel instead.

        Before:

            >>> print(schedule(copy))
            for i in range(M):
                for j in range(N):
                    B[i, j] = A[i, j]

        After:

            >>> print(schedule(copy).tile(i=6, j=64))
            for i_tile in range((M + 5) // 6):
                for j_tile in range((N + 63) // 64):
                    for i in range(6*i_tile, min(M, 6*i_tile + 6)):
                        for j in range(64*j_tile, min(N, 64*j_tile + 64)):
                            B[i, j] = A[i, j]

        Halide: `tile`. TVM: `split` and `reorder`. loopy: `split_iname`.
        """
        return self.apply([Tile(tuple(sizes.items()))])

    def split(self, /, **sizes: int) -> Schedule:
        """Cut loops into blocks without reordering them; the order of execution stays. Names are as for `tile`.

        Before:

            >>> print(schedule(copy))
            for i in range(M):
                for j in range(N):
                    B[i, j] = A[i, j]

        After:

            >>> print(schedule(copy).split(i=6))
            for i_tile in range((M + 5) // 6):
                for i in range(6*i_tile, min(M, 6*i_tile + 6)):
                    for j in range(N):
                        B[i, j] = A[i, j]

        Halide, TVM: `split`. loopy: `split_iname`.
        """
        return self.apply([Split(tuple(sizes.items()))])

    @known_keywords
    def interchange(self, outer: str, inner: str) -> Schedule:
        """Swap two loops. Statements between them move into the first or last iteration of the inner loop.

        Before:

            >>> print(schedule(copy))
            for i in range(M):
                for j in range(N):
                    B[i, j] = A[i, j]

        After:

            >>> print(schedule(copy).interchange("i", "j"))
            for j in range(N):
                for i in range(M):
                    B[i, j] = A[i, j]

        Where that would break a dependence:

            >>> schedule(wave).interchange("t", "x")  # doctest: +NORMALIZE_WHITESPACE
            Traceback (most recent call last):
                ...
            poly.ScheduleError: interchange(t, x) is illegal: S0[1, 1] must run before S0[2, 0] (flow on
                u, distance (1, -1), with T = 3, N = 3). Remedy: skew(x, by=t).

        Halide, TVM: `reorder`. loopy: `prioritize_loops`.
        """
        return self.apply([Interchange(outer, inner)])

    @known_keywords
    def order(self, loops: str) -> Schedule:
        """Put loops in a new order, outermost first; loops that are not named keep their positions.

        Before:

            >>> print(schedule(matmul))
            for i in range(M):
                for j in range(N):
                    for k in range(K):
                        C[i, j] += A[i, k] * B[k, j]

        After:

            >>> print(schedule(matmul).order("k i j"))
            for k in range(K):
                for i in range(M):
                    for j in range(N):
                        C[i, j] += A[i, k] * B[k, j]

        Halide, TVM: `reorder`. loopy: `prioritize_loops`.
        """
        names = checked_text("the loops of an order", loops, "'j i k'", ScheduleError)
        return self.apply([Order(tuple(names.split()))])

    def flatten(self, *loops: str) -> Schedule:
        """Merge perfectly nested loops into one, `i_j`; the extents of the inner ones must be known.

        Before:

            >>> print(schedule(copy.with_sizes({"N": 28})))
            for i in range(M):
                for j in range(28):
                    B[i, j] = A[i, j]

        After:

            >>> print(schedule(copy.with_sizes({"N": 28})).flatten("i", "j"))
            for i_j in range(28*M):
                B[i_j // 28, i_j % 28] = A[i_j // 28, i_j % 28]

        Halide, TVM: `fuse`. loopy: `join_inames`.
        """
        return self.apply([Flatten(loops)])

    @known_keywords
    def fuse(self, first: str, second: str, at: str) -> Schedule:
        """Fuse the loops around statement `second` with those around `first`, down to loop `at`.

        Before:

            >>> print(schedule(chain))
            for i in range(N):
                X[i] = 2.0 * A[i]
            for j in range(N):
                Y[j] = X[j] + 1.0

        After:

            >>> print(schedule(chain).fuse("S0", "S1", at="i"))
            for i in range(N):
                X[i] = 2.0 * A[i]
                Y[i] = X[i] + 1.0

        Where a statement would read too early:

            >>> schedule(late).fuse("S0", "S1", at="i")  # doctest: +NORMALIZE_WHITESPACE
            Traceback (most recent call last):
                ...
            poly.ScheduleError: fuse(S0, S1, at=i) is illegal: S0[1] must run before S1[0] (flow on X,
                with N = 1). Remedy: shift(j, by=1).

        Halide: `compute_with`. TVM: `compute_at`. loopy: `rename_iname` to one name.
        """
        return self.apply([Fuse(first, second, at)])

    @known_keywords
    def distribute(self, loop: str, behind: str | None = None, last: str | None = None) -> Schedule:
        """Split a loop's body into one loop for each of its parts, called `i`, `i_2`, `i_3`, …

        With `behind`, the name of a statement, there are two loops: one up to that statement, and one for the rest.
        With `last`, there are two as well: the second is for that statement alone, wherever it is.

        Before:

            >>> print(schedule(chain).fuse("S0", "S1", at="i"))
            for i in range(N):
                X[i] = 2.0 * A[i]
                Y[i] = X[i] + 1.0

        After:

            >>> print(schedule(chain).fuse("S0", "S1", at="i").distribute("i"))
            for i in range(N):
                X[i] = 2.0 * A[i]
            for i_2 in range(N):
                Y[i_2] = X[i_2] + 1.0

        Also called loop fission. TVM: `loop_partition` comes close. loopy: `duplicate_inames`.
        """
        return self.apply([Distribute(loop, behind, last)])

    def enclose(self, loop: str, /, at: str | None = None, **values: str) -> Schedule:
        """Put a new loop around statements, each of which runs at the iterations that a formula gives.

        The loop is around the largest part of the tree that has exactly these statements; with `at`, of that loop's
        body. A formula has the statement's iterators, sizes and integers, `+ - *`, and `//` and `%` by an integer.

        Before:

            >>> print(schedule(solve))
            for i in range(N):
                for j in range(i):
                    x[i] += -(L[i, j] * x[j])
                x[i] = x[i] / L[i, i]

        After, each block of `x` is finished before it is used for all others:

            >>> print(schedule(solve).enclose("block", S0="j // 8", S1="i // 8"))
            for block in range((N + 7) // 8):
                for i in range(8*block, N):
                    for j in range(8*block, min(8*block + 8, i)):
                        x[i] += -(L[i, j] * x[j])
                    if 8*block + 7 >= i:
                        x[i] = x[i] / L[i, i]

        Where it would run an iteration too early:

            >>> schedule(solve).enclose("k", S0="i", S1="0")  # doctest: +NORMALIZE_WHITESPACE
            Traceback (most recent call last):
                ...
            poly.ScheduleError: enclose(k, S0=i, S1=0) is illegal: S0[1, 0] must run before S1[1] (flow on x,
                with N = 2).

        isl: `insert_partial_schedule`. Halide, TVM and loopy have no equivalent.
        """
        return self.apply([Enclose(loop, tuple((name, Formula(text)) for name, text in values.items()), at)])

    @known_keywords
    def skew(self, loop: str, by: str, factor: int = 1) -> Schedule:
        """Skew a loop: it counts itself plus `factor` times another loop.

        Before:

            >>> print(schedule(wave))
            for t in range(1, T):
                for x in range(N - 1):
                    u[t, x] = u[t - 1, x + 1] + u[t - 1, x]

        After:

            >>> print(schedule(wave).skew("x", by="t"))
            for t in range(1, T):
                for x in range(t, N + t - 1):
                    u[t, x - t] = u[t - 1, x - t + 1] + u[t - 1, x - t]

        Now the loops can be interchanged or tiled:

            >>> print(schedule(wave).skew("x", by="t").interchange("t", "x"))
            for x in range(1, N + T - 2):
                for t in range(max(1, x - N + 2), min(T, x + 1)):
                    u[t, x - t] = u[t - 1, x - t + 1] + u[t - 1, x - t]

        loopy: `affine_map_inames`. Halide and TVM have no equivalent.
        """
        return self.apply([Skew(loop, by, factor)])

    @known_keywords
    def shift(self, loop: str, by: int, statement: str | None = None) -> Schedule:
        """Delay the instances of one statement, or of all, by a number of iterations of a loop.

        Before:

            >>> print(schedule(late))
            for i in range(N + 1):
                X[i] = 2.0 * A[i]
            for j in range(N):
                Y[j] = X[j + 1]

        After:

            >>> print(schedule(late).shift("j", by=1).fuse("S0", "S1", at="i"))
            for i in range(N + 1):
                X[i] = 2.0 * A[i]
                if i > 0:
                    Y[i - 1] = X[i]

        loopy: `affine_map_inames`. Halide and TVM have no equivalent.
        """
        return self.apply([Shift(loop, by, statement)])

    @known_keywords
    def reverse(self, loop: str) -> Schedule:
        """Run a loop from its last iteration to its first: it counts `-i`.

        Before:

            >>> print(schedule(copy))
            for i in range(M):
                for j in range(N):
                    B[i, j] = A[i, j]

        After:

            >>> print(schedule(copy).reverse("j"))
            for i in range(M):
                for j in range(1 - N, 1):
                    B[i, -j] = A[i, -j]

        loopy: `affine_map_inames`. Halide and TVM have no equivalent.
        """
        return self.apply([Reverse(loop)])

    @known_keywords
    def parallel(self, loop: str) -> Schedule:
        """Share the iterations of a loop among threads. A reduction loop is refused: its iterations update one element.

        Before:

            >>> print(schedule(dot))
            for i in range(N):
                s[0] += x[i] * y[i]

        After splitting `i`, there is still one sum:

            >>> schedule(dot).split(i=8).parallel("i_tile")  # doctest: +NORMALIZE_WHITESPACE
            Traceback (most recent call last):
                ...
            poly.ScheduleError: parallel(i_tile) is illegal: S0[0] and S0[8] update one element of s
                (reduction, distance (8), with N = 9).

        Where the iterations are independent:

            >>> print(schedule(copy).parallel("i"))
            for i in range(M):  # parallel
                for j in range(N):
                    B[i, j] = A[i, j]

        Halide, TVM: `parallel`. loopy: `tag_inames` with `g.0`.
        """
        return self.apply([Parallel(loop)])

    def groups(self, *loops: str) -> Schedule:
        """Share up to three perfectly nested loops, outermost first, among the work-groups of an OpenCL device.

        Groups cannot synchronise with each other, so such a loop must carry no dependence, not even a reduction's.

        Before:

            >>> print(schedule(copy))
            for i in range(M):
                for j in range(N):
                    B[i, j] = A[i, j]

        After:

            >>> print(schedule(copy).tile(i=8, j=32).groups("i_tile", "j_tile"))
            for i_tile in range((M + 7) // 8):  # groups
                for j_tile in range((N + 31) // 32):  # groups
                    for i in range(8*i_tile, min(M, 8*i_tile + 8)):
                        for j in range(32*j_tile, min(N, 32*j_tile + 32)):
                            B[i, j] = A[i, j]

        Halide: `gpu_blocks`. TVM: `bind` to `blockIdx.x`. loopy: `tag_inames` with `g.0`.
        """
        return self.apply([Groups(loops)])

    def items(self, /, **numbers: int) -> Schedule:
        """Share the iterations of loops among work-items of each group: of 32 items, item q runs q, q + 32, q + 64, …

        The loops are inside those of the groups. The numbers of nested loops multiply, and the product must be the same
        for all statements of a group that are in such loops; the other statements are run by item 0 alone. Where one
        part of a group's loops needs what another wrote, a barrier stands between them; inside a shared loop there can
        be none. The partial results of a reduction over such a loop are combined in `__local` memory.

        Before:

            >>> print(schedule(copy))
            for i in range(M):
                for j in range(N):
                    B[i, j] = A[i, j]

        After:

            >>> print(schedule(copy).groups("i").items(j=32))
            for i in range(M):  # groups
                for j in range(N):  # 32 items
                    B[i, j] = A[i, j]

        Where items would need a barrier inside a shared loop:

            >>> schedule(wave).items(t=8, x=32)  # doctest: +NORMALIZE_WHITESPACE
            Traceback (most recent call last):
                ...
            poly.ScheduleError: items(t=8, x=32) is illegal: S0[1, 1] must run before S0[2, 0] (flow on u,
                distance (1, -1), with T = 3, N = 3), and different work-items run them in loop t, where they cannot
                wait for each other. Remedy: items(x=32).

        Halide: `gpu_threads`. TVM: `bind` to `threadIdx.x`. loopy: `tag_inames` with `l.0`.
        """
        return self.apply([Items(tuple(numbers.items()))])

    @known_keywords
    def vectorize(self, loop: str) -> Schedule:
        """Run the iterations of an innermost loop in vector lanes; a reduction has a partial result in each lane.

        Before:

            >>> print(schedule(copy))
            for i in range(M):
                for j in range(N):
                    B[i, j] = A[i, j]

        After:

            >>> print(schedule(copy).vectorize("j"))
            for i in range(M):
                for j in range(N):  # vectorize
                    B[i, j] = A[i, j]

        Halide, TVM: `vectorize`. loopy: `tag_inames` with `vec`.
        """
        return self.apply([Vectorize(loop)])

    def unroll(self, /, **factors: int) -> Schedule:
        """Unroll loops by the given factors.

        Before:

            >>> print(schedule(copy))
            for i in range(M):
                for j in range(N):
                    B[i, j] = A[i, j]

        After:

            >>> print(schedule(copy).unroll(j=4))
            for i in range(M):
                for j in range(N):  # unroll 4
                    B[i, j] = A[i, j]

        Halide, TVM: `unroll`. loopy: `tag_inames` with `unr`.
        """
        return self.apply([Unroll(tuple(factors.items()))])

    @known_keywords
    def pack(
        self,
        array: str,
        at: str | None = None,
        statement: str | None = None,
        role: str | None = None,
        memory: Memory = "global",
        pad: int = 0,
        buffers: int = 1,
    ) -> Schedule:
        """Pack the part of an array that each iteration of the loop `at` reads; without a loop, all that is read.

        Around a microkernel the copy is laid out in the kernel's panels; elsewhere it is a dense box.

        Args:
            array: the array; no statement in the loop may write it.
            at: the loop.
            statement: the statement whose reads are packed, if several statements read the array.
            role: the operand (`left`, `right`), if a contraction reads the array twice.
            memory: the memory of a box on an OpenCL device: `global`; `local` to a work-group, whose work-items copy
                it together; or `private` to a work-item.
            pad: the number of unused elements after each row of a box, which spread the elements of a column over the
                banks of local memory.
            buffers: 2 for double buffering: work-items fill one box while others still read the other.

        Before:

            >>> tiled = schedule(matmul).tile(i=6, j=16).microkernel("gemm_avx512_6x16")
            >>> print(tiled)
            for i_tile in range((M + 5) // 6):
                for j_tile in range((N + 15) // 16):
                    for i in range(6*i_tile, min(M, 6*i_tile + 6)):  # microkernel gemm_avx512_6x16
                        for j in range(16*j_tile, min(N, 16*j_tile + 16)):
                            for k in range(K):
                                C[i, j] += A[i, k] * B[k, j]

        After:

            >>> print(tiled.pack("A", at="i_tile"))
            for i_tile in range((M + 5) // 6):
                # pack A
                for j_tile in range((N + 15) // 16):
                    for i in range(6*i_tile, min(M, 6*i_tile + 6)):  # microkernel gemm_avx512_6x16
                        for j in range(16*j_tile, min(N, 16*j_tile + 16)):
                            for k in range(K):
                                C[i, j] += A[i, k] * B[k, j]

        Halide: `compute_at` of a copy. TVM: `cache_read`. loopy: `add_prefetch`.
        """
        return self.apply([Pack(array, at, statement, role, memory, pad, buffers)])

    def part(
        self,
        statement: str,
        /,
        where: str | None = None,
        into: str | None = None,
        terms: int | None = None,
        **size: int,
    ) -> Schedule:
        """Part a statement in two: the instances that need results of their own block of a loop, and all others.

        The others keep the name and come first; the instances that need their block are called `S_near`. The schedule's
        nest has both statements. Instead of a loop and the size of its blocks, `where` gives a condition for the
        instances of the second statement, and `into` its name. With `terms`, the first so many terms of a sum stay, and
        the second statement adds the others.

        Before:

            >>> print(schedule(solve))
            for i in range(N):
                for j in range(i):
                    x[i] += -(L[i, j] * x[j])
                x[i] = x[i] / L[i, i]

        After:

            >>> print(schedule(solve).part("S0", i=8))
            for i in range(N):
                for j in range(i - i % 8):
                    x[i] += -(L[i, j] * x[j])
                for j in range(i - i % 8, i):
                    x[i] += -(L[i, j] * x[j])
                x[i] = x[i] / L[i, i]

        By a condition:

            >>> print(schedule(solve).part("S0", where="i // 8 == j // 8", into="S2"))
            for i in range(N):
                for j in range(i - i % 8):
                    x[i] += -(L[i, j] * x[j])
                for j in range(i - i % 8, i):
                    x[i] += -(L[i, j] * x[j])
                x[i] = x[i] / L[i, i]

        Also called index set splitting. Halide: `specialize` comes close. TVM and loopy have no equivalent.
        """
        if len(size) > 1:
            raise needs(statement)
        loop, number = next(iter(size.items()), (None, 1))
        return self.apply([Part(statement, loop, number, None if where is None else Formula(where), into, terms)])

    @known_keywords
    def accumulate(self, local: str, array: str) -> Schedule:
        """Accumulate in an element of an array, in place of a local that is loaded from it or stored to it.

        Copies between the two are left out; no statement of the schedule's nest uses the local any more. Each read must
        take the same value as before, and the array must be left with the same values.

        Before:

            >>> print(schedule(lower))
            for i in range(N):
                for j in range(M):
                    w[i, j] = B[i, j]
                    for k in range(i):
                        w[i, j] += -(L[i, k] * B[k, j])
                    B[i, j] = w[i, j] / L[i, i]

        After:

            >>> print(schedule(lower).accumulate("w", "B"))
            for i in range(N):
                for j in range(M):
                    for k in range(i):
                        B[i, j] += -(L[i, k] * B[k, j])
                    B[i, j] = B[i, j] / L[i, i]

        Where no copy tells which element the local stands for:

            >>> schedule(lower).accumulate("w", "L")  # doctest: +NORMALIZE_WHITESPACE
            Traceback (most recent call last):
                ...
            poly.ScheduleError: accumulate(w, L): no statement copies an element of L to w, or computes one from
                it. Remedy: another array, or leave w as it is.

        Halide, TVM and loopy have no equivalent.
        """
        return self.apply([Accumulate(local, array)])

    @known_keywords
    def substitute(self, local: str) -> Schedule:
        """Compute the value of a local again wherever it is read: forward substitution.

        No statement of the schedule's nest uses the local any more. Each read must take its value from one statement,
        and what that computes it from must have the same values where the local is read. A read that takes its value
        from several statements is parted first.

        Before:

            >>> parted = schedule(pairs.with_sizes({"N": 100})).part("S1", where="j >= 1", into="behind")
            >>> print(parted)
            for i in range(M):
                t[i] = A[i, 0]
                B[i, 0] = A[i, 0] + t[i]
                for j in range(100):
                    if j > 0:
                        B[i, j] = A[i, j] + t[i]
                    t[i] = A[i, j]

        After:

            >>> print(parted.substitute("t"))
            for i in range(M):
                B[i, 0] = A[i, 0] + A[i, 0]
                for j in range(1, 100):
                    B[i, j] = A[i, j] + A[i, j - 1]

        Where a read takes its values from several statements:

            >>> schedule(pairs).substitute("t")  # doctest: +NORMALIZE_WHITESPACE
            Traceback (most recent call last):
                ...
            poly.ScheduleError: substitute(t): S1 reads values of S0, S2. Remedy: part('S1', where=…, into=…)
                first.

        Halide: `compute_inline`. loopy: `assignment_to_subst`.
        """
        return self.apply([Substitute(local)])

    @known_keywords
    def materialize(self, statement: str, value: str, into: str | None = None) -> Schedule:
        """Compute a part of a statement's expression before, in the elements of a local called `into`.

        What depends on few of the loops is computed once for all others: a statement that multiplies sums or scaled
        elements becomes a product of two elements, for which there are microkernels. `value` is that part as the loops
        are printed. The local, `STATEMENT_value` unless `into` says otherwise, is filled before the loops.

        Before:

            >>> print(schedule(centred))
            for i in range(M):
                for j in range(N):
                    for k in range(K):
                        C[i, j] += (A[i, k] - m[k]) * B[k, j]

        After:

            >>> print(schedule(centred).materialize("S0", "A[i, k] - m[k]", into="t"))
            if N > 0:
                for i_2 in range(M):
                    for k_2 in range(K):
                        t[i_2, k_2] = A[i_2, k_2] - m[k_2]
            for i in range(M):
                for j in range(N):
                    for k in range(K):
                        C[i, j] += t[i, k] * B[k, j]

        A part that the statement does not compute:

            >>> schedule(centred).materialize("S0", "A[i, k] + m[k]")  # doctest: +NORMALIZE_WHITESPACE
            Traceback (most recent call last):
                ...
            poly.ScheduleError: materialize(S0, A[i, k] + m[k]): S0 computes no such value. Remedy: a part of its
                expression ((A[i, k] - m[k]) * B[k, j], A[i, k] - m[k]).

        The inverse of `substitute`. Halide: `compute_root`; TVM: `cache_read` of a stage's input.

        Raises:
            ScheduleError: no such statement or value; a value without a type or bounds of its own, or that is another
                one before the loops; a name that is taken, or a microkernel that runs the statement.
        """
        return self.apply([Materialize(statement, Formula(value), into)])

    @known_keywords
    def privatize(self, array: str, *loops: str, into: str | None = None) -> Schedule:
        """Give each iteration of loops its own copy of an array, in a local called `into`.

        Iterations that only use the same memory one after the other then have any order. In each of them, every element
        has to be written before it is read. What the loops leave in the array is copied to it by the iterations that
        write an element last.

        Before:

            >>> print(schedule(reused))
            for i in range(M):
                for j in range(N):
                    t[j] = 2.0 * A[i, j]
                for j_2 in range(N):
                    B[i, j_2] = t[j_2] + t[N - j_2 - 1]

        After:

            >>> print(schedule(reused).privatize("t", "i"))
            if M > 0:
                for i in range(M):
                    for j in range(N):
                        t_private[i, j] = 2.0 * A[i, j]
                    for j_2 in range(N):
                        B[i, j_2] = t_private[i, j_2] + t_private[i, N - j_2 - 1]
                for j_3 in range(N):
                    t[j_3] = t_private[M - 1, j_3]

        An element that an iteration has not written:

            >>> schedule(solve).privatize("x", "i")  # doctest: +NORMALIZE_WHITESPACE
            Traceback (most recent call last):
                ...
            poly.ScheduleError: privatize(x, i): S0[1, 0] reads x[i] as it is before the loops (with N = 2). Remedy:
                fewer loops, or other ones.

        Also called array expansion; the copies are OpenMP's `lastprivate`. loopy: `privatize_temporaries_with_inames`.
        """
        return self.apply([Privatize(array, loops, into)])

    @known_keywords
    def reorder_storage(self, array: str, *order: int, into: str | None = None) -> Schedule:
        """Keep an array in a local, called `into`, whose dimensions have another order.

        What is read before it is written is copied to the local before all loops, and what is written is copied back
        behind them.

        Before:

            >>> print(schedule(norms))
            for k in range(N):
                for i in range(M):
                    x[k] += Q[i, k] * Q[i, k]

        After:

            >>> print(schedule(norms).reorder_storage("Q", 1, 0))
            for e in range(M):
                for e_2 in range(N):
                    Q_reordered[e_2, e] = Q[e, e_2]
            for k in range(N):
                for i in range(M):
                    x[k] += Q_reordered[k, i] * Q_reordered[k, i]

        Halide: `reorder_storage`. TVM: `transform_layout`. loopy: `tag_array_axes`.
        """
        return self.apply([ReorderStorage(array, order, into)])

    def rfactor(self, statement: str, /, into: str | None = None, **size: int) -> Schedule:
        """Sum in blocks of iterations: each so many of an iterator are summed into elements of their own.

        These are in a local, called `into`, and are added up behind the loops. Threads may share the blocks. In the
        loops around the sum, no other statement may access an element that it has added to.

        Before:

            >>> print(schedule(dot.with_sizes({"N": 1000})))
            for i in range(1000):
                s[0] += x[i] * y[i]

        After:

            >>> print(schedule(dot.with_sizes({"N": 1000})).rfactor("S0", i=500).split(i=500).parallel("i_tile"))
            for e in range(2):
                S0_sums[e, 0] = 0.0
            for i_tile in range(2):  # parallel
                for i in range(500*i_tile, 500*i_tile + 500):
                    S0_sums[i // 500, 0] += x[i] * y[i]
            for e_3 in range(2):
                s[0] += S0_sums[e_3, 0]

        TVM: `rfactor`. Halide: `rfactor`. loopy: `split_reduction_outward`.
        """
        if len(size) != 1:
            raise ScheduleError("rfactor needs a statement, and an iterator with a block size, such as i=500.")
        return self.apply([RFactor(statement, *next(iter(size.items())), into)])

    def split_iterator(self, statement: str, /, **size: int) -> Schedule:
        """Count the iterations of a statement in blocks: one of its iterators becomes two, and a loop over it, too.

        The new one counts the blocks, and `rfactor` may give each block elements of its own.

        Before:

            >>> print(schedule(dot.with_sizes({"N": 1000})))
            for i in range(1000):
                s[0] += x[i] * y[i]

        After:

            >>> print(schedule(dot.with_sizes({"N": 1000})).split_iterator("S0", i=500))
            for i_tile in range(2):
                for i in range(500):
                    s[0] += x[i + 500*i_tile] * y[i + 500*i_tile]
        """
        if len(size) != 1:
            raise ScheduleError("split_iterator needs a statement, and an iterator with a block size, such as i=500.")
        return self.apply([SplitIterator(statement, *next(iter(size.items())))])

    @known_keywords
    def microkernel(self, kernel: str, statement: str | None = None, initial: str | None = None) -> Schedule:
        """Replace the innermost loops of a contraction by a hand-tuned kernel, such as `gemm_avx512_6x64`.

        These are a loop over the kernel's rows, one over its columns, and up to three reduction loops.

        Args:
            kernel: the name of one of poly's microkernels, or of one that `poly.microkernel` added.
            statement: the contraction; by default, the first one that has no kernel yet.
            initial: a statement that sets the output to 0; the kernel takes this over at its first visit to each
                element.

        Before:

            >>> print(schedule(matmul).tile(i=6, j=16))
            for i_tile in range((M + 5) // 6):
                for j_tile in range((N + 15) // 16):
                    for i in range(6*i_tile, min(M, 6*i_tile + 6)):
                        for j in range(16*j_tile, min(N, 16*j_tile + 16)):
                            for k in range(K):
                                C[i, j] += A[i, k] * B[k, j]

        After:

            >>> print(schedule(matmul).tile(i=6, j=16).microkernel("gemm_avx512_6x16"))
            for i_tile in range((M + 5) // 6):
                for j_tile in range((N + 15) // 16):
                    for i in range(6*i_tile, min(M, 6*i_tile + 6)):  # microkernel gemm_avx512_6x16
                        for j in range(16*j_tile, min(N, 16*j_tile + 16)):
                            for k in range(K):
                                C[i, j] += A[i, k] * B[k, j]

        Exo: `replace`. TVM: `tensorize`. Halide and loopy have no equivalent.
        """
        return self.apply([Tensorize(kernel, statement, initial)])

    @known_keywords
    def loops(self, text: str, blocks: Blocks | None = None) -> Schedule:
        """Set order, blocks and parallel loops by a loop string of PARLOOPER (see poly/schedules/loopstring.py).

        Args:
            text: letters are the loops of the nest (`a` is the first), outermost first; capitals are parallel; a loop
                whose letter occurs n times is blocked n - 1 times.
            blocks: block sizes by letter, outermost first.

        Before:

            >>> print(schedule(copy))
            for i in range(M):
                for j in range(N):
                    B[i, j] = A[i, j]

        After:

            >>> print(schedule(copy).loops("bAb", blocks={"b": 64}))
            for j_tile in range((N + 63) // 64):
                for i in range(M):  # parallel
                    for j in range(64*j_tile, min(N, 64*j_tile + 64)):
                        B[i, j] = A[i, j]

        It is made of these steps:

            >>> print(repr(schedule(copy).loops("bAb", blocks={"b": 64})))
            schedule(copy).split(j=64).order('j_tile i j').parallel('i')
        """
        return self.apply(translate(text, self.tree, {} if blocks is None else blocks))

    @limited(CALL)
    def apply(self, steps: Iterable[Step]) -> Schedule:
        """Add steps; each is checked."""
        from poly.schedules.proof import checked  # a kernel from the cache proves nothing

        nest, tree, added = self.nest, self.tree, list(self.steps)
        for given in steps if is_collection(steps) else (steps,):
            step = _checked_step(given)
            if isinstance(step, Rewriting):
                nest, tree = step.rewritten(nest, tree)
            if step.reorders or not isinstance(step, Rewriting):
                tree = checked(nest, tree, step)
            added.append(step)
        return Schedule(nest, tuple(added), tree)

    def on(self, nest: Nest) -> Schedule:
        """The same steps on another nest, such as this one with fixed sizes; each is checked again."""
        return schedule(nest).apply(self.steps)

    def to_json(self) -> str:
        """The steps as JSON, for `from_json`.

        >>> print(schedule(copy).tile(i=6).parallel("i_tile").to_json())
        [{"step": "tile", "args": [], "kwargs": {"i": 6}}, {"step": "parallel", "args": ["i_tile"], "kwargs": {}}]
        """
        calls = [(step.name, *step.arguments()) for step in self.steps]
        return json.dumps([{"step": name, "args": args, "kwargs": kwargs} for name, args, kwargs in calls])

    @staticmethod
    @limited(CALL)
    def from_json(nest: Nest, text: str) -> Schedule:
        """The schedule of a nest with the steps that `to_json` wrote; each is checked again.

        Raises:
            ScheduleError: the text is not a schedule's JSON, or a step is illegal.
        """
        made = schedule(nest)
        for call in _calls(text):
            method = getattr(made, call["step"])
            try:
                given = signature(method).bind(*call["args"], **call["kwargs"])
            except TypeError as error:
                raise ScheduleError(f"the step {shown(call)} does not fit: {error}.") from error
            made = method(*given.args, **given.kwargs)
        return made

    if not TYPE_CHECKING:  # any name would pass for a step

        def __getattr__(self, name: str) -> Any:
            """The method that adds a step of a user's or a package's."""
            kind = None if name.startswith("_") else own_step(name)
            if kind is None:
                raise AttributeError(f"a schedule has no step or attribute {name!r}", name=name, obj=self)

            @wraps(kind)
            def method(*positional: Any, **named: Any) -> Schedule:
                return self.apply([kind(*positional, **named)])

            return method

    @limited(CALL)
    def __str__(self) -> str:
        from poly.schedules.show import loops_text  # most schedules are not shown

        return loops_text(self.nest, self.tree)

    def _title(self) -> str:
        return f"schedule of {self.nest.name}"

    def _parts(self) -> Iterable[Block]:
        yield Preformatted(str(self))
        yield Preformatted(repr(self), "steps")

    def __repr__(self) -> str:
        return f"schedule({self.nest.name})" + "".join(f".{call_text(step)}" for step in self.steps)

    # IPython would take the class's own `repr` before a method of a base.
    _repr_pretty_ = Displayed._repr_pretty_


def schedule(nest: Nest) -> Schedule:
    """A schedule without steps: the loops of a nest as written. A second loop `j` is called `j_2`.

    Raises:
        SpecError: not a nest.
    """
    return Schedule(checked_nest(nest), (), rename_repeats(nest.tree))


def _checked_step(given: Any) -> Step:
    """A step with valid names. Raises ScheduleError for anything else."""
    own = is_own(given)
    if not isinstance(given, KINDS) and not own:
        raise ScheduleError(f"{shown(given)} is no step. The steps of a schedule are in its attribute steps.")
    step: Step = given
    check_names(step)
    if own:
        check_text(step)
    return step


def kernel_names(text: str) -> tuple[str, ...]:
    """The names of the microkernels in a schedule's JSON.

    Raises:
        ScheduleError: the text is not a schedule's JSON.
    """
    calls = [call for call in _calls(text) if call["step"] == Tensorize.name]
    names = [next(iter(call["args"]), call["kwargs"].get("kernel")) for call in calls]
    return tuple(name for name in names if isinstance(name, str))


def _calls(text: str) -> list[dict[str, Any]]:
    """The steps in a schedule's JSON, each with its name and arguments."""
    checked = checked_text("a schedule's JSON", text, "that of to_json", ScheduleError)
    try:
        calls = json.loads(checked)
    except RecursionError:
        raise ScheduleError("this is no schedule's JSON text: it is nested too deeply.") from None
    except ValueError as error:
        raise ScheduleError(f"this is no schedule's JSON text: {error}.") from error
    for call in calls if isinstance(calls, list) else [calls]:
        if not _is_call(call):
            raise ScheduleError(f'a step is {{"step": NAME, "args": […], "kwargs": {{…}}}}, not {shown(call)}.')
    return list(calls)


def _is_call(call: Any) -> bool:
    if not isinstance(call, dict) or call.keys() != {"step", "args", "kwargs"}:
        return False
    name, arguments, keywords = call["step"], call["args"], call["kwargs"]
    return isinstance(name, str) and _is_known(name) and isinstance(arguments, list) and isinstance(keywords, dict)


def _is_known(name: str) -> bool:
    return name in STEPS or (name.isidentifier() and own_step(name) is not None)
