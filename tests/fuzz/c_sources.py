"""Random loops in C over all types of data, compared with what gcc makes of them without optimisation.

Other than a nest, C computes with small integers as int, with long where an operand is one, and cuts quotients.
"""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import poly
from fuzz import library
from fuzz.pairs import Failure, Refused, Slow, failed, kernel_of
from fuzz.schedules import REFUSALS
from poly.ir.nest import Array

INTEGERS = {
    "signed char": "i1", "unsigned char": "u1", "short": "i2", "unsigned short": "u2", "int": "i4", "long": "i8",
    "long long": "i8",
}  # fmt: skip
TYPES = {**INTEGERS, "float": "f4", "double": "f8"}
"""The types, and NumPy's names for them."""
NUMBERS = ("1", "2", "3", "-1", "5", "100", "127", "128", "255", "-128", "1000", "32768", "70000", "0x7f", "'a'")
LONGS = ("3L", "7L", "1000000L", "2u")
FRACTIONS = ("0.5", "2.0", "1.5f", "0.25f", "-1.0")
SIZES = (1, 2, 3, 7, 8, 16, 17, 33, 40, 67, 131, 200)
HEAD = """#include <stdlib.h>
#include <stddef.h>
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
"""
Scope = tuple[str, ...]
"""The counters of the loops around, each of which is less than `n`."""


