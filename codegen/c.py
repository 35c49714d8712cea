"""Print a program as readable C."""

from __future__ import annotations

import textwrap
from functools import cache, partial

import cgen

from codegen import arithmetic, style
from codegen.called import with_called
from codegen.calls.guard import guard
from codegen.directives import UNFUSED, directives
from codegen.elementary import functions as elementary
from codegen.elementary import vector_functions
from codegen.ir.integer import HELPERS
from codegen.ir.loop_ir import Run, is_threaded
from codegen.ir.program import Instructions, Program, Threading, Workspace
from codegen.ir.signature import Signature
from codegen.lanes import vectors
from codegen.lanes.repeated import told_apart
from codegen.lanes.rerolled import rerolled
from codegen.lanes.specialised import specialised
from codegen.loop_text import assignment, flags, loop_lines
from codegen.loops import Writer
from codegen.macros import definitions
from codegen.names import function_name
from codegen.parameters import (
    Parameter,
    call_parameters,
    data_parameters,
    prototype,
    serial_setup,
    size_parameters,
    unused,
)
from codegen.scope import LoopScope
from codegen.style import names_in, wrapped
from codegen.toolchain.build import OPENMP
from codegen.workspace import Layout
from microkernels.isa import ISA, PORTABLE


def source(program: Program, threading: Threading = "openmp", bounds: bool = False) -> str:
    """The C text of a program, with the guard for calls from Python."""
    return f"{kernel_source(program, threading, bounds)}\n\n{wrapped(guard(Signature.of(program)))}"


def kernel_source(program: Program, threading: Threading = "openmp", bounds: bool = False) -> str:
    """The C text of a program: helpers, the bodies of parallel loops, the kernel, and the workspace's size."""
    code = wrapped("\n\n".join([functions(program, "", threading, bounds), workspace_function(program)]))
    helpers = used_helpers(code, program.isa)
    options = [*([] if program.fused else [UNFUSED]), *directives(helpers + code)]
    top = [heading(program), includes(program, threading, helpers), *options, definitions(helpers + code), helpers]
    return "\n\n".join(part for part in [*top, routines(program), code] if part)


def routines(program: Program) -> str:
    """The source's microkernels and packing routines."""
    return wrapped(program.preamble.strip("\n"))


def functions(program: Program, linkage: str = "", threading: Threading = "openmp", bounds: bool = False) -> str:
    """The kernel, after the bodies of its parallel loops; with `bounds`, accesses are asserted to be in bounds."""
    parameters, program = data_parameters(program), told_apart(rerolled(program))
    writer = Writer(program, threading, bounds)
    scope = LoopScope.of(program)
    body = writer.write(specialised(program.named_loops, scope.ranges), scope)
    setup = serial_setup(program, names_in(body))
    every = parameters + call_parameters()
    void = map(cgen.Line, unused(every, names_in([*setup, *body])))
    function = style.Braces([*void, *setup, *body, cgen.Line("return 0;")])
    head = prototype(f"{linkage}int32_t", function_name(program.name), every)
    return "\n\n".join([*writer.functions, f"{head}\n{function}"])


def heading(program: Program) -> str:
    """The comment at the top: the nest as written, the loops that run, and the contents of the scratch arrays."""
    fixed = ", ".join(f"{name} = {value}" for name, value in program.fixed)
    first = " ".join([program.comment, *[f"Sizes: {fixed}"] * bool(fixed)]).strip()
    if not first:
        return ""
    written = [line for line in program.text.splitlines() if line.strip() and not line.startswith("@")]
    run = loop_lines(program.loops, partial(_outlined, program), lambda loop: flags(loop.mark))
    arrays = [f"{w.name}: {w.holds}; {w.count} elements{_owner(w)}" for w in program.workspaces if w.holds]
    parts = [[first], written, ["runs as", "", *run] * bool(written), arrays]
    text = "\n\n".join("\n".join(lines) for lines in parts if lines)
    return f"/* {textwrap.indent(_harmless(text), '   ').strip()} */"


def _owner(workspace: Workspace) -> str:
    return " for each thread" * workspace.private


def _harmless(text: str) -> str:
    """The text made safe for a comment: ASCII without comment delimiters and trigraphs."""
    plain = text.encode("ascii", "backslashreplace").decode()
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def _outlined(program: Program, run: Run) -> list[str]:
    """The lines for an instance of a statement in the heading."""
    statement = program.statements[run.statement]
    if isinstance(statement.body, Instructions):
        return [statement.body.comment or run.statement]
    values = dict(zip(statement.iterators, run.values, strict=True))
    return [assignment(statement.body.target, statement.body.op, statement.body.expr, values)]


def includes(program: Program, threading: Threading, helpers: str = "") -> str:
    """The headers that a program's text needs."""
    openmp = ["#include <omp.h>"] * _has_openmp(program, threading)
    intrinsics = [vector_functions.INCLUDE] * any(word in helpers for word in ("_mm512_", "_mm256_"))
    return "\n".join([*intrinsics, "#include <math.h>", "#include <stdint.h>", *openmp])


def _has_openmp(program: Program, threading: Threading) -> bool:
    return threading == "openmp" and is_threaded(program.loops)


def used_helpers(code: str, isa: ISA = PORTABLE) -> str:
    """The helper functions that the code calls, each after those that it calls itself."""
    return with_called(_every_helper(isa), code, vectors.helpers(code, isa.vector_bytes)).rstrip("\n")


@cache
def _every_helper(isa: ISA) -> dict[str, str]:
    """The helper functions by name, each after those that it calls."""
    return {**HELPERS, **arithmetic.functions(), **elementary.functions(isa)}


def workspace_function(program: Program) -> str:
    """The C function `NAME_workspace(sizes, threads)`, which returns the bytes that a call needs."""
    parameters = (*size_parameters(program.sizes), Parameter("int64_t ", "threads"))
    layout = Layout.of(program)
    void = map(cgen.Line, unused(parameters, layout.bytes_of("threads").names))
    body = style.Braces([*void, cgen.Line(f"return {layout.needed(limited=False)};")])
    return f"{prototype('int64_t', f'{function_name(program.name)}_workspace', parameters)}\n{body}"


def link_flags(program: Program, threading: Threading = "openmp") -> tuple[str, ...]:
    """The compiler flags that a program's text needs: OpenMP only if threads share a loop.

    clang ignores UNFUSED with `-ffp-contract=fast`, so a text that has it needs `-ffp-contract=off` too.
    """
    parallel = OPENMP if _has_openmp(program, threading) else ()
    return (*parallel, *(() if program.fused else ("-ffp-contract=off",)), "-lm")
