"""The names that generated statements report, and the parameters that functions are given because of them."""

from __future__ import annotations

import re
from typing import Any

import classic_nests
import pytest
from machines import LARGE

from codegen.c import link_flags
from codegen.ir.program import Program
from codegen.loops import Writer
from codegen.opencl.plan import device_program
from codegen.parameters import call_parameters, data_parameters, scratch_parameters
from codegen.scope import LoopScope
from codegen.style import Braces, names_in
from microkernels.isa import AVX512, ISA, PORTABLE
from microkernels.opencl_isa import OPENCL256, OPENCLGPU
from poly.autoschedule.default import default_schedule
from poly.lowering.lower import lower
from poly.model.core import Target

NESTS = {nest.name: nest for nest in classic_nests.SIZES}
FUNCTION = re.compile(r"^(?:static )?void \w+\((?P<parameters>[^{}]*)\)\n(?P<body>\{\n.*?^\})", re.M | re.S)


def lowered(name: str, isa: ISA) -> Program:
    """The default schedule, at open sizes for one half of the nests and at known ones for the other."""
    nest = NESTS[name]
    known = nest.with_sizes(classic_nests.SIZES[nest]) if list(NESTS).index(name) % 2 else nest
    made = default_schedule(known, Target.nominal(isa, LARGE, 2))
    return lower(made.nest, made.tree, isa)


def with_isas(*isas: ISA) -> list[Any]:
    """Each nest with one of the instruction sets, such that both meet open sizes and known ones."""
    return [
        pytest.param(name, isas[at // 2 % 2], id=f"{name}-{isas[at // 2 % 2].name}") for at, name in enumerate(NESTS)
    ]


def words(text: str) -> set[str]:
    """What C sees as a name; compilers may not know the pragmas."""
    return set(re.findall(r"[A-Za-z_]\w*", re.sub(r"^ *#.*|/\*.*?\*/", "", text, flags=re.M)))


@pytest.mark.parametrize(("name", "isa"), with_isas(AVX512, PORTABLE))
def test_names_are_those_of_the_text(name: str, isa: ISA) -> None:
    """Of the parameters that a function may take, the statements report those that their text has, and no others."""
    program = lowered(name, isa)
    candidates = (*data_parameters(program), *scratch_parameters(program), *call_parameters())
    for threading, bounds in (("openmp", False), ("pthreads", True), ("none", True)):
        writer = Writer(program, threading, bounds)
        body = writer.write(program.named_loops, LoopScope.of(program))
        found = words(str(Braces(body)))
        assert {p.name for p in candidates} & names_in(body) == {p.name for p in candidates} & found
        assert all(check_parameters(text) > 0 for text in writer.functions)
        assert ("#pragma omp parallel" in str(Braces(body))) == ("-fopenmp" in link_flags(program, threading))


@pytest.mark.parametrize(("name", "isa"), with_isas(OPENCL256, OPENCLGPU))
def test_kernels_take_what_they_name(name: str, isa: ISA) -> None:
    made = device_program(lowered(name, isa))
    assert check_parameters(made.source[made.source.index("__kernel") :]) == len(made.kernels)


def check_parameters(text: str) -> int:
    """Each function names all of its parameters; how many functions there are."""
    functions = list(FUNCTION.finditer(text))
    for function in functions:
        names = {parameter.split()[-1].lstrip("*") for parameter in function["parameters"].split(",")}
        assert names - {"void"} <= words(function["body"]), function[0]
    return len(functions)
