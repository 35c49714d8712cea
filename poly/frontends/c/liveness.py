"""Whether a variable's value may be read after a region: on any way through the rest of its function."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from pycparser import c_ast

from poly.frontends.c.regions import ScopRegion
from poly.frontends.c.tree import below

JUMPS = (c_ast.Goto, c_ast.Label, c_ast.Break, c_ast.Continue, c_ast.Switch)
"""Statements after which the order of the text is not that of the run."""

ENTRIES = (c_ast.Label, c_ast.Case, c_ast.Default)
"""Where jumps go to."""


class Effect(Enum):
    """What running something does to a variable first: on some way it reads it, on all ways it sets it, or neither."""

    READS = 1
    SETS = 2
    NEITHER = 3


def is_read_after(name: str, region: ScopRegion) -> bool:
    """Whether a local variable's value may be read after the region, or through its address."""
    outside = list(_outside(region.function.body, region))
    if any(_takes_address(node, name) for node in [*outside, *region.body]):
        return True
    if any(isinstance(node, JUMPS) for node in outside):
        return _is_left_to_others(region.function.body, name, region)
    for block in region.around:
        effect = _sequence(block.after, name)
        if effect is Effect.NEITHER and block.loop is not None:
            again = _again(block.loop, name)
            if again is Effect.READS:
                return True
            effect = again
        if effect is not Effect.NEITHER:
            return effect is Effect.READS
    return False


def _is_left_to_others(node: c_ast.Node, name: str, region: ScopRegion) -> bool:
    """Whether a variable occurs outside of the region, and of loops that set it first and into which nothing jumps."""
    own = {id(part) for part in region.body}
    if id(node) in own:
        return False
    if isinstance(node, c_ast.For) and isinstance(node.init, c_ast.Assignment):
        inside = list(below(node))
        is_entered = any(isinstance(part, ENTRIES) or id(part) in own for part in inside)
        if not is_entered and _effect(node.init, name) is Effect.SETS:
            return False
    is_it = isinstance(node, c_ast.ID) and node.name == name
    return is_it or any(_is_left_to_others(child, name, region) for child in node)


def mentions(name: str, nodes: Iterable[c_ast.Node]) -> bool:
    """Whether a name occurs in some nodes."""
    return any((isinstance(node, c_ast.ID) and node.name == name) or mentions(name, node) for node in nodes)


def is_mentioned_outside(name: str, region: ScopRegion) -> bool:
    """Whether the function uses a name outside of the region, apart from its declaration."""
    return any(isinstance(node, c_ast.ID) and node.name == name for node in _outside(region.function.body, region))


def is_assigned_outside(name: str, region: ScopRegion) -> bool:
    """Whether the function may give a variable a value outside of the region, apart from its declaration."""
    for node in _outside(region.function.body, region):
        target = node.lvalue if isinstance(node, c_ast.Assignment) else None
        if isinstance(node, c_ast.UnaryOp) and node.op in ("p++", "p--", "++", "--", "&"):
            target = node.expr
        if isinstance(target, c_ast.ID) and target.name == name:
            return True
    return False


def has_address(name: str, function: c_ast.FuncDef) -> bool:
    """Whether a function takes the address of a variable."""
    return any(_takes_address(node, name) for node in below(function.body))


def _takes_address(node: c_ast.Node, name: str) -> bool:
    if isinstance(node, c_ast.UnaryOp) and node.op == "&":
        return isinstance(node.expr, c_ast.ID) and node.expr.name == name
    return False


def _outside(node: c_ast.Node, region: ScopRegion) -> Iterable[c_ast.Node]:
    """All nodes below one, without those of the region."""
    own = {id(part) for part in region.body}
    for child in node:
        if id(child) not in own:
            yield child
            yield from _outside(child, region)


def _again(loop: c_ast.Node, name: str) -> Effect:
    """What a loop does that goes on: it may also end once it has tested its condition."""
    head = _sequence([part for part in (getattr(loop, "next", None), loop.cond) if part is not None], name)
    if head is not Effect.NEITHER:
        return head
    return Effect.READS if _effect(loop.stmt, name) is Effect.READS else Effect.NEITHER


def _sequence(items: Iterable[c_ast.Node], name: str) -> Effect:
    """Statements of a block, in which a declaration may hide the variable."""
    for node in items:
        if isinstance(node, c_ast.Decl) and node.name == name:
            return Effect.READS if _parts(node, name) is Effect.READS else Effect.NEITHER
        effect = _effect(node, name)
        if effect is not Effect.NEITHER:
            return effect
    return Effect.NEITHER


def _parts(node: c_ast.Node, name: str) -> Effect:
    """Parts in any order."""
    effects = {_effect(child, name) for child in node}
    return next((effect for effect in (Effect.READS, Effect.SETS) if effect in effects), Effect.NEITHER)


def _maybe(*effects: Effect) -> Effect:
    """Parts that may run or not."""
    return Effect.READS if Effect.READS in effects else Effect.NEITHER


def _effect(node: c_ast.Node | None, name: str) -> Effect:
    match node:
        case None:
            return Effect.NEITHER
        case c_ast.ID():
            return Effect.READS if node.name == name else Effect.NEITHER
        case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=target), rvalue=value) if target == name:
            return Effect.READS if _effect(value, name) is Effect.READS else Effect.SETS
        case c_ast.Compound(block_items=items):
            return _sequence(items or [], name)
        case c_ast.For(init=init, cond=cond, next=step, stmt=body):
            head = _sequence([part for part in (init, cond) if part is not None], name)
            if isinstance(init, c_ast.DeclList) and any(decl.name == name for decl in init.decls):
                return Effect.READS if _parts(init, name) is Effect.READS else Effect.NEITHER
            return head if head is not Effect.NEITHER else _maybe(_effect(body, name), _effect(step, name))
        case c_ast.While(cond=cond, stmt=body):
            head = _effect(cond, name)
            return head if head is not Effect.NEITHER else _maybe(_effect(body, name))
        case c_ast.DoWhile(cond=cond, stmt=body):
            return _sequence([body, cond], name)
        case c_ast.If(cond=cond, iftrue=then, iffalse=other):
            head = _effect(cond, name)
            ways = _effect(then, name), _effect(other, name)
            both = Effect.SETS if set(ways) == {Effect.SETS} else _maybe(*ways)
            return head if head is not Effect.NEITHER else both
        case c_ast.BinaryOp(op="&&" | "||", left=first, right=rest):
            head = _effect(first, name)
            return head if head is not Effect.NEITHER else _maybe(_effect(rest, name))
        case c_ast.TernaryOp(cond=cond, iftrue=then, iffalse=other):
            head = _effect(cond, name)
            return head if head is not Effect.NEITHER else _maybe(_effect(then, name), _effect(other, name))
        case c_ast.Return(expr=value):
            return Effect.READS if _effect(value, name) is Effect.READS else Effect.SETS
        case c_ast.FuncCall(args=args):
            return _effect(args, name)
    return _parts(node, name)
