"""Standalone OpenCL programs of tests: their builds, a handwritten device program, and C texts."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

from headers import GCC, STRICT, Toolchain, need, succeed

import poly
from codegen.ir.integer import Affine, Compare, Linear, floor_quotient, minimum
from codegen.ir.program import Buffer
from codegen.opencl.values import Argument, DeviceKernel, DeviceProgram, HostIf, HostLoop, Launch, Scratch
from codegen.package.opencl.files import files
from codegen.package.opencl.standalone import Standalone
from codegen.package.values import SelfTestSizes
from microkernels.dtypes import f32
from microkernels.isa import PORTABLE
from microkernels.opencl_isa import OPENCL256
from poly.lowering.lower import lower

LIBRARIES = ("-lOpenCL", "-lm")
M, T = poly.sizes("M T")


@poly.nest
def heat(a: poly.f32, A: poly.f32[M], S: poly.f32[T]):
    for t in range(T):
        for i in range(1, M - 1):
            A[i] = a * (A[i - 1] + A[i + 1]) + S[t]


HEAT = """
__kernel __attribute__((reqd_work_group_size(4, 1, 1)))
void heat_i(long M, float a, __global const float *restrict A, __global float *restrict kept)
{
  const long i = 4 * (long)get_group_id(0) + (long)get_local_id(0) + 1;
  if (i < M - 1) kept[i] = a * (A[i - 1] + A[i + 1]);
}

__kernel void heat_once(long M, long t, __global float *restrict A, __global float *restrict kept)
{
  for (long i = 1; i < M - 1; i++) A[i] = kept[i];
}
"""
"""Not what the loops say, which go on from values of the same step; for texts alone."""


def by_hand() -> Standalone:
    """A program with everything that a plan may have."""
    size, steps = Affine.name("M"), Affine.name("T")
    program = DeviceProgram(
        name="heat",
        sizes=("M", "T"),
        buffers=(
            Buffer("a", f32, (), "scalar"),
            Buffer("A", f32, (size,), "inout"),
            Buffer("S", f32, (steps,), "in"),
        ),
        source=HEAT,
        kernels=(
            DeviceKernel(
                "heat_i",
                (
                    Argument("M", "integer"),
                    Argument("a", "scalar", f32),
                    Argument("A", "buffer", f32),
                    Argument("kept", "scratch", f32),
                ),
                (4,),
            ),
            DeviceKernel(
                "heat_once",
                (
                    Argument("M", "integer"),
                    Argument("c", "integer"),
                    Argument("A", "buffer", f32),
                    Argument("kept", "scratch", f32),
                ),
                (1,),
            ),
        ),
        plan=(
            HostLoop(
                "c",
                Linear(),
                Compare(Linear.name("c"), "<", Linear.name("T")),
                1,
                (
                    HostIf(
                        Compare(Linear.name("M"), ">", Linear.of(2)),
                        (Launch("heat_i", (floor_quotient(Linear.name("M") + 1, 4),)),),
                        (Launch("heat_once", (Linear(),)),),
                    ),
                    Launch("heat_once", (minimum(1, Linear.name("M")),)),
                ),
            ),
        ),
        scratch=(Scratch("kept", f32, Linear.name("M")),),
    )
    reference = replace(lower(heat, poly.schedule(heat).tree, PORTABLE), name="plain_loops")
    trials = (SelfTestSizes((("M", 3), ("T", 2))), SelfTestSizes((("M", 1000), ("T", 2)), flops=4000, length=3))
    return Standalone(
        "heat",
        program,
        OPENCL256,
        heat.source[heat.source.index("def ") :].rstrip(),
        str(poly.schedule(heat)),
        reference,
        trials,
        drifts=True,
        notes=("For any size: a schedule that was given, for opencl256 and 2 threads.",),
        version="0.0",
    )


def write(made: Standalone, folder: Path) -> None:
    for name, text in files(made).items():
        (folder / name).write_text(text)


def build(folder: Path, name: str, toolchain: Toolchain = GCC, *flags: str) -> Path:
    """The checking program, compiled without a warning."""
    need(toolchain)
    sources = [folder / f"{name}.c", folder / f"{name}_check.c"]
    target = folder / f"{name}_check"
    succeed([*toolchain.command, "-std=c99", *STRICT, *flags, *sources, "-o", target, *LIBRARIES])
    return target


def result(program: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """A run's exit status and what it prints, on stdout and on stderr."""
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"POCL_MAX_PTHREAD_COUNT": "1"} | environment,
        timeout=300,
    )
    return done.returncode, done.stdout, done.stderr


