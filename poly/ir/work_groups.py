"""A loop tree as an OpenCL device runs it: kernels, the loops of their work-groups, and those of the work-items.

for t:                              host loop
  for i_tile:     # groups            a kernel: each iteration is a work-group
    for i:                              all items of the group together
      s[i] = 0                            item 0 alone
      for j:      # 32 items              item q takes j = q, q + 32, …
        B[i, j] = A[i, j]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from math import prod

from poly.ir.edits import edit, sequence
from poly.ir.paths import Path, paths
from poly.ir.tree import Band, Copy, Micro, Node, Sequence, bands, children, statements, walk

MOST_GROUP_LOOPS = 3
"""An OpenCL device counts its work-groups along so many dimensions."""


@dataclass(frozen=True)
class LaunchedLoops:
    """What one launch runs: `body` for each iteration of the loops `groups`, below the loops `above` of the host."""

    above: tuple[Band, ...]
    groups: tuple[Band, ...]
    body: Node


def kernels(tree: Node) -> tuple[LaunchedLoops, ...]:
    """The kernels of a tree, in textual order.

    The outermost parallel loops are a kernel's groups. Neighbours without such loops are one kernel of a single group.
    """
    found: list[LaunchedLoops] = []

    def collect(kernel: LaunchedLoops) -> Node:
        found.append(kernel)
        return kernel.body

    change_kernels(tree, collect)
    return tuple(found)


def change_kernels(tree: Node, change: Callable[[LaunchedLoops], Node]) -> Node:
    """The tree with `change(kernel)` in place of what each kernel's groups run."""
    return _changed(tree, (), change)


def _changed(node: Node, above: tuple[Band, ...], change: Callable[[LaunchedLoops], Node]) -> Node:
    match node:
        case Band(parallel=True):
            groups = _groups(node)
            body = groups[-1].body
            return edit(node, body, change(LaunchedLoops(above, groups, body)))
        case Band(body=body) if _has_groups(node):
            return edit(node, body, _changed(body, (*above, node), change))
        case Copy(body=body) if _has_groups(node):
            return edit(node, body, _changed(body, above, change))
        case Sequence(nodes) if _has_groups(node):
            parts: list[Node] = []
            for shared, run in [(key, list(group)) for key, group in groupby(nodes, _has_groups)]:
                parts += [_changed(part, above, change) for part in (run if shared else [sequence(run)])]
            return sequence(parts)
    return change(LaunchedLoops(above, (), node))


def _has_groups(node: Node) -> bool:
    return any(band.parallel for band in bands(node))


def _groups(band: Band) -> tuple[Band, ...]:
    """The parallel loops from this one on that are directly in each other."""
    found = [band]
    while isinstance(found[-1].body, Band) and found[-1].body.parallel and len(found) < MOST_GROUP_LOOPS:
        found.append(found[-1].body)
    return tuple(found)


def item_loops(path: Path) -> tuple[Band, ...]:
    """The loops of a path that work-items share, outermost first."""
    return tuple(band for band in path if isinstance(band, Band) and band.items)


def width(node: Node) -> int:
    """How many work-items a group has that runs `node`."""
    return max((number for _, number in _runners(node)), default=1)


def _runners(node: Node) -> Iterator[tuple[str, int]]:
    """The statements below, each with the number of work-items that run it."""
    micros = {n.statement: n.kernel.items for n in walk(node) if isinstance(n, Micro)}
    for name, path in paths(node).items():
        yield name, micros.get(name, 1) * prod(band.items for band in item_loops(path))


def misfit(tree: Node) -> str | None:
    """Why no device could run a tree whose loops are shared by groups and items; None where one could."""
    if not any(band.group or band.items for band in bands(tree)):
        return None
    checks = (_groups_apart, _around_groups, _twice_shared, _shared_microkernel)
    found = (reason for check in checks if (reason := check(tree)) is not None)
    return next(found, None) or _uneven(tree)


def _groups_apart(tree: Node) -> str | None:
    """Group loops that are below others, and not directly."""
    for kernel in kernels(tree):
        inside = [band.name for band in bands(kernel.body) if band.group]
        if inside and len(kernel.groups) == MOST_GROUP_LOOPS:
            return f"{MOST_GROUP_LOOPS} loops are shared by groups already: {_names(kernel.groups)}"
        if inside and kernel.groups:
            outer = kernel.groups[-1]
            apart = f"loop {inside[0]} is not directly in loop {outer.name}, which groups share"
            return f"{apart}: {_between(outer, inside[0])} stands between"
    return None


def _names(loops: tuple[Band, ...]) -> str:
    return ", ".join(band.name for band in loops)


def _between(outer: Band, name: str) -> str:
    """What stands between a loop and another one below it."""
    match outer.body:
        case Band() as band:
            return f"loop {band.name}"
        case Copy() as copy:
            return f"a copy of {copy.array}"
    beside = (child for child in children(outer.body) if name not in [band.name for band in bands(child)])
    return ", ".join(statement for child in beside for statement in statements(child))


def _around_groups(tree: Node) -> str | None:
    """Loops around those of groups that are parallel in another way, or shared by items."""
    for kernel in kernels(tree):
        grouped = [band.name for band in kernel.groups if band.group]
        plain = [band.name for band in kernel.groups if not band.group]
        if grouped and plain:
            both = f"loop {plain[0]} is parallel beside loop {grouped[0]}, which groups share"
            return f"{both}. Remedy: groups({_names(kernel.groups)})"
        for band in (*kernel.above, *kernel.groups):
            if band.items and band in kernel.groups:
                return (
                    f"work-groups and work-items share loop {band.name}. Remedy: split it, and give items the inner one"
                )
            if band.items:
                inner = next(below.name for below in bands(band.body) if below.parallel)
                return f"work-items share loop {band.name}, which is around loop {inner}, which groups share"
    return None


def _twice_shared(tree: Node) -> str | None:
    """Loops whose iterations both items and vector lanes share."""
    for band in bands(tree):
        if band.items and band.vectorize:
            return (
                f"loop {band.name} is vectorised and shared by work-items. Remedy: split it, and share one of the two"
            )
    return None


def _shared_microkernel(tree: Node) -> str | None:
    """Microkernels in loops that items share."""
    found = paths(tree)
    for micro in (n for n in walk(tree) if isinstance(n, Micro)):
        shared = item_loops(found[micro.statement])
        if shared:
            return (
                f"work-items share loop {shared[0].name}, but microkernel {micro.kernel} in it wants all of its group"
            )
    return None


def _uneven(tree: Node) -> str | None:
    """Statements of one kernel that different numbers of items share."""
    for kernel in kernels(tree):
        found = list(_runners(kernel.body))
        full, most = max(found, key=lambda runner: runner[1])
        for name, number in found:
            if 1 < number < most:
                apart = f"{number} work-items share {name}, and {most} share {full} of the same group"
                return f"{apart}. Remedy: {_even(kernel.body, name, full, most // number)}"
    return None


def _even(body: Node, name: str, full: str, factor: int) -> str:
    """How a statement could be shared by `factor` times the items."""
    shared = item_loops(paths(body)[name])
    own = [band for band in shared if full not in statements(band)]
    return f"items({own[-1].name}={own[-1].items * factor})" if own else f"distribute({shared[-1].name}) first"
