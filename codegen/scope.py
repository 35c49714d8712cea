"""What is known and in use at a place in the loops that are printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from codegen.elements import Element
from codegen.ir.integer import Int, Test
from codegen.ir.loop_ir import For, Once
from codegen.ir.program import Program
from codegen.ir.ranges import Ranges, facts
from codegen.lanes.reductions import Shape
from codegen.lanes.selection_loop import Instead
from codegen.lanes.vector_calls import VectorCalls
from codegen.names import c_name
from microkernels.dtypes import DType


@dataclass(frozen=True)
class LoopScope:
    """The facts known at a place in the loops."""

    taken: frozenset[str]
    """C names in use."""
    variables: tuple[str, ...] = ()
    """Loop variables around, outermost first."""
    parallel: bool = False
    """Whether the place is inside a loop marked as parallel, even one that runs once: each thread has its own scratch
    arrays there, so no loop inside is parallelised again."""
    accumulators: Mapping[str, str] = field(default_factory=dict)
    """The variables that accumulate elements, by the statements that reduce into them."""
    sums: frozenset[str] = frozenset()
    """The statements whose variables are sums of unsigned integers."""
    smaller: Mapping[str, DType] = field(default_factory=dict)
    """The types of these variables that are smaller than their elements'."""
    wide: frozenset[str] = frozenset()
    """The locals that keep their own types, in loops whose sums compilers have instructions for."""
    lasting: Mapping[str, tuple[Shape, tuple[str, ...]]] = field(default_factory=dict)
    """The vectors that take in a vector loop's reductions, as these go on in a loop around it: by its variable."""
    held: Mapping[Element, str] = field(default_factory=dict)
    """The variables that hold hoisted elements, which are only read."""
    instead: Mapping[str, Instead] = field(default_factory=dict)
    """What is printed in place of statements."""
    declaring: frozenset[str] = frozenset()
    """The statements that declare the variables that they assign."""
    ranges: Ranges = field(default_factory=Ranges)
    """The intervals of sizes and loop variables."""
    known: frozenset[Int | Test] = frozenset()
    """The facts that follow from the conditions around."""
    near: frozenset[str] | None = None
    """The functions that take near numbers here; None before a loop around is parted for them: see `lanes.near`."""
    over: Mapping[str, tuple[str, str]] | None = None
    """In a loop for which this is chosen: the variables of divisors and their reciprocals (see `lanes.division`)."""
    shares: int = 1
    """On an OpenCL device: the number of work-items that share the loops around."""
    calls: VectorCalls | None = None
    """In lanes: what is called for whole vectors (see `codegen.lanes.vector_calls`)."""
    lanes: bool = False
    """Whether the place is in a loop that has lanes."""

    def inside(self, loop: For | Once) -> LoopScope:
        """The scope inside a loop."""
        own = (loop.variable,) if isinstance(loop, For) else ()
        parallel = self.parallel or loop.mark.parallel
        variables = (*self.variables, *own)
        lanes = self.lanes or loop.mark.vectorize
        inner = replace(self.using(own), variables=variables, parallel=parallel, lanes=lanes)
        return inner.where([loop.test], self.ranges.inside(loop)) if isinstance(loop, For) else inner

    def using(self, names: Iterable[str]) -> LoopScope:
        """The scope with some more C names in use."""
        return replace(self, taken=self.taken.union(names))

    def holding(self, held: Mapping[Element, str]) -> LoopScope:
        """The scope in which variables hold some more elements."""
        return replace(self, held={**self.held, **held})

    def calling(self, calls: VectorCalls | None, kept: Mapping[Element, str]) -> LoopScope:
        """The scope with calls of whole vectors, and where their values are kept; without, if nothing is kept."""
        return replace(self.holding(kept), calls=calls) if kept else self

    def where(self, tests: Iterable[Test], ranges: Ranges | None = None) -> LoopScope:
        """The scope inside some conditions."""
        said = (fact for test in tests for fact in facts(test))
        return replace(self, known=self.known.union(said), ranges=ranges or self.ranges)

    def unknown(self, tests: Iterable[Test]) -> tuple[Test, ...]:
        """The conditions, simplified, without those known to hold here."""
        simpler = (self.ranges.test(test) for test in tests if not self.ranges.holds(test))
        return tuple(dict.fromkeys(test for test in simpler if not self.known.issuperset(facts(test))))

    @staticmethod
    def of(program: Program) -> LoopScope:
        """The scope outside all loops."""
        return LoopScope(program.taken, ranges=Ranges.of_sizes(map(c_name, program.sizes)))
