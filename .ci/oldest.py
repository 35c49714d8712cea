"""Prints the oldest versions that pyproject.toml allows of what poly requires and of its extras, for pip."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
extras = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["extras"]
used = [*project["project"]["dependencies"], *extras["plot"], *extras["bench-needs"]]
for requirement in used:
    match = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement)
    if match:
        print(f"{match[1]}=={match[2]}")
    elif not requirement.startswith("poly-loops["):
        sys.exit(f"{requirement} has no oldest version")
