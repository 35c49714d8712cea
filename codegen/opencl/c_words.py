"""Names of a nest in the C host program, clear of OpenCL's and the program's own."""

from __future__ import annotations

import re

from codegen.names import c_name

TAKEN = re.compile(r"\b(cl_\w+|cl[A-Z]\w*|CL_\w+|FILE|SEEK_\w+|EOF|BUFSIZ|errno|std(in|out|err))\b")
"""Words of the headers that a C host program includes."""


def host_name(name: str) -> str:
    """The C identifier for a size, an array or a scalar in the host program."""
    return host_text(c_name(name))


def host_text(text: str) -> str:
    """An integer expression of C names, as it stands in the host program."""
    return TAKEN.sub(r"\1_", text)
