"""A header's public functions around stub kernels that only report how they were called.

They form a program that reads one call per line and answers in one line, so that they can be tested for any processor,
under any sanitizer, with addresses at which there is no memory.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headers import Toolchain, build

from codegen.ir.signature import Signature
from codegen.package import Header, Routine
from codegen.package.api import call_arguments, names, size_arguments
from codegen.package.header.checks import LIMITS
from codegen.package.header.dispatch import most_parameters, need_parameters, run_parameters, select_parameters
from codegen.package.header.entry import functions, prototypes
from codegen.package.header.macros import definitions
from codegen.package.header.status import STATUSES
from codegen.package.prefix import prefixed
from codegen.parameters import Parameter, prototype
from microkernels.isa import PORTABLE
from poly.ir.nest import Nest
from poly.ir.strided import with_strides
from poly.lowering.lower import lower

CODES = {name: number for number, name in enumerate(STATUSES)}
OWN_MEMORY = 0x5008
"""The address that PFX_MALLOC of these programs returns."""

STATUS = f"typedef enum pfx_status {{ {', '.join(f'PFX_{n} = {c}' for n, c in CODES.items())} }} pfx_status;"

TOP = f"""#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

{LIMITS}
{STATUS}
typedef enum pfx_isa {{ PFX_ISA_AUTO, PFX_ISA_PORTABLE }} pfx_isa;
static int64_t stub_need, stub_more, stub_fails, stub_ran, stub_taken, stub_given, stub_count;
static void *stub_malloc(size_t bytes)
{{
  stub_taken += (int64_t)bytes;
  return stub_fails ? NULL : (void *)(uintptr_t){OWN_MEMORY};
}}
static void stub_free(void *memory) {{ stub_given += memory == (void *)(uintptr_t){OWN_MEMORY}; }}
#define PFX_MALLOC stub_malloc
#define PFX_FREE stub_free
static uint64_t stub_seen[64];
static void stub_number(int64_t value) {{ stub_seen[stub_count++] = (uint64_t)value; }}
static void stub_address(const void *value);
static inline pfx_isa pfx_chosen_isa(void) {{ return PFX_ISA_PORTABLE; }}

{definitions("")}"""

ADDRESS = """/* What stands for nothing is told as null. */
static void stub_address(const void *value)
{
  stub_seen[stub_count++] = value == (const void *)pfx_nothing ? 0 : (uintptr_t)value;
}"""

MAIN = """static int64_t stub_next(char **text) { return (int64_t)strtoll(*text, text, 10); }
static void *stub_pointer(char **text) { return (void *)(uintptr_t)strtoull(*text, text, 10); }

int main(void)
{
  static char line[4096];
  while (fgets(line, (int)sizeof line, stdin)) {
    char *text = line;
    const int64_t routine = stub_next(&text), function = stub_next(&text);
    int64_t result = 0;
    stub_need = stub_next(&text);
    stub_more = stub_next(&text);
    stub_fails = stub_next(&text);
    stub_ran = stub_taken = stub_given = stub_count = 0;
    switch (routine) {
%s
    }
    printf("%%" PRId64 " %%" PRId64 " %%" PRId64 " %%" PRId64, result, stub_ran, stub_taken, stub_given);
    for (int i = 0; i < stub_count; i++) printf(" %%" PRIu64, stub_seen[i]);
    printf("\\n");
    fflush(stdout);
  }
  return 0;
}"""


@dataclass(frozen=True)
class Call:
    """One call: of `NAME` (0), `NAME_with_workspace` (1) or `NAME_workspace_size` (2), by a routine's number.

    `values` are the arguments by their names in C, arrays as addresses. `need` is the workspace that the chosen kernel
    reports, and `more` how much more another one needs; with `fails`, there is no memory.
    """

    routine: int
    function: int
    values: Mapping[str, int]
    need: int = 0
    fails: bool = False
    workspace: int = 0
    workspace_bytes: int = 0
    more: int = 0

    def but(self, **values: int) -> Call:
        """The call with other arguments."""
        return replace(self, values={**self.values, **values})


@dataclass(frozen=True)
class Answer:
    """A call's result, the kernel's arguments as unsigned numbers, if it ran, and the memory allocated."""

    result: int
    seen: tuple[int, ...] | None = None
    taken: int = 0
    given: int = 0


@dataclass
class Program:
    """A running program."""

    header: Header = field(repr=False)
    process: subprocess.Popen[str] = field(repr=False)
    bits: int
    log: Path
    arguments: list[list[str]] = field(init=False)

    def __post_init__(self) -> None:
        found = [call_arguments(routine, self.header) for routine in self.header.routines]
        self.arguments = [[p.name for p in parameters] for parameters in found]

    def answer(self, call: Call) -> Answer:
        """Make the call."""
        names = self.arguments[call.routine]
        values = [call.values[name] for name in names]
        told = [
            call.routine,
            call.function,
            call.need,
            call.more,
            int(call.fails),
            *values,
            call.workspace,
            call.workspace_bytes,
        ]
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(" ".join(map(str, told)) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line.endswith("\n"):
            raise AssertionError(f"the program died of {call}:\n{self._last_words()}")
        result, ran, taken, given, *seen = map(int, line.split())
        assert ran in (0, 1)
        return Answer(result, tuple(seen) if ran else None, taken, given)

    def close(self) -> None:
        """End the program, and assert that it reported nothing."""
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0, self._last_words()

    def _last_words(self) -> str:
        self.process.wait(timeout=60)
        return self.log.read_text(errors="replace")


def start(header: Header, toolchain: Toolchain, *flags: str) -> Program:
    """Start the program of a header; it is built once in a run of the tests."""
    binary = built(toolchain, program(header), *flags)
    log = binary.with_name(f"{binary.name}-{os.getpid()}-{id(header)}.log")
    with log.open("w") as stream:
        process = subprocess.Popen(
            [*toolchain.runner, str(binary)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream, text=True
        )
    return Program(header, process, 32 if "-m32" in toolchain.command else 64, log)


def built(toolchain: Toolchain, text: str, *flags: str) -> Path:
    """The program of a text; the processes that run the tests share it."""
    told = repr((toolchain, flags, text))
    folder = Path(os.environ["POLY_CACHE_DIR"]) / "programs"
    kept = folder / hashlib.sha256(told.encode()).hexdigest()[:16]
    if not kept.exists():
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as own:
            build(toolchain, text, Path(own), *flags).replace(kept)
    return kept


def routine(nest: Nest, *, dense: bool = False) -> Routine:
    """The routine of a nest, without kernels."""
    opened = nest if dense else with_strides(nest)
    reference = lower(opened, opened.tree, PORTABLE)
    arguments = tuple(b for b in reference.buffers if b.kind != "local")
    signature = Signature(nest.name, reference.sizes, arguments)
    strides = tuple(size for size in reference.sizes if size not in nest.sizes)
    return Routine(nest.name, signature, strides, nest.source, (), reference)


def text(header: Header) -> str:
    """The header's functions, with the prefix `pfx_`, in an order that C accepts."""
    heads = [prototypes(one, header) for one in header.routines]
    stubs = [stub for one in header.routines for stub in (_sized(one), _run(one))]
    return "\n\n".join([*heads, *stubs, functions(header), ADDRESS])


