"""The kernels of PolyBench 4.2.1 as cases: sizes, data and published operations; or a copy of the suite in C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import poly
from benchmarks.case import Case
from benchmarks.problems.program import Fill, Part, Program
from benchmarks.programs import fills
from benchmarks.programs import polybench_nests as nests
from microkernels.dtypes import DType, f64, i32
from poly.ir.nest import Nest

SIZES = ("mini", "small", "medium", "large")
"""The suite's data sets, in the order of the values in KERNELS."""

Values = tuple[int, int, int, int]


@dataclass(frozen=True)
class SuiteKernel:
    """A kernel: its name in the suite, our loops, and the values of its sizes for each data set."""

    name: str
    loops: Callable[..., Any]
    sizes: Mapping[str, Values]
    fills: Mapping[str, Fill] = field(default_factory=dict)
    scalars: Mapping[str, float] = field(default_factory=lambda: {"alpha": 1.5, "beta": 1.2})
    operations: Callable[..., float] | None = None
    determined: Callable[..., Mapping[str, Part]] | None = None
    condition: float = 1.0

    def case(self, size: str, source: Path | None = None, include: tuple[Path, ...] = ()) -> Case:
        """The case at a data set, of our loops or of those in a C file of the suite, which has its own headers."""
        values = {name: values[SIZES.index(size)] for name, values in self.sizes.items()}
        nest = partial(_from_c, source, include, self.name, size) if source else partial(poly.nest, self.loops)
        made = nest()
        named = values | {name.lower(): value for name, value in values.items()}  # the suite's parameters
        program = Program(
            self.name,
            nest,
            {name: named[name] for name in made.sizes},
            self.fills,
            {**self.scalars, "float_n": values.get("N", 0)},
            round(self.operations(**values)) if self.operations else None,
            self.determined(**values) if self.determined else {},
            self.condition,
        )
        return Case("polybench", self.name, dtype_of(made), program, nest, program.sizes)


def dtype_of(nest: Nest) -> DType:
    """The type that a program computes with: its floating point, or integers."""
    types = [array.dtype for array in nest.arguments]
    return next((dtype for dtype in types if dtype.is_float), i32)


def _from_c(source: Path, include: tuple[Path, ...], name: str, size: str) -> Nest:
    function = f"kernel_{name.replace('-', '_')}"
    return poly.from_c(source, function, include=include, define={f"{size.upper()}_DATASET": 1})


def _determined(M: int, N: int) -> dict[str, Part]:
    """Columns beyond the number of rows are sums of rounding errors alone."""
    rank = min(M, N)
    return {
        "A": (slice(None), slice(0, rank)),
        "Q": (slice(None), slice(0, rank)),
        "R": (slice(0, rank), slice(None)),
    }


MN: Mapping[str, Values] = {"M": (20, 60, 200, 1000), "N": (30, 80, 240, 1200)}
SQUARE: Mapping[str, Values] = {"N": (40, 120, 400, 2000)}
TABLE: Mapping[str, Values] = {"M": (28, 80, 240, 1200), "N": (32, 100, 260, 1400)}
STEPS: Values = (20, 40, 100, 500)

