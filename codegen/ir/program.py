"""The input of code generation: buffers, sizes, loops, and the text of each statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from codegen.ir.expr import Expr, Load
from codegen.ir.instructions import Call, Let, replaced_in
from codegen.ir.integer import Affine, Int, Linear, Test
from codegen.ir.loop_ir import Block, Node, below, renamed, substituted
from codegen.names import RESERVED, c_name
from microkernels.dtypes import CallerElements, DType
from microkernels.isa import ISA, PORTABLE

APART = (2, 4)
"""The elements from one that lanes write to the next, for which a mask of the others is one operation."""
Threading = Literal["openmp", "pthreads", "none"]
"""The way to distribute the iterations of a parallel loop to threads."""

VECTORS = 4
"""The vectors that a loop in lanes computes side by side, which hide each other's latency."""
MOST_VECTORS = 8
"""The most vectors of a register tile (codegen/lanes/register_tile.py) for each element that an iteration keeps."""


@dataclass(frozen=True)
class Buffer(CallerElements):
    """An argument of the generated function, or a local array.

    `shape` is affine in the program's sizes (integers where they are fixed). `strides` (in elements) name sizes or
    are integers; None means dense, row-major. A scalar has kind "scalar", rank 0, and is passed by value. A local is
    stored in the workspace: in the scratch array of its name in `Program.workspaces`, with the strides `layout`, or if
    there is none, in a dense shared one. A local that is a `variable` is declared in the loops instead. An argument
    that is `held` is passed by the kernel itself, not by its caller. The last dimension of one that `is_complex` has
    two elements, the real and the imaginary part of a number that the caller passes.
    """

    name: str
    dtype: DType
    shape: tuple[Affine, ...]
    kind: Literal["in", "out", "inout", "scalar", "local"]
    strides: tuple[str, ...] | None = None
    layout: tuple[Int, ...] | None = None
    variable: bool = False
    held: bool = False
    is_complex: bool = False

    @property
    def is_complex_value(self) -> bool:
        """Whether the caller may pass a complex number, in place of an array of rank 0."""
        return self.is_complex and self.kind == "in" and not self.extents


@dataclass(frozen=True)
class Assign:
    """`target op= expr`, in terms of the statement's iterators."""

    target: Load
    op: Literal["=", "+", "*", "min", "max"]
    expr: Expr


@dataclass(frozen=True)
class Instructions:
    """The loops and instructions of a statement that is not an assignment, with its iterators as C variables.

    `checks` assert that they stay inside the arrays. `definitions` are constants that nodes and checks use. On an
    OpenCL device, `items` work-items run it together (0: the whole group; None: one alone).
    """

    nodes: tuple[Node, ...]
    checks: tuple[Call, ...] = ()
    definitions: tuple[Let, ...] = ()
    items: int | None = None
    comment: str = ""
    """A description for readers of the generated code."""

    def body(self, bounds: bool, values: Mapping[str, Int] | None = None) -> Block:
        """The definitions that are used, the assertions if `bounds`, and the nodes; `values` are those of iterators."""
        known = values or {}
        nodes = (substituted(node, known) for node in (*(self.checks if bounds else ()), *self.nodes))
        definitions = (Let(let.name, replaced_in(let.value, known), let.type) for let in self.definitions)
        return below(tuple(definitions), tuple(nodes))


@dataclass(frozen=True)
class PrintedStatement:
    """The text of an instance `name(e0, e1, …)`: `body`, with the iterators replaced by e0, e1, …

    It runs if the condition `where` on iterators and sizes holds, or always if this is None.
    """

    iterators: tuple[str, ...]
    body: Assign | Instructions
    where: Test | None = None


@dataclass(frozen=True)
class Workspace:
    """A scratch array of `count` elements (in terms of the sizes, by their names in C), aligned to 64 bytes.

    A private one exists once per thread, and is declared inside the parallel loop; a shared one exists once per call.
    On an OpenCL device, a private one exists once per work-group in `global` or `local` memory, or once per work-item
    in `private` memory, as `space` says.
    """

    name: str
    dtype: DType
    count: Int
    private: bool = True
    space: Literal["global", "local", "private"] = "global"
    holds: str = ""
    """A description of the contents for readers of the generated code."""
    copied: str = ""
    """The array of which it has panels, if it has panels."""
    filled_by: str = ""
    """The statement that fills these panels."""


@dataclass(frozen=True)
class Program:
    """One function to generate.

    Its C prototype is `int32_t NAME(int64_t SIZE…, T *restrict ARRAY… (const where only read), T SCALAR…, int64_t
    threads, void *workspace)`, arrays and scalars in the order of `buffers`; it returns 0. `NAME_workspace(int64_t
    SIZE…, int64_t threads)` returns the workspace's bytes. `preamble` is C text that precedes the function
    (microkernels). `isa` determines the vectors' width. Unless `fused`, products and sums are rounded separately.
    `registers` is the most that a work-item of a GPU may have (0: no limit). Loops that other work keeps from reading
    memory fetch what they will read so many bytes `ahead` (0: they do not).
    Its sizes make each of the `conditions` 0 or more.
    `comment`, `fixed` sizes and the nest's `text` are for the heading. Names in C are those of `codegen.names.c_name`.
    """

    name: str
    sizes: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    loops: Node
    statements: Mapping[str, PrintedStatement]
    workspaces: tuple[Workspace, ...] = ()
    preamble: str = ""
    fixed: tuple[tuple[str, int], ...] = ()
    comment: str = ""
    text: str = ""
    isa: ISA = PORTABLE
    fused: bool = True
    registers: int = 0
    ahead: int = 0
    conditions: tuple[Affine, ...] = ()

    @property
    def size_names(self) -> dict[str, Int]:
        """The C variable of each size."""
        return {size: Linear.name(c_name(size)) for size in self.sizes}

    @property
    def taken(self) -> frozenset[str]:
        """The C names that are not available for variables."""
        names = (*self.sizes, *(b.name for b in self.buffers), *(w.name for w in self.workspaces))
        return frozenset(map(c_name, names)) | RESERVED

    @property
    def named_loops(self) -> Node:
        """The loops with the C names of sizes and variables."""
        return renamed(self.loops, {size: c_name(size) for size in self.sizes}, self.taken)
