"""Getting ready to measure a space: the trusted result, and the order that makes the arrays."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import cast

import numpy as np

from codegen.build import build
from codegen.errors import ToolchainError
from poly.compiled import Compiled
from poly.errors import SearchError
from poly.kernel import signature
from poly.machine import machine
from poly.machine.cores import allowed_cpus
from poly.measure.child import Child, Died
from poly.measure.compare import difference
from poly.measure.facts import Facts, facts
from poly.measure.orders import Cores, Data, Failed, Setup, Trust, result
from poly.measure.process import choose
from poly.measure.trusted import Rows, trusted, wide
from poly.nest import Nest
from poly.spaces.space import Space

PATIENCE = 120.0
"""Seconds that the trusted result may take."""

QUEUED = 256
"""Calls in a row that a device gets at most: all of them lie in its queue before the first one starts."""

GPU_CACHE = 256 << 20
"""Bytes: no less than the last-level caches of the GPUs of 2025 hold."""


def prepared(space: Space, child: Child, folder: Path, seed: int, cold: bool) -> Setup:
    """Compute the trusted result in the child and keep it in the folder; what is left to do is the answer.

    Raises SearchError where that result cannot be computed.
    """
    with suppress(Died):  # the first order says why
        child.start()
    nest = wide(space.nest.with_sizes(dict(space.sizes)))
    known = facts(nest)
    fresh = Preparation(nest, known, child, folder, seed).run(space)
    on_device = space.device is not None
    calls = min(known.calls, QUEUED) if on_device else known.calls
    return Setup(
        data=Data(signature(space.nest, not on_device), space.sizes, seed, known.delicate, fresh),
        cores=Cores(space.threads, choose(allowed_cpus(), space.threads)),
        results=str(folder),
        length=known.length,
        calls=1 if cold else calls,
        flush=2 * (_cached(space) if cold else 0),
        device=space.device.label if space.device is not None else "",
    )


def _cached(space: Space) -> int:
    """Bytes of the largest cache of what runs the space's schedules."""
    gpu = space.device is not None and space.device.isa.is_gpu
    return GPU_CACHE if gpu else max(cache.bytes for cache in machine().caches)


class Preparation:
    """The trusted result of a nest: computed in the child, kept in a folder."""

    def __init__(self, nest: Nest, known: Facts, child: Child, folder: Path, seed: int) -> None:
        self._nest = nest
        self._known = known
        self._child = child
        self._folder = folder
        self._seed = seed

    def run(self, space: Space) -> frozenset[str]:
        """Keep the result, and return the arrays of which the nest reads nothing that it did not set."""
        isa = space.isa if space.device is None else machine().isa
        plan = trusted(self._nest, isa, self._known.iterations)
        fresh = self._known.settable
        if self._compute(plan.made, fresh, self._folder):
            fresh = frozenset()
            self._compute(plan.made, fresh, self._folder)
        if plan.vouching is not None and plan.rows is not None:
            self._vouch(plan.vouching, plan.rows, fresh)
        return fresh

    def _vouch(self, made: Compiled, rows: Rows, fresh: frozenset[str]) -> None:
        """Compare the result with rows of it that plain loops have computed."""
        some = self._folder / "rows"
        try:
            some.mkdir(exist_ok=True)
            self._compute(made, fresh, some)
            found, expected = (rows.of(np.load(result(str(at), rows.array))) for at in (self._folder, some))
        except OSError as error:
            raise self._error(str(error)) from error
        wrong = difference(f"some rows of {rows.array}", found, expected, self._known.length)
        if wrong:
            raise self._error(wrong)

    def _compute(self, made: Compiled, fresh: frozenset[str], folder: Path) -> bool:
        """Run a kernel on the data and keep what it writes; whether it read of `fresh` what it had not set."""
        try:
            library = build(made.source, made.flags, folder)
            data = Data(signature(self._nest, made.scratch), (), self._seed, self._known.delicate, fresh)
            cpus = choose(allowed_cpus(), 1)
            answer = self._child.ask(Trust(str(library), data, Cores(1, cpus), str(folder)), PATIENCE)
        except (ToolchainError, Died, OSError) as error:
            raise self._error(str(error)) from error
        if isinstance(answer, Failed):
            raise self._error(answer.reason)
        return bool(cast("tuple[str, ...]", answer))

    def _error(self, reason: str) -> SearchError:
        name = self._nest.name
        return SearchError(f"{name} cannot be measured: the result to compare candidates with has failed. {reason}")
