"""Einsums as nests: against NumPy, their loops, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from microkernels.dtypes import f32, f64, i32
from poly.analysis.bounds import check
from poly.errors import SpecError
from poly.frontends.einsum import einsum, parse_subscripts
from poly.ir.nest import Nest
from poly.ir.reference import reference

EXTENTS = dict(zip("abcdijkmnI", [2, 3, 4, 1, 3, 2, 4, 2, 3, 2], strict=True))


def agrees(subscripts: str) -> None:
    """The reference run of the einsum gives NumPy's result, as one nest of loops and in the order of the least time."""
    for nest in (einsum(subscripts, dtype=f64), einsum(subscripts, dtype=f64, price=lambda work, moved: work + moved)):
        check(nest)
        gives_numpy_s(nest, subscripts)


def gives_numpy_s(nest: Nest, subscripts: str) -> None:
    parsed = parse_subscripts(subscripts)
    generator = np.random.default_rng(len(subscripts))
    operands = [generator.standard_normal([EXTENTS[x] for x in letters]) for letters in parsed.operands]
    output = np.full([EXTENTS[x] for x in parsed.output], np.nan)
    reference(nest, (*operands, output))
    np.testing.assert_allclose(output, np.einsum(subscripts, *operands), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "subscripts",
    ["mk,kn->mn", "ii->i", "ii", "ij->ji", "ij->", "i,i->", "ij,jk", "ba", "abc,cd->abd", "ab,bc,cd->ad", ",i->i",
     "aIj,Ij->a", "iji->j", " mk , kn -> nm ", "a,b,c->cba", "ij,ij->ij"],
)  # fmt: skip
def test_it_is_numpy_s_einsum(subscripts: str) -> None:
    agrees(subscripts)


@st.composite
def subscripts(draw: st.DrawFn) -> str:
    letters = st.text(st.sampled_from("abijk"), min_size=1, max_size=3)
    operands = draw(st.lists(letters, min_size=1, max_size=4))
    text = ",".join(operands)
    if draw(st.booleans()):
        return text
    available = sorted(set("".join(operands)))
    return f"{text}->{''.join(draw(st.permutations(available)))[: draw(st.integers(0, len(available)))]}"


@settings(deadline=None, max_examples=60)
@given(subscripts())
def test_any_einsum_is_numpy_s(text: str) -> None:
    agrees(text)


@dataclass(frozen=True)
class OfShapes:
    """An einsum with ellipses, and dimensions of one element; some indices are extents that stay open."""

    text: str
    shapes: list[tuple[int, ...]]
    optimize: object
    opened: bool


@st.composite
def of_shapes(draw: st.DrawFn) -> OfShapes:
    extents = dict(zip("abijk", draw(st.permutations([1, 2, 3, 2, 3])), strict=True))
    broadcast = draw(st.lists(st.integers(1, 3), max_size=2))
    terms, shapes = [], []
    for letters in draw(st.lists(st.text(st.sampled_from("abijk"), max_size=3), min_size=1, max_size=4)):
        one = st.booleans() if len(set(letters)) == len(letters) else st.just(False)
        shape = [1 if draw(one) and draw(one) else extents[letter] for letter in letters]
        rank = draw(st.integers(0, len(broadcast)))
        at = draw(st.integers(0, len(letters)))
        dots = [1 if draw(st.booleans()) else extent for extent in broadcast[len(broadcast) - rank :]]
        dotted = bool(dots) or draw(st.booleans())
        terms.append(letters[:at] + "..." * dotted + letters[at:])
        shapes.append((*shape[:at], *dots, *shape[at:]))
    text = ",".join(terms)
    if draw(st.booleans()):
        available = sorted(set(text) & set(extents))
        output = "".join(draw(st.permutations(available)))[: draw(st.integers(0, len(available)))]
        at = draw(st.integers(0, len(output)))
        text += f"->{output[:at]}{'...' * ('...' in text)}{output[at:]}"
    path = np.einsum_path(text, *map(np.empty, shapes), optimize="greedy")[0]
    optimize = draw(st.sampled_from([True, False, "greedy", "optimal", path, path[1:]]))
    return OfShapes(text, shapes, optimize, draw(st.booleans()))


@settings(deadline=None, max_examples=100)
@given(of_shapes())
def test_ellipses_and_dimensions_of_one_are_numpy_s(drawn: OfShapes) -> None:
    told = [tuple(None if drawn.opened and e > 1 else e for e in shape) for shape in drawn.shapes]
    nest = poly.einsum(drawn.text, shapes=told, optimize=drawn.optimize, dtype=f64)
    check(nest)
    generator = np.random.default_rng(len(drawn.text))
    arrays = [generator.standard_normal(shape) for shape in drawn.shapes]
    expected = np.einsum(drawn.text, *arrays)
    output = np.full(np.shape(expected), np.nan)
    reference(nest, (*(a if a.ndim else float(a) for a in arrays), output))
    np.testing.assert_allclose(output, expected, rtol=1e-12, atol=1e-12)


