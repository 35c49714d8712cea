"""The interface of a schedule's steps, and the argument checks that they share."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import fields
from functools import lru_cache
from itertools import repeat
from types import UnionType
from typing import Any, ClassVar, Literal, Protocol, Union, cast, get_args, get_origin, get_type_hints

from codegen.names import fresh
from microkernels.errors import plain, shown
from poly.errors import ScheduleError
from poly.ir.edits import sequence
from poly.ir.instances import coordinate
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band, Leaf, Micro, Node, bands, parts, statements, walk
from poly.schedules.steps.formulas import Formula

MOST = 2**31 - 1
"""The largest number that a step accepts; no useful block size, shift or factor is larger."""

Arguments = tuple[tuple[object, ...], dict[str, object]]
"""Positional and keyword arguments of a method of `Schedule`."""


class Step(Protocol):
    """One transformation, as a value. `name` is the method of `Schedule` that adds it."""

    name: ClassVar[str]
    reorders: ClassVar[bool]
    """Whether the result must be checked: the step can change the execution order, or what a loop must not carry."""

    def apply(self, nest: Nest, tree: Node) -> Node:
        """The transformed tree; whether it is legal is not checked here.

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


def statement_named(step: str, nest: Nest, name: str) -> Statement:
    """The statement of this name.

    Raises:
        ScheduleError: says which statement a step does not find, and what there is.
    """
    known = {statement.name: statement for statement in nest.statements}
    if name not in known:
        raise ScheduleError(f"{step}: there is no statement {plain(name)}. Statements: {', '.join(known)}.")
    return known[name]


def statement_over(step: str, nest: Nest, name: str, iterator: str) -> Statement:
    """The statement of this name, which has this iterator.

    Raises:
        ScheduleError: says which of them a step does not find, and what there is.
    """
    found = statement_named(step, nest, name)
    if iterator not in found.iterators:
        names = ", ".join(found.iterators)
        raise ScheduleError(f"{step}: {found.name} has no iterator {plain(iterator)}. Iterators: {names}.")
    return found


def loops_over(made: Statement, taken: frozenset[str] = frozenset()) -> Node:
    """A statement in loops over its iterators, whose names are not taken."""
    node: Node = Leaf(made.name)
    for at, name in reversed([*enumerate(made.iterators)]):
        node = Band(fresh(name, taken), ((made.name, coordinate(made.domain, at)),), node)
    return node


def part_with(tree: Node, statement: str) -> Node:
    """The part of the outermost sequence that runs a statement."""
    return next(part for part in parts(tree) if statement in statements(part))


def with_beside(tree: Node, statement: str, before: Node, *behind: Node) -> Node:
    """The tree with loops before and behind the part of the outermost sequence that runs a statement."""
    part = part_with(tree, statement)
    return sequence([one for other in parts(tree) for one in ((before, part, *behind) if other is part else (other,))])


def check_names(step: Step) -> None:
    """Refuse a step with an invalid name of a loop, statement, array and so on.

    Numbers and formulas are checked by each step.

    Raises:
        ScheduleError: says which argument, and what it is.
    """
    for name, kind in _fields(type(step)):
        value = getattr(step, name)
        if not _is_named(value, kind):
            raise ScheduleError(f"{step.name}: {name} must be a name, as a text such as 'i', not {shown(value)}.")


@lru_cache(maxsize=32)
def _fields(kind: type[Step]) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in fields(cast(Any, kind)))


def check_fields(kind: Any) -> None:
    """Refuse a user's class of steps with fields that hold something else than names and integers.

    Raises:
        ScheduleError: names the field.
    """
    try:
        hints = get_type_hints(kind)
    except Exception as error:  # a type may be any text
        raise ScheduleError(f"{kind.__qualname__}: its fields' types cannot be read: {error}.") from error
    for field in fields(kind):
        if not _is_kind(hints[field.name]):
            raise ScheduleError(f"{kind.__qualname__}: {field.name} must be str, int, a tuple of these, or None.")


def _is_kind(kind: Any) -> bool:
    if get_origin(kind) in (tuple, UnionType, Union):
        return all(map(_is_kind, get_args(kind)))
    return kind in (str, int, Formula, type(None), ...) or get_origin(kind) is Literal


def _is_named(value: object, kind: Any) -> bool:
    """Whether every part of a value that its type declares as a name is an identifier."""
    inner = get_args(kind)
    if get_origin(kind) is tuple:
        any_length = inner[-1] is ...
        if not isinstance(value, tuple) or not (any_length or len(value) == len(inner)):
            return False
        return all(map(_is_named, value, repeat(inner[0]) if any_length else inner))
    if get_origin(kind) in (UnionType, Union):
        return any(_is_named(value, one) for one in inner)
    if kind is str or get_origin(kind) is Literal:
        return isinstance(value, str) and value.isidentifier()
    return kind in (int, Formula) or value is None


def check_integer(what: str, value: object, least: int | None = None, most: int = MOST) -> None:
    """Refuse a value that is not an integer, is below `least`, or has a magnitude above `most`; all steps use this.

    Raises:
        ScheduleError: names `what`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        bound = "" if least is None else f" from {least} up"
        raise ScheduleError(f"{what} must be an integer{bound}, not {shown(value)}.")
    if abs(value) > most:
        bound = f"from {-most if least is None else least} to {most}"
        raise ScheduleError(f"{what} must be an integer {bound}, not {shown(value)}.")


def check_local(nest: Nest, step: str, name: str) -> None:
    """Refuse a step on a local that the nest has not.

    Raises:
        ScheduleError: lists the locals.
    """
    locals_ = [array.name for array in nest.arrays if array.kind == "local"]
    if name not in locals_:
        known = ", ".join(locals_) or "none"
        raise ScheduleError(f"{step}: {nest.name} has no local {plain(name)}. Locals: {known}.")


def kernel_on(nest: Nest, tree: Node, array: str) -> Micro | None:
    """The first microkernel that runs a statement which accesses an array; None if there is none."""
    accessing = {s.name for s in nest.statements if any(load.array == array for load in (s.target, *s.reads))}
    kernels = (node for node in walk(tree) if isinstance(node, Micro))
    return next((node for node in kernels if accessing & {node.statement, node.initial}), None)


def check_given(tree: Node, step: str, needs: str, given: Sized) -> None:
    """Refuse a step that names no loop.

    Raises:
        ScheduleError: says what the step needs, and lists the loops.
    """
    if not given:
        raise ScheduleError(f"{step} needs {needs}. Loops: {', '.join(band.name for band in bands(tree)) or 'none'}.")
