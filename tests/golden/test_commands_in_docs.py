"""The commands that the pages show: those of poly are run with small sizes, or read where a run would take long."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pages import BLOCK

from poly.commands import poly

PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md")
RUN_BY_OTHERS = {"embedding.md": "test_header_page.py", "opencl.md": "test_opencl_page.py"}
"""Pages whose commands another test runs as they are."""

ONLY_READ = {
    "poly bench": "measures for minutes",
    "poly build": "compiles for seconds; tests/toolchains/test_package.py runs it",
    "poly report": "measures for seconds; tests/toolchains/test_report_page.py runs it",
    "poly fuzz": "runs for minutes",
    "poly machine": "calibrates",
    "poly opencl": "needs a device; docs/opencl.md runs it",
    "poly header": "takes seconds; docs/embedding.md runs it",
    "poly optimize": "takes seconds; tests/property/test_optimize.py runs it",
    "poly doctor": "tries the drivers; tests/unit/test_doctor.py runs it",
}
"""Commands of which only the arguments are read, with the reason."""

OTHERS = {
    "cc": "docs/embedding.md runs it",
    "pip": "needs an index",
    "taskset": "a user's own",
    "cd": "a user's own",
    "dask": "starts a cluster",
}
"""Programs that are not run, with the reason."""

NESTS = """import poly
from poly import f32

M, N, K = poly.sizes("M N K")

@poly.nest
def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]
"""


def commands(project: Path) -> Iterator[tuple[str, str]]:
    """The page and the text of each command, without its comment."""
    for pattern in PAGES:
        for path in sorted(project.glob(pattern)):
            if path.name in RUN_BY_OTHERS:
                continue
            for block in BLOCK.finditer(path.read_text()):
                lines = block[2].replace("\\\n", " ").splitlines() if block[1] == "sh" else ()
                yield from ((path.name, line) for line in lines if shlex.split(line, comments=True))


def words(line: str) -> list[str]:
    return shlex.split(line, comments=True)


def small(word: str) -> str:
    """The same argument for a run that ends at once."""
    return re.sub(r"\b(512|1000)\b", "16", word)


def read(arguments: list[str]) -> None:
    """Let click read the arguments of a command and of those below it. Raises ClickException."""
    command: click.Command = poly
    parent: click.Context | None = None
    while True:
        context = command.make_context(command.name, arguments, parent=parent)
        if not isinstance(context.command, click.Group):
            return
        name, found, arguments = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert name and found
        command, parent = found, context


def test_each_command_is_known(project: Path) -> None:
    """Targets of make, files that Python runs, and programs that are not run for a reason."""
    targets = set(re.findall(r"^([\w-]+):", (project / "Makefile").read_text(), re.MULTILINE))
    assert len(list(commands(project))) > 40
    for page, line in commands(project):
        program, *rest = (word for word in words(line) if not re.match(r"[A-Z_]+=", word))
        if program == "make":
            assert {word for word in rest if "=" not in word} <= targets, f"{page}: {line}"
        elif program.endswith("python") or program == "pytest":
            files = [word for word in rest if word.endswith(".py") or word.startswith("tests")]
            assert files and all((project / file).exists() for file in files), f"{page}: {line}"
        else:
            known = program == "poly" or program in OTHERS or (project / program).is_file()
            assert known, f"{page}: {line}"


@pytest.mark.slow
def test_the_commands_of_poly_run(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one folder, a search first, since others show what it found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLY_RECORDS", str(tmp_path / "records.sqlite"))
    for name in ("nests.py", "gemm.py"):
        Path(name).write_text(NESTS)
    Path("rows.json").write_text("{}")
    lines = [(page, line) for page, line in commands(project) if words(line)[0] == "poly"]
    run = 0
    for page, line in sorted(lines, key=lambda known: not known[1].startswith("poly tune")):
        arguments = words(line)[1:]
        if f"poly {arguments[0]}" in ONLY_READ or "--workers" in arguments:  # there is no cluster
            read(arguments)
            continue
        if arguments[:2] == ["records", "merge"]:
            Path(arguments[2]).write_bytes(Path("records.sqlite").read_bytes())
        arguments = [small(word) for word in arguments]
        arguments = ["1" if word in ("12", "60") else "2" if word == "40" else word for word in arguments]
        done = CliRunner().invoke(poly, arguments)
        assert done.exit_code == 0, f"{page}: {line}\n{done.output}"
        run += 1
    assert run > 10
