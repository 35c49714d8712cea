"""What a report shows, gathered: a kernel, its explanation, a measurement, its tuning, a small instance to draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median, quantiles

from poly.errors import PolyError
from poly.explanation import Explanation, Measurement
from poly.explanation.explained import explanation_of, subject
from poly.ir.budget import CALL, TooCostly, limited
from poly.ir.nest import Nest
from poly.kernel import Kernel
from poly.machine import Machine, Measured, machine, measured
from poly.machine.target import Backend
from poly.measure.alone import measured_alone
from poly.measure.counters import Counts
from poly.opencl_kernel import OpenCLKernel
from poly.pictures.instance import NONE_SMALL, SmallInstance, small
from poly.records import Record, Store, StoredTrial, key_for


@dataclass(frozen=True)
class Content:
    """All that a report is made of. Texts in `unexplained`, `unmeasured` and `undrawn` say why a part is missing."""

    kernel: Kernel | OpenCLKernel
    machine: Machine
    rates: Measured
    explanation: Explanation | None
    unexplained: str
    unmeasured: str
    counts: Counts | None
    instance: SmallInstance | None
    undrawn: str
    trials: tuple[StoredTrial, ...]
    record: Record | None
    loops: tuple[str, ...] = ()
    """The loops along which iterations are drawn; none for those that tell most."""

    @property
    def nest(self) -> Nest:
        return self.kernel.nest


def gathered(
    opened: Nest, kernel: Kernel | OpenCLKernel, at: Mapping[str, int], measure: bool, loops: tuple[str, ...] = ()
) -> Content:
    """The content for a kernel; `opened` is its nest before sizes were fixed, `at` gives values of sizes left open.

    Raises:
        SpecError: `at` has an unknown size.
        RecordError: the store of records cannot be read.
        ToolchainError: the machine could not be measured.
    """
    target = Backend(kernel.isa, kernel.device if isinstance(kernel, OpenCLKernel) else None)
    explanation, unexplained = _explained(kernel, at)
    counts: Counts | None = None
    unmeasured = ""
    if explanation is not None and measure:
        explanation, unmeasured, counts = _measured(explanation, kernel, target, at)
    instance, undrawn = _instance(opened, kernel)
    store, key = Store.open(), key_for(kernel.nest, kernel.isa, kernel.threads, target.device)
    return Content(
        kernel=kernel,
        machine=machine(),
        rates=measured(machine()),
        explanation=explanation,
        unexplained=unexplained,
        unmeasured=unmeasured,
        counts=counts,
        instance=instance,
        undrawn=undrawn,
        trials=tuple(store.trials(key)) if store.exists() else (),
        record=store.best(key) if store.exists() else None,
        loops=loops,
    )


def _explained(kernel: Kernel | OpenCLKernel, at: Mapping[str, int]) -> tuple[Explanation | None, str]:
    """The explanation, or why there is none."""
    sizes = {name: at[name] for name in kernel.nest.sizes if name in at}
    missing = [name for name in kernel.nest.sizes if name not in at]
    if missing:
        wanted = " ".join(f"--at {name}=512" for name in missing)
        return None, f"Bytes and times depend on the sizes: add {wanted}, or fix them by --size."
    try:
        return explanation_of(subject(kernel, "", None, sizes)), ""
    except PolyError as error:
        return None, str(error)


def _measured(
    explanation: Explanation, kernel: Kernel | OpenCLKernel, target: Backend, at: Mapping[str, int]
) -> tuple[Explanation, str, Counts | None]:
    """The explanation with a measurement made now, why there is none, and the counted events."""
    sizes = {name: at[name] for name in kernel.nest.sizes}
    try:
        found = measured_alone(kernel.schedule, target, kernel.threads, sizes, explanation.expected)
    except PolyError as error:
        return explanation, str(error), None
    if not found.samples:
        return explanation, found.failure, found.counts
    low, _, high = quantiles(found.samples, n=4, method="inclusive")
    spread = (high - low) / median(found.samples)
    source = f"the median of {len(found.samples)} samples, quartiles {spread:.1%} apart"
    return replace(explanation, measurement=Measurement(median(found.samples), source)), "", found.counts


def _instance(opened: Nest, kernel: Kernel | OpenCLKernel) -> tuple[SmallInstance | None, str]:
    """A small instance of the schedule, or why there is none."""
    try:
        with limited(CALL):
            made = small(opened, kernel.schedule.steps)
    except TooCostly as error:
        return None, str(error)
    return made, "" if made else NONE_SMALL
