"""Device programs as functions: NumPy arrays, arrays on the device, queues, events, threads, and what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opencl_by_hand import AXPY, COUNT, GUARD, M, N, array, counted, executable, guarded, integer, program, untouched
from opencl_device import device

from codegen.calls.arguments import fit
from codegen.errors import ArgumentError, DeviceError, ToolchainError
from codegen.ir.integer import Compare, Linear, minimum
from codegen.ir.program import Buffer
from codegen.opencl.devices import Device
from codegen.opencl.runtime import Executable
from codegen.opencl.values import Argument, DeviceKernel, HostIf, Launch, Scratch
from microkernels.dtypes import f32, i32, i64

cl = pytest.importorskip("pyopencl", reason="needs pyopencl")
cl_array = pytest.importorskip("pyopencl.array")

SHAPES = [(1, 1), (3, 17), (8, 8), (5, 64), (33, 9)]


@pytest.fixture(scope="module", name="tested")
def tested_device() -> Device:
    return device()


@pytest.fixture(name="axpy")
def axpy_executable(tested: Device) -> Executable:
    return executable(AXPY, tested)


@pytest.fixture(scope="module", name="queue")
def own_queue(tested: Device) -> Iterator[Any]:
    """A queue of the caller's, in a context of its own. Not every platform's queue keeps its context alive."""
    context = cl.Context([tested.handle])
    yield cl.CommandQueue(context)


def samples(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def axpyed(a: np.ndarray, b: np.ndarray, s: float) -> np.ndarray:
    return b + np.float32(s) * a


def close(left: np.ndarray, right: np.ndarray) -> bool:
    """One product and one sum, in one rounding or two."""
    return bool(np.abs(left - right).max(initial=0) <= 4 * np.finfo(np.float32).eps)


# NumPy arrays


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shares", [True, False])
def test_numpy_arrays(tested: Device, shape: tuple[int, int], shares: bool) -> None:
    """On the host's memory, or in copies: those are counted, and only outputs come back."""
    if shares and not tested.shares_memory:
        pytest.skip("the device has memory of its own")
    axpy = executable(AXPY, replace(tested, shares_memory=shares))
    a, whole_a = guarded(shape)
    b, whole_b = guarded(shape)
    a[...], b[...] = samples(shape, 1), samples(shape, 2)
    expected = axpyed(a, b, 0.5)
    before = whole_a.copy()
    assert axpy(a, b, 0.5) is None
    assert close(b, expected) and untouched(whole_b)
    assert (whole_a == before).all()
    size = 0 if shares else a.nbytes
    counted_copies = (axpy.copies.to_device_bytes, axpy.copies.from_device_bytes, axpy.copies.on_host)
    assert counted_copies == (2 * size, size, 0)
    assert axpy.copies.count == (0 if shares else 3)
    assert ("copies: none" if shares else "2 to the device") in repr(axpy)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_arrays_without_elements(axpy: Executable, queue: Any, shape: tuple[int, int]) -> None:
    a, b = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    axpy(a, b, 1.0)
    on_device = (cl_array.zeros(queue, shape, np.float32), cl_array.zeros(queue, shape, np.float32))
    axpy(*on_device, 1.0).wait()


def test_no_steps_write_nothing(tested: Device) -> None:
    count = executable(COUNT, tested)
    out = np.zeros((0, 4), np.int32)
    count(out)
    assert count.profile(out).launches == ()


@pytest.mark.parametrize("steps", [1, 2, 30])
def test_launches_run_in_the_order_of_the_plan(tested: Device, steps: int) -> None:
    out = np.full((steps, 65), -1, np.int32)
    executable(COUNT, tested)(out)
    assert (out == counted(steps, 65)).all()


VIEWS: list[Callable[[np.ndarray], np.ndarray]] = [
    lambda x: x[:, ::2],
    lambda x: x[::-1],
    lambda x: x.T,
    lambda x: x[1:, 3:],
]


@pytest.mark.parametrize("view", VIEWS)
def test_arrays_whose_elements_lie_apart_are_made_dense_and_counted(
    axpy: Executable, view: Callable[[np.ndarray], np.ndarray]
) -> None:
    whole_a, whole_b = samples((12, 14), 1), samples((12, 14), 2)
    a, b = view(whole_a), view(whole_b)
    expected = whole_b.copy()
    view(expected)[...] = axpyed(a, b, 2.0)
    axpy(a, b, 2.0)
    assert close(whole_b, expected)
    assert axpy.copies.on_host == 3 and axpy.copies.on_host_bytes == 3 * a.nbytes
    assert "to make arrays dense" in str(axpy.copies)


