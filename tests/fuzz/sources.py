"""Convert the fuzzer's nests to poly's, through poly's public front end."""

from __future__ import annotations

import linecache
import math
from dataclasses import replace
from itertools import count
from typing import Any

import poly
from fuzz.data import NUMPY
from fuzz.syntax import Program

FILES = count()
KEPT = 50
"""Python reads the text of a function from its file, so that this many files are kept."""


def nest_of(program: Program) -> Any:
    """The nest that poly reads. Raises what poly raises."""
    if program.einsum:
        dtype = getattr(poly, program.args[0].dtype)
        return poly.einsum(program.einsum, dtype=dtype, reassociate=program.reassociate)
    text = program.text()
    number = next(FILES)
    file = f"<fuzz {number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    linecache.cache.pop(f"<fuzz {number - KEPT}>", None)
    names: dict[str, Any] = {"__name__": "fuzzed", "poly": poly}
    names |= {dtype: getattr(poly, dtype) for dtype in NUMPY}
    names |= {function: getattr(math, function) for function in program.functions}
    names |= {size: poly.sizes(size) for size in program.sizes}
    names |= dict(program.constants)
    exec(compile(text, file, "exec"), names)
    nest = names[program.name]
    return nest if program.reassociate else replace(nest, reassociate=False)
