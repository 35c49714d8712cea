"""A region of a C function as a nest: what its names mean, and which of them are the nest's arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pycparser import c_ast

from codegen.ir.integer import Affine
from microkernels.dtypes import ANNOTATED
from poly.errors import SpecError
from poly.frontends.c.aliases import apart, check, written_arrays
from poly.frontends.c.arithmetic import INT
from poly.frontends.c.declarations import (
    ArrayName,
    CType,
    ElementName,
    Known,
    NameUses,
    ScalarName,
    SizeName,
    Unknown,
    Unusable,
    Uses,
    has_members,
    integer_contexts,
    subscript_names,
    type_of,
    unknown_type,
)
from poly.frontends.c.facts import at_sizes, is_affine, large_products
from poly.frontends.c.inlining import Inliner
from poly.frontends.c.jumps import without_continue
from poly.frontends.c.liveness import has_address, is_assigned_outside, is_mentioned_outside, is_read_after
from poly.frontends.c.members import Members, in_text, structures_of
from poly.frontends.c.place import CSource, marked, refusal, shown
from poly.frontends.c.preprocessed import Unit
from poly.frontends.c.procedures import Procedures
from poly.frontends.c.regions import ScopRegion
from poly.frontends.c.statements import OpenAccess, Statements, annotation
from poly.frontends.c.tree import parameters
from poly.frontends.complex_numbers import in_parts
from poly.frontends.polynomials import (
    LARGE,
    Named,
    Polynomial,
    Stride,
    at_large,
    expression,
    indices,
    named,
    negative,
    polynomial,
    split,
    total,
)
from poly.frontends.python import nest_of
from poly.ir.nest import Nest

STORED = ("static", "extern")
"""Storage of locals whose values stay when their function ends."""


@dataclass(frozen=True)
class Outside:
    """A variable that a region uses: its declaration and type, and whether it is of the file or of the function.

    The nest gets the address of a scalar that the region assigns (`by_address`). A member of a structure is of the file
    or function, too: it stays when the loops end.
    """

    node: c_ast.Decl
    type: CType
    is_global: bool
    by_address: bool = False


@dataclass(frozen=True)
class Outlined:
    """A region as a nest whose arguments are variables of the function.

    `outside` has the sizes and arguments by name, `constants` the names that the nest takes to have a value, `locals`
    the declarations of the function's variables that it uses beside them, `functions` the file's functions that are
    inlined. `tests` is what holds where the nest may run, as C text with `PFX_` before macros of the header. `members`
    has the texts of structures' members by their names, `structures` the declarations of the function's variables with
    which these begin, `pointers` the texts of the pointers on the way to them. `after` has
    the values of integers that the statements leave, as C text.
    """

    nest: Nest
    region: ScopRegion
    outside: Mapping[str, Outside]
    constants: Mapping[str, int | float]
    locals: tuple[c_ast.Decl, ...]
    functions: frozenset[str]
    tests: tuple[str, ...]
    members: Mapping[str, str]
    structures: tuple[c_ast.Decl, ...]
    pointers: tuple[str, ...]
    after: Mapping[str, str]

    def in_text(self, made: str) -> str:
        """C text that names members as variables, with the members' own texts."""
        return in_text(self.members, made)


def source_of(unit: Unit, node: c_ast.Node) -> CSource:
    """The source in which a node stands."""
    return CSource.of_texts(unit.texts(), node.coord.file, unit.in_text)


