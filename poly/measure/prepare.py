"""Getting ready to measure a space: the trusted result, and the order that makes the arrays."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from codegen.build import build
from codegen.errors import ToolchainError
from poly.errors import SearchError
from poly.kernel import signature
from poly.machine import machine
from poly.machine.cores import allowed_cpus
from poly.measure.child import Child, Died
from poly.measure.orders import Cores, Data, Failed, Setup, Trust
from poly.measure.process import choose
from poly.measure.trusted import facts, trusted
from poly.spaces.space import Space

PATIENCE = 120.0
"""Seconds that the trusted result may take."""


def prepared(space: Space, child: Child, folder: Path, seed: int, cold: bool) -> Setup:
    """Compute the trusted result in the child and keep it in the folder; what is left to do is the answer.

    Raises SearchError where the loops as written cannot be built or run.
    """
    sizes = dict(space.sizes)
    known = facts(space.nest, sizes)
    cpus = choose(allowed_cpus(), space.threads)
    nest, made = trusted(space.nest, sizes, space.isa, known.iterations)
    try:
        library = build(made.source, made.flags, folder)
    except ToolchainError as error:
        raise SearchError(
            f"{nest.name} cannot be measured, since its loops as written do not build: {error}"
        ) from error

    def keep(fresh: frozenset[str]) -> tuple[str, ...]:
        data = Data(signature(nest, made.scratch), (), seed, known.dominant, fresh)
        return _ask(child, Trust(str(library), data, Cores(1, cpus[:1]), str(folder)), nest.name)

    fresh = known.settable
    if keep(fresh) and fresh:
        fresh = frozenset()
        keep(fresh)
    return Setup(
        data=Data(signature(space.nest, True), tuple(space.sizes), seed, known.dominant, fresh),
        cores=Cores(space.threads, cpus),
        results=str(folder),
        length=known.length,
        calls=1 if cold else known.calls,
        flush=2 * max(cache.bytes for cache in machine().caches) if cold else 0,
    )


def _ask(child: Child, order: Trust, name: str) -> tuple[str, ...]:
    """The arrays that hold NaN after the trusted kernel, of those that began so."""
    try:
        answer = child.ask(order, PATIENCE)
    except Died as error:
        answer = Failed(str(error))
    if isinstance(answer, Failed):
        raise SearchError(f"{name} cannot be measured, since its trusted result cannot be computed: {answer.reason}")
    return cast("tuple[str, ...]", answer)