def test_inputs_may_be_read_only_and_broadcast(axpy: Executable) -> None:
    row = samples((7,))
    b = samples((5, 7), 2)
    expected = axpyed(np.broadcast_to(row, (5, 7)), b, -1.0)
    axpy(np.broadcast_to(row, (5, 7)), b, -1.0)
    assert close(b, expected)
    fixed = samples((5, 7), 3)
    fixed.flags.writeable = False
    expected = axpyed(fixed, b, 1.0)
    axpy(fixed, b, 1.0)
    assert close(b, expected)
    with pytest.raises(ArgumentError, match=r"^B is read-only"):
        axpy(b, fixed, 1.0)


SUM = program(
    """
__kernel void sum(long N, __global const float *A, __global const float *B, __global float *C)
{
    const long i = get_global_id(1)*N + get_global_id(0);
    C[i] = A[i] + B[i];
}
""",
    [DeviceKernel("sum", (integer("N"), array("A"), array("B"), array("C")), (1, 1))],
    [Launch("sum", (N, M))],
    [Buffer("A", f32, (M, N), "in"), Buffer("B", f32, (M, N), "in"), Buffer("C", f32, (M, N), "out")],
)


def test_an_input_may_be_given_twice_and_inputs_may_overlap(tested: Device, queue: Any) -> None:
    add = executable(SUM, tested)
    a, c = samples((9, 6)), np.full((9, 6), np.nan, np.float32)
    add(a, a, c)
    assert (c == a + a).all() and add.copies.count == (0 if tested.shares_memory else 4)
    part = np.full((8, 6), np.nan, np.float32)
    add(a[:8], a[1:], part)
    assert (part == a[:8] + a[1:]).all()
    on_device, out = cl_array.to_device(queue, a), cl_array.empty(queue, a.shape, np.float32)
    add(on_device, on_device, out).wait()
    assert (out.get() == a + a).all()


@pytest.mark.parametrize("scalar", [2, 2.0, np.float32(2), np.float64(2), np.int64(2), True + True, np.array(2.0)])
def test_scalars_of_any_kind(axpy: Executable, queue: Any, scalar: Any) -> None:
    a, b = samples((3, 5)), samples((3, 5), 1)
    on_device = cl_array.to_device(queue, a), cl_array.to_device(queue, b)
    expected = axpyed(a, b, 2.0)
    axpy(a, b, scalar)
    axpy(*on_device, scalar).wait()
    assert close(b, expected) and close(on_device[1].get(), expected)


TYPES = program(
    "__kernel void types(__global long *C, int n, long k) { C[0] = n; C[1] = k; }",
    [
        DeviceKernel(
            "types", (Argument("C", "buffer", i64), Argument("n", "scalar", i32), Argument("k", "scalar", i64)), (1,)
        )
    ],
    [Launch("types", (Linear.of(1),))],
    [Buffer("C", i64, (N - N + 2,), "out"), Buffer("n", i32, (), "scalar"), Buffer("k", i64, (), "scalar")],
    sizes=(),
)


def test_integer_scalars_keep_their_range(tested: Device, queue: Any) -> None:
    types = executable(TYPES, tested)
    out = cl_array.zeros(queue, 2, np.int64)
    for n, k in [(-(2**31), 2**63 - 1), (2**31 - 1, -(2**63)), (np.int32(5), np.int64(6))]:
        types(out, n, k).wait()
        assert out.get().tolist() == [n, k]
    with pytest.raises(ArgumentError, match="n = 2147483648 does not fit in i32"):
        types(out, 2**31, 0)
    with pytest.raises(ArgumentError, match="k must be an integer"):
        types(out, 1, 0.5)


def wrong_calls() -> list[tuple[Any, ...]]:
    a, b = np.zeros((4, 6), np.float32), np.zeros((4, 6), np.float32)
    return [
        (a, b),
        (a, b, 1.0, 2.0),
        (a.astype(np.float64), b, 1.0),
        (a, b[:3], 1.0),
        (a[0], b, 1.0),
        (a, a, 1.0),
        (a[:2], a[1:3], 1.0),
        (a, b, "two"),
        ([[0.0]], b, 1.0),
    ]


