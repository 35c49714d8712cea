"""No compiler, one that fails, a cache that can't be written: a ToolchainError with what to do, and nothing changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import resource, sys
import numpy as np
import poly
from poly import f32

N = poly.sizes("N")

@poly.nest
def double_it(x: f32[N]):
    for i in range(N):
        x[i] = x[i] * 2

{setup}
x = np.ones(7, np.float32)
try:
    poly.compile(double_it)(x)
except poly.ToolchainError as error:
    print("REFUSED", error)
print(x.tolist())
"""
UNCHANGED = str([1.0] * 7)
DOUBLED = str([2.0] * 7)


def run(tmp_path: Path, project: Path, setup: str = "", **environment: str) -> str:
    """What the program above prints in a process of its own."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(setup=setup))
    variables = os.environ | {"PYTHONPATH": str(project), "POLY_CACHE_DIR": str(tmp_path / "cache")} | environment
    done = subprocess.run([sys.executable, script], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def compiler(tmp_path: Path, text: str) -> str:
    """A shell script in the place of a compiler."""
    path = tmp_path / "fake-cc"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_it_works_with_nothing_wrong(tmp_path: Path, project: Path) -> None:
    assert run(tmp_path, project).strip() == DOUBLED


def test_no_compiler(tmp_path: Path, project: Path) -> None:
    out = run(tmp_path, project, PATH=str(tmp_path), CC="", POLY_CC="")
    assert "REFUSED no C compiler was found" in out
    assert "Install gcc or clang" in out
    assert UNCHANGED in out


def test_a_compiler_that_is_not_there(tmp_path: Path, project: Path) -> None:
    out = run(tmp_path, project, POLY_CC="no-such-cc")
    assert "REFUSED the C compiler 'no-such-cc' that POLY_CC names was not found" in out
    assert UNCHANGED in out


def test_a_compiler_that_fails(tmp_path: Path, project: Path) -> None:
    fake = compiler(tmp_path, "echo 'fake-cc: the disk is on fire' >&2; exit 3")
    out = run(tmp_path, project, POLY_CC=fake)
    assert "REFUSED the C compiler failed with exit status 3" in out
    assert "the disk is on fire" in out
    assert f"Command: {fake}" in out
    assert "Source: " in out
    assert UNCHANGED in out
    assert not list((tmp_path / "cache").rglob("*.so")), "nothing half-written is left"


def test_a_compiler_that_is_killed_leaves_nothing_behind(tmp_path: Path, project: Path) -> None:
    fake = compiler(
        tmp_path, 'for word in "$@"; do case "$word" in *.so) printf half > "$word";; esac; done; kill -9 $$'
    )
    out = run(tmp_path, project, POLY_CC=fake)
    assert "REFUSED the C compiler failed" in out
    assert not list((tmp_path / "cache").rglob("*.so"))
    assert run(tmp_path, project).strip() == DOUBLED


def test_a_compiler_that_writes_no_library(tmp_path: Path, project: Path) -> None:
    out = run(tmp_path, project, POLY_CC=compiler(tmp_path, "exit 0"))
    assert "REFUSED" in out
    assert UNCHANGED in out


@pytest.mark.parametrize("place", ["/proc/nowhere", "/dev/null/cache"])
def test_a_cache_directory_that_cannot_be_made(tmp_path: Path, project: Path, place: str) -> None:
    out = run(tmp_path, project, POLY_CACHE_DIR=place)
    assert f"REFUSED the cache directory {place} cannot be used" in out
    assert "POLY_CACHE_DIR" in out
    assert UNCHANGED in out


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_cache_directory(tmp_path: Path, project: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o500)
    out = run(tmp_path, project)
    assert "cannot be used: Permission denied" in out
    assert UNCHANGED in out


def test_a_full_disk(tmp_path: Path, project: Path) -> None:
    """No file may grow beyond 100 bytes, as on a full disk."""
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))"
    out = run(tmp_path, project, setup=limit)
    assert "REFUSED" in out
    assert UNCHANGED in out
    assert run(tmp_path, project).strip() == DOUBLED, "what the full disk left behind does no harm"


def test_a_damaged_library_is_not_silently_run(tmp_path: Path, project: Path) -> None:
    assert run(tmp_path, project).strip() == DOUBLED
    for library in (tmp_path / "cache").rglob("*.so"):
        library.write_bytes(b"\x7fELF but no more")
    out = run(tmp_path, project)
    assert DOUBLED in out or ("REFUSED" in out and UNCHANGED in out)


def test_two_processes_build_the_same_kernel(tmp_path: Path, project: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(setup=""))
    variables = os.environ | {"PYTHONPATH": str(project), "POLY_CACHE_DIR": str(tmp_path / "cache")}
    runs = [
        subprocess.Popen([sys.executable, script], env=variables, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert [process.communicate()[0].strip() for process in runs] == [DOUBLED] * 3


def test_the_cache_is_private(tmp_path: Path, project: Path) -> None:
    run(tmp_path, project)
    folders = [path for path in (tmp_path / "cache").rglob("*") if path.is_dir()]
    assert folders
    assert all(path.stat().st_mode & 0o077 == 0 for path in folders)


def test_a_library_with_threads_stays_loaded(tmp_path: Path, project: Path) -> None:
    """Its threads may still be on their way out of it when its last kernel is dropped."""
    setup = """
import gc
from pathlib import Path
kernel = poly.compile(double_it, threads=2)
kernel(np.ones(100_000, np.float32))
assert "pragma omp parallel" in kernel.source
del kernel
gc.collect()
assert "/kernels/" in Path("/proc/self/maps").read_text()
"""
    assert run(tmp_path, project, setup).strip() == DOUBLED