@dataclass
class Drawing:
    """Draws one function."""

    rng: Random
    arrays: dict[str, tuple[str, int]] = field(init=False)
    """The type and rank of each; extents are `3*n + 3`."""
    locals: dict[str, str] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)
    """The locals that are declared before all loops, without a value: blocks that use one give it their own first."""
    starts: dict[str, int] = field(default_factory=dict)
    """The first value of each counter."""
    places: dict[str, str] = field(default_factory=dict)
    """The arrays that are members of structures, as the function names them."""
    members: dict[str, str] = field(default_factory=dict)
    """The scalars that are members, and their types."""
    index: str = field(init=False)
    """The type of the array that is looked up."""
    images: dict[str, tuple[str, int]] = field(init=False)
    """The type of each array of `n` rows and columns in one dimension, and the number of values of an element."""

    def __post_init__(self) -> None:
        rng = self.rng
        types = (*INTEGERS, *TYPES)
        self.arrays = {name: (rng.choice(types), rng.choice((1, 1, 1, 2))) for name in "abcd"[: rng.choice((2, 3, 4))]}
        self.index = rng.choice(list(INTEGERS)[1:])
        several = rng.choice((0, 0, 1, 2))
        self.images = {name: (rng.choice(types), rng.choice((1, 1, 2, 3, 4))) for name in "pq"[:several]}
        self.size = rng.choice(("int", "int", "int", "long", "long long", "size_t", "unsigned"))
        self.counter = rng.choice(("int", "long long", "size_t")) if self.size == "size_t" else self.size
        self.unsigned = {"size_t", "unsigned"} & {self.size, self.counter}
        if rng.random() < 0.3:
            flat = [name for name, (_, rank) in self.arrays.items() if rank == 1]
            self.places = {name: rng.choice(("st->", "st->in.", "(*st->to).")) + name for name in flat}
            self.members = {f"{rng.choice(('st->', 'st->to->'))}{name}": rng.choice(list(TYPES)) for name in "gw"}
            self.locals = dict(self.members)

    def text(self) -> str:
        body = "".join(self._statement((), 0) for _ in range(self.rng.choice((1, 1, 2))))
        extents = {1: "[3*n + 3]", 2: "[3*n + 3][3*n + 3]"}
        given = [f"{k} {name}{extents[r]}" for name, (k, r) in self.arrays.items() if name not in self.places]
        given += [f"{kind} *restrict {name}" for name, (kind, _) in self.images.items()]
        given = [*["struct all *restrict st"] * bool(self.members), *given, f"{self.index} idx[n]"]
        first = "".join(f"  {kind} {name};\n" for name, kind in self.shared.items())
        return f"{HEAD}{self._structures()}void f({', '.join([f'{self.size} n', *given])}) {{\n{first}{body}}}\n"

    def _structures(self) -> str:
        """The declarations of structures, each of which has room for all members."""
        if not self.members:
            return ""
        pointers = [f"{self.arrays[name][0]} *restrict {name};" for name in self.places]
        text = " ".join([*pointers, *(f"{kind} {place[-1]};" for place, kind in self.members.items())])
        return f"struct part {{ {text} }};\nstruct all {{ {text} struct part in, *to; }};\n"

    def driver(self) -> str:
        """A function that gets the members one by one, as a nest does."""
        names = [*self.arrays, *self.images, "idx"]
        given = [*(f"void *{name}" for name in names), *(f"{kind} *{m[-1]}" for m, kind in self.members.items())]
        before = [f"{place} = {name};" for name, place in self.places.items()]
        before += [f"{place} = *{place[-1]};" for place in self.members]
        after = [f"*{place[-1]} = {place};" for place in self.members]
        made = ["struct all own, *st = &own;", "struct part other;", "own.to = &other;"] * bool(self.members)
        call = ", ".join(["n", *["st"] * bool(self.members), *(name for name in names if name not in self.places)])
        lines = [*made, *before, f"f({call});", *after]
        return f"void driver({', '.join([f'{self.size} n', *given])}) {{\n" + "\n".join(lines) + "\n}\n"

    def argument(self, name: str) -> str:
        """The name of an array or of a scalar member as an argument of the nest."""
        return re.sub(r"\W+", "_", self.places.get(name, name).replace("(*st->to).", "st->to->"))

    def kinds(self) -> dict[str, str]:
        """The types of all arrays of values."""
        return {name: kind for name, (kind, _) in (*self.arrays.items(), *self.images.items())}

    # --- statements ---

    def _block(self, scope: Scope, depth: int, most: int = 2) -> str:
        before, text = dict(self.locals), ""
        if scope and self.rng.random() < 0.3:
            apart = self.rng.random() < 0.4
            name, kind = f"{'v' if apart else 't'}{depth}", self.rng.choice(list(TYPES))
            kind = self.shared.setdefault(name, kind) if apart else kind
            declared = name if apart else f"{kind} {name}"
            text = f"{'  ' * (depth + 1)}{declared} = {self._value(scope, 1, kind[0] in 'fd')};\n"
            self.locals[name] = kind
        text += "".join(self._statement(scope, depth) for _ in range(self.rng.randint(1, most)))
        self.locals = before
        return text

    def _statement(self, scope: Scope, depth: int) -> str:
        rng, indent = self.rng, "  " * (depth + 1)
        draw = rng.random()
        if not scope or (depth < 2 and draw < 0.3):
            name = "ij"[len(scope)]
            return f"{indent}{self._head(name)} {{\n{self._block((*scope, name), depth + 1)}{indent}}}\n"
        if draw < 0.42 and depth < 3:
            text = f"{indent}if ({self._test(scope, 1)}) {{\n{self._block(scope, depth + 1, 1)}{indent}}}"
            other = f" else {{\n{self._block(scope, depth + 1, 1)}{indent}}}" if rng.random() < 0.35 else ""
            return f"{text}{other}\n"
        if draw < 0.52 and self.locals:
            name = rng.choice(list(self.locals))
            return f"{indent}{name} {self._update(self.locals[name], scope)};\n"
        kinds = self.kinds()
        name = rng.choice(list(kinds if len(scope) > 1 else self.arrays))
        return f"{indent}{self._element(name, scope, False)}{self._update(kinds[name], scope)};\n"

    def _head(self, name: str) -> str:
        rng = self.rng
        self.starts[name] = rng.choice((0, 0, 0, 2))
        start = f"{self.counter} {name} = {self.starts[name]}; {name} < n;"
        draw = rng.random()
        if draw < 0.1:
            return f"for ({self.counter} {name} = n; {name}-- > {self.starts[name]};)"
        if draw < 0.15 and not self.starts[name]:
            return f"for ({self.counter} {name} = 0; {name} != n; {name}++)"
        if draw < 0.2 and not self.images:  # their rows would be those of the larger bound
            kind = rng.choice(("short", "unsigned short", "signed char", "unsigned char"))
            return f"for ({kind} {name} = {self.starts[name]}; {name} < 9 && {name} < n; {name}++)"
        if not self.unsigned and draw < 0.3:
            return f"for ({self.counter} {name} = n - 1; {name} >= {self.starts[name]}; {name}--)"
        return f"for ({start} {name}++)" if rng.random() < 0.9 else f"for ({start} {name} += {rng.choice('23')})"

    def _update(self, kind: str, scope: Scope) -> str:
        rng = self.rng
        is_float = kind not in INTEGERS
        op = rng.choice([*("=", "+=", "-=", "*=") * 3, *(() if is_float else (">>=", "&=", "/=", "%=", "++"))])
        if op == "++":
            return rng.choice(("++", "--"))
        numbers = {">>=": ("1", "3"), "&=": ("7", "255"), "/=": ("3", "10"), "%=": ("3", "10")}.get(op)
        if is_float and op == "*=":  # a product in another order may be infinite before it is multiplied by 0
            numbers = FRACTIONS
        return f" {op} {rng.choice(numbers) if numbers else self._value(scope, rng.choice((1, 2, 3)), is_float)}"

    # --- values ---

    def _pixel(self, name: str, scope: Scope, read: bool) -> str:
        """An element of an image: rows and columns stay inside, or are kept there."""
        rng, values = self.rng, self.images[name][1]
        row, column = (self._inside(counter, read) for counter in (scope if rng.random() < 0.8 else scope[::-1]))
        column = f"{column}/2" if read and rng.random() < 0.05 else column
        place = f"{row}*n + {column}"
        if values == 1:
            return f"{name}[{place}]"
        channel = rng.choice(("", *(f" + {value}" for value in range(1, values))))
        return f"{name}[({place})*{values}{channel}]"

    def _inside(self, counter: str, read: bool) -> str:
        """A row or column of an image."""
        rng, draw = self.rng, self.rng.random()
        if not read or draw < 0.5:
            return counter if draw < 0.9 else f"(n - 1 - {counter})"
        by = rng.choice("112")
        least = f"MAX({counter} - {by}, 0)" if not self.unsigned else f"({counter} > {by} ? {counter} - {by} : 0)"
        return rng.choice((f"MIN({counter} + {by}, n - 1)", least))

    def _element(self, name: str, scope: Scope, read: bool) -> str:
        if name in self.images:
            return self._pixel(name, scope, read)
        return self.places.get(name, name) + "".join(
            f"[{self._index(scope, read and name not in self.places)}]" for _ in range(self.arrays[name][1])
        )

    def _index(self, scope: Scope, read: bool) -> str:
        counter, draw = self.rng.choice(scope), self.rng.random()
        if read and draw < 0.08:
            return f"idx[{counter}]"
        forms = [counter] * 7 + [f"{counter} + {self.rng.choice('112')}", f"2 * {counter}", self.rng.choice("01")]
        forms.append(f"3 * {counter} + {self.rng.choice('012')}")
        if self.starts[counter]:
            forms += [f"{counter} - {self.rng.choice('112')}"] * 2
        return self.rng.choice(forms)

    def _leaf(self, scope: Scope, is_float: bool) -> str:
        rng, draw = self.rng, self.rng.random()
        if draw < 0.2:
            return rng.choice(FRACTIONS if is_float and rng.random() < 0.4 else LONGS if draw < 0.04 else NUMBERS)
        if draw < 0.3:
            return rng.choice((*scope, "n"))
        own = [name for name, kind in self.locals.items() if is_float or kind in INTEGERS]
        if own and draw < 0.45:
            return rng.choice(own)
        known = self.kinds() if len(scope) > 1 else {name: kind for name, (kind, _) in self.arrays.items()}
        fits = [name for name, kind in known.items() if is_float or kind in INTEGERS]
        return self._element(rng.choice(fits), scope, True) if fits else rng.choice(NUMBERS)

    def _value(self, scope: Scope, depth: int, is_float: bool) -> str:
        """A value, in which no fraction becomes an integer: C does not say what one is that does not fit."""
        rng, draw = self.rng, self.rng.random()
        if depth <= 0 or draw < 0.15:
            return self._leaf(scope, is_float)

        def inner(is_float: bool = is_float) -> str:
            return self._value(scope, depth - 1, is_float)

        if draw < 0.22:
            return self._counted(scope, 2)
        if draw < 0.6:
            return f"({inner()} {rng.choice('++--**')} {inner()})"
        if draw < 0.66:
            return f"({self._test(scope, depth - 1)} ? {inner()} : {inner()})"
        if draw < 0.7:
            return f"(-{inner()})"
        if is_float:
            return f"({rng.choice(('float', 'double'))})({inner(draw < 0.85)})" if draw < 0.9 else f"({inner()} / 4.0)"
        forms = [
            f"({inner()} {rng.choice('/%')} {rng.choice(('2', '3', '7', '10', '255', '-3', '5L', '2u'))})",
            f"({inner()} {rng.choice(('>>', '<<'))} {rng.choice('1238')})",
            f"({inner()} & {rng.choice(('1', '7', '255', '0xF', '7L'))})",
            f"({rng.choice(list(INTEGERS))})({inner()})",
            f"abs({inner()})",
            f"({self._test(scope, depth - 1)})",
            f"(!{inner()})",
        ]
        return rng.choice(forms)

    def _counted(self, scope: Scope, depth: int) -> str:
        """An integer of counters and `n` alone, which C computes as others, and poly as an index."""
        rng = self.rng
        if depth <= 0:
            return rng.choice((*scope, *scope, "n", "3", "2L"))
        inner, draw = self._counted(scope, depth - 1), rng.random()
        if draw < 0.4:
            return f"({inner} {rng.choice('+-')} {self._counted(scope, 0)})"
        op = rng.choice(("* 2", "* 3L", "/ 2", "% 3", "/ 4L", ">> 1", "& 3", ">> 2", "% 2"))
        return f"({inner} {op})"

    def _test(self, scope: Scope, depth: int) -> str:
        rng, is_float = self.rng, self.rng.random() < 0.3
        left, right = self._value(scope, depth, is_float), self._value(scope, depth - 1, is_float)
        text = f"{left} {rng.choice(('<', '<=', '>', '>=', '==', '!='))} {right}"
        if rng.random() > 0.15:
            return text
        return f"({text}) {rng.choice(('&&', '||'))} ({self._leaf(scope, False)} > {self._leaf(scope, False)})"


