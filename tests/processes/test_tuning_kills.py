"""Tuners killed while they measure: what the store took stays, the next one goes on, and no process is left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

KILLS = 3
"""A hundred are done by hand: `python tests/support/kill_tuners.py 100`."""


def test_kills_while_measuring(project: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(project), "POLY_CACHE_DIR": str(tmp_path)}
    environment.pop("POLY_RECORDS", None)
    command = [sys.executable, str(project / "tests" / "support" / "kill_tuners.py"), str(KILLS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = re.match(rf"{KILLS} kills, (\d+) trials told of, none lost", done.stdout)
    assert told is not None and int(told[1]) >= KILLS, done.stdout
