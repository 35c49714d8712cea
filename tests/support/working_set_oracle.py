"""Working sets by enumeration of all instances with their times and accesses, independent of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interpreter import Element, points, value

from poly.ir.nest import Nest
from poly.ir.tree import Band, Leaf, Micro, Node, Sequence, walk

Key = tuple[str, str, str | None, str, str, str, str]
"""Kind, array, loop, and statement and access of the first and of the second use."""
Sizes = tuple[int, int]
"""Elements and bytes."""

KINDS = {
    (False, False): "read-after-read",
    (True, False): "flow",
    (False, True): "anti",
    (True, True): "output",
}


@dataclass(frozen=True)
class Use:
    """One access at one time; `loops` names the time's entries."""

    time: tuple[int, ...]
    loops: tuple[str | None, ...]
    statement: str
    point: tuple[int, ...]
    text: str
    element: Element
    writes: bool


def uses(nest: Nest, tree: Node) -> list[Use]:
    """All accesses in the order of the tree."""
    found = list(_uses(nest, tree, []))
    length = max((len(use.time) for use in found), default=0)
    padded = [
        Use(
            use.time + (0,) * (length - len(use.time)),
            use.loops + (None,) * (length - len(use.loops)),
            use.statement,
            use.point,
            use.text,
            use.element,
            use.writes,
        )
        for use in found
    ]
    return sorted(padded, key=lambda use: use.time)


def _uses(nest: Nest, node: Node, above: list[Band | int]) -> Iterator[Use]:
    match node:
        case Band(body=body):
            yield from _uses(nest, body, [*above, node])
        case Sequence(children):
            for position, child in enumerate(children):
                yield from _uses(nest, child, [*above, position])
        case Micro(statement=name):
            taken = [band for band in (node.rows, node.columns, *node.reduce) if band]
            yield from _statement(nest, name, [*above, *taken])
        case Leaf(name):
            initial = any(isinstance(n, Micro) and n.initial == name for n in walk(nest.tree))
            assert not initial
            yield from _statement(nest, name, above)


def _statement(nest: Nest, name: str, above: list[Band | int]) -> Iterator[Use]:
    statement = nest.statement(name)
    loops = tuple(entry.name if isinstance(entry, Band) else None for entry in above)
    for point in points(statement.domain):
        time = tuple(value(e.function(name), point) if isinstance(e, Band) else e for e in above)
        names = dict(zip(statement.iterators, point, strict=True))
        for load, writes in [*((load, False) for load in dict.fromkeys(statement.reads)), (statement.target, True)]:
            if nest.array(load.array).kind == "scalar":
                continue
            element = (load.array, tuple(index.evaluate(names) for index in load.indices))
            yield Use(time, loops, name, point, str(load), element, writes)


def working_sets(nest: Nest, tree: Node) -> dict[Key, tuple[Sizes, Sizes]]:
    """The minimal and maximal working set of every reuse, by the definitions of `poly.working_sets.reuses`."""
    ordered = uses(nest, tree)
    by_element: dict[Element, list[Use]] = {}
    for use in ordered:
        by_element.setdefault(use.element, []).append(use)
    chosen: dict[Key, tuple[Use, list[Use]]] = {}
    for first in ordered:
        for then in by_element[first.element]:
            if then.time > first.time:
                level = next(d for d, (a, b) in enumerate(zip(first.time, then.time, strict=True)) if a != b)
                kind = KINDS[first.writes, then.writes]
                array, loop = first.element[0], first.loops[level]
                key = (kind, array, loop, first.statement, first.text, then.statement, then.text)
                source, targets = chosen.setdefault(key, (first, []))
                if source is first:
                    targets.append(then)
    return {
        key: (
            touched(nest, ordered, source, min(targets, key=lambda use: use.time)),
            touched(nest, ordered, source, max(targets, key=lambda use: use.time)),
        )
        for key, (source, targets) in chosen.items()
    }


def touched(nest: Nest, ordered: list[Use], first: Use, last: Use) -> Sizes:
    """The distinct elements from one time to another."""
    elements = {use.element for use in ordered if first.time <= use.time <= last.time}
    return len(elements), sum(nest.array(array).dtype.size for array, _ in elements)
