"""What a header's functions answer to wrong arguments: each status, each argument, each limit, on several machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from header_calls import CODES, Answer, Call, Program, program, routine, start
from header_check_nests import ALL, heat
from header_verdicts import limit, verdict
from headers import CLANGXX, GCC, S390X, Toolchain, build, quick
from shared_nests import matmul

from codegen.names import c_name
from codegen.package import Header, Routine
from codegen.package.header.entry import prototypes
from codegen.package.prefix import prefixed
from microkernels.isa import PORTABLE

UNDEFINED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
NUMBERS = {nest.name: number for number, nest in enumerate(ALL)}
SPARSE = matmul.with_sizes({"M": 16, "K": 16, "N": 16})
MIN, MAX = -(2**63), 2**63 - 1

KIT = Header("kit", tuple(routine(nest) for nest in ALL), (PORTABLE,))
DENSE = Header("dense", tuple(routine(nest, dense=True) for nest in ALL), (PORTABLE,))
ALONE = Header("alone", (routine(matmul), routine(heat)), (PORTABLE,), threads="none")
FIXED = Header("fixed", (routine(SPARSE),), (PORTABLE,), threads="none")
HEADERS = {header.prefix: header for header in (KIT, DENSE, ALONE, FIXED)}

M32 = Toolchain(("gcc", "-m32"))
WAYS = {
    "c99": (GCC, ("-std=c99", *quick(GCC), *UNDEFINED, "-fsanitize=address")),
    "c++11": (CLANGXX, ("-std=c++11", "-O1", *UNDEFINED)),
    "32 bits": (M32, ("-std=c99", "-O0", *UNDEFINED)),
    "big endian": (S390X, ("-std=c99", *quick(S390X))),
}


@pytest.fixture(scope="module", params=WAYS)
def programs(request: pytest.FixtureRequest) -> Iterator[dict[str, Program]]:
    """The programs of all headers, for one machine and compiler."""
    toolchain, flags = WAYS[request.param]
    running = {name: start(header, toolchain, *flags) for name, header in HEADERS.items()}
    yield running
    for one in running.values():
        one.close()


def right(header: Header, number: int, **sizes: int) -> Call:
    """A call with nothing wrong: small arrays, far from each other."""
    one = header.routines[number]
    values = {c_name(name): sizes.get(name, 5) for name in one.sizes}
    values |= {c_name(stride): 0 for stride in one.strides} | {"threads": 2}
    buffers = enumerate(one.signature.buffers, start=1)
    return Call(number, 0, values | {c_name(b.name): 3 if b.kind == "scalar" else at << 20 for at, b in buffers})


def check(program: Program, call: Call, expected: str) -> Answer:
    """The program's answer, which must be the status expected, and what the verdict says."""
    answer = program.answer(call)
    assert answer == verdict(program.header, program.bits, call), call
    assert answer.result == (CODES[expected] if call.function < 2 else -CODES[expected]), call
    return answer


def arrays(one: Routine) -> list[str]:
    return [c_name(b.name) for b in one.signature.arrays]


@pytest.mark.parametrize("name", HEADERS)
def test_right_arguments_reach_the_kernel(programs: dict[str, Program], name: str) -> None:
    running = programs[name]
    for number in range(len(running.header.routines)):
        assert check(running, right(running.header, number), "OK").seen


def test_the_kernel_gets_strides_instead_of_zeros(programs: dict[str, Program]) -> None:
    call = right(KIT, NUMBERS["turned"], K=2, L=3, M=4, N=5)
    seen = check(programs["kit"], call, "OK").seen
    assert seen == (1, 2, 3, 4, 5, 60, 20, 5, 24, 6, 2, 1 << 20, 2 << 20, 2, 0)
    seen = check(programs["kit"], call.but(X_stride1=23, Y_stride2=7, Y_stride0=99), "OK").seen
    assert seen == (1, 2, 3, 4, 5, 69, 23, 5, 99, 21, 7, 1 << 20, 2 << 20, 2, 0)