@pytest.mark.parametrize("number", range(len(wrong_calls())))
def test_wrong_arguments_get_the_messages_of_the_c_target(axpy: Executable, queue: Any, number: int) -> None:
    values = wrong_calls()[number]
    names = [b.name for b in axpy.signature.buffers]
    with pytest.raises(ArgumentError) as expected:
        fit(axpy.signature, dict(zip(names, values, strict=False)), values[3:], {})
    with pytest.raises(ArgumentError, match=re.escape(str(expected.value))):
        axpy(*values)
    if number == 6 or not isinstance(values[0], np.ndarray):
        return
    moved: dict[int, Any] = {}
    on_device = [
        moved.setdefault(id(v), cl_array.to_device(queue, v)) if isinstance(v, np.ndarray) else v for v in values
    ]
    with pytest.raises(ArgumentError, match=re.escape(str(expected.value))):
        axpy(*on_device)


@pytest.mark.parametrize("on_device", [False, True])
def test_later_calls_are_judged_as_the_first_one(axpy: Executable, queue: Any, on_device: bool) -> None:
    """The form of the arrays is known by then; where they lie, and what the scalars are, is not."""

    def moved(values: np.ndarray) -> Any:
        return cl_array.to_device(queue, values) if on_device else values

    a, b = moved(samples((4, 4), 1)), moved(samples((4, 4), 2))
    for _ in range(2):
        axpy(a, b, 1.0)
        with pytest.raises(ArgumentError, match="B is written and shares memory with A"):
            axpy(b, b, 1.0)
        with pytest.raises(ArgumentError, match="s must be a number"):
            axpy(a, b, "one")
        with pytest.raises(ArgumentError, match=r"A has shape \(4, 4\); expected \(4, 5\)|B has shape"):
            axpy(a, moved(samples((4, 5))), 1.0)
        with pytest.raises(ArgumentError, match="B has dtype float64"):
            axpy(a, moved(np.zeros((4, 4))), 1.0)
        with pytest.raises(ArgumentError, match="Missing: s"):
            axpy(a, b)


def test_later_calls_see_whether_an_output_may_be_written(axpy: Executable) -> None:
    a, b = samples((4, 4), 1), samples((4, 4), 2)
    axpy(a, b, 1.0)
    b.flags.writeable = False
    with pytest.raises(ArgumentError, match="B is read-only"):
        axpy(a, b, 1.0)
    whole = samples((9, 4), 3)
    for start in (1, 3, 4):
        with pytest.raises(ArgumentError, match="B is written and shares memory with A"):
            axpy(whole[:4] if start < 4 else whole[1:5], whole[start : start + 4], 1.0)
    before = whole.copy()
    axpy(whole[:4], whole[4:8], 1.0)
    assert close(whole[4:8], axpyed(before[:4], before[4:8], 1.0)) and (whole[8] == before[8]).all()


def test_arguments_by_name(axpy: Executable, queue: Any) -> None:
    a, b = samples((2, 3)), samples((2, 3), 1)
    expected = axpyed(a, b, 3.0)
    on_device = cl_array.to_device(queue, b)
    axpy(a, s=3.0, B=b)
    assert close(b, expected)
    axpy(cl_array.to_device(queue, a), s=3.0, B=on_device).wait()
    assert close(on_device.get(), expected)
    with pytest.raises(ArgumentError, match="got A twice"):
        axpy(a, b, 1.0, A=a)
    with pytest.raises(ArgumentError, match=r"M = 3 is given, but the arrays tell M = 2 \(dimension 0 of A\)"):
        axpy(a, b, 1.0, M=3)


FILL = program(
    "__kernel void fill(__global float *restrict A) { A[get_global_id(0)] += 1; }",
    [DeviceKernel("fill", (array("A"),), (1,))],
    [HostIf(Compare(N, ">", Linear.of(2)), (Launch("fill", (minimum(N, M),)),), (Launch("fill", (Linear.of(1),)),))],
    [Buffer("A", f32, (M,), "inout")],
)


