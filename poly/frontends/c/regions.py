"""The parts of C functions that become nests: a whole body, or the statements between `scop` and `endscop`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pycparser import c_ast

from poly.frontends.c.place import CSource, refusal

Nodes = tuple[c_ast.Node, ...]


@dataclass(frozen=True)
class Around:
    """One block around a region: what precedes and follows it there, and the loop that repeats it, if any."""

    before: Nodes
    after: Nodes
    loop: c_ast.Node | None = None


@dataclass(frozen=True)
class ScopRegion:
    """Statements of a function, and the blocks around them, innermost first."""

    function: c_ast.FuncDef
    body: Nodes
    around: tuple[Around, ...] = ()
    start: c_ast.Pragma | None = None
    end: c_ast.Pragma | None = None

    @property
    def before(self) -> Nodes:
        """What is before the region in the blocks around it, outermost first."""
        return tuple(node for block in reversed(self.around) for node in block.before)

    @property
    def declarations(self) -> tuple[c_ast.Decl, ...]:
        """The declarations that are visible in the region, of which later ones hide earlier ones."""
        return tuple(found for node in self.before for found in _declared(node))

    @property
    def repeated(self) -> bool:
        """Whether a loop runs the region several times."""
        return any(block.loop is not None for block in self.around)


def whole(function: c_ast.FuncDef) -> ScopRegion:
    """The body of a function as a region."""
    return ScopRegion(function, tuple(function.body.block_items or ()))


def pragmas(node: c_ast.Node, word: str) -> Iterator[c_ast.Pragma]:
    """All `#pragma word` below a node, in textual order."""
    for child in node:
        if is_pragma(child, word):
            yield child
        yield from pragmas(child, word)


def is_pragma(node: c_ast.Node, word: str) -> bool:
    return isinstance(node, c_ast.Pragma) and (node.string or "").split()[:1] == [word]


def region_at(function: c_ast.FuncDef, start: c_ast.Pragma, source: CSource) -> ScopRegion:
    """The region that a `#pragma scop` begins.

    Raises:
        SpecError: it has no end in its block, or another scop begins before.
    """
    around = _around(function.body, start)
    assert around is not None, "the pragma is in this function"
    inner, *outer = around
    ends = [at for at, node in enumerate(inner.after) if is_pragma(node, "endscop")]
    if not ends and _is_alone(function.body, start):
        why = "`#pragma scop` stands behind `else`, a label, or the head of a loop or condition, with one statement"
        raise refusal(start, source, why, "Write braces around it, the loops and `#pragma endscop`.")
    if not ends:
        remedy = "Write `#pragma endscop` after the loops, in the same block."
        raise refusal(start, source, "`#pragma scop` has no end in its block", remedy)
    body = inner.after[: ends[0]]
    nested = [found for node in body for found in (*pragmas(c_ast.Compound([node]), "scop"),)]
    if nested:
        raise refusal(nested[0], source, "a scop begins before the last one ends", "End that one before.")
    rest = Around(inner.before, inner.after[ends[0] + 1 :], inner.loop)
    return ScopRegion(function, body, (rest, *outer), start, inner.after[ends[0]])


def _is_alone(node: c_ast.Node, start: c_ast.Pragma) -> bool:
    """Whether a pragma is in a block without braces, which pycparser makes of it and one statement."""
    if isinstance(node, c_ast.Compound) and any(item is start for item in node.block_items or ()):
        return bool(node.coord.line == start.coord.line)
    return any(_is_alone(child, start) for child in node)


def stray_ends(function: c_ast.FuncDef, regions: list[ScopRegion]) -> list[c_ast.Pragma]:
    """Each `#pragma endscop` that ends no region."""
    ends = [region.end for region in regions]
    return [pragma for pragma in pragmas(function.body, "endscop") if not any(pragma is end for end in ends)]


def _around(block: c_ast.Node, start: c_ast.Node) -> list[Around] | None:
    """The blocks around a node, innermost first; what follows it is in the first one."""
    items = tuple(block)
    for at, node in enumerate(items):
        inner = [] if node is start else _around(node, start)
        if inner is None:
            continue
        match block:
            case c_ast.Compound():
                return [*inner, Around(items[:at], items[at + 1 :])]
            case c_ast.For(init=init):
                return [*inner, Around(() if init is None else (init,), (), block)]
            case c_ast.DoWhile(cond=cond):
                return [*inner, Around((), (cond,), block)]
            case c_ast.While():
                return [*inner, Around((), (), block)]
        return [*inner, Around((), ())]
    return None


def _declared(node: c_ast.Node) -> list[c_ast.Decl]:
    match node:
        case c_ast.Decl():
            return [node]
        case c_ast.DeclList(decls=decls):
            return list(decls)
    return []
