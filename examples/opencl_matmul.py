"""A matrix product on an OpenCL device: arrays that stay on the device, a queue of your own, events.

This example needs pyopencl and a device. `poly machine` lists the devices that can be used.
"""

import numpy as np
import pyopencl as cl
import pyopencl.array

import poly
from poly import f32

M, N, K = poly.sizes("M N K")


@poly.nest
def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


if __name__ == "__main__":
    kernel = poly.compile(matmul, M=512, N=512, K=512, target="opencl")
    print(kernel)
    print(kernel.schedule)
    print(kernel.source[-1200:])

    # NumPy arrays are copied if the device has its own memory. When the call returns, C holds the result.
    rng = np.random.default_rng(0)
    A, B, C = rng.random((512, 512), np.float32), rng.random((512, 512), np.float32), np.zeros((512, 512), np.float32)
    kernel(A, B, C)
    assert np.allclose(C, A @ B, rtol=1e-4)
    print(kernel.copies)

    # Arrays on the device are not copied, and the call returns at once with an event.
    device = kernel.device.handle
    context = cl.Context([device])
    queue = cl.CommandQueue(context, device, cl.command_queue_properties.PROFILING_ENABLE)
    on_device = [cl.array.to_device(queue, values) for values in (A, B, np.zeros_like(C))]
    first = kernel(*on_device)
    second = kernel(*on_device, wait_for=[first])  # one queue keeps the order by itself; another queue needs the event
    second.wait()
    assert np.allclose(on_device[2].get(), 2 * (A @ B), rtol=1e-4)

    seconds = 1e-9 * (second.profile.end - second.profile.start)
    print(f"the last launch of the second call: {2 * 512**3 / seconds / 1e9:.0f} GFLOP/s by the device's clock")
