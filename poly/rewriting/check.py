"""`poly optimize --check`: each kernel, through its call in the new text, against the loops of the file.

Both are compiled from the new text itself: before each function stands one of our own, which takes the scop's variables
from pointers, and runs the scop as written or as rewritten.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pycparser import c_ast

from codegen.errors import ToolchainError
from codegen.package import Routine, SelfTestSizes
from microkernels.dtypes import DTYPES
from poly.analysis.facts import delicate, drifts
from poly.errors import SpecError
from poly.frontends.c.declarations import type_of
from poly.frontends.c.place import shown
from poly.frontends.c.reader import Outlined, Outside
from poly.ir.lookups import index_ranges
from poly.ir.nest import Nest
from poly.measure.child import Child, Died
from poly.measure.data import Array, excess, fill, mean
from poly.measure.live import own_workplace
from poly.measure.orders import OrderFailed, Ran, RunFunction
from poly.rewriting.kernels import Kernels
from poly.rewriting.scops import CFile, Scop
from poly.rewriting.text import Edit, Settings, rewritten, top

MOST = 8
"""The most sizes at which a scop is checked."""
FLAGS = (
    "-shared",
    "-fPIC",
    "-O2",
    "-fvisibility=hidden",
    "-ffunction-sections",
    "-fdata-sections",
    "-Wl,--gc-sections",
)
"""The library has only our functions and what they call, so that it needs nothing of the program's other files."""
LONGEST = 60.0
"""The most seconds of one call."""
NOISE = 16
"""The tolerance, in multiples of what the loops make of a change in the last bits of their data."""

Values = Mapping[str, Array]


@dataclass(frozen=True)
class Checked:
    """The comparison of one scop: at how many sizes, and the greatest error.

    `error` is that error as a fraction of what rounding allows, in `array`, where both values differ by `difference`.
    `problem` says what else is wrong, `obstacle` why nothing could be compared.
    """

    trials: int
    error: float = 0.0
    difference: float = 0.0
    array: str = ""
    problem: str = ""
    obstacle: str = ""

    @property
    def passed(self) -> bool:
        return not self.problem and not self.obstacle and self.error <= 1


def checked(
    file: CFile, kernels: Kernels, found: Sequence[Edit | None], prelude: str, settings: Settings
) -> dict[str, Checked]:
    """The comparison of each scop that has a kernel, by the place of the scop.

    Raises:
        ToolchainError: the new text can't be compiled as a library.
    """
    text = rewritten(_with_trials(file, kernels, found), kernels, found, prelude)
    with own_workplace() as folder:
        path = Path(folder) / "check.so"
        try:
            settings.says((*FLAGS, "-o", str(path)), text, file.name, reading=False)
        except SpecError as error:
            raise ToolchainError(f"{file.name} can't be compiled as a library for --check: {error}") from error
        child = Child(Path(folder))
        scops = zip(kernels.scops, kernels.routines, strict=True)
        try:
            return {
                scop.place: _compared(_Runs(child, path, f"poly_check_{at}"), scop, routine)
                for at, (scop, routine) in enumerate(scops)
                if routine is not None
            }
        finally:
            child.close()


def _with_trials(file: CFile, kernels: Kernels, found: Sequence[Edit | None]) -> CFile:
    """The file with our functions, in the lines before those of its scops."""
    lines = list(file.lines)
    for at, (scop, edit) in enumerate(zip(kernels.scops, found, strict=True)):
        if edit is not None:
            line = top(file, scop.begins)
            lines[line] = "\n" + _function(at, file, scop, edit) + lines[line]
    return CFile(file.name, tuple(lines), file.unit, file.scops, file.stray)