def outlined(unit: Unit, region: ScopRegion, name: str, reassociate: bool) -> Outlined:
    """A region as a function of its own, called `name`, that leaves all variables as the statements do.

    Unlike in a nest that is read for its own sake, scalars may come from before it and be used after it, and pointers
    may point to the same place: whoever calls it has to test that arrays do not overlap.

    Raises:
        SpecError: the region is no nest.
    """
    reader, nest = read(unit, region, reassociate, name, outlines=True)
    own_names = {node.name for node in reader.local_variables()} - reader.members.found.keys()
    sizes = {size: Outside(*reader.declared[size], size not in own_names) for size in nest.sizes}
    arguments = {
        array.name: Outside(*reader.declared[array.name], array.name not in own_names, array.name in reader.given_back)
        for array in nest.arrays
        if array.kind != "local"
    }
    rest = [node for node in reader.local_variables() if node.name not in {**sizes, **arguments}]
    own = frozenset(reader.inliner.used(region.body))
    after = reader.values_after()
    pointers = tuple(reader.members.pointers)
    tests = (
        *(f"{pointer} != 0" for pointer in pointers),
        *(large_products(sums) for sums in reader.statements.assumed or () if not is_affine(sums)),
        *reader.overlaps(nest),
    )
    outside = {**sizes, **arguments}
    unique = tuple(dict.fromkeys(tests))
    members, structures = reader.members.texts, tuple(reader.structures())
    return Outlined(
        nest, region, outside, reader.constants, tuple(rest), own, unique, members, structures, pointers, after
    )


def read(
    unit: Unit, region: ScopRegion, reassociate: bool, name: str | None = None, outlines: bool = False
) -> tuple[Reader, Nest]:
    """A region as a nest, and its reader.

    Integers are taken to be expressions of counters and sizes, and those that turn out not to be are read as data.

    Raises:
        SpecError: the region is no nest.
    """
    data, errors = frozenset[str](), list[SpecError]()
    while True:
        reader = Reader(unit, region, name, outlines, data)
        try:
            return reader, reader.nest(reassociate)
        except SpecError as error:
            errors.append(error)
        statements = reader.statements
        lost = statements.lost - statements.roles.counters
        if lost <= data:
            raise (errors[0] if statements.indexes_data else errors[-1]) from None
        data |= lost


