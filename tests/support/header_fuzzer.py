"""A libFuzzer program for a routine's checks: it makes calls from bytes, and judges the answers in 128 bits."""

from __future__ import annotations

from collections.abc import Sequence

from header_calls import TOP, text

from codegen.ir.integer import Affine
from codegen.ir.program import Buffer
from codegen.names import c_name
from codegen.package import Header, Routine
from codegen.package.api import call_arguments, names
from codegen.package.prefix import prefixed
from codegen.parameters import Parameter

ORACLE = """__extension__ typedef __int128 wide;
static const wide LIMIT = ((wide)1 << (sizeof(void *) > 4 ? 48 : 30)) - 1;
static const wide ADDRESSES = (wide)1 << 8*sizeof(void *);

/* Strides are outermost first, the last is 1. A local array has no address. */
struct array { wide address, extent[4], stride[4]; int rank, size, written, local, strided; };

static int array_empty(const struct array *a)
{
  for (int d = 0; d < a->rank; d++) if (a->extent[d] == 0) return 1;
  return 0;
}

/* The elements from the first to behind the last, counting the dimensions from `first` on. */
static wide array_reach(const struct array *a, int first)
{
  wide reach = 1;
  for (int d = first; d < a->rank; d++) reach += (a->extent[d] - 1)*a->stride[d];
  return reach;
}

static int wrong_size(const struct array *a)
{
  wide bytes = a->size;
  for (int d = 0; d < a->rank; d++) if (a->extent[d] < 0) return 1;
  for (int d = 0; d < a->rank; d++) {
    bytes *= a->extent[d] > 0 ? a->extent[d] : 1;
    if (bytes > LIMIT) return 1;
  }
  return 0;
}

/* Strides of 0 become dense on the way. */
static int wrong_stride(struct array *a)
{
  for (int d = a->rank - 2; d >= 0; d--) {
    if (a->stride[d] == 0) a->stride[d] = a->extent[d + 1]*a->stride[d + 1];
    if (a->stride[d] < 0 || a->stride[d] > LIMIT) return 1;
    if (a->extent[d]*a->stride[d] > LIMIT/a->size) return 1;
    if (!array_empty(a) && a->stride[d] < array_reach(a, d + 1)) return 1;
  }
  return 0;
}

/* Whether two runs of places meet on a circle. */
static int meet(wide a, wide a_count, wide b, wide b_count, wide around)
{
  for (int turn = -1; turn <= 1; turn++)
    if (a < b + turn*around + b_count && b + turn*around < a + a_count && a_count > 0 && b_count > 0) return 1;
  return 0;
}

static wide array_bytes(const struct array *a) { return array_empty(a) ? 0 : array_reach(a, 0)*a->size; }

static int overlapping(const struct array *a, const struct array *b)
{
  const wide around = a->stride[0]*a->size;
  if (!meet(a->address, array_bytes(a), b->address, array_bytes(b), ADDRESSES)) return 0;
  if (a->rank < 2 || b->rank < 2 || !a->strided || !b->strided || b->stride[0]*b->size != around) return 1;
  return meet(a->address % around, array_reach(a, 1)*a->size, b->address % around, array_reach(b, 1)*b->size, around);
}

static pfx_status oracle(const wide *sizes, int n_sizes, struct array *arrays, int n, wide threads)
{
  for (int i = 0; i < n_sizes; i++) if (sizes[i] < 0 || sizes[i] > LIMIT) return PFX_BAD_SIZE;
  for (int i = 0; i < n; i++) if (wrong_size(&arrays[i])) return PFX_BAD_SIZE;
  if (threads < 1 || threads > 256) return PFX_BAD_THREADS;
  for (int i = 0; i < n; i++) if (wrong_stride(&arrays[i])) return PFX_BAD_STRIDE;
  for (int i = 0; i < n; i++)
    if (!arrays[i].local && arrays[i].address == 0 && !array_empty(&arrays[i])) return PFX_NULL_POINTER;
  for (int i = 0; i < n; i++) if (arrays[i].address % arrays[i].size != 0) return PFX_MISALIGNED;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (i != j && arrays[i].written && !arrays[i].local && !arrays[j].local && overlapping(&arrays[i], &arrays[j]))
        return PFX_OVERLAP;
  return PFX_OK;
}

static int nothing_to_do(const struct array *arrays, int n)
{
  for (int i = 0; i < n; i++) if (arrays[i].written && !arrays[i].local && !array_empty(&arrays[i])) return 0;
  return 1;
}

static void must(int right, const char *what)
{
  if (right) return;
  fprintf(stderr, "wrong answer: %s\\n", what);
  abort();
}

static const uint8_t *input, *input_end;

static uint64_t take(int bytes)
{
  uint64_t value = 0;
  while (bytes-- > 0) value = value << 8 | (input < input_end ? *input++ : 0u);
  return value;
}

/* A size or a stride: mostly small, else near a power of two, or anything. */
__attribute__((no_sanitize("integer"))) static int64_t take_number(void)
{
  const uint64_t way = take(1);
  if (way < 160) return (int64_t)(way % 8);
  if (way < 230) return (int64_t)(((uint64_t)1 << take(1) % 64) + take(1) % 5 - 2u);
  return (int64_t)take(8);
}

static int64_t take_stride(void)
{
  const uint64_t way = take(1);
  return way < 64 ? 0 : way < 200 ? (int64_t)take(1) % 64 : take_number();
}

/* An address: mostly one of a small piece of memory, else null, or any. */
static void *take_address(void)
{
  const uint64_t way = take(1);
  if (way < 200) return (void *)(uintptr_t)(65536 + take(1)*4);
  return (void *)(uintptr_t)(way < 220 ? 0 : way < 240 ? 65536 + take(1) : take(8));
}

/* A number of threads: mostly small, else near a limit, or any. */
static int32_t take_threads(void)
{
  const uint64_t way = take(1);
  if (way < 160) return 1 + (int32_t)(way % 4);
  if (way < 200) return (int32_t)(way % 4) - 2;
  return way < 240 ? 255 + (int32_t)(way % 4) : (int32_t)(uint32_t)take(4);
}"""

