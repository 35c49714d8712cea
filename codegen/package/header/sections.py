"""The kernels of one instruction set: a section of the file that is compiled for it, whatever the compiler's flags.

#if defined(__x86_64__)
#pragma GCC push_options          // clang: #pragma clang attribute push(…)
#pragma GCC target("avx2,fma")
…vectors, microkernels, kernels…
#pragma GCC pop_options
#endif
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from codegen.c import functions, used_helpers
from codegen.directives import UNFUSED, directives
from codegen.ir.program import Threading
from codegen.names import function_name
from codegen.package.comments import comment
from codegen.package.header.macros import replaced
from codegen.package.items import items, renamed, used
from codegen.package.values import Header, Variant
from codegen.toolchain.build import NOT_BY_GCC
from microkernels.isa import ISA, ISAS
from microkernels.prune import Item

CONDITIONS = {
    "x86_64": "defined(__x86_64__) && !defined(__ILP32__)",
    "aarch64": "defined(__aarch64__) && !defined(__AARCH64EB__)",
}
"""The preprocessor's test for a CPU family."""

NEWER = "(defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)"
"""That for compilers that know all features beside the instruction sets (`microkernels.dot`)."""

GCC_OPTIONS = '"O3", "no-math-errno", "no-trapping-math", "fp-contract=fast"'
"""The options of `codegen.toolchain.build.FLAGS`, whatever the user's flags are."""

GCC_OMISSIONS = ", ".join(f'"{flag.removeprefix("-f")}"' for flag in NOT_BY_GCC)
"""Those of its passes that a section does without."""

FALSE_ALARM = "-Wmaybe-uninitialized"
"""gcc's warning about values that its intrinsics leave undefined on purpose."""


EXPLANATION = re.compile(r"^/\*(?:[^*]|\*(?!/))*\*/\n(?=PFX_|enum|typedef)", re.MULTILINE)
"""A comment above a type, constants, or a function that kernels call."""


@dataclass(frozen=True)
class Section:
    """The text for one instruction set, and the functions in it, one for each variant."""

    isa: ISA
    text: str
    functions: Mapping[Variant, str]


def sections(header: Header) -> tuple[Section, ...]:
    """A section for each instruction set. A comment appears only in the first section that has it."""
    seen: set[str] = set()
    found = []
    for made in (section(header, isa) for isa in header.isas):
        text = made.text
        for explanation in EXPLANATION.findall(text):
            plain = explanation.replace(f"_{level(made.isa)}", "").replace(f"_{made.isa.name}", "")
            text = text.replace(explanation, "", 1) if plain in seen else text
            seen.add(plain)
        found.append(replace(made, text=text))
    return tuple(found)


def section(header: Header, isa: ISA) -> Section:
    """The section of `isa`: each item once, under the header's prefix."""
    kept: dict[str, Item] = {}
    names: dict[Variant, str] = {}
    rounded: list[Item] = []
    for routine in sorted(header.routines, key=lambda routine: not routine.reference.fused):
        for variant in routine.variants:
            if variant.isa == isa:
                atop = variant is routine.variants[0]  # its loops are in the contract
                made, names[variant] = _variant(variant, kept, header.threads, "" if atop else variant.loops)
                kept |= {name: item for item in made for name in item.names}
                rounded += [] if variant.program.fused else made
    own = {name: own_name(name, isa) for name in kept}
    fused = [item for item in dict.fromkeys(kept.values()) if item not in rounded]
    texts = [_body(items, own) for items in (fused, dict.fromkeys(rounded))]
    first = [opening(isa), *directives("".join(texts)), "", texts[0]]
    text = "\n".join([*first, *([UNFUSED, "", texts[1]] if rounded else []), closing(isa)])
    return Section(isa, text, {variant: own[name] for variant, name in names.items()})


def _body(items: Iterable[Item], own: Mapping[str, str]) -> str:
    return replaced("".join("\n" * item.spaced + renamed(item, own).text for item in items))


def _variant(variant: Variant, kept: Mapping[str, Item], threads: Threading, loops: str) -> tuple[list[Item], str]:
    """The items of a variant that are not in the section yet, and its function's name; `loops` is a comment above it.

    Two variants may need different items of one name, such as tiles for other edges: the later item is numbered.
    """
    code = functions(variant.program, "static ", threads, bounds=True)
    root = function_name(variant.program.name)
    found = used(items("\n".join([used_helpers(code, variant.program.isa), variant.program.preamble, code])), [root])
    names: dict[str, str] = {}
    for item in found:
        for name in sorted(item.names):
            if name in kept and kept[name].text != renamed(item, names).text:
                names[name] = _numbered(name, kept)
    new = [renamed(item, names) for item in found]
    root = names.get(root, root)
    return [_described(item, loops, root) for item in new if not item.names & kept.keys()], root


