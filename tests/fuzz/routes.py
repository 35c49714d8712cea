"""Ways to compile and run the schedules of one nest. Each takes pairs that differ in their schedules alone.

c        in this process, all schedules in one library, built quickly
public   `poly.compile` with its own flags, one after the other; also arrays that lie in other ways
header   one C header with all of them, under the address and undefined behaviour sanitizers, in a program of its own
opencl   the CPU's device, as a CPU and as a GPU
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import poly
from fuzz import library
from fuzz.data import Data, difference
from fuzz.pairs import Failure, Pair, Refused, Slow, bounded, called, failed, kernel_of, scheduled
from fuzz.schedules import REFUSALS
from fuzz.sources import nest_of
from microkernels.opencl_isa import OPENCLGPU, DeviceISA
from poly.kernel import Kernel, signature
from poly.opencl_kernel import opencl_kernel
from poly.schedules.schedule import Schedule

Outcome = Failure | Refused | None
Announce = Callable[[Pair], None]
Route = Callable[[Sequence[Pair], poly.Nest, Sequence[Schedule | None], Sequence[Data], Path, Announce], list[Outcome]]

DEVICE_LOOSER = 4.0
"""The factor by which bounds are larger on a device, whose division and functions may round worse than C's."""


def translated(pairs: Sequence[Pair], nest: poly.Nest, tolds: Sequence[Schedule | None]) -> list[Kernel | Outcome]:
    """For each pair a kernel, or the reason why there is none."""
    made: list[Kernel | Outcome] = []
    for number, (pair, told) in enumerate(zip(pairs, tolds, strict=True)):
        try:
            made.append(kernel_of(nest, told, pair.target, pair.threads, f"{pair.program.name}_k{number}"))
        except Slow as slow:
            made.append(Refused(f"slow: {slow}"))
        except Refused as refused:
            made.append(_refused(pair, refused))
        except Exception as error:
            made.append(failed("error", error, pair))
    return made


def _refused(pair: Pair, refused: Refused) -> Outcome:
    """The outcome of a refusal: a failure for the default schedule, except with f16, which few machines support."""
    halves = any(arg.dtype == "f16" for arg in pair.program.args)
    return refused if pair.steps is not None or halves else failed("default", refused, pair)


def in_c(pairs, nest, tolds, data, folder: Path, announce: Announce) -> list[Outcome]:
    made = translated(pairs, nest, tolds)
    kernels = [kernel for kernel in made if isinstance(kernel, Kernel)]
    try:
        if kernels:
            library.build(kernels, folder, pairs[0].level)
    except library.BuildFailed:
        return [_alone(pair, kernel, data, folder, announce) for pair, kernel in zip(pairs, made, strict=True)]
    return [_run(pair, kernel, data, announce) for pair, kernel in zip(pairs, made, strict=True)]


def _alone(pair: Pair, kernel: Kernel | Outcome, data: Sequence[Data], folder: Path, announce: Announce) -> Outcome:
    """Build one kernel as a separate library, to find the one that can't be built."""
    if isinstance(kernel, Kernel):
        try:
            library.build([kernel], folder, pair.level)
        except library.BuildFailed as error:
            return Failure("build", str(error)[:3000], pair)
    return _run(pair, kernel, data, announce)


def _run(pair: Pair, kernel: Any, data: Sequence[Data], announce: Announce, looser: float = 1.0) -> Outcome:
    if isinstance(kernel, Failure | Refused) or kernel is None:
        return kernel
    announce(pair)
    for run, one in zip(pair.runs, data, strict=True):
        wrong = called(pair, kernel, one, run, looser)
        if wrong:
            return wrong
    return None


# --- the public way -------------------------------------------------------------------------------------------------


def in_public(pairs, nest, tolds, data, folder: Path, announce: Announce) -> list[Outcome]:
    return [_publicly(pair, data, announce) for pair in pairs]


def _publicly(pair: Pair, data: Sequence[Data], announce: Announce) -> Outcome:
    """Compile and run as a user would: the nest as read, sizes passed to poly.compile, no schedule or one from JSON.

    Records keep their schedules as JSON.
    """
    announce(pair)
    try:
        with bounded():
            kernel = _compiled(pair)
    except Slow as slow:
        return Refused(f"slow: {slow}")
    except REFUSALS as error:
        return _refused(pair, Refused(str(error)))
    except Exception as error:
        return failed("error", error, pair)
    wrong = _run(pair, kernel, data, announce)
    return wrong or _viewed(pair, kernel, data[0])


def _compiled(pair: Pair) -> Kernel:
    nest = nest_of(pair.program)
    fixed = nest.with_sizes(pair.fixed()) if pair.known else nest
    told = scheduled(fixed, pair.steps)
    if told is not None:
        told = Schedule.from_json(fixed, told.to_json())
    options: dict[str, Any] = {"target": pair.target, "threads": pair.threads, "records": False}
    sizes = pair.fixed() if told is None else {}
    kernel = poly.compile(nest if told is None else told.nest, schedule=told, sizes=sizes, **options)
    kernel.function  # noqa: B018 - builds it
    return kernel


