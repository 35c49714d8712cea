"""The body of an OpenCL kernel: the loops and statements that one work-group runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar

import cgen

from codegen.ir.integer import Test
from codegen.ir.loop_ir import Block, For, If, Node, Once, Run
from codegen.ir.program import Instructions
from codegen.loops import Writer, plain
from codegen.opencl.items import WAIT, SharedLoop, alone, has_barriers, is_for_all, owned, shared
from codegen.scope import LoopScope
from codegen.style import Line, around


@dataclass
class DeviceWriter(Writer):
    """Prints the loops that a work-group of `items` work-items runs."""

    items: int = 1
    tiles: ClassVar[bool] = False
    """Loops around vector loops stay loops: compilers for devices keep arrays of vectors in memory."""

    def write(self, node: Node, scope: LoopScope) -> list[cgen.Generable]:
        """The C of a node that all items of the group reach or, inside shared loops, some or one of them."""
        if scope.shares < self.items:
            return self.together(node.nodes if isinstance(node, Block) else [node], scope)
        return super().write(node, scope)

    def together(self, nodes: Sequence[Node], scope: LoopScope) -> list[cgen.Generable]:
        """The C of a sequence of nodes that all items reach; item 0 alone runs those that are not for all items."""
        lines: list[cgen.Generable] = []
        for for_all, run in groupby(nodes, lambda node: is_for_all(self.program, node)):
            if for_all:
                lines += [line for node in run for line in self._by_all(node, scope)]
            else:
                one = replace(scope, shares=self.items)
                lines.append(alone([line for node in run for line in super(DeviceWriter, self).write(node, one)]))
        return lines

    def _by_all(self, node: Node, scope: LoopScope) -> list[cgen.Generable]:
        """The C of a node that all items run, after a barrier if it has barriers inside a condition.

        Without that barrier, PoCL 3.1 drops the conditions of preceding shared loops for all items except the first.
        """
        wait = [Line(WAIT)] * (isinstance(node, If) and has_barriers(self.program, node))
        return [*wait, *super().write(node, scope)]

    def _once(self, loop: Once, scope: LoopScope) -> list[cgen.Generable]:
        if loop.mark.items > 1 and scope.shares < self.items:
            share, inner = self._share(loop, scope)
            return [owned(share, loop.value, super().write(loop.body, inner))]
        return super()._once(loop, scope)

    def _for(self, loop: For, scope: LoopScope) -> list[cgen.Generable]:
        if loop.mark.items > 1 and scope.shares < self.items:
            share, inner = self._share(loop, scope)
            return [shared(loop, share, super().write(loop.body, inner))]
        if loop.mark.parallel and scope.shares < self.items:
            return [around(loop, [*self.write(loop.body, scope.inside(loop)), Line(WAIT)])]
        return super()._for(loop, scope)

    def _share(self, loop: For | Once, scope: LoopScope) -> tuple[SharedLoop, LoopScope]:
        """The distribution of a loop to items, and the scope inside."""
        shares = scope.shares * loop.mark.items
        return SharedLoop(loop.mark.items, self.items // shares, self.items), replace(scope.inside(loop), shares=shares)

    def _needed(self, loop: For, scope: LoopScope) -> tuple[Test, ...]:
        """Nothing for groups of several items, so that no barrier gets inside a condition without need."""
        return super()._needed(loop, scope) if self.items == 1 else ()

    def _may_unroll(self, loop: For) -> bool:
        """Not a loop with barriers: PoCL 3.1 unrolls it wrongly where its end is not known to be a multiple."""
        return super()._may_unroll(loop) and not (self.items > 1 and has_barriers(self.program, loop))

    def in_order(self, loop: For) -> list[cgen.Generable]:
        """Nothing: only gcc needs this line, and no OpenCL driver is built on it."""
        return []

    def _run(self, run: Run, scope: LoopScope) -> list[cgen.Generable]:
        body = self.program.statements[run.statement].body
        if isinstance(body, Instructions) and body.items == 0:
            return plain(body.body(bounds=False))
        return super()._run(run, scope)
