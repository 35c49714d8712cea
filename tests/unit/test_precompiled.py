"""The precompiled header: the same library as without, made by gcc alone, and no build fails for its sake."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codegen.toolchain import build
from codegen.toolchain.compiler import is_gcc

pytestmark = pytest.mark.slow

TEXT = """#include <stdint.h>
#include <immintrin.h>

int64_t bits(const int32_t *x) { return _mm_movemask_epi8(_mm_loadu_si128((const __m128i *)x)); }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no compiler chosen."""
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("POLY_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def gcc() -> None:
    """Skip where the compiler is another, or the CPU has no such header."""
    if not is_gcc():
        pytest.skip("the C compiler is not gcc")
    try:
        build.build(TEXT)
    except build.ToolchainError:
        pytest.skip("no <immintrin.h> on this CPU")


def made(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.glob("headers/*"))


def commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The compiler's commands from now on."""
    seen: list[tuple[str, ...]] = []
    run = build._run

    def watched(command: tuple[str, ...], text: Path, seconds: float | None) -> None:
        seen.append(command)
        run(command, text, seconds)

    monkeypatch.setattr(build, "_run", watched)
    return seen


def test_the_same_library(gcc: None, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ("-msse4.2", "-lm")
    plain = build.build(TEXT, flags).read_bytes()
    assert made(folder) == []
    build.precompile(flags)
    assert made(folder) == [".gch", ".h"]
    seen = commands(monkeypatch)
    assert build.build(TEXT, flags, tmp_path).read_bytes() == plain
    assert [("-include" in command) for command in seen] == [True]


def test_the_compiler_takes_it(gcc: None, folder: Path, tmp_path: Path) -> None:
    build.precompile()
    (header,) = folder.glob("headers/*.h")
    source = tmp_path / "text.c"
    source.write_text(TEXT)
    command = (*build.find_compiler(), *build.FLAGS, "-H", "-Winvalid-pch", "-include", str(header), "-c", str(source))
    done = subprocess.run((*command, "-o", "/dev/null"), capture_output=True, text=True, check=True)
    assert f"! {header}.gch" in done.stderr
    assert "warning" not in done.stderr


def test_only_where_the_header_is_read_with_the_same_flags(
    gcc: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.precompile()
    seen = commands(monkeypatch)
    build.build("int answer(void) { return 42; }\n", (), tmp_path)
    build.build(TEXT, ("-msse4.2",), tmp_path)
    assert not any("-include" in command for command in seen)


def test_a_damaged_one_is_passed_over(gcc: None, folder: Path, tmp_path: Path) -> None:
    build.precompile()
    (compiled,) = folder.glob("headers/*.gch")
    compiled.write_bytes(compiled.read_bytes()[:1000])
    assert build.build(TEXT, (), tmp_path).exists()


def test_what_the_compiler_says_of_a_wrong_text_is_not_of_the_header(gcc: None, tmp_path: Path) -> None:
    build.precompile()
    with pytest.raises(build.ToolchainError, match=r"error: .*wrong") as caught:
        build.build(TEXT + "wrong words;\n", (), tmp_path)
    assert "-include" not in str(caught.value)


@pytest.mark.parametrize("script", ["exit 1", 'case "$*" in *-dM*) echo "#define __GNUC__ 4"; esac; exit 3'])
def test_a_compiler_that_cannot(script: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("POLY_CC", str(compiler))
    build.precompile()
    assert ".gch" not in made(folder)


def test_a_compiler_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nexec sleep 60\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("POLY_CC", str(compiler))
    with pytest.raises(build.ToolchainError, match=r"did not end within 0.2 seconds\.\nCommand: "):
        build.build(TEXT, (), tmp_path, seconds=0.2)
