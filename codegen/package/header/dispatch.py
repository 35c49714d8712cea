"""Dispatch: the choice of a call's kernel, the memory that it needs, and the call itself.

ROUTINE_select(isa, sizes, strides)          the kernel's number, 0 if the file has none
ROUTINE_need(kernel, sizes, threads)         its workspace in bytes
ROUTINE_most(sizes, threads)                 the largest workspace of all kernels, as any may be forced later
ROUTINE_run(kernel, sizes, strides, arrays, threads, workspace)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from codegen.c import functions
from codegen.ir.integer import in_c, product
from codegen.names import c_name
from codegen.package.api import own_name
from codegen.package.header.isas import constant
from codegen.package.header.macros import replaced
from codegen.package.header.sections import where
from codegen.package.values import Routine, Variant
from codegen.parameters import Parameter, data_parameters, prototype, size_parameters
from codegen.workspace import Layout
from microkernels.isa import ISA

THREADS, WORKSPACE = Parameter("int64_t ", "threads"), Parameter("void *", "workspace")


def dispatch(routine: Routine, isas: Sequence[ISA], names: Mapping[Variant, str]) -> str:
    """The four functions, after that which checks indices; `names` are those of the kernels."""
    checking = [replaced(functions(routine.lookups, "static "))] if routine.lookups else []
    return "\n\n".join([*checking, _select(routine, isas, names), _need(routine), _most(routine), _run(routine, names)])


def select_parameters(routine: Routine) -> tuple[Parameter, ...]:
    """The parameters of `ROUTINE_select`."""
    return (Parameter("pfx_isa ", own_name(routine, "isa")), *size_parameters(routine.signature.sizes))


def need_parameters(routine: Routine) -> tuple[Parameter, ...]:
    """The parameters of `ROUTINE_need`."""
    return (kernel_parameter(routine), *most_parameters(routine))


def most_parameters(routine: Routine) -> tuple[Parameter, ...]:
    """The parameters of `ROUTINE_most`."""
    return (*size_parameters(routine.sizes), THREADS)


def run_parameters(routine: Routine) -> tuple[Parameter, ...]:
    """The parameters of `ROUTINE_run`."""
    plain = (Parameter(p.prefix.replace("restrict ", ""), p.name) for p in data_parameters(routine.reference))
    return (kernel_parameter(routine), *plain, THREADS, WORKSPACE)


def kernel_parameter(routine: Routine) -> Parameter:
    return Parameter("int ", own_name(routine, "serving"))


def _select(routine: Routine, isas: Sequence[ISA], functions: Mapping[Variant, str]) -> str:
    isa, *sizes = select_parameters(routine)
    lines = [f"switch ({isa.name}) {{"]
    for one in isas:
        cases = [f"case {constant(one)}:"]
        for number, variant in _numbered(routine):
            if variant.isa == one:
                test = " && ".join(_tests(routine, variant))
                cases.append(f"    {f'if ({test}) ' * bool(test)}return {number}; /* {functions[variant]} */")
        lines += where(one, cases)
    return _function(routine, "int", "select", (isa, *sizes), [*lines, "default: return 0;", "}"])


def _need(routine: Routine) -> str:
    kernel, *rest = need_parameters(routine)
    cases = ((v, [f"case {n}: return {needed};"]) for n, v in _numbered(routine) if (needed := _bytes(v)) != "0")
    lines = [f"switch ({kernel.name}) {{", *_guarded(cases), "default: return 0;", "}"]
    return _function(routine, "int64_t", "need", (kernel, *rest), lines)


def _most(routine: Routine) -> str:
    parameters, most, count = most_parameters(routine), own_name(routine, "most"), own_name(routine, "bytes")

    def larger(number: int, variant: Variant) -> list[str]:
        arguments = ", ".join([str(number), *(p.name for p in parameters)])
        tests = [*(f"{c_name(size)} == {value}" for size, value in variant.sizes), f"{count} > {most}"]
        return [f"{count} = {routine.name}_need({arguments});", f"if ({' && '.join(tests)}) {most} = {count};"]

    found = [(v, larger(n, v)) for n, v in _numbered(routine) if _bytes(v) != "0"]
    lines = [f"int64_t {most} = 0, {count} = 0;", *_guarded(found), f"(void){count};", f"return {most};"]
    return _function(routine, "int64_t", "most", parameters, lines)


def _run(routine: Routine, functions: Mapping[Variant, str]) -> str:
    parameters = run_parameters(routine)
    cases = ((v, [f"case {n}: (void){functions[v]}({_arguments(v)}); return;"]) for n, v in _numbered(routine))
    lines = [f"switch ({kernel_parameter(routine).name}) {{", *_guarded(cases), "default: return;", "}"]
    return _function(routine, "void", "run", parameters, lines)


def _numbered(routine: Routine) -> Iterator[tuple[int, Variant]]:
    """The kernels with their numbers."""
    return enumerate(routine.variants, start=1)


def _guarded(found: Iterable[tuple[Variant, list[str]]]) -> Iterator[str]:
    """Lines about kernels, compiled wherever the kernels are."""
    for isa, group in groupby(found, key=lambda pair: pair[0].isa):
        yield from where(isa, [line for _, lines in group for line in lines])


def _tests(routine: Routine, variant: Variant) -> Iterator[str]:
    """The conditions on sizes and strides; none if the kernel serves all."""
    known = dict(variant.sizes)
    yield from (f"{c_name(size)} == {value}" for size, value in variant.sizes)
    for buffer in routine.signature.arrays if variant.dense else ():
        for at, stride in enumerate(buffer.strides or ()):
            if stride in routine.strides:
                rest = [in_c(extent.substitute(known)) for extent in buffer.shape[at + 1 :]]
                yield f"{c_name(stride)} == {product(rest)}"


def _bytes(variant: Variant) -> str:
    """C text of the workspace bytes that the kernel needs."""
    return Layout.of(variant.program).needed(limited=True)


def _arguments(variant: Variant) -> str:
    return ", ".join([*(p.name for p in data_parameters(variant.program)), THREADS.name, WORKSPACE.name])


def _function(routine: Routine, result: str, name: str, parameters: Sequence[Parameter], lines: Sequence[str]) -> str:
    """The C text of a function; some parameters may be used only where certain kernels are compiled."""
    used = set(re.findall(r"\w+", _always("\n".join(lines))))
    idle = " ".join(f"(void){p.name};" for p in parameters if p.name not in used)
    body = [line if line.startswith("#") else f"    {line}" for line in ([idle] if idle else []) + [*lines]]
    return "\n".join([prototype(f"PFX_INLINE {result}", f"{routine.name}_{name}", parameters), "{", *body, "}"])


def _always(code: str) -> str:
    """The code that is compiled everywhere."""
    return re.sub(r"^#if .*?^#endif$", "", code, flags=re.DOTALL | re.MULTILINE)
