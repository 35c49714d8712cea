"""A nest stays the function that it was: name, docstring, signature, source, copies; and it may tune itself."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuning_fakes import Table, grid_space

import poly
from microkernels.cached import cached_property
from poly import f32
from poly.tuning import session

M, N, T = poly.sizes("M N T")


@poly.nest
def summed(x: f32[M, N], factor: f32, s: f32[M]) -> None:
    """Add the rows, times a factor."""
    for i in range(M):
        for j in range(N):
            s[i] += factor * x[i, j]


@poly.nest
def repeated(x: f32[N]):
    for _t in range(T):
        for i in range(1, N):
            x[i] = x[i - 1] + 1


def test_a_nest_has_the_attributes_of_its_function() -> None:
    for made in (summed, summed.with_sizes({"M": 3})):
        assert (made.__name__, made.__qualname__, made.__module__) == ("summed", "summed", __name__)
        assert made.__doc__ == "Add the rows, times a factor."
        assert inspect.getsource(made).startswith("@poly.nest\ndef summed(")
        assert callable(made.__wrapped__)
    assert poly.einsum("mk,kn->mn").__name__ == "einsum_mk_kn_to_mn"


def test_the_signature_is_that_of_a_call() -> None:
    assert str(inspect.signature(summed)) == "(x: f32[M, N], factor: f32, s: f32[M]) -> None"
    assert str(inspect.signature(summed.with_sizes({"M": 3}))) == "(x: f32[3, N], factor: f32, s: f32[3]) -> None"
    assert str(inspect.signature(repeated)) == "(x: f32[N], *, T: int) -> None"
    assert list(inspect.signature(poly.einsum("mk,kn->mn")).parameters) == ["A", "B", "C"]
    assert "sizes" in inspect.signature(poly.Function).parameters  # the class's own is that of its constructor


def test_copies_are_of_the_nest_even_after_a_call() -> None:
    x, s = np.ones((2, 3), np.float32), np.zeros(2, np.float32)
    summed(x, 2.0, s)
    for again in (pickle.loads(pickle.dumps(summed)), copy.deepcopy(summed)):
        assert again == summed and again.structure == summed.structure
        assert (
            again.__dask_tokenize__() == summed.__dask_tokenize__() != summed.with_sizes({"M": 2}).__dask_tokenize__()
        )
        again.reference(x, 2.0, s)
    assert s.tolist() == [18, 18]


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A made-up space and measurer, and an empty store."""
    monkeypatch.setattr(session, "_space", lambda task: grid_space())
    monkeypatch.setattr(session, "LiveMeasurer", Table)
    monkeypatch.setattr(session.TuningSession, "_yardstick", lambda self: None)
    monkeypatch.setenv("POLY_RECORDS", str(tmp_path / "records.sqlite"))
    monkeypatch.setattr(Table, "measured", [])


def self_tuning(**options: Any) -> poly.Function:
    @poly.nest(target="c:portable", threads=1, **options)
    def double(A: f32[M, N], B: f32[M, N]):
        for i in range(M):
            for j in range(N):
                B[i, j] = 2 * A[i, j]

    return double


def test_the_first_call_with_new_sizes_tunes_and_later_ones_follow_the_record(made_up: None) -> None:
    A, B = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
    double = self_tuning(tune=3)
    for _ in range(2):
        double(A, B)
    assert len(Table.measured) == 3 and (B == 2).all()
    self_tuning(tune={"seconds": 5.0})(A, B)  # another process would begin like this one: with the record
    assert len(Table.measured) == 3


def test_without_anything_to_measure_the_model_decides(made_up: None) -> None:
    nothing = np.zeros((0, 4), np.float32)
    with pytest.warns(poly.SearchWarning, match="nothing to measure. The call follows the model's schedule"):
        self_tuning(tune=True)(nothing, nothing.copy())
    assert not Table.measured


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tune": {"trails": 3}}, poly.SearchError, r"tune has no option 'trails'\. Did you mean trials\?"),
        ({"tune": 0}, poly.SearchError, "trials=0"),
        ({"tune": "fast"}, poly.SearchError, "tune must be True, a number of trials, or a dictionary"),
        ({"threads": 0}, poly.ArgumentError, "threads must be an integer from 1"),
        ({"target": 3}, poly.ArgumentError, "target must be a text"),
    ],
)
def test_bad_options_are_refused_at_once(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        poly.nest(**options)(summed.__wrapped__)


def test_dir_has_the_public_names_and_only_those() -> None:
    assert dir(poly) == sorted(poly.__all__)
    assert {"explain", "space", "parse"} <= set(dir(poly))
    assert all(hasattr(poly, name) for name in dir(poly))


SMALL = np.zeros((2, 2), np.float32)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: poly.tune(summed, trails=3), "trials"),
        (lambda: poly.tune(summed, M=2, N=2, second=3), "seconds"),
        (lambda: poly.compile(summed, thread=2), "threads"),
        (lambda: poly.compile(summed, m=2), "M"),
        (lambda: poly.compile(summed.with_sizes({"M": 2}), scheduel=None), "schedule"),
        (lambda: poly.space(summed, traget="c"), "target"),
        (lambda: poly.explain(poly.schedule(summed), thread=1), "threads"),
        (lambda: poly.compare(poly.schedule(summed), poly.schedule(summed), traget="c"), "target"),
        (lambda: summed(SMALL, 1.0, SMALL[0], thread=2), "threads"),
        (lambda: summed(SMALL, 1.0, SMALL[0], m=2), "M"),
        (lambda: poly.compile(summed)(SMALL, 1.0, SMALL[0], treads=2), "threads"),
        (lambda: poly.compile(summed)(SMALL, 1.0, facter=SMALL[0]), "factor"),
        (lambda: poly.schedule(summed).skew("j", bye="i"), "by"),
        (lambda: poly.schedule(summed).pack("x", at="i", memry="local"), "memory"),
        (lambda: poly.schedule(summed).tile(i=2).tile(i_tiel=2), "i_tile"),
    ],
)
def test_a_misspelt_keyword_is_named(call: Any, meant: str) -> None:
    with pytest.raises(poly.PolyError, match=rf"Did you mean {meant}\b"):
        call()


def test_a_kernel_is_pickled_and_copied_after_calls_too() -> None:
    kernel = poly.compile(summed, N=8, target="c:portable", threads=1)
    x, s = np.ones((2, 8), np.float32), np.zeros(2, np.float32)
    kernel(x, 2.0, s)
    for again in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
        assert (again.source, again.schedule.steps) == (kernel.source, kernel.schedule.steps)
        assert again.__dask_tokenize__() == kernel.__dask_tokenize__()
        again(x, 2.0, s)
    assert s.tolist() == [48, 48]


def test_attributes_hold_no_lock_of_their_class() -> None:
    """So that no thread that asks isl waits for one that computes an attribute, and needs isl for it."""
    begun, go = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits: bool) -> None:
            self.waits = waits

        @cached_property
        def value(self) -> bool:
            begun.set()
            return not self.waits or go.wait(60)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lambda: Slow(True).value)
        assert begun.wait(60) and pool.submit(lambda: Slow(False).value).result(60)
        go.set()
        assert first.result(60)
