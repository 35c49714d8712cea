"""The cost of the choice of a kernel in each call: a load of the instruction set, and comparisons of sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.contender import Failed
from benchmarks.header.cost import TUNED
from benchmarks.header.embedded import Embedded, write
from benchmarks.header.finding import DISPATCH, GoalFigure
from benchmarks.header.program import run, words
from benchmarks.header.setting import Setting
from benchmarks.header.speed import compiled
from benchmarks.header.workloads import product
from microkernels.dtypes import f32
from microkernels.isa import host
from poly.measure import process
from poly.timing.summary import summarize

PROGRAM = Path(__file__).with_name("dispatch.c")
NANO = 1e-9
DIRECT, CHOSEN, GIVEN, ALLOCATING = "direct", "chosen", "given", "allocating"


def cost(setting: Setting) -> Iterator[GoalFigure]:
    """The time of the choice alone; those of checks and of the whole call are reported with it. Raises Failed."""
    case = product(1, f32)
    sizes = [{}, product(TUNED, f32).sizes, case.sizes]
    embedded = write([compiled(case, known) for known in sizes], "least", setting.folder, setting.isas)
    (setting.folder / "calls.h").write_text(calls(embedded))
    program = setting.folder / "dispatch"
    setting.host.program([PROGRAM], program, f"-I{setting.folder}")
    process.pin(process.choose(setting.cpus, 1))
    setting.announce("dispatch")
    times = run(program, words(setting.budget)).shapes[0].times
    note = f"a call of a 1x1x1 product, beside special kernels for {TUNED} and 1"
    yield _finding("choice", _differences(times[CHOSEN], times[DIRECT]), note, True)
    yield _finding("checks, allocating", _differences(times[ALLOCATING], times[CHOSEN]), "sizes and arrays", False)
    yield _finding("checks, with a workspace", _differences(times[GIVEN], times[CHOSEN]), "those, and its bytes", False)
    yield _finding("kernel", times[DIRECT], "called directly", False)


def calls(embedded: Embedded) -> str:
    """The header's implementation, and four ways to call it. Raises Failed if it lacks the functions we expect."""
    text = embedded.path.read_text()
    kernel = re.search(rf"\b{embedded.prefix}_\w*M1_K1_N1\w*_{host().name}(?=\()", text)
    if kernel is None:
        raise Failed(f"the header has no kernel for 1x1x1 products on {host().name}")
    function, sizes, strides = embedded.function, ", ".join(embedded.sizes), "K, N, N"
    kernel_number = f"{function}_select({embedded.prefix}_chosen_isa(), {sizes}, {strides})"
    return embedded.source + "\n".join(
        [
            f"#define DIRECT (void){kernel[0]}(A, B, C, 1, NULL)",
            f"#define CHOSEN {function}_run({kernel_number}, {sizes}, {strides}, A, B, C, 1, NULL)",
            f"#define GIVEN (void){embedded.function}_with_workspace({sizes}, A, 0, B, 0, C, 0, W, sizeof W)",
            f"#define ALLOCATING (void){embedded.function}({sizes}, A, 0, B, 0, C, 0)",
            "",
        ]
    )


def _differences(slow: Sequence[float], fast: Sequence[float]) -> list[float]:
    """Differences round by round, so that what slows down a whole round cancels out."""
    return [s - f for s, f in zip(slow, fast, strict=True)]


def _finding(what: str, seconds: Sequence[float], note: str, judged: bool) -> GoalFigure:
    """The spread is given in nanoseconds, as a difference may be near 0."""
    found = summarize([second / NANO for second in seconds])
    note = f"± {(found.high - found.low) / 2:.2f} ns, {note}"
    return GoalFigure(DISPATCH, what, found.median, None, note, judged)