KERNELS: Sequence[SuiteKernel] = (
    SuiteKernel("correlation", nests.correlation, TABLE, operations=lambda M, N: N * M * (M - 1.0)),
    SuiteKernel("covariance", nests.covariance, TABLE, operations=lambda M, N: N * M * (M + 1.0)),
    SuiteKernel(
        "gemm", nests.gemm, {"NI": (20, 60, 200, 1000), "NJ": (25, 70, 220, 1100), "NK": (30, 80, 240, 1200)},
        operations=lambda NI, NJ, NK: 2.0 * NI * NJ * NK,
    ),
    SuiteKernel("gemver", nests.gemver, SQUARE),
    SuiteKernel("gesummv", nests.gesummv, {"N": (30, 90, 250, 1300)}),
    SuiteKernel("symm", nests.symm, MN, operations=lambda M, N: 2.0 * M * M * N),
    SuiteKernel("syr2k", nests.syr2k, MN, operations=lambda M, N: 2.0 * N * (N + 1) * M),
    SuiteKernel("syrk", nests.syrk, MN, operations=lambda M, N: 1.0 * N * (N + 1) * M),
    SuiteKernel("trmm", nests.trmm, MN, operations=lambda M, N: 1.0 * M * M * N),
    SuiteKernel(
        "2mm", nests.two_mm,
        {"NI": (16, 40, 180, 800), "NJ": (18, 50, 190, 900), "NK": (22, 70, 210, 1100), "NL": (24, 80, 220, 1200)},
        operations=lambda NI, NJ, NK, NL: 2.0 * NI * NJ * (NK + NL),
    ),
    SuiteKernel(
        "3mm", nests.three_mm,
        {
            "NI": (16, 40, 180, 800), "NJ": (18, 50, 190, 900), "NK": (20, 60, 200, 1000), "NL": (22, 70, 210, 1100),
            "NM": (24, 80, 220, 1200),
        },
        operations=lambda NI, NJ, NK, NL, NM: 2.0 * (NI * NJ * NK + NJ * NL * NM + NI * NL * NJ),
    ),
    SuiteKernel("atax", nests.atax, {"M": (38, 116, 390, 1900), "N": (42, 124, 410, 2100)}),
    SuiteKernel("bicg", nests.bicg, {"M": (38, 116, 390, 1900), "N": (42, 124, 410, 2100)}),
    SuiteKernel("doitgen", nests.doitgen, {"NQ": (8, 20, 40, 140), "NR": (10, 25, 50, 150), "NP": (12, 30, 60, 160)},
                operations=lambda NQ, NR, NP: 2.0 * NQ * NR * NP * NP),
    SuiteKernel("mvt", nests.mvt, SQUARE),
    SuiteKernel("cholesky", nests.cholesky, SQUARE, {"A": fills.dominant}, operations=lambda N: N**3 / 3),
    SuiteKernel("durbin", nests.durbin, SQUARE, {"r": fills.correlations}),
    SuiteKernel(
        "gramschmidt", nests.gramschmidt, MN,
        operations=lambda M, N: 2.0 * M * N * N, determined=_determined, condition=1e4,
    ),
    SuiteKernel("lu", nests.lu, SQUARE, {"A": fills.dominant}, operations=lambda N: 2 * N**3 / 3),
    SuiteKernel("ludcmp", nests.ludcmp, SQUARE, {"A": fills.dominant}, operations=lambda N: 2 * N**3 / 3),
    SuiteKernel("trisolv", nests.trisolv, SQUARE, {"L": fills.triangle}),
    SuiteKernel(
        "deriche", nests.deriche, {"W": (64, 192, 720, 4096), "H": (64, 128, 480, 2160)}, scalars={"alpha": 0.25}
    ),
    SuiteKernel(
        "floyd-warshall", nests.floyd_warshall, {"N": (60, 180, 500, 2800)}, {"path": fills.distances}
    ),
    SuiteKernel(
        "nussinov", nests.nussinov, {"N": (60, 180, 500, 2500)}, {"seq": fills.bases, "table": fills.zeros}
    ),
    SuiteKernel("adi", nests.adi, {"TSTEPS": STEPS, "N": (20, 60, 200, 1000)}),
    SuiteKernel(
        "fdtd-2d", nests.fdtd_2d, {"TMAX": STEPS, "NX": (20, 60, 200, 1000), "NY": (30, 80, 240, 1200)}
    ),
    SuiteKernel("heat-3d", nests.heat_3d, {"TSTEPS": STEPS, "N": (10, 20, 40, 120)}),
    SuiteKernel("jacobi-1d", nests.jacobi_1d, {"TSTEPS": STEPS, "N": (30, 120, 400, 2000)}),
    SuiteKernel("jacobi-2d", nests.jacobi_2d, {"TSTEPS": STEPS, "N": (30, 90, 250, 1300)}),
    SuiteKernel("seidel-2d", nests.seidel_2d, {"TSTEPS": STEPS, "N": (40, 120, 400, 2000)}),
)  # fmt: skip


def cases(size: str, suite: Path | None = None) -> Iterator[Case]:
    """The kernels at a data set: our loops, or what there is of them in a folder with the suite's C files."""
    for kernel in KERNELS:
        if suite is None:
            yield kernel.case(size)
        else:
            files = sorted(suite.rglob(f"{kernel.name}/{kernel.name}.c"))
            yield from (kernel.case(size, file, (suite / "utilities",)) for file in files[:1])


def gemm_case(size: str) -> Case:
    """`C += A B` in the sizes of the suite's product: programs that are mostly contractions are judged by its rate."""
    (kernel,) = (kernel for kernel in KERNELS if kernel.name == "gemm")
    values = {name: values[SIZES.index(size)] for name, values in kernel.sizes.items()}
    nest = partial(poly.nest, nests.plain_gemm)
    operations = round(kernel.operations(**values)) if kernel.operations else None
    return Case("gemm", "plain", f64, Program("plain gemm", nest, values, operations=operations), nest, values)