def test_sizes_that_no_array_tells_come_by_keyword(tested: Device, queue: Any) -> None:
    fill = executable(FILL, tested)
    for count, expected in [(0, 1), (2, 1), (3, 3), (9, 5)]:
        a = np.zeros(5, np.float32)
        fill(a, N=count)
        on_device = cl_array.zeros(queue, 5, np.float32)
        fill(on_device, N=count).wait()
        assert a.sum() == on_device.get().sum() == expected
    with pytest.raises(ArgumentError, match=r"needs the size N, which no .* Call made_by_hand\(A, N=…\)"):
        fill(a)


# Arrays on the device


@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_on_the_device_stay_there(axpy: Executable, queue: Any, shape: tuple[int, int]) -> None:
    a, b = samples(shape, 1), samples(shape, 2)
    there_a, there_b = cl_array.to_device(queue, a), cl_array.to_device(queue, b)
    for _ in range(3):
        event = axpy(there_a, there_b, 0.25)
        assert there_b.events[-1] == event and event not in there_a.events
        b = axpyed(a, b, 0.25)
    assert np.allclose(there_b.get(), b, rtol=1e-6, atol=1e-6)
    assert (there_a.get() == a).all() and axpy.copies.count == 0


def test_the_caller_chooses_the_queue(tested: Device, axpy: Executable, queue: Any) -> None:
    other = cl.CommandQueue(queue.context)
    a, b = (cl_array.to_device(queue, samples((4, 4), n)) for n in (1, 2))
    assert axpy(a, b, 1.0).command_queue == queue
    assert axpy(a, b, 1.0, queue=other).command_queue == other
    a, b = a.with_queue(None), b.with_queue(other)
    assert axpy(a, b, 1.0).command_queue == other
    host_a, host_b = samples((4, 4), 1), samples((4, 4), 2)
    expected = axpyed(host_a, host_b, 1.0)
    axpy(host_a, host_b, 1.0, queue=queue)
    assert close(host_b, expected)


def test_a_call_waits_for_the_events_it_is_given_and_for_those_of_the_arrays(axpy: Executable, queue: Any) -> None:
    a, b = (cl_array.to_device(queue, samples((4, 4), n)) for n in (1, 2))
    expected = axpyed(a.get(), b.get(), 1.0)
    running = cl.command_execution_status
    gate, second = cl.UserEvent(queue.context), cl.UserEvent(queue.context)
    a.add_event(second)
    event = axpy(a, b, 1.0, wait_for=[gate])
    gate.set_status(running.COMPLETE)
    assert event.command_execution_status > running.COMPLETE
    second.set_status(running.COMPLETE)
    event.wait()
    assert close(b.get(), expected)


