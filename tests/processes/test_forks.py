"""Forks of a process whose kernels have run in several threads: children neither hang nor compute something else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from headers import CLANG, GCC, Toolchain, at_any_level, quick
from opencl_device import TARGET, device
from scripts import PATIENCE, output

COMMON = '''
import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import poly
from poly import f32

M, N, K = poly.sizes("M N K")
FORK = multiprocessing.get_context("fork")

@poly.nest
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            C[i, j] = 0
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]

@poly.nest
def twice(x: f32[N]):
    for i in range(N):
        x[i] = 2 * x[i]

rng = np.random.default_rng(0)
A, B = rng.random((200, 200), np.float32), rng.random((200, 650), np.float32)
EXPECTED = A @ B  # once: NumPy's own threads are not to be met in a child

def right(kernel, **keywords):
    C = np.empty((200, 650), np.float32)
    kernel(A, B, C, **keywords)
    return bool(np.allclose(C, EXPECTED, rtol=1e-4))

def threads():
    return len(os.listdir("/proc/self/task"))

def said(child):
    """What a child that os.fork makes prints; it must end well."""
    if pid := os.fork():
        assert os.waitpid(pid, 0)[1] == 0
        return
    child()
    os._exit(0)
'''

KERNELS = {
    "known sizes": "kernel = poly.compile(product, M=200, K=200, N=650, threads=2)",
    "open sizes": "kernel = poly.compile(product, threads=2)",
    "called": "kernel = product",
    "scheduled": "kernel = poly.compile(product, schedule=poly.schedule(product).parallel('i'), threads=2)",
    "tuned": "kernel = poly.tune(product, M=200, K=200, N=650, threads=2, trials=3, show=False)",
}

CHILDREN = """
def child(number):
    ok = right(kernel) and right(kernel, threads=1) and right(kernel, threads=3) and right(kernel)
    return ok and threads() > 1

def process():
    queue = FORK.SimpleQueue()
    started = FORK.Process(target=lambda: queue.put(child(0)))
    started.start()
    started.join()
    return queue.get()

def nested():
    return child(0) and process() and child(0)

assert right(kernel, threads=2) and threads() > 1
said(lambda: print("fork", child(0)))
print("process", process())
assert right(kernel, threads=2)
with FORK.Pool(3) as pool:
    print("pool", all(pool.map(child, range(9))))
with ProcessPoolExecutor(2, mp_context=FORK) as executor:
    print("futures", all(executor.map(child, range(4))))
said(lambda: print("nested", nested()))
print("parent", right(kernel, threads=2) and threads() > 1)
"""

EVERY = ["fork True", "process True", "pool True", "futures True", "nested True", "parent True"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_children_of_every_kind_run_in_threads_of_their_own(tmp_path: Path, kernel: str) -> None:
    assert output(tmp_path, f"{COMMON}\n{KERNELS[kernel]}\n{CHILDREN}").splitlines() == EVERY


BUSY = """
stop = threading.Event()

def work():
    while not stop.is_set():
        assert right(kernel, threads=2)

def compile_all():
    for size in range(1, 60):
        if stop.is_set():
            break
        poly.compile(twice, N=size, threads=2)(np.ones(size, np.float32))

kernel = poly.compile(product, threads=2)
assert right(kernel)
others = [threading.Thread(target=target) for target in (work, compile_all)]
for thread in others:
    thread.start()

def child():
    x = np.ones(1000, np.float32)
    poly.compile(twice, N=1000, threads=2)(x)
    fresh = poly.compile(product, schedule=poly.schedule(product).split(i=3), threads=2)
    assert right(kernel, threads=2) and right(fresh) and (x == 2).all()

for _ in range(4):
    said(child)
stop.set()
for thread in others:
    thread.join()
print("done", right(kernel))
"""


def test_a_fork_while_other_threads_run_and_compile_kernels(tmp_path: Path) -> None:
    assert output(tmp_path, f"{COMMON}\n{BUSY}").splitlines() == ["done True"]


IMPORTING = """
import importlib.abc
import sys
import time

poly.compile  # is imported with all that it is made of, for which a fork would not wait at a tenth of a second each

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if threading.current_thread() is not threading.main_thread():
            met.append(name)
            time.sleep(0.1)

met = []
sys.meta_path.insert(0, Slow())
other = threading.Thread(target=imports)
other.start()
while not met:
    time.sleep(0.001)

def child():
    x = np.ones(1000, np.float32)
    poly.compile(twice, N=1000, threads=2)(x)
    assert (x == 2).all()

