"""Building and keeping: what is there once is not built again, and nothing half-written is ever seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codegen.errors import ToolchainError
from codegen.system import cache
from codegen.toolchain import build

TEXT = "int answer(void) { return 42; }\n"
CDEF = "int answer(void);"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no compiler chosen."""
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("POLY_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)
    return tmp_path / "cache"


def fake_compiler(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_build_and_call(folder: Path) -> None:
    library = build.load(TEXT, CDEF)
    assert library.lib.answer() == 42
    assert library.path.with_suffix(".c").read_text() == library.source == TEXT
    assert library.path.parent == folder / "kernels"
    assert sorted(p.suffix for p in library.path.parent.iterdir()) == [".c", ".so"]


def test_private_to_the_user(folder: Path) -> None:
    library = build.load(TEXT, CDEF)
    for path in (folder, folder / "kernels"):
        assert path.stat().st_mode & 0o777 == 0o700
    assert library.path.stat().st_mode & 0o077 == 0


def test_built_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The second time no compiler runs; another text, other flags or another compiler make another library."""
    count = tmp_path / "count"
    real = build.find_compiler()[0]
    counting = f'case "$*" in *-shared*) echo run >> {count};; esac; exec {real} "$@"'
    compiler = fake_compiler(tmp_path / "counting", counting)
    monkeypatch.setenv("POLY_CC", compiler)
    first = build.build(TEXT)
    assert build.build(TEXT) == first
    assert count.read_text().count("run") == 1
    others = {build.build(TEXT + "\n"), build.build(TEXT, ("-g",))}
    monkeypatch.setenv("POLY_CC", f"{compiler} -g0")
    others.add(build.build(TEXT))
    fake_compiler(Path(compiler), f"# newer\n{counting}")
    others.add(build.build(TEXT))
    assert len(others | {first}) == 5
    assert count.read_text().count("run") == 5


def test_two_processes_build_the_same(folder: Path, tmp_path: Path, project: Path) -> None:
    """Both compilers run at once, slowly; each process gets a whole library."""
    real = build.find_compiler()[0]
    slow = fake_compiler(tmp_path / "slow", f'sleep 0.3; exec {real} "$@"')
    script = f"from codegen.toolchain.build import load; print(load({TEXT!r}, {CDEF!r}).lib.answer())"
    environment = {**os.environ, "POLY_CC": slow, "PYTHONPATH": str(project)}
    command = [sys.executable, "-c", script]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["42\n", "42\n"]
    assert sorted(p.suffix for p in (folder / "kernels").iterdir()) == [".c", ".so"]


def test_a_killed_build_leaves_nothing_half_written(folder: Path, tmp_path: Path, project: Path) -> None:
    """The process dies while its compiler has written half of a library; the next one builds it anew."""
    half = 'while [ "$1" != -o ]; do shift; done; echo half > "$2"; sleep 60'
    environment = {**os.environ, "POLY_CC": fake_compiler(tmp_path / "half", half), "PYTHONPATH": str(project)}
    script = f"from codegen.toolchain.build import build; build({TEXT!r})"
    process = subprocess.Popen([sys.executable, "-c", script], env=environment, start_new_session=True)
    deadline = time.monotonic() + 30
    while not any(p.stat().st_size for p in folder.glob("kernels/.part*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not list(folder.glob("kernels/[!.]*.so"))
    assert build.load(TEXT, CDEF).lib.answer() == 42


def test_what_a_killed_build_left_is_swept(folder: Path) -> None:
    """Files of builds that died are removed by a later build, once they are a day old."""
    left = cache.private_directory("kernels") / ".part-dead.so"
    young = left.with_name(".part-young.so")
    left.write_text("half")
    young.write_text("half")
    os.utime(left, (0, 0))
    build.build(TEXT)
    assert not left.exists()
    assert young.exists()


def test_a_library_that_is_no_library_is_built_anew() -> None:
    """After a crash of the machine a file may be there without its content."""
    path = build.build(TEXT)
    path.write_bytes(b"")
    assert build.load(TEXT, CDEF).lib.answer() == 42


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"^no C compiler was found.*Install gcc or clang, or set POLY_CC"):
        build.build(TEXT)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ToolchainError, match=r"^the C compiler 'no-such-compiler' that CC names was not found"):
        build.build(TEXT)


def test_a_compiler_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLY_CC", "/bin/false")
    with pytest.raises(ToolchainError) as caught:
        build.build(TEXT)
    message = str(caught.value)
    assert message.startswith("the C compiler failed with exit status 1.\nCommand: ")
    assert message.endswith("It said:\n(nothing)")


def test_the_compilers_own_words_and_the_source(folder: Path) -> None:
    with pytest.raises(ToolchainError, match=r"error: .*unknown") as caught:
        build.build("unknown answer;\n")
    (kept,) = (folder / "kernels").glob("*.c")
    assert f"Source: {kept}" in str(caught.value)
    assert kept.read_text() == "unknown answer;\n"
    assert not list((folder / "kernels").glob(".part*"))


@pytest.mark.parametrize("place", ["file", "/proc/poly"])
def test_a_cache_that_cannot_be_written(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    chosen = str(tmp_path / place / "below")
    monkeypatch.setenv("POLY_CACHE_DIR", chosen)
    for action in (lambda: build.build(TEXT), lambda: cache.put("key", "text")):
        with pytest.raises(ToolchainError, match=r"cannot be used: .*set POLY_CACHE_DIR to another") as caught:
            action()
        assert chosen in str(caught.value)


def test_a_full_disk(project: Path, folder: Path) -> None:
    """No file may grow: the error says which directory, and nothing is left there."""
    script = f"""
import resource
from codegen.toolchain.build import build
from codegen.errors import ToolchainError
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    build({TEXT!r})
except ToolchainError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert f"the cache directory {folder} cannot be used" in done.stdout, done.stderr
    assert not [p for p in folder.rglob("*") if p.is_file()]


def test_keep_and_find() -> None:
    assert cache.get("matmul M=512") is None
    cache.put("matmul M=512", "a schedule: äöü")
    cache.put("matmul M=1024", "another")
    assert cache.get("matmul M=512") == "a schedule: äöü"
    cache.put("matmul M=512", "a better one")
    assert cache.get("matmul M=512") == "a better one"


def test_where_things_are_kept(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert cache.cache_dir() == folder
    monkeypatch.delenv("POLY_CACHE_DIR")
    assert cache.cache_dir().name == "poly"
