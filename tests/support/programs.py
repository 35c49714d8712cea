"""Small programs for the tests of code generation, each from an isl schedule written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl
import pytest
from headers import Toolchain, need, need_isa

from codegen.c import link_flags, source
from codegen.calls.call import Caller, make_caller
from codegen.calls.guard import declarations
from codegen.ir.expr import Binary, Const, Expr, FunctionCall, Load
from codegen.ir.instructions import Cell, Factor, Write
from codegen.ir.integer import Affine, Linear
from codegen.ir.isl_ast import loops
from codegen.ir.loop_ir import Block, For, LoopMark, Node, Once, mapped
from codegen.ir.program import Assign, Buffer, Instructions, PrintedStatement, Program, Workspace
from codegen.ir.signature import Signature
from codegen.toolchain.build import load
from microkernels.dtypes import DType, f32

i, j, k, M, N, K = (Affine.name(name) for name in ("i", "j", "k", "M", "N", "K"))


def band(name: str, function: str, child: str = "") -> str:
    """A loop of a schedule tree, as isl's YAML: its mark, its function, and its body."""
    sizes, _, functions = function.partition("{")
    below = f", child: {child}" if child else ""
    return f'{{ mark: "loop:{name}", child: {{ schedule: "{sizes}[{{{functions}]"{below} }} }}'


def sequence(*children: tuple[str, str]) -> str:
    """A sequence in a schedule tree: the statements of each part, and their tree."""
    parts = [f'{{ filter: "{which}"' + (f", child: {tree} }}" if tree else " }") for which, tree in children]
    return f"{{ sequence: [ {', '.join(parts)} ] }}"


def scan(domain: str, tree: str, *marks: LoopMark, **named: LoopMark) -> Node:
    """The loops for a domain and a schedule tree, with their marks; by keyword those of loops with another name."""
    schedule = isl.Schedule(f'{{ domain: "{domain}", child: {tree} }}')
    known = {mark.name: mark for mark in marks} | named
    return loops(isl.AstBuild.from_context(isl.Set("{ : }")).node_from_schedule(schedule), known)


def marked(program: Program, *marks: LoopMark) -> Program:
    """A program with other marks of its loops; loops that are not named have none."""
    known = {mark.name: mark for mark in marks}

    def change(node: Node) -> Node:
        if isinstance(node, For | Once):
            node = replace(node, mark=known.get(node.mark.name, LoopMark(node.mark.name)))
        return mapped(node, change)

    return replace(program, loops=change(program.loops))


def times(left: Expr, right: Expr) -> Expr:
    return Binary("*", left, right)


def matmul(marks: Sequence[LoopMark] = (), order: str = "ikj", size: int | None = None, dtype: DType = f32) -> Program:
    """`C[i, j] += A[i, k] * B[k, j]` with `i` tiled by 6; sizes are symbolic unless given."""
    sizes = () if size else ("M", "N", "K")
    m, n, depth = (Affine.of(size) if size else extent for extent in (M, N, K))
    known = f"[{', '.join(sizes)}] -> " if sizes else ""
    tree = ""
    functions = {"i": "i - 6*floor(i/6)", "j": "j", "k": "k"}
    for name in reversed(order):
        tree = band(name, f"{known}{{ S[i, j, k] -> [{functions[name]}] }}", tree)
    tree = band("i_tile", f"{known}{{ S[i, j, k] -> [6*floor(i/6)] }}", tree)
    domain = f"{known}{{ S[i, j, k] : 0 <= i < {m} and 0 <= j < {n} and 0 <= k < {depth} }}"
    body = Assign(Load("C", (i, j)), "+", times(Load("A", (i, k)), Load("B", (k, j))))
    return Program(
        "matmul",
        sizes,
        (
            Buffer("A", dtype, (m, depth), "in"),
            Buffer("B", dtype, (depth, n), "in"),
            Buffer("C", dtype, (m, n), "inout"),
        ),
        scan(domain, tree, *marks),
        {"S": PrintedStatement(("i", "j", "k"), body)},
    )