def _described(item: Item, loops: str, name: str) -> Item:
    """The item; the kernel itself gets its schedule as a comment."""
    if name not in item.names or not loops:
        return item
    return replace(item, text=f"{comment(loops)}\n{item.text}", spaced=True)


def _numbered(name: str, kept: Mapping[str, Item]) -> str:
    count = 2
    while f"{name}_{count}" in kept:
        count += 1
    return f"{name}_{count}"


def level(isa: ISA) -> str:
    """The name of a section: of its instruction set, and of what it needs beside it, as `avx512vnni`."""
    return isa.name + "".join(flag.rpartition("_")[2] for flag in beside(isa))


def beside(isa: ISA) -> tuple[str, ...]:
    """The features that a section needs beside its instruction set, as Linux names them."""
    return isa.cpu_flags[len(ISAS[isa.name].cpu_flags) :]


def own_name(name: str, isa: ISA) -> str:
    """A name with the header's prefix, distinct from those of other sections."""
    return f"pfx_{name}" if re.search(rf"_{level(isa)}(_|$)", name) else f"pfx_{name}_{level(isa)}"


def has(isa: ISA) -> str:
    """The macro that says whether the section is compiled."""
    return f"PFX_HAS_{level(isa).upper()}"


def where(isa: ISA, lines: Sequence[str]) -> list[str]:
    """Lines that are compiled wherever the section is; the portable one always is."""
    return [f"#if {has(isa)}", *lines, "#endif"] if isa.machine else list(lines)


def features(isas: Sequence[ISA]) -> str:
    """The definitions of these macros."""
    lines = []
    for condition in dict.fromkeys(_condition(isa) for isa in isas if isa.machine):
        own = [isa for isa in isas if isa.machine and _condition(isa) == condition]
        there, absent = ([f"#define {has(isa)} {value}" for isa in own] for value in (1, 0))
        lines += [f"#if {condition}", *there, "#else", *absent, "#endif"]
    return "\n".join(lines)


def _condition(isa: ISA) -> str:
    """The preprocessor's test whether the compiler makes code for an instruction set."""
    return CONDITIONS[isa.machine] + (f" && {NEWER}" if beside(isa) else "")


def intrinsics(isas: Sequence[ISA]) -> str:
    """The headers with the intrinsics; they precede all sections, as their target is not that of a section."""
    headers = {"x86_64": "immintrin.h", "aarch64": "arm_neon.h"}
    first = {isa.machine: isa for isa in reversed(isas) if isa.machine and not beside(isa)}
    return "\n".join(f"#if {has(isa)}\n#include <{headers[machine]}>\n#endif" for machine, isa in first.items())


def target(isa: ISA) -> str:
    """The text of the target attribute for gcc; clang's has no preferred vector width."""
    return ",".join(flag.removeprefix("-m") for flag in isa.flags)


def opening(isa: ISA) -> str:
    """The lines before a section's code."""
    wanted = target(isa)
    clang = ",".join(part for part in wanted.split(",") if not part.startswith("prefer"))
    lines = [*([f"#if {has(isa)}"] if isa.machine else []), "#if defined(__clang__)"]
    if clang:
        attribute = f'__attribute__((target("{clang}")))'
        lines.append(f"#pragma clang attribute push({attribute}, apply_to = function)")
    lines += [
        "#pragma clang fp contract(fast)",
        "#else",
        "#pragma GCC push_options",
        "#pragma GCC diagnostic push",
        f'#pragma GCC diagnostic ignored "{FALSE_ALARM}"',
        f"#pragma GCC optimize({GCC_OPTIONS})",
        f"#pragma GCC optimize({GCC_OMISSIONS})",
    ]
    if wanted:
        lines.append(f'#pragma GCC target("{wanted}")')
    return "\n".join([*lines, "#endif"])


def closing(isa: ISA) -> str:
    """The lines after a section's code."""
    clang = ["#pragma clang attribute pop"] if target(isa) else []
    return "\n".join(
        [
            "#if defined(__clang__)",
            *clang,
            "#pragma clang fp contract(on)",
            "#else",
            "#pragma GCC diagnostic pop",
            "#pragma GCC pop_options",
            "#endif",
            *([f"#endif /* {has(isa)} */"] if isa.machine else []),
        ]
    )