def case(rng: Random, target: str, folder: Path) -> Failure | Refused | None:
    """Draw loops and data, and compare the reference and the default kernel with gcc."""
    drawing = Drawing(rng)
    text, size = drawing.text(), rng.choice(SIZES)
    before = _values(drawing, size, rng)
    try:
        nest = poly.from_c(text)
        kernel = kernel_of(nest, None, target, rng.choice((1, 2)), "f")
        library.build([kernel], folder, "-O1")
    except (*REFUSALS, Refused, Slow) as error:
        return Refused(str(error))
    except Exception as error:
        return failed("error", error)
    wanted = _by_gcc(text + drawing.driver(), drawing.size, size, before, folder)
    given = {name: size if name == "n" else int(before[name][0]) for name in kernel.signature.given}
    for how, run in (("reference", nest.reference), (target, kernel)):
        got = {name: array.copy() for name, array in before.items()}
        try:
            run(*(_part(got[array.name], array, {"n": size, **given}) for array in nest.arguments), **given)
        except Exception as error:
            return failed("call", error)
        for name, array in got.items():
            if not _alike(array, wanted[name]):
                return Failure("wrong", f"C, {how}, {name} with n = {size}:\n{text}")
    return None


def _part(values: np.ndarray, array: Array, sizes: Mapping[str, int]) -> Any:
    """What a nest gets of an array: as much as it accesses of what a pointer points to, in rows if it has any."""
    shape = tuple(extent.evaluate(dict(sizes)) for extent in array.shape)
    if values.ndim < len(shape):
        return values[: math.prod(shape)].reshape(shape)
    return values[0] if array.kind == "scalar" else values[tuple(map(slice, shape))]


