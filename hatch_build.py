"""The extras of the package, among them the benchmarks: a second package, which is built from the folder `benchmarks`.

In a checkout the extra `bench` is that folder, so that `pip install '.[bench]'` needs no index. A source distribution,
and a wheel for others (`make dist` sets POLY_RELEASE), name the package instead.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ExtrasHook(MetadataHookInterface):
    """Adds what `pyproject.toml` lists under `tool.hatch.metadata.hooks.custom.extras`, and `bench`."""

    def update(self, metadata: dict[str, Any]) -> None:
        released = "POLY_RELEASE" in os.environ or Path(self.root, "PKG-INFO").exists()
        place = f"=={metadata['version']}" if released else f" @ {Path(self.root, 'benchmarks').as_uri()}"
        metadata["optional-dependencies"] = {**self.config["extras"], "bench": [f"poly-loops-bench{place}"]}
