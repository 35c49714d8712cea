"""Edits of loop trees that steps and lowering share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import islpy as isl

from microkernels.errors import did_you_mean, plain
from poly.errors import ScheduleError
from poly.ir.tree import Band, Copy, Micro, Node, Sequence, bands, children, mapped, parts, statements, walk


def find_loop(tree: Node, name: str) -> Band:
    """The loop with that name.

    Raises:
        ScheduleError: no such loop; the message lists the loops.
    """
    for band in bands(tree):
        if band.name == name:
            return band
    loops = ", ".join(band.name for band in bands(tree)) or "none"
    hint = did_you_mean(name, loops.split(", "))
    raise ScheduleError(f"there is no loop {plain(name)}.{hint} Loops: {loops}.")


def edit(tree: Node, old: Node, new: Node) -> Node:
    """The tree with the node `old`, compared by identity, replaced by `new`."""
    if tree is old:
        return new
    match tree:
        case Sequence(nodes):
            edited = [edit(node, old, new) for node in nodes]
            return tree if all(a is b for a, b in zip(edited, nodes, strict=True)) else sequence(edited)
        case Band(body=body) | Copy(body=body):
            inner = edit(body, old, new)
            return tree if inner is body else replace(tree, body=inner)
    return tree


def sequence(nodes: list[Node]) -> Node:
    """The nodes as a sequence; nested sequences are spliced, and a single node is returned itself."""
    flat = [leaf for node in nodes for leaf in parts(node)]
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def chain(top: Node, bottom: Node) -> list[Node]:
    """The nodes from `top` down to `bottom`, both included; empty if `bottom` is not below `top`."""
    if top is bottom:
        return [top]
    for child in children(top):
        below = chain(child, bottom)
        if below:
            return [top, *below]
    return []


def map_functions(band: Band, change: Callable[[str, isl.PwAff], isl.PwAff]) -> Band:
    """The loop with each of its functions replaced by `change(statement, function)`."""
    return replace(band, functions=tuple((name, change(name, function)) for name, function in band.functions))


def fresh(tree: Node, name: str) -> str:
    """The first of `name`, `name2`, `name3`, … that no loop has."""
    used = {band.name for band in bands(tree)}
    candidates = (name if number == 1 else f"{name}{number}" for number in count(1))
    return next(candidate for candidate in candidates if candidate not in used)


def rename_repeats(tree: Node) -> Node:
    """The tree with unique loop names: the second loop `j` becomes `j_2`, the third `j_3`; so does a second loop `j_2`.

    Loops that a microkernel has taken keep their names. No name is part of another, as of `i_2_j_2` or `j_2_tile`: what
    flattens or cuts the loop later would get a name that is taken.
    """
    seen = {b.name for m in walk(tree) if isinstance(m, Micro) for b in (m.rows, m.columns, *m.reduce) if b is not None}
    used = {*seen, *(band.name for band in bands(tree))}

    def is_free(name: str) -> bool:
        return not any(f"_{name}_" in f"_{other}_" for other in used)

    def visit(node: Node) -> Node:
        if isinstance(node, Band):
            name = node.name
            if name in seen:
                root = re.sub(r"_\d+$", "", name)
                name = next(filter(is_free, (f"{root}_{number}" for number in count(2))))
                used.add(name)
            seen.add(name)
            node = replace(node, name=name)
        return mapped(node, visit)

    return visit(tree)


def without(node: Node, gone: frozenset[str]) -> Node:
    """The tree without some of its statements, of which others are left."""
    match node:
        case Sequence(nodes):
            left = [without(child, gone) for child in nodes if not gone.issuperset(statements(child))]
            return left[0] if len(left) == 1 else Sequence(tuple(left))
        case Band(functions=functions, body=body):
            kept = tuple((name, function) for name, function in functions if name not in gone)
            return replace(node, functions=kept, body=without(body, gone))
        case Copy(body=body):
            return replace(node, body=without(body, gone))
    return node


def parent(tree: Node, node: Node) -> Node | None:
    """The node directly above `node`; None if there is none."""
    for child in children(tree):
        if child is node:
            return tree
        found = parent(child, node)
        if found is not None:
            return found
    return None
