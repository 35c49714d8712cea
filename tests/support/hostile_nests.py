"""Nests with placeholders for names, which lead to all kinds of generated text, and the words of such text.

The words are taken from texts that are generated from these nests with meaningless names, so that the list of words is
never out of date. A word that contains such a name, `u3q_sum`, stands for one that is derived from a user's name.
"""

from __future__ import annotations

import linecache
import re
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from headers import once

import poly
from microkernels.isa import ISAS
from microkernels.prune import NO_CODE, WORD

KINDS = {
    "product": """
import poly
from poly import {dtype}
{M}, {N}, {K} = poly.sizes("{M} {N} {K}")
@poly.nest
def {function}({A}: {dtype}[{M}, {K}], {B}: {dtype}[{K}, {N}], {C}: {dtype}[{M}, {N}], {s}: {dtype}):
    for {i} in range({M}):
        for {j} in range({N}):
            for {k} in range({K}):
                {C}[{i}, {j}] += {s} * {A}[{i}, {k}] * {B}[{k}, {j}]
""",
    "rows": """
import poly
from poly import {dtype}
{M}, {N}, {K} = poly.sizes("{M} {N} {K}")
@poly.nest
def {function}({A}: {dtype}[{M}, {N}], {B}: {dtype}[{M}], {C}: {dtype}[{M}, {N}], {s}: {dtype}, {D}: {dtype}[{K}]):
    for {i} in range({M}):
        {acc} = {A}[{i}, 0]
        for {j} in range({N}):
            {acc} = max({acc}, {A}[{i}, {j}])
        {B}[{i}] = 0
        for {j} in range({N}):
            {tmp}: {dtype}[4]
            {tmp}[1] = {A}[{i}, {j}] * {s} - {acc}
            {C}[{i}, {j}] = {call}({tmp}[1] * {j})
            {B}[{i}] += {C}[{i}, {j}]
        for {k} in range({N}):
            if {i} + {k} < {K} - 3:
                {C}[{i}, {k}] = {C}[{i}, {k}] + abs({B}[{i}]) + {K} / 4 + {D}[0]
""",
    "stencil": """
import poly
from poly import {dtype}
{M}, {N}, {K} = poly.sizes("{M} {N} {K}")
@poly.nest
def {function}({A}: {dtype}[{M}, {N}], {B}: {dtype}[{M}, {N}], {s}: {dtype}, {C}: {dtype}[{K}]):
    for {k} in range({K}):
        for {i} in range(1, {M} - 1):
            for {j} in range(1, {N} - 1):
                {B}[{i}, {j}] = {s} * ({A}[{i} - 1, {j}] + {A}[{i} + 1, {j}] + {A}[{i}, {j} - 1])
        for {i} in range(1, {M} - 1):
            for {j} in range(1, {N} - 1):
                {A}[{i}, {j}] = {B}[{i}, {j}] - {C}[{k}]
""",
}
ROLES = ("M", "N", "K", "A", "B", "C", "D", "s", "acc", "tmp", "i", "j", "k")
SHAPES = {"M": 23, "N": 37, "K": 19}
NEUTRAL = tuple(f"u{number}q" for number in range(len(ROLES)))
FUNCTION = "fnq"


def named(kind: str, dtype: str, names: Sequence[str], function: str) -> Any:
    """The nest of a kind with a name for each role. Raises SpecError if one is refused."""
    call = "exp" if dtype.startswith("f") else "abs"
    text = KINDS[kind].format(dtype=dtype, call=call, function=function, **dict(zip(ROLES, names, strict=True)))
    file = f"<{function} {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "names"}
    exec(compile(text, file, "exec"), namespace)
    return namespace[function]


def arguments(nest: Any, seed: int = 0) -> list[Any]:
    """Arrays and scalars of small whole numbers, so that every order of sums gives the same."""
    rng = np.random.default_rng(seed)
    sizes = dict(zip(nest.sizes, SHAPES.values(), strict=True))
    found: list[Any] = []
    for array in nest.arguments:
        kind = np.dtype(array.dtype.numpy_name)
        shape = tuple(extent.evaluate(sizes) for extent in array.shape)
        found.append(2 if array.kind == "scalar" else rng.integers(0, 3, shape).astype(kind))
    return found


def texts() -> Iterator[str]:
    """Generated texts of every sort: C, OpenCL C, headers, libraries that launch kernels."""
    from poly.embed import write_header
    from poly.embed.opencl import write_opencl

    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            for dtype in ("f32", "i32") if kind == "rows" else ("f32",):
                nest = named(kind, dtype, NEUTRAL, FUNCTION)
                known = dict(zip(nest.sizes, (300, 200, 100), strict=True))
                kernels = [poly.compile(nest, threads=2), poly.compile(nest, threads=2, **known)]
                yield from (kernel.source for kernel in kernels)
                for threads in ("openmp", "pthreads") if kind == "product" else ("pthreads",):
                    path = Path(folder) / f"{kind}_{dtype}_{threads}.h"
                    isas = list(ISAS) if kind == "product" else ["avx2", "portable"]
                    yield write_header(path, kernels, threads=threads, prefix="hhq", isas=isas).read_text()
                device_kernel = poly.compile(nest, target="opencl:pocl")
                yield device_kernel.source
                written = write_opencl(Path(folder) / f"{kind}_{dtype}", device_kernel)
                yield from (path.read_text() for path in written.iterdir())


@cache
def words() -> tuple[str, ...]:
    """The identifiers in all of these texts except for the given names, sorted; collected once per run."""
    kept = once("words", "hostile", lambda path: path.write_text("\n".join(_words())))
    return tuple(kept.read_text().split("\n"))


def _words() -> list[str]:
    generated = list(texts())
    found = {word for text in generated for word in WORD.findall(NO_CODE.sub(" ", text))}
    directives = {
        word for text in generated for line in re.findall("^ *#.*", text, re.M) for word in WORD.findall(line)
    }
    return sorted((found | directives) - {*NEUTRAL, FUNCTION})


def plausible(word: str, names: Sequence[str]) -> str:
    """A word with the names of these roles in place of the meaningless ones."""
    for neutral, name in zip((*NEUTRAL, FUNCTION), (*names, "nest"), strict=False):
        word = word.replace(neutral, name)
    return word
