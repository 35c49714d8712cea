"""Files are written whole or not at all, through links, with the permissions they had; and by one function alone."""

from __future__ import annotations

import ast
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.system.files import TEMPORARY, write_file

OLD, NEW = "old\n", "new\n" * 1000
WRITERS = {"write_text", "write_bytes", "savefig", "mkstemp", "NamedTemporaryFile", "copyfile"}
"""Ways to write a file in one go; those that open one are told by their mode."""
ALLOWED = {
    "codegen/system/files.py": "this is the one function",
    "microkernels/speed.py": "a program in a folder of its own that is removed",
    "benchmarks/header": "programs in a folder of its own that is removed",
    "benchmarks/problems/c_call.py": "loops in C in a folder of their own that is removed",
    "benchmarks/programs/compilers.py": "loops in C in such a folder",
    "poly/cluster/member.py": "a library in a folder of its own that is removed",
    "benchmarks/own/elsewhere.py": "nests in a folder of its own that is removed",
    "poly/measure/builder.py": "a candidate in a folder of its own that is removed",
    "poly/measure/child.py": "what a process says, in such a folder",
    "poly/commands/style.py": "into memory",
    "poly/measure/counters.py": "an order to a process, in such a folder",
    "poly/pictures/files.py": "into memory",
    "poly/records/quarantine.py": "a lock, in which nothing is written",
}


def leftovers(folder: Path) -> list[Path]:
    return list(folder.rglob(f"{TEMPORARY}*"))


def absent(path: Path) -> Path:
    return path


def plain(path: Path) -> Path:
    path.write_text(OLD)
    path.chmod(0o640)
    return path


def link(path: Path) -> Path:
    real = path.with_name("real")
    real.write_text(OLD)
    real.chmod(0o604)
    path.symlink_to("real")
    return real


def link_to_link(path: Path) -> Path:
    folder = path.parent / "elsewhere"
    folder.mkdir()
    real = link(folder / "second")
    path.symlink_to("elsewhere/second")
    return real


def dangling(path: Path) -> Path:
    path.symlink_to("not there")
    return path.with_name("not there")


PLACES = [absent, plain, link, link_to_link, dangling]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_what_there_is_stays_but_for_its_content(place: Callable[[Path], Path], mask: int, tmp_path: Path) -> None:
    path = tmp_path / "file.h"
    real = place(path)
    mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else 0o666 & ~mask
    linked = path.is_symlink()
    before = os.umask(mask)
    try:
        write_file(path, NEW)
    finally:
        os.umask(before)
    assert path.read_text() == real.read_text() == NEW
    assert path.is_symlink() == linked
    assert stat.S_IMODE(real.stat().st_mode) == mode
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod"])
def test_a_failure_changes_nothing(
    place: Callable[[Path], Path], call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = place(tmp_path / "file.h")
    before = real.read_text() if real.exists() else None
    if call == "fchmod" and before is None:
        return  # a new file gets its permissions as it is made

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"codegen.system.files.os.{call}", fail)
    with pytest.raises(OSError, match="No space left"):
        write_file(tmp_path / "file.h", NEW)
    assert (real.read_text() if real.exists() else None) == before
    assert not leftovers(tmp_path)


def test_a_reader_never_finds_a_part(tmp_path: Path) -> None:
    path = link(tmp_path / "file.h")
    texts = [letter * 100_000 for letter in "ab"]
    write_file(path, texts[0])
    ended = threading.Event()

    def rewrite() -> None:
        for number in range(100):
            write_file(path, texts[number % 2], sync=False)
        ended.set()

    writer = threading.Thread(target=rewrite)
    writer.start()
    found = {path.read_text()}
    while not ended.is_set():
        found.add(path.read_text())
    writer.join()
    assert found <= set(texts)


def test_a_planted_name_is_not_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one who foresees the temporary name finds that it must be a new file."""
    monkeypatch.setattr("codegen.system.files.os.urandom", lambda count: b"\0" * count)
    victim = plain(tmp_path / "victim")
    (tmp_path / f"{TEMPORARY}{'00' * 8}").symlink_to("victim")
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "file.h", NEW)
    assert victim.read_text() == OLD


def test_names_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    replace = os.replace
    monkeypatch.setattr("codegen.system.files.os.replace", lambda a, b: (names.append(a), replace(a, b)))
    for _ in range(20):
        write_file(tmp_path / "file.h", NEW)
    assert len(set(names)) == 20


def test_what_is_no_regular_file_is_written_to(tmp_path: Path) -> None:
    write_file("/dev/null", NEW)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    write_file(pipe, NEW)
    reader.join()
    assert found == [NEW]
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path, NEW)
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="symbolic links"):
        write_file(tmp_path / "circle", NEW)


@settings(max_examples=20)
@given(content=st.binary(max_size=200) | st.text(max_size=200))
def test_any_content(content: str | bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "file"
    write_file(path, content)
    assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode())


def writes(path: Path) -> Iterator[int]:
    """The lines of a module that write a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        words = [a.value for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Constant)]
        opens = name in ("open", "fdopen") and any(
            isinstance(w, str) and set(w) & set("wax") <= set("wax+b") and w[:1] in "wax" and w for w in words
        )
        renames = (
            name in ("replace", "rename")
            and isinstance(node.func, ast.Attribute)
            and (getattr(node.func.value, "id", "") == "os")
        )
        if name in WRITERS or opens or renames:
            yield node.lineno


def test_everything_is_written_by_it(project: Path) -> None:
    """`--json`, `--plot`, headers, exports, tables: none has a way of its own, in which it would lack something."""
    found = [
        f"{path.relative_to(project)}:{line}"
        for package in ("microkernels", "codegen", "poly", "benchmarks")
        for path in sorted((project / package).rglob("*.py"))
        for line in writes(path)
        if not any(str(path.relative_to(project)).startswith(known) for known in ALLOWED)
    ]
    assert found == []