def _viewed(pair: Pair, kernel: Kernel, data: Data) -> Failure | None:
    """The same call with arrays that lie in memory in other ways: in another order, backwards, with gaps.

    Arrays of indices lie as they are, and those in which elements are looked up are not turned.
    """
    rng = Random(pair.runs[0].seed)
    if any(arg.below for arg in pair.program.args):
        return None
    values = [data.values[arg.name] for arg in pair.program.args]
    lying = [_lying(value, rng) if isinstance(value, np.ndarray) else (value, None) for value in values]
    arrays = tuple(array for array, _ in lying)
    try:
        kernel(*arrays, **{size: data.sizes[size] for size in kernel.signature.given})
    except Exception as error:
        return failed("call", error, pair)
    strides = [array.strides for array in arrays if isinstance(array, np.ndarray)]
    wrong = difference(pair.program, data, arrays)
    if wrong:
        return Failure("wrong", f"strides {strides}, with {data.sizes}: {wrong}", pair)
    for array, memory in lying:
        if memory is not None:
            array[...] = GAP
            if (memory != GAP).any():
                return Failure("guard", f"strides {strides}: a gap between elements has changed", pair)
    return None


GAP = 77
"""What is between the elements of an array with gaps."""


def _lying(value: np.ndarray, rng: Random) -> tuple[np.ndarray, np.ndarray]:
    """A copy of an array that lies in memory in any way, and all of this memory."""
    axes = rng.sample(range(value.ndim), value.ndim) if rng.random() < 0.6 else [*range(value.ndim)]
    steps = [rng.choice((1, 1, 1, -1, 2, -3)) for _ in axes]
    extents = [value.shape[axis] * abs(steps[axis]) + rng.choice((0, 0, 0, 3)) for axis in axes]
    memory = np.full(extents, GAP, value.dtype)
    ends = [slice(0, extent * abs(step), abs(step)) for extent, step in zip(value.shape, steps, strict=True)]
    turns = tuple(slice(None, None, -1 if step < 0 else 1) for step in steps)
    array = memory.transpose(np.argsort(axes))[(*ends, ...)][(*turns, ...)]
    array[...] = value
    return array, memory


# --- headers --------------------------------------------------------------------------------------------------------

BUILDING = 40.0
"""Seconds for a header's program: with sanitizers gcc takes minutes for some wide kernels."""
SANITIZE = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-w")


def in_header(pairs, nest, tolds, data, folder: Path, announce: Announce) -> list[Outcome]:
    made = translated(pairs, nest, tolds)
    places = [number for number, kernel in enumerate(made) if isinstance(kernel, Kernel)]
    outcomes: list[Outcome] = [None if isinstance(kernel, Kernel) else kernel for kernel in made]
    if not places:
        return outcomes
    kernels = [made[number] for number in places]
    try:
        binary = _header_program(kernels, pairs[0], folder)
    except (*REFUSALS, Slow) as error:
        for number in places:
            outcomes[number] = Refused(f"slow: {error}" if isinstance(error, Slow) else str(error))
        return outcomes
    except Exception as error:
        if len(places) > 1:  # one after the other, to find which it is
            return [
                in_header([pair], nest, [told], data, folder, announce)[0]
                for pair, told in zip(pairs, tolds, strict=True)
            ]
        outcomes[places[0]] = failed("build", error, pairs[places[0]])
        return outcomes
    for at, number in enumerate(places):
        announce(pairs[number])
        outcomes[number] = next(filter(None, (_in_program(pairs[number], binary, at, d, folder) for d in data)), None)
    return outcomes