def scaled_copy() -> Program:
    """`y = alpha * x` row by row through scratch arrays: a shared one of all rows and a private one of one row."""
    known = "[M, N] -> "
    domain = f"{known}{{ Fill[i] : 0 <= i < M; Drain[i] : 0 <= i < M }}"
    rows = band(
        "i",
        f"{known}{{ Fill[i] -> [i]; Drain[i] -> [i] }}",
        sequence((f"{known}{{ Fill[i] }}", ""), (f"{known}{{ Drain[i] }}", "")),
    )
    row = Linear.name("row_number") * N
    x, y, one, every = Cell("x", row + j), Cell("y", row + j), Cell("one", j), Cell("all", row + j)
    half = Factor(times(Load("alpha", ()), Const(0.5)), f32)
    fill = (Write(one, x), Write(every, x))
    drain = (Write(y, one), Write(y, every, "+", f32), Write(y, half, "*", f32))
    return Program(
        "scaled_copy",
        ("M", "N"),
        (
            Buffer("x", f32, (M, N), "in"),
            Buffer("y", f32, (M, N), "out"),
            Buffer("alpha", f32, (), "scalar"),
        ),
        scan(domain, rows, LoopMark("i", parallel=True)),
        {
            "Fill": PrintedStatement(("row_number",), Instructions((For.counted("j", N, Block(fill)),))),
            "Drain": PrintedStatement(("row_number",), Instructions((For.counted("j", N, Block(drain)),))),
        },
        (Workspace("all", f32, M * N, private=False), Workspace("one", f32, N)),
    )


def softmax() -> Program:
    """Each row of `x` through a softmax into `y`: a maximum, a sum and two elementwise passes, every loop in lanes."""
    known = "[M, N] -> "
    each = "[i, j] : 0 <= i < M and 0 <= j < N"
    domain = f"{known}{{ Low[i] : 0 <= i < M; Zero[i] : 0 <= i < M; Max{each}; Exp{each}; Sum{each}; Div{each} }}"
    inner = [
        (name, band(f"j_{name}", f"{known}{{ {name}[i, j] -> [j] }}") if name in ("Max", "Exp", "Sum", "Div") else "")
        for name in ("Low", "Zero", "Max", "Exp", "Sum", "Div")
    ]
    spaces = {name: f"{known}{{ {name}[i{', j' if tree else ''}] }}" for name, tree in inner}
    functions = "; ".join(f"{name}[i{', j' if tree else ''}] -> [i]" for name, tree in inner)
    tree = band("i", f"{known}{{ {functions} }}", sequence(*((spaces[name], tree) for name, tree in inner)))
    x, y, top, total = Load("x", (i, j)), Load("y", (i, j)), Load("top", (i,)), Load("total", (i,))
    bodies = {
        "Low": Assign(top, "=", Const(float("-inf"))),
        "Zero": Assign(total, "=", Const(0)),
        "Max": Assign(top, "max", x),
        "Exp": Assign(y, "=", FunctionCall("exp", (Binary("-", x, top),))),
        "Sum": Assign(total, "+", y),
        "Div": Assign(y, "=", Binary("/", y, total)),
    }
    marks = {f"j_{name}": LoopMark("j", vectorize=True) for name, tree in inner if tree}
    return Program(
        "softmax",
        ("M", "N"),
        (
            Buffer("x", f32, (M, N), "in"),
            Buffer("y", f32, (M, N), "inout"),
            Buffer("top", f32, (M,), "local"),
            Buffer("total", f32, (M,), "local"),
        ),
        scan(domain, tree, **marks),
        {name: PrintedStatement(("i", "j") if tree else ("i",), bodies[name]) for name, tree in inner},
    )


def single(expr: Expr, buffers: Sequence[Buffer], op: str = "=") -> Program:
    """`y[i] op= expr` for i below N."""
    known = "[N] -> "
    tree = band("i", f"{known}{{ S[i] -> [i] }}")
    y = next(b for b in buffers if b.name == "y")
    return Program(
        "single",
        ("N",),
        tuple(buffers),
        scan(f"{known}{{ S[i] : 0 <= i < N }}", tree),
        {"S": PrintedStatement(("i",), Assign(Load("y", (i,) * len(y.shape)), op, expr))},
    )


def built(program: Program, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """The program as a function, built by a compiler for the program's instruction set."""
    need(compiler)
    need_isa(program.isa)
    monkeypatch.setenv("POLY_CC", " ".join(compiler.command))
    text, signature = source(program), Signature.of(program)
    return make_caller(signature, load(text, declarations(signature), (*program.isa.flags, *link_flags(program))))


def compiled(program: Program, threads: int = 1, **more: object) -> Caller:
    """The program as a function of arrays."""
    text = source(program)
    signature = Signature.of(program)
    return make_caller(signature, load(text, declarations(signature), ("-march=native", *link_flags(program))), threads)