def _function(number: int, file: CFile, scop: Scop, edit: Edit) -> str:
    """C text of the function that runs a scop, and returns whether its kernel did the work."""
    assert scop.outline is not None, "a scop with a kernel has an outline"
    loops = "".join(file.lines[scop.first : scop.last - 1])
    typedefs = {d.name: d.type for d in file.unit.tree.ext if isinstance(d, c_ast.Typedef)}
    numbered = list(enumerate(scop.outline.outside.items()))
    before = [
        *map(_structure, scop.outline.structures),
        *(f"{pointer} = __builtin_calloc(1, sizeof(*{pointer}));" for pointer in scop.outline.pointers),
        *(line for at, (name, o) in numbered if not _rank(o) for line in _taken(at, name, o)),
        *(line for node in scop.outline.locals for line in _local(node, scop.outline, typedefs)),
        *(line for at, (name, o) in numbered if _rank(o) for line in _taken(at, name, o)),
    ]
    after = [
        *(line for at, (name, o) in numbered for line in _given_back(at, name, o)),
        *(f"__builtin_free({name});" for name in _local_arrays(scop.outline, typedefs)),
        *(f"__builtin_free({pointer});" for pointer in reversed(scop.outline.pointers)),
    ]
    lines = [
        '__attribute__((visibility("default")))',
        f"int poly_check_{number}(int poly_new, void *const *poly_given, const long *poly_bytes)",
        "{",
        "int poly_fast = 0;",
        *(file.unit.in_text(scop.outline.in_text(line)) for line in before),
        f"if (poly_new) {{\npoly_fast = 1;\n{edit.call}poly_fast = 0;\n{loops}{edit.end}}} else {{\n{loops}}}",
        *(file.unit.in_text(scop.outline.in_text(line)) for line in after),
        "return poly_fast;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _rank(found: Outside) -> int:
    return len(found.type.extents)


def _taken(at: int, name: str, found: Outside) -> Iterator[str]:
    """C lines that take a variable from the caller's pointers."""
    kind = found.type.in_c
    if not _rank(found):
        yield f"{'' if found.is_global else kind + ' '}{name} = *({kind} *)poly_given[{at}];"
    elif not found.is_global:
        rows = found.type.extents[1:]
        yield f"{_pointer(kind, name, rows)} = ({kind}{_target(rows)})poly_given[{at}];"
    elif found.type.pointer:
        yield f"{name} = ({kind}{_target(found.type.extents[1:])})poly_given[{at}];"
    elif "const" not in found.node.quals:
        yield f"__builtin_memcpy({name}, poly_given[{at}], (size_t)poly_bytes[{at}]);"


def _given_back(at: int, name: str, found: Outside) -> Iterator[str]:
    if found.by_address:
        yield f"*({found.type.in_c} *)poly_given[{at}] = {name};"
    elif _rank(found) and found.is_global and not found.type.pointer:
        yield f"__builtin_memcpy(poly_given[{at}], {name}, (size_t)poly_bytes[{at}]);"


def _structure(node: c_ast.Decl) -> str:
    """The declaration of a variable that is a structure or points to one, to which anything may be assigned."""
    made = copy.deepcopy(node)
    made.init, made.quals, made.storage, part = None, [], [], made.type
    while isinstance(part, c_ast.PtrDecl | c_ast.TypeDecl):
        part.quals, part = [], part.type
    return f"{shown(made)};"


def _pointer(kind: str, name: str, extents: Sequence[c_ast.Node | None]) -> str:
    """The declaration of a pointer to an element, or to a row."""
    return f"{kind} *{name}" if not extents else f"{kind} (*{name}){_rows(extents)}"


def _target(extents: Sequence[c_ast.Node | None]) -> str:
    return " *" if not extents else f" (*){_rows(extents)}"


def _rows(extents: Sequence[c_ast.Node | None]) -> str:
    return "".join(f"[{shown(extent)}]" for extent in extents if extent is not None)


def _local(node: c_ast.Decl, outline: Outlined, typedefs: Mapping[str, c_ast.Node]) -> Iterator[str]:
    """C lines for a variable that is the scop's own, or has a known value."""
    found = type_of(node.type, typedefs)
    assert found is not None, "the region was read"
    if not found.extents:
        value = f" = {outline.constants[node.name]}" if node.name in outline.constants else ""
        yield f"{found.in_c} {node.name}{value};"
    else:
        bytes_ = "*".join([f"(size_t)({shown(extent)})" for extent in found.extents if extent is not None])
        memory = f"__builtin_malloc({bytes_}*sizeof({found.in_c}))"
        yield f"{_pointer(found.in_c, node.name, found.extents[1:])} = {memory};"


def _local_arrays(outline: Outlined, typedefs: Mapping[str, c_ast.Node]) -> list[str]:
    types = {node.name: type_of(node.type, typedefs) for node in outline.locals}
    return [name for name, found in types.items() if found is not None and found.extents]


@dataclass(frozen=True)
class _Runs:
    """Runs the function of a scop in another process."""

    child: Child
    library: Path
    name: str

    def __call__(self, new: bool, start: Values) -> Ran:
        """What the loops, or with `new` the kernel, make of the data. Raises Died."""
        ran = self.child.ask(RunFunction(str(self.library), self.name, int(new), start), LONGEST)
        if isinstance(ran, OrderFailed):
            raise Died(ran.reason)
        assert isinstance(ran, Ran), "the answer to a run"
        return ran


def _compared(run: _Runs, scop: Scop, routine: Routine) -> Checked:
    """The comparison of a scop at several sizes."""
    assert scop.outline is not None, "a scop with a kernel has an outline"
    worst = Checked(0)
    for trial in _trials(routine):
        found = _tried(run, scop.outline, trial)
        worst = Checked(worst.trials + 1, *max((_facts(worst), _facts(found)), key=lambda facts: facts[0]))
        if found.problem:
            return Checked(worst.trials, problem=f"{found.problem} at {_sizes(trial)}")
        if found.obstacle:
            return Checked(worst.trials, obstacle=f"{found.obstacle} at {_sizes(trial)}")
    return worst if worst.trials else Checked(0, obstacle="there are no small sizes to try")


def _facts(found: Checked) -> tuple[float, float, str]:
    return found.error, found.difference, found.array


def _sizes(trial: SelfTestSizes) -> str:
    return ", ".join(f"{name} = {value}" for name, value in trial.sizes) or "the scop's only sizes"


def _trials(routine: Routine) -> list[SelfTestSizes]:
    """Some of the sizes of a header's self-test at which all accesses are inside their arrays."""
    checks = [trial for trial in routine.trials if not trial.flops] or list(routine.trials)
    step = max(1, len(checks) // MOST)
    return checks[::step][:MOST]


def _tried(run: _Runs, outline: Outlined, trial: SelfTestSizes) -> Checked:
    """The loops, the kernel, and the loops on data that differ in their last bits, at the same sizes."""
    nest, sizes = outline.nest, dict(trial.sizes)
    start = {
        name: _data(nest, name, found, sizes, number) for number, (name, found) in enumerate(outline.outside.items())
    }
    nudged = {name: values if name in sizes else _nudged(values) for name, values in start.items()}
    try:
        wanted, other = run(False, start).values, run(False, nudged).values
    except Died as why:
        return Checked(0, obstacle=f"the loops as written can't be run: {why}")
    try:
        ran = run(True, start)
    except Died as why:
        return Checked(0, problem=f"the kernel {why}")
    if ran.overrun:
        return Checked(0, problem="memory outside of an array is overwritten")
    if not ran.returned:
        return Checked(0, problem="the kernel leaves the work to the loops")
    return _greatest(nest, wanted, ran.values, other, trial.length)


def _nudged(values: Array) -> Array:
    """Floating-point data with the last bits of every other element changed."""
    if values.dtype.kind != "f":
        return values
    made = values.copy()
    made.reshape(-1)[::2] *= 1 + np.finfo(values.dtype).eps
    return made


def _data(nest: Nest, name: str, found: Outside, sizes: Mapping[str, int], number: int) -> Array:
    """The first values of a variable."""
    if name in sizes or name in dict(nest.fixed):
        return np.array([sizes[name]], DTYPES[found.type.dtype].numpy_name)
    array = nest.array(name)
    values = np.empty([max(0, extent.evaluate(dict(sizes))) for extent in array.shape] or [1], array.dtype.numpy_name)
    for least, end in (ends for array_name, *ends in index_ranges(nest, sizes) if array_name == name):
        values[...] = np.random.default_rng(number).integers(least, max(end, least + 1), values.shape)
        return values
    fill(values, number + 1, delicate(nest))
    shape = values.shape[:-1] if array.is_complex else values.shape
    if drifts(nest) and not delicate(nest) and len(shape) > 1 and values.dtype.kind == "f":
        values /= max(1, shape[-1])
    return values


def _greatest(nest: Nest, wanted: Values, found: Values, other: Values, length: int) -> Checked:
    """The element whose error is greatest, as a fraction of what is allowed.

    What the loops themselves make of a change in the last bits of their data is allowed many times: in some
    computations, such as the orthogonalisation of dependent columns, rounding decides the result.
    """
    worst = Checked(1)
    for name, values in wanted.items():
        if name in nest.sizes or not values.size:
            continue
        flat, average = values.reshape(-1), mean(values.reshape(-1)) if values.dtype.kind == "f" else 0.0
        errors = excess(found[name].reshape(-1), flat, average, length)
        noise = excess(other[name].reshape(-1), flat, average, length).max()
        errors = errors / (1 + NOISE * noise) if np.isfinite(noise) else np.zeros_like(errors)
        at = int(errors.argmax())
        if errors[at] > worst.error:
            difference = abs(float(found[name].reshape(-1)[at]) - float(flat[at]))
            worst = Checked(1, float(errors[at]), difference, name)
    return worst
