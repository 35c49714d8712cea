"""What a user's nest is measured against: compilers by name, functions in Python, and other nests."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender, Failed, Solver
from benchmarks.ours import NAME, Poly
from benchmarks.own.nest import loaded
from benchmarks.peers.numpy_peer import limit_threads
from codegen.calls.clock import Timed
from microkernels.errors import shown
from poly.commands.nestfile import load_value
from poly.errors import PolyError, SpecError
from poly.ir.nest import Nest
from poly.ir.sizes import deduce_sizes
from poly.timing.benchmark import python_timed, restorer

C = ".c"
Function = Callable[..., Any]


@dataclass(frozen=True)
class OtherNest:
    """Another nest on the same arrays, as a solver."""

    where: str
    dtype: str | None
    ours: Poly

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender:
        """Compile it. Raises Failed if it does not take these arrays."""
        try:
            nest = loaded(self.where, self.dtype)
            known = {name: value for name, value in case.sizes.items() if name in nest.sizes}
            needed = deduce_sizes(nest, tuple(a if a.ndim else a.item() for a in arrays), known)
        except PolyError as error:
            raise Failed(f"{self.where} does not take the same arguments: {error}") from error
        return self.ours(replace(case, nest=lambda: nest, sizes=needed), arrays, threads)


@dataclass(frozen=True)
class OwnFunction:
    """A function in Python on the nest's arguments, as a solver: it updates the outputs, or returns their new values.

    It gets NumPy arrays, or tensors on the same memory if it is annotated with torch.Tensor, or if it fails on arrays
    and its module uses torch.
    """

    where: str

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender:
        """Call it once. Raises Failed with what it raises."""
        function = load_value(self.where)
        given = [a if a.ndim else a.item() for a in arrays]
        written = [arrays[place] for place in case.problem.written]
        limit_threads(threads)
        if _wants_tensors(function):
            return self._contender(function, "torch tensors", _tensors(given, threads), written)
        restore = restorer(written)
        try:
            return self._contender(function, "NumPy arrays", given, written)
        except Failed:
            if not _uses_torch(function):
                raise
        restore()
        return self._contender(function, "torch tensors", _tensors(given, threads), written)

    def _contender(self, function: Function, kind: str, given: Sequence[Any], written: list[Array]) -> Contender:
        """The contender for these arguments, which are tried."""
        start = restorer(written)
        _put(written, self._called(function, given))
        start()
        config = f"Python function on {kind}, text {_digest(function)}"
        timed = _timed(function, given, written)
        return Contender(self.where, _versions(kind), config, timed, lambda: tuple(written), in_c=False)

    def _called(self, function: Function, given: Sequence[Any]) -> Any:
        try:
            return function(*given)
        except Exception as error:  # the user's function may raise anything
            raise Failed(f"{self.where} raised {type(error).__name__}: {error}") from error


def _timed(function: Function, given: Sequence[Any], written: Sequence[Array]) -> Timed:
    """The clock. The first run puts what the function returns into the outputs, where results are looked for."""
    timed, first = python_timed(lambda: function(*given)), [True]

    def run(times: int) -> float:
        if not first:
            return timed(times)
        first.clear()
        returned: list[Any] = []
        seconds = python_timed(lambda: returned.append(function(*given)))(1)
        _put(written, returned[0])
        return seconds + (timed(times - 1) if times > 1 else 0.0)

    return run


def _put(written: Sequence[Array], returned: Any) -> None:
    """Put what a function returned into the outputs, unless it returned nothing. Raises Failed if it does not fit."""
    if returned is None:
        return
    values = returned if isinstance(returned, tuple | list) else (returned,)
    if len(values) != len(written):
        raise Failed(f"it returned {len(values)} values, and the nest writes {len(written)} arrays")
    for array, value in zip(written, values, strict=True):
        found = np.asarray(value)
        if found.shape != array.shape:
            raise Failed(f"it returned an array of shape {found.shape}, not {array.shape}")
        array[...] = found


def _wants_tensors(function: Function) -> bool:
    annotations = getattr(function, "__annotations__", {})
    return any("torch.Tensor" in str(kind) or str(kind) == "Tensor" for kind in annotations.values())


def _uses_torch(function: Function) -> bool:
    """Whether torch, or something of it, is among the function's global names, or is imported inside."""
    names = getattr(getattr(function, "__code__", None), "co_names", ())
    values = getattr(function, "__globals__", {}).values()
    homes = (getattr(value, "__module__", None) or getattr(value, "__name__", None) for value in values)
    return "torch" in names or any(str(home).partition(".")[0] == "torch" for home in homes)


def _tensors(given: Sequence[Any], threads: int) -> list[Any]:
    import torch

    torch.set_num_threads(threads)
    return [torch.from_numpy(value) if isinstance(value, np.ndarray) else value for value in given]


def _versions(kind: str) -> str:
    numpy = f"numpy {np.__version__}"
    return numpy if kind == "NumPy arrays" else f"torch {sys.modules['torch'].__version__}, {numpy}"


def _digest(function: Function) -> str:
    """A short name for a function's text, by which two runs know whether it is the same."""
    try:
        return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:8]
    except (OSError, TypeError):
        return "unknown"


def contenders(
    against: Iterable[str], compilers: Mapping[str, Solver], dtype: str | None, ours: Poly
) -> dict[str, Solver]:
    """The solvers for the texts after `--against`, by the names that the table shows.

    Raises SpecError for a text that is neither a compiler's name nor FILE:NAME of a nest or function.
    """
    made: dict[str, Solver] = {}
    for text in dict.fromkeys(against):
        name = text if text in compilers else text.rpartition(":")[2]
        solver = compilers[text] if text in compilers else _solver(text, compilers, dtype, ours)
        made[text if name in made or name == NAME else name] = solver
    return made


def _solver(where: str, compilers: Iterable[str], dtype: str | None, ours: Poly) -> Solver:
    file, colon, _ = where.rpartition(":")
    if not colon:
        known = ", ".join(compilers)
        raise SpecError(f"--against {shown(where)} is neither FILE.py:NAME, a function or a nest, nor one of {known}")
    value = loaded(where, None) if Path(file).suffix == C else load_value(where)
    if isinstance(value, Nest):
        return OtherNest(where, dtype, ours)
    if not callable(value):
        raise SpecError(f"--against {where} is neither a function nor a nest, but {shown(value)}")
    return OwnFunction(where)