def _header_program(kernels: Sequence[Any], pair: Pair, folder: Path) -> Path:
    """A program that reads arguments from a file, calls the kernel of a number, and writes the arrays back."""
    isa = kernels[0].isa.name
    isas = ["portable"] if isa == "portable" else [isa, "portable"]
    path = poly.write_header(folder / "fuzzed.h", kernels, prefix="fuzzed", isas=isas, threads="none")
    calls = [_case(kernel, number, len(kernels), pair) for number, kernel in enumerate(kernels)]
    source = folder / "program.c"
    source.write_text(PROGRAM % "\n".join(calls))
    binary = folder / "program"
    command = ["gcc", *SANITIZE, "-I", str(path.parent), str(source), "-o", str(binary), "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=BUILDING)
    except subprocess.TimeoutExpired:
        raise Slow(f"gcc's sanitizers take more than {BUILDING:g} s") from None
    if done.returncode:
        raise library.BuildFailed(done.stderr[:3000])
    return binary


PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#define FUZZED_IMPLEMENTATION
#include "fuzzed.h"

static FILE *in, *out;
static int64_t count(void) { int64_t n; if (fread(&n, 8, 1, in) != 1) exit(90); return n; }
/* Memory of its own for each array, so that the sanitizer sees the first byte behind it. */
static void *array(int64_t *bytes)
{
  *bytes = count();
  void *memory = malloc(*bytes);
  if (*bytes && fread(memory, *bytes, 1, in) != 1) exit(91);
  return memory;
}
static void back(const void *memory, int64_t bytes) { if (bytes) fwrite(memory, bytes, 1, out); }

int main(int argc, char **argv)
{
  in = fopen(argv[2], "rb"), out = fopen(argv[3], "wb");
  int status = 99;
  switch (atoi(argv[1])) {
%s
  }
  fclose(out);
  return status;
}
"""


def _case(kernel: Kernel, number: int, total: int, pair: Pair) -> str:
    """The lines that read the arguments, call a kernel and write its arrays back."""
    name = f"fuzzed_{kernel.nest.name}"
    lines = [f"int64_t v_s{at} = count();" for at in range(len(kernel.nest.sizes))]
    told = [f"v_s{at}" for at in range(len(kernel.nest.sizes))]
    for at, argument in enumerate(kernel.nest.arguments):
        c = argument.dtype.c_name
        if argument.kind == "scalar":
            lines += [f"int64_t v_b{at}; {c} *v_a{at} = array(&v_b{at});"]
            told.append(f"*v_a{at}")
        else:
            lines += [f"int64_t v_b{at}; {c} *v_a{at} = array(&v_b{at});"]
            told += [f"v_a{at}", *["0"] * (len(argument.shape) - 1)]
    lines.append(f"status = (int){name}({', '.join(told)});")
    lines += [f"back(v_a{at}, v_b{at}); free(v_a{at});" for at in range(len(kernel.nest.arguments))]
    return "\n".join([f"  case {number}: {{", *(f"    {line}" for line in lines), "    break; }"])


def _in_program(pair: Pair, binary: Path, number: int, data: Data, folder: Path) -> Failure | None:
    told, answer = folder / "told.bin", folder / "answer.bin"
    nest = nest_of(pair.program)
    open_sizes = [size for size in nest.sizes if size not in pair.known]
    blocks = [np.int64(data.sizes[size]).tobytes() for size in open_sizes]
    for arg in pair.program.args:
        raw = np.asarray(data.values[arg.name]).tobytes()
        blocks += [np.int64(len(raw)).tobytes(), raw]
    told.write_bytes(b"".join(blocks))
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0"}
    command = [str(binary), str(number), str(told), str(answer)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment, timeout=60)
    except subprocess.TimeoutExpired:
        return Failure("hang", f"the header's function ran for 60 s with {data.sizes}", pair)
    if done.returncode:
        return Failure("header", f"exit {done.returncode} with {data.sizes}: {_complaint(done.stderr)}", pair)
    raw, at, arrays = answer.read_bytes(), 0, []
    for arg in pair.program.args:
        before = np.asarray(data.values[arg.name])
        arrays.append(np.frombuffer(raw, before.dtype, before.size, at).reshape(before.shape))
        at += before.nbytes
    wrong = difference(pair.program, data, tuple(arrays))
    return Failure("wrong", f"header, with {data.sizes}: {wrong}", pair) if wrong else None


def _complaint(text: str) -> str:
    """The most informative lines of a sanitizer's report."""
    lines = [line for line in text.splitlines() if "runtime error" in line or "ERROR" in line or " in " in line]
    return "\n".join(lines[:6]) or text[:500]


# --- OpenCL ---------------------------------------------------------------------------------------------------------


@cache
def device() -> Any:
    from codegen.opencl.devices import find

    return find(os.environ.get("POLY_TEST_DEVICE", "opencl:pocl"))


def device_isa(target: str) -> DeviceISA:
    """The device's own instruction set, or that of a GPU with its limits."""
    own = device().isa
    if not target.endswith("gpu"):
        return own
    return replace(OPENCLGPU, units=4, local_bytes=own.local_bytes, max_items=min(256, own.max_items))


def in_opencl(pairs, nest, tolds, data, folder: Path, announce: Announce) -> list[Outcome]:
    return [_on_device(pair, nest, told, data, announce) for pair, told in zip(pairs, tolds, strict=True)]


def _on_device(pair: Pair, nest: poly.Nest, told: Schedule | None, data, announce: Announce) -> Outcome:
    isa = device_isa(pair.target)
    announce(pair)
    try:
        with bounded():
            kernel = opencl_kernel(nest if told is None else told.nest, isa, isa.units, told, device())
    except Slow as slow:
        return Refused(f"slow: {slow}")
    except REFUSALS as error:
        return _refused(pair, Refused(str(error)))
    except Exception as error:
        return failed("error", error, pair)
    return _run(pair, kernel, data, announce, DEVICE_LOOSER)


ROUTES: dict[str, Route] = {"c": in_c, "public": in_public, "header": in_header, "opencl": in_opencl}

__all__ = ["ROUTES", "signature"]