class Reader:
    """Translates one region to a Python function, and reads that.

    With `outlines`, the function stands for the region in its place. The integers `data` are no counters or sizes.
    """

    def __init__(
        self,
        unit: Unit,
        region: ScopRegion,
        name: str | None = None,
        outlines: bool = False,
        data: frozenset[str] = frozenset(),
    ) -> None:
        self.unit, self.region, self.outlines = unit, region, outlines
        self.name = name or region.function.decl.name
        self.source = source_of(unit, region.function)
        self.typedefs = {d.name: d.type for d in unit.tree.ext if isinstance(d, c_ast.Typedef)}
        own = frozenset(self._own_names())
        self.inliner = Inliner(self._functions(), self.typedefs, own)
        procedures = Procedures(self._functions(), self.typedefs, own, set(unit.words()))
        inlined = list(map(self.inliner.inlined, procedures.block(list(map(without_continue, region.body)))))
        self.source = replace(self.source, in_text=lambda made: unit.in_text(procedures.in_text(made)))
        visible = {**self._file_variables(), **self._own_parameters(), **{d.name: d for d in region.declarations}}
        tags = structures_of(unit.tree)
        self.members = Members(visible, self.typedefs, tags, self.source, set(unit.words()) | procedures.taken)
        self.body = tuple(self.members.replaced(inlined))
        before = self.source.in_text
        self.source = replace(self.source, in_text=lambda made: before(in_text(self.members.texts, made)))
        self.uses = Uses.of(list(self.body))
        declared = [node for node in region.declarations if node.name in self.uses.found]
        outside = [*self._parameters().values(), *declared, *self._globals().values()]
        contexts = (*self.body, *(node.type for node in outside))
        self.integers = self.uses.sources({name for node in contexts for name in integer_contexts(node)})
        looking = self.uses.sources({name for node in self.body for name in subscript_names(node)})
        counters = frozenset(_counters(self.body))
        roles = NameUses(self.uses, counters, frozenset(self.integers), frozenset(looking), dict(self._kinds()), data)
        self.statements = Statements(self.source, self.typedefs, roles)
        self.statements.assumed = [] if outlines else None
        self.sizes: dict[str, Affine] = {}
        self.arguments: dict[str, tuple[CType, c_ast.Decl]] = {}
        self.declared: dict[str, tuple[c_ast.Decl, CType]] = {}
        self.constants: dict[str, int | float] = {}
        self.given_back: set[str] = set()
        self.left: dict[str, c_ast.Decl] = {}
        """The integers that stand for expressions in the region, and are read after it."""

    def nest(self, reassociate: bool) -> Nest:
        locals_ = {node.name: node for node in self.region.declarations}
        for node in self.unit.tree.ext:
            if isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.Enum):
                self._enumerate(node.type)
        head: list[ast.stmt] = []
        for name, node in self._globals().items():
            head += self._declare_global(name, node)
        for name, node in self._parameters().items():
            if name not in locals_:
                head += self._declare_parameter(node)
        for name, node in locals_.items():
            if name in self.uses.found or name in self.integers:
                head += self._declare_local(node)
        if not self.outlines:
            check(self.arguments, self.members.found, written_arrays(self.body), self.source)
        body = [*head, *self.statements.block(self.body)]
        used = set(self.uses.found)
        arguments = [self._argument(name) for name in self.arguments if name in used]
        made = ast.FunctionDef(self.name, ast.arguments([], arguments, None, [], [], None, []), body, [], None)
        marked(made, self.region.function, self.source)
        ast.fix_missing_locations(made)
        made, environment = in_parts(made, self.source, {**ANNOTATED, **self.sizes})
        nest = nest_of(made, self.source, environment, reassociate, ast.unparse(made) + "\n")
        return at_sizes(nest, self.statements.assumed or ())

    def local_variables(self) -> list[c_ast.Decl]:
        """The declarations of the function's variables that the region uses."""
        found = {**self._parameters(), **{node.name: node for node in self.region.declarations}}
        return [node for name, node in found.items() if name in self.uses.found or name in self.integers]

    def _functions(self) -> dict[str, c_ast.FuncDef]:
        return {node.decl.name: node for node in self.unit.tree.ext if isinstance(node, c_ast.FuncDef)}

    def _own_names(self) -> Iterable[str]:
        yield from self._own_parameters()
        yield from (node.name for node in _declarations([self.region.function.body]) if node.name)

    def values_after(self) -> dict[str, str]:
        """The values of integers that are read after the region, as C texts."""
        return {name: self._value_after(name, node) for name, node in self.left.items()}

    def _value_after(self, name: str, node: c_ast.Decl) -> str:
        known = self.statements.names[name]
        terms = polynomial(known.value) if isinstance(known, Known) else None
        if terms is None or not {part for key in terms for part in key} <= self.sizes.keys():
            why = f"the integer `{name}` is assigned in the scop and read after it"
            raise refusal(node, self.source, why, "Use another variable there, or assign it after the scop.")
        parts = [
            "*".join([*[str(by)] * (by != 1 or not key), *(f"(int64_t)({size})" for size in key)])
            for key, by in terms.items()
        ]
        return " + ".join(parts) or "0"

    def overlaps(self, nest: Nest) -> list[str]:
        """C texts of the tests that no value that the loops read is stored in an array that they write."""
        shared = [name for name in self.declared if name not in self.given_back and self._may_change(name)]
        values = {name: self.declared[name][1] for name in shared}
        written = {
            name: (found, name if name in self.given_back else name + "[0]" * len(found.extents))
            for name, (found, _) in self.arguments.items()
            if name in nest.written and (found.pointer or name in self._parameters())
        }
        return apart(nest, values, written, self.members.found)

    def _may_change(self, name: str) -> bool:
        """Whether a variable has an address that pointers may have, too."""
        shared = name in self.members.found or name in self._globals()
        return shared or has_address(name, self.region.function)

    def _own_parameters(self) -> dict[str, c_ast.Decl]:
        return {node.name: node for node in parameters(self.region.function)}

    def _parameters(self) -> dict[str, c_ast.Decl]:
        """The function's parameters, and the members of structures, which come to the loops like these."""
        return {**self._own_parameters(), **{name: member.node for name, member in self.members.found.items()}}

    def structures(self) -> list[c_ast.Decl]:
        """The declarations of the function's variables whose members the region uses."""
        found = {**self._own_parameters(), **{node.name: node for node in self.region.declarations}}
        return [node for name, node in found.items() if name in self.members.roots]

    def _file_variables(self) -> dict[str, c_ast.Decl]:
        found = [n for n in self.unit.tree.ext if isinstance(n, c_ast.Decl) and not isinstance(n.type, c_ast.FuncDecl)]
        return {n.name: n for n in found if n.name}

    def _globals(self) -> dict[str, c_ast.Decl]:
        """The variables of the file that are visible in the region, and used."""
        hidden = {*(node.name for node in self.region.declarations), *self._parameters()}
        found = self._file_variables()
        return {name: node for name, node in found.items() if name in self.uses.found and name not in hidden}

    def _kinds(self) -> Iterable[tuple[str, str]]:
        """The locals of integers, and their kinds."""
        for node in _declarations((*self.region.before, *self.body)):
            found = type_of(node.type, self.typedefs)
            if found is not None and found.is_integer and not found.extents:
                yield node.name, found.counting

    def _enumerate(self, enum: c_ast.Enum) -> None:
        number = 0
        for item in enum.values.enumerators if enum.values else ():
            if item.value is not None:
                number = int(self.statements.value(item.value).number or 0)
            kind = "int" if INT[0] <= number <= INT[1] else "ulong"  # compilers differ
            self.statements.names[item.name] = Known(ast.Constant(number), kind)
            if item.name in self.uses.found:
                self.constants[item.name] = number
            number += 1

    def _constant(self, node: c_ast.Decl, found: CType) -> None:
        value = self.statements.value(node.init)
        if value.number is None:
            raise refusal(node, self.source, f"`{node.name}` is no constant number", "Write a literal.")
        number = found.rounded(value.number)
        kind = found.counting if found.is_integer else found.dtype
        self.statements.names[node.name] = Known(ast.Constant(number), kind)
        self.constants[node.name] = number

    def _declare_global(self, name: str, node: c_ast.Decl) -> list[ast.stmt]:
        """A constant, or an argument: a global scalar that is assigned keeps its value after the region."""
        found = type_of(node.type, self.typedefs)
        if found is None and not self.outlines:
            return []
        if found is not None and not found.extents and node.init is not None and "const" in node.quals:
            self._constant(node, found)
            return []
        if self.outlines and found is not None and not found.extents and self.uses.written(name):
            return self._declare_assigned(node, found, live=True)
        self._declare_argument(node)
        return []

    def _declare_parameter(self, node: c_ast.Decl) -> list[ast.stmt]:
        found = type_of(node.type, self.typedefs)
        if node.name in self.members.found and found is not None and not found.extents and self.uses.written(node.name):
            self._declare_element(node, found)
            return []
        is_data = found is not None and not found.extents and node.name not in self.integers
        if self.outlines and found is not None and is_data and self.uses.written(node.name):
            return self._declare_assigned(node, found, is_read_after(node.name, self.region))
        self._declare_argument(node)
        return []

    def _declare_argument(self, node: c_ast.Decl) -> None:
        found = type_of(node.type, self.typedefs)
        name = node.name
        if name is None or (name not in self.uses.found and name not in self.integers):
            return
        if found is None and has_members(node.type, self.typedefs):
            self.statements.names[name] = Unusable(*unknown_type(name, node, self.typedefs))
            return
        if found is None:
            raise refusal(node, self.source, *unknown_type(name, node, self.typedefs))
        if "volatile" in node.quals:
            raise refusal(node, self.source, f"`{name}` is volatile: its accesses are effects", "Leave it out.")
        is_size = not found.extents and found.is_integer and name in self.integers
        self.declared[name] = (node, found)
        if found.extents:
            if found.unsigned:
                raise refusal(node, self.source, f"`{name}` holds unsigned data, which wraps around", "Use int.")
            self.statements.names[name] = ArrayName(found)
            self.arguments[name] = (found, node)
        elif is_size:
            self.statements.names[name] = SizeName(found.counting)
            self.sizes[name] = Affine.name(name)
        else:
            if found.unsigned:
                raise refusal(node, self.source, f"`{name}` is unsigned data, which wraps around", "Use int.")
            self.statements.names[name] = ScalarName(found.dtype, is_argument=True)
            self.arguments[name] = (found, node)

    def _declare_local(self, node: c_ast.Decl) -> list[ast.stmt]:
        """A local that is declared before the region: it is the region's own if its value neither comes nor goes."""
        name, found = node.name, type_of(node.type, self.typedefs)
        statements = self.statements
        if found is None and has_members(node.type, self.typedefs):
            self._declare_argument(node)
            return []
        if found is None:
            return statements.block([node])
        stays = any(storage in node.storage for storage in STORED)
        if found.extents:
            filled = node.init is not None and self.outlines
            apart = self.region.repeated or stays or filled or is_mentioned_outside(name, self.region)
            if found.pointer or apart:
                self._declare_argument(node)
                return []
            return statements.block([node])
        if not self.uses.written(name):
            self._constant_or_argument(node, found)
            return []
        live = stays or is_read_after(name, self.region)
        if statements.counts(name, found):
            if live and self.outlines:
                self.left[name] = node
            statements.names[name] = Unknown(f"`{name}` has no value here that poly knows")
            return []
        return self._declare_assigned(node, found, live)

    def _declare_assigned(self, node: c_ast.Decl, found: CType, live: bool) -> list[ast.stmt]:
        """A scalar of the surroundings that the region assigns; `live` if it is read afterwards."""
        name = node.name
        early = self.uses.is_read_first(name) or (self.uses.beginnings(name) is None and self._has_value(node))
        if not live and not early:
            bare = c_ast.Decl(name, node.quals, [], [], [], node.type, None, None, node.coord)
            return self.statements.block([bare])
        if self.outlines:
            self._declare_element(node, found)
            return []
        if live:
            why = f"`{name}` is assigned in the scop and read after it"
            raise refusal(node, self.source, why, "Store it in an element of an array, or extend the scop.")
        why = f"`{name}` has its first value from before the scop"
        raise refusal(node, self.source, why, "Begin the scop before the first assignment.")

    def _declare_element(self, node: c_ast.Decl, found: CType) -> None:
        """A scalar as the one element of an array of its name."""
        self._declare_argument(node)
        self.sizes.pop(node.name, None)
        self.statements.names[node.name] = ElementName(found.dtype)
        one = c_ast.Constant("int", "1", coord=node.coord)
        self.arguments[node.name] = (CType(found.dtype, extents=(one,)), node)
        self.given_back.add(node.name)

    def _has_value(self, node: c_ast.Decl) -> bool:
        """Whether a scalar may have a value before the region."""
        is_parameter = node.name in self._parameters()
        return node.init is not None or is_parameter or is_assigned_outside(node.name, self.region)

    def _constant_or_argument(self, node: c_ast.Decl, found: CType) -> None:
        literal = node.init is not None and _is_literal(node.init)
        stays = "static" not in node.storage or "const" in node.quals
        if literal and stays and not is_assigned_outside(node.name, self.region):
            self._constant(node, found)
        else:
            self._declare_argument(node)

    def _argument(self, name: str) -> ast.arg:
        found, node = self.arguments[name]
        made = ast.arg(name, annotation(found.dtype, self._shape(name, found, node)))
        return marked(made, node, self.source)

    def _shape(self, name: str, found: CType, node: c_ast.Node) -> list[ast.expr]:
        """The extents of an array: as declared, and where that says nothing, those that its accesses reach."""
        if not found.extents:
            return []
        if None not in found.extents:
            return [self._declared_extent(extent) for extent in found.extents if extent is not None]
        accesses = self.statements.accesses.get(name, [])
        places = [_places(access.subscript) for access in accesses]
        offsets = [named(place[0]) for place in places]
        known = [offset.terms for offset in offsets if offset is not None]
        strides = self._strides(offsets, accesses)
        ends = []
        for access, place, offset in zip(accesses, places, offsets, strict=True):
            if offset is None:
                continue
            several = indices(offset.terms, strides, offset.ranges(access.loops))
            ends.append(offset.greatest(several[0], access.loops))
            if strides:
                parts = [*map(offset.expression, several), *place[1:]]
                access.subscript.slice = marked(_tuple(parts), node, self.source)
        clear = [end for end in ends if end is not None]
        extent = _extent(clear) or (_usual(clear) if self.outlines else None)
        if extent is None or None in ends:
            why = f"the extent of `{name}` does not follow from its accesses"
            shape = "[n][m]" if any(len(key) > 1 for offset in known for key in offset) else "[n]"
            raise refusal(node, self.source, why, f"Declare it with its extents: `{found.in_c} {name}{shape}`.")
        rest = [self._declared_extent(extent) for extent in found.extents[1:] if extent is not None]
        return [extent, *(expression({(size,): times}) for size, times in strides), *rest]

    def _strides(self, offsets: Sequence[Named | None], accesses: Sequence[OpenAccess]) -> tuple[Stride, ...]:
        """The strides of an array's rows: sizes, or as many times these as the last indices go far."""
        known = [(offset, access.loops) for offset, access in zip(offsets, accesses, strict=True) if offset is not None]
        terms = [offset.terms for offset, _ in known]
        strides = split(terms, self.sizes) if len(known) == len(offsets) else ()
        last = [(o, indices(o.terms, strides, o.ranges(loops))[-1], loops) for o, loops in known] if strides else []
        ends = ((o.greatest(index, loops), o.greatest(negative(index), loops)) for o, index, loops in last)
        inside = all(
            most is not None and at_large(most) < LARGE and least is not None and at_large(least) <= 0
            for most, least in ends
        )
        return strides if inside else split(terms, self.sizes, whole=True)

    def _declared_extent(self, node: c_ast.Node) -> ast.expr:
        made = self.statements.integer(node)
        if polynomial(made) is None:
            remedy = "Give the quotient a parameter of its own, `int h`, also in bounds and in other extents: `2*h`."
            raise refusal(node, self.source, f"the extent `{shown(node)}` is no sum of integers, but divides", remedy)
        return made


