"""A failure as a pytest function, which is independent of the fuzzer if possible."""

from __future__ import annotations

import math
import re
import textwrap

import numpy as np

from fuzz import syntax
from fuzz.data import NUMPY
from fuzz.interpreter import Rejected
from fuzz.pairs import Failure, Pair, arguments
from fuzz.sources import nest_of
from fuzz.syntax import Program
from poly.kernel import signature

MOST = 200
"""Elements that are written out."""
HEAD = "import dataclasses\n\nimport numpy as np\n\nimport poly\n"
HEAD += "from poly import f16, f32, f64, i8, i16, i32, i64, u8, u16\n"


def as_test(failure: Failure, name: str) -> str:
    """The test's text."""
    pair = failure.pair
    assert pair is not None
    why = re.sub(r"\s+", " ", str(failure)).replace('"""', "'''").replace("\\", "/")[:220]
    try:
        body = _plain(pair) if pair.route in ("c", "public") and _elements(pair) <= MOST else _by_fuzzer(pair)
    except Rejected:
        body = _by_fuzzer(pair)
    return f'def test_{name}() -> None:\n    """{why}"""\n' + textwrap.indent(body, "    ")


def _elements(pair: Pair) -> int:
    """The number of elements of the arrays."""
    arrays = ([e.value(dict(run.sizes)) for e in a.shape or ()] for run in pair.runs for a in pair.program.args)
    return sum(math.prod(shape) for shape in arrays)


def _by_fuzzer(pair: Pair) -> str:
    """A test with the fuzzer's own code, for headers and devices, which need much glue."""
    text = textwrap.indent(pair.program.text(), "# ")
    known = [name for name in dir(syntax) if re.search(rf"\b{name}\(", repr(pair))]
    imports = "from fuzz.pairs import Pair, Run, tried\nfrom fuzz.schedules import Step\n"
    imports += f"from fuzz.syntax import {', '.join(known)}\n"
    return f"{imports}\n{text}assert tried(\n    {pair!r}\n) is None\n"


def _plain(pair: Pair) -> str:
    program = pair.program
    nest = program.name
    lines = _einsum(program) if program.einsum else _loops(program)
    if not program.reassociate and not program.einsum:
        lines.append(f"{nest} = dataclasses.replace({nest}, reassociate=False)")
    if pair.known:
        nest = "known"
        lines.append(f"known = {program.name}.with_sizes({pair.fixed()!r})")
    schedule = ""
    if pair.steps is not None:
        lines.append(f"schedule = poly.schedule({nest}){''.join(map(str, pair.steps))}")
        schedule = ", schedule=schedule"
    options = f'target="{pair.target}", threads={pair.threads}, records=False'
    lines.append(f"kernel = poly.compile({nest}{schedule}, {options})")
    for run, data in zip(pair.runs, arguments(pair), strict=True):
        told = []
        for arg in program.args:
            value = data.values[arg.name]
            kind = f"np.{NUMPY[arg.dtype].__name__}"
            if arg.shape is None:
                lines.append(f"v_{arg.name} = {kind}({value!s})")
            else:
                lines.append(f"v_{arg.name} = {_array(value, kind)}")
            told.append(f"v_{arg.name}")
        sizes = dict(run.sizes)
        told += [f"{size}={sizes[size]}" for size in signature(nest_of(program), True).given if size not in pair.known]
        lines.append(f"kernel({', '.join(told)})")
        for arg in program.args:
            if arg.shape is None:
                continue
            touched, bound = data.outcome.touched[arg.name], data.outcome.bounds[arg.name]
            kind = f"np.{NUMPY[arg.dtype].__name__}"
            expected = np.where(touched, data.outcome.values[arg.name], data.values[arg.name])
            limit = 2 * float(np.max(bound, initial=0.0))
            lines.append(
                f"np.testing.assert_allclose(v_{arg.name}, {_array(expected.astype(NUMPY[arg.dtype]), kind)}, "
                f"rtol=0, atol={limit:.3g})"
            )
    return "\n".join(lines) + "\n"


def _loops(program: Program) -> list[str]:
    lines = [f'{size} = poly.sizes("{size}")' for size in program.sizes]
    lines += [f"{name} = {value!r}" for name, value in program.constants]
    if program.functions and re.search(rf"\b({'|'.join(program.functions)})\(", program.text()):
        lines.append("from math import exp, sqrt, tanh")
    return [*lines, "", program.text().rstrip(), ""]


def _einsum(program: Program) -> list[str]:
    order = "" if program.reassociate else ", reassociate=False"
    return [f'{program.name} = poly.einsum("{program.einsum}", dtype={program.args[0].dtype}{order})']


def _array(value: np.ndarray, kind: str) -> str:
    if not value.size:
        return f"np.zeros({value.shape}, {kind})"
    flat = value.ravel()
    if (flat == flat[0]).all() or np.isnan(flat.astype(float)).all():
        return f"np.full({value.shape}, {_number(flat[0])}, {kind})"
    text = re.sub(r"\bnan\b", "np.nan", repr(value.tolist()))
    return f"np.array({text}, {kind})"


def _number(value) -> str:
    return "np.nan" if value != value else repr(value.item())
