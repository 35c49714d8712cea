"""The new text of a C file: the kernels before its first function with a scop, and in each scop a call of its kernel.

#pragma scop                  #if defined(POLY_GEMM_PRESENT)
    for (…)                       if (!(conditions && poly_gemm_kernel_call(…) == POLY_GEMM_OK))
        …               ->    #endif
#pragma endscop                   {
                              for (…)
                                  …
                                  }

The original loops run where a condition does not hold or the call does nothing: if an array overlaps another one, a
size or address does not fit, or memory is lacking. The other conditions are known to the compiler: that macros, types
and constants are those that poly saw.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codegen.ir.integer import in_c
from codegen.package import Header, Routine
from codegen.package.header.inside import called, inside_text
from codegen.package.prefix import prefixed
from poly.frontends.c.preprocessed import POLY, compiler_says
from poly.frontends.c.reader import Outside
from poly.rewriting.kernels import Kernels
from poly.rewriting.scops import CFile, Scop

WORD = re.compile(r"[A-Za-z_]\w*")
DEFINED = re.compile(r"#define (\w+)(\(([^)]*)\))?")
STRING = re.compile(r'POLY_MARK_(\d+) ("(?:[^"\\]|\\.)*")')
TYPES = {
    "f64": ("double",), "f32": ("float",), "i64": ("long", "long long"), "i32": ("int",), "i16": ("short",),
    "i8": ("char", "signed char"), "u8": ("unsigned char",), "u16": ("unsigned short",),
    "c128": ("double _Complex",), "c64": ("float _Complex",),
}  # fmt: skip
"""The types of C that the data of a kernel may have."""


@dataclass(frozen=True)
class Settings:
    """How the compiler reads the file: folders of headers, and macros."""

    folders: tuple[Path, ...]
    define: Mapping[str, object]

    def says(self, mode: Sequence[str], text: str, file: str, reading: bool = True) -> str:
        """What the compiler prints for a text, with `reading` as poly reads it."""
        known = {POLY: 1} if reading else {}
        return compiler_says(mode, text, file, self.folders, {**known, **self.define})


@dataclass(frozen=True)
class Edit:
    """The new text in place of a scop's pragmas: `call` before its loops, `end` after them."""

    call: str
    end: str = "}\n"


def edits(file: CFile, kernels: Kernels, settings: Settings) -> list[Edit | None]:
    """What replaces the pragmas of each scop; None for one that stays as it is."""
    macros = _macros(settings.says(("-E", "-dM"), file.text, file.name))
    tokens = [_used(file, scop) for scop in kernels.scops]
    asked = [", ".join(macros[name] for name in sorted(found & macros.keys())) for found in tokens]
    strings = _expanded(file, kernels, asked, settings)
    return [
        None if routine is None else Edit(_opening(file, scop, routine, kernels.header, text, strings.get(at, "")))
        for at, (scop, routine, text) in enumerate(zip(kernels.scops, kernels.routines, asked, strict=True))
    ]


def rewritten(file: CFile, kernels: Kernels, found: Sequence[Edit | None], prelude: str) -> str:
    """The whole text with some edits."""
    changed = [(scop, edit) for scop, edit in zip(kernels.scops, found, strict=True) if edit is not None]
    if not changed:
        return file.text
    lines = list(file.lines)
    end = "\r\n" if lines[0].endswith("\r\n") else "\n"
    for scop, edit in changed:
        lines[scop.first - 1], lines[scop.last - 1] = (text.replace("\n", end) for text in (edit.call, edit.end))
    lines.insert(top(file, min(scop.begins for scop, _ in changed)), prelude.replace("\n", end))
    return "".join(lines)


def prelude(file: CFile, kernels: Kernels, settings: Settings) -> str:
    """The kernels' text, for the place before the first function that calls one."""
    names = ", ".join(routine.name for routine in kernels.header.routines)
    about = (
        f"Kernels by poly {kernels.header.version} for the loops between `#pragma scop` and `#pragma endscop` of this "
        f"file: {names}.\nDo not edit: run poly optimize on the original file again. -DPOLY_PLAIN compiles the loops "
        "alone."
    )
    plain = inside_text(kernels.header, about, ())
    own = _macros(settings.says(("-E", "-dM"), plain, file.name))
    return inside_text(kernels.header, about, _macros(settings.says(("-E", "-dM"), file.text, file.name)).keys() - own)