said(child)
other.join()
print("done", len(met) > 1)
"""


IMPORTS = {
    "compiles": "imports = lambda: poly.compile(twice, N=3, threads=2)(np.ones(3, np.float32))",
    "measures": "imports = lambda: __import__('poly.machine.tile_probes')",
}


@pytest.mark.parametrize("imports", IMPORTS)
def test_a_fork_while_another_thread_imports_what_the_child_needs(tmp_path: Path, imports: str) -> None:
    """Python's locks of modules that another thread holds are never free in a child.

    A module that acquires and releases a lock around forks must not be met half-way: it would release only.
    """
    assert output(tmp_path, f"{COMMON}\n{IMPORTS[imports]}\n{IMPORTING}").splitlines() == ["done True"]


LASTING = """
import sys

starts, forked = threading.Event(), threading.Event()

def hook(event, arguments):
    if event == "subprocess.Popen":  # its pipes are open
        starts.set()
        forked.wait(1)

ours, theirs = os.pipe()
os.environ["POLY_CACHE_DIR"] = os.path.join(os.path.dirname(__file__), "cache")
sys.addaudithook(hook)
thread = threading.Thread(target=lambda: poly.compile(twice, N=3)(np.ones(3, np.float32)))
thread.start()
assert starts.wait(30)
if not (child := os.fork()):
    os.close(theirs)
    os.read(ours, 1)  # until the parent closes its end
    os._exit(0)
forked.set()
thread.join(30)
print("done", not thread.is_alive())
os.close(theirs)
os.waitpid(child, 0)
"""


def test_a_child_that_stays_has_no_pipe_of_a_compiler(tmp_path: Path) -> None:
    """The thread that compiles would wait for it to end."""
    assert output(tmp_path, f"{COMMON}\n{LASTING}").splitlines() == ["done True"]


UNUSED = f'''
def child():
    print(right(poly.compile(product, target="{TARGET}")))

said(child)
'''

USED = f'''
kernel = poly.compile(product, target="{TARGET}")
{{use}}

def refused(run):
    try:
        run()
    except poly.DeviceError as error:
        print(str(error).split(",")[0])

def child():
    refused(lambda: right(kernel))
    refused(lambda: right(poly.compile(twice, target="{TARGET}").executable.profile(np.ones(3, np.float32))))
    refused(lambda: said(lambda: right(kernel)))

said(child)
print(right(kernel))
'''


def test_a_child_may_use_opencl_where_its_parent_did_not(tmp_path: Path) -> None:
    device()
    assert output(tmp_path, f"{COMMON}\n{UNUSED}").splitlines() == ["True"]


@pytest.mark.parametrize("use", ["", "assert right(kernel)"])
def test_a_child_is_told_that_its_parents_opencl_is_lost(tmp_path: Path, use: str) -> None:
    device()
    lost = "OpenCL was used before this process was forked"
    said = output(tmp_path, f"{COMMON}\n{USED.format(use=use)}").splitlines()
    assert said == [lost, lost, "True"] or said == [lost, lost, lost, "True"]


PROGRAM = """
#define PRODUCT_IMPLEMENTATION
#include "product.h"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static float A[96 * 70], B[70 * 80], C[96 * 80];

static int right(int threads)
{
  for (int n = 0; n < 96 * 80; n++) C[n] = 0;
  if (product(96, 70, 80, A, B, C, threads) != PRODUCT_OK) return 0;
  for (int n = 0; n < 96 * 80; n++) if (C[n] != 140) return 0;
  return 1;
}

static int child(int depth)
{
  int status = 0;
  const pid_t process = fork();
  if (process == 0) _exit(right(2) && right(1) && right(3) && (depth == 0 || child(depth - 1)) ? 0 : 1);
  waitpid(process, &status, 0);
  return status == 0;
}

int main(void)
{
  for (int n = 0; n < 96 * 70; n++) A[n] = 1;
  for (int n = 0; n < 70 * 80; n++) B[n] = 2;
  printf("%d\\n", child(1));
  printf("%d\\n", right(2));
  printf("%d\\n", child(2));
  printf("%d\\n", right(2));
  return 0;
}
"""


@pytest.mark.parametrize("threads", ["openmp", "pthreads"])
@pytest.mark.parametrize("compiler", [GCC, CLANG], ids=str)
def test_a_header_in_children_of_a_program(tmp_path: Path, threads: str, compiler: Toolchain) -> None:
    header, program, built = (tmp_path / name for name in ("product.h", "program.c", "program"))
    write = f"poly.compile(product, threads=2).write_header({str(header)!r}, dense=True, threads={threads!r})"
    output(tmp_path, f"{COMMON}\n{write}")
    at_any_level(header)
    program.write_text(PROGRAM)
    flags = [*quick(compiler), "-fopenmp" if threads == "openmp" else "-pthread"]
    subprocess.run([*compiler.command, *flags, str(program), "-o", str(built), "-lm"], check=True)
    done = subprocess.run([str(built)], check=True, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.splitlines() == ["1"] * 4
