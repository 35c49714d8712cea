"""The status codes that a call returns."""

from __future__ import annotations

STATUSES = {
    "OK": "done",
    "NULL_POINTER": "an array that has elements is a null pointer",
    "MISALIGNED": "an array is not aligned to its elements",
    "BAD_SIZE": "a size, or an extent that follows, is negative or too large, or an assertion fails",
    "BAD_STRIDE": "a stride is negative, too large, or shorter than what lies within it",
    "OVERLAP": "an output, or the workspace, overlaps another array",
    "BAD_THREADS": "threads is less than 1 or more than PFX_MAX_THREADS",
    "WORKSPACE_TOO_SMALL": "the workspace is null, or smaller than the workspace_size function says",
    "OUT_OF_MEMORY": "no memory for the workspace",
    "UNSUPPORTED_ISA": "this CPU, or this build, does not have the instruction set",
    "BAD_INDEX": "an element that is looked up as an index is outside of the array",
}
"""The status codes, from 0 up, and what each means."""


def status_type() -> str:
    """The type `pfx_status`."""
    width = max(map(len, STATUSES)) + len("PFX_ = 0,")
    rows = [f"PFX_{name} = {number},".ljust(width) for number, name in enumerate(STATUSES)]
    lines = [f"    {row} /* {meaning} */" for row, meaning in zip(rows, STATUSES.values(), strict=True)]
    head = "/* What a call returns; but for PFX_OK nothing was changed. */\ntypedef enum pfx_status {"
    # C99 allows a comma after the last one.
    return "\n".join([head, *lines, "} pfx_status;"])


def status_text() -> str:
    """The function that describes a status in words."""
    cases = [f'    case PFX_{name}: return "{meaning}";' for name, meaning in STATUSES.items()]
    head = ["const char *pfx_status_text(pfx_status status)", "{", "    switch (status) {"]
    return "\n".join([*head, *cases, "    }", '    return "no status of this file";', "}"])
