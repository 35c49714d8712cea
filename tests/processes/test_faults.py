"""Each system call of the cache and of the records fails once, does half once, and is the last of its process once.

A small library is preloaded that does it; it needs no rights. What must hold after each attempt is in
`fault_scenarios.look`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

SHARES = 2
"""Processes that share the attempts out; each has a compiler's work to do first."""
PART = 1 if os.environ.get("POLY_FAULTS") == "full" else 15
"""One of so many attempts is made: all take minutes."""
SCENARIOS = 12


def test_every_call_fails_once(project: Path, tmp_path: Path) -> None:
    library = tmp_path / "faults.so"
    source = project / "tests" / "support" / "faults.c"
    flags = ("-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run(["cc", *flags, str(source), "-o", str(library), "-ldl"], check=True)
    paths = f"{project}:{project / 'tests' / 'support'}"
    environment = {**os.environ, "PYTHONPATH": paths, "FAULTS": str(library), "LD_PRELOAD": str(library)}
    command = [sys.executable, str(project / "tests" / "support" / "fault_scenarios.py")]
    environment.pop("POLY_RECORDS", None)
    workers = [
        subprocess.Popen(
            [*command, str(share), str(SHARES * PART)],
            env={**environment, "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for share in range(SHARES)
    ]
    said = [worker.communicate()[0] for worker in workers]
    counts = [[int(count) for count in re.findall(r"^[a-z ]+: (\d+) attempts$", text, re.M)] for text in said]
    problems = "\n".join(line for text in said for line in text.splitlines() if not line.endswith(" attempts"))
    assert not problems, problems
    assert [len(shares) for shares in counts] == [SCENARIOS] * SHARES
    assert all(count > 10 // PART for shares in counts for count in shares), counts
