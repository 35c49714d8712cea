"""Parallel loops, whose iterations are calls of a function: with OpenMP, with POSIX threads, or run serially.

for (i = 0; i < M; i += 6)          static void f_i_chunk(void *call, int64_t thread, int64_t first, int64_t past)
  f_i(M, A, i);               ->    {
                                      const int64_t M = given->M;
                                      …
                                      for (i = 6*first; i < 6*past; i += 6)
                                        f_i(M, A, i);
                                    }
                                    …
                                    pfx_parallel(threads, (M + 5)/6, f_i_chunk, &call);
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cgen

from codegen import style
from codegen.ir.integer import Int, Linear, compare, quotient
from codegen.ir.program import Program, Threading
from codegen.names import c_name, fresh
from codegen.parameters import (
    Parameter,
    data_parameters,
    needed,
    private_setup,
    prototype,
    scratch_parameters,
    workspace_parameter,
)
from codegen.style import Line, names_in
from codegen.workspace import Layout


@dataclass(frozen=True)
class Iteration:
    """The function `name` that runs one iteration of a parallel loop, with its `parameters`.

    The loop's variable runs from `start` to before `end` by `step`; `counters` are the variables of the loops around
    it. `around` makes the C loop from a body. `taken` are names in use. If the iterations' work is
    `uneven`, and much, each thread takes the next one when it is free.
    """

    program: Program
    name: str
    parameters: tuple[Parameter, ...]
    counters: tuple[Parameter, ...]
    variable: str
    start: Int
    end: Int
    step: int
    around: Callable[[list[cgen.Generable]], cgen.Generable]
    taken: frozenset[str]
    uneven: bool = False

    def call(self, names: Mapping[str, str]) -> cgen.Generable:
        """The call; `names` maps parameters to arguments with other names."""
        arguments = [names.get(p.name, p.name) for p in self.parameters]
        return Line(f"{self.name}({', '.join(arguments)});", arguments)

    @property
    def private(self) -> dict[str, str]:
        """The private scratch arrays among the parameters, and the names for the current thread's."""
        own = {c_name(workspace.name) for workspace in Layout.of(self.program).private}
        return {p.name: fresh(f"my_{p.name}", self.taken) for p in self.parameters if p.name in own}


def shared_out(iteration: Iteration, threading: Threading) -> tuple[list[str], list[cgen.Generable]]:
    """The C functions that the loop needs besides its body, and the statements in place of the loop."""
    match threading:
        case "openmp":
            return [], _openmp(iteration)
        case "pthreads":
            return _pthreads(iteration)
    return [], [iteration.around([iteration.call({})])]


def _openmp(iteration: Iteration) -> list[cgen.Generable]:
    mine = iteration.private
    shared = iteration.around([iteration.call(mine)])
    team = f"num_threads((int)threads) if({_several(iteration)})"
    kind = "dynamic" if iteration.uneven else "static"
    if not mine:
        return [cgen.Pragma(f"omp parallel for schedule({kind}) {team}"), shared]
    setup = private_setup(iteration.program, mine, "(int64_t)omp_get_thread_num()")
    return [
        cgen.Pragma(f"omp parallel {team}"),
        style.Braces([*setup, cgen.Pragma(f"omp for schedule({kind}) nowait"), shared]),
    ]


def _several(iteration: Iteration) -> str:
    """Whether there are threads and iterations for them: to start a team takes longer than a small kernel."""
    more = compare(iteration.end - iteration.start, ">", Linear.of(iteration.step))
    return "threads > 1" if more.left.number is not None else f"threads > 1 && {more}"


def _pthreads(iteration: Iteration) -> tuple[list[str], list[cgen.Generable]]:
    lines = _chunk_lines(iteration)
    known = needed(_candidates(iteration), names_in(lines))
    type_name, chunk = f"{iteration.name}_call", f"{iteration.name}_chunk"
    trips = quotient(iteration.end - iteration.start + (iteration.step - 1), iteration.step)
    given = [parameter.name for parameter in known]
    started = style.Braces(
        [
            Line(f"{type_name} call = {{{', '.join(given)}}};", given),
            Line(f"pfx_parallel(threads, {trips}, {chunk}, &call);", trips.names | {"threads"}),
        ]
    )
    return [_structure(type_name, known), _chunk(chunk, type_name, known, lines)], [started]


def _candidates(iteration: Iteration) -> tuple[Parameter, ...]:
    """The values that a chunk may need and that are the same for all chunks."""
    shared = {c_name(workspace.name) for workspace in Layout.of(iteration.program).shared}
    scratch = [parameter for parameter in scratch_parameters(iteration.program) if parameter.name in shared]
    return (*data_parameters(iteration.program), workspace_parameter(), *scratch, *iteration.counters)


def _chunk_lines(iteration: Iteration) -> list[cgen.Generable]:
    """The loop from iteration `first` to before `past`, with the scratch arrays of `thread`."""
    mine = iteration.private
    setup = private_setup(iteration.program, mine, "thread") if mine else [Line("(void)thread;")]
    low, high = (iteration.start + Linear.name(name) * iteration.step for name in ("first", "past"))
    variable = iteration.variable
    loop = style.ForStatement(
        Line(f"int64_t {variable} = {low}", low.names),
        Line(f"{variable} < {high}", high.names),
        Line(f"{variable} += {iteration.step}"),
        style.Braces([iteration.call(mine)]),
    )
    return [*setup, loop]


def _structure(name: str, members: Sequence[Parameter]) -> str:
    """The type of the values that all chunks share."""
    lines = [f"    {_plain(member)};" for member in members]
    return "\n".join(["typedef struct {", *lines, f"}} {name};"])


def _chunk(name: str, type_name: str, members: Sequence[Parameter], lines: Sequence[cgen.Generable]) -> str:
    """The function that a thread calls for its chunk."""
    given = f"const {type_name} *const given = (const {type_name} *)call;"
    constants = [given, *(f"{_constant(member)} = given->{member.name};" for member in members)]
    parameters = (Parameter("void *", "call"), *(Parameter("int64_t ", n) for n in ("thread", "first", "past")))
    body = style.Braces([*map(Line, constants), *lines])
    return f"{prototype('static void', name, parameters)}\n{body}"


def _plain(parameter: Parameter) -> Parameter:
    return Parameter(parameter.prefix.replace("restrict ", ""), parameter.name)


def _constant(parameter: Parameter) -> Parameter:
    """The parameter as a constant: `const int64_t M`, `const float *const A`."""
    prefix = _plain(parameter).prefix
    return Parameter(f"{prefix}const " if prefix.endswith("*") else f"const {prefix}", parameter.name)
