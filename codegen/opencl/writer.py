"""The body of a kernel: loops and statements as one work-group runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import cgen
import islpy as isl

from codegen.integer import Linear, Test
from codegen.isl_ast import called, children, kind
from codegen.loops import NO_MARK, Loop, Scope, Writer, once, opened
from codegen.opencl.items import WAIT, Share, alone, has_barriers, is_for_all, owned, shared
from codegen.program import Text


@dataclass
class DeviceWriter(Writer):
    """Walks what one work-group runs, which has `items` work-items."""

    items: int = 1

    def write(self, node: isl.AstNode, scope: Scope) -> list[cgen.Generable]:
        """The C of a node, which all items reach or, below a loop that they share, one of them."""
        if scope.shares < self.items:
            return self.together(children(node) if kind(node) == "block" else [node], scope)
        return super().write(node, scope)

    def together(self, nodes: Sequence[isl.AstNode], scope: Scope) -> list[cgen.Generable]:
        """The C of nodes in order that all items reach: item 0 runs alone what they don't share."""
        if scope.mark.items > 1:
            return [line for node in nodes for line in self._below_mark(node, scope)]
        lines: list[cgen.Generable] = []
        for for_all, run in groupby(nodes, lambda node: is_for_all(self.program, node)):
            if for_all:
                lines += [line for node in run for line in self._by_all(node, scope)]
            else:
                one = replace(scope, shares=self.items)
                lines.append(alone([line for node in run for line in super(DeviceWriter, self).write(node, one)]))
        return lines

    def _by_all(self, node: isl.AstNode, scope: Scope) -> list[cgen.Generable]:
        """A node that all items run. One with barriers below a condition begins with a barrier of its own.

        Else PoCL 3.1 forgets the conditions of shared loops that stand before it, for all items but the first.
        """
        wait = [cgen.Line(WAIT)] * (kind(node) == "if_" and has_barriers(self.program, node))
        return [*wait, *super().write(node, scope)]

    def _below_mark(self, node: isl.AstNode, scope: Scope) -> list[cgen.Generable]:
        """The loop that a mark says to share, perhaps below conditions; its only iteration, 0, where isl made none."""
        if kind(node) in ("for_", "if_", "block"):
            return super().write(node, scope)
        shares = scope.shares * scope.mark.items
        share = Share(scope.mark.items, self.items // shares, self.items)
        return [owned(share, Linear(), super().write(node, replace(scope, mark=NO_MARK, shares=shares)))]

    def _for(self, node: isl.AstNode, scope: Scope) -> list[cgen.Generable]:
        if scope.mark.items > 1 and scope.shares < self.items:
            return self._shared(node, scope)
        if scope.mark.parallel and scope.shares < self.items and not node.for_is_degenerate():
            loop = opened(node, scope)
            return [loop.around([*self.write(node.for_get_body(), loop.scope), cgen.Line(WAIT)])]
        return super()._for(node, scope)

    def _needed(self, loop: Loop) -> tuple[Test, ...]:
        """Nothing where items work together: no barrier stands below a condition that a loop doesn't need."""
        return super()._needed(loop) if self.items == 1 else ()

    def _in_order(self, loop: Loop) -> list[cgen.Generable]:
        """Nothing: it is gcc that has to be told, and no driver is built on it."""
        return []

    def _user(self, node: isl.AstNode, scope: Scope) -> list[cgen.Generable]:
        name, _ = called(node, scope.values)
        body = self.program.statements[name].body
        if isinstance(body, Text) and body.items == 0:
            return [cgen.Line(line) for line in body.lines]
        return super()._user(node, scope)

    def _shared(self, node: isl.AstNode, scope: Scope) -> list[cgen.Generable]:
        """The loop shared out among items."""
        shares = scope.shares * scope.mark.items
        share = Share(scope.mark.items, self.items // shares, self.items)
        if node.for_is_degenerate():
            inner = replace(once(node, scope), shares=shares)
            value = inner.values[node.for_get_iterator().get_id().get_name()]
            return [owned(share, value, super().write(node.for_get_body(), inner))]
        loop = opened(node, scope)
        body = super().write(node.for_get_body(), replace(loop.scope, shares=shares))
        return [shared(loop, share, body)]