@pytest.mark.parametrize("name", HEADERS)
def test_sizes(programs: dict[str, Program], name: str) -> None:
    """Negative or beyond the limit, also where arrays don't tell it; the workspace's size says the same."""
    running = programs[name]
    most = limit(running.bits)
    for number, one in enumerate(running.header.routines):
        call = right(running.header, number)
        for size, value in product(map(c_name, one.sizes), (-1, MIN, MAX, most + 1, 2**32 - 1, 2**53)):
            if value > most or value < 0:
                for function in (0, 1, 2):
                    check(running, Call(number, function, call.but(**{size: value}).values, 640), "BAD_SIZE")


@pytest.mark.parametrize("header", [KIT, DENSE], ids=lambda header: header.prefix)
def test_sizes_up_to_the_limit(programs: dict[str, Program], header: Header) -> None:
    """As many bytes as are allowed, and one element more; a dimension of 0 makes no other one free."""
    running = programs[header.prefix]
    most = limit(running.bits)
    for m, n in ((0, 1), (1, 0), (0, 0), (1, 1)):
        call = right(header, NUMBERS["matmul"], M=m, N=n, K=most // 4)
        call = call.but(A=(most + 1) // 2, B=(most + 1) // 2 * 3, C=(most + 1) * 3)
        check(running, call, "OK")
        check(running, call.but(K=most // 4 + 1), "BAD_SIZE")
    steps = right(header, NUMBERS["heat"])
    assert check(running, steps.but(T=most), "OK").seen
    check(running, steps.but(T=most + 1), "BAD_SIZE")


@pytest.mark.parametrize("header", [KIT, DENSE], ids=lambda header: header.prefix)
def test_shapes(programs: dict[str, Program], header: Header) -> None:
    """`P + R - 1` and `2*M - 3` must not be negative; arrays that a call makes for itself must not be too large."""
    running = programs[header.prefix]
    check(running, right(header, NUMBERS["convolution"], P=0, R=0), "BAD_SIZE")
    check(running, right(header, NUMBERS["convolution"], P=1, R=0), "OK")
    for m in (0, 1):
        check(running, right(header, NUMBERS["inside"], M=m), "BAD_SIZE")
    check(running, right(header, NUMBERS["inside"], M=2), "OK")
    side = 2**23 if running.bits == 64 else 2**14
    local = right(header, NUMBERS["two_mm"], M=side, N=side, K=0, L=0)
    check(running, local, "BAD_SIZE")
    check(running, local.but(N=side // 8 - 1), "OK")


@pytest.mark.parametrize("name", ["kit", "dense"])
def test_threads(programs: dict[str, Program], name: str) -> None:
    running = programs[name]
    for number in range(len(running.header.routines)):
        call = right(running.header, number)
        for threads in (0, -1, 257, -(2**31), 2**31 - 1):
            for function in (0, 1, 2):
                check(running, Call(number, function, call.but(threads=threads).values), "BAD_THREADS")
        for threads in (1, 256):
            check(running, call.but(threads=threads), "OK")


def test_strides(programs: dict[str, Program]) -> None:
    """Shorter than what lies within, negative, too long, or so long that the array would be."""
    running = programs["kit"]
    most = limit(running.bits)
    for number, one in enumerate(KIT.routines):
        call = right(KIT, number)
        for stride, value in product(map(c_name, one.strides), (1, 4, -1, -5, MIN, MAX, most, most + 1)):
            check(running, call.but(**{stride: value}), "BAD_STRIDE")


def test_strides_of_arrays_without_elements(programs: dict[str, Program]) -> None:
    """They may be short, but neither negative nor beyond the limit."""
    running = programs["kit"]
    most = limit(running.bits)
    for name in ("matmul", "turned", "mixed", "two_mm"):
        one = KIT.routines[NUMBERS[name]]
        call = right(KIT, NUMBERS[name], **dict.fromkeys(one.sizes, 0))
        for stride, value in product(map(c_name, one.strides), (1, 4, most)):
            check(running, call.but(**{stride: value}), "OK")
        for stride, value in product(map(c_name, one.strides), (-1, MIN, most + 1)):
            check(running, call.but(**{stride: value}), "BAD_STRIDE")


def test_inner_strides_make_outer_ones_longer(programs: dict[str, Program]) -> None:
    running = programs["kit"]
    call = right(KIT, NUMBERS["turned"], K=2, L=3, M=4, N=5)
    check(running, call.but(X_stride2=5, X_stride1=20, X_stride0=60), "OK")
    check(running, call.but(X_stride2=9, X_stride1=32, X_stride0=96), "OK")
    check(running, call.but(X_stride2=9, X_stride1=31), "BAD_STRIDE")
    check(running, call.but(X_stride2=9, X_stride1=32, X_stride0=95), "BAD_STRIDE")


@pytest.mark.parametrize("name", HEADERS)
def test_null_and_misaligned_arrays(programs: dict[str, Program], name: str) -> None:
    running = programs[name]
    for number, one in enumerate(running.header.routines):
        call = right(running.header, number)
        for array in one.signature.arrays:
            own = c_name(array.name)
            check(running, call.but(**{own: 0}), "NULL_POINTER")
            for step in range(1, array.dtype.size):
                check(running, call.but(**{own: call.values[own] + step}), "MISALIGNED")


@pytest.mark.parametrize("header", [KIT, DENSE], ids=lambda header: header.prefix)
def test_arrays_without_elements_may_be_null(programs: dict[str, Program], header: Header) -> None:
    running = programs[header.prefix]
    call = right(header, NUMBERS["matmul"], K=0)
    assert check(running, call.but(A=0, B=0), "OK").seen
    assert check(running, call.but(A=call.values["C"], B=call.values["C"]), "OK").seen
    check(running, call.but(C=0), "NULL_POINTER")
    nothing = right(header, NUMBERS["matmul"], M=0).but(A=0, C=0)
    assert check(running, nothing, "OK").seen is None
    check(running, nothing.but(B=0), "NULL_POINTER")


@pytest.mark.parametrize("name", HEADERS)
def test_overlaps(programs: dict[str, Program], name: str) -> None:
    """One byte is enough; inputs may share theirs; an array may end where another begins."""
    running = programs[name]
    for number, one in enumerate(running.header.routines):
        call = right(running.header, number)
        for a, b in product(one.signature.arrays, repeat=2):
            if a is b:
                continue
            written = {a.kind, b.kind} != {"in"}
            first, second = c_name(a.name), c_name(b.name)
            at, end = call.values[first], call.values[first] + extent(one, call, a.name)
            check(running, call.but(**{second: at}), "OVERLAP" if written else "OK")
            check(running, call.but(**{second: (end - 1) // 8 * 8}), "OVERLAP" if written else "OK")
            check(running, call.but(**{second: -(-end // 8) * 8}), "OK")


def extent(one: Routine, call: Call, name: str) -> int:
    """The bytes of an array of a call."""
    buffer = next(b for b in one.signature.buffers if b.name == name)
    sizes = {size: call.values[c_name(size)] for size in one.sizes}
    count = buffer.dtype.size
    for size in buffer.shape:
        count *= size.evaluate(sizes)
    return count


def test_blocks_of_one_matrix(programs: dict[str, Program]) -> None:
    """Where rows lie equally far apart, an output may lie beside an input, as long as they share no byte."""
    running = programs["kit"]
    m, k, n, ld, size = 2, 2, 3, 7, 4
    call = right(KIT, NUMBERS["matmul"], M=m, K=k, N=n).but(A_ld=ld, C_ld=ld, C=0x10000)
    own = {0x10000 + (i * ld + j) * size + byte for i in range(m) for j in range(n) for byte in range(size)}
    for start_ in range(0x10000 - 80, 0x10000 + 80, 4):
        other = {start_ + (i * ld + j) * size + byte for i in range(m) for j in range(k) for byte in range(size)}
        check(running, call.but(A=start_), "OVERLAP" if own & other else "OK")
    check(running, call.but(A=0x10000 + n * size, A_ld=ld + 1), "OVERLAP")


@pytest.mark.parametrize("name", HEADERS)
def test_workspaces(programs: dict[str, Program], name: str) -> None:
    running = programs[name]
    for number, one in enumerate(running.header.routines):
        values = right(running.header, number).values
        assert running.answer(Call(number, 2, values, need=100)).result == 163
        assert running.answer(Call(number, 2, values, need=0)).result == 0
        for workspace, size in ((0, 163), (0, 0), (0x999, 162), (0x999, -1), (0x999, MIN)):
            check(running, Call(number, 1, values, 100, False, workspace, size), "WORKSPACE_TOO_SMALL")
            check(running, Call(number, 1, values, 0, False, workspace, size), "OK")
        for workspace in (0x999, 0x9C0, 0x9FF):
            answer = check(running, Call(number, 1, values, 100, False, workspace, 163), "OK")
            assert answer.seen and answer.seen[-1] == (workspace + 63) // 64 * 64
            assert answer.taken == 0
        for array in arrays(one):
            for workspace in (values[array], values[array] - 162):
                check(running, Call(number, 1, values, 100, False, workspace, MAX), "OVERLAP")
            check(running, Call(number, 1, values, 100, False, values[array] - 163, 163), "OK")


def test_a_workspace_serves_every_processor(programs: dict[str, Program]) -> None:
    """It is as large as the greediest kernel needs it, also where the chosen one needs less, or nothing."""
    values = right(KIT, NUMBERS["matmul"]).values
    for need in (0, 40):
        call = Call(NUMBERS["matmul"], 1, values, need, False, 0x999, 163, 100 - need)
        assert check(programs["kit"], call, "OK").seen
        check(programs["kit"], replace(call, workspace_bytes=162), "WORKSPACE_TOO_SMALL")
        check(programs["kit"], replace(call, workspace=0), "WORKSPACE_TOO_SMALL")
        check(programs["kit"], replace(call, workspace=values["A"] - 162), "OVERLAP")
        assert programs["kit"].answer(replace(call, function=2)).result == 163
        assert check(programs["kit"], replace(call, function=0), "OK").taken == (103 if need else 0)


@pytest.mark.parametrize("name", HEADERS)
def test_memory(programs: dict[str, Program], name: str) -> None:
    """What is taken is given back; nothing is taken for nothing, nor for a call that is wrong."""
    running = programs[name]
    for number, one in enumerate(running.header.routines):
        values = right(running.header, number).values
        answer = check(running, Call(number, 0, values, 1000), "OK")
        assert (answer.taken, answer.given) == (1063, 1)
        assert answer.seen and answer.seen[-1] % 64 == 0
        assert check(running, Call(number, 0, values), "OK").taken == 0
        check(running, Call(number, 0, values, 1000, True), "OUT_OF_MEMORY")
        check(running, Call(number, 0, values, 2**50), "OUT_OF_MEMORY")
        wrong = check(running, Call(number, 0, {**values, arrays(one)[0]: 0}, 1000), "NULL_POINTER")
        assert wrong.taken == 0


def test_the_first_that_is_wrong_makes_the_status(programs: dict[str, Program]) -> None:
    """As the contract orders them."""
    running = programs["kit"]
    wrong = [
        ("BAD_SIZE", {"K": -1}),
        ("BAD_THREADS", {"threads": 0}),
        ("BAD_STRIDE", {"B_ld": 1}),
        ("NULL_POINTER", {"A": 0}),
        ("MISALIGNED", {"B": 3}),
        ("OVERLAP", {"C": 2 << 20}),
    ]
    values = {**right(KIT, NUMBERS["matmul"]).values}
    for status, change in reversed(wrong):
        values |= change
        check(running, Call(NUMBERS["matmul"], 1, values, 100), status)


def test_prototypes() -> None:
    assert prefixed(prototypes(KIT.routines[0], KIT), "matmul") == (
        "matmul_status matmul(int64_t M, int64_t K, int64_t N, const float *A, int64_t A_ld, const float *B, "
        "int64_t B_ld, float *C, int64_t C_ld, int32_t threads);\n"
        "matmul_status matmul_with_workspace(int64_t M, int64_t K, int64_t N, const float *A, int64_t A_ld, "
        "const float *B, int64_t B_ld, float *C, int64_t C_ld, int32_t threads, void *workspace, "
        "int64_t workspace_bytes);\n"
        "int64_t matmul_workspace_size(int64_t M, int64_t K, int64_t N, int32_t threads);"
    )
    assert prototypes(FIXED.routines[0], FIXED).endswith("int64_t matmul_workspace_size(void);")


def test_strides_have_names_of_their_own() -> None:
    assert KIT.routines[NUMBERS["clashing"]].signature.sizes == ("M", "A_ld", "A_ld_2", "B_ld_ld", "B_ld_2")


def test_one_of_malloc_and_free_is_not_enough(tmp_path: Path) -> None:
    text = program(ALONE).replace("#define ALONE_FREE stub_free", "")
    with pytest.raises(AssertionError, match="define both ALONE_MALLOC and ALONE_FREE, or neither"):
        build(GCC, text, tmp_path)
