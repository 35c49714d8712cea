"""The three functions of a routine that users call.

    NAME(…)                     allocates its workspace by PFX_MALLOC, and frees it
    NAME_with_workspace(…)      takes it from the caller, and allocates nothing
    NAME_workspace_size(…)      returns its size

The first two differ only in the workspace: both call `ROUTINE_call`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codegen.ir.program import Buffer
from codegen.names import c_name, function_name
from codegen.package.api import block, call_arguments, filled, listed, names, own_name, size_arguments
from codegen.package.header.checks import check, check_parameters, helpers, resolved, spans
from codegen.package.values import Header, Routine
from codegen.parameters import Parameter, buffer_parameter, data_parameters, prototype, size_parameters

ALLOCATION = """#if !defined(PFX_MALLOC) && !defined(PFX_FREE)
#include <stdlib.h>
#define PFX_MALLOC malloc
#define PFX_FREE free
#elif !defined(PFX_MALLOC) || !defined(PFX_FREE)
#error "define both PFX_MALLOC and PFX_FREE, or neither"
#endif

/* The bytes of a workspace that is given at any address, where `bytes` are needed at a multiple of 64. */
PFX_INLINE int64_t pfx_with_slack(int64_t bytes) { return bytes > 0 ? bytes + 63 : 0; }

/* Whether a workspace holds the bytes that are needed; none goes beyond the last address. */
PFX_INLINE int pfx_holds(const void *workspace, int64_t bytes, int64_t needed)
{
    return workspace && bytes >= needed && (uint64_t)needed <= UINTPTR_MAX - (uintptr_t)workspace;
}

/* The address of what has no bytes. Kernels may add to it, as C forbids for null, but neither read nor write it. */
static char pfx_nothing[64] __attribute__((aligned(64)));

/* The first multiple of 64 in a workspace. */
PFX_INLINE void *pfx_aligned(void *workspace, int64_t needed)
{
    return needed > 0 ? (char *)workspace + (64u - (uintptr_t)workspace % 64u) % 64u : pfx_nothing;
}

PFX_INLINE void *pfx_allocate(int64_t bytes)
{
    return bytes > PFX_SIZE_LIMIT ? NULL : PFX_MALLOC((size_t)bytes);
}

PFX_INLINE void pfx_release(void *memory) { PFX_FREE(memory); }"""
"""The allocation of memory; once in a file."""

TEAM = """#if defined(_OPENMP) && defined(__unix__)
#include <unistd.h>

