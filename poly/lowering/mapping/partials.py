"""Reductions that work-items share, as statements: each item reduces into its own variable, and these are combined.

for i:                            for i:
  for j:  # 32 items                s_sum[0] = 0                   S0_start, every item
    s[i] += A[i, j]         ->      for j:  # 32 items
                                      s_sum[0] += A[i, j]          S0
                                    f32_shares[item] = s_sum[0]…   S0_join, all items together
                                    s[i] += f32_shares[0]          S0_end, item 0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

import islpy as isl

from codegen.ir.expr import Binary, Const, Expr, Load
from codegen.ir.instructions import ITEM, Cell, Write
from codegen.ir.integer import Affine, Linear, compare
from codegen.ir.loop_ir import If
from codegen.ir.loop_ir import Node as LoopNode
from codegen.ir.program import Buffer, Instructions, PrintedStatement, Workspace
from codegen.ir.promotion import limits
from codegen.lanes.simd import reduced
from codegen.names import another, c_name
from microkernels.dtypes import DType
from poly.errors import ScheduleError
from poly.ir.edits import chain, edit, sequence
from poly.ir.instances import coordinate, loop_values
from poly.ir.nest import Array, Nest, Op, Statement
from poly.ir.sets import own_names
from poly.ir.tree import Band, Leaf, Node, bands, mapped, only_loops, statements
from poly.ir.work_groups import LaunchedLoops, kernels, width
from poly.lowering.address_spaces import LOCAL_BARRIER
from poly.lowering.box_copy import Boxed
from poly.lowering.calls import MemoryParts
from poly.lowering.mapping.reductions import Reduction, Region, obstacle, regions, spread
from poly.lowering.mapping.runners import Runners, plainly_counted

FIRST: tuple[Affine, ...] = (Linear(),)
"""The index of the only element, or of item 0's share."""


@dataclass(frozen=True)
class Shared:
    """A nest and its tree as work-items run it.

    `texts` has the domains and bodies of leaves that are not statements of the nest, `synchronised` the arrays for
    which the accesses of different items need no further barriers, `parts` the parts of locals that have memory.
    """

    nest: Nest
    tree: Node
    buffers: tuple[Buffer, ...] = ()
    workspaces: tuple[Workspace, ...] = ()
    texts: Mapping[str, tuple[isl.Set, PrintedStatement]] = field(default_factory=dict)
    synchronised: frozenset[str] = frozenset()
    parts: MemoryParts = field(default_factory=dict)


def with_partials(boxed: Boxed) -> Shared:
    """The tree with each reduction that is spread over items split into its parts.

    Raises:
        ScheduleError: the items' shares of a reduction cannot be combined.
    """
    tree = plainly_counted(boxed.nest, boxed.tree)
    shared = Shared(boxed.nest, tree, boxed.buffers, boxed.workspaces)
    runners = Runners(boxed.nest, tree)
    for kernel in kernels(tree):
        items = width(kernel.body)
        for region in regions(kernel.body):
            for reduction, _ in spread(runners, region):
                reason = obstacle(runners, reduction)
                if reason is not None:
                    raise ScheduleError(f"work-items cannot share loop {region.loop.name}: {reason}.")
                shared = _Parts.of(shared, reduction, items).put_in(shared, _runs(runners, kernel, region))
    return replace(shared, tree=completed(shared, shared.tree, 0))


