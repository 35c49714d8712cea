"""The command line takes any argument and any file: it ends with a status and a message, and never with a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from poly import commands
from poly.commands import machine as machine_command
from poly.machine import Bandwidth, Measured, Peak
from poly.report import content
from poly.tuning import session

pytestmark = pytest.mark.slow

NEST = """import poly
from poly import f32

M, N = poly.sizes("M N")

@poly.nest
def double(A: f32[M, N], B: f32[M, N]):
    for i in range(M):
        for j in range(N):
            B[i, j] = 2 * A[i, j]
"""
RATES = Measured((Peak("f32", 1, 100.0),), tuple(Bandwidth(at, 1, 50.0, 40.0) for at in ("L1", "L2", "L3", "memory")))
STATUSES = {0, 1, 2}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a nest's file; nothing is measured."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(machine_command, "measured", lambda machine, anew: RATES)
    monkeypatch.setattr(session, "_space", refuse)
    monkeypatch.setattr(content, "measured", lambda machine: RATES)
    (tmp_path / "good.py").write_text(NEST)
    return tmp_path


def refuse(task: Any) -> Any:
    raise commands.PolyError("the search would begin")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(commands.poly, list(arguments), input="")


def fault(*arguments: str) -> str | None:
    """What is wrong with how the command ends; None where it is as it should be."""
    done = run(*arguments)
    called = " ".join(argument[:40] for argument in arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return f"{called}: {type(done.exception).__name__}: {str(done.exception)[:200]}"
    if done.exit_code not in STATUSES or "Traceback" in done.output:
        return f"{called}: status {done.exit_code}, {done.output[:200]}"
    if done.exit_code and not done.stderr.strip():
        return f"{called}: status {done.exit_code} without a word"
    return None


# --- arguments ------------------------------------------------------------------------------------------------------

ODD = (
    "",
    "x" * 5000,
    "\udcff",
    "a\nb",
    "-1",
    "0",
    "9" * 25,
    "1e999",
    "nan",
    "[",
    "{}",
    '["' * 1000,
    "[" * 100_000,
    '[{"step": "tile", "args": [], "kwargs": {"i": "8"}}]',
    "--",
    "ä",
    "%s",
    "/dev/full",
    "/dev/null/x",
    "none/none",
    "M=1",
    "M=-1",
    "M=" + "9" * 25,
    "M=" + "9" * 5000,
    "M=²",
    "=",
    "N=5,M=",
    "c:avx2",
    "opencl:",
    "opencl:nothing",
    "opencl:" + "@1" * 3000,
    "opencl:@²",
    "c:mmx",
    ":",
    "good.py",
    "good.py:",
    "good.py:double:x",
    "text.txt:double",
)
GOOD = "good.py:double"
HEADER = ("header", GOOD, "-o", "made.h", "--isa", "portable")
PLACES: dict[str, Callable[[str], tuple[str, ...]]] = {
    "a command": lambda odd: (odd,),
    "show": lambda odd: ("show", odd),
    **{
        f"show {option}": lambda odd, option=option: ("show", GOOD, option, odd)
        for option in ("--size", "--target", "--threads", "--steps")
    },
    "report": lambda odd: ("report", odd, "-o", "made.html"),
    **{
        f"report {option}": lambda odd, option=option: ("report", GOOD, "--no-measure", option, odd)
        for option in ("-o", "--plot", "--loops", "--at")
    },
    "header": lambda odd: ("header", odd, "-o", "made.h"),
    "header's file": lambda odd: ("header", GOOD, "--isa", "portable", "-o", odd),
    "blas": lambda odd: ("header", "--blas", odd, "--isa", "portable", "-o", "blas.h"),
    **{
        f"header {option}": lambda odd, option=option: (*HEADER, option, odd)
        for option in (
            "--isa",
            "--prefix",
            "--special",
            "--threads",
            "--cores",
            "-MF",
            "--size",
            "--pkgconfig",
            "--cmake",
        )
    },
    "build": lambda odd: ("build", odd, "-o", "made"),
    "build --name": lambda odd: ("build", GOOD, "-o", "made", "--isa", "portable", "--name", odd),
    "opencl": lambda odd: ("opencl", odd, "-o", "made"),
    "opencl --target": lambda odd: ("opencl", GOOD, "-o", "made", "--target", odd),
    "tune": lambda odd: ("tune", odd),
    **{
        f"tune {option}": lambda odd, option=option: ("tune", GOOD, "--size", "N=4", option, odd)
        for option in (
            "--at",
            "--trials",
            "--seconds",
            "--strategy",
            "--start",
            "--target",
            "--threads",
            "--seed",
            "--compiler",
            "--flag",
        )
    },
    "records": lambda odd: ("records", odd),
    "records list": lambda odd: ("records", "list", "--nest", odd, "--target", odd),
    "records show": lambda odd: ("records", "show", odd),
    "records export": lambda odd: ("records", "export", odd),
    "records import": lambda odd: ("records", "import", odd),
    "records merge": lambda odd: ("records", "merge", odd),
    "records clear": lambda odd: ("records", "clear", "--id", odd, "--yes"),
    "machine": lambda odd: ("machine", odd),
}


@pytest.mark.parametrize(("number", "place"), list(enumerate(PLACES)))
def test_any_argument(number: int, place: str) -> None:
    """Neighbouring places take turns in what is odd."""
    found = [fault(*PLACES[place](odd)) for odd in ODD[number % 2 :: 2]]
    assert not any(found), "\n".join(one for one in found if one)


# --- files ----------------------------------------------------------------------------------------------------------

FAILING = {
    "syntax": (b"x = 1\ndef f(:\n", "broken.py:2 cannot be run: SyntaxError: invalid syntax"),
    "tabs": (b"if 1:\n\tx=1\n        y=2\n", "broken.py:3 cannot be run: TabError"),
    "bytes": (b"\xff\xfe\x00x", "broken.py"),
    "null": (b"x=1\x00\n", "broken.py"),
    "deep": (b"x = " + b"-" * 100_000 + b"1\n", "broken.py"),
    "raises": (b"x = 1\nraise RuntimeError('no')\n", "broken.py:2 cannot be run: RuntimeError: no"),
    "inside": (b"def f():\n    return {}['a']\n\nf()\n", "broken.py:2 cannot be run: KeyError: 'a'"),
    "its own": (b"class E(Exception): pass\nraise E('mine')\n", "broken.py:2 cannot be run: E: mine"),
    "asserts": (b"assert False, 'x'\n", "broken.py:1 cannot be run: AssertionError: x"),
    "exits": (b"import sys\nsys.exit(3)\n", "broken.py:2 cannot be run: SystemExit: 3"),
    "stops": (b"raise StopIteration\n", "broken.py:1 cannot be run: StopIteration"),
    "recurs": (b"def f(): f()\nf()\n", "broken.py:1 cannot be run: RecursionError"),
    "memory": (b"raise MemoryError\n", "broken.py:1 cannot be run: MemoryError"),
    "group": (b"raise ExceptionGroup('g', [ValueError(1)])\n", "broken.py:1 cannot be run: ExceptionGroup: g"),
    "unprintable": (b"raise ValueError('\\ud800')\n", "broken.py:1 cannot be run: ValueError: \\ud800"),
    "no words": (
        b"class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n",
        "broken.py:3 cannot be run",
    ),
    "long": (b"raise ValueError('x' * 100000)\n", "broken.py:1 cannot be run: ValueError: xxx"),
    "import": (b"import nothing_there\n", "broken.py:1 cannot be run: ModuleNotFoundError"),
    "nest": (
        b"import poly\n@poly.nest\ndef f(A: poly.f32[3]):\n    while 1:\n        A[0] = 1\n",
        "broken.py:4: a `while` loop has no affine bounds",
    ),
    "empty": (b"", "broken.py has no nest 'double'; it has none"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_file_that_fails_is_named_with_the_line(folder: Path, name: str) -> None:
    content, message = FAILING[name]
    (folder / "broken.py").write_bytes(content)
    for arguments in (("show", "broken.py:double"), ("tune", "broken.py:double")):
        assert fault(*arguments) is None
        done = run(*arguments)
        assert done.exit_code == 2 and message in done.stderr and len(done.stderr) < 2000
    if name != "empty":
        for arguments in (("header", "broken.py", "-o", "made.h"), ("opencl", "broken.py", "-o", "made")):
            assert fault(*arguments) is None and message in run(*arguments).stderr


@pytest.mark.parametrize(
    "content", [b"", b"SQLite format 3\0" + b"x" * 3000, b'{"a": 1}\n', b"[" * 100_000, b"\xff\xfe\0"]
)
def test_a_file_that_holds_no_records(folder: Path, content: bytes) -> None:
    (folder / "records").write_bytes(content)
    for command in ("import", "merge"):
        assert fault("records", command, "records") is None
        assert run("records", command, "records").exit_code == 2
