"""Groups of kernels that become one function: those of one nest, for open sizes and for fixed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poly.errors import SpecError
from poly.scheduled import Scheduled


@dataclass(frozen=True)
class Group:
    """The kernels of one function: `base` serves all sizes, each of `special` the sizes that it was compiled for."""

    base: Scheduled
    special: tuple[Scheduled, ...]

    @property
    def name(self) -> str:
        return self.base.nest.name


def groups(kernels: Sequence[Scheduled]) -> tuple[Group, ...]:
    """The kernels grouped by nest, in order of first appearance.

    Raises:
        SpecError: there are no kernels, two nests have the same name, two kernels serve the same sizes, or no kernel of
            a nest serves the sizes of all its others.
    """
    if not kernels:
        raise SpecError("a header needs at least one kernel.")
    by_name: dict[str, list[Scheduled]] = {}
    for kernel in kernels:
        by_name.setdefault(kernel.nest.name, []).append(kernel)
    return tuple(_group(name, found) for name, found in by_name.items())


def _group(name: str, kernels: list[Scheduled]) -> Group:
    if len({kernel.nest.structure for kernel in kernels}) > 1:
        raise SpecError(f"two different nests are called {name}: rename one of them.")
    base = max(kernels, key=lambda kernel: len(kernel.nest.sizes))
    special = tuple(kernel for kernel in kernels if kernel is not base)
    for kernel in special:
        if set(kernel.nest.fixed) == set(base.nest.fixed):
            raise SpecError(f"two kernels of {name} serve the same sizes: leave one out.")
        if kernel.nest.sizes or not set(base.nest.fixed) <= set(kernel.nest.fixed):
            raise SpecError(
                f"the kernels of {name} at {_sizes(base)} and at {_sizes(kernel)} don't go together: give one "
                f"whose sizes are open, poly.compile({name}), and others that fix all of them."
            )
    return Group(base, special)


def _sizes(kernel: Scheduled) -> str:
    return (
        ", ".join([*(f"{n} = {v}" for n, v in kernel.nest.fixed), *(f"any {n}" for n in kernel.nest.sizes)])
        or "no sizes"
    )
