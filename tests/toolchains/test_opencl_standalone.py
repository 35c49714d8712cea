"""`poly opencl`: files that a C compiler takes without a warning, and a program that finds what is wrong."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import classic_nests
import pytest
from click.testing import CliRunner
from header_nests import axpy, wide
from headers import CLANG, GCC, GXX, STRICT, Toolchain, need, succeed
from opencl_device import TARGET, device
from opencl_programs import CALLS, FAR, LIBRARIES, build, by_hand, result, write
from opencl_stub import STUB
from scratch_nests import of_nothing

import poly
from codegen.package.opencl.files import files
from microkernels.opencl_isa import OPENCLGPU
from poly import commands
from poly.embed.opencl import write_opencl
from poly.errors import SpecError
from poly.opencl_kernel import OpenCLKernel, opencl_kernel

K, M, N = poly.sizes("K M N")


@pytest.fixture(autouse=True)
def quickly_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried here is around the kernels, so PoCL does not optimise these."""
    monkeypatch.setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable")


@poly.nest
def product(A: poly.f32[M, K], B: poly.f32[K, N], C: poly.f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def FILE(cl_mem: poly.f64[M], queue: poly.f64[M], c: poly.f64, stdin: poly.f64[M]):
    for clCreateBuffer in range(M):
        queue[clCreateBuffer] = c * cl_mem[clCreateBuffer] + stdin[clCreateBuffer]


def kernel(nest: poly.Nest, **sizes: int) -> OpenCLKernel:
    device()
    return poly.compile(nest, target=TARGET, sizes=sizes)


@pytest.mark.parametrize("toolchain", [GCC, CLANG], ids=str)
def test_a_program_made_by_hand(toolchain: Toolchain, tmp_path: Path) -> None:
    """Host loops, conditions, scratch memory and several items build at the strictest, and are run in order."""
    write(by_hand(), tmp_path)
    program = build(tmp_path, "heat", toolchain, "-O2")
    device()
    status, printed, errors = result(program, "--quick")
    assert (status, errors) == (1, ""), "its kernels are not what its loops say"
    assert re.search(r"M=1000 T=2: A\[\d+\] is \S+, not \S+\n", printed) or "M=3 T=2: A[1] is" in printed
    assert printed.endswith("FAIL\n")


@pytest.mark.parametrize("suffix", [".h", ".c"])
def test_golden(suffix: str, project: Path) -> None:
    """The text is as kept; POLY_UPDATE_GOLDEN=1 keeps what it is now."""
    path = project / "tests" / "golden" / f"heat_opencl{suffix}"
    text = files(by_hand())[f"heat{suffix}"]
    if os.environ.get("POLY_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), "the text has changed; if it should, run with POLY_UPDATE_GOLDEN=1"


@pytest.mark.parametrize("flags", [(), ("-D", "CL_TARGET_OPENCL_VERSION=300")], ids=str)
def test_the_header_is_c_plus_plus_too(flags: tuple[str, ...], tmp_path: Path) -> None:
    need(GXX)
    write(by_hand(), tmp_path)
    succeed(
        [
            *GXX.command,
            "-std=c++11",
            *STRICT,
            *flags,
            "-fsyntax-only",
            "-include",
            tmp_path / "heat.h",
            "-x",
            "c++",
            os.devnull,
        ]
    )


@poly.nest
def stored(x: poly.bf16[M, N], y: poly.bf16[M, N], z: poly.f32[M]):
    for i in range(M):
        z[i] = 0
        for j in range(N):
            y[i, j] = 2 * x[i, j]
            z[i] += poly.f32(x[i, j])


NESTS = {
    "product": (product, {}),
    "stored": (stored, {}),
    "softmax": (classic_nests.softmax, {}),
    "two_mm": (classic_nests.two_mm, {}),
    "ints": (classic_nests.ints, {}),
    "wide": (wide, {}),
    "FILE": (FILE, {}),
    "axpy": (axpy, {"N": 100}),
}


@pytest.mark.parametrize("name", NESTS)
def test_nests_are_right(name: str, tmp_path: Path) -> None:
    nest, sizes = NESTS[name]
    write_opencl(tmp_path, kernel(nest, **sizes))
    status, printed, errors = result(build(tmp_path, name, GCC, "-O1"), "--quick")
    assert (status, errors.replace("1 warning generated.\n", "")) == (0, "")
    assert re.search(r"^PASS: \d+ sizes, worst error 0\.\d+ \(1 is allowed\)\n\Z", printed, re.MULTILINE)


def test_a_plan_with_host_loops(tmp_path: Path) -> None:
    made = poly.schedule(classic_nests.jacobi1d).parallel("i").parallel("i_2")
    device()
    write_opencl(tmp_path, poly.compile(made.nest, schedule=made, target=TARGET))
    assert "for (int64_t t = 0; t < T; t += 1) {" in (tmp_path / "jacobi1d.c").read_text()
    status, printed, _ = result(build(tmp_path, "jacobi1d", GCC, "-O1"), "--quick")
    assert status == 0, printed


def test_a_kernel_for_a_gpu(tmp_path: Path) -> None:
    """Groups in two dimensions, many work-items, local memory; it runs on the tests' device as on any."""
    isa = replace(OPENCLGPU, max_items=min(256, device().isa.max_items))
    write_opencl(tmp_path, opencl_kernel(product, isa, isa.units, None, device()))
    assert "int64_t groups_1" in (tmp_path / "product.c").read_text()
    status, printed, _ = result(build(tmp_path, "product", GCC, "-O1"), "--quick")
    assert status == 0, printed


@pytest.fixture(scope="module")
def axpy_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("axpy")
    write_opencl(folder, kernel(axpy))
    return build(folder, "axpy", GCC, "-O1")


def test_speed_is_told(axpy_program: Path) -> None:
    status, printed, _ = result(axpy_program)
    assert status == 0
    assert re.search(r"  N=\d+: error \S+ of what is allowed\n +[\d.]+ GFLOP/s at best, +[\d.]+ in the median", printed)


SPOILED = {
    "nothing": ("", r"N=1: y\[0\] is"),
    "nan": ("y[0] = NAN;", r"N=1: y\[0\] is nan"),
    "slightly": ("y[i] += a * x[i] * 1.0000001;", r"y\[\d+\] is"),
    "behind": ("y[i] += a * x[i]; y[i + 1] = 0;", "writes behind y"),
    "before": ("y[i] += a * x[i]; y[-1] = 0;", "writes before y"),
    "input": ("y[i] += a * x[i]; ((__global double *)x)[i] = 0;", "writes to x"),
}


@pytest.mark.parametrize("fault", SPOILED)
def test_a_spoiled_kernel_is_found(fault: str, axpy_program: Path, tmp_path: Path) -> None:
    text = axpy_program.with_name("axpy.cl").read_text()
    assert text.count("y[i] += a * x[i];") == 1
    code, found = SPOILED[fault]
    spoiled = tmp_path / "spoiled.cl"
    spoiled.write_text(text.replace("y[i] += a * x[i];", code))
    status, printed, _ = result(axpy_program, "--quick", str(spoiled))
    assert status == 1
    assert re.search(found, printed)
    assert printed.endswith("FAIL\n")


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--fast"], {}, "usage: "),
        (["--device"], {}, "usage: "),
        (["a.cl", "b.cl"], {}, "usage: "),
        (["absent.cl"], {}, "axpy: cannot read absent.cl: No such file or directory\n"),
        (["--device", "no such thing"], {}, "no device with a name like no such thing\n"),
        ([], {"OPENCL_DEVICE": "no such thing"}, "no device with a name like no such thing\n"),
        ([], {"OCL_ICD_VENDORS": "/absent", "OPENCL_VENDOR_PATH": "/absent"}, "looking for platforms: CL_PLATFORM_NOT"),
    ],
    ids=str,
)
def test_what_cannot_be_done(
    arguments: list[str], environment: dict[str, str], message: str, axpy_program: Path
) -> None:
    status, _, errors = result(axpy_program, *arguments, **environment)
    assert status == 2
    assert message in errors


