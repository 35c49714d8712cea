"""What a step of a schedule is, and the edits of loop trees that steps share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from dataclasses import fields, replace
from functools import lru_cache
from itertools import count, repeat
from types import UnionType
from typing import Any, ClassVar, Literal, Protocol, cast, get_args, get_origin, get_type_hints

import islpy as isl

from microkernels.errors import plain, shown
from poly.errors import ScheduleError
from poly.nest import Nest
from poly.tree import Band, Node, Pack, Sequence, bands, children

MOST = 2**31 - 1
"""The largest number that a step takes: no loop that is cut or moved by more is of use."""

Arguments = tuple[tuple[object, ...], dict[str, object]]
"""Positional and keyword arguments of a method of `Schedule`."""


class Step(Protocol):
    """One transformation, as a value. `name` is the method of `Schedule` that adds it."""

    name: ClassVar[str]
    reorders: ClassVar[bool]
    """Whether it can change the order of execution, or what a loop carries, so that the result must be checked."""

    def apply(self, nest: Nest, tree: Node) -> Node:
        """The transformed tree; whether it is legal is not asked here.

        Raises:
            ScheduleError: a name that does not exist, or loops that do not have the shape that the step needs.
        """

    def arguments(self) -> Arguments:
        """The arguments with which the method makes this step."""


def call_text(step: Step) -> str:
    """The step as Python: `tile(i=6, j=64)`."""
    positional, named = step.arguments()
    texts = [repr(value) for value in positional] + [f"{name}={value!r}" for name, value in named.items()]
    return f"{step.name}({', '.join(texts)})"


def check_names(step: Step) -> None:
    """Refuse a step whose names of loops, statements, arrays and so on are no names; numbers it checks itself.

    Raises:
        ScheduleError: says which, and what it is.
    """
    for name, kind in _fields(type(step)):
        value = getattr(step, name)
        if not _is_named(value, kind):
            raise ScheduleError(f"{step.name}: {name} must be a name, as a text such as 'i', not {shown(value)}.")


@lru_cache(maxsize=32)
def _fields(kind: type[Step]) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in fields(cast(Any, kind)))


def _is_named(value: object, kind: Any) -> bool:
    """Whether all that must be a name is one, in a value of this type."""
    inner = get_args(kind)
    if get_origin(kind) is tuple:
        any_length = inner[-1] is ...
        if not isinstance(value, tuple) or not (any_length or len(value) == len(inner)):
            return False
        return all(map(_is_named, value, repeat(inner[0]) if any_length else inner))
    if get_origin(kind) is UnionType:
        return any(_is_named(value, one) for one in inner)
    if kind is str or get_origin(kind) is Literal:
        return isinstance(value, str) and value.isidentifier()
    return kind is int or value is None


def find_loop(tree: Node, name: str) -> Band:
    """The loop of that name.

    Raises:
        ScheduleError: there is none; the message lists the loops.
    """
    for band in bands(tree):
        if band.name == name:
            return band
    loops = ", ".join(band.name for band in bands(tree)) or "none"
    raise ScheduleError(f"there is no loop {plain(name)}. Loops: {loops}.")


def check_integer(what: str, value: object, least: int | None = None, most: int = MOST) -> None:
    """Refuse what is no integer, one below `least`, or one further than `most` from 0: all numbers of steps come here.

    Raises:
        ScheduleError: names `what`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        bound = "" if least is None else f" from {least} up"
        raise ScheduleError(f"{what} must be an integer{bound}, not {shown(value)}.")
    if abs(value) > most:
        bound = f"from {-most if least is None else least} to {most}"
        raise ScheduleError(f"{what} must be an integer {bound}, not {shown(value)}.")


def check_given(tree: Node, step: str, needs: str, given: Sized) -> None:
    """Refuse a step without any loop.

    Raises:
        ScheduleError: says what the step needs, and lists the loops.
    """
    if not given:
        raise ScheduleError(f"{step} needs {needs}. Loops: {', '.join(band.name for band in bands(tree)) or 'none'}.")


def edit(tree: Node, old: Node, new: Node) -> Node:
    """The tree with the node `old` (that very object) replaced."""
    if tree is old:
        return new
    match tree:
        case Sequence(nodes):
            edited = [edit(node, old, new) for node in nodes]
            return tree if all(a is b for a, b in zip(edited, nodes, strict=True)) else sequence(edited)
        case Band(body=body) | Pack(body=body):
            inner = edit(body, old, new)
            return tree if inner is body else replace(tree, body=inner)
    return tree


def sequence(nodes: list[Node]) -> Node:
    """The nodes in order; sequences within are spliced, and a single node stands alone."""
    flat = [leaf for node in nodes for leaf in (node.children if isinstance(node, Sequence) else (node,))]
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def chain(top: Node, bottom: Node) -> list[Node]:
    """The nodes from `top` down to `bottom`, both included; empty where `bottom` is not below `top`."""
    if top is bottom:
        return [top]
    for child in children(top):
        below = chain(child, bottom)
        if below:
            return [top, *below]
    return []


def map_functions(band: Band, change: Callable[[str, isl.PwAff], isl.PwAff]) -> Band:
    """The loop with `change(statement, function)` for each of its functions."""
    return replace(band, functions=tuple((name, change(name, function)) for name, function in band.functions))


def fresh(tree: Node, name: str, separator: str = "") -> str:
    """`name`, or else `name2`, `name3`, …: the first that no loop has."""
    used = {band.name for band in bands(tree)}
    return next(candidate for candidate in _numbered(name, separator) if candidate not in used)


def _numbered(name: str, separator: str) -> Iterator[str]:
    yield name
    for number in count(2):
        yield f"{name}{separator}{number}"


def rename_repeats(tree: Node) -> Node:
    """The tree with every loop's name its own: the second loop `j` becomes `j_2`, the third `j_3`."""
    used = {band.name for band in bands(tree)}
    seen: set[str] = set()

    def visit(node: Node) -> Node:
        match node:
            case Band(name=name, body=body):
                if name in seen:
                    name = next(n for n in _numbered(name, "_") if n not in used)
                    used.add(name)
                seen.add(name)
                return replace(node, name=name, body=visit(body))
            case Pack(body=body):
                return replace(node, body=visit(body))
            case Sequence(nodes):
                return Sequence(tuple(visit(child) for child in nodes))
        return node

    return visit(tree)
