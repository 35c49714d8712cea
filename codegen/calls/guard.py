"""The C function through which Python calls a kernel: it checks what Python cannot check quickly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.elements import strides
from codegen.ir.integer import Linear, extent, in_c, primary, product
from codegen.ir.program import Buffer
from codegen.ir.signature import Signature
from codegen.names import c_name, fresh, function_name
from codegen.parameters import Parameter, buffer_parameter, call_parameters, prototype, size_parameters

OVERLAP = """static inline int overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}"""


def guard(signature: Signature) -> str:
    """C text of `NAME_guarded`: the kernel's parameters, and `room`, the bytes of the workspace, if it needs one.

    Without a call, it returns 1 if an output overlaps another array or an array is not aligned to its elements, 2 if
    the workspace has too little room, and 0 if every output is empty.
    """
    name = function_name(signature.name)
    signature = _apart(signature, frozenset((name, f"{name}_workspace")))
    sizes = size_parameters(signature.sizes)
    parameters = (*sizes, *map(_parameter, signature.parameters), *call_parameters())
    room = Parameter("int64_t ", fresh("room", frozenset(p.name for p in parameters)))
    taken = frozenset(p.name for p in (*parameters, room))
    counts = {b.name: fresh(f"{b.name}_bytes", taken) for b in signature.arrays}
    lines = [f"const int64_t {counts[b.name]} = {array_bytes(b)};" for b in signature.arrays]
    empty = " && ".join(f"!{counts[b.name]}" for b in signature.outputs)
    if empty:
        lines.append(f"if ({empty}) return 0;")
    lines += [f"if ({_overlaps(a, b, counts)}) return 1;" for a, b in pairs(signature)]
    aligned = [b for b in signature.arrays if b.dtype.size > 1]
    lines += [f"if ((uintptr_t){c_name(b.name)} % {b.dtype.size}) return 1;" for b in aligned]
    if signature.scratch:
        needed = f"{name}_workspace({', '.join([*(p.name for p in sizes), 'threads'])})"
        lines.append(f"if ((uint64_t){needed} > (uint64_t){room.name}) return 2;")
    lines.append(f"return {name}({', '.join(p.name for p in parameters)});")
    body = "\n".join(f"    {line}" for line in lines)
    given = (*parameters, *[room] * signature.scratch)
    return f"{OVERLAP}\n\n{prototype('int32_t', f'{name}_guarded', given)}\n{{\n{body}\n}}\n"


def _apart(signature: Signature, functions: frozenset[str]) -> Signature:
    """The signature with other names for arrays and sizes that are called as one of the functions."""
    given = (*signature.sizes, *(b.name for b in signature.parameters))
    taken = functions.union(map(c_name, given))
    names = {name: fresh(f"{name}_given", taken) for name in given if c_name(name) in functions}
    if not names:
        return signature
    known = {size: Linear.name(name) for size, name in names.items()}

    def renamed(b: Buffer) -> Buffer:
        shape = tuple(extent.substitute(known) for extent in b.shape)
        strides = b.strides and tuple(names.get(stride, stride) for stride in b.strides)
        return replace(b, name=names.get(b.name, b.name), shape=shape, strides=strides)

    buffers, held = (tuple(map(renamed, some)) for some in (signature.buffers, signature.held))
    sizes = tuple(names.get(size, size) for size in signature.sizes)
    return replace(signature, sizes=sizes, buffers=buffers, held=held)


def declarations(signature: Signature) -> str:
    """The declarations for cffi: the kernel, the guarded kernel and the workspace's size.

    Arrays are `void *`, which accepts any buffer.
    """
    name = function_name(signature.name)
    sizes = [str(p) for p in size_parameters(signature.sizes)]
    parameters = _parameters(signature, "void *")
    workspace = ", ".join([*sizes, "int64_t threads"])
    room = ", int64_t" * signature.scratch
    functions = [f"int32_t {name}({parameters})", f"int32_t {name}_guarded({parameters}{room})"]
    return ";\n".join([*functions, f"int64_t {name}_workspace({workspace})"]) + ";\n"


def addressed(signature: Signature) -> str:
    """The type of a pointer to the guarded kernel as a function of the arrays' addresses, which are integers."""
    return f"int32_t (*)({_parameters(signature, 'uintptr_t')}{', int64_t' * signature.scratch})"


def _parameters(signature: Signature, pointer: str) -> str:
    """The kernel's parameters for cffi, with a type for the arrays."""
    data = [f"{b.dtype.c_name if b.kind == 'scalar' else pointer} {c_name(b.name)}" for b in signature.parameters]
    return ", ".join([*map(str, size_parameters(signature.sizes)), *data, *map(str, call_parameters())])


def array_bytes(buffer: Buffer) -> str:
    """C text of the bytes from an array's first element to the end of its last; 0 if it is empty."""
    if buffer.strides is None:
        return str(product([*map(in_c, buffer.shape), buffer.dtype.size]))
    shape = [extent(e) for e in buffer.shape]
    last = " + ".join(f"({e} - 1)*{primary(s)}" for e, s in zip(shape, strides(buffer), strict=True))
    return f"{' && '.join(shape)} ? ({last} + 1)*{buffer.dtype.size} : 0"


def _parameter(buffer: Buffer) -> Parameter:
    """The kernel's parameter without `restrict`: here the arrays may still overlap."""
    parameter = buffer_parameter(buffer)
    return Parameter(parameter.prefix.replace("restrict ", ""), parameter.name)


def pairs(signature: Signature) -> list[tuple[Buffer, Buffer]]:
    """Each pair of an output and another array, once."""
    outputs = signature.outputs
    inputs = [b for b in signature.arrays if b not in outputs]
    return [(a, b) for n, a in enumerate(outputs) for b in (*outputs[n + 1 :], *inputs)]


def _overlaps(a: Buffer, b: Buffer, counts: Mapping[str, str]) -> str:
    first, second = c_name(a.name), c_name(b.name)
    return f"overlap((const char *){first}, {counts[a.name]}, (const char *){second}, {counts[b.name]})"