def _places(subscript: ast.Subscript) -> list[ast.expr]:
    return list(subscript.slice.elts) if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]


def _tuple(parts: list[ast.expr]) -> ast.expr:
    return parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())


def _extent(ends: list[Polynomial]) -> ast.expr | None:
    """The least extent that has all these indices; None if they differ by more than constants."""
    if not ends:
        return None
    terms = {key: value for key, value in ends[0].items() if key}
    if any({key: value for key, value in end.items() if key} != terms for end in ends):
        return None
    if any(len(key) > 1 for key in terms):
        return None
    most = max(end.get((), 0) for end in ends)
    return expression(total(terms, {(): most + 1}))


def _usual(ends: list[Polynomial]) -> ast.expr | None:
    """The extent that the greatest of these indices needs where all sizes are large; None if no sum of sizes.

    Where another index is greater, accesses leave the array: whoever calls the nest has to exclude these sizes.
    """
    if not ends or any(len(key) > 1 for end in ends for key in end):
        return None
    return expression(total(max(ends, key=at_large), {(): 1}))


def _is_literal(node: c_ast.Node) -> bool:
    """Whether an expression is a number, perhaps with a sign and a type."""
    match node:
        case c_ast.UnaryOp(op="-" | "+", expr=operand) | c_ast.Cast(expr=operand):
            return _is_literal(operand)
    return isinstance(node, c_ast.Constant)


def _declarations(nodes: Iterable[c_ast.Node]) -> Iterator[c_ast.Decl]:
    for node in nodes:
        if isinstance(node, c_ast.Decl):
            yield node
        elif node is not None:
            yield from _declarations(list(node))


def _counters(nodes: Iterable[c_ast.Node]) -> Iterator[str]:
    """The names that loops count."""
    for node in nodes:
        match node:
            case c_ast.For(init=c_ast.Assignment(lvalue=c_ast.ID(name=name))):
                yield name
            case c_ast.For(init=c_ast.DeclList(decls=decls)):
                yield from (decl.name for decl in decls)
        yield from _counters(list(node))
