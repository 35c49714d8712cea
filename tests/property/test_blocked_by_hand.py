"""LU factorisations blocked by hand: any block, any kernel, any copies that are accepted compute the same."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations

import numpy as np
import pytest
from classic_nests import lu
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from poly import Nest, Schedule, ScheduleError, f64
from poly.ir.paths import paths
from poly.ir.tree import Band

N = poly.sizes("N")
KERNELS = ((2, 4), (4, 4), (3, 6))
"""Rows and columns of microkernels for portable C."""


@poly.nest
def eliminate(A: f64[N, N]):
    for k in range(N):
        for i in range(k + 1, N):
            A[i, k] /= A[k, k]
            for j in range(k + 1, N):
                A[i, j] -= A[i, k] * A[k, j]


@poly.nest
def updates(A: f64[N, N]):
    for k in range(N):
        for i in range(k + 1, N):
            for j in range(k + 1, N):
                A[i, j] -= A[i, k] * A[k, j]


def loops(made: Schedule, statement: str) -> list[str]:
    """The loops around a statement, outermost first."""
    return [band.name for band in paths(made.tree)[statement] if isinstance(band, Band)]


def blocked_elimination(nest: Nest, block: int) -> Schedule:
    """The updates of later blocks run behind their block, for each pivot in it."""
    made = poly.schedule(nest).enclose("block", S0=f"k // {block}", S1=f"k // {block}")
    later = f"k // {block} < i // {block} and k // {block} < j // {block}"
    return made.part("S1", where=later, into="trailing").distribute("k", last="trailing")


def blocked_lu(nest: Nest, block: int, rows: int) -> Schedule:
    """The same for a factorisation by rows, whose updates are two statements, without the squares on the diagonal."""
    made = poly.schedule(nest).enclose("block", S0=f"k // {block}", S1=f"j // {block}", S2=f"k // {block}")
    made = made.part("S0", where=f"k // {block} < j // {block}", into="below").distribute("i", last="below")
    made = made.part("S2", where=f"k // {block} < i // {block}", into="above").distribute("i", last="above")
    for name in ("below", "above"):
        made = made.part(name, where=f"i // {rows} == j // {rows}", into=f"{name}_square")
        made = made.distribute(loops(made, name)[1], last=f"{name}_square")
    return made


def in_tiles(made: Schedule, name: str, rows: int, columns: int, copies: tuple[str, ...]) -> Schedule:
    """The trailing update by a microkernel that reads copies of the operands in these roles."""
    i, j, k = (loops(made, name)[1:][at] for at in ((0, 1, 2) if name != "trailing" else (1, 2, 0)))
    made = made.split(**{i: rows, j: columns})
    around = loops(made, name)
    i_tile, j_tile = (around[around.index(loop) - 1] for loop in (i, j))
    made = made.order(" ".join((j_tile, i_tile, i, j, k)))
    for role in copies:
        made = made.pack("A", at=None if role == "left" else j_tile, statement=name, role=role)
    return made.microkernel(f"gemm_portable_{rows}x{columns}", statement=name)


def check(nest: Nest, made: Schedule, size: int) -> None:
    """A schedule factorises a random matrix that needs no pivots; the product of its factors is the matrix."""
    matrix = np.random.default_rng(size).random((size, size)) + size * np.eye(size)
    factors = matrix.copy()
    poly.compile(nest, schedule=made, target="c:portable", threads=1)(factors)
    product = (np.tril(factors, -1) + np.eye(size)) @ np.triu(factors)
    np.testing.assert_allclose(product, matrix, rtol=0, atol=8 * size * np.finfo(np.float64).eps * size)


@settings(max_examples=6)
@given(
    st.integers(2, 6),
    st.sampled_from(KERNELS),
    st.sampled_from([(), ("left",), ("right",), ("left", "right")]),
    st.data(),
)
def test_a_blocked_elimination(block: int, tile: tuple[int, int], copies: tuple[str, ...], data: st.DataObject) -> None:
    size = data.draw(st.integers(block + 1, 3 * block + 1))
    nest = eliminate.with_sizes({"N": size}) if data.draw(st.booleans()) else eliminate
    check(nest, in_tiles(blocked_elimination(nest, block), "trailing", *tile, copies), size)


@settings(max_examples=6)
@given(st.integers(1, 3), st.sampled_from(KERNELS), st.data())
def test_a_blocked_factorisation_by_rows(tiles: int, tile: tuple[int, int], data: st.DataObject) -> None:
    """Tiles on a triangle's edge begin further on than the panel that they read."""
    rows, columns = tile
    size = data.draw(st.integers(tiles * rows + rows + 1, 3 * tiles * rows + 2))
    nest = lu.with_sizes({"N": size})
    made = blocked_lu(nest, tiles * rows, rows)
    copies = data.draw(st.sampled_from([c for count in range(3) for c in combinations(("left", "right"), count)]))
    for name in ("below", "above"):
        for chosen in (copies, ()):
            with suppress(ScheduleError):
                made = in_tiles(made, name, rows, columns, chosen)
                break
    assert repr(made).count("microkernel") == 2
    check(nest, made, size)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            lambda: poly.schedule(lu).enclose("block", S0="k // 4", S1="i // 4", S2="k // 4"),
            "enclose(block, S0=k // 4, S1=i // 4, S2=k // 4) is illegal: S1[4, 0] must run before S0[4, 1, 0] "
            "(flow on A, with N = 5).",
        ),
        (
            lambda: poly.schedule(eliminate).enclose("block", S0="k // 4", S1="k // 4").distribute("k", last="S1"),
            "distribute(k, last=S1) is illegal: S1[0, 2, 1] must run before S0[1, 2] (flow on A, with N = 3).",
        ),
        (
            lambda: (
                poly.schedule(updates)
                .tile(i=2, j=4, k=4)
                .order("k_tile i_tile j_tile")
                .microkernel("gemm_portable_2x4")
            ),
            "microkernel(gemm_portable_2x4): in a tile, iterations of i, j, k read elements of A that others of S0 "
            "write, and a tile runs them in any order. Remedy: tile the loops such that no tile has both, or part the "
            "statement first.",
        ),
        (
            lambda: blocked_elimination(eliminate, 4).pack("A", at="block", role="left"),
            "pack(A): the same loops write elements of A that S1 reads after that; their copy would be too old.",
        ),
    ],
)
def test_what_would_run_too_early_is_refused(step, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        step()
    assert str(caught.value).startswith(message)
