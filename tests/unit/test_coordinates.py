"""Iterators from the loops around a statement: tiles, flattened loops, skewed ones."""

from __future__ import annotations

import islpy as isl
import pytest

from codegen.ir.integer import Affine
from poly.ir.coordinates import Coordinates, linear, solve

BOX = isl.Set("[N] -> { S[i, j, k] : 0 <= i < 6 and 0 <= j < 5 and 0 <= k < 4 }")
ITERATORS = ("i", "j", "k")


def function(text: str, domain: isl.Set = BOX) -> isl.PwAff:
    return isl.PwAff(f"[N] -> {{ S[i, j, k] -> [({text})] }}").intersect_domain(domain)


def solved(loops: dict[str, str], domain: isl.Set = BOX) -> Coordinates | None:
    return solve(ITERATORS, domain, [(name, function(text, domain)) for name, text in loops.items()])


def value(affine: Affine, names: dict[str, int]) -> int:
    found = affine.substitute(names)
    assert not found.terms, f"{affine} names more than {sorted(names)}"
    return found.constant


def points(domain: isl.Set, sizes: dict[str, int]) -> list[tuple[int, int, int]]:
    for name, size in sizes.items():
        domain = domain.fix_val(isl.dim_type.param, domain.find_dim_by_name(isl.dim_type.param, name), isl.Val(size))
    found: list[tuple[int, int, int]] = []

    def visit(point: isl.Point) -> None:
        i, j, k = (point.get_coordinate_val(isl.dim_type.set, at).to_python() for at in range(3))
        found.append((i, j, k))

    domain.project_out(isl.dim_type.param, 0, domain.dim(isl.dim_type.param)).foreach_point(visit)
    return found


@pytest.mark.parametrize(
    "loops",
    [
        {"a": "i", "b": "j", "c": "k"},
        {"c": "k", "a": "i", "b": "j"},
        {"it": "floor(i/2)", "a": "i", "b": "j", "c": "k"},
        {"it": "floor(i/4)", "it2": "floor(i/2)", "a": "i", "jt": "floor(j/3)", "b": "j", "c": "k"},
        {"ij": "5*i + j", "c": "k"},
        {"ijt": "floor((5*i + j)/7)", "ij": "5*i + j", "c": "k"},
        {"ijk": "20*i + 4*j + k"},
        {"kij": "30*k + 5*i + j"},
        {"a": "-i", "b": "j", "c": "k"},
        {"t": "i", "u": "i + j", "c": "k"},
        {"t": "i", "u": "2*i - j", "c": "k + 3"},
        {"t": "i + N", "b": "j", "c": "k - N"},
        {"s": "i + j", "a": "i", "c": "k"},
    ],
    ids=str,
)
def test_each_iteration_is_found_again_from_the_loops(loops: dict[str, str]) -> None:
    found = solved(loops)
    assert found is not None
    for i, j, k in points(BOX, {"N": 3}):
        seen = {"i": i, "j": j, "k": k, "N": 3}
        names = {name: eval(text.replace("/", "//").replace("floor", ""), {}, seen) for name, text in loops.items()}
        names["N"] = 3
        names |= {atom: names[loop] // divisor for atom, (loop, divisor) in found.atoms.items()}
        assert tuple(value(found.iterators[it], names) for it in ITERATORS) == (i, j, k)


def test_flattened_loops_give_quotients() -> None:
    found = solved({"ijk": "20*i + 4*j + k"})
    assert found is not None
    assert dict(found.atoms) == {"ijk__20": ("ijk", 20), "ijk__4": ("ijk", 4)}
    assert str(found.iterators["j"]) == "ijk__4 - 5*ijk__20"


def test_a_flattened_loop_may_count_more_than_there_is() -> None:
    """A radix above the extent leaves holes, but each value still stands for one iteration."""
    found = solved({"ij": "8*i + j", "c": "k"})
    assert found is not None
    assert str(found.iterators["i"]) == "ij__8"


def test_an_iterator_of_one_value_needs_no_loop() -> None:
    domain = BOX.intersect(isl.Set("{ S[i, j, k] : j = 3 }"))
    found = solved({"a": "i", "c": "k"}, domain)
    assert found is not None
    assert found.iterators["j"] == Affine.of(3)


@pytest.mark.parametrize(
    "loops",
    [
        {},
        {"a": "i", "b": "j"},
        {"it": "floor(i/2)", "b": "j", "c": "k"},
        {"s": "i + j", "c": "k"},
        {"ij": "4*i + j", "c": "k"},
        {"ij": "5*i - j", "c": "k"},
        {"a": "2*i", "b": "j", "c": "k"},
        {"ij": "5*i + j + 1", "c": "k"},
        {"ij": "6*i + 4*j", "c": "k"},
    ],
    ids=str,
)
def test_loops_that_leave_iterators_open_or_need_more_than_digits(loops: dict[str, str]) -> None:
    assert solved(loops) is None


def test_a_radix_of_symbolic_extents_is_not_taken() -> None:
    domain = isl.Set("[N] -> { S[i, j, k] : 0 <= i < 6 and 0 <= j < N and 0 <= k < 4 }")
    assert solved({"ij": "5*i + j", "c": "k"}, domain) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("i", "i"), ("2*i - 3*j + 7", "2*i - 3*j + 7"), ("i + N", "N + i"), ("5", "5")],
)
def test_linear_functions(text: str, expected: str) -> None:
    found = linear(ITERATORS, function(text))
    assert found is not None
    assert sorted(str(found)) == sorted(expected)


def test_a_quotient_and_a_piecewise_function_are_not_linear() -> None:
    assert linear(ITERATORS, function("floor(i/3)")) is None
    assert linear(ITERATORS, isl.PwAff("[N] -> { S[i, j, k] -> [(i)] : i >= j; S[i, j, k] -> [(j)] : i < j }")) is None