ENTRY = """int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  input = data;
  input_end = data + size;
%s
  return 0;
}"""


def fuzzer(header: Header) -> str:
    """The C text of the program, for the only routine of a header."""
    (routine,) = header.routines
    body = "\n".join(f"  {line}" for line in _lines(routine, header))
    return prefixed("\n\n".join([TOP, text(header), ORACLE, ENTRY % body]), header.prefix) + "\n"


WHOLE = """/* A size: mostly small enough to run the kernels. */
static int64_t take_size(void)
{
  const uint64_t way = take(1);
  return way < 240 ? (int64_t)(way % 40) : take_number();
}

/* An address: mostly far from all others. */
static void *take_distant(int place)
{
  return take(1) < 240 ? (void *)((uintptr_t)(place + 1) << 8*(sizeof(void *) - 2)) : take_address();
}

/* The elements of an array are marked, and what lies between them is not. */
static void mark(const struct array *a, int dimension, int64_t first, unsigned char *marks)
{
  if (dimension == a->rank) memset(marks + first*a->size, 1, (size_t)a->size);
  else for (int i = 0; i < a->extent[dimension]; i++)
    mark(a, dimension + 1, first + i*(int64_t)a->stride[dimension], marks);
}

/* An array at an address of its own, with nothing in front of it or behind it. */
static void *placed(const struct array *a)
{
  const size_t bytes = (size_t)array_bytes(a);
  return memset(malloc(bytes + !bytes), a->written ? 7 : 0, bytes + !bytes);
}

/* Its memory is given back; what lies between elements must be as it was. */
static void checked(const struct array *a, void *memory)
{
  const int64_t bytes = (int64_t)array_bytes(a);
  unsigned char *marks = (unsigned char *)calloc((size_t)bytes + 1, 1);
  if (bytes > 0) mark(a, 0, 0, marks);
  for (int64_t i = 0; i < bytes; i++)
    must(marks[i] || ((unsigned char *)memory)[i] == (a->written ? 7 : 0), "what lies between elements");
  free(marks);
  free(memory);
}"""


