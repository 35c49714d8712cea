"""Nests of every kind are measured, and their results can be trusted."""

from __future__ import annotations

from dataclasses import replace

import classic_nests
import doc_nests
import islpy as isl
import pytest
from artificial import MATMUL, default_space, is_good, measure, tiled_space
from contractions import Contraction

import poly
from codegen.ir.integer import Affine
from poly import f32
from poly.errors import SearchError
from poly.ir.nest import Nest
from poly.measure import trusted


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_caches(threads: int, cold: bool) -> None:
    for trial in measure(tiled_space(MATMUL, "i", threads=threads), 0, 1, incumbent=0, cold=cold):
        assert is_good(trial)


def test_open_sizes() -> None:
    """Kernels of a symbolic nest are measured at the sizes that the space names."""
    (trial,) = measure(tiled_space(doc_nests.matmul, "i", M=20, N=16, K=12), 1, incumbent=0)
    assert is_good(trial)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("cholesky", {"N": 40}),
        ("jacobi1d", {"N": 60, "T": 9}),
        ("softmax", {"M": 12, "N": 30}),
        ("trisolve", {"N": 200}),
        ("ints", {"M": 12, "N": 30}),
        ("tanhs", {"M": 12, "N": 30}),
        ("prod", {"N": 3000}),
        ("dot", {"N": 3000}),
    ],
)
def test_the_default_schedule_of_every_nest_is_right(name: str, sizes: dict[str, int]) -> None:
    """Also where a nest divides, takes roots, multiplies up, or is summed in another order than written."""
    (trial,) = measure(default_space(getattr(classic_nests, name).with_sizes(sizes)), 0)
    assert is_good(trial), trial.failure


@pytest.mark.parametrize(("form", "spec"), [("+=", "ik,kj->ij"), ("=", "ik,kj->ij"), ("=", "bik,bkj->bij")])
def test_a_large_result_is_vouched_for_by_some_rows(form: str, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops as written compute these rows alone; where they don't agree, nothing is measured."""
    monkeypatch.setattr(trusted, "PLAIN", 20_000)
    contraction = Contraction(spec, f32, form)
    space = default_space(contraction.nest().with_sizes(contraction.sizes({"b": 3, "i": 50, "j": 40, "k": 30})))
    (trial,) = measure(space, 0)
    assert is_good(trial), trial.failure
    monkeypatch.setattr(trusted, "default_schedule", lambda nest, *rest: poly.schedule(without_last_term(nest)))
    with pytest.raises(SearchError, match=r"cannot be measured: .* wrong result: some rows of C\["):
        measure(space, 0)


def without_last_term(nest: Nest) -> Nest:
    """The nest with a sum that lacks one term."""
    *others, last = nest.statements
    shorter = last.domain.intersect(isl.Set(f"{{ {last.name}[{', '.join(last.iterators)}] : k < 29 }}"))
    return replace(nest, statements=(*others, replace(last, domain=shorter)))


def test_a_nest_whose_loops_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLY_CC", "/bin/false")
    with pytest.raises(SearchError, match=r"^matmul cannot be measured: .*the C compiler failed"):
        measure(tiled_space(MATMUL, "i"), 0)


def test_a_nest_that_leaves_its_arrays() -> None:
    nest = replace(MATMUL, arrays=tuple(replace(a, shape=(Affine.of(11), *a.shape[1:])) for a in MATMUL.arrays))
    with pytest.raises(poly.SpecError, match="outside"):
        measure(tiled_space(nest, "i"), 0)