def test_its_loops_are_those_one_would_write() -> None:
    nest = einsum("mk,kn->mn", dtype=f64)
    assert (
        nest.source
        == """\
def einsum_mk_kn_to_mn(A: f64[M, K], B: f64[K, N], C: f64[M, N]):
    for m in range(M):
        for n in range(N):
            C[m, n] = 0.0
            for k in range(K):
                C[m, n] += A[m, k] * B[k, n]
"""
    )
    assert [statement.op for statement in nest.statements] == ["=", "+"]


def test_several_operands_are_multiplied_two_at_a_time() -> None:
    nest = poly.einsum("ij,jk,kl->il", i=1000, j=1000, k=10, l=1000)
    assert [str(statement.target.array) for statement in nest.statements] == ["T1", "T1", "D", "D"]
    assert str(nest.array("T1")) == "local T1: f32[1000, 10]"
    other = poly.einsum("ij,jk,kl->il", i=10, j=20, k=1000, l=1000)
    assert str(other.array("T1")) == "local T1: f32[10, 1000]"


def test_without_reassociation_the_products_are_added_one_by_one() -> None:
    assert [s.op for s in poly.einsum("ij,jk,kl->il", reassociate=False).statements] == ["=", "+"]


def test_what_one_operand_alone_has_is_summed_before() -> None:
    nest = poly.einsum("ij,jk->k", i=5, j=6, k=7)
    assert str(nest.array("T1")) == "local T1: f32[6]"


def test_without_a_sum_there_is_one_assignment() -> None:
    (statement,) = einsum("i,j->ij").statements
    assert statement.op == "="


def test_integers_start_at_an_integer() -> None:
    assert "C[()] = 0\n" in einsum("i,i->", dtype=i32).source


def test_sizes_are_given_by_the_letter() -> None:
    nest = einsum("mk,kn->mn", m=4, k=5)
    assert (nest.sizes, nest.fixed, nest.arrays[0].dtype) == (("N",), (("M", 4), ("K", 5)), f32)
    assert str(nest.array("A")) == "A: f32[4, 5]"


def test_a_size_does_not_take_the_name_of_an_array_or_of_another_index() -> None:
    assert einsum("abc,cd->abd").sizes == ("Na", "Nb", "Nc", "D")
    assert einsum("iI->I").sizes == ("Ni", "NI")


@pytest.mark.parametrize(
    ("text", "at", "sentence", "remedy"),
    [
        ("mk,kn->mx", 8, "the output's index `x` is in no operand", "Take it out, or name it there."),
        ("ij->ii", 5, "the output has the index `i` twice", "Name it once."),
        ("i...->i", 1, "how many dimensions `...` stands for is only known with the operands",
         "Give the arrays, einsum(subscripts, A, B), or their shapes, shapes=[(8, 4, 5), (5, 6)]."),
        ("i.j->i", 1, "a single dot", "One ellipsis `...` stands for all dimensions that have no letter."),
        ("j,...i...", 6, "a second ellipsis in one operand",
         "One ellipsis `...` stands for all dimensions that have no letter."),
        ("i->->i", 3, "`-` is neither a letter, an ellipsis `...` nor the one arrow `->`",
         "Write it like `mk,kn->mn`."),
        ("i1", 1, "`1` is neither a letter, a comma, an ellipsis `...` nor the one arrow `->`",
         "Write it like `mk,kn->mn`."),
        ("ij->i,j", 5, "`,` is neither a letter, an ellipsis `...` nor the one arrow `->`",
         "Write it like `mk,kn->mn`."),
    ],
)  # fmt: skip
def test_malformed_subscripts_are_refused(text: str, at: int, sentence: str, remedy: str) -> None:
    with pytest.raises(SpecError) as caught:
        einsum(text)
    assert str(caught.value) == f"einsum: {sentence}\n    {text}\n    {' ' * at}^\n{remedy}"


def test_a_size_of_no_index_is_refused() -> None:
    with pytest.raises(SpecError) as caught:
        einsum("mk,kn->mn", x=3)
    assert str(caught.value) == "einsum('mk,kn->mn') has no index x to give a size to. Its indices: m, n, k."


def test_a_size_that_is_no_extent_is_refused() -> None:
    with pytest.raises(SpecError, match="the size M of einsum_mk_kn_to_mn must be an integer from 0 up, not -3"):
        einsum("mk,kn->mn", m=-3)