def top(file: CFile, begins: int) -> int:
    """The line, counted from 0, before which a function begins that is named in line `begins`: behind all that ends."""
    at = begins - 1
    while at > 0 and not _ends(file.lines[at - 1].strip()):
        at -= 1
    return at


def _ends(line: str) -> bool:
    return not line or line.startswith(("#", "//")) or line.endswith((";", "}", "*/"))


def _macros(text: str) -> dict[str, str]:
    """The macros in a compiler's list, each with a use of it: `SQUARE(x)` for a function."""
    found = {}
    for name, call, parameters in DEFINED.findall(text):
        if not name.startswith("__"):
            found[name] = f"{name}({parameters.replace('...', 'rest')})" if call else name
    return found


def _used(file: CFile, scop: Scop) -> set[str]:
    """The words in a scop, and in the functions that are inlined in it."""
    if scop.outline is None:
        return set()
    lines = list(file.lines[scop.first : scop.last - 1])
    starts = sorted(node.coord.line for node in file.unit.tree.ext if node.coord and node.coord.file == file.name)
    for node in file.unit.tree.ext:
        name = getattr(getattr(node, "decl", None), "name", "")
        if name in scop.outline.functions and node.coord.file == file.name:
            end = next((line for line in starts if line > node.coord.line), len(file.lines))
            lines += file.lines[node.coord.line - 1 : end]
    return set(WORD.findall("".join(lines)))


def _expanded(file: CFile, kernels: Kernels, asked: Sequence[str], settings: Settings) -> dict[int, str]:
    """What the preprocessor makes, in each scop, of the macros that it uses, as C strings."""
    lines = list(file.lines)
    for at, (scop, text) in enumerate(zip(kernels.scops, asked, strict=True)):
        if text and scop.outline is not None:
            lines[scop.first - 1] = f"POLY_MARK_{at} POLY_EXPANDED({text})\n"
    head = "#define POLY_TEXT(...) #__VA_ARGS__\n#define POLY_EXPANDED(...) POLY_TEXT(__VA_ARGS__)\n"
    said = settings.says(("-E", "-P"), head + "".join(lines), file.name)
    return {int(number): text for number, text in STRING.findall(said)}


def _opening(file: CFile, scop: Scop, routine: Routine, header: Header, macros: str, string: str) -> str:
    own = header.prefix.upper()
    tests = [f"__builtin_strcmp({own}_EXPANDED({macros}), {string}) == 0"] if macros else []
    assert scop.outline is not None, "a scop with a routine has an outline"
    outside = scop.outline.outside
    tests += [f"{name} == {_number(value)}" for name, value in scop.outline.constants.items()]
    tests += [test for name, found in outside.items() for test in _types(scop, name, found)]
    tests += [prefixed(test, header.prefix) for test in scop.outline.tests]
    values = {name: _value(name, found) for name, found in outside.items()}
    call = called(routine, header, values)
    call += "".join(f" && (({name} = {value}), 1)" for name, value in scop.outline.after.items())
    wrapped = textwrap.wrap(call, 108, subsequent_indent=" " * 4, break_long_words=False, break_on_hyphens=False)
    lines = [*(f"{test} &&" for test in tests), *wrapped]
    condition = file.unit.in_text(scop.outline.in_text("\n      ".join(lines)))
    return f"#if defined({own}_PRESENT)\nif (!({condition}))\n#endif\n{{ /* the loops as written */\n"


def _number(value: int | float) -> str:
    return repr(value) if isinstance(value, float) or value >= 0 else f"({value})"


def _types(scop: Scop, name: str, found: Outside) -> Iterator[str]:
    """Tests that a variable has the type, and an array the extents, that the kernel expects."""
    rank = 0 if found.by_address else len(found.type.extents)
    element = name + "[0]" * rank
    if name not in scop.nest.sizes:
        kinds = [f"__builtin_types_compatible_p(__typeof__({element}), {kind})" for kind in TYPES[found.type.dtype]]
        yield kinds[0] if len(kinds) == 1 else f"({' || '.join(kinds)})"
    shape = scop.nest.array(name).shape if rank > 1 else ()
    for at in range(1, rank):
        row = name + "[0]" * at
        yield f"sizeof({row}) == sizeof({row}[0])*(size_t)({in_c(shape[at])})"


def _value(name: str, found: Outside) -> str:
    """The C text that a call gets for a variable: of a complex number, where it has its parts."""
    rank = len(found.type.extents)
    if found.by_address or (found.type.is_complex and not rank):
        return f"&{name}"
    return f"&{name}{'[0]' * rank}" if rank > 1 else name