def program(header: Header) -> str:
    """The C text of the program."""
    cases = "\n".join(_case(one, number, header) for number, one in enumerate(header.routines))
    return prefixed("\n\n".join([TOP, text(header), MAIN % cases]), header.prefix) + "\n"


def _sized(routine: Routine) -> str:
    """Stubs of the three functions that a call consults before it runs."""
    select, need, most = select_parameters(routine), need_parameters(routine), most_parameters(routine)
    return "\n".join(
        [
            _returning("int", f"{routine.name}_select", select, "1"),
            _returning("int64_t", f"{routine.name}_need", need, "stub_need"),
            _returning("int64_t", f"{routine.name}_most", most, "stub_need + stub_more"),
        ]
    )


def _returning(result: str, name: str, parameters: Sequence[Parameter], value: str) -> str:
    unused = " ".join(f"(void){p.name};" for p in parameters)
    return f"{prototype(f'static {result}', name, parameters)} {{ {unused} return {value}; }}"


def _run(routine: Routine) -> str:
    parameters = run_parameters(routine)
    lines = ["stub_ran++;"]
    for p in parameters:
        lines.append(f"stub_address({p.name});" if "*" in p.prefix else f"stub_number((int64_t){p.name});")
    head = prototype("static void", f"{routine.name}_run", parameters)
    return "\n".join([head, "{", *(f"  {line}" for line in lines), "}"])


def _case(routine: Routine, number: int, header: Header) -> str:
    """The lines that read a routine's arguments and call one of its functions."""
    told = call_arguments(routine, header)
    read = [f"const {p.prefix.removeprefix('const ')}{p.name} = {_read(p)};" for p in told if "*" not in p.prefix]
    reads = {p.name: line for p, line in zip((p for p in told if "*" not in p.prefix), read, strict=True)}
    reads |= {p.name: f"{p.prefix}{p.name} = ({p.prefix.strip()})stub_pointer(&text);" for p in told if "*" in p.prefix}
    plain, sizes = names(told), names(size_arguments(routine, header))
    more = f"{plain}, " if plain else ""
    lines = [
        *(reads[p.name] for p in told),
        "void *const stub_workspace = stub_pointer(&text);",
        "const int64_t stub_bytes = stub_next(&text);",
        f"if (function == 0) result = (int64_t){routine.name}({plain});",
        f"if (function == 1) result = (int64_t){routine.name}_with_workspace({more}stub_workspace, stub_bytes);",
        f"if (function == 2) result = {routine.name}_workspace_size({sizes});",
        "break;",
    ]
    return "\n".join([f"    case {number}: {{", *(f"      {line}" for line in lines), "    }"])


def _read(parameter: Parameter) -> str:
    kind = parameter.prefix.strip()
    return "stub_next(&text)" if kind == "int64_t" else f"({kind})stub_next(&text)"
