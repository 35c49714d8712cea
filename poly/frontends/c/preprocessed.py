"""C text after the preprocessor, without what system headers declare, and pycparser's syntax tree of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pycparser import c_ast, c_parser

from codegen.system import processes
from codegen.system.files import write_file
from codegen.toolchain.compiler import find_compiler
from microkernels.errors import plain
from poly.errors import SpecError
from poly.frontends.c.renaming import with_free_names
from poly.frontends.c.tree import with_fields

UNKNOWN = "struct type_unknown_to_poly"
"""What a type is that no loop can use."""
SPELLINGS = {
    "__attribute__(x)": "", "__extension__": "", "__restrict": "restrict", "__restrict__": "restrict",
    "__inline": "inline", "__inline__": "inline", "__const": "const", "__volatile__": "volatile",
    "__declspec(x)": "", "__builtin_va_list": "int", "__alignof__": "sizeof", "__thread": "",
    "__builtin_offsetof(x, y)": "0", "__typeof__(x)": UNKNOWN, "typeof(x)": UNKNOWN,
}  # fmt: skip
"""Extensions of compilers, and what pycparser knows in their place."""
TYPES = {
    "_Bool": "bool",
    "signed char": "int8_t",
    "unsigned char": "uint8_t",
    "short": "int16_t",
    "unsigned short": "uint16_t",
    "int": "int32_t wchar_t FILE va_list clock_t time_t off_t pid_t",
    "unsigned": "uint32_t",
    "long": "int64_t ssize_t ptrdiff_t intptr_t intmax_t",
    "unsigned long": "uint64_t size_t uintptr_t uintmax_t",
}
"""Types of system headers, whose own declarations are left out; a text may name these without the headers."""
KNOWN = frozenset(" ".join(TYPES.values()).split())
QUOTED = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)+\''
ASSEMBLER = re.compile(rf"{QUOTED}|\b(?:__asm__|__asm|asm)\b\s*(?:(?:volatile|goto|inline)\b\s*)*\(")
BRACKETS = re.compile(rf"{QUOTED}|[()]")
PRELUDE = "".join(f"typedef {known} {name};" for known, names in TYPES.items() for name in names.split())
WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
MARKER = re.compile(r'#\s*(?:line\s+)?(\d+)\s+"((?:[^"\\]|\\.)*)"([\s\d]*)$')
BUILT_IN = ("<built-in>", "<command-line>", "<command line>")
"""What preprocessors call the files of their own macros."""
POLY = "__POLY__"
"""The macro that is defined while poly reads a text."""
IMAGINARY = "1.0iF", "_Complex_I"
"""How <complex.h> writes the imaginary unit, and a name for it."""
SYSTEM = "3"
"""The flag of a line marker for text from system headers."""

BASIC = frozenset(
    {"char", "short", "int", "long", "float", "double", "signed", "unsigned", "_Bool", "const", "volatile"}
)
BLOCK = re.compile(r"\{[^{}]*\}")
TYPEDEF = re.compile(r"\btypedef\b([^;]*);")
DECLARED = re.compile(r"(?:\(\s*\*\s*(\w+)\s*\)\s*\(.*\)|\b(\w+)\s*(?:\[[^\]]*\]\s*)*)$", re.DOTALL)
COMPILERS_OWN = ("__float128", "_Float16", "_Float32", "_Float64", "_Float128")


@dataclass(frozen=True)
class Unit:
    """A translation unit: its syntax tree, and the preprocessed lines of each file by their numbers.

    `renamed` has the variables that are called otherwise in the tree, each with its name in the text.
    """

    tree: c_ast.FileAST
    lines: Mapping[str, Mapping[int, str]]
    renamed: Mapping[str, str]

    def texts(self) -> dict[str, str]:
        """The preprocessed text of each file, with each line at its place."""
        return {
            file: "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1))
            for file, lines in self.lines.items()
        }

    def words(self) -> frozenset[str]:
        """All names and keywords in the text and in the tree."""
        texts = (line for lines in self.lines.values() for line in lines.values())
        return frozenset((*self.renamed, *(word for text in texts for word in WORD.findall(text))))

    def in_text(self, made: str) -> str:
        """C text that was made of the tree's names, with the names of the text."""
        return WORD.sub(lambda word: self.renamed.get(word[0], word[0]), made) if self.renamed else made


