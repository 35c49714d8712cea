"""What a region writes through one name and may read through another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pycparser import c_ast

from poly.frontends.c.declarations import CType, names_in
from poly.frontends.c.members import StructMember
from poly.frontends.c.place import CSource, refusal
from poly.ir.nest import Array, Nest

BYTES = ("i8", "u8")
"""The types by which C lets any data be written."""
Arguments = Mapping[str, tuple[CType, c_ast.Decl]]


def check(arguments: Arguments, members: Mapping[str, StructMember], written: set[str], source: CSource) -> None:
    """Refuse pointers that may point to the same place, of which one is written, without a promise that they don't.

    Arrays in structures that different pointers point to may be the same, too.
    """
    pointers = {name: found for name, (found, _) in arguments.items() if _is_open(found, members.get(name))}
    for name, found in pointers.items():
        others = [
            o
            for o, other in pointers.items()
            if o != name and other.dtype == found.dtype and not _are_apart(name, o, arguments, members)
        ]
        if any(o in written or name in written for o in others):
            raise refusal(
                arguments[name][1],
                source,
                f"`{name}` may point into `{others[0]}`, so that no iterations could be reordered",
                _promise(name, members),
            )


def _promise(name: str, members: Mapping[str, StructMember]) -> str:
    if name not in members:
        return f"Promise that it does not: `*restrict {name}`, or declare an array: `{name}[n]`."
    root = members[name].place.root
    return f"Promise that it does not, in the structure or of a pointer to it: `*restrict {root}`."


def _is_open(found: CType, member: StructMember | None) -> bool:
    """Whether an array has a place that isn't known."""
    is_inside = member is not None and bool(member.place.pointers) and not member.place.promised
    return bool(found.extents) and not found.restrict and (found.pointer or is_inside)


def _are_apart(one: str, other: str, arguments: Arguments, members: Mapping[str, StructMember]) -> bool:
    """Whether two arrays are different parts of one structure."""
    places = [members[name].place for name in (one, other) if name in members]
    inside = not any(arguments[name][0].pointer for name in (one, other))
    return inside and len(places) == 2 and places[0].pointers == places[1].pointers and places[0].root == places[1].root


def apart(
    nest: Nest,
    values: Mapping[str, CType],
    written: Mapping[str, tuple[CType, str]],
    members: Mapping[str, StructMember],
) -> list[str]:
    """C texts of tests that variables, and pointers among them, are not in written arrays of their type or of bytes.

    `written` has the type of each such array and the text of where it begins.
    """
    made = []
    for name, found in values.items():
        for array, (kind, begin) in written.items():
            same = (not found.extents and found.dtype == kind.dtype) or kind.dtype in BYTES
            is_read = found.pointer or not found.extents
            if array != name and is_read and same and not _is_own(name, array, kind, members):
                made.append(_apart(name, begin, nest.array(array)))
    return made


def _is_own(name: str, array: str, kind: CType, members: Mapping[str, StructMember]) -> bool:
    """Whether an array is a part of the structure in which a variable is another part."""
    if name not in members or array not in members or kind.pointer:
        return False
    one, other = members[name].place, members[array].place
    return one.root == other.root and one.pointers == other.pointers


def _apart(name: str, begin: str, array: Array) -> str:
    """C text of the test, by a macro of the header; sizes are multiplied as doubles."""
    factors = [_sum(extent.terms, extent.constant) for extent in array.shape]
    return f"PFX_APART({name}, {begin}, {'*'.join([f'{array.dtype.size}.0', *factors])})"


def _sum(terms: Iterable[tuple[str, int]], constant: int) -> str:
    parts = [f"{factor}.0*(double)({name})" if factor != 1 else f"(double)({name})" for name, factor in terms]
    made = " + ".join([*parts, *[f"{constant}.0"] * (constant != 0 or not parts)])
    return made if len(parts) + (constant != 0) < 2 else f"({made})"


def written_arrays(nodes: Sequence[c_ast.Node]) -> set[str]:
    """The names of arrays and pointers to which statements assign elements."""
    found: set[str] = set()
    for node in nodes:
        target = node.lvalue if isinstance(node, c_ast.Assignment) else None
        target = node.expr if isinstance(node, c_ast.UnaryOp) and node.op in ("p++", "p--", "++", "--", "*") else target
        while isinstance(target, c_ast.ArrayRef):
            target = target.name
        found |= set(names_in([target]))
        found |= written_arrays(list(node))
    return found