def whole_fuzzer(header: Header, routine: Routine) -> str:
    """The C text of the program for a routine of a header that is written to a file: its kernels run."""
    includes = "\n".join(f"#include <{name}.h>" for name in ("stdio", "stdlib", "string"))
    top = f'{includes}\n#define PFX_IMPLEMENTATION\n#include "{header.prefix}.h"'
    body = "\n".join(f"  {line}" for line in _whole_lines(routine, header))
    return prefixed("\n\n".join([top, ORACLE, WHOLE, ENTRY % body]), header.prefix) + "\n"


def _whole_lines(routine: Routine, header: Header) -> list[str]:
    """Wrong arguments are passed unchanged; if all are right and small, the arrays are put into memory."""
    told = call_arguments(routine, header)
    arrays = [b for b in routine.reference.buffers if b.kind != "scalar"]
    outer = [(n, b) for n, b in enumerate(arrays) if b.kind != "local"]
    sizes = [c_name(size) for size in routine.sizes]
    plain = names(told)
    real = ", ".join({c_name(b.name): f"memory_{n}" for n, b in outer}.get(p.name, p.name) for p in told)
    small = " && ".join(
        [*(f"{size} <= 40" for size in sizes), *(f"array_bytes(&arrays[{n}]) < 1 << 20" for n, _ in outer)]
    )
    threads = [p.name for p in told if p.name == "threads"]
    return [
        *(f"{p.prefix}{p.name} = {_tame(p, at, routine)};" for at, p in enumerate(told)),
        "(void)pfx_force_isa((pfx_isa)(take(1) % 5));",
        *_judged(routine, arrays),
        f"const int64_t needed = {routine.name}_workspace_size({', '.join([*sizes, *threads])});",
        "const int early = right == PFX_BAD_SIZE || right == PFX_BAD_THREADS;",
        'must(early ? needed == -(int64_t)right : needed >= 0, "the size of the workspace");',
        "if (right != PFX_OK) {",
        f'  must({routine.name}({plain}) == right, "a call");',
        f'  must({routine.name}_with_workspace({plain}, NULL, 0) == right, "a call with a workspace");',
        "  return 0;",
        "}",
        f"if (!({small}) || threads > 4) return 0;",
        *(f"void *const place_{n} = placed(&arrays[{n}]);" for n, _ in outer),
        *(f"{_pointer(b)}memory_{n} = ({_pointer(b).strip()})place_{n};" for n, b in outer),
        "char *const memory = (char *)malloc((size_t)needed + 1);",
        f'must({routine.name}({real}) == PFX_OK, "a call");',
        f'must({routine.name}_with_workspace({real}, memory + 1, needed) == PFX_OK, "a call with a workspace");',
        "free(memory);",
        *(f"checked(&arrays[{n}], place_{n});" for n, _ in outer),
    ]


def _judged(routine: Routine, arrays: Sequence[Buffer]) -> list[str]:
    """The right answer to the arguments."""
    sizes = ", ".join(map(c_name, routine.sizes))
    listed = ",\n    ".join(_array(routine, b) for b in arrays)
    return [
        f"const wide sizes[] = {{{sizes}}};",
        f"struct array arrays[] = {{\n    {listed}\n  }};",
        f"const pfx_status right = oracle(sizes, {len(routine.sizes)}, arrays, {len(arrays)}, threads);",
    ]


def _pointer(buffer: Buffer) -> str:
    """The type of an argument."""
    return f"{'const ' if buffer.kind == 'in' else ''}{buffer.dtype.c_name} *"