@pytest.mark.parametrize("text", ["", "no kernel", "__kernel void other(void) {}"])
def test_texts_that_are_no_kernels(text: str, axpy_program: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.cl"
    wrong.write_text(text)
    status, _, errors = result(axpy_program, "--quick", str(wrong))
    assert status == 2
    assert re.search(rf"axpy: (building {wrong}|making the kernel axpy_\w+|making a program from {wrong}): CL_", errors)
    if text == "no kernel":
        assert "wrong.cl" in errors or "unknown type name" in errors, "the device's compiler is heard"


def test_calls_of_the_library(tmp_path: Path) -> None:
    write_opencl(tmp_path, kernel(product))
    source = tmp_path / "calls.c"
    source.write_text(CALLS)
    program = tmp_path / "calls"
    command = [*GCC.command, "-std=c99", *STRICT, "-O1", source, tmp_path / "product.c", "-o", program, *LIBRARIES]
    succeed(command)
    status, printed, _ = result(program, str(tmp_path / "product.cl"))
    assert status == 0
    assert printed.splitlines() == [
        "no file: CL_INVALID_VALUE",
        "none",
        "made: CL_SUCCESS",
        "product: looking at the size M: CL_INVALID_VALUE (-30)",
        "negative: CL_INVALID_VALUE",
        "product: looking at the size M: CL_INVALID_VALUE (-30)",
        "large: CL_INVALID_VALUE",
        "product: counting the bytes of A: CL_INVALID_VALUE (-30)",
        "far too large: CL_INVALID_VALUE",
        "product: finding too few bytes in A: CL_INVALID_BUFFER_SIZE (-61)",
        "short: CL_INVALID_BUFFER_SIZE",
        "no event",
        "product: finding no order in the queue: CL_INVALID_QUEUE_PROPERTIES (-35)",
        "no order: CL_INVALID_QUEUE_PROPERTIES",
        "empty: CL_SUCCESS",
        "empty, waited for: CL_SUCCESS",
        "queued: CL_SUCCESS",
        "again: CL_SUCCESS",
        "waited for: CL_SUCCESS",
        "read: CL_SUCCESS",
        "6.5 78.5",
    ]


def test_a_call_whose_scratch_no_memory_holds_is_refused(tmp_path: Path) -> None:
    write_opencl(tmp_path, kernel(of_nothing))
    source, program = tmp_path / "far.c", tmp_path / "far"
    source.write_text(FAR)
    sources = [source, tmp_path / "of_nothing.c"]
    succeed([*GCC.command, "-std=c99", *STRICT, "-O1", *sources, "-o", program, *LIBRARIES])
    status, printed, _ = result(program, str(tmp_path / "of_nothing.cl"))
    told = ["of_nothing: making scratch memory: CL_INVALID_BUFFER_SIZE (-61)", "CL_INVALID_BUFFER_SIZE"]
    assert (status, printed.splitlines()) == (0, told * 2)


def test_every_process_writes_the_same_bytes(project: Path, tmp_path: Path) -> None:
    device()
    script = "import sys, classic_nests as c, poly; from poly.embed.opencl import write_opencl\n"
    script += f"write_opencl(sys.argv[1], poly.compile(c.covariance, target={TARGET!r}))"
    texts = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        paths = os.pathsep.join([str(project), str(project / "tests" / "support")])
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": paths, "POLY_CACHE_DIR": str(tmp_path / f"cache{seed}")}
        succeed([sys.executable, "-c", script, folder], env=os.environ | environment)
        texts.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert texts[0].keys() == {f"covariance{suffix}" for suffix in (".cl", ".h", ".c", "_check.c")}
    assert texts[0] == texts[1]


FILE_OF_NESTS = """import poly
from poly import f32

N = poly.sizes("N")

@poly.nest
def double(x: f32[N], y: f32[N]):
    for i in range(N):
        y[i] = 2 * x[i]

@poly.nest
def clash(clash_enqueue: f32[N]):
    for i in range(N):
        clash_enqueue[i] = 0
"""


@pytest.fixture
def nests(tmp_path: Path) -> Path:
    path = tmp_path / "nests.py"
    path.write_text(FILE_OF_NESTS)
    return path


def command(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(commands.poly, ["opencl", *arguments])
    return done.exit_code, done.stderr


def test_the_command(nests: Path, tmp_path: Path) -> None:
    device()
    out = tmp_path / "made" / "here"
    assert command(f"{nests}:double", "-o", str(out), "--size", "N=64", "--target", TARGET) == (0, "")
    assert {path.name for path in out.iterdir()} == {"double.cl", "double.h", "double.c", "double_check.c"}
    (out / "double.h").write_text("something else")
    assert command(f"{nests}:double", "-o", str(out), "--target", TARGET) == (0, "")
    assert "int64_t N" in (out / "double.h").read_text()
    assert result(build(out, "double", GCC, "-O1"), "--quick")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{nests}:double"], "Missing option '-o'"),
        (["{nests}:dubble", "-o", "{out}"], "has no nest 'dubble'; it has double, clash. Did you mean double?"),
        (["absent.py:double", "-o", "{out}"], "there is no file absent.py"),
        (["{nests}:double", "-o", "{out}", "--size", "Q=3"], "there is no size Q that is still open; open sizes: N"),
        (["{nests}:double", "-o", "{out}", "--size", "N"], "'N' is not of the form M=512"),
        (["{nests}:double", "-o", "{out}", "--target", "c"], "'c' is no OpenCL device: expected opencl, opencl:cpu"),
        (["{nests}:double", "-o", "{out}", "--target", "opencl:abacus"], "abacus"),
        (["{nests}:double", "-o", "{nests}"], "is a file"),
        (["{nests}:clash", "-o", "{out}"], "clash: clash_enqueue begins as the header's own names do"),
    ],
    ids=str,
)
def test_bad_arguments(arguments: list[str], message: str, nests: Path, tmp_path: Path) -> None:
    device()
    status, told = command(*(a.format(nests=nests, out=tmp_path / "out") for a in arguments))
    assert status == 2
    assert message in told
    assert "Traceback" not in told
    assert not (tmp_path / "out").exists()


def test_what_is_no_opencl_kernel(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"no OpenCL kernel: make one with poly\.compile\(nest, target='opencl'\)"):
        write_opencl(tmp_path, poly.compile(axpy))


@pytest.mark.parametrize("toolchain", [GCC, CLANG], ids=str)
def test_every_failure_is_told_and_nothing_leaks(toolchain: Toolchain, tmp_path: Path) -> None:
    """Each call of OpenCL fails in turn, in a program under the sanitizers."""
    flags = ("-std=c99", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    need(toolchain, flags[-2])
    write(by_hand(), tmp_path)
    (tmp_path / "stub.c").write_text(STUB)
    sources = [tmp_path / "stub.c", tmp_path / "heat.c"]
    succeed([*toolchain.command, *STRICT, *flags, "-Wno-deprecated-declarations", *sources, "-o", tmp_path / "stub"])
    printed = succeed([tmp_path / "stub"], cwd=tmp_path)
    assert int(re.fullmatch(r"(\d+) faults\n", printed)[1]) > 60