FAR = r"""
#include "of_nothing.h"

/* A call whose arrays have four elements together, and whose local array has 2^64. */
int main(int argc, char **argv)
{
  cl_platform_id platforms[8];
  cl_uint count, p;
  cl_device_id device = NULL;
  cl_int status;
  of_nothing_program *program;
  clGetPlatformIDs(8, platforms, &count);
  for (p = 0; p < count && !device; p++)
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_CPU, 1, &device, NULL) != CL_SUCCESS) device = NULL;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  cl_mem y = clCreateBuffer(context, CL_MEM_READ_WRITE, 32, NULL, &status);
  const int64_t far = INT64_C(1) << 32;
  if (of_nothing_create(&program, context, device, argc > 1 ? argv[1] : "", stdout) != CL_SUCCESS) return 1;
  for (int time = 0; time < 2; time++) {
    status = of_nothing_enqueue(program, queue, far, 0, far, NULL, NULL, y, 0, NULL, NULL, NULL);
    printf("%s\n", of_nothing_error_name(status));
  }
  of_nothing_release(program);
  return 0;
}
"""

CALLS = r"""
#include "product.h"

/* What the library refuses, and events: a status each, by name. */
static void say(const char *what, cl_int status) { printf("%s: %s\n", what, product_error_name(status)); }

int main(int argc, char **argv)
{
  enum { M = 5, N = 7, K = 3 };
  float A[M * K], B[K * N], C[M * N];
  cl_platform_id platforms[8];
  cl_uint count, p;
  cl_device_id device = NULL;
  cl_int status;
  for (int i = 0; i < M * K; i++) A[i] = (float)i;
  for (int i = 0; i < K * N; i++) B[i] = 1.0f;
  for (int i = 0; i < M * N; i++) C[i] = 0.5f;
  clGetPlatformIDs(8, platforms, &count);
  for (p = 0; p < count && !device; p++)
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_CPU, 1, &device, NULL) != CL_SUCCESS) device = NULL;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  cl_command_queue loose = clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status);
  const cl_mem_flags copy = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
  cl_mem a = clCreateBuffer(context, copy, sizeof A, A, &status);
  cl_mem b = clCreateBuffer(context, copy, sizeof B, B, &status);
  cl_mem c = clCreateBuffer(context, copy, sizeof C, C, &status);
  cl_event start = clCreateUserEvent(context, &status), began, done;
  product_program *program;
  say("no file", product_create(&program, context, device, "absent.cl", NULL));
  printf("%s\n", program ? "a program" : "none");
  say("made", product_create(&program, context, device, argc > 1 ? argv[1] : "", stdout));
  say("negative", product_enqueue(program, queue, -1, K, N, a, b, c, 0, NULL, NULL, NULL));
  say("large", product_enqueue(program, queue, INT64_MAX, K, N, a, b, c, 0, NULL, NULL, NULL));
  const int64_t far = INT64_C(1) << 39;
  say("far too large", product_enqueue(program, queue, far, far, N, a, b, c, 0, NULL, NULL, NULL));
  say("short", product_enqueue(program, queue, M + 1, K, N, a, b, c, 0, NULL, NULL, &done));
  printf("%s\n", done ? "an event" : "no event");
  if (loose) say("no order", product_enqueue(program, loose, M, K, N, a, b, c, 0, NULL, NULL, NULL));
  else say("no order", CL_INVALID_QUEUE_PROPERTIES);
  say("empty", product_enqueue(program, queue, 0, K, N, NULL, b, NULL, 0, NULL, &began, &done));
  say("empty, waited for", clWaitForEvents(1, &done));
  clReleaseEvent(began);
  clReleaseEvent(done);
  say("queued", product_enqueue(program, queue, M, K, N, a, b, c, 1, &start, NULL, &done));
  say("again", product_enqueue(program, queue, M, K, N, a, b, c, 0, NULL, &began, NULL));
  clReleaseEvent(done);
  clSetUserEventStatus(start, CL_COMPLETE);
  say("waited for", clWaitForEvents(1, &began));
  clReleaseEvent(began);
  say("read", clEnqueueReadBuffer(queue, c, CL_TRUE, 0, sizeof C, C, 0, NULL, NULL));
  printf("%g %g\n", (double)C[0], (double)C[M * N - 1]);
  product_release(program);
  product_release(NULL);
  return 0;
}
"""
"""A program that calls the library of a product."""
