"""The compiler's family and version, as tuning records name it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codegen.errors import ToolchainError
from codegen.toolchain.compiler import compiler_name


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and no compiler chosen."""
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("POLY_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)


def compiler(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def macros(*lines: str) -> str:
    return "\n".join(f"echo '#define {line}'" for line in lines)


GNU = ("__GNUC__ 4", "__GNUC_MINOR__ 2", "__GNUC_PATCHLEVEL__ 1", '__VERSION__ "some text"', "__EMPTY__")
CLANG = ("__clang_major__ 14", "__clang_minor__ 0", "__clang_patchlevel__ 6")


def test_the_hosts() -> None:
    assert re.fullmatch(r"(gcc|clang) \d+(\.\d+){2}", compiler_name())


@pytest.mark.parametrize(
    ("script", "name"),
    [
        (macros(*GNU), "gcc 4.2.1"),
        (macros(*GNU, *CLANG), "clang 14.0.6"),
        (macros("__GNUC__ 15"), "gcc 15.0.0"),
        (macros("__TINYC__ 927"), "mycc"),
        ("exit 1", "mycc"),
    ],
)
def test_families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, name: str) -> None:
    monkeypatch.setenv("POLY_CC", compiler(tmp_path / "mycc", script))
    assert compiler_name() == name


def test_options_are_part_of_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compiler(tmp_path / "mycc", macros(*GNU))
    monkeypatch.setenv("POLY_CC", f"{path} -O1 '-DNAME=a b'")
    assert compiler_name() == "gcc 4.2.1 -O1 '-DNAME=a b'"


def test_it_is_asked_once_and_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = tmp_path / "count"
    path = compiler(tmp_path / "mycc", f"echo asked >> {count}; {macros(*GNU)}")
    monkeypatch.setenv("POLY_CC", path)
    assert [compiler_name() for _ in range(3)] == ["gcc 4.2.1"] * 3
    assert count.read_text().count("asked") == 1
    compiler(Path(path), f"echo asked >> {count}; {macros('__GNUC__ 13')}")
    assert compiler_name() == "gcc 13.0.0"
    assert count.read_text().count("asked") == 2


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="no C compiler was found"):
        compiler_name()


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path / "file" / "below"))
    monkeypatch.setenv("POLY_CC", compiler(tmp_path / "mycc", macros(*CLANG)))
    assert compiler_name() == "clang 14.0.6"
