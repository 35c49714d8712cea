"""Files that a benchmark writes: checked before it runs, as they would fail only at its end, and written atomically."""

from __future__ import annotations

from poly.commands.outputs import check_file, check_plot
from poly.commands.outputs import write_json as write_json


def check(json_file: str | None, plot_file: str | None) -> None:
    """Raise UsageError for a folder that does not exist, an unknown format, or a missing package to draw with."""
    check_file("--json", json_file)
    check_plot("--plot", plot_file)
