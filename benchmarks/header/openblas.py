"""The header against OpenBLAS's static library in a C program: special kernels for each shape, and the symbolic one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from statistics import median

from benchmarks.case import Case
from benchmarks.contender import Failed
from benchmarks.header.cost import source
from benchmarks.header.embedded import Embedded, write
from benchmarks.header.finding import OPENBLAS, GoalFigure
from benchmarks.header.program import ShapeResult, run, words
from benchmarks.header.setting import Setting
from benchmarks.header.speed import compiled
from benchmarks.problems.matmul import Matmul
from benchmarks.runner import Rounds, tolerance
from benchmarks.workloads import gemm
from microkernels.dtypes import f32
from microkernels.isa import host
from poly.measure import process
from poly.timing.summary import geometric_mean, paired_ratio

PROGRAM = Path(__file__).with_name("openblas.c")
LIBRARY = "libopenblas.a"
FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/opt/OpenBLAS/lib")
"""Where the library may be, besides the compiler's own folders."""

CORES = ("", "SkylakeX", "Cooperlake", "Zen", "Haswell")
"""Values of OPENBLAS_CORETYPE to try: OpenBLAS's own choice, and kernels that may be better for this CPU."""
TRIAL = Rounds(seconds=0.1, rounds=(3, 50))
LARGE = {"2048", "4096"}
"""Sizes left out with `--quick`, and in the choice among CORES."""

THEIRS, SPECIAL, SYMBOLIC = "openblas", "special", "symbolic"


def against(setting: Setting) -> Iterator[GoalFigure]:
    """A line for each shape and kind of kernel, and their geometric means. Raises Failed."""
    library = find(setting)
    cases = [case for case in gemm.cases(f32) if not (setting.quick and case.size in LARGE)]
    program = made(cases, library, setting)
    process.pin(process.choose(setting.cpus, 1))
    setting.announce("OpenBLAS: its best kernels")
    tried = [case.size for case in cases if case.size not in LARGE]
    core = min(CORES, key=lambda core: _seconds(program, core, tried))
    setting.announce("OpenBLAS and the header, in turn")
    said = run(program, ["all", *words(setting.budget)], environment(core))
    note = f"{said.words['core']} kernels (OPENBLAS_CORETYPE={core or 'unset'}), {said.words['config']}"
    for kind in (SPECIAL, SYMBOLIC):
        found = [_finding(case, shape, kind) for case, shape in zip(cases, said.shapes, strict=True)]
        yield from found
        yield _mean(found, kind, note)


def find(setting: Setting) -> Path:
    """The static library. Raises Failed if there is none."""
    asked = subprocess.run([*setting.host.command, f"-print-file-name={LIBRARY}"], capture_output=True, text=True)
    for path in (Path(asked.stdout.strip()), *(Path(folder, LIBRARY) for folder in FOLDERS)):
        if path.is_absolute() and path.exists():
            return path
    raise Failed(f"the static library {LIBRARY} is not installed (Debian: libopenblas-dev)")


def made(cases: Sequence[Case], library: Path, setting: Setting) -> Path:
    """The program with both kinds of header for these cases, each header in an object file. Raises Failed."""
    objects, calls, headers = [], [], {}
    for nest in dict.fromkeys(_nest(case) for case in cases):
        members = [case for case in cases if _nest(case) == nest]
        setting.announce(f"OpenBLAS: {len(members)} kernels of {nest}")
        opened = compiled(members[0], {})
        special = [compiled(case, case.sizes) for case in members]
        for kind, kernels in ((SPECIAL, [opened, *special]), (SYMBOLIC, [opened])):
            embedded = write(kernels, f"{kind}_{nest}", setting.folder, isas=[host().name])
            target = embedded.path.with_suffix(".o")
            setting.host.object(source(embedded), target)
            objects.append(target)
            headers[kind, nest] = embedded
            calls.append(loops(embedded, members[0]))
    text = "\n".join([*(f'#include "{one.path.name}"' for one in headers.values()), *calls, _table(cases, headers)])
    (setting.folder / "shapes.h").write_text(text)
    program = setting.folder / "openblas"
    setting.host.program([PROGRAM, *objects], program, f"-I{setting.folder}", library, "-lpthread")
    return program


