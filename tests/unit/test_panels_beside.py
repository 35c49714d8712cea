"""Panels whose lanes lie side by side are copied in groups, but only where each group begins at a whole panel."""

from __future__ import annotations

import numpy as np
import pytest
from shared_nests import matmul

import poly
from codegen.ir.integer import Linear
from poly.lowering.calls import joined

SIZES = {"M": 13, "N": 77, "K": 9}
CALL = "pack_beside_f32_portable(B_panels"


def packed(nest: poly.Nest, blocks: int | None, by_panel: bool) -> poly.Schedule:
    """A product by tiles of 6 by 8 with the columns in blocks, and a copy of B for each block or each panel."""
    made = poly.schedule(nest)
    columns = ["j_tile", "j_tile2"] if blocks else ["j_tile"]
    cut = (made.split(j=blocks) if blocks else made).split(j=8, i=6).order(" ".join((*columns, "i_tile i j k")))
    at = columns[-1] if by_panel else columns[-2] if blocks else None
    return cut.pack("B", at=at).microkernel("gemm_portable_6x8")


@pytest.mark.parametrize("known", [True, False], ids=["known", "open"])
@pytest.mark.parametrize(
    ("blocks", "by_panel", "grouped"),
    [
        (None, False, True),
        (32, False, True),
        (48, False, True),
        (20, False, False),
        (8, False, False),
        (None, True, False),
    ],
)
def test_groups_begin_at_whole_panels(blocks: int | None, by_panel: bool, grouped: bool, known: bool) -> None:
    nest = matmul.with_sizes(SIZES) if known else matmul
    kernel = poly.compile(nest, schedule=packed(nest, blocks, by_panel), target="c:portable", threads=1)
    assert (CALL in kernel.source) == grouped
    check(kernel)


def test_threads_share_the_groups() -> None:
    nest = matmul.with_sizes(SIZES)
    made = packed(nest, None, False).parallel("j_tile")
    kernel = poly.compile(nest, schedule=made, target="c:portable", threads=2)
    assert CALL in kernel.source and kernel.source.count("#pragma omp parallel for") == 2
    check(kernel)


def check(kernel: poly.Kernel) -> None:
    """The product of whole numbers is exact in any order."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-4, 5, shape).astype("f4") for shape in ((13, 9), (9, 77), (13, 77)))
    expected = c + a @ b
    kernel(a, b, c)
    np.testing.assert_array_equal(c, expected)


def test_loops_that_go_on_where_the_inner_one_ends_are_one() -> None:
    """The taps of c, r, s are neighbours in W[k, c, r, s] and in panels, those of an image's rows are not."""
    weights, image = [(3, 1, 16), (3, 3, 48), (8, 9, 144)], [(3, 1, 16), (3, 10, 48), (8, 100, 144)]
    assert [tuple(part.number for part in level) for level in joined(numbers(weights))] == [(72, 1, 16)]
    assert joined(numbers(image)) == numbers(image)
    assert joined(numbers([(3, 1, 16), (3, 10, 48), (8, 30, 144)])) == numbers([(3, 1, 16), (24, 10, 48)])


def numbers(levels: list[tuple[int, int, int]]) -> list[tuple[Linear, Linear, Linear]]:
    return [(Linear.of(count), Linear.of(first), Linear.of(second)) for count, first, second in levels]
