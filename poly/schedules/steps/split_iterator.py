"""Count the iterations of a statement in blocks: an iterator becomes two, one for the block and one within it.

for i: for j: for k:                     for i: for j: for k_tile: for k < 256:
  C[i, j] += A[i, k]*B[k, j]      ->       C[i, j] += A[i, 256*k_block + k]*B[256*k_block + k, j]

The order stays the same, and the block is an iterator like any other. With elements of their own (`rfactor`), the
blocks of a contraction's reduction are contractions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import islpy as isl

from codegen.ir.expr import placed
from codegen.ir.integer import Affine
from microkernels.errors import plain
from poly.errors import ScheduleError
from poly.ir.coordinates import linear
from poly.ir.edits import edit, fresh
from poly.ir.instances import coordinate
from poly.ir.nest import Nest, Statement
from poly.ir.sets import function, index, number, parameters, set_space, zero
from poly.ir.sets import mapped as mapped_to
from poly.ir.tree import Band, Leaf, Node, bands, mapped, statements, walk
from poly.schedules.steps.base import Arguments, check_integer, statement_over


@dataclass(frozen=True)
class SplitIterator:
    """The iterator `k` of `statement` counts within blocks of `size`, and a new one, `k_block`, counts the blocks.

    A loop over `k` around this statement alone becomes two.
    """

    statement: str
    iterator: str
    size: int
    name: ClassVar[str] = "split_iterator"
    reorders: ClassVar[bool] = False

    @property
    def block(self) -> str:
        """The name of the new iterator."""
        return f"{self.iterator}_block"

    def apply(self, nest: Nest, tree: Node) -> Node:
        return self.rewritten(nest, tree)[1]

    def arguments(self) -> Arguments:
        return (self.statement,), {self.iterator: self.size}

    def rewritten(self, nest: Nest, tree: Node) -> tuple[Nest, Node]:
        """The nest and the tree with both iterators; the nest is unchanged if it has them already.

        Raises:
            ScheduleError: a size below 1, no such iterator, a microkernel that runs the statement, or a name that is
                taken.
        """
        check_integer(f"the block size of {self.iterator}", self.size, least=1)
        found = statement_over(self.name, nest, self.statement, self.iterator)
        if not any(isinstance(node, Leaf) and node.statement == found.name for node in walk(tree)):
            raise self._refused(f"a microkernel runs {found.name}. Remedy: {self.name} first, then microkernel")
        if self.block not in found.iterators:
            if self.block in {*nest.open_or_fixed, *(a.name for a in nest.arrays)}:
                raise self._refused(f"there is {self.block} already. Remedy: another name for that")
            nest, tree = self._counted(nest, tree, found)
        return nest, self._in_two_loops(nest, tree)

    def _refused(self, problem: str) -> ScheduleError:
        return ScheduleError(f"{self.name}({plain(self.statement)}, {plain(self.iterator)}={self.size}): {problem}.")

    def _counted(self, nest: Nest, tree: Node, found: Statement) -> tuple[Nest, Node]:
        """The nest and the tree with both iterators, in the same loops."""
        at = found.iterators.index(self.iterator)
        space = set_space(parameters(found.domain.get_space()), len(found.iterators) + 1, found.name)
        places = [index(space, position) for position in range(len(found.iterators) + 1)]
        block, within = places[at : at + 2]
        old = [*places[:at], block.scale_val(number(self.size)).add(within), *places[at + 2 :]]
        where = isl.PwMultiAff.from_map(mapped_to(space, found.name, old))
        inside = zero(space).le_set(within).intersect(within.lt_set(function(space, Affine.of(self.size))))
        domain = found.domain.preimage_pw_multi_aff(where).intersect(inside)
        value = {self.iterator: Affine.name(self.block) * self.size + Affine.name(self.iterator)}
        counted = replace(
            found,
            iterators=(*found.iterators[:at], self.block, *found.iterators[at:]),
            domain=domain,
            target=placed(found.target, value),
            expr=placed(found.expr, value),
        )

        def moved(node: Node) -> Node:
            node = mapped(node, moved)
            if not isinstance(node, Band):
                return node
            functions = (
                (name, f.pullback_pw_multi_aff(where).gist(domain) if name == found.name else f)
                for name, f in node.functions
            )
            return replace(node, functions=tuple(functions))

        every = tuple(counted if s is found else s for s in nest.statements)
        return replace(nest, statements=every, tree=moved(nest.tree), opened=nest.structure), moved(tree)

    def _in_two_loops(self, nest: Nest, tree: Node) -> Node:
        """The tree with two loops instead of one over both iterators of this statement alone."""
        found = nest.statement(self.statement)
        both = Affine.name(self.block) * self.size + Affine.name(self.iterator)
        for band in bands(tree):
            if statements(band) != (found.name,) or linear(found.iterators, band.function(found.name)) != both:
                continue
            block, within = (coordinate(found.domain, found.iterators.index(i)) for i in (self.block, self.iterator))
            inner = replace(band, functions=((found.name, within),))
            outer = Band(fresh(tree, f"{band.name}_tile"), ((found.name, block),), inner)
            return edit(tree, band, outer)
        return tree