@dataclass(frozen=True)
class _Parts:
    """The parts of one reduction: its statements, the arrays `partial` and `shares`."""

    reduction: Reduction
    dtype: DType
    items: int
    partial: str
    shares: str

    @staticmethod
    def of(shared: Shared, reduction: Reduction, items: int) -> _Parts:
        array = shared.nest.array(reduction.array)
        taken = frozenset({a.name for a in shared.nest.arrays} | set(shared.nest.sizes))
        partial = another(reduced(array.name, reduction.op), taken)
        known = next(
            (w.name for w in shared.workspaces if w.name in shared.synchronised and w.dtype == array.dtype), None
        )
        return _Parts(reduction, array.dtype, items, partial, known or another(f"{array.dtype.name}_shares", taken))

    @property
    def name(self) -> str:
        return self.reduction.statements[0]

    def put_in(self, shared: Shared, runs: isl.Set) -> Shared:
        """The nest and the tree with these parts; all items of the group combine their shares in each of the `runs`."""
        nest, tree = shared.nest, shared.tree
        redirected = {name: self._redirected(nest.statement(name)) for name in self.reduction.statements}
        statements = (*(redirected.get(s.name, s) for s in nest.statements), self._start(runs), self._end())
        leaves = [Leaf(f"{self.name}_start"), Leaf(f"{self.name}_join"), Leaf(f"{self.name}_end")]
        loop = _loop(tree, self.reduction.region.loop.name)
        kept = [w for w in shared.workspaces if w.name != self.shares]
        count = max([self.items, *(w.count.constant for w in shared.workspaces if w.name == self.shares)])
        added = {self.partial: (1, "private"), self.shares: (count, "local")}
        arrays = [a for a in nest.arrays if a.name not in added]
        buffers = [b for b in shared.buffers if b.name not in added]
        return Shared(
            replace(
                nest,
                statements=statements,
                arrays=(*arrays, *(Array(n, self.dtype, (Affine.of(c),), "local") for n, (c, _) in added.items())),
            ),
            edit(tree, loop, sequence([leaves[0], loop, *leaves[1:]])),
            (*buffers, *(Buffer(n, self.dtype, (Affine.of(c),), "local") for n, (c, _) in added.items())),
            (
                *kept,
                Workspace(self.partial, self.dtype, Linear.of(1), True, "private"),
                Workspace(self.shares, self.dtype, Linear.of(count), True, "local"),
            ),
            {**shared.texts, leaves[1].statement: self._join(runs)},
            shared.synchronised | {self.shares},
        )

    def _redirected(self, statement: Statement) -> Statement:
        return replace(statement, target=Load(self.partial, FIRST))

    def _start(self, runs: isl.Set) -> Statement:
        name = f"{self.name}_start"
        neutral = _neutral(self.reduction.op, self.dtype)
        return Statement(
            name,
            own_names(name, runs.dim(isl.dim_type.set)),
            runs.set_tuple_name(name),
            Load(self.partial, FIRST),
            "=",
            neutral,
        )

    def _end(self) -> Statement:
        """The statement `S0_end[loops around, indices of the element]`: the element's update by the combined shares."""
        name = f"{self.name}_end"
        domain = self.reduction.elements.wrap().flatten().set_tuple_name(name)
        iterators = own_names(name, domain.dim(isl.dim_type.set))
        rank = self.reduction.elements.dim(isl.dim_type.out)
        element = tuple(Affine.name(i) for i in iterators[len(iterators) - rank :])
        target, share = Load(self.reduction.array, element), Load(self.shares, FIRST)
        return Statement(name, iterators, domain, target, self.reduction.op, share)

    def _join(self, runs: isl.Set) -> tuple[isl.Set, PrintedStatement]:
        """The tree reduction of the shares: half of those left are combined with the other half, until one is left."""
        name = f"{self.name}_join"
        shares, item = c_name(self.shares), Linear.name(ITEM)
        mine = Cell(shares, item)
        nodes: list[LoopNode] = [Write(mine, Cell(c_name(self.partial), Linear())), LOCAL_BARRIER]
        left = self.items
        while left > 1:
            half, left = left // 2, (left + 1) // 2
            step = Write(mine, Cell(shares, item + left), self.reduction.op, self.dtype)
            nodes += [If(compare(item, "<", Linear.of(half)), step), LOCAL_BARRIER]
        iterators = own_names(name, runs.dim(isl.dim_type.set))
        return runs.set_tuple_name(name), PrintedStatement(iterators, Instructions(tuple(nodes), items=self.items))


def _runs(runners: Runners, kernel: LaunchedLoops, region: Region) -> isl.Set:
    """The iterations of the loops around a region in which any statement runs.

    If there is nothing to reduce in one of them, neutral values are combined, so that no barrier is conditional.
    """
    above = chain(kernel.body, region.loop)[:-1]
    around = only_loops(above)
    loops = (*kernel.above, *kernel.groups, *around)
    return passes(Shared(runners.nest, runners.tree), around[-1] if around else kernel.body, loops)


def _neutral(op: Op, dtype: DType) -> Expr:
    """The neutral value of an operator."""
    if op in "+*":
        return Const(int(op == "*"))
    if dtype.is_float:
        return Const(float("inf") if op == "min" else -float("inf"))
    low, high = limits(dtype)
    return Const(high) if op == "min" else Const(low) if not low else Binary("-", Const(-high), Const(1))


def _loop(tree: Node, name: str) -> Band:
    return next(band for band in bands(tree) if band.name == name)


def completed(shared: Shared, node: Node, depth: int) -> Node:
    """The tree with a function for each statement in each loop; by default the statement's iterator at that depth."""
    inner = depth
    if isinstance(node, Band):
        known = dict(node.functions)
        added = (name for name in statements(node) if name not in known)
        functions = ((name, coordinate(domain(shared, name), depth)) for name in added)
        node, inner = replace(node, functions=(*node.functions, *functions)), depth + 1
    return mapped(node, lambda child: completed(shared, child, inner))


def passes(shared: Shared, node: Node, around: tuple[Band, ...]) -> isl.Set:
    """The iterations of the loops `around` in which any statement of the node runs."""
    found = (
        loop_values(domain(shared, name), (band.function(name) for band in around)).range() for name in statements(node)
    )
    return reduce(isl.Set.union, found).coalesce()


def domain(shared: Shared, name: str) -> isl.Set:
    """The instances of a leaf."""
    return shared.texts[name][0] if name in shared.texts else shared.nest.statement(name).domain