def _values(drawing: Drawing, size: int, rng: Random) -> dict[str, np.ndarray]:
    random, wide = np.random.default_rng(rng.randrange(2**32)), rng.random() < 0.5
    made = {}
    shapes = {name: (3 * size + 3,) * rank for name, (_, rank) in drawing.arrays.items()}
    shapes |= {name: (values * size * size,) for name, (_, values) in drawing.images.items()}
    for name, kind in drawing.kinds().items():
        dtype, shape = np.dtype(TYPES[kind]), shapes[name]
        if kind not in INTEGERS:
            made[name] = (random.integers(-40, 41, shape) / 4).astype(dtype)
            continue
        ends = np.iinfo(dtype)
        low, high = (ends.min, ends.max) if wide or dtype.itemsize == 1 else (max(ends.min, -50), 50)
        made[name] = random.integers(low, high, shape, dtype, endpoint=True) >> (20 if dtype.itemsize == 8 else 0)
    made["idx"] = random.integers(0, min(3 * size + 3, 127), size).astype(TYPES[drawing.index])
    for place, kind in drawing.members.items():
        made[place] = random.integers(0, 100, 1).astype(TYPES[kind])
    return {drawing.argument(name): array for name, array in made.items()}


def _by_gcc(text: str, kind: str, size: int, before: Mapping[str, np.ndarray], folder: Path) -> dict[str, np.ndarray]:
    source, path = folder / "source.c", folder / f"source{next(library.NUMBERS)}.so"
    source.write_text(text)
    options = ("-O0", "-fwrapv", "-ffp-contract=off", "-w", "-shared", "-fPIC")
    subprocess.run(["gcc", *options, str(source), "-o", str(path)], check=True)
    made = {name: array.copy() for name, array in before.items()}
    first: Any = ctypes.c_int(size) if kind in ("int", "unsigned") else ctypes.c_int64(size)
    ctypes.CDLL(str(path)).driver(first, *(ctypes.c_void_p(array.ctypes.data) for array in made.values()))
    return made


def _alike(got: np.ndarray, wanted: np.ndarray) -> bool:
    if got.dtype.kind in "iu":
        return np.array_equal(got, wanted)
    finite = wanted[np.isfinite(wanted)]
    most = float(np.max(np.abs(finite), initial=0.0)) if finite.size else 0.0
    near = 1e3 * float(np.finfo(got.dtype).eps)
    return math.isfinite(most) and np.allclose(got, wanted, rtol=near, atol=near * most * 1e-3, equal_nan=True)