/* The threads to run: one in a child of a process that has run several, since OpenMP waits for those there. */
PFX_INLINE int32_t pfx_team(int32_t threads)
{
    static long owner; /* the process that has */
    const long here = (long)getpid();
    long found = 0;
    if (threads < 2 || __atomic_compare_exchange_n(&owner, &found, here, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return threads;
    return found == here ? threads : 1;
}
#else
PFX_INLINE int32_t pfx_team(int32_t threads) { return threads; }
#endif"""
"""For OpenMP's threads; once in a file."""

ALLOCATE = Parameter("int ", "allocate")
WORKSPACE = Parameter("void *", "workspace")
WORKSPACE_BYTES = Parameter("int64_t ", "workspace_bytes")


def prototypes(routine: Routine, header: Header) -> str:
    """The declarations of the three functions."""
    return ";\n".join(_heads(routine, header)) + ";"


def functions(header: Header) -> str:
    """The definitions for all routines, with their checks and helpers; `ROUTINE_run` and the like precede them."""
    texts = [text for routine in header.routines for text in (check(routine, header), bodies(routine, header))]
    team = [TEAM] if header.threads == "openmp" else []
    return "\n\n".join([ALLOCATION, *team, helpers("\n".join(texts)), *texts])


def bodies(routine: Routine, header: Header) -> str:
    """The definitions of the three functions, and of `ROUTINE_call`."""
    plain, with_workspace, size = _heads(routine, header)
    arguments = names(call_arguments(routine, header))
    call, comma = f"{routine.name}_call", ", " * bool(arguments)
    given = names((WORKSPACE, _own(routine, WORKSPACE_BYTES)))
    return "\n\n".join(
        [
            checked_call(routine, header),
            f"{plain}\n{block([f'return {call}({arguments}{comma}1, NULL, 0);'])}",
            f"{with_workspace}\n{block([f'return {call}({arguments}{comma}0, {given});'])}",
            f"{size}\n{_size_body(routine, header)}",
        ]
    )


def _heads(routine: Routine, header: Header) -> tuple[str, str, str]:
    plain = call_arguments(routine, header)
    more = (*plain, WORKSPACE, _own(routine, WORKSPACE_BYTES))
    return (
        prototype("pfx_status", routine.name, listed(plain)),
        prototype("pfx_status", f"{routine.name}_with_workspace", more),
        prototype("int64_t", f"{routine.name}_workspace_size", listed(size_arguments(routine, header))),
    )


def checked_call(routine: Routine, header: Header, linkage: str = "PFX_INLINE", before: tuple[str, ...] = ()) -> str:
    """`ROUTINE_call`: checks the arguments behind the lines `before`, gets memory, and runs the kernel."""
    allocate, given = _own(routine, ALLOCATE), _own(routine, WORKSPACE_BYTES)
    status, needed, most, bytes_, kernel = (
        own_name(routine, name) for name in ("status", "needed", "most", "bytes", "serving")
    )
    arrays, outputs = routine.signature.arrays, [filled(b) for b in routine.signature.outputs]
    parameters = (*call_arguments(routine, header), allocate, WORKSPACE, given)
    outside = [f"int32_t {own_name(routine, 'outside')}[1] = {{0}};"] * (routine.lookups is not None)
    lines = [
        f"int64_t {bytes_}[{len(arrays)}], {needed};",
        *outside,
        f"int {kernel};",
        f"pfx_status {status} = {routine.name}_sizes({names(size_arguments(routine, header))});",
        *before,
        f"if ({status} != PFX_OK) return {status};",
        *resolved(routine),
        f"{status} = {routine.name}_check({names(check_parameters(routine))});",
        f"if ({status} != PFX_OK) return {status};",
        *([f"if ({_none(outputs)}) return PFX_OK;"] if all(outputs) else []),
        *_lookups(routine),
        *["threads = pfx_team(threads);"] * (header.threads == "openmp"),
        f"{kernel} = {routine.name}_select({', '.join(['pfx_chosen_isa()', *map(c_name, routine.signature.sizes)])});",
        f"{needed} = pfx_with_slack({routine.name}_need({', '.join([kernel, *_sizes(routine), _threads(header)])}));",
        f"if (!{allocate.name}) {{",
        f"    const int64_t {most} = {_most(routine, header)};",
        f"    if ({most} > 0 && !pfx_holds(workspace, {given.name}, {most})) return PFX_WORKSPACE_TOO_SMALL;",
        *(f"    if ({_overlap(routine, b, most)}) return PFX_OVERLAP;" for b in arrays),
        f"}} else if ({needed} > 0) {{",
        f"    workspace = pfx_allocate({needed});",
        "    if (!workspace) return PFX_OUT_OF_MEMORY;",
        "}",
        *(line for b in arrays if routine.signature.outputs != (b,) for line in _not_null(b)),
        f"{routine.name}_run({_run_arguments(routine, header)});",
        f"if ({needed} > 0 && {allocate.name}) pfx_release(workspace);",
    ]
    head = prototype(f"{linkage} pfx_status", f"{routine.name}_call", parameters)
    return f"{head}\n{block((*lines, 'return PFX_OK;'))}"


def _lookups(routine: Routine) -> Iterator[str]:
    """C lines that refuse a call which would look up an element outside of an array."""
    if routine.lookups is not None:
        outside = own_name(routine, "outside")
        given = [p.name for p in data_parameters(routine.lookups)][:-1]
        yield f"(void){function_name(routine.lookups.name)}({', '.join([*given, outside, '1', 'NULL'])});"
        yield f"if ({outside}[0]) return PFX_BAD_INDEX;"


def _not_null(array: Buffer) -> Iterator[str]:
    """A C line that replaces a null pointer, for an array that may have no elements."""
    if filled(array):
        pointer = buffer_parameter(array).prefix.replace("restrict ", "").strip()
        yield f"if (!{c_name(array.name)}) {c_name(array.name)} = ({pointer})(void *)pfx_nothing;"


def _none(conditions: Sequence[str]) -> str:
    """C text of the condition that none of some conditions holds."""
    return " && ".join(f"!({condition})" for condition in conditions)


def _overlap(routine: Routine, array: Buffer, most: str) -> str:
    """C text of whether the workspace, if there is one, overlaps an array."""
    overlap = f"pfx_overlap(workspace, {most}, {c_name(array.name)}, {spans(routine)[array.name]})"
    return " && ".join(filter(None, (f"{most} > 0", overlap, filled(array))))


def _size_body(routine: Routine, header: Header) -> str:
    status = own_name(routine, "status")
    sizes = names(size_arguments(routine, header))
    lines = [
        f"const pfx_status {status} = {routine.name}_sizes({sizes});",
        f"return {status} == PFX_OK ? {_most(routine, header)} : -(int64_t){status};",
    ]
    return block(lines)


def _most(routine: Routine, header: Header) -> str:
    """C text of the bytes that serve any kernel, including those for the alignment to 64 bytes."""
    return f"pfx_with_slack({routine.name}_most({', '.join([*_sizes(routine), _threads(header)])}))"


def _run_arguments(routine: Routine, header: Header) -> str:
    """The arguments in the order of `codegen.parameters`: sizes, then strides, then arrays and scalars."""
    signature, needed = routine.signature, own_name(routine, "needed")
    data = [c_name(name) for name in (*signature.sizes, *(b.name for b in signature.buffers))]
    return ", ".join([own_name(routine, "serving"), *data, _threads(header), f"pfx_aligned(workspace, {needed})"])


def _sizes(routine: Routine) -> list[str]:
    return [p.name for p in size_parameters(routine.sizes)]


def _threads(header: Header) -> str:
    return "1" if header.threads == "none" else "threads"


def _own(routine: Routine, parameter: Parameter) -> Parameter:
    """The parameter under a name that the routine does not use."""
    return Parameter(parameter.prefix, own_name(routine, parameter.name))
