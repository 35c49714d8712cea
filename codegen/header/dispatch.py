"""Which kernel serves a call: by the CPU, asked once, and by the sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codegen.header.api import own_name
from codegen.header.sections import has
from codegen.header.values import Routine, Variant
from codegen.integer import product
from codegen.names import c_name
from codegen.parameters import Parameter, data_parameters, prototype, size_parameters
from codegen.workspace import Layout
from microkernels.isa import ISA, ISAS

NUMBERS = {name: number for number, name in enumerate(reversed(ISAS), start=1)}
"""The values of `pfx_isa`: better ones are greater."""


def constant(isa: ISA) -> str:
    return f"PFX_ISA_{isa.name.upper()}"


def enumeration() -> str:
    """The type `pfx_isa`."""
    values = ", ".join(f"PFX_ISA_{name.upper()} = {number}" for name, number in NUMBERS.items())
    return f"typedef enum pfx_isa {{ PFX_ISA_AUTO = 0, {values} }} pfx_isa;"


def choice(isas: Sequence[ISA]) -> str:
    """C text of the choice: what this CPU can run, what is in use, and the two public functions about it."""
    tests = [_test(isa) for isa in isas]
    cases = [
        line
        for isa in isas
        for line in (f"#if {has(isa)}", f"    case {constant(isa)}: return {_supported(isa)};", "#endif")
    ]
    return "\n".join(
        [
            "/* 0 until the first call; afterwards a pfx_isa. Read and written by atomic operations alone. */",
            "static int32_t pfx_isa_now;",
            "",
            "static int pfx_runs(pfx_isa isa)",
            "{",
            "  switch (isa) {",
            *cases,
            "    default: return 0;",
            "  }",
            "}",
            "",
            "/* Two threads may come here at once: both find the same. What a caller forces meanwhile stays. */",
            "static pfx_isa pfx_detect(void)",
            "{",
            "  int32_t now = 0, best = 0;",
            *(["#if defined(__x86_64__) || defined(__i386__)", "  __builtin_cpu_init();", "#endif"]),
            *tests,
            "  if (__atomic_compare_exchange_n(&pfx_isa_now, &now, best, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))",
            "    return (pfx_isa)best;",
            "  return (pfx_isa)now;",
            "}",
            "",
            "static inline pfx_isa pfx_chosen_isa(void)",
            "{",
            "  const int32_t now = __atomic_load_n(&pfx_isa_now, __ATOMIC_RELAXED);",
            "  return now ? (pfx_isa)now : pfx_detect();",
            "}",
            "",
            "pfx_isa pfx_isa_in_use(void) { return pfx_chosen_isa(); }",
            "",
            "pfx_status pfx_force_isa(pfx_isa isa)",
            "{",
            "  if (isa != PFX_ISA_AUTO && !pfx_runs(isa)) return PFX_UNSUPPORTED_ISA;",
            "  __atomic_store_n(&pfx_isa_now, (int32_t)isa, __ATOMIC_RELAXED);",
            "  return PFX_OK;",
            "}",
        ]
    )


def _test(isa: ISA) -> str:
    return f"  if (!best && pfx_runs({constant(isa)})) best = (int32_t){constant(isa)};"


def _supported(isa: ISA) -> str:
    """The question to the CPU, once the section is compiled at all."""
    if isa.machine != "x86_64":
        return "1"
    return "\n      && ".join(f'__builtin_cpu_supports("{flag}")' for flag in isa.cpu_flags)


def run_parameters(routine: Routine) -> tuple[Parameter, ...]:
    """What `ROUTINE_run` takes."""
    data = data_parameters(routine.reference)
    plain = tuple(Parameter(p.prefix.replace("restrict ", ""), p.name) for p in data)
    return (
        Parameter("pfx_isa ", own_name(routine, "isa")),
        *plain,
        Parameter("int64_t ", "threads"),
        Parameter("void *", "workspace"),
    )


def run(routine: Routine, isas: Sequence[ISA], functions: Mapping[Variant, str]) -> str:
    """`ROUTINE_run(isa, sizes, strides, arrays, threads, workspace)`: arguments are right, memory is there."""
    lines = [f"  switch ({own_name(routine, 'isa')}) {{"]
    for isa in isas:
        lines += [f"#if {has(isa)}", f"  case {constant(isa)}:"]
        for variant in (v for v in routine.variants if v.isa == isa):
            call = f"(void){functions[variant]}({_arguments(variant)});"
            test = _serves(routine, variant)
            lines += (
                [f"    if ({test}) {{", f"      {call}", "      return;", "    }"]
                if test
                else [f"    {call}", "    return;"]
            )
        lines.append("#endif")
    lines += ["  default:", "    return;", "  }"]
    head = prototype("static void", f"pfx_{routine.name}_run", run_parameters(routine))
    return "\n".join([head, "{", *_unused(routine), *lines, "}"])


def _unused(routine: Routine) -> list[str]:
    """Parameters that no variant may need."""
    return [
        f"  {' '.join(f'(void){name};' for name in (*map(c_name, routine.signature.sizes), 'threads', 'workspace'))}"
    ]


def _arguments(variant: Variant) -> str:
    return ", ".join([*(p.name for p in data_parameters(variant.program)), "threads", "workspace"])


def _serves(routine: Routine, variant: Variant) -> str:
    """The condition on sizes and strides; empty where the variant serves all."""
    tests = [f"{c_name(size)} == {value}" for size, value in variant.sizes]
    known = dict(variant.sizes)
    for buffer in routine.signature.arrays if variant.dense else ():
        for at, stride in enumerate(buffer.strides or ()):
            rest = [extent.substitute(known) for extent in buffer.shape[at + 1 :]]
            tests += [f"{c_name(stride)} == {product(rest)}"] if stride in routine.strides else []
    return " && ".join(tests)


def need(routine: Routine, isas: Sequence[ISA]) -> str:
    """`ROUTINE_need(sizes, threads)`: the most bytes that any kernel takes, whichever instruction set is forced."""
    most, count = own_name(routine, "most"), own_name(routine, "bytes")
    lines = [f"  int64_t {most} = 0, {count} = 0;"]
    for isa in isas:
        own: list[str] = []
        for variant in (v for v in routine.variants if v.isa == isa):
            layout = Layout.of(variant.program)
            if not layout.shared and not layout.private:
                continue
            parts = [layout.shared_bytes] * bool(layout.shared) + [f"threads*({layout.private_bytes})"] * bool(
                layout.private
            )
            tests = " && ".join(f"{c_name(size)} == {value}" for size, value in variant.sizes)
            own += [
                f"  {count} = {' + '.join(parts)};",
                f"  if ({' && '.join(filter(None, (tests, f'{count} > {most}')))}) {most} = {count};",
            ]
        lines += [f"#if {has(isa)}", *own, "#endif"] if own else []
    parameters = (*size_parameters(routine.sizes), Parameter("int64_t ", "threads"))
    unused = " ".join(f"(void){p.name};" for p in parameters)
    head = prototype("static int64_t", f"pfx_{routine.name}_need", parameters)
    return "\n".join([head, "{", *lines, f"  (void){count}; {unused}", f"  return {most};", "}"])