def preprocessed(text: str, file: str, folders: Sequence[Path], define: Mapping[str, object]) -> Unit:
    """The syntax tree of a C text; `folders` are searched for its includes, `define` are values of macros.

    Raises:
        SpecError: the preprocessor or pycparser refuses the text.
        ToolchainError: there is no compiler.
    """
    known = {**SPELLINGS, POLY: 1, **define}
    lines, system = _own_lines(compiler_says(("-E",), text, file, folders, known))
    kept: dict[str, dict[int, str]] = {}
    for name, number, line in lines:
        before = kept.setdefault(name, {}).get(number, "")
        kept[name][number] = f"{before} {line}" if before.strip() and line.strip() else before + line
    whole = "\n".join(f'# {number} "{name}"\n{line}' for name, number, line in lines)
    words = frozenset(WORD.findall(whole))
    types = PRELUDE + _declared_types(system, words, KNOWN)
    try:
        tree = c_parser.CParser().parse(f"{types}\n{_without_assembler(whole)}\n", file)
    except c_parser.ParseError as error:
        syntax = ("-fsyntax-only",)
        compiler_says(syntax, text, file, folders, {POLY: 1, **define})  # names the place, if it refuses the text, too
        raise SpecError(
            f"{error}\nThis is no C99 that poly can read. Leave it out with `#ifndef __POLY__`, which poly defines."
        ) from None
    with_fields(tree)
    return Unit(tree, kept, with_free_names(tree, words))


def compiler_says(
    mode: Sequence[str], text: str, file: str, folders: Sequence[Path], define: Mapping[str, object]
) -> str:
    """What the compiler prints for a text in a mode.

    Raises:
        SpecError: it finds an error in the text.
        ToolchainError: there is no compiler.
    """
    flags = [f"-D{name}={value}" for name, value in define.items()]
    places = [f"-I{folder}" for folder in folders]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "text.c"
        write_file(path, f"# 1 {_quoted(file)}\n{text}\n".encode(errors="replace"), sync=False)
        command = [*find_compiler(), *mode, "-std=gnu11", "-w", *flags, *places, str(path)]
        done = processes.run(command)
    if done.returncode:
        words = next(iter(re.findall(r".*error:.*", done.stderr)), done.stderr.strip()[:300])
        remedy = "Name folders of headers in `include` (-I) and macros in `define` (-D), or correct the text."
        raise SpecError(f"{plain(words)}\nThe compiler refuses this. {remedy}")
    return done.stdout


def _without_assembler(text: str) -> str:
    """A text in which each piece of assembler is a call of `__asm__`, without arguments."""
    parts, at = [], 0
    while found := ASSEMBLER.search(text, at):
        is_quoted = found[0][0] in "\"'"
        parts.append(text[at : found.end()] if is_quoted else text[at : found.start()] + "__asm__()")
        at, depth = found.end(), 0 if is_quoted else 1
        while depth and (bracket := BRACKETS.search(text, at)):
            depth += {"(": 1, ")": -1}.get(bracket[0], 0)
            at = bracket.end()
    return "".join([*parts, text[at:]])


def _quoted(file: str) -> str:
    escaped = file.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _own_lines(text: str) -> tuple[list[tuple[str, int, str]], str]:
    """The lines that are not from system headers, each with its file and number; and the text of these headers.

    A file is a system header if its first marker says so: later ones tell where the macros come from that it uses.
    """
    owned: dict[str, bool] = {}
    found: list[tuple[str, int, str]] = []
    system: list[str] = []
    file, number, own = "", 1, False
    for line in text.splitlines():
        marker = MARKER.match(line)
        if marker:
            file, number = re.sub(r"\\(.)", r"\1", marker[2]), int(marker[1])
            own = owned.setdefault(file, SYSTEM not in marker[3].split() and file not in BUILT_IN)
            continue
        if own and line.strip():
            found.append((file, number, line.replace(*IMAGINARY)))
        elif not own:
            system.append(line)
        number += 1
    return found, "\n".join(system)


def _declared_types(system: str, wanted: Collection[str], known: Collection[str]) -> str:
    """Declarations of the `wanted` types that preprocessed system headers have and that are not `known`.

    A type that is a number keeps its declaration; any other is a structure about which nothing is known.
    """
    while BLOCK.search(system):
        system = BLOCK.sub(" ", system)
    numbers: dict[str, str] = {}
    found: dict[str, str] = {name: f"typedef {UNKNOWN} {name};" for name in COMPILERS_OWN}
    for body in TYPEDEF.findall(system):
        declared = DECLARED.search(body.strip())
        if declared is None:
            continue
        name, words = declared[1] or declared[2], body.split()
        is_number = words[-1:] == [name] and all(word in BASIC or word in numbers for word in words[:-1])
        if is_number:
            numbers[name] = " ".join(numbers.get(word, word) for word in words[:-1])
        found[name] = f"typedef {numbers[name]} {name};" if is_number else f"typedef {UNKNOWN} {name};"
    return "".join(text for name, text in found.items() if name in wanted and name not in known)