def test_a_queue_that_keeps_no_order(tested: Device) -> None:
    context = cl.Context([tested.handle])
    disordered = cl.CommandQueue(context, properties=cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    count = executable(COUNT, tested)
    outs = [cl_array.empty(disordered, (40, 129), np.int32) for _ in range(4)]
    for out in outs:
        count(out)
    for out in outs:
        for event in out.events:
            event.wait()
        assert (out.get() == counted(40, 129)).all()
    host = np.empty((9, 33), np.int32)
    executable(COUNT, replace(tested, shares_memory=False))(host, queue=disordered)
    assert (host == counted(9, 33)).all()


def test_parts_of_a_buffer(tested: Device, axpy: Executable, queue: Any) -> None:
    """Where the device lets a part begin, elements around it stay as they are; elsewhere the remedy is told."""
    step = tested.alignment // 4
    whole = cl_array.to_device(queue, samples((8 * step,)))
    before = whole.get()
    a, b = whole[step : 3 * step].reshape(2, step), whole[4 * step : 6 * step].reshape(2, step)
    for _ in range(2):
        axpy(a, b, 1.0).wait()
    after = whole.get()
    expected = before.copy()
    expected[4 * step : 6 * step] += 2 * before[step : 3 * step]
    assert np.allclose(after, expected, atol=1e-6)
    assert (after[: 4 * step] == before[: 4 * step]).all() and (after[6 * step :] == before[6 * step :]).all()
    with pytest.raises(ArgumentError, match=r"A begins 4 bytes into its buffer.*Remedy: A.copy\(\)"):
        axpy(whole[1:7].reshape(2, 3), cl_array.to_device(queue, samples((2, 3))), 1.0)
    with pytest.raises(ArgumentError, match="B is written and shares memory with A"):
        axpy(whole[: 2 * step].reshape(2, step), whole[step : 3 * step].reshape(2, step), 1.0)


def test_buffers_that_are_parts_of_a_buffer(tested: Device, axpy: Executable, queue: Any) -> None:
    step = tested.alignment // 4
    parent = cl_array.to_device(queue, samples((8 * step,)))
    before = parent.get()

    def part(start: int) -> Any:
        data = parent.base_data.get_sub_region(4 * start * step, 4 * step)
        return cl_array.Array(queue, (1, step), np.float32, data=data)

    for _ in range(2):
        axpy(part(1), part(2), 1.0).wait()
    expected = before.copy()
    expected[2 * step : 3 * step] += 2 * before[step : 2 * step]
    assert np.allclose(parent.get(), expected, atol=1e-6)
    with pytest.raises(ArgumentError, match="B is written and shares memory with A"):
        axpy(part(2), part(2), 1.0)
    with pytest.raises(ArgumentError, match="B is written and shares memory with A"):
        axpy(parent[2 * step : 3 * step].reshape(1, step), part(2), 1.0)


def test_host_and_device_are_not_mixed(axpy: Executable, queue: Any) -> None:
    a = samples((2, 2))
    with pytest.raises(ArgumentError) as caught:
        axpy(cl_array.to_device(queue, a), a, 1.0)
    assert str(caught.value) == (
        "A on the device, and B on the host: give all arrays as NumPy's or all as pyopencl's. "
        "Remedy: work = pyopencl.array.to_device(queue, B), and copy it back after the call: B[...] = work.get()"
    )


def test_arrays_on_the_device_must_be_dense(axpy: Executable, queue: Any) -> None:
    a, b = (cl_array.to_device(queue, samples((6, 8), n)) for n in (1, 2))
    with pytest.raises(ArgumentError, match=r"A is not contiguous: shape \(6, 4\), strides \(32, 8\) bytes"):
        axpy(a[:, ::2], b[:, ::2], 1.0)


def test_contexts_are_not_mixed(tested: Device, axpy: Executable, queue: Any) -> None:
    context = cl.Context([tested.handle])
    other = cl.CommandQueue(context)
    a, b = (cl_array.to_device(queue, samples((2, 2), n)) for n in (1, 2))
    before = b.get()
    for wrong in ({"queue": other}, {"B": cl_array.to_device(other, samples((2, 2)))}):
        arguments = {"A": a, "B": b, "s": 1.0, **wrong}
        with pytest.raises(ArgumentError, match="belong to different contexts of OpenCL"):
            axpy(**arguments)
    with pytest.raises(ArgumentError, match="pass a queue of the arrays' context"):
        axpy(a.with_queue(None), b.with_queue(None), 1.0)
    assert (b.get() == before).all()


def test_a_queue_of_another_device_is_refused(tested: Device, queue: Any) -> None:
    elsewhere = executable(AXPY, replace(tested, driver="another", label="opencl:elsewhere"))
    a, b = (cl_array.to_device(queue, samples((2, 2), n)) for n in (1, 2))
    with pytest.raises(ArgumentError, match="and the kernel is made for opencl:elsewhere"):
        elsewhere(a, b, 1.0)


def test_calls_side_by_side_in_threads(tested: Device, queue: Any) -> None:
    """On one queue and on several, with kernels and scratch memory that must not be shared."""
    count, axpy = executable(COUNT, tested), executable(AXPY, tested)
    queues = [queue, cl.CommandQueue(queue.context), queue, cl.CommandQueue(queue.context)]

    def work(number: int) -> bool:
        mine = queues[number % len(queues)]
        good = True
        for repeat in range(8):
            steps, width = 2 + (number + repeat) % 5, 16 + 8 * number
            out = cl_array.empty(mine, (steps, width), np.int32)
            count(out)
            host = np.empty((steps, width), np.int32)
            count(host)
            a, b = samples((steps, width), number), samples((steps, width), repeat)
            expected = axpyed(a, b, number)
            axpy(a, b, float(number))
            good &= bool((out.get() == counted(steps, width)).all() and (host == counted(steps, width)).all())
            good &= bool(np.allclose(b, expected, atol=1e-5))
        return good

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_a_part_of_the_device_runs_it(tested: Device) -> None:
    if tested.isa.units < 2 or tested.isa.is_gpu:
        pytest.skip("the device has one compute unit, or cannot be divided")
    out = np.empty((5, 40), np.int32)
    executable(COUNT, tested.with_units(1))(out)
    assert (out == counted(5, 40)).all()


def test_profile_tells_each_launch(tested: Device, queue: Any) -> None:
    count = executable(COUNT, tested)
    out = np.empty((3, 40), np.int32)
    for values in ((out,), (cl_array.empty(queue, (3, 40), np.int32),)):
        profile = count.profile(*values)
        assert [name for name, _ in profile.launches] == ["fill", "gather"] * 3
        assert all(seconds >= 0 for _, seconds in profile.launches)
        assert profile.seconds >= max(seconds for _, seconds in profile.launches)
    assert (out == counted(3, 40)).all()
    profiling = cl.CommandQueue(queue.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    assert len(count.profile(*values, queue=profiling).launches) == 6


# What goes wrong


def test_a_source_that_does_not_compile_is_told_with_the_log_and_kept(tested: Device) -> None:
    broken = executable(replace(AXPY, source=AXPY.source.replace("B[i*N + j] +=", "B[i*N + j] += undeclared*")), tested)
    with pytest.raises(ToolchainError) as caught:
        broken(samples((2, 2)), samples((2, 2)), 1.0)
    message = str(caught.value)
    assert message.startswith(f"the OpenCL compiler of {tested.label} failed.\nOptions: -cl-std=CL1.2")
    assert "undeclared" in message.partition("It said:\n")[2]
    assert Path(re.findall("^Source: (.*)$", message, re.M)[0]).read_text() == broken.program.source


def test_memory_that_the_device_does_not_have_is_told(tested: Device, queue: Any) -> None:
    greedy = executable(replace(COUNT, scratch=(Scratch("all", i32, N * 1099511627776),)), tested)
    out = np.full((3, 4), -1, np.int32)
    with pytest.raises(DeviceError) as caught:
        greedy(out)
    message = str(caught.value)
    assert message.startswith(
        f"{tested.label} has no memory for this call: its arrays and scratch arrays take 17592.2 GB"
    )
    assert "Nothing has been changed. Remedy: " in message
    assert (out == -1).all()


def failing(made: Executable, error: str, after: int = 0) -> None:
    """From now on, launches fail as a driver's do, all but the first `after`."""
    functions = made._functions
    launched = []

    def enqueue(*values: Any) -> Any:
        if len(launched) == after:
            code = getattr(cl.status_code, error, -9999)
            record = cl._cl._ErrorRecord(msg="", code=code, routine="clEnqueueNDRangeKernel")
            raise cl.RuntimeError(record)
        launched.append(values)
        return functions.enqueue(*values)

    made.__dict__["_functions"] = replace(functions, enqueue=enqueue)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("OUT_OF_RESOURCES", "has no memory for this call"),
        ("MEM_OBJECT_ALLOCATION_FAILURE", "has no memory for this call"),
        ("DEVICE_NOT_AVAILABLE", "is lost, or its queue or context cannot be used any more"),
        ("INVALID_COMMAND_QUEUE", "is lost, or its queue or context cannot be used any more"),
        ("INVALID_WORK_GROUP_SIZE", "refuses a launch"),
        ("unknown error -9999", "failed: clEnqueueNDRangeKernel failed"),
    ],
)
@pytest.mark.parametrize(("after", "outputs"), [(0, "Nothing has been changed."), (3, "Outputs may hold a part")])
def test_what_drivers_say_in_words(
    tested: Device, queue: Any, error: str, words: str, after: int, outputs: str
) -> None:
    count = executable(COUNT, tested)
    failing(count, error, after)
    with pytest.raises(DeviceError) as caught:
        count(cl_array.empty(queue, (4, 4), np.int32))
    assert words in str(caught.value) and outputs in str(caught.value) and error in str(caught.value)


def test_a_group_larger_than_the_device_takes_is_told(tested: Device) -> None:
    kernel = replace(FILL.kernels[0], items=(2 * tested.isa.max_items,))
    large = executable(replace(FILL, kernels=(kernel,)), tested)
    a = np.zeros(4, np.float32)
    with pytest.raises(DeviceError, match=r"refuses a launch: .*Nothing has been changed"):
        large(a, N=5)
    assert (a == 0).all()


def test_guards_are_where_tests_expect_them() -> None:
    inner, whole = guarded((2, 3))
    assert untouched(whole) and np.isnan(inner).all() and whole.size == 6 + 2 * GUARD
    whole[0] = 0
    assert not untouched(whole)
