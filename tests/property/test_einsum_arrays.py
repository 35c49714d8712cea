"""Einsums of arrays at once: results, layouts, types, orders of products, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest

import poly
from microkernels.dtypes import f64
from poly.errors import SpecError
from poly.frontends import contraction_order

RNG = np.random.default_rng(7)


def arrays(*shapes: Sequence[int]) -> list[np.ndarray]:
    return [RNG.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("...ij,...jk->...ik", [(3, 1, 17, 5), (2, 5, 33)]),
        ("ij,jk,kl", [(7, 40), (40, 3), (1, 9)]),
        ("iij,j->i", [(5, 5, 6), (6,)]),
        ("i,i", [(70,), (1,)]),
        (",...->...", [(), (4, 0, 3)]),
    ],
)
def test_the_result_is_numpy_s(subscripts: str, shapes: list[Sequence[int]]) -> None:
    operands = arrays(*shapes)
    expected = np.einsum(subscripts, *operands)
    found = poly.einsum(subscripts, *operands)
    assert type(found) is type(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_arrays_in_any_layout_give_the_same() -> None:
    """Turned and Fortran-ordered ones as they are; with gaps, backwards, misaligned or broadcast ones too."""
    a, b = arrays((6, 5, 7), (7, 9))
    expected = np.einsum("aij,jk->aik", a, b)
    misaligned = np.frombuffer(b"x" + b.tobytes(), np.float64, offset=1).reshape(b.shape)
    gaps = np.full((14, 18), np.nan)
    gaps[::2, ::2] = b
    for one in (a, np.asfortranarray(a), a.transpose(1, 2, 0).copy().transpose(2, 0, 1), a[::-1].copy()[::-1]):
        for other in (np.asfortranarray(b), misaligned, gaps[::2, ::2]):
            np.testing.assert_allclose(poly.einsum("aij,jk->aik", one, other), expected, rtol=1e-12)
    row = np.broadcast_to(a[0, 0], (9, 7))
    np.testing.assert_allclose(poly.einsum("kj,jk->k", row, b), row[0] @ b, rtol=1e-12)


def test_the_result_goes_into_an_array_in_any_order() -> None:
    a, b = arrays((6, 7), (7, 9))
    for out in (np.full((6, 9), np.nan), np.full((6, 9), np.nan, order="F"), np.full((6, 20), np.nan)[:, :9]):
        assert poly.einsum("ij,jk", a, b, out=out) is out
        np.testing.assert_allclose(out, a @ b, rtol=1e-12)
    with pytest.raises(poly.ArgumentError, match=r"out has shape \(9, 6\); the result has \(6, 9\)"):
        poly.einsum("ij,jk", a, b, out=np.empty((9, 6)))
    square = np.ones((4, 4))
    with pytest.raises(poly.ArgumentError, match="shares memory"):
        poly.einsum("ij,jk", square, square, out=square)


def test_types_are_those_of_numpy() -> None:
    a, b = np.arange(12, dtype=np.int32).reshape(3, 4), RNG.random(4, np.float32)
    for operands in ((a, b), (a, [1, 2, 3, 4]), (a.astype(np.int8), b), (a.astype(">i4"), a[0])):
        found, expected = poly.einsum("ij,j", *operands), np.einsum("ij,j", *operands)
        assert found.dtype == expected.dtype.newbyteorder("=")
        np.testing.assert_allclose(found, expected)
    assert poly.einsum("ij,j", a, b.astype(np.float64), dtype=f64).dtype == np.float64
    with pytest.raises(poly.ArgumentError, match="operand 1 has dtype float64, which f32 does not represent"):
        poly.einsum("ij,j", a[:, :2].astype(np.int8), np.ones(2), dtype=poly.f32)
    with pytest.raises(poly.ArgumentError, match=r"operands of int32, .* make .*; poly computes with"):
        poly.einsum("ij,j", a, b.astype(np.longdouble))
    with pytest.raises(poly.ArgumentError, match="operand 1 is a masked array"):
        poly.einsum("ij,j", a, np.ma.masked_array(b))
    with pytest.raises(poly.ArgumentError, match="operands of object make object"):
        poly.einsum("i", object())


@pytest.mark.parametrize("made", ["with its sizes", "compiled", "pickled"])
def test_sizes_decide_the_order_wherever_they_come_from(made: str) -> None:
    wide, long = {"i": 1000, "j": 1000, "k": 10, "l": 1000}, {"i": 10, "j": 20, "k": 1000, "l": 1000}
    for sizes, shape in ((wide, [1000, 10]), (long, [10, 1000])):
        if made == "with its sizes":
            nest = poly.einsum("ij,jk,kl->il", **sizes)
        else:
            chain = poly.einsum("ij,jk,kl->il")
            opened = pickle.loads(pickle.dumps(chain)) if made == "pickled" else chain
            nest = poly.compile(opened, sizes={name.upper(): value for name, value in sizes.items()}).nest
        assert str(nest.array("T1")) == f"local T1: f32{shape}"


def test_a_schedule_of_a_chain_is_for_its_order() -> None:
    chain = poly.einsum("ij,jk,kl->il")
    kernel = poly.compile(chain, schedule=poly.schedule(chain), sizes={"I": 1000, "J": 1000, "K": 10, "L": 1000})
    assert kernel.nest.structure == chain.structure


@pytest.mark.parametrize(
    ("optimize", "arrays"),
    [
        (False, ["D", "D"]),
        (True, ["T1", "T1", "D", "D"]),
        ("greedy", ["T1", "T1", "D", "D"]),
        ("optimal", ["T1", "T1", "D", "D"]),
        (["einsum_path", (1, 2), (0, 1)], ["T1", "T1", "D", "D"]),
        ([(0, 1, 2)], ["D", "D"]),
    ],
)
def test_the_order_can_be_chosen(optimize: object, arrays: list[str]) -> None:
    nest = poly.einsum("ij,jk,kl->il", i=9, j=8, k=7, l=6, optimize=optimize)
    assert [statement.target.array for statement in nest.statements] == arrays
    if isinstance(optimize, list) and len(arrays) == 4:
        assert str(nest.array("T1")) == "local T1: f32[8, 6]"


@pytest.mark.parametrize(
    ("optimize", "problem"),
    [
        ("fast", "optimize is True, False, 'greedy', 'optimal' or a path"),
        ([], "optimize is True, False, 'greedy', 'optimal' or a path"),
        ([(0, 1)], r"the path leaves 2 operands\. Its last product must take all that are left"),
        ([(0, 3), (0, 1)], r"\(0, 3\) is no product: each operand is named once, and the places 0 to 2 are left"),
        ([(0, 0), (0, 1)], r"\(0, 0\) is no product"),
        ([(0, 1, 2), (0, 1)], r"\(0, 1\) is no product: each operand is named once, and only the place 0 are left"),
    ],
)
def test_what_is_no_order_is_refused(optimize: object, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        poly.einsum("ij,jk,kl->il", optimize=optimize)


def test_an_order_needs_reassociation() -> None:
    with pytest.raises(SpecError, match=r"optimize='greedy' reassociates sums, which reassociate=False forbids"):
        poly.einsum("ij,jk,kl->il", optimize="greedy", reassociate=False)
    with pytest.raises(SpecError, match="the orders of 15 operands are too many"):
        poly.einsum(",".join(["ij"] * 15), optimize="optimal")


@pytest.mark.parametrize(
    ("subscripts", "shapes", "problem"),
    [
        (
            "ij,jk",
            [(2, 3), (4, 5)],
            "einsum: the index `j` is 3 in operand 0, and 4 in operand 1\n    ij,jk\n       ^\n",
        ),
        ("ii", [(2, 3)], "einsum: the index `i` is 2 and 3 in operand 0\n"),
        ("ii", [(1, 3)], "einsum: the index `i` is 1 and 3 in operand 0\n"),
        ("...i,i...", [(2, 7), (7, 3)], "einsum: dimension -1 of `...` is 2 in operand 0, and 3 in operand 1\n"),
        ("ij,j", [(2,), (2,)], "einsum: operand 0 has 2 indices, and its shape (2,) has 1\n"),
        ("ij,j", [(2, 3), (3, 4)], "einsum: operand 1 has 1 index, and its shape (3, 4) has 2\n"),
        ("...i->i", [(2, 3)], "einsum: the output has no `...`, and the dimensions that it stands for in the operands"),
        ("ij,jk", [(2, 3)], "einsum: ij,jk has 2 operands, and 1 given."),
    ],
)
def test_shapes_that_do_not_fit_are_refused(subscripts: str, shapes: list[Sequence[int]], problem: str) -> None:
    with pytest.raises(SpecError) as of_arrays:
        poly.einsum(subscripts, *map(np.ones, shapes))
    assert str(of_arrays.value).startswith(problem)
    with pytest.raises(SpecError) as of_shapes:
        poly.einsum(subscripts, shapes=shapes)
    assert str(of_shapes.value) == str(of_arrays.value)
    with pytest.raises((ValueError, IndexError)):
        np.einsum(subscripts, *map(np.ones, shapes))


def test_arguments_of_the_other_form_are_refused() -> None:
    a = np.ones((2, 2))
    with pytest.raises(SpecError, match=r"the sizes come with the arrays\. Leave shapes out"):
        poly.einsum("ij->ji", a, shapes=[(2, 2)])
    with pytest.raises(SpecError, match=r"the sizes come with the arrays\. Leave i out"):
        poly.einsum("ij->ji", a, i=2)
    with pytest.raises(SpecError, match="out is for an einsum of arrays"):
        poly.einsum("ij->ji", out=a)
    with pytest.raises(SpecError, match="i = 3 is given, and the shapes tell i = 2"):
        poly.einsum("ij->ji", shapes=[(2, None)], i=3)
    with pytest.raises(SpecError, match="an extent of operand 0 must be an integer from 0 up, not -1"):
        poly.einsum("ij->ji", shapes=[(2, -1)])


LEFT = [(0, 1), *((0, last) for last in range(10, 0, -1))]
RIGHT = [(last - 1, last) for last in range(11, 0, -1)]
"""A chain of twelve operands, multiplied from the left and from the right."""


@pytest.mark.parametrize(("wide", "first"), [("a", (10, 11)), ("m", (0, 1))])
def test_beyond_what_is_searched_the_better_of_two_orders_is_taken(
    wide: str, first: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    operands = [a + b for a, b in zip("abcdefghijkl", "bcdefghijklm", strict=True)]
    extents = {letter: 1000 if letter == wide else 10 for letter in "abcdefghijklm"} | {"am".replace(wide, ""): 1}
    monkeypatch.setattr(contraction_order, "_greedy", lambda *_: LEFT)
    monkeypatch.setattr(contraction_order, "_of_opt_einsum", lambda *_: iter([tuple(RIGHT)]))
    steps = contraction_order.contraction_order(operands, "am", extents, lambda work, moved: work)
    assert steps[0].values == first
    assert len(steps) == 11