def loops(embedded: Embedded, case: Case) -> str:
    """C text of a loop that calls the header's function, and of its workspace's size."""
    name = embedded.function
    sizes = ", ".join(f"s->{'batch' if size == 'B' else size.lower()}" for size in embedded.sizes)
    dense = "0, " * (2 if "B" in case.sizes else 1)
    return f"""
static double {embedded.prefix}_loop(const shape *s, const work *w, int64_t times)
{{
    int status = 0;
    const double start = now();
    for (int64_t turn = 0; turn < times; turn++)
        status |= (int){name}_with_workspace({sizes}, w->a, {dense}w->b, {dense}w->c, {dense}w->workspace, w->bytes);
    return status ? -1 : now() - start;
}}

static int64_t {embedded.prefix}_need(const shape *s) {{ return {name}_workspace_size({sizes}); }}
"""


def environment(core: str) -> dict[str, str]:
    """The program's environment: one thread, and no setting of OpenBLAS other than `core`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS_", "GOTO_", "OMP_"))}
    return {**kept, "OPENBLAS_NUM_THREADS": "1", **({"OPENBLAS_CORETYPE": core} if core else {})}


def _seconds(program: Path, core: str, shapes: Iterable[str]) -> float:
    """The geometric mean over these shapes of OpenBLAS's seconds with one setting; infinite if that fails."""
    try:
        said = run(program, [THEIRS, *words(TRIAL), *shapes], environment(core))
    except Failed:
        return float("inf")
    return geometric_mean(median(shape.times[THEIRS]) for shape in said.shapes) or float("inf")


def _finding(case: Case, shape: ShapeResult, kind: str) -> GoalFigure:
    ratio = paired_ratio(shape.times[THEIRS], shape.times[kind])
    ours, theirs = (case.problem.flop / median(shape.times[name]) / 1e9 for name in (kind, THEIRS))
    wrong = [name for name in (kind, THEIRS) if not shape.errors[name] <= tolerance(case)]
    note = f"{ours:.1f} and {theirs:.1f} GFLOP/s" + "".join(f", WRONG RESULT of {name}" for name in wrong)
    details = (("gflops", ours), ("other_gflops", theirs))
    return GoalFigure(OPENBLAS, f"{kind} {case.size}", ratio.median, ratio.spread, note, False, kind in wrong, details)


def _mean(found: Sequence[GoalFigure], kind: str, note: str) -> GoalFigure:
    """The geometric mean, with the spread of a mean of independent figures; only the special kernels are judged."""
    mean = geometric_mean(one.value for one in found if one.value)
    spread = sqrt(sum((one.spread or 0) ** 2 for one in found)) / len(found)
    return GoalFigure(OPENBLAS, f"{kind}, geometric mean", mean, spread, note, judged=kind == SPECIAL)


def _nest(case: Case) -> str:
    """A short name of the case's nest: nn, nt, tn, tt, batched."""
    assert isinstance(case.problem, Matmul), "products alone are compared with OpenBLAS"
    return "batched" if case.problem.batch > 1 else case.problem.transpose.lower()


def _table(cases: Sequence[Case], headers: Mapping[tuple[str, str], Embedded]) -> str:
    rows = []
    for case in cases:
        problem = case.problem
        assert isinstance(problem, Matmul), "products alone are compared with OpenBLAS"
        transposed = ", ".join(str(int(letter == "T")) for letter in problem.transpose)
        ours = [headers[kind, _nest(case)].prefix for kind in (SPECIAL, SYMBOLIC)]
        run = ", ".join(f"{prefix}_loop" for prefix in ours)
        need = ", ".join(f"{prefix}_need" for prefix in ours)
        sizes = f"{problem.batch}, {problem.m}, {problem.n}, {problem.k}"
        rows.append(f'    {{"{case.size}", {sizes}, {transposed}, {{openblas, {run}}}, {{0, {need}}}}},')
    return "\n".join(["static const shape SHAPES[] = {", *rows, "};", ""])
