"""What code generation is handed: buffers, sizes, loops, and for each statement what to print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from codegen.expr import Expr, Load
from codegen.instructions import Call, Let, replaced_in
from codegen.integer import Affine, Int, Linear, Test
from codegen.loop_ir import Block, Node, below, renamed, substituted
from codegen.names import RESERVED, c_name
from microkernels.dtypes import DType
from microkernels.isa import ISA, PORTABLE

Threading = Literal["openmp", "pthreads", "none"]
"""How the iterations of a parallel loop are shared out."""


@dataclass(frozen=True)
class Buffer:
    """An argument of the generated function.

    `shape` is affine in the program's sizes (integers where they are fixed). `strides` (in elements) name sizes or
    are integers; None means dense, row-major. A scalar has kind "scalar", rank 0, and is passed by value. A local is
    stored in the workspace: in the scratch array of its name in `Program.workspaces`, with the strides `layout`, or if
    there is none in a dense shared one.
    """

    name: str
    dtype: DType
    shape: tuple[Affine, ...]
    kind: Literal["in", "out", "inout", "scalar", "local"]
    strides: tuple[str, ...] | None = None
    layout: tuple[Int, ...] | None = None


@dataclass(frozen=True)
class Assign:
    """`target op= expr`, in terms of the statement's iterators."""

    target: Load
    op: Literal["=", "+", "*", "min", "max"]
    expr: Expr


@dataclass(frozen=True)
class Instructions:
    """What an instance runs that is not an assignment: loops and instructions, in terms of iterators as C variables.

    `checks` assert that it stays inside of the arrays. `definitions` are constants that some of both use. On an OpenCL
    device, `items` work-items run it together (0: all of their group; None: one alone).
    """

    nodes: tuple[Node, ...]
    checks: tuple[Call, ...] = ()
    definitions: tuple[Let, ...] = ()
    items: int | None = None
    comment: str = ""
    """What it does."""

    def body(self, bounds: bool, values: Mapping[str, Int] | None = None) -> Block:
        """The definitions that are used, the assertions if `bounds`, and the nodes; `values` are those of iterators."""
        known = values or {}
        nodes = (substituted(node, known) for node in (*(self.checks if bounds else ()), *self.nodes))
        definitions = (Let(let.name, replaced_in(let.value, known), let.type) for let in self.definitions)
        return below(tuple(definitions), tuple(nodes))


@dataclass(frozen=True)
class PrintedStatement:
    """What an instance `name(e0, e1, …)` becomes: `body`, with the iterators standing for e0, e1, …

    It runs where the condition `where` holds, in iterators and sizes; always without one.
    """

    iterators: tuple[str, ...]
    body: Assign | Instructions
    where: Test | None = None


@dataclass(frozen=True)
class Workspace:
    """A scratch array of `count` elements (in terms of the sizes, by their names in C), aligned to 64 bytes.

    A private one exists once a thread, and is declared inside the parallel loop; a shared one exists once a call. On an
    OpenCL device, a private one exists once a work-group, in the address space `space`: `__global` memory, `__local`
    memory, or once a work-item, in `private` memory.
    """

    name: str
    dtype: DType
    count: Int
    private: bool = True
    space: Literal["global", "local", "private"] = "global"
    holds: str = ""
    """What is in it, for readers."""


@dataclass(frozen=True)
class Program:
    """One function to generate.

    Its C prototype is `int32_t NAME(int64_t SIZE…, T *restrict ARRAY… (const where only read), T SCALAR…, int64_t
    threads, void *workspace)`, arrays and scalars in the order of `buffers`; it returns 0. `NAME_workspace(int64_t
    SIZE…, int64_t threads)` returns the workspace's bytes. `preamble` is C text that goes before the function
    (microkernels). `isa` has the vectors' width. Unless `fused`, a product and a sum are rounded each by itself.
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

    @property
    def size_names(self) -> dict[str, Int]:
        """What sizes stand for: variables by their names in C."""
        return {size: Linear.name(c_name(size)) for size in self.sizes}

    @property
    def taken(self) -> frozenset[str]:
        """The names in C that no variable may have."""
        names = (*self.sizes, *(b.name for b in self.buffers), *(w.name for w in self.workspaces))
        return frozenset(map(c_name, names)) | RESERVED

    @property
    def named_loops(self) -> Node:
        """The loops by the names in C of sizes and variables."""
        return renamed(self.loops, {size: c_name(size) for size in self.sizes}, self.taken)