def _lines(routine: Routine, header: Header) -> list[str]:
    """The function's lines: arguments, the right answer, and three calls."""
    told = call_arguments(routine, header)
    local = [b for b in routine.reference.buffers if b.kind == "local"]
    arrays = [*routine.signature.arrays, *local]
    sizes = [c_name(size) for size in routine.sizes]
    return [
        *(f"{p.prefix}{p.name} = {_taken(p, routine)};" for p in told),
        *_judged(routine, arrays),
        f"const int runs = right == PFX_OK && !nothing_to_do(arrays, {len(arrays)});",
        *_plain_call(routine, names(told), arrays),
        *_call_with_workspace(routine, names(told), len(arrays) - len(local)),
        f"const int64_t told = {routine.name}_workspace_size({', '.join([*sizes, 'threads'])});",
        "const int early = right == PFX_BAD_SIZE || right == PFX_BAD_THREADS;",
        'must(told == (early ? -(int64_t)right : slack), "the size of the workspace");',
    ]


def _plain_call(routine: Routine, arguments: str, arrays: Sequence[Buffer]) -> list[str]:
    steps = {s: f"arrays[{n}].stride[{d}]" for n, b in enumerate(arrays) for d, s in enumerate(b.strides or ())}
    seen = {name: place for place, name in enumerate(routine.signature.sizes, start=1)}
    return [
        "stub_need = (int64_t)take(1)*64;",
        "stub_ran = stub_count = 0;",
        f'must({routine.name}({arguments}) == right, "a call");',
        'must(stub_ran == runs, "whether the kernel ran");',
        *(
            f'must(!runs || (wide)(int64_t)stub_seen[{seen[stride]}] == {steps[stride]}, "{stride}");'
            for stride in routine.strides
        ),
    ]


def _call_with_workspace(routine: Routine, arguments: str, arrays: int) -> list[str]:
    return [
        "const int64_t slack = stub_need > 0 ? stub_need + 63 : 0, workspace_bytes = slack - (int64_t)take(1) % 2;",
        "void *const workspace = take_address();",
        "int met = 0;",
        f"for (int i = 0; runs && i < {arrays}; i++)",
        "  met |= meet(arrays[i].address, array_bytes(&arrays[i]), (uintptr_t)workspace, slack, ADDRESSES);",
        "const int fits = workspace && workspace_bytes >= slack && (uintptr_t)workspace + (wide)slack < ADDRESSES;",
        "const pfx_status with = !runs || slack == 0 ? right : !fits ? PFX_WORKSPACE_TOO_SMALL",
        "  : met ? PFX_OVERLAP : PFX_OK;",
        f"must({routine.name}_with_workspace({arguments}, workspace, workspace_bytes) == with,",
        '  "a call with a workspace");',
    ]


def _taken(parameter: Parameter, routine: Routine) -> str:
    """C text of a value from the input."""
    if "*" in parameter.prefix:
        return f"({parameter.prefix.strip()})take_address()"
    if parameter.name in map(c_name, routine.strides):
        return "take_stride()"
    return {"int64_t": "take_number()", "int32_t": "take_threads()"}.get(parameter.prefix.strip(), "0")


def _tame(parameter: Parameter, place: int, routine: Routine) -> str:
    """C text of a value that is right more often."""
    if "*" in parameter.prefix:
        return f"({parameter.prefix.strip()})take_distant({place})"
    return "take_size()" if parameter.name in map(c_name, routine.sizes) else _taken(parameter, routine)


def _array(routine: Routine, buffer: Buffer) -> str:
    """C text of an array as the oracle takes it."""
    local, rank = buffer.kind == "local", len(buffer.shape)
    strides = [c_name(stride) for stride in buffer.strides or ["0"] * (rank - 1) + ["1"] * (rank > 0)]
    parts = [
        "0" if local else f"(uintptr_t){c_name(buffer.name)}",
        f"{{{', '.join(map(_wide, buffer.shape)) or 0}}}",
        f"{{{', '.join(strides) or 0}}}",
        *(str(int(value)) for value in (rank, buffer.dtype.size, buffer.kind != "in", local, bool(buffer.strides))),
    ]
    return f"{{{', '.join(parts)}}}"


def _wide(size: Affine) -> str:
    """An extent in 128 bits."""
    return " + ".join([*(f"{factor}*(wide){c_name(name)}" for name, factor in size.terms), str(size.constant)])
